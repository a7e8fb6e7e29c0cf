"""How results are shown: in notebooks, and numbers for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowland._base.html import SHOWN_ROWS, html_image, html_table

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from lowland.trust import Trust

NOTEBOOK_DPI = 72


def grouped(number: int) -> str:
    """A number of rows for people.

    >>> grouped(950), grouped(10_000_000)
    ('950', '10 000 000')
    """
    return f"{number:,}".replace(",", " ") if number >= 10_000 else str(number)


def picture_html(figure: Figure, alt: str) -> str:
    """A figure as a part of a page."""
    from lowland.plot._figure import png_bytes

    return html_image(png_bytes(figure, dpi=NOTEBOOK_DPI), alt)


def frame_html(frame: pl.DataFrame, caption: str) -> str:
    """The first rows of a data frame."""
    left_out = max(0, frame.height - SHOWN_ROWS)
    return html_table(frame.columns, frame.head(SHOWN_ROWS).iter_rows(), caption, left_out=left_out)


def sentences_html(trust: Trust) -> str:
    """Where a map can be believed, one sentence for each question."""
    return html_table(["question", "", "answer"], trust.sentences)
