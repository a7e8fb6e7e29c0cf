"""How results are shown: in notebooks, and numbers for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lowland._base.html import SHOWN_ROWS, html_image, html_lines, html_table

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from lowland.trust import Trust

NOTEBOOK_DPI = 72
# Measures under the picture of a map that is compared, and their short names.
UNDER = {
    "neighbor_recall": "recall",
    "trustworthiness": "trustworthiness",
    "shepard_correlation": "Spearman",
}


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


def ranking_html(ranking: Sequence[dict[str, Any]], caption: str) -> str:
    """The columns of a table in the order of a selector, the best first."""
    shown = [
        (row["rank"], row["column"], row["score"], "kept" if row["kept"] else "")
        for row in ranking[: 2 * SHOWN_ROWS]
    ]
    headings = ("rank", "column", "score", "")
    return html_table(headings, shown, caption, left_out=len(ranking) - len(shown))


class ShownComparison:
    """The picture of a comparison, and its page in a notebook."""

    _prepared: Any
    _color: str | None

    def picture(self) -> Figure:
        """All maps side by side, as a matplotlib figure; each turned to resemble the first."""
        return self._figure(self._entries())

    def _figure(self, entries: list[dict[str, Any]]) -> Figure:
        from lowland.plot import compare_maps

        color = self._color
        return compare_maps(
            [entry["coordinates"] for entry in entries],
            [entry["title"] for entry in entries],
            None if color is None else self._prepared.table.column(color).to_numpy(),
            label_name=color,
            notes=[_quality_line(entry["quality"]) for entry in entries],
        )

    def __repr__(self) -> str:
        rows, methods = self._prepared.table.shape[0], [row["method"] for row in self.rows()]
        return f"{type(self).__name__}({', '.join(methods)} of {rows} rows)"

    def _repr_html_(self) -> str:
        """The picture and the table, for notebooks."""
        rows = self.rows()
        shown = [name for name in rows[0] if not name.endswith("_error")]
        table = html_table(shown, [[row[name] for name in shown] for row in rows])
        lost = html_lines(f"{name}: {why}" for name, why in self.failures.items())
        return picture_html(self.picture(), repr(self)) + table + (lost if self.failures else "")

    def _entries(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    @property
    def failures(self) -> dict[str, str]:
        raise NotImplementedError


def _quality_line(quality: dict[str, Any]) -> str:
    """The most telling measures of a map in a few words, for the line under its picture."""
    return ", ".join(
        f"{word} {quality[name]['value']:.2f}" for name, word in UNDER.items() if name in quality
    )
