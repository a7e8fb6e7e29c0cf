"""Tables in chunks of what is in memory or mapped from one file: arrays and sparse matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.rows.chunks import TASK_ROWS, Block, chunk_ranges, chunk_rows
from lowland._base.rows.table import Rows, fingerprint
from lowland._base.validation import FLOATS, column_names, is_sparse


class ArrayChunk(NamedTuple):
    """Some rows of an array, and of the frame of what goes along."""

    X: Any
    first: int
    beside: Any = None
    name: str = "X"

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @property
    def identity(self) -> tuple[Any, ...]:
        return ("array", self.name, self.first, fingerprint(self.X))

    @property
    def source(self) -> str:
        return f"{self.name}, rows {self.first} to {self.first + self.n_rows - 1}"

    def read(self, start: int) -> Block:
        return Block(self.X, start, self.beside, None, self.source)


def array_rows(X: Any, *, beside: Any = None, task_rows: int = TASK_ROWS, name: str = "X") -> Rows:
    """An array, data frame of numbers or CSR matrix as rows in chunks; nothing is copied.

    ``beside`` is a polars data frame of columns that are carried along.
    """
    names = column_names(X)
    array = X if is_sparse(X) else np.asarray(X)
    dtype = array.dtype if array.dtype in FLOATS else np.dtype(np.float64)
    n, p = array.shape
    chunks = [
        ArrayChunk(array[i:j], i, None if beside is None else beside[i:j], name)
        for i, j in chunk_ranges(n, chunk_rows(p, task_rows))
    ]
    along = () if beside is None else tuple(beside.columns)
    columns = None if names is None else [str(name) for name in names]
    return Rows(chunks, p, dtype, names=columns, beside=along, task_rows=task_rows)
