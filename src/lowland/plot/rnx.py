"""R_NX curves: how well maps keep neighborhoods of every size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._figure import TEXT, bare, check_vector, clean, name_axes, new_figure, write_title
from lowland.plot.palettes import category_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = ("-", "--", ":", "-.")
MOST_POINTS = 1000


def rnx_plot(
    curves: Mapping[str, Sequence[float] | np.ndarray],
    *,
    errors: Mapping[str, Sequence[float] | np.ndarray] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw R_NX of several maps over the size K of the neighborhood, on a logarithmic scale.

    1 is a perfect map and 0 a random one. The left end of a curve is about the nearest neighbors,
    the right end about the large-scale layout. The legend gives the area under each curve,
    sum R_NX(K)/K / sum 1/K, best first.

    Parameters
    ----------
    curves : dict from name to array of shape (n_rows - 2,)
        R_NX for K = 1, 2, ..., as ``values`` of :func:`lowland.metrics.rnx_curve`.
    errors : dict from name to array, optional
        Standard errors of curves measured on a sample; two of them are shaded on each side.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.metrics import rnx_curve
    >>> X = iris().X
    >>> figure = rnx_plot({"petals": rnx_curve(X, X[:, 2:]).values})
    >>> figure.axes[0].get_legend().get_texts()[0].get_text()
    'petals (0.48)'
    """
    if not curves:
        raise DataError("there are no curves to draw.")
    checked = {name: check_vector(curve, f"the curve {name!r}") for name, curve in curves.items()}
    areas = {name: _area(curve) for name, curve in checked.items()}
    figure = new_figure(6.6, 4.2)
    axes = figure.subplots()
    palette = category_colors(min(len(checked), 10))
    for i, (name, curve) in enumerate(checked.items()):
        color, line = palette[i % 10], LINES[i // 10 % len(LINES)]
        shown = _few_of(curve.size)
        axes.plot(shown + 1, curve[shown], linewidth=1.6, color=color, linestyle=line)
        if errors is not None and name in errors:
            error = check_vector(errors[name], f"the errors of {name!r}", curve.size)[shown]
            band = curve[shown] - 2 * error, curve[shown] + 2 * error
            axes.fill_between(shown + 1, *band, color=color, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    lowest = min(float(curve.min()) for curve in checked.values())
    highest = max(float(curve.max()) for curve in checked.values())
    axes.set_ylim(min(0.0, 1.05 * lowest), min(1.0, 1.08 * max(highest, 0.1)))
    axes.set_xlim(1, max(2, *(curve.size for curve in checked.values())))
    bare(axes)
    name_axes(axes, "size K of the neighborhood", "R_NX(K)")
    _legend(axes, list(checked), areas)
    write_title(figure, title)
    return figure


def _area(curve: np.ndarray) -> float:
    weights = 1.0 / np.arange(1, curve.size + 1)
    return float((curve * weights).sum() / weights.sum())


def _few_of(n: int) -> np.ndarray:
    """Positions that are dense enough for a logarithmic scale: all at first, then fewer."""
    steps = np.unique(np.round(np.geomspace(1, n, MOST_POINTS)).astype(np.int64))
    return (steps if n > MOST_POINTS else np.arange(1, n + 1)) - 1


def _legend(axes: Axes, names: list[str], areas: dict[str, float]) -> None:
    ranked = sorted(range(len(names)), key=lambda i: -areas[names[i]])
    lines = axes.get_lines()
    legend = axes.legend(
        [lines[i] for i in ranked],
        ["name"] * len(ranked),
        title="map (area)",
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
    )
    for text, i in zip(legend.get_texts(), ranked, strict=True):
        text.set(text=f"{clean(names[i], 24)} ({areas[names[i]]:.2f})", **TEXT)
