"""The table that ``quality`` returns, with its forms as text, HTML, dictionary and data frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lowland._core.errors import ParameterError, unknown_name
from lowland._core.html import html_table
from lowland.metrics._measured import Measured

HEADINGS = ("measure", "this map", "+-", "PCA", "random", "better", "")


class QualityRow(NamedTuple):
    """One measure: of the map, of a PCA map and of a random one (None where there is none)."""

    name: str
    value: Measured
    pca: Measured | None
    random: Measured | None
    better: str
    meaning: str


class Quality:
    """The measures of one map, in a table.

    ``table["trustworthiness"]`` is a row with ``value`` (a float with ``standard_error``), ``pca``,
    ``random``, ``better`` ("higher" or "lower") and ``meaning``. Printing shows all of them, with
    half of the 95 % interval where rows were sampled.

    Attributes
    ----------
    rows : tuple of QualityRow
    n_rows : int
        Rows of the map.
    sample_size : int
        Rows that the neighborhoods were measured on; each value has its own ``sample_size``.
    n_neighbors : int
        Size of the neighborhoods.
    """

    def __init__(
        self, rows: list[QualityRow], n_rows: int, sample_size: int, n_neighbors: int
    ) -> None:
        self.rows = tuple(rows)
        self.n_rows, self.sample_size, self.n_neighbors = n_rows, sample_size, n_neighbors

    def __iter__(self) -> Iterator[QualityRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> QualityRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise ParameterError(unknown_name("measure", str(name), [row.name for row in self.rows]))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain numbers and strings by measure, ready for JSON."""
        return {
            row.name: {
                "value": float(row.value),
                "standard_error": row.value.standard_error,
                "sample_size": row.value.sample_size,
                "pca": None if row.pca is None else float(row.pca),
                "random": None if row.random is None else float(row.random),
                "better": row.better,
                "meaning": row.meaning,
            }
            for row in self.rows
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per measure."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame() needs pandas, which is not installed; pip install pandas, "
                "or use to_dict()."
            ) from error
        return pd.DataFrame.from_dict(self.to_dict(), orient="index").rename_axis("measure")

    def _cells(self) -> list[tuple[str, ...]]:
        """The table as text."""
        return [
            (
                row.name,
                f"{row.value:.3f}",
                f"{1.96 * row.value.standard_error:.3f}" if row.value.standard_error else "",
                "-" if row.pca is None else f"{row.pca:.3f}",
                "-" if row.random is None else f"{row.random:.3f}",
                row.better,
                row.meaning,
            )
            for row in self.rows
        ]

    def _title(self) -> str:
        whole = "all of them" if self.sample_size == self.n_rows else f"{self.sample_size} sampled"
        return f"Map of {self.n_rows} rows ({whole}), neighborhoods of {self.n_neighbors}"

    def __str__(self) -> str:
        lines = [HEADINGS, *self._cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
        text = [self._title()]
        for line in lines:
            numbers = [line[i].rjust(widths[i]) for i in range(1, 5)]
            cells = [line[0].ljust(widths[0]), *numbers, line[5].ljust(widths[5]), line[6]]
            text.append("  ".join(cells).rstrip())
        return "\n".join(text)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(HEADINGS, self._cells(), self._title())
