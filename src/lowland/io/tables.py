"""A table whose columns have roles: features to reduce, labels to carry along, a row id."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError, unknown_name
from lowland.io.contents import Contents
from lowland.io.finite import finite_array, float_frame, listing
from lowland.io.sources import read_source

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Table", "read_table"]


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Numbers to reduce, and what is carried along with each row.

    Parameters
    ----------
    source : str
        The file or data set as it was named.
    features : polars.DataFrame or ndarray of shape (n_rows, n_features)
        Finite numbers, float32 if all were, else float64; a data frame where columns have names.
    labels : polars.DataFrame
        The label columns, in their own types; may have none.
    ids : polars.Series
        One id per row; its name is the id column's, or ``row`` for plain row numbers.
    unused : tuple of str
        Columns that are neither, such as numbers beside the ones asked for.
    notes : tuple of str
        What the reader decided and a person should know.
    """

    source: str
    features: pl.DataFrame | np.ndarray
    labels: pl.DataFrame
    ids: pl.Series
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the feature columns; None for a bare array."""
        columns = getattr(self.features, "columns", None)
        return None if columns is None else tuple(columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and feature columns."""
        rows, columns = self.features.shape
        return rows, columns

    def without_names(self) -> Table:
        """The same table with its features as a bare array, for a model that knows no names."""
        return dataclasses.replace(self, features=np.asarray(self.features))

    def column(self, name: str) -> pl.Series:
        """A label or feature by name, for coloring."""
        if name in self.labels.columns:
            return self.labels[name]
        known = [*self.labels.columns, *(self.feature_names or ())]
        if name not in known:
            raise DataError(f"{self.source}: {unknown_name('column', name, known)}")
        return self.features[name]


def read_table(
    source: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    labels: Sequence[str] = (),
    id_column: str | None = None,
) -> Table:
    """Read a bundled data set or a CSV, TSV, NPY, NPZ or Parquet file.

    Parameters
    ----------
    source : str or path
        The name of a bundled data set, or a file.
    columns : sequence of str, optional
        The feature columns, in this order. By default all columns of numbers and booleans. A bare
        array has no names: it must have this many columns and takes these names.
    labels : sequence of str
        Columns of numbers that are labels, not features. Text and dates always are.
    id_column : str, optional
        The column that names the rows; by default they are numbered from 0.

    Returns
    -------
    Table

    Examples
    --------
    >>> table = read_table("iris")
    >>> table.shape, table.labels.columns
    ((150, 4), ['class'])
    """
    name = os.fspath(source)
    contents = read_source(source)
    if contents.matrix is None and contents.frame.height == 0:
        raise DataError(f"{name}: there are no rows.")
    _check_names(name, contents, [*labels, *([id_column] if id_column else [])])
    roles = _Roles.assign(name, contents, columns, labels, id_column or contents.id_name)
    if contents.matrix is None:
        features = float_frame(name, contents.frame.select(roles.features))
    else:
        features = finite_array(name, contents.matrix, columns)
    notes = contents.notes
    if roles.dropped:
        notes = (
            *notes,
            f"columns of nested or binary values are left out: {listing(roles.dropped)}",
        )
    return Table(
        name,
        features,
        contents.frame.select(roles.labels),
        _ids(contents.frame, roles.id_name, features.shape[0]),
        tuple(roles.unused),
        notes,
    )


@dataclasses.dataclass(frozen=True)
class _Roles:
    features: list[str]
    labels: list[str]
    unused: list[str]
    dropped: list[str]
    id_name: str | None

    @classmethod
    def assign(
        cls,
        source: str,
        contents: Contents,
        columns: Sequence[str] | None,
        labels: Sequence[str],
        id_name: str | None,
    ) -> _Roles:
        import polars as pl

        schema = contents.frame.schema
        # a row id that the file offers and the user passed over is still no measurement
        given = {*labels, *contents.labels, contents.id_name} - set(columns or ())
        dropped = [
            name
            for name, dtype in schema.items()
            if dtype.is_nested() or dtype in (pl.Binary, pl.Object)
        ]
        numeric = [
            name
            for name, dtype in schema.items()
            if (dtype.is_numeric() or dtype == pl.Boolean) and name not in {*given, id_name}
        ]
        features = list(columns or numeric) if contents.matrix is None else []
        _check_features(source, schema, features, numeric, named=contents.matrix is None)
        unused = [name for name in numeric if name not in features]
        taken = {*features, *unused, *dropped, id_name}
        return cls(features, [n for n in schema if n not in taken], unused, dropped, id_name)


def _check_names(source: str, contents: Contents, asked: Sequence[str]) -> None:
    known = contents.frame.columns
    for name in asked:
        if name not in known:
            if not known:
                raise DataError(f"{source}: its columns have no names, so there is no {name!r}.")
            raise DataError(f"{source}: {unknown_name('column', name, known)}")


def _check_features(
    source: str, schema: pl.Schema, features: list[str], numeric: list[str], *, named: bool
) -> None:
    missing = [name for name in features if name not in schema]
    if missing:
        noun = "column is" if len(missing) == 1 else "columns are"
        raise DataError(f"{source}: {len(missing)} needed {noun} missing: {listing(missing)}.")
    text = [name for name in features if name not in numeric]
    if text:
        raise DataError(
            f"{source}: column {text[0]!r} must hold numbers, but its type is {schema[text[0]]}."
        )
    if named and not features:
        found = [f"{name!r} ({dtype})" for name, dtype in schema.items()]
        raise DataError(f"{source}: no column of numbers; found {listing(found, quote=False)}.")


def _ids(frame: pl.DataFrame, id_name: str | None, rows: int) -> pl.Series:
    import polars as pl

    if id_name is not None:
        return frame[id_name]
    return pl.Series("row", np.arange(rows, dtype=np.int64))
