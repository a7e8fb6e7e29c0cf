"""The numbers of a table, whatever holds them: an array, a data frame or a sparse matrix.

Only the rows and columns that are asked for are copied, so that a table of any size can stand in a
summary. Infinite values count as missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.validation import is_sparse

BLOCK_VALUES = 4_000_000  # that are dense at a time


class TableNumbers:
    """Columns of numbers by name; columns of other kinds are left out.

    Parameters
    ----------
    numbers : array, polars or pandas data frame, or sparse matrix of shape (n, p)
    names : sequence of p texts

    Examples
    --------
    >>> table = TableNumbers(np.arange(6.0).reshape(3, 2), ["a", "b"])
    >>> table.block(np.array([0, 2]), np.array([1]))
    array([[1.], [5.]])
    """

    def __init__(self, numbers: Any, names: Any) -> None:
        self._numbers = numbers.tocsr() if is_sparse(numbers) else numbers
        self._is_frame = hasattr(numbers, "columns")
        given = [str(name) for name in names]
        self._places = np.arange(len(given))
        if self._is_frame:
            self._places = np.array(
                [place for place in self._places if _is_numeric(numbers, int(place))], dtype=np.intp
            )
        self.names = [given[place] for place in self._places]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns of numbers."""
        return int(self._numbers.shape[0]), len(self.names)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Some rows of some columns as float64, in Fortran order; NaN where missing."""
        found = np.empty((len(rows), len(columns)), order="F")
        places = self._places[columns]
        if self._is_frame:
            for number, place in enumerate(places):
                found[:, number] = _frame_column(self._numbers, int(place))[rows]
        elif is_sparse(self._numbers):
            pick = _indicator(places, self._numbers.shape[1])
            if 2 * len(rows) < self._numbers.shape[0]:
                found[:] = (self._numbers[rows] @ pick).toarray()
            else:  # all rows of a few columns: first the columns, lest the matrix be copied
                found[:] = (self._numbers @ pick)[rows].toarray()
        else:
            values = np.asarray(self._numbers)
            step = max(1, BLOCK_VALUES // max(1, values.shape[1]))
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                found[start : start + step] = values[some[:, None], places[None, :]]
        found[~np.isfinite(found)] = np.nan
        return found


class GroupSums(NamedTuple):
    """Sums over the rows of each group: values counted, their sum and the sum of squares.

    Of each column in units of its own: a value v counts as v / scale - shift, so that neither
    huge numbers nor a large mean spoil differences. All have the shape (groups, columns).
    """

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray


def group_sums(
    table: TableNumbers, rows: np.ndarray, group: np.ndarray, n_groups: int
) -> GroupSums:
    """Sums of all columns over the given rows; ``group`` has the group of each of these rows."""
    p = table.shape[1]
    found = GroupSums(*(np.zeros((n_groups, p)) for _ in range(3)))
    member = _indicator(group, n_groups)
    step = max(1, BLOCK_VALUES // max(1, len(rows)))
    for start in range(0, p, step):
        columns = np.arange(start, min(start + step, p))
        values = table.block(rows, columns)
        known = ~np.isnan(values)
        values[~known] = 0.0
        largest = np.abs(values).max(axis=0, initial=0.0)
        values /= np.where(largest > 0, largest, 1.0)
        values -= values.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        values[~known] = 0.0
        found.counts[:, columns] = member @ known
        found.sums[:, columns] = member @ values
        found.squares[:, columns] = member @ values**2
    return found


def _indicator(group: np.ndarray, n_groups: int) -> Any:
    """The matrix (groups, rows) that has 1 where a row is in a group."""
    from scipy.sparse import csr_array

    n = len(group)
    return csr_array((np.ones(n), (group, np.arange(n))), shape=(n_groups, n))


def _is_numeric(frame: Any, place: int) -> bool:
    if hasattr(frame, "iloc"):
        return getattr(frame.dtypes.iloc[place], "kind", "O") in "biuf"
    dtype = frame.dtypes[place]
    return bool(dtype.is_numeric() or str(dtype) == "Boolean")


def _frame_column(frame: Any, place: int) -> np.ndarray:
    if hasattr(frame, "iloc"):  # pandas
        found = frame.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        import polars as pl

        found = frame.to_series(place).cast(pl.Float64).to_numpy()
    return np.asarray(found)
