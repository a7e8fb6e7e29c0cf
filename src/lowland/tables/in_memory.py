"""Tables that are in memory already: data frames, arrays, sparse matrices, data sets."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import PYTHON, DataError, Spelling
from lowland._base.rows.table import Rows
from lowland._base.validation import as_array
from lowland.tables import distances
from lowland.tables.contents import (
    Contents,
    Request,
    free_id,
    free_name,
    named_matrix,
    one_line,
    refuse_twice,
)
from lowland.tables.distances import RawDistances
from lowland.tables.formats import single_cells
from lowland.tables.formats.arrays import checked_matrix, compressed_rows
from lowland.tables.sources import bundled_contents
from lowland.tables.table import Table, as_declared, make_table

if TYPE_CHECKING:
    import polars as pl

NAME = "data"  # what messages and titles call a table that has no file name


def is_path(data: Any) -> bool:
    """Whether the data are named by a path, a name or several rather than given as values."""
    if isinstance(data, list | tuple) and data:
        return all(isinstance(path, str | os.PathLike) for path in data)
    return isinstance(data, str | os.PathLike)


def has_column_names(data: Any) -> bool:
    """Whether columns of the data can be chosen by name."""
    return (
        is_path(data)
        or _is_frame(data)
        or hasattr(data, "feature_names")
        or single_cells.is_anndata(data)
    )


def as_table(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    labels: Sequence[str] = (),
    beside: Mapping[str, Any] | None = None,
    id_column: str | None = None,
    part: str | None = None,
    vector: str | None = None,
    missing_values: Sequence[str] = (),
    transpose: bool = False,
    allow_missing: bool = False,
    use: Sequence[str] = (),
    drop: Sequence[str] = (),
    guess: bool = True,
    spelling: Spelling = PYTHON,
    allow_text: bool = False,
    name: str = NAME,
) -> Table:
    """The table that :func:`read_table` would return for the same values in a file.

    Parameters
    ----------
    data : data frame, array, sparse matrix, AnnData or Dataset
        A pandas or polars data frame (or any that offers the Arrow C stream), an array of shape
        (n_rows, n_columns), a SciPy sparse matrix, an AnnData object, or a data set of
        ``lowland.datasets``. The index of a pandas data frame names the rows, unless it only counts
        them.
    columns, labels, id_column, part, vector, missing_values, transpose, use, drop, guess
        As in :func:`read_table`.
    allow_missing, allow_text, spelling
        As in :func:`read_table`.
    beside : mapping of str to array of shape (n_rows,), optional
        More label columns, by name. A name that the data already use gets the suffix ``_label``.
    name : str, default="data"
        What messages call the table.

    Returns
    -------
    Table

    Examples
    --------
    >>> table = as_table(np.eye(3), beside={"kind": ["a", "b", "a"]})
    >>> table.shape, table.labels.columns
    ((3, 3), ['kind'])
    """
    request = Request(columns, labels, id_column, part, vector, missing_values, transpose)
    roles = {"use": use, "drop": drop, "guess": guess, "allow_text": allow_text}
    request = request._replace(spelling=spelling, **roles)
    return table_of(data, request, allow_missing=allow_missing, beside=beside, name=name)


def table_of(
    data: Any,
    request: Request,
    *,
    allow_missing: bool,
    beside: Mapping[str, Any] | None = None,
    name: str = NAME,
) -> Table:
    """The table that :func:`as_table` returns."""
    import polars as pl

    contents = contents_of(data, name, request.part)
    if request.transpose:  # the labels beside it are those of the rows of the result
        contents, request = as_declared(name, contents, request)
    if beside:
        added, taken = [], list(contents.schema)
        for label, values in beside.items():
            column = _label(name, label, values, contents.n_rows).rename(free_name(label, taken))
            taken.append(column.name)
            added.append(column)
        frame = pl.DataFrame([*contents.frame.get_columns(), *added])
        labels = (*contents.labels, *(column.name for column in added))
        contents = dataclasses.replace(contents, frame=frame, labels=labels)
    return make_table(name, contents, request, allow_missing=allow_missing)


def as_distances(
    data: Any,
    *,
    beside: Mapping[str, Any] | None = None,
    part: str | None = None,
    allow_missing: bool = False,
    similarities: bool = False,
    name: str = NAME,
) -> Table:
    """The table that :func:`read_distances` would return for the same matrix in a file.

    Parameters
    ----------
    data : data frame, array, sparse matrix or AnnData
        An n x n matrix of distances, or n (n - 1) / 2 distances in SciPy's condensed order.
    beside, part, allow_missing, name
        As in :func:`as_table`; the part of an AnnData object is ``obsp/distances`` by default.
    similarities : bool, default=False
        As in :func:`read_distances`.

    Examples
    --------
    >>> as_distances([3.0, 4.0, 5.0]).features
    array([[0., 3., 4.], [3., 0., 5.], [4., 5., 0.]])
    """
    import polars as pl

    if single_cells.is_anndata(data):
        part = part or single_cells.DISTANCES
        found = distances.distances_in_contents(name, contents_of(data, name, part))
    elif hasattr(data, "feature_names") and hasattr(data, "truth"):
        found = distances.bundled_distances(data)
    elif _is_frame(data):
        found = distances.distances_in_frame(name, contents_of(data, name, part), headed=True)
    else:
        _refuse_part(data, part, name)
        sparse = hasattr(data, "tocsr")
        found = RawDistances(compressed_rows(data, name) if sparse else as_array(data, name))
    table = distances.distance_table(name, found, allow_missing, similarities=similarities)
    table = dataclasses.replace(table, part=part)
    if not beside:
        return table
    labels = [_label(name, column, beside[column], table.shape[0]) for column in beside]
    return table.with_labels(pl.DataFrame(labels))


def _is_frame(data: Any) -> bool:
    """Whether there are columns; the class is asked, as a lazy frame would have to find them.

    Rows that are read in chunks have columns, too; they say themselves what to give instead.
    """
    return hasattr(type(data), "columns") and not isinstance(data, Rows)


def as_polars(frame: Any) -> tuple[pl.DataFrame, str | None]:
    """A data frame of any library as a polars one, and the column that names its rows, if any."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame, None
    if isinstance(frame, pl.LazyFrame):
        return frame.collect(), None
    if not _is_pandas(frame):
        return pl.DataFrame(frame), None
    names = [str(name) for name in frame.columns]
    refuse_twice(NAME, names)
    columns = [_from_pandas(name, frame.iloc[:, place]) for place, name in enumerate(names)]
    if type(frame.index).__name__ == "RangeIndex":
        return pl.DataFrame(columns), None
    id_name = free_id(names)
    ids = pl.Series(id_name, [str(value) for value in frame.index])
    return pl.DataFrame([ids, *columns]), id_name


