"""Solvers for the smallest eigenpairs of a positive semidefinite matrix; see :mod:`.eigen`.

Three solvers, chosen by cost:

    dense      LAPACK, for small matrices
    factor     block Lanczos on (M + s I)^-1 with a small shift s, by factors
    filter     block Lanczos on a Chebyshev polynomial of M, where factors would be too large

Neighbor graphs of sheets and curves have eigenvalues so close to 0, and to each other, that
products with M separate them only after thousands of steps; but their factors are sparse. Graphs of
data of high dimension have well separated eigenvalues and dense factors.

References
----------
George & Liu (1981), Computer solution of large sparse positive definite systems; Zhou, Saad, Tiago
& Chelikowsky (2006), Self-consistent-field calculations using Chebyshev-filtered subspace
iteration, doi:10.1016/j.jcp.2006.03.017.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from lowland._base.memory import available_memory, require_memory
from lowland._base.monitor import Monitor
from lowland._base.validation import is_sparse
from lowland._engines.linalg import eigen
from lowland._engines.linalg.products import matrix_times
from lowland._engines.linalg.skyline import Skyline, SkylineCholesky, plan_skyline

# A Chebyshev polynomial of a matrix, which makes small eigenvalues large.
#
# T_m maps [-1, 1] into itself, and outside it grows faster than any other such polynomial of its
# degree. With [a, b] mapped to [-1, 1], eigenvalues below a become large: 0 becomes about
# cosh(2 m sqrt(a / b)).


def low_pass(times: eigen.Operator, degree: int, a: float, b: float) -> eigen.Operator:
    """V -> T_m(((a + b) - 2 M) / (b - a)) V, with M V = ``times(V)``, by T's recurrence.

    Eigenvalues of M above a, up to b, become at most 1 in size, the smaller ones larger than 1.
    """
    center, half = (a + b) / 2, (b - a) / 2

    def filtered(V: np.ndarray) -> np.ndarray:
        before, now = V, (center * V - times(V)) / half
        for _ in range(degree - 1):
            after = times(now)
            after -= center * now
            after *= -2 / half
            after -= before
            before, now = now, after
        return now

    return filtered


# Factors of a sparse positive semidefinite matrix with a small shift, by the faster of two.
#
# SuperLU           in an order with little fill-in; faster where a row couples with few others
# SkylineCholesky   in the order along the graph, by dense algebra; faster where it couples with
#                   many


FIRST_SHIFT, LAST_SHIFT = 1e-13, 1e-6  # relative to the norm
FEW_ENTRIES, LOW = 24, 400  # entries and mean height of a row up to which SuperLU is faster


class Inverse(NamedTuple):
    """``solve(V)`` = (M + shift I)^-1 V."""

    solve: eigen.Operator
    shift: float


def inverse_of(M: Any, norm: float, plan: Skyline, threads: int) -> Inverse | None:
    """(M + s I)^-1 with the smallest shift s for which factors exist; None: M is indefinite."""
    n, shift = M.shape[0], FIRST_SHIFT * norm
    thin = M.nnz <= FEW_ENTRIES * n and plan.n_bytes <= 8 * LOW * n
    while shift < LAST_SHIFT * norm:
        try:
            if thin:
                return Inverse(_superlu(M, shift), shift)
            return Inverse(SkylineCholesky(M, plan, shift, threads).solve, shift)
        except np.linalg.LinAlgError:
            shift *= 30.0
    return None


def _superlu(M: Any, shift: float) -> eigen.Operator:
    shifted = scipy.sparse.csc_matrix(M + shift * scipy.sparse.identity(M.shape[0]))
    try:
        factors = scipy.sparse.linalg.splu(
            shifted,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError as error:  # "Factor is exactly singular"
        raise np.linalg.LinAlgError(str(error)) from error
    return factors.solve


MOST_FLOPS = 1e12  # of a factorization: about a minute
ROUNDING = 1e-10  # eigenvalues below this share of the norm cannot be distinguished reliably
DEGREES = (20, 80, 320)  # of the filter, until the residual is small enough
LANCZOS_TOLERANCE = 1e-7  # relative to the largest value of the operator
INVERSE_TOLERANCE = 1e-9  # the same for the inverse, where one more digit costs little
DENSE_TOLERANCE = 1e-10  # the same where M is a function: then Lanczos costs less than products
RESOLVED = 1e-3  # of the largest value: smaller ones are less accurate
MOST_STEPS = 6  # of the filter alone, after Lanczos
PROMISING = 0.1  # residual of a first filter below which a second is tried before factors
PRODUCT_WIDTH = 48  # vectors: a product with all pairs is expensive, and wide blocks need fewer
FACTOR_COST = 1e5  # operations per entry of M, above which a short filter is tried first


class SmallestPairs(NamedTuple):
    """Eigenvalues, smallest first, never negative; unit eigenvectors in columns, signs fixed.

    Attributes
    ----------
    residual : float
        The largest |M v - l v| over the pairs, relative to the largest l of them, or to 1e-10 |M|
        where that is more.
    solver : str
        "dense", "factor" or "filter".
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float
    solver: str


