"""The fitted rows of several tables in two arrays, whatever their widths are.

Dense tables follow each other in one vector of values. Sparse ones are the blocks of a matrix with
the columns of all tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.validation import is_sparse


class StoredRows(NamedTuple):
    """``values`` of the dense tables; ``blocks`` of the sparse ones, None if there are none."""

    values: np.ndarray
    blocks: Any
    sparse: np.ndarray
    row_starts: np.ndarray
    column_starts: np.ndarray

    @classmethod
    def of(cls, Xs: list[Any], column_starts: np.ndarray) -> StoredRows:
        """The rows of the tables, copied."""
        row_starts = np.cumsum([0, *(X.shape[0] for X in Xs)])
        sparse = np.array([is_sparse(X) for X in Xs])
        dense = [np.ravel(X) for X in Xs if not is_sparse(X)]
        values = np.concatenate(dense) if dense else np.empty(0)
        blocks = None
        if sparse.any():
            parts = [X if is_sparse(X) else scipy.sparse.csr_matrix(X.shape) for X in Xs]
            blocks = scipy.sparse.csr_matrix(scipy.sparse.block_diag(parts, format="csr"))
            blocks.sort_indices()
        return cls(values, blocks, sparse, row_starts, column_starts)

    def flaw(self) -> str | None:
        """What does not fit together; None if all does."""
        sizes = np.diff(self.row_starts) * np.diff(self.column_starts)
        expected = sum(int(size) for size, far in zip(sizes, self.sparse, strict=True) if not far)
        if self.values.size != expected:
            return f"{self.values.size} values of dense rows, expected {expected}"
        if self.sparse.any() != (self.blocks is not None):
            return "sparse rows that contradict 'sparse_sets_'"
        if self.blocks is not None and self.blocks.shape[0] != self.row_starts[-1]:
            return f"{self.blocks.shape[0]} sparse rows, expected {self.row_starts[-1]}"
        return None

    def table(self, d: int) -> Any:
        """The rows of table d."""
        rows = slice(*self.row_starts[d : d + 2])
        columns = slice(*self.column_starts[d : d + 2])
        if self.sparse[d]:
            return self.blocks[rows, columns]
        sizes = np.diff(self.row_starts) * np.diff(self.column_starts) * ~self.sparse
        start = int(sizes[:d].sum())
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        return self.values[start : start + shape[0] * shape[1]].reshape(shape)
