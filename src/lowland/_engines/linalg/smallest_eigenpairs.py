"""The smallest eigenpairs of a symmetric positive semidefinite matrix, without a known one.

    found = smallest_eigenpairs(M, 2, tol=1e-6, rng=rng, monitor=monitor, along=along)

M is a sparse or dense matrix, or a function V -> M V with a bound of its norm. The trivial vector,
of which the eigenvalue 0 is known beforehand, is taken out by projection: where several eigenvalues
are 0 no position would tell it from the others. Three roads, by cost:

    dense      LAPACK, for small matrices
    factor     block Lanczos on (M + s I)^-1 with a small shift s, by factors
    filter     block Lanczos on a Chebyshev polynomial of M, where factors would be too large

Sheets and curves have eigenvalues so near to 0 (and to each other) that products with M part them
only after thousands of steps, but their factors are thin; graphs of many dimensions are the other
way round. A generalized problem A v = l D v with a diagonal D is that of D^-1/2 A D^-1/2. All dense
steps run on one BLAS thread and products sum in one order, so that the number of threads cannot
change a digit.

References
----------
George & Liu (1981), Computer solution of large sparse positive definite systems; Zhou, Saad, Tiago
& Chelikowsky (2006), Self-consistent-field calculations using Chebyshev-filtered subspace
iteration, doi:10.1016/j.jcp.2006.03.017.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from lowland._core.errors import ConvergenceWarning
from lowland._core.memory import available_memory, require_memory
from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._core.validation import is_sparse
from lowland._engines.linalg.chebyshev import low_pass
from lowland._engines.linalg.dense_eigen import DENSE_ORDER, fix_signs, some_pairs
from lowland._engines.linalg.factors import Inverse, inverse_of
from lowland._engines.linalg.largest_eigenpairs import (
    LargestEigenpairs,
    Operator,
    largest_eigenpairs,
)
from lowland._engines.linalg.products import matrix_times
from lowland._engines.linalg.skyline import Skyline, plan_skyline

__all__ = ["SmallestEigenpairs", "smallest_eigenpairs"]

MOST_FLOPS = 1e12  # of a factor: about a minute
ROUNDING = 1e-10  # eigenvalues below this share of the norm are not told apart reliably
DEGREES = (20, 80, 320)  # of the filter, until the residual is small enough
LANCZOS_TOLERANCE = 1e-7  # relative to the largest value of the operator, if not less is needed
INVERSE_TOLERANCE = 1e-9  # the same for the inverse, where a digit more costs little
DENSE_TOLERANCE = 1e-10  # the same where M is a function: then Lanczos is cheap beside products
TOLD_APART = 1e-3  # of the largest value: what is smaller is not known as well
MOST_STEPS = 6  # of the filter alone, after Lanczos
PROMISING = 0.1  # residual of a first filter, with which a second is tried before factors
PRODUCT_WIDTH = 48  # vectors: products with all pairs are dear, and more vectors need fewer
FACTOR_COST = 1e5  # operations per entry of M, above which a short filter is tried first


class SmallestEigenpairs(NamedTuple):
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


def smallest_eigenpairs(
    M: Any,
    n_pairs: int,
    *,
    tol: float,
    rng: np.random.Generator,
    monitor: Monitor,
    threads: int = 1,
    along: np.ndarray | None = None,
    trivial: np.ndarray | None = None,
    norm: float | None = None,
    road: str = "auto",
) -> SmallestEigenpairs:
    """The ``n_pairs`` smallest eigenpairs of M orthogonal to ``trivial``, by value.

    Parameters
    ----------
    M : CSR matrix, ndarray or callable
        Symmetric, positive semidefinite, with M @ trivial = 0. A function needs ``trivial`` and
        ``norm``.
    tol : float
        A ``ConvergenceWarning`` says when the residual is larger.
    along : ndarray of shape (n,) or None
        Numbers that are near for rows that share entries of M, such as :func:`line_up` gives; they
        make factors cheaper and change nothing else.
    trivial : ndarray of shape (n,) or None
        The vector to leave out; None is the constant one.
    norm : float or None
        No eigenvalue is larger; None: the largest sum of a row.
    road : str
        "auto" takes the cheapest.
    """
    known = np.ones(M.shape[0]) if trivial is None else np.asarray(trivial, dtype=np.float64)
    known = known[:, None] / np.linalg.norm(known)
    if norm is None:
        norm = float(np.asarray(abs(M).sum(axis=1)).max(initial=0.0)) or 1.0
    problem = _Problem(matrix_times(M, threads), known, norm, n_pairs, tol, rng, monitor)
    with limit_blas(1):
        found = _solve(problem, M, road, along, threads)
    if found.residual > tol:
        warnings.warn(
            "the last coordinates may be inexact: the eigensolver stopped at a relative residual "
            f"of {found.residual:.1e} (tol={tol:g}); ask for fewer components or change "
            "n_neighbors.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return found


def _solve(
    problem: _Problem, M: Any, road: str, along: np.ndarray | None, threads: int
) -> SmallestEigenpairs:
    n = len(problem.known)
    small = n <= DENSE_ORDER or problem.n_pairs > n // 10
    if road == "dense" or (road == "auto" and small):
        return problem.finish(_by_lapack(problem, M), "dense")
    if not is_sparse(M):  # products are dear, and often some are enough
        return _by_filter(problem, (1, *DEGREES))
    plan = plan_skyline(M, along)
    if road == "filter":
        return _reordered_filter(problem, M, plan, threads, DEGREES)
    if road == "auto" and plan.flops > FACTOR_COST * M.nnz:
        tried = _reordered_filter(problem, M, plan, threads, DEGREES[:2], PROMISING)
        if tried.residual <= problem.tol:
            return tried
    feasible = plan.flops <= MOST_FLOPS and plan.n_bytes < available_memory()
    if road == "factor" or feasible:
        with problem.monitor.phase("factors"):
            inverse = inverse_of(M, problem.norm, plan, threads)
        if inverse is not None:
            return problem.finish(_by_inverse(problem, inverse), "factor")
    return _reordered_filter(problem, M, plan, threads, DEGREES)


class _Problem(NamedTuple):
    times: Operator
    known: np.ndarray
    norm: float
    n_pairs: int
    tol: float
    rng: np.random.Generator
    monitor: Monitor

    def without_known(self, V: np.ndarray) -> np.ndarray:
        return V - self.known @ (self.known.T @ V)

    def finish(self, V: np.ndarray, road: str) -> SmallestEigenpairs:
        """The best pairs within the span of V (Rayleigh and Ritz), and how good they are."""
        V = np.linalg.qr(self.without_known(V))[0]
        V = np.linalg.qr(self.without_known(V))[0]
        image = self.times(V)
        small = V.T @ image
        values, turn = scipy.linalg.eigh((small + small.T) / 2, check_finite=False)
        V, image = V @ turn, image @ turn
        scale = max(float(values[-1]), ROUNDING * self.norm)
        residual = float(np.linalg.norm(image - V * values, axis=0).max() / scale)
        return SmallestEigenpairs(np.maximum(values, 0.0), fix_signs(V), residual, road)


def _by_lapack(problem: _Problem, M: Any) -> np.ndarray:
    """The known vector is moved to the top of the spectrum, where nobody asks for it."""
    n = len(problem.known)
    require_memory(
        32 * n * n,
        task=f"{problem.n_pairs} eigenvectors of {n} rows",
        alternative="use fewer components",
    )
    dense = M(np.eye(n)) if callable(M) else M.toarray() if is_sparse(M) else M
    dense = dense + 2 * problem.norm * (problem.known @ problem.known.T)
    return some_pairs(dense, 0, problem.n_pairs - 1)[1]


def _by_inverse(problem: _Problem, inverse: Inverse) -> np.ndarray:
    """Vectors whose span holds the pairs, from products with the inverse.

    Where some eigenvalues are 0 but for the shift, the others vanish beside them in the inverse:
    they are looked for again once the first are known.
    """
    found = np.empty((len(problem.known), 0))
    while (missing := problem.n_pairs - found.shape[1]) > 0:
        rest = problem._replace(
            known=np.linalg.qr(np.column_stack([problem.known, found]))[0], n_pairs=missing
        )
        top = _lanczos(rest, inverse.solve, problem.n_pairs + 2, INVERSE_TOLERANCE)
        seen = top.values > TOLD_APART * top.values[0]
        seen[0] = True
        # one more step, and a correction of it, take out what rounding left along large eigenvalues
        V = top.vectors[:, seen]
        near = inverse.solve(V)
        near += inverse.solve(V - problem.times(near) - inverse.shift * near)
        found = np.column_stack([found, near])
    return found


def _lanczos(
    problem: _Problem, operator: Operator, width: int, tol: float = LANCZOS_TOLERANCE
) -> LargestEigenpairs:
    """Top pairs of an operator on the complement of the known vector."""

    def apply(V: np.ndarray) -> np.ndarray:
        return problem.without_known(operator(problem.without_known(V)))

    with warnings.catch_warnings():  # what counts is the residual of M, measured afterwards
        warnings.simplefilter("ignore", ConvergenceWarning)
        return largest_eigenpairs(
            apply,
            problem.n_pairs,
            order=len(problem.known),
            tol=min(tol, TOLD_APART * problem.tol),
            rng=problem.rng,
            monitor=problem.monitor,
            width=width,
        )


def _cleaned(
    problem: _Problem, filtered: Operator, found: SmallestEigenpairs
) -> SmallestEigenpairs:
    """More steps of the filter, as long as each takes out much of what is left of large values.

    Lanczos stops at a share of the filter's largest value; beside eigenvalues of nearly 0 that
    can be a lot.
    """
    for _ in range(MOST_STEPS):
        if found.residual <= problem.tol:
            break
        next_one = problem.finish(filtered(found.vectors), found.road)
        if not next_one.residual < found.residual / 4:
            break
        found = next_one
    return found


def _reordered_filter(
    problem: _Problem,
    M: Any,
    plan: Skyline,
    threads: int,
    degrees: tuple[int, ...],
    promising: float = np.inf,
) -> SmallestEigenpairs:
    """The filter, with rows that share entries side by side: they then share cache lines."""
    order = plan.order
    lined = M[order][:, order]
    there = problem._replace(times=matrix_times(lined, threads), known=problem.known[order])
    found = _by_filter(there, degrees, promising)
    vectors = np.empty_like(found.vectors)
    vectors[order] = found.vectors
    return found._replace(vectors=fix_signs(vectors))


def _by_filter(
    problem: _Problem, degrees: tuple[int, ...], promising: float = np.inf
) -> SmallestEigenpairs:
    """T_m maps [a, |M|] into [-1, 1] and grows steeply below a: small eigenvalues become large.

    a = 10 |M| / m^2 is where degree m makes 0 some hundred times as large as anything above a;
    Lanczos on top of it resolves far less. The degree grows until the residual suffices, or is no
    longer promising. Values found are never too small, so that an a above them is above the
    eigenvalues looked for. Degree 1 is M itself, with more vectors at a time, as nothing else makes
    one product worth more.
    """
    best: SmallestEigenpairs | None = None
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
