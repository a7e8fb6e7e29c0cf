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

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "lowland.plot._figure": "save_figure",
        "lowland.plot._map_figure": "MapFigure",
        "lowland.plot.comparison": "alignment_map compare_maps pairs_plot",
        "lowland.plot.curves": "curse loss_plot scree_plot selection_plot",
        "lowland.plot.decoding": "decoded_images reconstruction_pairs",
        "lowland.plot.grids": "component_planes hits labeled_units u_matrix",
        "lowland.plot.images": "eigen_images recognition_strip reconstruction_strip",
        "lowland.plot.maps": "scatter_map scatter_map_3d tiled_map",
        "lowland.plot.quality": "distortion_map opening_angle_plot rnx_plot shepard_plot",
        "lowland.plot.through_data": "biplot curve_through_data grid_through_data",
        "lowland.plot.trust": "trust_map",
    },
)
