"""Tables in chunks for tests: of arrays and data frames in memory, and how methods fit them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lowland._base.rows.arrays import array_rows
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows

TASK_ROWS = 37  # several tasks, the last one shorter, and a tree of more than one level


class FrameChunk(NamedTuple):
    """Some rows of a data frame of columns of several types."""

    X: pl.DataFrame
    first: int

    @property
    def n_rows(self) -> int:
        return self.X.height

    @property
    def identity(self) -> tuple[Any, ...]:
        return ("frame", self.first, self.X.shape)

    @property
    def source(self) -> str:
        return f"frame, rows {self.first} to {self.first + self.n_rows - 1}"

    def read(self, start: int) -> Block:
        return Block(self.X, start, None, None, self.source)


def frame_rows(frame: pl.DataFrame, task_rows: int = TASK_ROWS) -> Rows:
    """A data frame as rows in chunks; its blocks are data frames."""
    chunks = [FrameChunk(frame[i : i + task_rows], i) for i in range(0, frame.height, task_rows)]
    return Rows(chunks, frame.width, object, names=frame.columns, task_rows=task_rows)


def labeled_rows(X: Any, y: Any = None, task_rows: int = TASK_ROWS) -> Rows:
    """An array or sparse matrix as rows in chunks, with the labels ``y`` beside them."""
    beside = None if y is None else pl.DataFrame({"kind": y})
    return array_rows(X, beside=beside, task_rows=task_rows)


class Passes:
    """Counts how often a table is gone through."""

    def __init__(self, monkeypatch: Any) -> None:
        self.count = 0
        total = Rows.total

        def counted(rows: Rows, *args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return total(rows, *args, **kwargs)

        monkeypatch.setattr(Rows, "total", counted)


def target_for(method: type, n: int) -> Any:
    """Labels for methods that need some: text in long runs, so that chunks lack classes."""
    if not method.needs_target:  # type: ignore[attr-defined]
        return None
    if method.__name__ == "CorrelationScore":
        return np.sin(np.arange(n) ** 1.5)
    return np.array(["oak", "ash", "elm"], dtype=object)[np.arange(n) * 3 // n]


def suited(method: type, n: int) -> dict[str, Any]:
    """Parameters with which the method fits n rows in chunks as it fits them in memory.

    Landmarks are chosen by the seed, the same rows in memory and of chunks.
    """
    found: dict[str, Any] = {"random_state": 0}
    if method.__name__ in ("KernelPCA", "LandmarkMDS"):
        found["n_landmarks"] = min(n, 40)
    if method.__name__ == "KernelPCA":
        found["solver"] = "nystroem"
    if method.__name__ == "SOM":
        found |= {"max_iter": 3, "sides": (4, 3)}
    if method.__name__ == "GTM":
        found |= {"n_nodes": 5, "n_basis": 3, "max_iter": 5}
    known = method.parameters()  # type: ignore[attr-defined]
    return {"n_components" if "n_components" in known else "n_features": 2, **found}


def write_in_groups(frame: pl.DataFrame, path: Path) -> Path:
    """Write a small file in several row groups or batches, in the format of its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.write_parquet(path, row_group_size=12)
    elif path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_ipc(path, record_batch_size=12)
    return path
