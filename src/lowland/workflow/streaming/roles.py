"""Which columns of a table in chunks are features, labels and row id: decided on a sample of rows.

The sample becomes a :class:`lowland.tables.Table`, which is read and prepared as any table is. What
was decided then holds for all rows: the blocks of the table get the columns of the sample, in its
types and in its order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count, listing
from lowland._base.memory import available_memory
from lowland._base.rows.chunks import Block
from lowland._base.rows.folding import sampled_rows
from lowland._base.rows.table import Rows
from lowland._base.validation import all_finite
from lowland.tables import Table, as_table, coordinate_names
from lowland.tables.columns.categories import frame_of
from lowland.tables.contents import free_name
from lowland.tables.finite import fits_float32
from lowland.tables.options import TableOptions
from lowland.tables.preparing import Prepared, prepare, read
from lowland.tables.several import LABEL, shown_name
from lowland.tables.writing import names_beside
from lowland.workflow._display import grouped

LOOKED_AT, FEWEST = 100_000, 1000  # rows
NUMBERS = 1 << 23  # of the sample, at most: 67 MB
LOOK_SEED = 1 << 40  # added to the seed, so that rows looked at and rows fitted are other rows


class Looked(NamedTuple):
    """A table in chunks, and what was found in a sample of its rows."""

    rows: Rows  # blocks are data frames with all columns
    numbers: np.ndarray  # of the sampled rows
    frame: Any  # the sampled rows
    source: str
    options: TableOptions
    notes: tuple[str, ...]  # about its files

    @property
    def is_whole(self) -> bool:
        """Whether the sample has all rows."""
        return len(self.numbers) == len(self.rows)

    def is_single(self, features: Sequence[str]) -> bool:
        """Whether the features of the whole table are float32 in memory."""
        chosen = self.frame.select(features)
        return bool(features) and fits_float32(chosen, len(self.rows))


def look_at(rows: Rows, paths: Sequence[str], options: TableOptions, seed: int) -> Looked:
    """Take a sample of rows, which the roles of columns are decided on."""
    (n, p), notes = rows.shape, ()
    if len(paths) > 1:
        label = free_name(LABEL, list(rows.names or ()))
        rows = _with_files(rows, label, paths)
        notes = (f"rows of {len(paths)} files; the label {label!r} names them",)
    numbers = min(NUMBERS, available_memory() // 64)
    m = min(LOOKED_AT, max(FEWEST, numbers // max(1, p)))
    chosen = sampled_rows(n, m, (seed + LOOK_SEED) % 2**63)
    return Looked(rows, chosen, rows.take(chosen).X, shown_name(paths), options, notes)


def read_sample(looked: Looked) -> Table:
    """The sample as a table, whose rows have the numbers that they have among all."""
    table = read(looked.frame, looked.options, name=looked.source)
    table = dataclasses.replace(table, notes=(*looked.notes, *table.notes))
    if table.has_ids:
        return table
    import polars as pl

    return dataclasses.replace(table, ids=pl.Series(table.ids.name, looked.numbers))


def prepared_sample(looked: Looked, table: Table) -> Prepared:
    """The sample prepared; the log states that it was one."""
    prepared = prepare(table, looked.options)
    if looked.is_whole:
        return prepared
    m, n = grouped(len(looked.numbers)), len(looked.rows)
    first, *others = prepared.log
    first = first.replace(count(len(looked.numbers), "row"), f"{grouped(n)} rows", 1)
    log = [first, f"prepared as a sample of {m} of {grouped(n)} rows suggests", *others]
    return prepared._replace(log=log, rows_read=n)


@dataclasses.dataclass(frozen=True)
class Columns:
    """The step from a block with all columns to the features of the sample, as a data frame."""

    features: tuple[str, ...]
    texts: tuple[str, ...]  # label columns that take part in the map
    dates: tuple[str, ...]  # those of them that hold dates
    single: bool  # whether the numbers are float32
    codes: tuple[str, ...]  # of missing values
    missing: str | None  # what to do about missing values, in words; None: they are allowed
    order: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.order or (*self.features, *self.texts)

    @classmethod
    def of(cls, looked: Looked, prepared: Prepared) -> Columns:
        """The columns of a sample that was prepared."""
        options, preparation = looked.options, prepared.preparation
        say = options.spelling.option
        features, texts, dates = tuple(prepared.table.feature_names or ()), (), ()
        if preparation is not None:
            texts = tuple(map(str, preparation.feature_names_in_[len(features) :]))
            dates = tuple(preparation.dates or ())
        advice = (
            f"choose {say('missing', 'mean')}, {say('missing', 'median')} or "
            f"{say('missing', 'neighbors')} to fill them, or leave columns out with {say('drop')}"
        )
        missing = advice if options.missing == "refuse" else None
        single, codes = looked.is_single(features), tuple(options.missing_values)
        return cls(features, texts, dates, single, codes, missing)

    def __call__(self, frame: Any) -> Any:
        import polars as pl

        frame = frame.select(self.names)
        infinite = frame.select(pl.selectors.float().is_infinite().sum())
        _refuse_any("infinite value", infinite, "drop these rows or columns")
        table = as_table(
            frame,
            columns=self.features or None,
            labels=self.texts,
            missing_values=self.codes,
            guess=False,
            allow_missing=True,
            allow_text=True,
            name="a block of rows",
        )
        features = table.features
        if self.features:
            features = features.cast(pl.Float32 if self.single else pl.Float64)
            if self.missing is not None and not all_finite(features.to_numpy()):
                _refuse_any("missing value", features.select(pl.all().is_nan().sum()), self.missing)
        found = frame_of(dataclasses.replace(table, features=features), self.texts, self.dates)
        return found.select(self.names) if self.texts else found


def _refuse_any(what: str, numbers: Any, advice: str) -> None:
    """Refuse values of which there are so many in each column; the caller names the file."""
    found = {column.name: column[0] for column in numbers if column[0]}
    if found:
        shown = listing([f"{name!r} ({n})" for name, n in found.items()], quote=False)
        values, columns = count(sum(found.values()), what), count(len(found), "column")
        raise DataError(f"{values} in {columns}: {shown}; {advice}.")


@dataclasses.dataclass(frozen=True)
class Place:
    """The step from the features of a block to what a model makes of them.

    The model is that of a map, or a preparation; without one, the features are the result.
    """

    columns: Columns
    model: Any
    named: bool = True  # whether the model has names of columns

    def __call__(self, frame: Any) -> np.ndarray:
        features = self.columns(frame)
        X = features if self.named else np.asarray(features)
        return np.ascontiguousarray(X if self.model is None else self.model.transform(X))


class Wrapped(NamedTuple):
    """A chunk whose blocks are changed by ``f``."""

    chunk: Any
    f: InRoles | InFile

    @property
    def n_rows(self) -> int:
        return self.chunk.n_rows

    @property
    def identity(self) -> tuple[Any, ...]:
        return (*self.chunk.identity, *dataclasses.astuple(self.f))

    @property
    def source(self) -> str:
        return self.chunk.source

    @property
    def run(self) -> Any:
        """Chunks that are read in one go still are."""
        return getattr(self.chunk, "run", None)

    def read(self, start: int) -> Block:
        return self.f(self.chunk.read(start))

    @staticmethod
    def read_run(chunks: Sequence[Wrapped], start: int) -> Iterator[Block]:
        """The blocks of chunks with one run."""
        inner = chunks[0].chunk.read_run([each.chunk for each in chunks], start)
        for each, block in zip(chunks, inner, strict=True):
            yield each.f(block)


@dataclasses.dataclass(frozen=True)
class InRoles:
    """A block with features in X, and its id and labels beside, under the names that they get."""

    columns: tuple[str, ...]
    beside: tuple[tuple[str, str], ...]  # the names of columns, and those that they get

    def __call__(self, block: Block) -> Block:
        names = dict(self.beside)
        beside = block.X.select(list(names)).rename(names) if names else None
        return block._replace(X=block.X.select(self.columns), beside=beside)


@dataclasses.dataclass(frozen=True)
class InFile:
    """A block with a label that names its file."""

    label: str
    file: str

    def __call__(self, block: Block) -> Block:
        import polars as pl

        return block._replace(X=block.X.with_columns(pl.lit(self.file).alias(self.label)))


def _with_files(rows: Rows, label: str, paths: Sequence[str]) -> Rows:
    """The table with a label that names the file of each row, as files in memory get."""
    short = [Path(path).name for path in paths]
    unique = len({*short}) == len(short)
    named = {path: InFile(label, Path(path).name if unique else path) for path in paths}
    chunks = [Wrapped(chunk, named[chunk.file.name]) for chunk in rows.chunks]  # type: ignore[attr-defined]
    return rows.with_chunks(chunks, [*(rows.names or ()), label])


def in_roles(rows: Rows, roles: InRoles, id_name: str | None = None) -> Rows:
    """The table whose blocks are frames of some columns, with others beside under new names."""
    chunks = [Wrapped(chunk, roles) for chunk in rows.chunks]
    other = rows.with_chunks(chunks, roles.columns, [new for _, new in roles.beside])
    other.id_name = id_name
    return other


def placed_rows(looked: Looked, table: Table, step: Place, q: int, dtype: np.dtype) -> Rows:
    """The places of all rows in q dimensions, with their ids and labels, computed when used."""
    names = coordinate_names(q)
    id_name, beside = names_beside(table, names)
    if table.has_ids:
        beside = {table.ids.name: id_name, **beside}
    roles = InRoles(step.columns.names, tuple(beside.items()))
    frames = in_roles(looked.rows, roles, id_name if table.has_ids else None)
    return frames.map(step, q, names=names, dtype=dtype)
