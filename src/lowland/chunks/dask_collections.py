"""Collections of Dask as tables in chunks: each partition is a chunk.

Partitions of ``dask.array``, ``dask.dataframe`` and lists of delayed objects are computed where the
tasks are: by the workers of the ``with Dask(...)`` block around, by those of the client that the
user has, or in this process, where the partitions of one task are computed together.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, DataTypeError, ParameterError, shown
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block, Task
from lowland._base.rows.engines import Engine, Job, Merge, Stream, current_engine, naming_source
from lowland._base.rows.fitting import is_collection, is_delayed
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_threads
from lowland._base.validation import FLOATS, column_names

NUMBERS = {"float", "int", "uint", "bool"}
TARGET = "y"  # the name of labels that came with a collection


class Columns(NamedTuple):
    """The columns of a partition that methods see: names, if they have any, and types."""

    names: tuple[str, ...] | None
    kinds: tuple[str, ...]  # one for an array

    @classmethod
    def of(cls, empty: Any) -> Columns:
        if not hasattr(empty, "dtypes"):
            return cls(None, (str(empty.dtype),))
        names = column_names(empty)
        kinds = [str(getattr(dtype, "numpy_dtype", dtype)) for dtype in empty.dtypes]
        return cls(None if names is None else tuple(map(str, names)), tuple(kinds))

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers; object if some columns are not numbers."""
        if any(kind.rstrip("0123456789") not in NUMBERS for kind in self.kinds):
            return np.dtype(object)
        return np.dtype(np.float32 if {*self.kinds} == {"float32"} else np.float64)

    def without(self, name: str) -> Columns:
        assert self.names is not None
        kept = [i for i, other in enumerate(self.names) if other != name]
        return Columns(tuple(self.names[i] for i in kept), tuple(self.kinds[i] for i in kept))


class _Awaited:
    """The place of a value that has not been computed."""


AWAITED = _Awaited()


class PartitionChunk:
    """One partition, not yet computed, with its labels.

    ``parts`` are the delayed objects that it needs; :meth:`given` makes the chunk that has them.
    """

    def __init__(self, part: Any, n_rows: int, number: int, columns: Columns) -> None:
        self.part, self.n_rows, self.number = part, n_rows, number
        self.columns, self.source = columns, f"partition {number}"
        self.label: str | None = None  # the column of the partition that holds labels
        self.target: Any = None  # or the labels, in memory or delayed

    @property
    def identity(self) -> tuple[Any, ...]:
        keys = [str(part.key) for part in self.parts]
        return ("partition", self.number, self.n_rows, *self.columns, self.label, *keys)

    @property
    def parts(self) -> tuple[Any, ...]:
        """What has to be computed."""
        return tuple(x for x in (self.part, self.target) if is_delayed(x))

    def given(self, values: Iterator[Any]) -> PartitionChunk:
        """The chunk with values in place of its delayed parts."""
        other = copy.copy(self)
        other.part = next(values) if _is_open(self.part) else self.part
        other.target = next(values) if _is_open(self.target) else self.target
        return other

    def without_parts(self) -> PartitionChunk:
        """The chunk with places for the values of its parts; it is small and can be pickled."""
        return self.given(iter([AWAITED] * len(self.parts)))

    def read(self, start: int) -> Block:
        return next(self.read_run([self], start))

    run = AWAITED  # the partitions of a task are computed together

    @staticmethod
    def read_run(chunks: Sequence[PartitionChunk], start: int) -> Iterator[Block]:
        """The blocks of partitions that follow one another."""
        values: Iterator[Any] = iter(())
        parts = [part for chunk in chunks for part in chunk.parts]
        if parts:
            import dask

            values = iter(dask.compute(*parts))
        for chunk in chunks:
            yield chunk.given(values)._block(start)
            start += chunk.n_rows

    def _block(self, start: int) -> Block:
        X = self.part
        if X.shape[0] != self.n_rows:
            raise DataError(
                f"{self.source}: has {X.shape[0]} rows, but had {self.n_rows} when it was counted; "
                "a partition must be the same each time it is computed, so persist() it."
            )
        labels = X[self.label].to_numpy() if self.label is not None else self.target
        beside = None
        if labels is not None:
            import polars as pl

            labels = np.asarray(labels)
            if labels.shape not in ((self.n_rows,), (self.n_rows, 1)):
                raise DataError(
                    f"{self.source}: y has shape {labels.shape} for {self.n_rows} rows; give one "
                    "label for each row, in the same partitions as X."
                )
            beside = pl.DataFrame({self.label or TARGET: labels.reshape(self.n_rows)})
        return Block(self._numbers(X), start, beside, None, self.source)

    def _numbers(self, X: Any) -> Any:
        """The columns that methods see, as an array, or as a frame of polars if types differ."""
        dtype = self.columns.dtype
        if self.columns.names is not None and hasattr(X, "columns"):
            X = X[list(self.columns.names)]
        if dtype.hasobject:
            import polars as pl

            return pl.from_pandas(X)
        if hasattr(X, "to_numpy"):  # a data frame, perhaps with missing values of pandas
            return X.to_numpy(dtype=dtype, na_value=np.nan)
        return X if hasattr(X, "tocsr") else np.asarray(X, dtype=dtype)


