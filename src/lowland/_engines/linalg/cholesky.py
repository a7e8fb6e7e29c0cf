"""Dense Cholesky factors A = L L^T, solutions with them, and inverses; LAPACK with one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.threads import limit_blas

__all__ = ["inverse_from", "lower_factor", "solve_lower"]


def lower_factor(A: np.ndarray) -> np.ndarray:
    """L of a positive definite matrix; ``LinAlgError`` if it is not."""
    with limit_blas(1):
        return _linalg().cholesky(A, lower=True, check_finite=False)


def solve_lower(L: np.ndarray, B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """L^-1 B, or L^-T B."""
    with limit_blas(1):
        return _linalg().solve_triangular(
            L, B, lower=True, trans=1 if transposed else 0, check_finite=False
        )


def inverse_from(L: np.ndarray) -> np.ndarray:
    """(L L^T)^-1, symmetric to the last bit."""
    with limit_blas(1):
        inverse, info = _linalg().lapack.dpotri(L, lower=1)
    if info != 0:
        raise np.linalg.LinAlgError("a diagonal element of the factor is 0")
    lower = np.tril(inverse, -1)
    return lower + lower.T + np.diag(np.diag(inverse))


def _linalg() -> Any:
    import scipy.linalg

    return scipy.linalg
