"""Symmetric eigenproblems, decided once: the solver, the order of the pairs, the signs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.threads import limit_blas

__all__ = ["EigenPairs", "fix_signs", "solve_eigenproblem", "some_pairs"]

# Up to this order all pairs cost less than the import of scipy.
SMALL_ORDER = 150
# Below this order LAPACK finds all pairs faster than Lanczos finds a few.
DENSE_ORDER = 400


class EigenPairs(NamedTuple):
    """Eigenvalues in the order asked for, and their unit eigenvectors in columns."""

    values: np.ndarray
    vectors: np.ndarray


def solve_eigenproblem(A: np.ndarray, n_pairs: int) -> EigenPairs:
    """The ``n_pairs`` largest eigenpairs of a symmetric positive semidefinite matrix.

    Sorted descending, eigenvalues that rounding made negative set to 0, signs fixed. A few pairs
    of a large matrix come from Lanczos with a fixed start vector, checked by their residuals;
    all else, and whatever Lanczos does not reach, from LAPACK. Runs on one BLAS thread, so that
    the number of threads cannot change a digit.
    """
    e = _exponent(A)
    with limit_blas(1):
        values, vectors = _largest(A if e == 0 else np.ldexp(A, -e), n_pairs)
    values = np.ldexp(values, e)
    order = np.argsort(-values, kind="stable")
    return EigenPairs(np.maximum(values[order], 0.0), fix_signs(vectors[:, order]))


def _exponent(A: np.ndarray) -> int:
    """Of the power of two that a matrix is divided by where solvers would round to another unit."""
    size = float(np.abs(np.diagonal(A)).max(initial=0.0))
    return 0 if 2.0**-400 < size < 2.0**400 or not 0 < size < np.inf else int(np.frexp(size)[1])


def _largest(A: np.ndarray, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    n = A.shape[0]
    if n <= SMALL_ORDER:
        values, vectors = np.linalg.eigh(A)
        return values[n - n_pairs :], vectors[:, n - n_pairs :]
    if n > DENSE_ORDER and n_pairs <= n // 10:
        pairs = _lanczos(A, n_pairs)
        if pairs is not None:
            return pairs
    return some_pairs(A, n - n_pairs, n - 1)


def some_pairs(A: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs number ``first`` to ``last``, ascending, of a symmetric matrix.

    Where nearly all eigenvalues are equal LAPACK's search for some of them can come back with
    fewer; then all are computed.
    """
    import scipy.linalg  # here: it takes longer to import than small maps take to make

    values, vectors = scipy.linalg.eigh(A, subset_by_index=[first, last], check_finite=False)
    if len(values) == last - first + 1:
        return values, vectors
    values, vectors = scipy.linalg.eigh(A, driver="evd", check_finite=False)
    return values[first : last + 1], vectors[:, first : last + 1]


def _lanczos(A: np.ndarray, n_pairs: int) -> tuple[np.ndarray, np.ndarray] | None:
    """ARPACK's pairs, or None when they are not eigenpairs to working precision."""
    import scipy.sparse.linalg

    start = np.random.default_rng(0).standard_normal(A.shape[0])
    try:
        values, vectors = scipy.sparse.linalg.eigsh(A, n_pairs, which="LA", v0=start)
    except scipy.sparse.linalg.ArpackError:
        return None
    residual = np.abs(A @ vectors - vectors * values).max()
    return (values, vectors) if residual <= 1e-10 * max(np.abs(values).max(), 1e-300) else None


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """Columns turned so that the entry largest in absolute value is positive.

    Among entries that are largest up to rounding the first decides, so that rounding does not.
    """
    size = np.abs(vectors)
    deciding = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    signs = np.sign(vectors[deciding, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)
