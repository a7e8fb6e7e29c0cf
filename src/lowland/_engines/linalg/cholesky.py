"""Dense Cholesky factors A = L L^T, solutions with them, and inverses; LAPACK with one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.threads import limit_blas
from lowland._engines.linalg.products import mirror

__all__ = ["inverse_from", "lower_factor", "solve_lower"]


def lower_factor(A: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
    """L of a positive definite matrix; ``LinAlgError`` if it is not. A may be overwritten."""
    with limit_blas(1):
        # LAPACK reads columns, so the transpose of a symmetric array in rows needs no copy
        L, info = _lapack().dpotrf(A.T, lower=1, overwrite_a=overwrite)
    if info != 0:
        raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive")
    return L


def solve_lower(L: np.ndarray, B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """L^-1 B, or L^-T B."""
    with limit_blas(1):
        solution, info = _lapack().dtrtrs(L, B, lower=1, trans=1 if transposed else 0)
    if info != 0:
        raise np.linalg.LinAlgError("a diagonal element of the factor is 0")
    return solution


def inverse_from(
    L: np.ndarray, *, factor: float = 1.0, outer: tuple[float, np.ndarray] | None = None
) -> np.ndarray:
    """factor (L L^T)^-1, plus c A A^T for ``outer=(c, A)``; symmetric to the last bit."""
    with limit_blas(1):
        result, info = _lapack().dpotri(L, lower=1)  # the lower triangle only
        if info != 0:
            raise np.linalg.LinAlgError("a diagonal element of the factor is 0")
        if factor != 1.0:
            result *= factor
        if outer is not None:
            c, A = outer
            result = _blas().dsyrk(c, A, beta=1.0, c=result, lower=1, overwrite_c=1)
    return mirror(result.T)


def _blas() -> Any:
    import scipy.linalg.blas

    return scipy.linalg.blas


def _lapack() -> Any:
    import scipy.linalg.lapack

    return scipy.linalg.lapack
