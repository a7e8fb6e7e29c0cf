"""The feature level: functions of the rows that are linear in the columns of each table.

With F the matrix of such functions of all rows (for each table a constant, and an orthonormal basis
of its centered columns, so that neither dependent columns nor more columns than rows matter), the
map is F G with

    F^T L F g = lambda F^T D F g          (Z L Z^T g = lambda Z D Z^T g in the paper)

and the constant function left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._core.memory import require_memory
from lowland._core.threads import limit_blas
from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.linalg.column_basis import ColumnBasis, orthonormal_basis
from lowland._engines.linalg.eigen import all_eigenpairs, generalized_eigenpairs, rank_cutoff
from lowland._engines.linalg.products import matrix_times, transpose_times

STRONGEST = 1e100  # ridge: a larger one leaves the constants alone as well


class Projections(NamedTuple):
    """z = (x - mean) V + b: means (p,) and V (p, q) of all columns, and b (n_sets, q)."""

    means: np.ndarray
    V: np.ndarray
    offsets: np.ndarray


class LinearFunctions(NamedTuple):
    """F of each table, the sums A = F^T L F and B = F^T D F, the constant c, and a penalty.

    ``penalty`` is the squared length of the projection of each function, in units of the
    smallest that the table has.
    """

    bases: list[ColumnBasis]
    parts: list[np.ndarray]
    A: np.ndarray
    B: np.ndarray
    constant: np.ndarray
    penalty: np.ndarray

    def axes(self, q: int, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """The q smallest lambda, and G with G^T B G = 1; NaN and zeros beyond the rank.

        From the pencil (B, A + B), whose eigenvalues 1 / (1 + lambda) are between 1/3 and 1 without
        a ridge: B alone may be so small in some directions that lambda would be rounding.
        """
        total = float(self.constant @ self.B @ self.constant)
        A = self.A + self._ridge(ridge, total)
        known = self.B @ self.constant
        rest = self.B - np.outer(known, known) / total
        found = generalized_eigenpairs(rest, A + self.B, q, which="largest")
        k = min(q, max(found.rank - 1, 0), int((found.values > rank_cutoff(len(A), float)).sum()))
        values, G = np.full(q, np.nan), np.zeros((len(A), q))
        values[:k] = np.maximum(1 / found.values[:k] - 1, 0.0)
        G[:, :k] = found.vectors[:, :k] * np.sqrt(total / found.values[:k])
        return values, G

    def nearest(self, known: np.ndarray, S: np.ndarray, weight: float, ridge: float) -> np.ndarray:
        """G of the least squares tr(G^T A G) + weight sum over known rows |f_i^T G - s_i|^2."""
        total = float(self.constant @ self.B @ self.constant)
        F = scipy.sparse.block_diag(self.parts, format="csr")[known].toarray()
        with limit_blas(1):
            M = self.A + weight * (F.T @ F) + self._ridge(ridge, total)
            unit = 1 / np.sqrt(np.maximum(np.diagonal(M), np.finfo(float).tiny))
            lengths, V = all_eigenpairs(unit[:, None] * M * unit)
            real = lengths > rank_cutoff(len(M), float) * lengths[0]
            V = unit[:, None] * V[:, real]
            return V @ ((V.T @ (weight * (F.T @ S))) / lengths[real, None])

    def _ridge(self, ridge: float, total: float) -> np.ndarray:
        return np.diag(min(ridge, STRONGEST) * total * self.penalty)

    def projections(self, G: np.ndarray) -> Projections:
        """The map F G as a matrix for the rows of each table."""
        means, V, offsets, start = [], [], [], 0
        for basis, part in zip(self.bases, self.parts, strict=True):
            g = G[start : start + part.shape[1]]
            means.append(basis.mean)
            V.append(basis.weights(np.sqrt(len(part)) * g[1:]))
            offsets.append(g[0])
            start += part.shape[1]
        return Projections(np.concatenate(means), np.concatenate(V), np.array(offsets))


def linear_functions(
    Xs: list[Any], W: scipy.sparse.csr_matrix, owner: str, run: FitContext
) -> LinearFunctions:
    """F, A and B of the rows that the joint graph of weights W has."""
    shapes = [X.shape for X in Xs]
    width = sum(min(shape) + 1 for shape in shapes)
    require_memory(
        sum(32 * n * min(n, p) + 24 * n * p for n, p in shapes) + 64 * width * width,
        task=f"{owner}: projections of {sum(p for _, p in shapes)} columns",
        alternative="reduce the tables by PCA first, or use level='instance'",
    )
    bases = [orthonormal_basis(X, run.threads, run.monitor) for X in Xs]
    parts = [np.column_stack([np.ones(len(b.U)), np.sqrt(len(b.U)) * b.U]) for b in bases]
    L, degrees = laplacian(W)
    rows = np.cumsum([0, *(len(part) for part in parts)])
    places = np.cumsum([0, *(part.shape[1] for part in parts)])
    A, B = np.zeros((places[-1],) * 2), np.zeros((places[-1],) * 2)
    for a, left in enumerate(parts):
        here, zero = slice(*places[a : a + 2]), np.zeros(left.shape[1])
        own = slice(*rows[a : a + 2])
        B[here, here] = transpose_times(left, zero, degrees[own, None] * left, run.threads)
        for b, right in enumerate(parts):
            there = slice(*places[b : b + 2])
            block = scipy.sparse.csr_matrix(L[own, rows[b] : rows[b + 1]])
            if block.nnz:
                image = matrix_times(block, run.threads)(right)
                A[here, there] = transpose_times(left, zero, image, run.threads)
    constant = np.zeros(places[-1])
    constant[places[:-1]] = 1
    penalty = np.concatenate([np.concatenate([[0.0], _penalty(basis)]) for basis in bases])
    return LinearFunctions(bases, parts, (A + A.T) / 2, (B + B.T) / 2, constant, penalty)


def _penalty(basis: ColumnBasis) -> np.ndarray:
    """(s_1 / s_r)^2 of the singular values of the centered table."""
    size = np.abs(basis.loadings).max() or 1.0
    lengths = np.linalg.norm(basis.loadings / size, axis=1)
    longest = lengths.max() or 1.0
    return np.minimum((longest / np.maximum(lengths, 1e-100 * longest)) ** 2, 1e30)
