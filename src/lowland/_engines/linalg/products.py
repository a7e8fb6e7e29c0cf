"""Products with centered data that are not formed: dense or sparse, any number of threads.

    times            (X - 1 m^T) V           n x q
    transpose_times  (X - 1 m^T)^T Z         p x q
    sample_gram      (X - 1 m^T)(X - 1 m^T)^T  n x n

The kernels sum every element in a fixed order, so that the result depends neither on the number
of threads nor, row by row, on the other rows of the table.

Measured (``benchmarks/ablations.py products``), CPU time of OpenBLAS with one thread relative to
these: covariance 1.2, and 2.4 on MNIST, where zeros are left out; projection on 10 axes 1.4 to 1.6;
inner products of rows 1.2. BLAS needs a centered copy or a correction, gives other bytes for two
threads (float32 covariance), and a row alone gets other bytes than in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lowland import _native
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse

# Blocks of rows: how many rows are processed at a time, and in which slices.
#
#     for rows in row_blocks(n, rows_within(8 * p, 2**25)):
#         out[rows] = f(X[rows])
#
# Block boundaries depend on the sizes only, never on the number of threads. Where a sum runs over
# blocks, its order (and so its last digit) depends on the block size: keep it fixed.


BLOCK_ROWS = 2**17
BLOCK_BYTES = 2**25  # 4 million float64 numbers


def rows_within(bytes_per_row: int, budget: int = BLOCK_BYTES, multiple: int = 1) -> int:
    """The number of rows that fit into ``budget`` bytes, at least 1.

    A number above ``multiple`` is rounded down to a multiple of it.

    >>> rows_within(8 * 1000, budget=2**20), rows_within(8 * 1000, budget=2**20, multiple=24)
    (131, 120)
    """
    rows = max(1, budget // max(1, bytes_per_row))
    return rows - rows % multiple if rows > multiple else rows


def row_blocks(n_rows: int, rows_per_block: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)`` in order; the last one may be shorter.

    >>> list(row_blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n_rows, rows_per_block):
        yield slice(start, min(start + rows_per_block, n_rows))


def contiguous_blocks(
    X: np.ndarray, rows_per_block: int = BLOCK_ROWS
) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices, and the rows of X in them with adjacent columns adjacent in memory.

    A block is a view of X where its memory layout allows it, else a copy.
    """
    for rows in row_blocks(X.shape[0], rows_per_block):
        block = strided(X[rows])
        contiguous = X.shape[1] == 1 or block.strides[1] == block.itemsize
        yield rows, block if contiguous else np.ascontiguousarray(block)


def strided(X: np.ndarray) -> np.ndarray:
    """X, or a copy of it where its strides are not multiples of its item size.

    The kernels count steps in numbers, so they cannot read the columns of a record array.
    """
    steps = all(stride % X.itemsize == 0 for stride in X.strides)
    return X if steps and X.flags.aligned else X.copy(order="C")


def times_cost(n: int, p: int, q: int) -> Estimate:
    """Of :func:`times` or :func:`transpose_times` with q vectors."""
    return Estimate(6e-11 * n * p * q + 4e-10 * n * (p + q), 8 * (n + p) * q)


def times(X: Any, mean: np.ndarray, V: np.ndarray, threads: int) -> np.ndarray:
    """(X - 1 m^T) V in the type of X; each row is independent of the others."""
    V = np.ascontiguousarray(V, dtype=X.dtype)
    out = np.empty((X.shape[0], V.shape[1]), dtype=X.dtype)
    shift = np.ascontiguousarray(mean, dtype=X.dtype)
    if is_sparse(X):
        offset = np.empty((1, V.shape[1]), dtype=X.dtype)
        _native.project(shift[None, :], np.zeros_like(shift), V, offset, threads)
        _sparse_times(X, V, offset[0], out, threads)
    else:
        for rows, block in contiguous_blocks(X):
            _native.project(block, shift, V, out[rows], threads)
    rest = mean - shift  # what float32 cannot hold of the mean would move the map
    if rest.any():
        out -= np.einsum("k,kj->j", rest, V).astype(X.dtype)
    return out


def transpose_times(
    X: Any, mean: np.ndarray, Z: np.ndarray, threads: int, transposed: Any = None
) -> np.ndarray:
    """(X - 1 m^T)^T Z in float64; for sparse X, ``transposed`` may be X.T.tocsr()."""
    out = np.empty((X.shape[1], Z.shape[1]))
    if is_sparse(X):
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        flipped = X.T.tocsr() if transposed is None else transposed
        _sparse_times(flipped.astype(np.float64, copy=False), Z, np.zeros(Z.shape[1]), out, threads)
        out -= np.outer(mean, Z.sum(axis=0))
        return out
    X, Z = strided(X), np.ascontiguousarray(Z, dtype=X.dtype)
    shift = np.broadcast_to(np.asarray(mean, dtype=X.dtype), X.shape)
    zero = np.broadcast_to(X.dtype.type(0), Z.shape)
    _native.inner(X, shift, Z, zero, False, out, threads)
    return out


