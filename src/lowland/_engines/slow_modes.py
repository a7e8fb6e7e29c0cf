"""The slowest modes of a random walk on a graph: Laplacian eigenmaps and diffusion maps need them.

With weights w_ij = w_ji >= 0 and degrees d = W 1, the matrix S = D^(-1/2) W D^(-1/2) has the
eigenvalues of the walk D^(-1) W, the largest of which is 1 with the eigenvector sqrt(d). That one
is projected out; the modes are the pairs after it. Three ways to them:

    few rows          LAPACK
    little fill       block Lanczos on (s I - S)^(-1), s just above 1, factorized once
    all other graphs  block Lanczos on S, then on a Chebyshev polynomial of S if need be

Sheets and curves have eigenvalues so near to 1 (and to each other) that products with S part them
only after thousands of steps, but their factors are thin; graphs of many dimensions are the other
way round. How large the factors can become is known from the envelope of the matrix in the order of
Cuthill and McKee, before anything is factorized.

References
----------
von Luxburg (2007), A tutorial on spectral clustering, doi:10.1007/s11222-007-9033-z; George & Liu
(1981), Computer solution of large sparse positive definite systems; Zhou, Saad, Tiago & Chelikowsky
(2006), Self-consistent-field calculations using Chebyshev-filtered subspace iteration,
doi:10.1016/j.jcp.2006.03.017.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from lowland._core.errors import ConvergenceWarning
from lowland._core.memory import available_memory, require_memory
from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._engines.eigen import BLOCK_WIDTH, top_pairs
from lowland._engines.linalg import fix_signs

__all__ = ["SlowModes", "modes_of_matrix", "modes_of_operator", "slow_modes"]

Operator = Callable[[np.ndarray], np.ndarray]

DENSE_ROWS = 800
SHIFT = 1e-7  # how far s is above 1: far less than 1 - eigenvalue of any graph that has a map
BYTES_PER_ENTRY = 24  # of both factors
THIN = 400  # numbers of the envelope per row up to which a factorization is fast
INVERSE_TOLERANCE, INVERSE_WIDTH = 1e-9, 8
DIRECT_TOLERANCE = 1e-9
DEGREE = 40  # of the polynomial
FILTERED_WIDTH = 8


class SlowModes(NamedTuple):
    """Eigenvalues of S below the trivial 1, largest first, and unit eigenvectors in columns.

    ``residual`` is the largest |S v - l v| / (1 - l): how well the eigenvalue of the Laplacian is
    known, in relative terms.
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float


def slow_modes(
    W: scipy.sparse.csr_matrix, q: int, rng: np.random.Generator, monitor: Monitor
) -> tuple[SlowModes, np.ndarray]:
    """The q slowest modes of a connected graph of weights, and the degrees."""
    n = W.shape[0]
    degrees = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    root = 1 / np.sqrt(degrees)
    rows = np.repeat(np.arange(n), np.diff(W.indptr))
    S = scipy.sparse.csr_matrix(
        (W.data * (root[rows] * root[W.indices]), W.indices, W.indptr), (n, n)
    )
    trivial = np.sqrt(degrees / degrees.sum())
    if n <= DENSE_ROWS or q > n // 10:
        require_memory(
            32 * n * n, task=f"{q} modes of {n} rows", alternative="use fewer components"
        )
        return modes_of_matrix(S.toarray(), trivial, q, rng, monitor), degrees
    fill = _envelope(S)
    if fill <= THIN * n and BYTES_PER_ENTRY * fill <= available_memory() // 2:
        return _by_inverse(S, trivial, q, rng, monitor), degrees
    return modes_of_operator(S.__matmul__, trivial, q, rng, monitor), degrees


def modes_of_matrix(
    S: np.ndarray, trivial: np.ndarray, q: int, rng: np.random.Generator, monitor: Monitor
) -> SlowModes:
    """The q slowest modes of a dense S, its trivial unit vector given."""
    # the trivial pair is moved to the other end of the spectrum, where nobody looks
    moved = S - 3 * np.outer(trivial, trivial)
    found = top_pairs(moved, q, tol=1e-13, rng=rng, monitor=monitor)
    return _checked(S.__matmul__, found.vectors, trivial)


