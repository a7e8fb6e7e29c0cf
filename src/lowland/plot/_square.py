"""Two shares per point as one color: missing neighbors upward, strangers to the right."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland.plot._figure import TEXT
from lowland.plot.colors import MISSING, Categories
from lowland.plot.palettes import DARK_GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE = 5  # cells along an edge, as in the report
# Colors of the corners, by (missing, strangers); the report has the same.
CORNERS = {(0, 0): "#cdd5dd", (1, 0): "#1a66c9", (0, 1): "#e8860c", (1, 1): "#1c0f24"}
NOT_MEASURED = "#e9e9e9"  # paler than the first corner, from which it must differ
SLACK = 1e-9  # 3 of 15, as a number, may be less than one fifth


def square_colors() -> np.ndarray:
    """RGB of all cells, (SIDE, SIDE, 3), by missing and strangers: bilinear between the corners."""
    from matplotlib.colors import to_rgb

    share = np.linspace(0, 1, SIDE)
    missing, strangers = np.meshgrid(share, share, indexing="ij")
    colors = np.zeros((SIDE, SIDE, 3))
    for (up, across), color in CORNERS.items():
        weight = np.abs(1 - up - missing) * np.abs(1 - across - strangers)
        colors += weight[:, :, None] * np.array(to_rgb(color))
    return colors


@dataclasses.dataclass(frozen=True, eq=False)
class Square(Categories):
    """``codes[i]`` is the cell of row i, SIDE * (row of missing) + (column of strangers)."""

    def marker(self, code: int) -> str:
        """One shape: only the color has a meaning."""
        return "o"

    def palette(self) -> tuple[str, ...]:
        """Colors of the codes -2 (not measured), -1, 0, 1, ..."""
        from matplotlib.colors import to_hex

        cells = square_colors().reshape(-1, 3)
        return (NOT_MEASURED, DARK_GREY, *(to_hex(color) for color in cells))


def square(missing: np.ndarray, strangers: np.ndarray) -> Square:
    """The cell of each point; NaN is not measured."""
    known = np.isfinite(missing) & np.isfinite(strangers)
    steps = [
        np.clip(np.nan_to_num(share) * SIDE + SLACK, 0, SIDE - 1).astype(np.int64)
        for share in (missing, strangers)
    ]
    names = tuple(f"{up} {across}" for up in range(SIDE) for across in range(SIDE))
    return Square(np.where(known, SIDE * steps[0] + steps[1], MISSING), names)


def draw_square(axes: Axes) -> None:
    """The color scale: a square of cells with its two axes."""
    cells = square_colors()
    axes.imshow(cells, origin="lower", extent=(0, 1, 0, 1), interpolation="nearest", aspect="auto")
    ends: dict[str, Any] = {"fontsize": 7, "color": INK}
    axes.set_xticks([0, 1], ["0", "100 %"], **ends)
    axes.set_yticks([0, 1], ["0", "100 %"], **ends)
    for labels, along in ((axes.get_xticklabels(), "ha"), (axes.get_yticklabels(), "va")):
        first, last = ("left", "right") if along == "ha" else ("bottom", "top")
        labels[0].set(**{along: first})
        labels[1].set(**{along: last})
    axes.tick_params(length=0, pad=2)
    axes.set_xlabel("strangers", fontsize=8, labelpad=1, **TEXT)
    axes.set_ylabel("missing", fontsize=8, labelpad=-14, **TEXT)
    axes.spines[:].set_visible(False)
