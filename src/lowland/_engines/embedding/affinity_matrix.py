"""The symmetric matrix of joint affinities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lowland import _native
from lowland._core.errors import DataError
from lowland._core.memory import require_memory


@dataclass(frozen=True, eq=False)
class JointAffinities:
    """The p_ij as a symmetric sparse matrix that sums to 1, without diagonal.

    Row i has the weights ``indptr[i]`` to ``indptr[i + 1]``, columns ascending, of the neighbors of
    i and of the rows that i is a neighbor of. A weight may be 0.

    Attributes
    ----------
    indptr : ndarray of shape (n + 1,), int64
    indices : ndarray of shape (indptr[n],), int32
    weights : ndarray of shape (indptr[n],), float32 or float64
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray

    @property
    def n(self) -> int:
        return self.indptr.size - 1

    def __repr__(self) -> str:
        return f"JointAffinities({self.n} rows, {self.weights.size} weights, {self.weights.dtype})"

    def to_csr(self) -> Any:
        import scipy.sparse

        shape = (self.n, self.n)
        return scipy.sparse.csr_matrix((self.weights, self.indices, self.indptr), shape=shape)


def symmetrize_affinities(
    starts: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    threads: int = 1,
    *,
    ascending: bool = False,
) -> JointAffinities:
    """(C + C^T) / sum(C + C^T) of a sparse matrix C, which has each column once in a row.

    If the rows of C sum to 1, that is (C + C^T) / 2n. Columns -1 (missing) and the diagonal are
    passed over. Symmetric to the last bit; O(entries). ``ascending`` tells that the columns of each
    row ascend, none is missing and none is on the diagonal, which saves a quarter of the memory.
    """
    stored = columns.size
    entry = 4 + weights.itemsize
    require_memory(
        stored * (4 + entry + (3 if ascending else 4) * entry),
        task=f"the joint affinities of {starts.size - 1} rows",
        alternative="take a smaller perplexity or fewer neighbors",
    )
    work = np.empty(-(-stored * (4 + entry) // 8))
    columns = columns.astype(np.int32, copy=False)
    transposed = _transposed(starts, columns, weights, work, threads)
    # transposing sorts the columns; transposing twice sorts those of C
    ordered = starts, columns, weights
    if not ascending:
        ordered = _transposed(*transposed, work, threads)
    del work
    total = float(ordered[2].sum(dtype=np.float64))
    if not total > 0:
        raise DataError(f"no row of the {starts.size - 1} has a neighbor, so there is no affinity.")
    indptr = np.empty_like(starts)
    _native.union_starts(*ordered[:2], *transposed[:2], indptr, threads)
    indices, joint = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], weights.dtype)
    _native.union_sum(*ordered, *transposed, 0.5 / total, indptr, indices, joint, threads)
    return JointAffinities(indptr, indices, joint)


def transposed_rows(
    starts: np.ndarray, columns: np.ndarray, values: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The transpose of a sparse matrix: columns ascend, -1 and the diagonal are passed over."""
    work = np.empty(-(-columns.size * (8 + values.itemsize) // 8))
    return _transposed(starts, columns, values, work, threads)


def _transposed(
    starts: np.ndarray, columns: np.ndarray, values: np.ndarray, work: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    out = np.empty_like(starts), np.empty_like(columns), np.empty_like(values)
    _native.transpose(starts, columns, values, work, *out, threads)
    stored = int(out[0][-1])
    return out[0], out[1][:stored], out[2][:stored]
