"""A multigrid V-cycle for the Laplacian V of a graph: an approximate V^+ in O(edges).

Steps that are preconditioned by the degrees alone move a point about as far as its neighbors let
it go: a sheet of n points then needs some sqrt(n) steps to bend as a whole. Here rows are grouped
around roots that are not neighbors of each other; each group is one row of a coarser Laplacian
P^T V P, and so on, until a dense inverse is cheap. On each grid, damped Jacobi steps before and
after smooth what the coarser grids cannot see. The columns of P are the groups, on graphs of few
neighbors smoothed by a Jacobi step.

The cycle is symmetric and its steps never overshoot: the eigenvalues of B V are between 0 and 1,
so that B^-1 lies above V, as a majorizer needs it.

References: Vanek, Mandel & Brezina (1996), Algebraic multigrid by smoothed aggregation, Computing
56, doi:10.1007/BF02238511; Luby (1986) for the roots.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse

from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.linalg.products import matrix_times

COARSEST = 400  # rows that are inverted as a dense matrix
DAMPING = 2 / 3
FEW_NEIGHBORS = 14  # of a group: with more, smoothed groups would overlap with almost all others
SLOWEST = 0.8  # a grid with more than this share of the rows above is not worth its cost

Operator = Callable[[np.ndarray], np.ndarray]


def graph_multigrid(W: scipy.sparse.csr_matrix, rng: np.random.Generator, threads: int) -> Operator:
    """S -> B S for the Laplacian of a connected graph of weights, and S with zero mean."""
    cycle = _cycle(laplacian(W)[0], rng, threads)

    def inverse(slope: np.ndarray) -> np.ndarray:
        step = cycle(slope)
        return step - step.mean(axis=0)

    return inverse


def _cycle(V: scipy.sparse.csr_matrix, rng: np.random.Generator, threads: int) -> Operator:
    n = V.shape[0]
    if n <= COARSEST:
        inverse = np.linalg.inv(V.toarray() + V.diagonal().mean() / n)  # of V + 11^T: V 1 = 0
        return matrix_times((inverse + inverse.T) / 2, threads)
    jacobi = DAMPING / V.diagonal()[:, None]
    times = matrix_times(V, threads)
    P = _groups(V, rng)
    if P.shape[1] > SLOWEST * n:
        return lambda slope: jacobi * slope
    coarse = scipy.sparse.csr_matrix(P.T @ V @ P)
    if coarse.nnz <= FEW_NEIGHBORS * coarse.shape[0]:
        P = scipy.sparse.csr_matrix(P - scipy.sparse.diags_array(jacobi[:, 0]) @ (V @ P))
        coarse = scipy.sparse.csr_matrix(P.T @ V @ P)
    coarse.sort_indices()
    below = _cycle(coarse, rng, threads)
    down = matrix_times(scipy.sparse.csr_matrix(P.T), threads)
    up = matrix_times(scipy.sparse.csr_matrix(P), threads)

    def cycle(slope: np.ndarray) -> np.ndarray:
        step = jacobi * slope
        step += up(below(down(slope - times(step))))
        step += jacobi * (slope - times(step))
        return step

    return cycle


def _groups(V: scipy.sparse.csr_matrix, rng: np.random.Generator) -> scipy.sparse.csr_matrix:
    """The indicator (n, groups) of a maximal set of rows no two of which are neighbors.

    A row that is no root joins the neighbor of the highest rank among the roots.
    """
    n = V.shape[0]
    rank = rng.permutation(n).astype(np.int64) + 1
    root, open_rows = np.zeros(n, bool), np.ones(n, bool)
    while open_rows.any():
        score = np.where(open_rows, rank, 0)
        highest = np.maximum.reduceat(score[V.indices], V.indptr[:-1])  # V has a diagonal
        new = open_rows & (highest == rank)
        root |= new
        open_rows &= np.maximum.reduceat(new[V.indices], V.indptr[:-1]) == 0
    owner = np.maximum.reduceat(np.where(root, rank, 0)[V.indices], V.indptr[:-1])
    _, group = np.unique(owner, return_inverse=True)
    starts = np.arange(n + 1)
    return scipy.sparse.csr_matrix((np.ones(n), group.ravel(), starts), shape=(n, group.max() + 1))
