"""LAPACK and ARPACK for dense symmetric matrices; called through :mod:`.eigen` only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate

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

    LAPACK and ARPACK rescale extreme matrices by factors that are no powers of two, which changes
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


def smallest_pairs_cost(order: int, entries_per_row: float, n_pairs: int) -> Estimate:
    """Of ``smallest_eigenpairs`` of a sparse matrix, by factors or by a filter."""
    if is_small(order, n_pairs):
        return all_pairs_cost(order)
    solves = 1 + n_pairs / 8
    seconds = 8e-7 * order * entries_per_row * solves + 5e-10 * order**2
    height = 128 + 3 * order**0.5
    return Estimate(seconds, 16 * order * (entries_per_row + height + 4 * n_pairs))
