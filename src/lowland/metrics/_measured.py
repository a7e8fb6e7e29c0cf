"""Floats with a standard error, and the quality table that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import ParameterError, unknown_name
from lowland._base.html import html_table

STEP = 1e-30  # of complex-step derivatives, which have no cancellation at any step length


class Measured(float):
    """A float with the standard error due to sampling.

    It prints, compares and computes like a float.

    Attributes
    ----------
    standard_error : float
        0.0 when every row was measured.
    sample_size : int
        Number of rows that were measured.

    Examples
    --------
    >>> value = Measured(0.9, standard_error=0.01, sample_size=500)
    >>> value, value > 0.8
    (0.9, True)
    >>> low, high = value.interval()
    >>> round(low, 3), round(high, 3)
    (0.88, 0.92)
    """

    standard_error: float
    sample_size: int

    def __new__(cls, value: float, standard_error: float = 0.0, sample_size: int = 0) -> Measured:
        self = super().__new__(cls, value)
        self.standard_error = float(standard_error)
        self.sample_size = int(sample_size)
        return self

    def __getnewargs__(self) -> tuple[float, float, int]:  # type: ignore[override]
        return float(self), self.standard_error, self.sample_size

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The confidence interval: value -+ z times the standard error."""
        from scipy.special import ndtri

        reach = float(ndtri(0.5 + level / 2)) * self.standard_error
        return float(self) - reach, float(self) + reach


def from_rows(values: np.ndarray, n: int) -> Measured:
    """The mean over all n rows, from the values of all or of a sample drawn without replacement."""
    m = len(values)
    return Measured(float(values.mean()), _error(values, n), m)


def linearized(f: Callable[[Any], Any], rows: np.ndarray, n: int) -> Measured:
    """f(mean of the rows' vectors) for a smooth f, its error to first order (delta method).

    f is called with complex numbers too: its derivative is taken by a complex step.
    """
    mean = rows.mean(axis=0)
    size = np.where(mean == 0, 1.0, np.abs(mean))  # a step is small compared with its value
    directions = mean + 1j * STEP * np.diag(size)
    gradient = np.array([np.imag(f(at)) / STEP for at in directions])
    influence = (rows / size * gradient).sum(axis=1)
    return Measured(float(np.real(f(mean))), _error(influence, n), len(rows))


def from_pairs(value: float, influence: np.ndarray, n: int) -> Measured:
    """A mean over the pairs of m sampled rows; ``influence`` has each row's mean over its pairs.

    A row is a member of pairs on either side, so that to first order (Hoeffding 1948) a deviation
    of a row's own mean changes the mean over pairs twice.
    """
    return Measured(value, 2 * _error(influence, n), len(influence))


def _error(values: np.ndarray, n: int) -> float:
    """Standard error of a mean of values drawn without replacement from n; 0 if those are all."""
    m = len(values)
    if m >= n or m < 2:
        return 0.0
    size = float(np.abs(values).max()) or 1.0  # squares of squared distances may overflow
    return size * float(np.std(values / size, ddof=1) * np.sqrt((1 - m / n) / m))


# The table that ``quality`` returns, with its forms as text, HTML, dictionary and data frame.


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
            text = "to_frame() needs pandas, not installed; pip install pandas, or use to_dict()."
            raise ImportError(text) from error
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
