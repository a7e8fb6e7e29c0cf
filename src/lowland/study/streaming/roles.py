"""Which columns of a table in leaves are features, labels and row id: decided on a sample of rows.

The sample becomes a :class:`lowland.io.Table`, which is read and prepared as any table is. What was
decided then holds for all rows: the blocks of the table get the columns of the sample, in its types
and in its order.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland._core.rows.leaves import Block
from lowland._core.rows.sampling import sampled_rows
from lowland._core.rows.table import Rows
from lowland._core.validation import all_finite
from lowland._core.wording import count, listing
from lowland.io import Table, as_table
from lowland.io.contents import free_name
from lowland.io.several import LABEL, shown_name
from lowland.study.streaming.options import grouped
from lowland.study.tables.categories import frame_of
from lowland.study.tables.options import TableOptions
from lowland.study.tables.preparing import Prepared, prepare, read

__all__ = [
    "Columns",
    "Looked",
    "Ready",
    "column_frames",
    "look_at",
    "prepared_sample",
    "written_names",
]

LOOKED_AT = 100_000  # rows
NUMBERS = 1 << 25  # of the sample, at most: 268 MB
LOOK_SEED = 1 << 40  # added to the seed, so that rows looked at and rows fitted are other rows


class Looked(NamedTuple):
    """A table in leaves, and what a sample of its rows tells about it."""

    rows: Rows  # blocks are data frames with all columns
    numbers: np.ndarray  # of the sampled rows
    frame: Any  # the sampled rows
    source: str
    options: TableOptions
    files: tuple[str, str] | None  # the label that names files, and what its note says

    @property
    def is_whole(self) -> bool:
        """Whether the sample has all rows."""
        return len(self.numbers) == len(self.rows)


def look_at(rows: Rows, paths: Sequence[str], options: TableOptions, seed: int) -> Looked:
    """Take a sample of rows, which the roles of columns are decided on."""
    n, p = rows.shape
    label = None
    if len(paths) > 1:
        label = free_name(LABEL, list(rows.names or ()))
        rows = _with_files(rows, label, paths)
        options = dataclasses.replace(options, labels=(*options.labels, label))
    m = min(LOOKED_AT, max(1000, NUMBERS // max(1, p)))
    numbers = sampled_rows(n, m, (seed + LOOK_SEED) % 2**63)
    frame = rows.take(numbers).X
    note = f"rows of {len(paths)} files; the label {label!r} names them"
    named = None if label is None else (label, note)
    return Looked(rows, numbers, frame, shown_name(paths), options, named)


def prepared_sample(looked: Looked) -> Prepared:
    """The sample, read and prepared; the log says that it was one."""
    options = looked.options
    table = read(looked.frame, options, name=looked.source)
    if looked.files is not None:
        table = dataclasses.replace(table, notes=(looked.files[1], *table.notes))
    if not table.has_ids:
        table = dataclasses.replace(table, ids=_numbered(table, looked.numbers))
    prepared = prepare(table, options)
    if looked.is_whole:
        return prepared
    m, n = grouped(len(looked.numbers)), len(looked.rows)
    first, *others = prepared.log
    first = first.replace(count(len(looked.numbers), "row"), f"{grouped(n)} rows", 1)
    log = [first, f"prepared as a sample of {m} of {grouped(n)} rows suggests", *others]
    return prepared._replace(log=log, rows_read=n)


def _numbered(table: Table, numbers: np.ndarray) -> Any:
    import polars as pl

    return pl.Series(table.ids.name, numbers)


class Columns:
    """The step from a block with all columns to the features of the sample, as a data frame.

    ``texts`` are label columns that take part in the map; ``dates`` those of them that hold dates.
    """

    def __init__(self, prepared: Prepared, options: TableOptions) -> None:
        table, preparation = prepared.table, prepared.preparation
        self.features = tuple(table.feature_names or ())
        self.names = self.features
        self.texts: tuple[str, ...] = ()
        self.dates: tuple[str, ...] = ()
        if preparation is not None:
            self.names = tuple(str(name) for name in preparation.feature_names_in_)
            self.texts = self.names[len(self.features) :]
            self.dates = tuple(preparation.dates or ())
        self.refuses = options.missing == "refuse"
        self.codes, self.spelling = options.missing_values, options.spelling
        self.single = bool(self.features) and _is_single(table.features)

    def __call__(self, frame: Any) -> Any:
        frame = frame.select(self.names)
        self._check_finite(frame)
        table = as_table(
            frame,
            columns=self.features or None,
            labels=self.texts,
            missing_values=self.codes,
            guess=False,
            allow_missing=True,
            allow_text=True,
            spelling=self.spelling,
            name="a block of rows",
        )
        features = table.features
        if self.features:
            import polars as pl

            features = features.cast(pl.Float32 if self.single else pl.Float64)
            if self.refuses:
                self._check_missing(features.to_numpy())
        return frame_of(dataclasses.replace(table, features=features), self.texts, self.dates)

    def _check_finite(self, frame: Any) -> None:
        """Refuse infinite values; the caller names the file."""
        import polars as pl

        flags = frame.select(pl.selectors.float().is_infinite().sum())
        bad = [f"{column.name!r} ({column[0]})" for column in flags if column[0]]
        if bad:
            raise DataError(
                f"infinite values in {count(len(bad), 'column')}: {listing(bad, quote=False)}; "
                f"drop these rows, or leave columns out with {self.spelling.option('drop')}."
            )

    def _check_missing(self, values: np.ndarray) -> None:
        """Refuse missing values; the caller names the file."""
        if all_finite(values):
            return
        say = self.spelling.option
        counts = np.isnan(values).sum(axis=0)
        shown = [f"{self.features[i]!r} ({counts[i]})" for i in np.flatnonzero(counts)]
        raise DataError(
            f"{count(int(counts.sum()), 'missing value')} in {count(len(shown), 'column')}: "
            f"{listing(shown, quote=False)}; choose {say('missing', 'mean')}, "
            f"{say('missing', 'median')} or {say('missing', 'neighbors')} to fill them, or leave "
            f"columns out with {say('drop')}."
        )


class Ready:
    """The step from the features of a block to the numbers that a method gets."""

    def __init__(self, columns: Columns, preparation: Any) -> None:
        self.columns, self.preparation = columns, preparation

    def __call__(self, frame: Any) -> np.ndarray:
        features = self.columns(frame)
        X = features if self.preparation is None else self.preparation.transform(features)
        return np.ascontiguousarray(X)


def _is_single(features: Any) -> bool:
    import polars as pl

    return all(dtype == pl.Float32 for dtype in features.dtypes)


class RoleLeaf(NamedTuple):
    """A leaf whose rows have features in X and their id and labels beside."""

    leaf: Any
    columns: tuple[str, ...]
    beside: tuple[tuple[str, str], ...]  # columns, and the names that they get

    @property
    def n_rows(self) -> int:
        return self.leaf.n_rows

    @property
    def identity(self) -> tuple[Any, ...]:
        return (*self.leaf.identity, self.columns, self.beside)

    @property
    def source(self) -> str:
        return self.leaf.source

    def read(self, start: int) -> Block:
        block = self.leaf.read(start)
        beside = None
        if self.beside:
            beside = block.X.select([name for name, _ in self.beside]).rename(dict(self.beside))
        return block._replace(X=block.X.select(self.columns), beside=beside)


class NamedLeaf(NamedTuple):
    """A leaf with one more column, which names the file."""

    leaf: Any
    label: str
    file: str

    @property
    def n_rows(self) -> int:
        return self.leaf.n_rows

    @property
    def identity(self) -> tuple[Any, ...]:
        return (*self.leaf.identity, self.label, self.file)

    @property
    def source(self) -> str:
        return self.leaf.source

    def read(self, start: int) -> Block:
        import polars as pl

        block = self.leaf.read(start)
        return block._replace(X=block.X.with_columns(pl.lit(self.file).alias(self.label)))


def _with_files(rows: Rows, label: str, paths: Sequence[str]) -> Rows:
    """The table with a label that names the file of each row, as files in memory get."""
    short = [Path(path).name for path in paths]
    unique = len({*short}) == len(short)
    shown = {path: Path(path).name if unique else path for path in paths}
    leaves = []
    for leaf in rows.leaves:
        path = str(getattr(leaf, "path", leaf.source))
        leaves.append(NamedLeaf(leaf, label, shown.get(path, path)))
    return _other(rows, leaves, [*(rows.names or ()), label])


def column_frames(rows: Rows, names: Sequence[str], beside: Mapping[str, str], id_name: Any) -> Rows:
    """The table whose blocks are frames of some columns, with others beside under new names."""
    leaves = [RoleLeaf(leaf, tuple(names), tuple(beside.items())) for leaf in rows.leaves]
    other = _other(rows, leaves, names)
    other.beside, other.id_name = tuple(beside.values()), id_name
    return other


def _other(rows: Rows, leaves: Sequence[Any], names: Sequence[str]) -> Rows:
    """The same rows from other leaves, cut into the same tasks."""
    other = copy.copy(rows)
    other.leaves, other.names = tuple(leaves), tuple(names)
    other._n_columns = len(other.names)
    return other


def written_names(table: Table, coordinates: Sequence[str]) -> tuple[dict[str, str], str | None]:
    """The columns beside the map and their names in it, as ``map_frame`` has them; and the id's."""
    from lowland.io.writing import free_label

    id_name = None
    beside: dict[str, str] = {}
    if table.has_ids:
        name = table.ids.name
        id_name = f"{name}_id" if name in coordinates else name
        beside[name] = id_name
    reserved = {id_name or table.ids.name, *coordinates}
    taken = {*reserved, *table.labels.columns}
    for name in table.labels.columns:
        new = name
        if name in reserved:
            new = free_label(f"{name}_label", taken)
            taken.add(new)
        beside[name] = new
    return beside, id_name