def _is_open(value: Any) -> bool:
    return isinstance(value, _Awaited) or is_delayed(value)


def split_inputs(task: Task) -> tuple[Task, list[Any]]:
    """A task that can be pickled, and the delayed parts that it has to be given again."""
    parts = [part for chunk in task.chunks for part in getattr(chunk, "parts", ())]
    if not parts:
        return task, []
    return task._replace(chunks=tuple(chunk.without_parts() for chunk in task.chunks)), parts  # type: ignore[attr-defined]


def with_inputs(task: Task, values: Iterable[Any]) -> Task:
    """The task of :func:`split_inputs` with the values of its parts."""
    given = iter(values)
    chunks = [chunk.given(given) if hasattr(chunk, "given") else chunk for chunk in task.chunks]
    return task._replace(chunks=tuple(chunks))


# --- from a collection ------------------------------------------------------------------------


def collection_rows(X: Any) -> Rows:
    """A collection as a table in chunks. Sizes of partitions that are unknown are computed."""
    parts, sizes, empty = partitions_of(X)
    columns = Columns.of(empty)
    if sizes is None:
        import dask

        count = dask.delayed(_count, pure=True)
        sizes = [int(n) for n in dask.compute(*[count(part) for part in parts])]
    chunks = [
        PartitionChunk(part, n, number, columns)
        for number, (part, n) in enumerate(zip(parts, sizes, strict=True))
        if n  # a filter may leave partitions without rows
    ]
    return CollectionRows(chunks, empty.shape[1], columns.dtype, names=columns.names)


def partitions_of(X: Any) -> tuple[list[Any], list[int] | None, Any]:
    """The delayed partitions, their numbers of rows if they are known, and an empty one."""
    if isinstance(X, list | tuple):
        import dask

        (first,) = dask.compute(X[0])
        if getattr(first, "ndim", 0) != 2:
            raise DataTypeError(
                f"X: a delayed partition is {shown(first)}; expected an array or a data frame."
            )
        return list(X), None, first[:0]
    if getattr(X, "ndim", 1) != 2:
        raise DataError(
            f"Expected 2D array, got a {type(X).__name__} of Dask with {getattr(X, 'ndim', 1)} "
            "dimension(s): X has rows and columns."
        )
    if not hasattr(X, "chunks"):
        return list(X.to_delayed()), None, X._meta
    if len(X.chunks[1]) > 1:
        raise DataError(
            f"X: the columns of the dask array are in {len(X.chunks[1])} chunks, but a method "
            "needs whole rows; give X.rechunk({1: -1})."
        )
    sizes = [-1 if np.isnan(n) else int(n) for n in X.chunks[0]]
    known = None if -1 in sizes else sizes
    return list(X.to_delayed().ravel()), known, np.empty((0, X.shape[1]), X.dtype)


def _count(part: Any) -> int:
    return int(part.shape[0])


# --- labels -----------------------------------------------------------------------------------


class CollectionRows(Rows):
    """The table of a collection."""

    def with_labels(self, y: Any) -> Rows | None:
        """The table with a column of it as labels, or with an array of Dask in the same partitions,
        or with labels in memory.
        """
        if self.steps:
            return super().with_labels(y)
        chunks: list[Any] = [copy.copy(chunk) for chunk in self.chunks]
        name = y if isinstance(y, str) else TARGET
        if isinstance(y, str):
            if y not in (self.names or ()):
                return super().with_labels(y)
            for chunk in chunks:  # no column of the methods any more
                chunk.columns, chunk.label = chunk.columns.without(y), y
        elif (targets := _targets(len(self), chunks, y)) is None:
            return None
        else:
            for chunk, target in zip(chunks, targets, strict=True):
                chunk.target = target
        columns = chunks[0].columns
        p = self.shape[1] if columns.names is None else len(columns.names)
        table = CollectionRows(chunks, p, columns.dtype, names=columns.names, beside=(name,))
        return table.with_target(name)

    def _engine(self) -> Engine:
        return current_engine() or UsersClient()


