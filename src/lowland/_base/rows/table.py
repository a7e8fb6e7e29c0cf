"""``Rows``: a table in chunks, which methods go through instead of holding it."""

from __future__ import annotations

import copy
import functools
import hashlib
import itertools
import json
import pickle
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from lowland._base.constraints import Integer, check_argument
from lowland._base.errors import DataError, unknown_name
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows import engines
from lowland._base.rows import exchange as exchanging
from lowland._base.rows import parts as writing
from lowland._base.rows.chunks import TASK_ROWS, Block, Chunk, Task, count_rows, tasks_of
from lowland._base.rows.engines import Engine, Job, Merge, OnBlock, Work
from lowland._base.rows.folding import merge_all, sampled_rows
from lowland._base.validation import is_sparse

Total = TypeVar("Total")

# A name for what a step does, which is the same in every process.
#
# Pickled bytes will not do: they tell which strings are one object, which differs between a model
# that was fitted and the same model that was loaded. So contents are hashed one by one.


# Attributes that change nothing about results: how many threads, what is shown.
WITHOUT_EFFECT = ("n_jobs", "verbose", "callback")
PLAIN = (str, int, float, complex, bool, bytes, type(None))


def fingerprint(value: Any) -> str:
    """A digest of the contents of plain values, arrays, containers and objects of modules.

    >>> fingerprint({"a": np.arange(3), "b": [1.5, "x"]}) == fingerprint({"b": [1.5, "x"],
    ...     "a": np.arange(3)})
    True
    """
    found = hashlib.sha256()
    _add(found, value)
    return found.hexdigest()


def _add(found: Any, value: Any) -> None:
    if isinstance(value, PLAIN):
        found.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        found.update(f"array:{value.dtype.str}{value.shape};".encode())
        found.update(np.ascontiguousarray(value))
    elif isinstance(value, np.ndarray | list | tuple):
        found.update(f"{type(value).__name__}:{len(value)};".encode())
        for each in value:
            _add(found, each)
    elif isinstance(value, Mapping):
        found.update(f"mapping:{len(value)};".encode())
        for key in sorted(value, key=repr):
            if key not in WITHOUT_EFFECT:
                _add(found, key)
                _add(found, value[key])
    else:
        _add(found, _contents(value))


def _contents(value: Any) -> tuple[Any, ...]:
    """The kind of an object and what it consists of."""
    if isinstance(value, type | types.FunctionType):
        return "named", value.__module__, value.__qualname__
    if isinstance(value, functools.partial):
        return "partial", value.func, value.args, value.keywords
    if is_sparse(value):
        return "sparse", value.shape, value.indptr, value.indices, value.data
    if not hasattr(value, "__dict__"):
        return "pickled", pickle.dumps(value, protocol=5)
    return "object", type(value).__module__, type(value).__qualname__, vars(value)