def solve_smallest(
    problem: SmallestProblem, M: Any, solver: str, ordering: np.ndarray | None, threads: int
) -> SmallestPairs:
    """The pairs by the named solver, or with "auto" by the one that costs least."""
    n = len(problem.known)
    if solver == "dense" or (solver == "auto" and eigen.is_small(n, problem.n_pairs)):
        return problem.finish(_by_lapack(problem, M), "dense")
    if not is_sparse(M):  # products are expensive, and often a few are enough
        return _by_filter(problem, (1, *DEGREES))
    plan = plan_skyline(M, ordering)
    if solver == "filter":
        return _reordered_filter(problem, M, plan, threads, DEGREES)
    if solver == "auto" and plan.flops > FACTOR_COST * M.nnz:
        tried = _reordered_filter(problem, M, plan, threads, DEGREES[:2], PROMISING)
        if tried.residual <= problem.tol:
            return tried
    feasible = plan.flops <= MOST_FLOPS and plan.n_bytes < available_memory()
    if solver == "factor" or feasible:
        with problem.monitor.phase("factors"):
            inverse = inverse_of(M, problem.norm, plan, threads)
        if inverse is not None:
            return problem.finish(_by_inverse(problem, inverse), "factor")
    return _reordered_filter(problem, M, plan, threads, DEGREES)


class SmallestProblem(NamedTuple):
    """M as a product, the known vectors (n, 0) or (n, 1), a bound of |M|, and what is asked."""

    times: eigen.Operator
    known: np.ndarray
    norm: float
    n_pairs: int
    tol: float
    rng: np.random.Generator
    monitor: Monitor

    def without_known(self, V: np.ndarray) -> np.ndarray:
        return V - self.known @ (self.known.T @ V)

    def finish(self, V: np.ndarray, solver: str) -> SmallestPairs:
        """The Ritz pairs in the span of V, and their residual."""
        V = np.linalg.qr(self.without_known(V))[0]
        V = np.linalg.qr(self.without_known(V))[0]
        image = self.times(V)
        small = V.T @ image
        values, turn = scipy.linalg.eigh((small + small.T) / 2, check_finite=False)
        V, image = V @ turn, image @ turn
        scale = max(float(values[-1]), ROUNDING * self.norm)
        residual = float(np.linalg.norm(image - V * values, axis=0).max() / scale)
        return SmallestPairs(np.maximum(values, 0.0), eigen.fix_signs(V), residual, solver)


def _by_lapack(problem: SmallestProblem, M: Any) -> np.ndarray:
    """The known vector is shifted to the top of the spectrum, where it is not computed."""
    n = len(problem.known)
    require_memory(
        32 * n * n,
        task=f"{problem.n_pairs} eigenvectors of {n} rows",
        alternative="use fewer components",
    )
    dense = M(np.eye(n)) if callable(M) else M.toarray() if is_sparse(M) else M
    dense = dense + 2 * problem.norm * (problem.known @ problem.known.T)
    return eigen.lapack_pairs(dense, 0, problem.n_pairs - 1)[1]


