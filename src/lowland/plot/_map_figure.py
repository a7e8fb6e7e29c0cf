"""The figure that all pictures are; importing this module imports matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from lowland.plot._figure import png_bytes

NOTEBOOK_DPI = 100  # dots per inch on a page


class MapFigure(Figure):
    """A matplotlib figure that a notebook shows without pyplot; all pictures are of this class.

    A figure that pyplot does not know is shown by its text only. This one draws itself.

    Examples
    --------
    >>> from lowland.plot import loss_plot
    >>> figure = loss_plot([3.0, 2.0, 1.5])
    >>> type(figure).__name__, figure._repr_png_()[:4]
    ('MapFigure', b'\\x89PNG')
    """

    def _repr_png_(self) -> bytes:
        """The picture, for notebooks."""
        return png_bytes(self, dpi=NOTEBOOK_DPI)
