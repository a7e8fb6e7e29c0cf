"""Laplacians of weighted graphs, as matrices and as functions that multiply by them.

With weights w_ij = w_ji >= 0 and degrees d_i = sum_j w_ij (a weight w_ii counts once),

    unnormalized  L = D - W
    symmetric     L = I - D^-1/2 W D^-1/2,   eigenvalues 0 to 2, null vector d^1/2

The random walk D^-1 W has the eigenvalues 1 - l of the symmetric form and the right eigenvectors
D^-1/2 v, so it needs no separate matrix.

Reference: von Luxburg (2007), A tutorial on spectral clustering, Statistics and Computing 17,
doi:10.1007/s11222-007-9033-z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.errors import ParameterError, unknown_name
from lowland._engines.graphs.weights import checked_graph, row_numbers
from lowland._engines.linalg.eigen import smallest_eigenpairs
from lowland._engines.linalg.products import matrix_times

KINDS = ["unnormalized", "symmetric"]


def laplacian(
    W: Any, kind: Literal["unnormalized", "symmetric"] = "unnormalized"
) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """The Laplacian of a graph of weights (not distances), and the degrees.

    A row without weights becomes a row of zeros, so that the multiplicity of the eigenvalue 0 is
    the number of components for both kinds. Exactly symmetric if W is. O(edges).
    """
    if kind not in KINDS:
        raise ParameterError(unknown_name("Laplacian", kind, KINDS))
    W = checked_graph(W, "W", keep_loops=True)
    rows = row_numbers(W)
    weights = W.data.astype(np.float64)
    degrees = np.bincount(rows, weights, minlength=W.shape[0]).astype(np.float64)  # ints if empty
    diagonal = degrees
    if kind == "symmetric":
        diagonal = (degrees > 0).astype(np.float64)
        root = np.sqrt(np.where(degrees > 0, degrees, 1.0))
        weights = weights / (root[rows] * root[W.indices])
    off = scipy.sparse.csr_matrix((-weights, W.indices, W.indptr), shape=W.shape)
    L = (scipy.sparse.diags_array(diagonal, format="csr") + off).astype(W.dtype)
    return scipy.sparse.csr_matrix(L), degrees.astype(W.dtype)


def laplacian_product(
    times: Callable[[np.ndarray], np.ndarray], degrees: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """V -> V - D^-1/2 W D^-1/2 V for weights that are known only by ``times(V) = W V``."""
    root = 1 / np.sqrt(degrees)[:, None]

    def product(V: np.ndarray) -> np.ndarray:
        return V - root * times(root * V)

    return product


# The leading eigenpairs of a random walk on a graph, for spectral maps.
#
# With weights w_ij = w_ji >= 0 and degrees d = W 1, the matrix S = D^(-1/2) W D^(-1/2) has the
# eigenvalues of the walk D^(-1) W. The largest is 1 with the eigenvector sqrt(d). The pairs after
# it are the smallest ones of the symmetric Laplacian I - S, whose norm is at most 2.
#
# References
# ----------
# von Luxburg (2007), A tutorial on spectral clustering, doi:10.1007/s11222-007-9033-z.


TOLERANCE = 1e-4


class GraphSpectrum(NamedTuple):
    """Eigenvalues of S after the trivial 1, largest first, and unit eigenvectors in columns.

    ``residual`` is the largest |S v - l v| relative to the largest 1 - l.
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float


def graph_spectrum(
    W: scipy.sparse.csr_matrix, q: int, run: FitContext
) -> tuple[GraphSpectrum, np.ndarray]:
    """The q leading eigenpairs of S for a connected graph of weights, and the degrees."""
    L, degrees = laplacian(W, "symmetric")
    return laplacian_spectrum(L, np.sqrt(degrees), q, run), degrees


def laplacian_spectrum(L: Any, trivial: np.ndarray, q: int, run: FitContext) -> GraphSpectrum:
    """The same from I - S, a matrix or a function that multiplies by it, and sqrt(d)."""
    found = smallest_eigenpairs(L, q, run, tol=TOLERANCE, trivial=trivial, norm=2.0)
    return GraphSpectrum(1 - found.values, found.vectors, found.residual)


# Places of new rows from their distances to fitted rows (Nystroem's formula).
#
# y(x) = sum_j p(x, x_j) y_j / lambda,    p(x, x_j) = w(x, x_j) / sum_j w(x, x_j)


SMALLEST_DIVISOR = 0.05  # smaller 1 - lambda would only amplify the noise of new rows


def weighted_sum(weights: np.ndarray, indices: np.ndarray, places: np.ndarray) -> np.ndarray:
    """sum_j weights_ij places[indices_ij], one row per new row.

    The sum runs over the columns of ``weights``, so a result does not depend on the other rows.
    """
    Z = np.zeros((len(weights), places.shape[1]))
    for weight, index in zip(weights.T, indices.T, strict=True):
        Z += weight[:, None] * places[index]
    return Z


def heat_exponents(distances: np.ndarray, bandwidth: float) -> np.ndarray:
    """(min d^2 - d^2) / bandwidth of each new row: the exponents of its weights.

    Subtracting the smallest square changes no p. The nearest row gets the exponent 0, so that a
    new row far from all fitted rows has a weight that does not underflow.
    """
    d = distances.astype(np.float64) / np.sqrt(bandwidth)
    nearest = d.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # the exponent -infinity has the weight 0
        return -(d - nearest) * (d + nearest)


def nystrom_divisors(eigenvalues: np.ndarray) -> np.ndarray:
    """1 - lambda for the eigenvalues of a normalized Laplacian; 1 where that is below 0.05."""
    divisors = 1 - eigenvalues
    return np.where(divisors > SMALLEST_DIVISOR, divisors, 1.0)


# A multigrid V-cycle for the Laplacian V of a graph: an approximate V^+ in O(edges).
#
# Steps that are preconditioned by the degrees alone move a point about as far as its neighbors let
# it go: a sheet of n points then needs some sqrt(n) steps to bend as a whole. Here rows are grouped
# around roots that are not neighbors of each other; each group is one row of a coarser Laplacian
# P^T V P, and so on, until a dense inverse is cheap. On each grid, damped Jacobi steps before and
# after smooth what the coarser grids cannot see. The columns of P are the groups, on graphs of few
# neighbors smoothed by a Jacobi step.
#
# The cycle is symmetric and its steps never overshoot: the eigenvalues of B V are between 0 and 1,
# so that B^-1 lies above V, as a majorizer needs it.
#
# References: Vanek, Mandel & Brezina (1996), Algebraic multigrid by smoothed aggregation, Computing
# 56, doi:10.1007/BF02238511; Luby (1986) for the roots.


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

    A row that is not a root joins the neighbor of the highest rank among the roots.
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
