"""Colors and measures that all pictures share; color-blind people can distinguish the colors."""

from __future__ import annotations

from typing import Any

# Okabe & Ito (2008) without yellow, which is hardly visible in small points on white.
OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")

# The first ten are chosen among the palettes of Okabe & Ito, Tol and Petroff: the smallest
# difference of two of them, to normal, red-blind and green-blind eyes alike, is largest. Each
# further one is the color farthest, to the same eyes, from all before it, from grey and from white.
LONG_PALETTE = (
    *("#4477aa", "#ffa90e", "#009e73", "#bd1f01", "#33bbee"),
    *("#832db6", "#e76300", "#332288", "#882255", "#000000"),
    *("#d23cff", "#0000f0", "#69f087", "#96b478", "#ff78c3"),
    *("#965a78", "#692d00", "#5a4b87", "#1e690f", "#69e1ff"),
    *("#a578d2", "#f0004b", "#d22da5", "#004b3c", "#5a784b"),
    *("#a54bd2", "#ff874b", "#690069", "#3cb4a5", "#c3e13c"),
)
# With many colors, the shape helps if points are large enough.
MARKERS = ("o", "^", "s")

GREY = "#c8c8c8"  # a label is missing
DARK_GREY = "#8c8c8c"  # categories beyond the palette
INK = "#404040"  # lines and notes that are not data

SEQUENTIAL = "viridis"
DIVERGING = "coolwarm"  # its middle is grey, which is visible on white


def category_colors(n: int) -> tuple[str, ...]:
    """n different colors, of the shortest palette that has as many."""
    return (OKABE_ITO if n <= len(OKABE_ITO) else LONG_PALETTE)[:n]


PANEL = 5.0  # inches that a map measures
TEXT: dict[str, Any] = {"parse_math": False}  # a dollar sign in a name is not a formula

ARROW: dict[str, Any] = {
    "arrowstyle": "-|>",
    "mutation_scale": 7,
    "shrinkA": 0,
    "shrinkB": 0,
    "linewidth": 1.0,
    "color": INK,
    "zorder": 3,
}