def gram_cost(n: int, p: int) -> Estimate:
    """Of :func:`sample_gram`."""
    return Estimate(2.5e-11 * n * n * p, 8 * n * n)


def sample_gram(X: Any, mean: np.ndarray, threads: int) -> np.ndarray:
    """(X - 1 m^T)(X - 1 m^T)^T in float64: the inner products of the centered rows."""
    if is_sparse(X):
        return _sparse_gram(X.astype(np.float64), mean)
    X = strided(X)
    out = np.empty((X.shape[0], X.shape[0]))
    shift = np.broadcast_to(np.asarray(mean, dtype=X.dtype)[:, None], X.T.shape)
    _native.inner(X.T, shift, X.T, shift, True, out, threads)
    return mirror(out)


def _sparse_gram(X: Any, mean: np.ndarray) -> np.ndarray:
    """X X^T - a 1^T - 1 a^T + m^T m with a = X m and implicit zeros."""
    a = X @ mean
    gram = (X @ X.T).toarray()
    gram -= a[:, None]
    gram -= a - mean @ mean
    return gram


def mirror(upper: np.ndarray) -> np.ndarray:
    """Copy the upper triangle of a square matrix to the lower one, in place."""
    n = upper.shape[0]
    for rows in row_blocks(n, 64):  # blocks of rows stay in the near caches
        corner = upper[rows, rows]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
        upper[rows.stop :, rows] = upper[rows, rows.stop :].T
    return upper


def _sparse_times(X: Any, V: np.ndarray, offset: np.ndarray, out: np.ndarray, threads: int) -> None:
    """out = X V - 1 offset^T for CSR X; the kernel needs index arrays of one type."""
    kind = np.promote_types(X.indptr.dtype, X.indices.dtype)
    starts, columns = X.indptr.astype(kind, copy=False), X.indices.astype(kind, copy=False)
    _native.sparse_times(starts, columns, X.data, V, offset, out, threads)


def matrix_times(M: Any, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """V -> M V of a function, an array or a CSR matrix; each row is summed in one order."""
    if callable(M):
        return M
    if not is_sparse(M):
        return lambda V: M @ V
    M = M.astype(np.float64, copy=False)  # the kernel wants one type, and vectors are float64

    def times(V: np.ndarray) -> np.ndarray:
        V, out = np.ascontiguousarray(V), np.empty((M.shape[0], V.shape[1]))
        _sparse_times(M, V, np.zeros(V.shape[1]), out, threads)
        return out

    return times


# Double centering H A H of a symmetric matrix, H = I - 11^T/n: in place, or as an operator.
#
# For a kernel matrix K this centers the rows in feature space (Schoelkopf, Smola & Mueller 1998,
# appendix B); for squared distances -1/2 H D^2 H are the inner products of the points around their
# mean (Torgerson 1952).


def double_center(A: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Replace A by scale * H A H, in place; returns the means of the columns of A.

    An A whose sums overflow has means that are not finite, which the caller has to check.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        means = A.mean(axis=0, dtype=np.float64)
        A -= means
        A -= (means - means.mean())[:, None]
        if scale != 1.0:
            A *= scale
    return means


class CenteredOperator:
    """V -> scale * H A H V for a symmetric A that is known by its products only.

    Attributes
    ----------
    means : ndarray of shape (n,) or None
        A 1 / n, computed along with the first product; None before, or if ``with_means`` is False.
    """

    def __init__(
        self,
        times: Callable[[np.ndarray], np.ndarray],
        scale: float = 1.0,
        *,
        with_means: bool = False,
    ) -> None:
        self.times, self.scale, self.with_means = times, scale, with_means
        self.means: np.ndarray | None = None

    def __call__(self, V: np.ndarray) -> np.ndarray:
        V = V - V.mean(axis=0)
        if self.with_means and self.means is None:
            image = self.times(np.hstack([V, np.full((len(V), 1), 1.0 / len(V))]))
            self.means = image[:, -1].copy()
            image = image[:, :-1]
        else:
            image = self.times(V)
        image = image - image.mean(axis=0)
        return image if self.scale == 1.0 else self.scale * image