def _targets(n: int, chunks: Sequence[PartitionChunk], y: Any) -> list[Any] | None:
    """The labels of each chunk, delayed or in memory."""
    if is_collection(y):
        parts = list(np.ravel(y.to_delayed() if hasattr(y, "to_delayed") else y))
        last = chunks[-1].number
        if len(parts) <= last:
            raise DataError(
                f"y: is in {len(parts)} partitions, but X in at least {last + 1}; give both the "
                "same partitions, for example y.rechunk(X.chunks[0])."
            )
        return [parts[chunk.number] for chunk in chunks]
    if y is None or not hasattr(y, "__len__"):
        return None
    values = np.asarray(y)
    if values.shape not in ((n,), (n, 1)):
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: y has shape "
            f"{values.shape}, but X has {n} rows."
        )
    stops = np.cumsum([chunk.n_rows for chunk in chunks])[:-1]
    return np.split(values.reshape(n), stops)


class UsersClient:
    """The engine of a collection outside of a ``with Dask(...)`` block: the workers of the client
    that the user has, or this process.
    """

    def run(self, job: Job, monitor: Monitor) -> Iterator[Any]:
        with self._engine() as engine:
            yield from engine.run(job, monitor)

    def fold(self, job: Job, merge: Merge, monitor: Monitor) -> Any:
        with self._engine() as engine:
            return engine.fold(job, merge, monitor)

    def _engine(self) -> AbstractContextManager[Engine]:
        distributed = sys.modules.get("distributed")
        if distributed is not None:
            with contextlib.suppress(ValueError):  # there is none
                from lowland.chunks.dask_engine import Dask

                return Dask(distributed.Client.current())
        return contextlib.nullcontext(Stream())


# --- places -----------------------------------------------------------------------------------


class Plain:
    """An object that Dask takes as it is: it does not look for collections inside."""

    def __init__(self, value: Any) -> None:
        self.value = value


def placed_collection(
    X: Any, step: Callable[[Any], Any], names_of: Callable[[Any], list[str]], output: str | None
) -> Any:
    """The rows of a collection after ``step``, as a collection with the same partitions.

    It is an array of Dask, or a data frame if ``output`` asks for one. ``names_of`` an empty
    partition gives the names of its columns. The step is one task of the graph, so a large model is
    in the graph once.
    """
    import dask

    parts, sizes, empty = partitions_of(X)
    if output == "polars":
        raise ParameterError(
            "set_output: transform='polars' has no collection of Dask; choose 'pandas' for a "
            "data frame of Dask, or 'default' for an array."
        )
    seen, names = Columns.of(empty), names_of(empty)
    dtype = seen.dtype if seen.dtype in FLOATS else np.dtype(np.float64)
    places = Places(seen, len(names), dtype, names if output == "pandas" else None)
    token = hashlib.sha256(pickle.dumps((step, places), protocol=5)).hexdigest()[:32]
    model = f"lowland-model-{token}"
    shared = dask.delayed(Plain((step, places)), name=model, pure=False, traverse=False)
    place, blocks = dask.delayed(_place, pure=False), []
    for number, part in enumerate(parts):
        name = hashlib.sha256(f"{token} {part.key}".encode()).hexdigest()[:32]
        blocks.append(place(shared, part, number, dask_key_name=f"lowland-place-{name}"))
    if output == "pandas":
        import dask.dataframe

        return dask.dataframe.from_delayed(
            blocks,
            meta=places.frame(np.empty((0, len(names)), dtype), empty),
            divisions=getattr(X, "divisions", None),
            verify_meta=False,
        )
    import dask.array

    arrays = [
        dask.array.from_delayed(block, (n, len(names)), dtype=dtype)
        for block, n in zip(blocks, sizes or [np.nan] * len(blocks), strict=True)
    ]
    return dask.array.concatenate(arrays, allow_unknown_chunksizes=True)


class Places(NamedTuple):
    """What the places of a partition look like."""

    columns: Columns  # of the partition
    n_columns: int
    dtype: np.dtype
    names: list[str] | None  # of a data frame

    def of(self, step: Callable[[Any], np.ndarray], part: Any, number: int) -> Any:
        """The places of the rows of one partition; no method takes one without rows."""
        chunk = PartitionChunk(part, part.shape[0], number, self.columns)
        placed = np.empty((0, self.n_columns), self.dtype)
        if chunk.n_rows:
            with limit_threads(1), naming_source(chunk.source):
                placed = step(chunk.read(0).X)
        return placed if self.names is None else self.frame(placed, part)

    def frame(self, placed: np.ndarray, part: Any) -> Any:
        """Places as a data frame of pandas with the index of their partition."""
        import pandas

        return pandas.DataFrame(placed, index=getattr(part, "index", None), columns=self.names)


def _place(shared: Plain, part: Any, number: int) -> Any:
    step, places = shared.value
    return places.of(step, part, number)
