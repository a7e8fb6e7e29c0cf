"""Eigenproblems and singular values: the only module of the package that solves them.

    all_eigenpairs(A)                    A v = l v, all pairs of a small matrix, or of a stack
    eigenvalues(A)                       the values alone
    largest_eigenpairs(A, q)             of a dense matrix, or of a function V -> A V
    smallest_eigenpairs(M, q, ...)       of a sparse or dense matrix, or of a function V -> M V
    generalized_eigenpairs(A, B, q)      A v = l B v
    thin_svd(A)                          A = U S V^T
    general_eigenvalues(A)               of a matrix that is not symmetric

Decided here, for all of them:

order       by value: largest first, or smallest first if the name states it
signs       the entry of a vector that is largest in absolute value is positive (``fix_signs``)
trivial     a known eigenvector is left out by projection, not by its position: where several
            eigenvalues are equal, its position is arbitrary
residual    measured and returned by the iterative solvers; a ``ConvergenceWarning`` names it when
            it is above the tolerance
threads     all dense steps run on one BLAS thread, so that the number of threads cannot change a
            digit
scale       an extreme matrix is multiplied by a power of two first
solver      LAPACK for small matrices or many pairs, else ARPACK (dense, semidefinite), block
            Lanczos (dense, operators), factors or a Chebyshev filter (smallest pairs)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.errors import ConvergenceWarning
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._engines.linalg.products import matrix_times

# Block Lanczos: the largest eigenpairs of a symmetric operator.
#
# With an orthonormal basis Q of the Krylov space, C Q = Q T + Q_next R E^T: T = Q^T C Q is small,
# its eigenpairs (l, y) give those of C as (l, Q y), and |R y_last| is their residual
# |C Q y - l Q y|. The basis grows, fully reorthogonalized, until all residuals are small enough.
#
# References: Golub & Underwood (1977), The block Lanczos method for computing eigenvalues; Musco &
# Musco (2015), Randomized block Krylov methods, NIPS 28, on random starts.


Operator = Callable[[np.ndarray], np.ndarray]

# Vectors per product: enough to use each number of A several times, few enough to converge.
BLOCK_WIDTH = 16


class LargestPairs(NamedTuple):
    """Eigenvalues, largest first, and unit eigenvectors in columns; how accurate they are.

    Attributes
    ----------
    residual : float
        The largest |A v - l v| over the pairs, relative to the largest |l|, of either end.
    lowest : float
        The smallest eigenvalue that was computed: with LAPACK that of A; with Lanczos a value above
        it, and close to it where it is isolated. A clearly negative value means that A is
        indefinite.
    converged : bool
        Whether the residual is within the tolerance.
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float
    lowest: float
    converged: bool


class Wanted(NamedTuple):
    """How many pairs, to ``tol`` times the largest, by blocks of ``width`` vectors.

    ``known`` (order, m) are orthonormal eigenvectors to leave out: the Krylov space is kept
    orthogonal to them.
    """

    n_pairs: int
    tol: float
    rng: np.random.Generator
    monitor: Monitor
    width: int
    known: np.ndarray