def _envelope(S: scipy.sparse.csr_matrix) -> int:
    """Entries that the factors of S can have, at most, in the order of Cuthill and McKee."""
    n = S.shape[0]
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(S, symmetric_mode=True)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    first = np.minimum.reduceat(place[S.indices], S.indptr[:-1])  # no row is without edges
    return int(np.maximum(place - first, 0).sum())


def _by_inverse(
    S: scipy.sparse.csr_matrix,
    trivial: np.ndarray,
    q: int,
    rng: np.random.Generator,
    monitor: Monitor,
) -> SlowModes:
    n = S.shape[0]
    with monitor.phase("factorization"):
        factors = scipy.sparse.linalg.splu(
            scipy.sparse.csc_matrix((1 + SHIFT) * scipy.sparse.identity(n) - S),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    def inverse(V: np.ndarray) -> np.ndarray:
        return _without(factors.solve(_without(V, trivial)), trivial)

    solver: dict[str, Any] = {"tol": INVERSE_TOLERANCE, "rng": rng, "monitor": monitor}
    found = top_pairs(inverse, q, order=n, width=INVERSE_WIDTH, **solver)
    return _checked(S.__matmul__, found.vectors, trivial)


def modes_of_operator(
    apply: Operator,
    trivial: np.ndarray,
    q: int,
    rng: np.random.Generator,
    monitor: Monitor,
    tol: float = DIRECT_TOLERANCE,
    width: int = BLOCK_WIDTH,
) -> SlowModes:
    """The q slowest modes of an S that only multiplies, its trivial unit vector given.

    ``width`` vectors are multiplied at a time: the more, the fewer products it takes.
    """
    n = trivial.size

    def rest(V: np.ndarray) -> np.ndarray:
        return _without(apply(_without(V, trivial)), trivial)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # then the polynomial does better
        found = top_pairs(rest, q + 1, order=n, tol=tol, rng=rng, monitor=monitor, width=width)
    if found.converged:
        return _checked(apply, found.vectors[:, :q], trivial)
    # Ritz values are never above the eigenvalues they stand for: all that is wanted lies above
    edge = float(found.values[-1])

    def amplified(V: np.ndarray) -> np.ndarray:
        """T_m((2 S - (edge - 1)) / (edge + 1)) V: at most 1 on [-1, edge], growing fast above."""
        center, half = (edge - 1) / 2, (edge + 1) / 2
        before, now = V, (rest(V) - center * V) / half
        for _ in range(DEGREE - 1):
            before, now = now, 2 * (rest(now) - center * now) / half - before
        return _without(now, trivial)

    # the polynomial does what more vectors would do: as few as can hold the modes are enough
    few = max(FILTERED_WIDTH, q + 2)
    found = top_pairs(amplified, q, order=n, tol=tol, rng=rng, monitor=monitor, width=few)
    return _checked(apply, found.vectors, trivial)


def _without(V: np.ndarray, trivial: np.ndarray) -> np.ndarray:
    return V - np.outer(trivial, trivial @ V)


def _checked(apply: Operator, V: np.ndarray, trivial: np.ndarray) -> SlowModes:
    """Eigenpairs of S in the space of V (Rayleigh and Ritz), and their residual."""
    with limit_blas(1):  # so that the number of threads cannot change a digit
        V = np.linalg.qr(_without(V, trivial))[0]
        image = apply(V)
        small = V.T @ image
        values, turn = np.linalg.eigh((small + small.T) / 2)
        values, turn = values[::-1], turn[:, ::-1]
        V, image = V @ turn, image @ turn
    gaps = np.linalg.norm(image - V * values, axis=0) / np.maximum(1 - values, 1e-14)
    return SlowModes(values, fix_signs(V), float(gaps.max(initial=0.0)))
