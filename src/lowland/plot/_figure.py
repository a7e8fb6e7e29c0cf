"""What all pictures share: figures without pyplot, text as text, files without dates, checks."""

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

import numpy as np

from lowland._base.errors import DataError, ParameterError, unknown_name
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


def one_each(given: Sequence[Any] | None, usual: list[str], what: str, things: str) -> list[str]:
    """One text for each thing, as given or as usual."""
    if given is None:
        return usual
    if len(given) != len(usual):
        raise DataError(f"there are {len(given)} {what} for {len(usual)} {things}.")
    return [str(text) for text in given]


def sample_rows(n: int, most: int) -> np.ndarray:
    """The rows to draw, ascending: all of them, or a random sample."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def check_map(Y: Any, name: str = "the map") -> np.ndarray:
    """Coordinates as float64, in units that matplotlib can handle."""
    Y = check_table(Y, name)
    return Y / drawable_unit(Y)


def drawable_unit(*parts: np.ndarray) -> float:
    """A divisor for coordinates whose units matplotlib cannot draw; 1 for most.

    There are no ticks, so that extreme units may be rescaled.
    """
    reach = max(float(np.abs(part).max()) for part in parts)
    return 1.0 if reach == 0 or 1e-9 < reach < 1e30 else reach


def check_table(Y: Any, name: str, *, may_be_missing: bool = False) -> np.ndarray:
    """Numbers in rows and columns, as float64; finite, or NaN where they may be missing."""
    Y = _as_numbers(Y, name)
    if Y.ndim != 2 or 0 in Y.shape:
        raise DataError(f"{name} must have rows and columns, but has shape {Y.shape}.")
    if may_be_missing:
        return np.where(np.isfinite(Y), Y, np.nan)
    finite = np.isfinite(Y).all(axis=1)
    if not finite.all():
        found = f"{name} holds NaN or infinity, first in row {int(np.argmin(finite))}"
        raise DataError(f"{found}; leave such rows out, with their labels.")
    return Y


def check_vector(
    values: Any, name: str, n: int | None = None, *, may_be_missing: bool = False
) -> np.ndarray:
    """One number per entry, finite unless some may be missing."""
    values = _as_numbers(values, name)
    if values.ndim != 1 or values.size == 0 or n not in (None, values.size):
        wanted = "one number per entry" if n is None else f"{n} numbers"
        raise DataError(f"{name} must hold {wanted}, but has shape {values.shape}.")
    if not may_be_missing and not np.isfinite(values).all():
        entry = int(np.argmin(np.isfinite(values)))
        raise DataError(f"{name} holds {values[entry]} at position {entry}.")
    return values


def _as_numbers(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} holds something that is not a number: {error}.") from None