def block_lanczos(apply: Operator, wanted: Wanted) -> LargestPairs:
    """The largest pairs of a symmetric operator from a random block."""
    n_pairs, tol, rng, monitor, width, known = wanted
    order = len(known)
    space_size = order - known.shape[1]
    width = min(width, space_size)
    most = min(space_size, 10 * n_pairs + 20 * width)
    # In columns, and not written to until needed: memory is taken as the basis grows.
    space = np.empty((order, min(space_size, most + width)), order="F")
    newest = _without(known, rng.standard_normal((order, width)))
    newest = np.linalg.qr(newest)[0]
    T = np.empty((0, 0))
    with monitor.phase("block Lanczos", total=-(-most // width)) as phase:
        while True:
            done = T.shape[0]
            size = min(done + width, space_size)
            space[:, done:size] = newest[:, : size - done]
            basis = space[:, :size]
            image = np.array(apply(np.ascontiguousarray(basis[:, done:])), dtype=np.float64)
            image = _without(known, image)
            column = basis.T @ image
            image -= basis @ column
            again = basis.T @ image  # once is not enough: rounding grows with the basis
            image -= basis @ again
            T = _grown(T, column + again)
            newest, R = np.linalg.qr(image)
            if np.abs(np.diag(R)).min() <= 1e-10 * np.abs(T).max():
                # C adds nothing in some direction: continue with a random one outside the basis.
                newest = _outside(basis, known, newest, rng)
            phase.advance()
            if size < n_pairs:
                continue
            values, y = lapack_pairs(T, size - n_pairs, size - 1)
            # no column of T is longer than its largest eigenvalue, of either sign
            scale = max(np.abs(values).max(), np.linalg.norm(T, axis=0).max()) or 1.0
            residual = np.linalg.norm(R @ y[-R.shape[1] :], axis=0).max() / scale
            converged = residual <= tol or size == space_size
            if converged or size >= most:
                break
    lowest = lapack_pairs(T, 0, 0)[0][0]
    vectors = fix_signs(basis @ y[:, ::-1])
    return LargestPairs(
        values[::-1].copy(), vectors, float(residual), float(lowest), bool(converged)
    )


def _without(known: np.ndarray, V: np.ndarray) -> np.ndarray:
    return V - known @ (known.T @ V) if known.shape[1] else V


def _outside(
    basis: np.ndarray, known: np.ndarray, block: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """An orthonormal block orthogonal to the basis, close to the given one where that is not 0."""
    block = block + 1e-8 * rng.standard_normal(block.shape)
    for _ in range(3):
        block = np.linalg.qr(_without(known, block - basis @ (basis.T @ block)))[0]
    return block


def _grown(T: np.ndarray, column: np.ndarray) -> np.ndarray:
    """T with one more block of columns and, because it is symmetric, of rows."""
    old, new = T.shape[0], column.shape[0]
    grown = np.empty((new, new))
    grown[:old, :old] = T
    grown[:, old:] = column
    grown[old:, :old] = column[:old].T
    grown[old:, old:] = (column[old:] + column[old:].T) / 2
    return grown


# LAPACK and ARPACK for dense symmetric matrices.


# Up to this order all pairs cost less than the import of scipy.
SMALL_ORDER = 150
# Below this order LAPACK finds all pairs faster than Lanczos finds a few.
DENSE_ORDER = 400


class EigenPairs(NamedTuple):
    """Eigenvalues in the order asked for, and their unit eigenvectors in columns."""

    values: np.ndarray
    vectors: np.ndarray


def is_small(order: int, n_pairs: int) -> bool:
    """Whether LAPACK is faster than an iteration: the matrix is small, or many pairs are asked."""
    return order <= DENSE_ORDER or n_pairs > order // 10


def exponent_of(A: np.ndarray) -> Any:
    """e such that 2^-e A has ordinary numbers, one for each matrix of a stack; 0 for most.

    LAPACK and ARPACK rescale extreme matrices by factors that are not powers of two, which changes
    digits; and squares of their entries overflow.
    """
    size = np.abs(np.diagonal(A, axis1=-2, axis2=-1)).max(axis=-1, initial=0.0)
    extreme = (size > 0) & (size < np.inf) & ((size < 2.0**-400) | (size > 2.0**400))
    return np.where(extreme, np.frexp(size)[1], 0)


def largest_of_semidefinite(A: np.ndarray, n_pairs: int) -> EigenPairs:
    """The largest pairs of a positive semidefinite matrix, largest first; signs are not fixed."""
    n = A.shape[0]
    pairs = None
    if n <= SMALL_ORDER:
        values, vectors = np.linalg.eigh(A)
        pairs = values[n - n_pairs :], vectors[:, n - n_pairs :]
    elif not is_small(n, n_pairs):
        pairs = _arpack(A, n_pairs)
    values, vectors = lapack_pairs(A, n - n_pairs, n - 1) if pairs is None else pairs
    order = np.argsort(-values, kind="stable")
    return EigenPairs(np.maximum(values[order], 0.0), vectors[:, order])


def lapack_pairs(A: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs number ``first`` to ``last``, ascending, of a symmetric matrix.

    Where nearly all eigenvalues are equal, LAPACK's search for some of them can return fewer; then
    all are computed.
    """
    import scipy.linalg  # here: importing it takes longer than small maps take

    with limit_blas(1):  # after the import: an open block does not bound a library loaded inside it
        if first > 0 or last < len(A) - 1:
            some = [first, last]
            values, vectors = scipy.linalg.eigh(A, subset_by_index=some, check_finite=False)
            if len(values) == last - first + 1:
                return values, vectors
        values, vectors = scipy.linalg.eigh(A, driver="evd", check_finite=False)
    return values[first : last + 1], vectors[:, first : last + 1]


def _arpack(A: np.ndarray, n_pairs: int) -> tuple[np.ndarray, np.ndarray] | None:
    """ARPACK's pairs, or None when they are not eigenpairs to working precision.

    For a dense matrix in memory it takes a half to a third of the time of block Lanczos (order 784,
    10 to 50 pairs).
    """
    import scipy.sparse.linalg

    start = np.random.default_rng(0).standard_normal(A.shape[0])
    try:
        with limit_blas(1):
            values, vectors = scipy.sparse.linalg.eigsh(A, n_pairs, which="LA", v0=start)
    except scipy.sparse.linalg.ArpackError:
        return None
    residual = np.abs(A @ vectors - vectors * values).max()
    return (values, vectors) if residual <= 1e-10 * max(np.abs(values).max(), 1e-300) else None


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """Columns with signs such that the entry largest in absolute value is positive.

    Among entries that are largest up to rounding the first decides, so that rounding does not. A
    stack of matrices (m, n, q) is treated matrix by matrix.
    """
    size = np.abs(vectors)
    deciding = np.argmax(size >= (1 - 1e-6) * size.max(axis=-2, keepdims=True), axis=-2)
    signs = np.sign(np.take_along_axis(vectors, deciding[..., None, :], axis=-2))
    return vectors * np.where(signs == 0, 1.0, signs)


# What the solvers of :mod:`.eigen` cost, for the estimates of methods.
#
# Seconds on two cores of about 3 GHz; ``benchmarks/engine_costs.py`` compares them with measured
# times. Iterations take a number of steps that depends on the spectrum: a usual one is assumed.


USUAL_BLOCKS = 6  # of vectors until block Lanczos has converged


def all_pairs_cost(order: int, stack: int = 1) -> Estimate:
    """Of ``all_eigenpairs`` of a matrix, or of a stack of matrices."""
    return Estimate(stack * (2e-10 * order**3 + 5e-8 * order**2 + 5e-6), 24 * stack * order**2)


def largest_pairs_cost(order: int, n_pairs: int) -> Estimate:
    """Of ``largest_eigenpairs`` of a dense matrix."""
    if is_small(order, n_pairs):
        return all_pairs_cost(order)
    return operator_pairs_cost(order, n_pairs, Estimate(2e-9 * order**2, 0))


def operator_pairs_cost(order: int, n_pairs: int, product: Estimate) -> Estimate:
    """Of ``largest_eigenpairs`` of an operator with this cost of a product with one block."""
    blocks = USUAL_BLOCKS + n_pairs / 4
    basis = 16 * blocks
    return blocks * product + Estimate(1e-9 * order * basis**2 + 1e-3, 16 * order * basis)


if TYPE_CHECKING:
    from lowland._engines.linalg.smallest_solvers import SmallestPairs


def all_eigenpairs(A: np.ndarray) -> EigenPairs:
    """All eigenpairs of a symmetric matrix (n, n), or of each matrix of a stack (m, n, n).

    Largest first. O(n^3) each: for small matrices.
    """
    e = exponent_of(A)
    with limit_blas(1):
        scaled = np.ldexp(A, -e[..., None, None]) if e.any() else A
        if A.ndim > 2 or len(A) <= SMALL_ORDER:
            values, vectors = np.linalg.eigh(scaled)
        else:
            values, vectors = lapack_pairs(scaled, 0, len(A) - 1)
    return EigenPairs(np.ldexp(values[..., ::-1], e[..., None]), fix_signs(vectors[..., ::-1]))


def eigenvalues(A: np.ndarray) -> np.ndarray:
    """All eigenvalues of a symmetric matrix, or of each of a stack, largest first."""
    e = exponent_of(A)
    with limit_blas(1):
        values = np.linalg.eigvalsh(np.ldexp(A, -e[..., None, None]) if e.any() else A)
    return np.ldexp(values[..., ::-1], e[..., None])


def general_eigenvalues(A: np.ndarray) -> np.ndarray:
    """All eigenvalues, real or complex, of a square matrix that need not be symmetric."""
    import scipy.linalg  # here: importing it takes longer than small maps take

    with limit_blas(1):
        return scipy.linalg.eigvals(A, check_finite=False)


def largest_eigenpairs(
    A: np.ndarray | Operator,
    n_pairs: int,
    *,
    tol: float = 1e-10,
    rng: np.random.Generator | None = None,
    monitor: Monitor | None = None,
    order: int | None = None,
    width: int = BLOCK_WIDTH,
    trivial: np.ndarray | None = None,
    semidefinite: bool = False,
    rough: bool = False,
) -> LargestPairs:
    """The ``n_pairs`` largest eigenpairs, by value, of a symmetric matrix or operator.

    Parameters
    ----------
    A : ndarray of shape (n, n) or callable
        A function returns A V for V of shape (n, m), and needs ``order``.
    tol : float
        Residual relative to the largest |l| that an iteration has to reach. If it does not, a
        matrix is solved by LAPACK, and for an operator a ``ConvergenceWarning`` is given.
    rng : Generator or None
        Of the start block; None: a fixed start.
    order : int or None
        n, for a function.
    width : int
        Vectors that an operator multiplies at a time.
    trivial : ndarray of shape (n,) or None
        An eigenvector to leave out.
    semidefinite : bool
        The matrix has no negative eigenvalues: those that rounding made negative become 0, only
        the pairs asked for are computed, and ``lowest`` is the last of them.
    rough : bool
        Pairs of an operator that miss ``tol`` are good enough, and give no warning.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    monitor = Monitor() if monitor is None else monitor
    n = order if callable(A) else len(A)
    assert n is not None
    known = np.empty((n, 0)) if trivial is None else _unit_column(trivial)
    wanted = Wanted(n_pairs, tol, rng, monitor, width, known)
    with limit_blas(1):
        if callable(A):
            found = block_lanczos(A, wanted)
            if not found.converged and not rough:
                _warn(found.residual, tol, "use another solver", stacklevel=3)
            return found
        e = exponent_of(A)
        scaled = A if e == 0 else np.ldexp(A, -e)
        found = _largest_of_matrix(scaled, wanted, semidefinite)
    return found._replace(values=np.ldexp(found.values, e), lowest=float(np.ldexp(found.lowest, e)))


def _largest_of_matrix(A: np.ndarray, wanted: Wanted, semidefinite: bool) -> LargestPairs:
    n, n_pairs, known = A.shape[0], wanted.n_pairs, wanted.known
    if semidefinite and not known.size:
        values, vectors = largest_of_semidefinite(A, n_pairs)
        return _measured(A, values, vectors, float(values[-1]))
    if not is_small(n, n_pairs):
        found = block_lanczos(lambda V: A @ V, wanted)
        if found.converged:
            return found
    if known.size:  # below all others
        A = A - known @ (known.T @ A)
        A = A - (A @ known) @ known.T - (2 * np.abs(A).sum(axis=0).max() + 1) * (known @ known.T)
    values, vectors = lapack_pairs(A, 0, n - 1)
    lowest = float(values[known.shape[1]]) if n > 1 else float(values[0])
    return _measured(A, values[::-1][:n_pairs], vectors[:, ::-1][:, :n_pairs], lowest)


def _measured(
    A: np.ndarray, values: np.ndarray, vectors: np.ndarray, lowest: float
) -> LargestPairs:
    """Pairs of LAPACK or ARPACK with their residual."""
    V = fix_signs(vectors)
    scale = max(float(np.abs(values).max(initial=0.0)), abs(lowest)) or 1.0
    residual = np.linalg.norm(A @ V - V * values, axis=0).max(initial=0.0) / scale
    return LargestPairs(values.copy(), V, float(residual), lowest, True)


def smallest_eigenpairs(
    M: Any,
    n_pairs: int,
    run: FitContext,
    *,
    tol: float,
    ordering: np.ndarray | None = None,
    trivial: np.ndarray | None = None,
    norm: float | None = None,
    order: int | None = None,
    solver: str = "auto",
) -> SmallestPairs:
    """The ``n_pairs`` smallest eigenpairs of a positive semidefinite M, by value.

    A generalized problem A v = l D v with a diagonal D is that of D^-1/2 A D^-1/2.

    Parameters
    ----------
    M : CSR matrix, ndarray or callable
        Symmetric and positive semidefinite. A function returns M V, and needs ``order`` (or
        ``trivial``) and ``norm``.
    tol : float
        A ``ConvergenceWarning`` is given when the residual is larger.
    ordering : ndarray of shape (n,) or None
        Numbers that are similar for rows that share entries of M, such as
        :func:`~lowland._engines.graphs.components.line_up` returns. They make factors cheaper and
        do not change the result.
    trivial : ndarray of shape (n,) or None
        A vector with M @ trivial = 0 to leave out; the pairs are orthogonal to it. None: no pair is
        left out.
    norm : float or None
        A bound of all eigenvalues; None: the largest absolute row sum.
    solver : {"auto", "dense", "factor", "filter"}
        "auto" takes the cheapest.
    """
    from lowland._engines.linalg.smallest_solvers import SmallestProblem, solve_smallest

    n = M.shape[0] if hasattr(M, "shape") else order if trivial is None else len(trivial)
    assert n is not None
    known = np.empty((n, 0)) if trivial is None else _unit_column(trivial)
    if norm is None:
        norm = float(np.asarray(abs(M).sum(axis=1)).max(initial=0.0)) or 1.0
    e = 0 if callable(M) or 2.0**-400 < norm < 2.0**400 else int(np.frexp(norm)[1])
    if e != 0:
        M, norm = M * 2.0**-e, norm * 2.0**-e
    times = matrix_times(M, run.threads)
    problem = SmallestProblem(times, known, norm, n_pairs, tol, run.rng, run.monitor)
    with limit_blas(1):
        found = solve_smallest(problem, M, solver, ordering, run.threads)
    if found.residual > tol:
        _warn(found.residual, tol, "change n_neighbors", stacklevel=3)
    return found._replace(values=np.ldexp(found.values, e))


class GeneralizedPairs(NamedTuple):
    """Pairs of A v = l B v in the order asked for, with V^T B V = I and signs fixed.

    ``rank`` is that of B. There are never more than ``rank`` pairs.
    """

    values: np.ndarray
    vectors: np.ndarray
    rank: int

    def padded(self, n_pairs: int) -> GeneralizedPairs:
        """``n_pairs`` pairs: those missing are vectors of zeros with the value NaN (0 / 0)."""
        values = np.full(n_pairs, np.nan)
        vectors = np.zeros((len(self.vectors), n_pairs))
        k = min(n_pairs, len(self.values))
        values[:k], vectors[:, :k] = self.values[:k], self.vectors[:, :k]
        return GeneralizedPairs(values, vectors, self.rank)


def generalized_eigenpairs(
    A: np.ndarray,
    B: np.ndarray,
    n_pairs: int,
    *,
    which: Literal["largest", "smallest"] = "largest",
    dtype: Any = np.float64,
) -> GeneralizedPairs:
    """A v = l B v for a symmetric A and a positive semidefinite B, both small and dense.

    B is scaled to a unit diagonal, so that the units of its rows do not matter, and decomposed;
    directions with v^T B v = 0 are left out, because l is not defined there. So there are at most
    rank(B) pairs; a method that needs more axes calls ``padded``, which appends zeros. O(n^3).

    Parameters
    ----------
    which : {"largest", "smallest"}
        The end of the spectrum, and the order of the pairs.
    dtype : dtype
        The type of the numbers that B was summed from, which decides the rank: see
        :func:`rank_cutoff`.
    """
    n = len(B)
    diagonal = np.diagonal(B)
    varies = diagonal > 0
    root = np.zeros(n)
    root[varies] = np.sqrt(diagonal[varies])
    unit = np.where(varies, 1 / np.where(varies, root, 1.0), 0.0)
    lengths, axes = all_eigenpairs(unit[:, None] * B * unit)
    real = lengths > rank_cutoff(n, dtype) * max(lengths[0], 0.0)
    if not real.any():
        return GeneralizedPairs(np.empty(0), np.empty((n, 0)), 0)
    with limit_blas(1):
        W = unit[:, None] * axes[:, real] / np.sqrt(lengths[real])  # W^T B W = I
        C = W.T @ A @ W
        pairs = all_eigenpairs((C + C.T) / 2)
        vectors = W @ pairs.vectors
    values = pairs.values
    if which == "smallest":
        values, vectors = values[::-1], vectors[:, ::-1]
    return GeneralizedPairs(
        values[:n_pairs].copy(), fix_signs(vectors[:, :n_pairs]), int(real.sum())
    )


def rank_cutoff(order: int, dtype: Any) -> float:
    """The share of the largest eigenvalue of a Gram matrix below which an eigenvalue is rounding.

    4 n eps, with eps of the type in which the products were formed: 1e-6 for float32 and order 2.
    The matrix should have a unit diagonal, else a large column hides the others.
    """
    return 4 * order * float(np.finfo(np.dtype(dtype)).eps)


class SingularValues(NamedTuple):
    """A = left @ diag(lengths) @ right: singular values descending, vectors in columns and rows."""

    left: np.ndarray
    lengths: np.ndarray
    right: np.ndarray


def thin_svd(A: np.ndarray) -> SingularValues:
    """The singular value decomposition with min(n, p) vectors; signs fixed by the right ones."""
    import scipy.linalg

    with limit_blas(1):
        U, s, Vt = scipy.linalg.svd(
            A, full_matrices=False, check_finite=False, lapack_driver="gesvd"
        )
    right = fix_signs(Vt.T).T
    signs = np.where((right == Vt).all(axis=1), 1.0, -1.0)
    return SingularValues(U * signs, s, right)


def _unit_column(vector: np.ndarray) -> np.ndarray:
    column = np.asarray(vector, dtype=np.float64)[:, None]
    return column / np.linalg.norm(column)


def _warn(residual: float, tol: float, advice: str, stacklevel: int) -> None:
    warnings.warn(
        "the last axes may be inexact: the eigensolver stopped at a relative residual of "
        f"{residual:.1e} (tol={tol:g}); ask for fewer components or {advice}.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )
