"""Pictures: functions on arrays that return matplotlib figures, without global state.

    >>> from lowland import PCA
    >>> from lowland.datasets import iris
    >>> from lowland.plot import scatter_map
    >>> data = iris()
    >>> figure = scatter_map(PCA(2).fit_transform(data.X), data.labels, label_name="species")

matplotlib is imported by the first picture, pyplot never. :func:`save_figure` writes PNG, SVG or
PDF, the same bytes every time. A notebook shows the figures, which are of the class
:class:`MapFigure`.
"""

from typing import TYPE_CHECKING, Any

from lowland.plot._figure import save_figure
from lowland.plot.comparison import alignment_map, compare_maps, pairs_plot
from lowland.plot.curves import curse, loss_plot, scree_plot, selection_plot
from lowland.plot.decoding import decoded_images, reconstruction_pairs
from lowland.plot.grids import component_planes, hits, labeled_units, u_matrix
from lowland.plot.images import eigen_images, recognition_strip, reconstruction_strip
from lowland.plot.maps import scatter_map, scatter_map_3d, tiled_map
from lowland.plot.quality import distortion_map, opening_angle_plot, rnx_plot, shepard_plot
from lowland.plot.through_data import biplot, curve_through_data, grid_through_data
from lowland.plot.trust import trust_map

if TYPE_CHECKING:
    from lowland.plot._map_figure import MapFigure

__all__ = [
    "MapFigure",
    "alignment_map",
    "biplot",
    "compare_maps",
    "component_planes",
    "curse",
    "curve_through_data",
    "decoded_images",
    "distortion_map",
    "eigen_images",
    "grid_through_data",
    "hits",
    "labeled_units",
    "loss_plot",
    "opening_angle_plot",
    "pairs_plot",
    "recognition_strip",
    "reconstruction_pairs",
    "reconstruction_strip",
    "rnx_plot",
    "save_figure",
    "scatter_map",
    "scatter_map_3d",
    "scree_plot",
    "selection_plot",
    "shepard_plot",
    "tiled_map",
    "trust_map",
    "u_matrix",
]


def __getattr__(name: str) -> Any:
    if name == "MapFigure":  # importing it imports matplotlib
        from lowland.plot._map_figure import MapFigure

        return MapFigure
    raise AttributeError(f"module 'lowland.plot' has no attribute {name!r}")
