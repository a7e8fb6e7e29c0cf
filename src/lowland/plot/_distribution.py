"""How the points lie along one axis: a histogram per category."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lowland.plot.colors import Categories, Coloring
from lowland.plot.palettes import OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILLED = 4  # with more categories, areas on top of each other cannot be told apart


def draw_distribution(
    axes: Axes, x: np.ndarray, coloring: Coloring, *, filled: bool = False
) -> None:
    """Shares of the points of each category, all with the same area, in a frame with x limits.

    ``filled`` shades the areas of a few categories.
    """
    groups = {OKABE_ITO[0]: np.ones(x.size, bool)}
    if isinstance(coloring, Categories):
        groups = {coloring.color(code): coloring.codes == code for code in coloring.present()}
    n_bins = int(np.clip(5 + np.sqrt(x.size / len(groups)), 8, 30))
    edges = np.linspace(*axes.get_xlim(), n_bins + 1)
    highest = 0.0
    for color, members in groups.items():
        share = np.histogram(x[members], edges)[0] / members.sum()
        if filled and 1 < len(groups) <= FILLED:
            axes.stairs(share, edges, color=color, fill=True, alpha=0.3, linewidth=0)
        axes.stairs(share, edges, color=color, fill=len(groups) == 1, linewidth=1.2)
        highest = max(highest, float(share.max()))
    axes.set_ylim(0, 1.1 * highest)
