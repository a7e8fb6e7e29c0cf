"""Collections of Dask gone through by their own scheduler, and placed as collections.

``dask.compute`` uses the client of the user if there is one, else threads of this process. The
tree of merges is that of the other engines, so the bytes are the same.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import ParameterError
from lowland._core.monitor import Monitor
from lowland._core.rows.collections import (
    Columns,
    PartitionLeaf,
    partitions_of,
    split_inputs,
    with_inputs,
)
from lowland._core.rows.engines import Job, naming_source, run_task
from lowland._core.rows.folding import FAN_IN, TreeFold, merge_all
from lowland._core.threads import limit_threads
from lowland._core.validation import FLOATS

BATCH = 8 * FAN_IN  # tasks that the scheduler gets at once
Names = Callable[[Any], list[str]]


class Scheduled:
    """The engine of collections outside of a ``with Dask(...)`` block."""

    def run(self, job: Job, monitor: Monitor) -> Iterator[Any]:
        """The result of each task, in the order of the tasks."""
        import dask

        with monitor.phase(job.name, total=_rows(job.tasks)) as phase:
            for places in _batches(len(job.tasks), BATCH):
                results = dask.compute(*_delayed(job, places))
                for place, result in zip(places, results, strict=True):
                    yield result
                    phase.advance(job.tasks[place].n_rows)

    def fold(self, job: Job, merge: Callable[[Any, Any], Any], monitor: Monitor) -> Any:
        """The results of all tasks merged; the first level of the tree by the scheduler."""
        import dask

        merged = dask.delayed(_merged, pure=False)
        tree = TreeFold(merge)  # the levels above the first
        with monitor.phase(job.name, total=_rows(job.tasks)) as phase:
            for places in _batches(len(job.tasks), BATCH):
                tasks = _delayed(job, places)
                groups = [tasks[i : i + FAN_IN] for i in range(0, len(tasks), FAN_IN)]
                for value in dask.compute(*[merged(Plain(merge), *group) for group in groups]):
                    tree.add(value)
                phase.advance(_rows([job.tasks[place] for place in places]))
        return tree.result()


class Plain:
    """An object that Dask takes as it is: it does not look for collections inside."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _rows(tasks: Sequence[Any]) -> int:
    return sum(task.n_rows for task in tasks)


def _batches(n: int, size: int) -> Iterator[Sequence[int]]:
    for start in range(0, n, size):
        yield range(start, min(n, start + size))


def _delayed(job: Job, places: Sequence[int]) -> list[Any]:
    """The delayed work on some tasks; what they share is one object in the graph."""
    import dask

    shared = dask.delayed(Plain((job.work, job.steps)), pure=False, traverse=False)
    run = dask.delayed(_run, pure=False)
    found = []
    for place in places:
        task, parts = split_inputs(job.tasks[place])
        found.append(run(shared, Plain((task, job.argument(place))), *parts))
    return found


def _run(shared: Plain, own: Plain, *inputs: Any) -> Any:
    """One task, with one thread: the scheduler runs as many tasks as it has threads."""
    work, steps = shared.value
    task, argument = own.value
    with limit_threads(1):
        return run_task(with_inputs(task, inputs), work, argument, *steps)


def _merged(merge: Plain, *values: Any) -> Any:
    return merge_all(values, merge.value)


# --- places -----------------------------------------------------------------------------------


class PlacedCollection:
    """The places of the rows of a collection, as a collection with the same partitions.

    The step is one task of the graph, so a large model is in the graph once.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.parts, self.sizes, self.empty = partitions_of(X)
        self.columns = Columns.of(self.empty)

    def by(self, step: Callable[[Any], np.ndarray], names: Names, output: str | None) -> Any:
        """The collection after ``step``, an array of Dask, or a data frame if ``output`` asks."""
        if output == "polars":
            raise ParameterError(
                "set_output: transform='polars' has no collection of Dask; choose 'pandas' for a "
                "data frame of Dask, or 'default' for an array."
            )
        columns = names(self.empty)
        is_frame = output == "pandas"
        dtype = self.columns.dtype if self.columns.dtype in FLOATS else np.dtype(np.float64)
        places = Places(self.columns, len(columns), dtype, columns if is_frame else None)
        blocks = self._blocks(step, places)
        return self._frame(blocks, places) if is_frame else self._array(blocks, places)

    def _blocks(self, step: Callable[[Any], np.ndarray], places: Places) -> list[Any]:
        import dask

        name = hashlib.sha256(pickle.dumps((step, places), protocol=5)).hexdigest()[:32]
        model = f"lowland-model-{name}"
        shared = dask.delayed(Plain((step, places)), name=model, pure=False, traverse=False)
        place = dask.delayed(_place, pure=False)
        return [
            place(shared, part, number, dask_key_name=key)
            for number, (part, key) in enumerate(zip(self.parts, self._keys(name), strict=True))
        ]

    def _keys(self, name: str) -> Iterator[str]:
        for part in self.parts:
            token = hashlib.sha256(f"{name} {part.key}".encode()).hexdigest()[:32]
            yield f"lowland-place-{token}"

    def _array(self, blocks: list[Any], places: Places) -> Any:
        import dask.array

        sizes = [np.nan] * len(blocks) if self.sizes is None else self.sizes
        arrays = [
            dask.array.from_delayed(block, (n, places.n_columns), dtype=places.dtype)
            for block, n in zip(blocks, sizes, strict=True)
        ]
        return dask.array.concatenate(arrays, allow_unknown_chunksizes=True)

    def _frame(self, blocks: list[Any], places: Places) -> Any:
        import dask.dataframe
        import pandas

        like = np.empty((0, places.n_columns), places.dtype)
        index = getattr(self.empty, "index", None)
        meta = pandas.DataFrame(like, index=index, columns=places.names)
        divisions = getattr(self.X, "divisions", None)
        return dask.dataframe.from_delayed(
            blocks, meta=meta, divisions=divisions, verify_meta=False
        )


class Places(NamedTuple):
    """What the places of a partition look like."""

    columns: Columns  # of the partition
    n_columns: int
    dtype: np.dtype
    names: list[str] | None  # of a data frame

    def of(self, step: Callable[[Any], np.ndarray], part: Any, number: int) -> Any:
        """The places of the rows of one partition; no method takes one without rows."""
        leaf = PartitionLeaf(part, part.shape[0], number, self.columns)
        placed = np.empty((0, self.n_columns), self.dtype)
        if leaf.n_rows:
            with limit_threads(1), naming_source(leaf.source):
                placed = step(leaf.read(0).X)
        if self.names is None:
            return placed
        import pandas

        return pandas.DataFrame(placed, index=getattr(part, "index", None), columns=self.names)


def _place(shared: Plain, part: Any, number: int) -> Any:
    step, places = shared.value
    return places.of(step, part, number)
