"""What all pictures share: figures without pyplot, text as text, files without dates."""

from __future__ import annotations

import contextlib
import io
import os
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowland._base.errors import ParameterError, unknown_name
from lowland.plot._style import ARROW, INK, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lowland.plot._map_figure import MapFigure

GROUPS = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")  # the spaces in 10 000 000
FORMATS = ("jpeg", "jpg", "pdf", "png", "svg", "tif", "tiff", "webp")
# Metadata of the files; a date would make the files of two runs differ.
METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
# Text in vector files can be searched and edited; ids in SVG do not change from run to run.
VECTOR: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "lowland", "pdf.fonttype": 42}


def new_figure(width: float, height: float, title: str | None = None) -> MapFigure:
    """An empty figure of this size in inches, with an Agg canvas and without pyplot.

    A long title above it has several lines.

    All pictures are made here, so that all of them show themselves in a notebook.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from lowland.plot._map_figure import MapFigure

    figure = MapFigure(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
    FigureCanvasAgg(figure)
    if title:
        text = GROUPS.sub("\N{NO-BREAK SPACE}", one_line(title, most=300))
        figure.suptitle("\n".join(textwrap.wrap(text, int(width * 9))), **TEXT)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Write a picture; the suffix of ``path`` names the format.

    In SVG and PDF the points are one image of ``dpi`` dots per inch and all text stays text. The
    same figure gives the same bytes: there are no dates in the files.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Any figure.
    path : path
        Ends in .png, .svg, .pdf, .jpg, .webp or .tif.
    dpi : int, default=150
        Dots per inch.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from lowland.plot import loss_plot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "loss.svg")
    ...     save_figure(loss_plot([3.0, 2.0, 1.5]), path)
    ...     "<text" in path.read_text()
    True
    """
    import matplotlib

    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise ParameterError(unknown_name("format of a picture", suffix, list(FORMATS)))
    with without_font_warnings(), matplotlib.rc_context(VECTOR):
        figure.savefig(path, dpi=dpi, format=suffix, metadata=METADATA.get(suffix))


def png_bytes(figure: Figure, *, dpi: int) -> bytes:
    """The figure as a PNG file in memory."""
    image = io.BytesIO()
    with without_font_warnings():
        figure.savefig(image, dpi=dpi, format="png", metadata=METADATA["png"])
    return image.getvalue()


@contextlib.contextmanager
def without_font_warnings() -> Iterator[None]:
    """Suppress warnings about characters that the font lacks; they are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not")
        yield


def one_line(text: str, most: int = 80) -> str:
    """One line of printable characters, shortened."""
    text = " ".join(str(text).split())
    text = "".join(char if char.isprintable() else "\ufffd" for char in text)
    return text if len(text) <= most else text[: most - 1] + "…"


def name_axes(axes: Axes, x_name: str, y_name: str) -> None:
    """Names of the axes, as text."""
    axes.set_xlabel(one_line(x_name), **TEXT)
    axes.set_ylabel(one_line(y_name), **TEXT)


def open_frame(axes: Axes, x_name: str, y_name: str) -> None:
    """Draw only the left and the lower line of the frame, in grey, and name them."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_color("#b0b0b0")
    axes.tick_params(color="#b0b0b0")
    name_axes(axes, x_name, y_name)


def write(axes: Axes, x: float, y: float, text: str, size: float, **how: Any) -> None:
    """Write a remark, by default in the middle of its place; nothing if it is empty."""
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size, "color": INK}
    if text:
        axes.text(x, y, text, **{**style, **how}, **TEXT)


def note(axes: Axes, text: str) -> None:
    """Write a remark in small letters above the right end of the frame."""
    axes.set_title(text, loc="right", fontsize=7, color=INK, pad=3, **TEXT)


def write_legend(owner: Any, handles: Any = None, names: Sequence[str] = (), **look: Any) -> None:
    """A legend of axes or of a figure, without a frame; by default of all that has a name there.

    The names are written afterwards: matplotlib drops entries whose name begins with an underscore,
    and would take a dollar sign for a formula.
    """
    if handles is None:
        handles, own_names = owner.get_legend_handles_labels()
        names = names or own_names
    legend = owner.legend(handles, ["name"] * len(names), frameon=False, **look)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=name, **TEXT)
    legend.get_title().set(**TEXT)


def add_arrow(axes: Axes, start: Any, end: Any, **look: Any) -> None:
    """An arrow that the layout of the picture does not take into account."""
    from matplotlib.patches import FancyArrowPatch

    arrow = FancyArrowPatch(start, end, **{**ARROW, **look})
    arrow.set_in_layout(False)
    axes.add_patch(arrow)