def _is_pandas(data: Any) -> bool:
    """Whether the data are of pandas, which is not imported for this question."""
    return type(data).__module__.partition(".")[0] == "pandas"


def _from_pandas(name: str, column: Any) -> pl.Series:
    """One pandas column; does not need pyarrow, as ``polars.from_pandas`` does."""
    import polars as pl

    kind = getattr(column.dtype, "kind", "O")
    if isinstance(column.dtype, np.dtype) and kind in "biufmM":
        return pl.Series(name, column.to_numpy())
    arrays = _stacked(column)
    if arrays is not None:
        return pl.Series(name, arrays)
    missing = column.isna().tolist()
    values = [None if hole else value for value, hole in zip(column.tolist(), missing, strict=True)]
    try:
        return pl.Series(name, values)
    except (TypeError, pl.exceptions.PolarsError):  # values of several types
        return pl.Series(name, [None if value is None else str(value) for value in values])


def _stacked(column: Any) -> np.ndarray | None:
    """The vectors of a pandas column as rows of an array, if all are arrays of the same shape."""
    values = column.to_numpy() if column.dtype == object else ()
    if not all(isinstance(value, np.ndarray) for value in values):
        return None
    kinds = {(value.shape, value.dtype) for value in values}
    if len(kinds) != 1:
        return None
    shape, dtype = kinds.pop()
    return np.stack(values) if len(shape) == 1 and shape[0] and dtype.kind in "biuf" else None


def _refuse_part(data: Any, part: str | None, name: str) -> None:
    if part is not None:
        what = f"{type(data).__name__} has no parts, so there is no part {part!r}"
        raise DataError(f"{name}: {what}; an AnnData object has.")


def contents_of(data: Any, name: str, part: str | None = None) -> Contents:
    """What data in memory hold, before their columns get their roles."""
    if single_cells.is_anndata(data):
        labels = as_polars(single_cells.observations(data))
        return single_cells.anndata_contents(data, name, part, *labels)
    _refuse_part(data, part, name)
    if hasattr(data, "feature_names") and hasattr(data, "truth"):
        return bundled_contents(data)
    if _is_frame(data):
        frame, id_name = as_polars(data)
        return Contents(frame, id_name=id_name)
    if hasattr(data, "tocsr"):
        return named_matrix(compressed_rows(data, name), None, {})
    if hasattr(data, "__arrow_c_stream__"):
        return Contents(as_polars(data)[0])
    return named_matrix(checked_matrix(as_array(data, name), name), None, {})


def label_column(source: str, name: str, values: Any) -> pl.Series:
    """An array or a list as a named column."""
    import polars as pl

    array = as_array(values, f"{source}: label {name!r}")
    if array.ndim != 1:
        what = f"has shape {array.shape}, expected one value per row"
        raise DataError(f"{source}: label {name!r} {what}.")
    if array.dtype.kind in "mM" and np.datetime_data(array.dtype)[0] in ("h", "m", "s"):
        array = array.astype(f"{array.dtype.kind}8[us]")  # polars has no column of hours
    try:
        return pl.Series(name, array.tolist() if array.dtype.kind == "O" else array)
    except (OverflowError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        what = f"has values that cannot be stored in one column: {one_line(error)}"
        raise DataError(f"{source}: label {name!r} {what}.") from error


def _label(source: str, name: str, values: Any, rows: int) -> pl.Series:
    """One label per row, as a named column."""
    import polars as pl

    if isinstance(values, pl.Series):
        column = values.rename(name)
    elif _is_frame(values):  # what a name means that several columns have
        raise DataError(f"{source}: several label columns are called {name!r}; rename all but one.")
    elif _is_pandas(values):
        column = _from_pandas(name, values)
    else:
        column = label_column(source, name, values)
    if len(column) != rows:
        raise DataError(f"{source}: label {name!r} has {len(column)} values for {rows} rows.")
    return column
