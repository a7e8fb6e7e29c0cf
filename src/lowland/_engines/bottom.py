"""The smallest eigenpairs of a sparse symmetric positive semidefinite matrix, without a known one.

    found = bottom_pairs(M, 2, tol=1e-6, rng=rng, monitor=monitor, along=along)

The trivial vector, of which the eigenvalue 0 is known beforehand, is taken out by projection: where
several eigenvalues are 0 no position would tell it from the others. Three roads, by cost:

    dense      LAPACK, for small matrices
    factor     block Lanczos on (M + s I)^{-1} with a small shift s, by Cholesky factors
    filter     block Lanczos on a Chebyshev polynomial of M, where factors would be too large

All dense steps run on one BLAS thread and products sum in one order, so that the number of
threads cannot change a digit.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from lowland import _native
from lowland._core.errors import ConvergenceWarning
from lowland._core.memory import available_memory
from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._engines.block_cholesky import BlockCholesky, Plan, plan_blocks
from lowland._engines.eigen import Operator, TopPairs, top_pairs
from lowland._engines.linalg import DENSE_ORDER, fix_signs

__all__ = ["BottomPairs", "bottom_pairs"]

MOST_FLOPS = 1e12  # of a factor: about a minute
FIRST_SHIFT = 1e-13  # relative to the norm of M; grown until M + s I is positive definite
ROUNDING = 1e-10  # eigenvalues below this share of the norm are not told apart reliably
DEGREES = (40, 160, 640)  # of the filter, until the residual is small enough
FACTOR_COST = 1e5  # operations per entry of M that are as long as a filter of the first degree


class BottomPairs(NamedTuple):
    """Eigenvalues, smallest first, never negative; unit eigenvectors in columns, signs fixed.

    Attributes
    ----------
    residual : float
        The largest |M v - l v| over the pairs, relative to the largest l of them, or to 1e-10 |M|
        where that is more.
    road : str
        "dense", "factor" or "filter".
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float
    road: str