class Rows:
    """A table of n rows and p columns, in chunks that are read when they are needed.

    ``lowland.chunks.open_rows`` makes one of files. Methods take it in place of an array:
    ``PCA().fit(rows)`` goes through it, and ``model.transform(rows)`` is again a table of rows,
    which is computed when it is used: :meth:`write` writes it to files, :meth:`sample` takes some
    rows, ``for block in rows.blocks()`` goes through it.

    Parameters
    ----------
    chunks : sequence of Chunk
        Ranges of rows, in order.
    n_columns : int
        Number of columns that methods see, after all steps.
    dtype : dtype
        Their type: float32 or float64 if all are numbers, object for frames of several types.
    names : sequence of str or None
        Their names.
    beside : sequence of str
        Names of the columns carried along: row id and labels.
    id_name : str or None
        The one of them that names the rows; without one, written rows get their number, ``row``.
    task_rows : int
        Rows of a task, at most; part of what fixes the last bits of sums.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        n_columns: int,
        dtype: Any = np.float64,
        *,
        names: Sequence[str] | None = None,
        beside: Sequence[str] = (),
        id_name: str | None = None,
        task_rows: int = TASK_ROWS,
    ) -> None:
        self.chunks = tuple(chunks)
        self.dtype = np.dtype(dtype)
        self.names = None if names is None else tuple(names)
        self.beside = tuple(beside)
        self.id_name = id_name
        self.task_rows = task_rows
        self.steps: tuple[Callable[[Any], Any], ...] = ()
        self.target: str | None = None
        self._n_columns = self._read_columns = n_columns
        self._n_rows = count_rows(self.chunks)

    # --- what it looks like -----------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._n_rows, self._n_columns

    def __len__(self) -> int:
        return self._n_rows

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns; None if they have none."""
        return self.names

    def __repr__(self) -> str:
        return f"Rows({self._n_rows} rows x {self._n_columns} columns in {len(self.tasks)} tasks)"

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise DataError(
            "these rows are read in chunks and are not an array; take rows.sample(n), or "
            "rows.to_numpy() if all of them fit in memory."
        )

    @functools.cached_property
    def tasks(self) -> list[Task]:
        """Runs of chunks; they depend on the files and the number of columns read."""
        return tasks_of(self.chunks, self._read_columns, self.task_rows)

    def digest(self) -> str:
        """A name for the contents: files, their sizes and times, columns, steps."""
        found = hashlib.sha256()
        for chunk in self.chunks:
            found.update(json.dumps(chunk.identity, default=str).encode())
        found.update(json.dumps([self.shape, str(self.dtype), self.names, self.task_rows]).encode())
        for step in self.steps:
            found.update(fingerprint(step).encode())
        return found.hexdigest()

    # --- other tables -----------------------------------------------------------------------

    def map(
        self,
        step: Callable[[Any], Any],
        n_columns: int | None = None,
        *,
        names: Sequence[str] | None = None,
        dtype: Any = None,
    ) -> Rows:
        """The table of ``step(X)`` for each block X, computed when it is used.

        ``step`` treats each row as if it came alone and can be pickled. Without ``n_columns`` it
        keeps the columns.
        """
        other = copy.copy(self)
        other.steps = (*self.steps, step)
        if n_columns is not None:
            other._n_columns = n_columns
            other.names = None if names is None else tuple(names)
        other.dtype = self.dtype if dtype is None else np.dtype(dtype)
        return other

    def without_names(self) -> Rows:
        """The same table for a step that was fitted to columns without names."""
        other = copy.copy(self)
        other.names = None
        return other

    def with_chunks(
        self, chunks: Sequence[Chunk], names: Sequence[str], beside: Sequence[str] = ()
    ) -> Rows:
        """The same rows read by other chunks of the same lengths, with other columns."""
        other = copy.copy(self)
        vars(other).pop("tasks", None)  # they hold the chunks
        other.chunks, other.names, other.beside = tuple(chunks), tuple(names), tuple(beside)
        other._n_columns = len(other.names)
        return other

    def with_target(self, name: str) -> Rows:
        """The same table whose blocks have the column ``name``, of those beside, as ``y``."""
        if name not in self.beside:
            raise DataError(f"y: {unknown_name('label', name, list(self.beside))}")
        other = copy.copy(self)
        other.target = name
        return other

    def with_labels(self, y: Any) -> Rows | None:
        """The table with the labels y as target; None if it cannot take such labels."""
        return self.with_target(y) if isinstance(y, str) else None

    # --- going through it -------------------------------------------------------------------

    def total(
        self,
        f: Callable[[Block], Total],
        merge: Callable[[Total, Total], Total],
        monitor: Monitor | None = None,
        name: str = "rows",
    ) -> Total:
        """``merge`` of ``f(block)`` over all blocks, in an order that depends on the files only."""
        job = self.job(name, functools.partial(_folded, f, merge), self.tasks)
        total: Total = self._engine().fold(job, merge, monitor or Monitor())
        return total

    def results(
        self,
        work: Work,
        monitor: Monitor | None = None,
        name: str = "rows",
        *,
        tasks: Sequence[Task] | None = None,
        arguments: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        """``work(blocks, argument)`` of every task, or of some, in order."""
        job = self.job(name, work, self.tasks if tasks is None else tasks, arguments)
        return self.run(job, monitor or Monitor())

    def run(self, job: Job, monitor: Monitor) -> Iterator[Any]:
        """The results of a job by the engine of this table, in the order of the tasks."""
        return self._engine().run(job, monitor)

    def job(
        self, name: str, work: Work, tasks: Sequence[Task], arguments: Sequence[Any] | None = None
    ) -> Job:
        """The work on tasks of this table, with its steps and its target."""
        if self.target is not None:
            work = functools.partial(_with_target, work, self.target)
        return Job(name, work, tasks, self.steps, arguments)

    def _engine(self) -> Engine:
        return engines.current_engine() or engines.Stream()

    def blocks(self) -> Iterator[Block]:
        """All blocks, one after another, in this process."""
        work = self.job("rows", _all, self.tasks).work
        for task in self.tasks:
            yield from engines.run_task(task, work, None, *self.steps)

    def sample(self, n: int, seed: int = 0) -> Any:
        """n rows without replacement, in their order: an array, or a data frame if columns have
        names. All rows if there are no more than n. The rows depend on ``seed`` only.
        """
        check_argument("sample: n", n, Integer(1))
        check_argument("sample: seed", seed, Integer(0))
        return self.take(sampled_rows(self._n_rows, int(n), int(seed))).X

    def take(self, numbers: np.ndarray, monitor: Monitor | None = None) -> Block:
        """The rows with these numbers, ascending, with what goes along."""
        numbers = np.asarray(numbers, np.int64)
        need = 8 * len(numbers) * self._n_columns
        require_memory(2 * need, task=f"taking {len(numbers)} rows", alternative="take fewer")
        tasks, wanted = [], []
        for task in self.tasks:
            first, last = np.searchsorted(numbers, [task.start, task.start + task.n_rows])
            if first < last:
                tasks.append(_needed(task, numbers[first:last]))
                wanted.append(numbers[first:last])
        found = self.results(_taken, monitor, "sample", tasks=tasks, arguments=wanted)
        return self._named(joined([part for part in found if part is not None], self))

    def to_numpy(self) -> np.ndarray:
        """All rows as one array, if that fits in memory."""
        n, p = self.shape
        require_memory(
            n * p * self.dtype.itemsize,
            task=f"an array of {n} rows x {p} columns",
            alternative="go through rows.blocks(), or take rows.sample(n)",
        )
        X = np.empty(self.shape, np.float64 if self.dtype == object else self.dtype)
        for block in self.blocks():
            X[block.start : block.start + block.n_rows] = block.X
        return X

    write = writing.write
    exchange = exchanging.exchange

    def _named(self, block: Block) -> Block:
        """The block with a data frame in place of an array, if columns have names."""
        if self.names is None or not isinstance(block.X, np.ndarray):
            return block
        import polars as pl

        return block._replace(X=pl.from_numpy(block.X, schema=list(self.names), orient="row"))


def _folded(f: OnBlock, merge: Merge, blocks: Iterator[Block], argument: Any) -> Any:
    """The work of :meth:`Rows.total` on one task: its chunks, merged in order."""

    def found(block: Block) -> Any:
        with engines.naming_source(block.source):
            return f(block)

    return merge_all(map(found, blocks), merge)


def _with_target(work: Work, name: str, blocks: Iterator[Block], argument: Any) -> Any:
    """Work on blocks that have one of the columns beside them as ``y``."""
    named = (block._replace(y=block.beside[name].to_numpy()) for block in blocks)
    return work(named, argument)


def joined(blocks: Sequence[Block], rows: Rows) -> Block:
    """Blocks one below another; ``rows`` has their columns and types if there are none."""
    if not blocks:
        return Block(np.empty((0, rows.shape[1]), float if rows.dtype == object else rows.dtype), 0)
    import polars as pl

    first = blocks[0]
    parts = [block.X for block in blocks]
    if is_sparse(first.X):
        import scipy.sparse

        X = scipy.sparse.vstack(parts, format="csr")
    else:
        X = pl.concat(parts) if isinstance(first.X, pl.DataFrame) else np.concatenate(parts)
    beside = None if first.beside is None else pl.concat([block.beside for block in blocks])
    y = None if first.y is None else np.concatenate([block.y for block in blocks])
    return Block(X, first.start, beside, y, first.source)


def _all(blocks: Iterator[Block], argument: Any) -> Iterator[Block]:
    return blocks


def _needed(task: Task, numbers: np.ndarray) -> Task:
    """The task without chunks before the first and after the last of the rows wanted."""
    starts = itertools.accumulate((c.n_rows for c in task.chunks), initial=task.start)
    pairs = list(zip(task.chunks, starts, strict=False))
    kept = [(c, i) for c, i in pairs if i <= numbers[-1] and i + c.n_rows > numbers[0]]
    return Task(task.number, kept[0][1], tuple(chunk for chunk, _ in kept))


def _taken(blocks: Iterator[Block], numbers: np.ndarray) -> Block | None:
    """The rows with these numbers among those of a task."""
    parts = []
    for block in blocks:
        first, last = np.searchsorted(numbers, [block.start, block.start + block.n_rows])
        places = numbers[first:last] - block.start
        if len(places):
            beside = None if block.beside is None else block.beside[places]
            y = None if block.y is None else block.y[places]
            parts.append(block._replace(X=block.X[places], beside=beside, y=y))
    return joined(parts, None) if parts else None  # type: ignore[arg-type]