def _by_inverse(problem: SmallestProblem, inverse: Inverse) -> np.ndarray:
    """Vectors whose span holds the pairs, from products with the inverse.

    Where some eigenvalues are 0 up to the shift, the inverse resolves only those: the others are
    computed in a second round, with the first ones known.
    """
    found = np.empty((len(problem.known), 0))
    while (missing := problem.n_pairs - found.shape[1]) > 0:
        rest = problem._replace(
            known=np.linalg.qr(np.column_stack([problem.known, found]))[0], n_pairs=missing
        )
        top = _lanczos(rest, inverse.solve, problem.n_pairs + 2, INVERSE_TOLERANCE)
        seen = top.values > RESOLVED * top.values[0]
        seen[0] = True
        # one more step, and a correction of it, remove what rounding left along large eigenvalues
        V = top.vectors[:, seen]
        near = inverse.solve(V)
        near += inverse.solve(V - problem.times(near) - inverse.shift * near)
        found = np.column_stack([found, near])
    return found


def _lanczos(
    problem: SmallestProblem, operator: eigen.Operator, width: int, tol: float = LANCZOS_TOLERANCE
) -> eigen.LargestPairs:
    """Largest pairs of an operator on the complement of the known vectors."""
    tol = min(tol, RESOLVED * problem.tol)
    n_pairs, rng, monitor, known = problem.n_pairs, problem.rng, problem.monitor, problem.known
    return eigen.block_lanczos(operator, eigen.Wanted(n_pairs, tol, rng, monitor, width, known))


def _cleaned(
    problem: SmallestProblem, filtered: eigen.Operator, found: SmallestPairs
) -> SmallestPairs:
    """More steps of the filter, as long as each reduces the residual by a factor of 4.

    Lanczos stops at a share of the filter's largest value, which can be much larger than the
    eigenvalues asked for.
    """
    for _ in range(MOST_STEPS):
        if found.residual <= problem.tol:
            break
        next_one = problem.finish(filtered(found.vectors), found.solver)
        if not next_one.residual < found.residual / 4:
            break
        found = next_one
    return found


def _reordered_filter(
    problem: SmallestProblem,
    M: Any,
    plan: Skyline,
    threads: int,
    degrees: tuple[int, ...],
    promising: float = np.inf,
) -> SmallestPairs:
    """The filter on reordered rows: rows that share entries are adjacent and share cache lines."""
    order = plan.order
    lined = M[order][:, order]
    there = problem._replace(times=matrix_times(lined, threads), known=problem.known[order])
    found = _by_filter(there, degrees, promising)
    vectors = np.empty_like(found.vectors)
    vectors[order] = found.vectors
    return found._replace(vectors=eigen.fix_signs(vectors))


def _by_filter(
    problem: SmallestProblem, degrees: tuple[int, ...], promising: float = np.inf
) -> SmallestPairs:
    """T_m maps [a, |M|] into [-1, 1] and grows steeply below a: small eigenvalues become large.

    a = 10 |M| / m^2 is where degree m makes 0 some hundred times as large as anything above a;
    Lanczos on the filtered matrix separates smaller differences than these. The degree grows until
    the residual is within the tolerance, or is above ``promising``. Ritz values are never below the
    eigenvalues, so that an a above them is above the eigenvalues asked for. Degree 1 is M itself,
    with wider blocks.
    """
    best: SmallestPairs | None = None
    tol = DENSE_TOLERANCE if degrees[0] == 1 else LANCZOS_TOLERANCE
    for degree in degrees:
        a = 10 * problem.norm / degree**2
        if best is not None:
            a = max(a, 1.2 * float(best.values[-1]))
        filtered = low_pass(problem.times, degree, min(a, problem.norm / 2), problem.norm)
        width = PRODUCT_WIDTH if degree == 1 else max(4, problem.n_pairs + 2)
        top = _lanczos(problem, filtered, width, tol)
        found = _cleaned(problem, filtered, problem.finish(top.vectors, "filter"))
        if best is None or found.residual < best.residual:
            best = found
        if best.residual <= problem.tol or best.residual > promising:
            break
    assert best is not None
    return best