def bottom_pairs(
    M: scipy.sparse.csr_matrix,
    n_pairs: int,
    *,
    tol: float,
    rng: np.random.Generator,
    monitor: Monitor,
    threads: int = 1,
    along: np.ndarray | None = None,
    trivial: np.ndarray | None = None,
    road: str = "auto",
) -> BottomPairs:
    """The ``n_pairs`` smallest eigenpairs of M orthogonal to ``trivial``, by value.

    Parameters
    ----------
    M : CSR matrix
        Symmetric, positive semidefinite, with M @ trivial = 0.
    tol : float
        A ``ConvergenceWarning`` says when the residual is larger.
    along : ndarray of shape (n,) or None
        Numbers that are near for rows that share entries of M, such as :func:`line_up` gives; they
        make factors cheaper and change nothing else.
    trivial : ndarray of shape (n,) or None
        The vector to leave out; None is the constant one.
    road : str
        "auto" takes the cheapest.
    """
    n = M.shape[0]
    known = np.ones(n) if trivial is None else np.asarray(trivial, dtype=np.float64)
    known = known / np.linalg.norm(known)
    norm = float(abs(M).sum(axis=1).max()) if M.nnz else 0.0
    problem = _Problem(M, known, norm or 1.0, n_pairs, tol, rng, monitor, threads)
    with limit_blas(1):
        found = _solve(problem, road, along)
    if found.residual > tol:
        warnings.warn(
            "the last coordinates may be inexact: the eigensolver stopped at a relative residual "
            f"of {found.residual:.1e} (tol={tol:g}); ask for fewer components or change "
            "n_neighbors.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return found


def _solve(problem: _Problem, road: str, along: np.ndarray | None) -> BottomPairs:
    n = len(problem.known)
    small = n <= DENSE_ORDER or problem.n_pairs > n // 10
    if road == "dense" or (road == "auto" and small):
        return problem.finish(_by_lapack(problem), "dense")
    if road == "filter":
        return _by_filter(problem, DEGREES)
    plan = plan_blocks(problem.M, along)
    tried = None
    if road == "auto" and plan.flops > FACTOR_COST * problem.M.nnz:
        tried = _by_filter(problem, DEGREES[:1])
        if tried.residual <= problem.tol:
            return tried
    feasible = plan.flops <= MOST_FLOPS and plan.n_bytes < available_memory()
    if road == "factor" or feasible:
        factor = _factor(problem, plan)
        if factor is not None:
            found = _lanczos(problem, factor.solve, 1e-10)
            # one more step takes out what rounding left along large eigenvalues
            return problem.finish(factor.solve(found.vectors), "factor")
    return _by_filter(problem, DEGREES, tried)


class _Problem(NamedTuple):
    M: scipy.sparse.csr_matrix
    known: np.ndarray
    norm: float
    n_pairs: int
    tol: float
    rng: np.random.Generator
    monitor: Monitor
    threads: int

    def without_known(self, V: np.ndarray) -> np.ndarray:
        return V - self.known[:, None] * (self.known @ V)

    def times(self, V: np.ndarray) -> np.ndarray:
        """M V, each row summed in one order."""
        V, out = np.ascontiguousarray(V), np.empty(V.shape)
        zero = np.zeros(V.shape[1])
        M = self.M
        _native.sparse_times(M.indptr, M.indices, M.data, V, zero, out, self.threads)
        return out

    def finish(self, V: np.ndarray, road: str) -> BottomPairs:
        """The best pairs within the span of V, and how good they are."""
        V = np.linalg.qr(self.without_known(V))[0]
        V = np.linalg.qr(self.without_known(V))[0]
        image = self.times(V)
        small = V.T @ image
        values, turn = scipy.linalg.eigh((small + small.T) / 2, check_finite=False)
        V, image = V @ turn, image @ turn
        scale = max(float(values[-1]), ROUNDING * self.norm)
        residual = float(np.linalg.norm(image - V * values, axis=0).max() / scale)
        return BottomPairs(np.maximum(values, 0.0), fix_signs(V), residual, road)


def _by_lapack(problem: _Problem) -> np.ndarray:
    """The known vector is moved to the top of the spectrum, where nobody asks for it."""
    dense = problem.M.toarray() + 2 * problem.norm * np.outer(problem.known, problem.known)
    last = problem.n_pairs - 1
    return scipy.linalg.eigh(dense, subset_by_index=[0, last], check_finite=False)[1]


def _factor(problem: _Problem, plan: Plan) -> BlockCholesky | None:
    """Factors of M + s I with the smallest shift that rounding allows; None: M is indefinite."""
    shift = FIRST_SHIFT * problem.norm
    with problem.monitor.phase("factors"):
        while shift < 1e-6 * problem.norm:
            try:
                return BlockCholesky(problem.M, plan, shift)
            except np.linalg.LinAlgError:
                shift *= 30.0
    return None


def _lanczos(problem: _Problem, operator: Operator, tol: float) -> TopPairs:
    """Top pairs of an operator on the complement of the known vector."""

    def apply(V: np.ndarray) -> np.ndarray:
        return problem.without_known(operator(problem.without_known(V)))

    with warnings.catch_warnings():  # what counts is the residual of M, measured afterwards
        warnings.simplefilter("ignore", ConvergenceWarning)
        return top_pairs(
            apply,
            problem.n_pairs,
            order=len(problem.known),
            tol=tol,
            rng=problem.rng,
            monitor=problem.monitor,
            width=min(16, problem.n_pairs + 2),
        )


def _by_filter(
    problem: _Problem, degrees: tuple[int, ...], best: BottomPairs | None = None
) -> BottomPairs:
    """T_m maps [a, |M|] into [-1, 1] and grows steeply below a: small eigenvalues become large.

    a = 4 |M| / m^2 is what degree m can resolve; Lanczos on top of it resolves far less. The degree
    grows until the residual suffices. Values found are never too small, so that an a above them is
    above the eigenvalues that are looked for.
    """
    for degree in degrees:
        a = 4 * problem.norm / degree**2
        if best is not None:
            a = max(a, 1.2 * float(best.values[-1]))
        a = min(a, problem.norm / 2)

        def filtered(V: np.ndarray, degree: int = degree, a: float = a) -> np.ndarray:
            return _chebyshev(problem, V, degree, a)

        found = problem.finish(_lanczos(problem, filtered, 1e-12).vectors, "filter")
        if best is None or found.residual < best.residual:
            best = found
        if best.residual <= problem.tol:
            break
    assert best is not None
    return best


def _chebyshev(problem: _Problem, V: np.ndarray, degree: int, a: float) -> np.ndarray:
    """T_m((2 M - (a + b)) / (b - a)) V by its recurrence, times (-1)^m: 0 comes out on top."""
    center, half = (a + problem.norm) / 2, (problem.norm - a) / 2

    def mapped(W: np.ndarray) -> np.ndarray:
        return (center * W - problem.times(W)) / half

    before, now = V, mapped(V)
    for _ in range(degree - 1):
        before, now = now, 2 * mapped(now) - before
    return now
