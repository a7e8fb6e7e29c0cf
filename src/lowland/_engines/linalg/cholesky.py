"""Dense Cholesky factors A = L L^T, solutions with them, and inverses; LAPACK with one thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.threads import limit_blas
from lowland._engines.linalg.products import mirror


def lower_factor(A: np.ndarray) -> np.ndarray:
    """L of a positive definite matrix; ``LinAlgError`` if it is not. Reads the upper triangle."""
    with limit_blas(1):
        # LAPACK reads columns, so the transpose of a symmetric array in rows needs no copy
        L, info = _lapack().dpotrf(A.T, lower=1)
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


def inverse_from(L: np.ndarray) -> np.ndarray:
    """(L L^T)^-1, symmetric to the last bit."""
    with limit_blas(1):
        result, info = _lapack().dpotri(L, lower=1)  # the lower triangle only
    if info != 0:
        raise np.linalg.LinAlgError("a diagonal element of the factor is 0")
    return mirror(result.T)


class GaussianSums(NamedTuple):
    """log |K|, tr(Y^T K^-1 Y), and the upper triangle of (K^-1 Y Y^T K^-1 - D K^-1) / 2."""

    log_det: float
    squares: float
    slope: np.ndarray


def gaussian_sums(K: np.ndarray, Y: np.ndarray, D: int) -> GaussianSums:
    """What the likelihood of a Gaussian with covariance K is made of; K is overwritten.

    Only the upper triangle of K is read. It becomes the factor, its inverse and the slope in turn,
    in one place: a step of an optimizer must not allocate n x n numbers thrice.
    """
    lapack = _lapack()
    with limit_blas(1):
        # LAPACK reads columns: the upper triangle in rows is its lower one
        L, info = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive")
        log_det = 2 * float(np.log(np.diag(L)).sum())
        A, _ = lapack.dpotrs(L, Y, lower=1)
        squares = float(np.einsum("ij,ij->", Y, A))
        inverse, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
        slope = _blas().dsyrk(0.5, A, beta=-0.5 * D, c=inverse, lower=1, overwrite_c=1)
    return GaussianSums(log_det, squares, slope.T)


def _blas() -> Any:
    import scipy.linalg.blas

    return scipy.linalg.blas


def _lapack() -> Any:
    import scipy.linalg.lapack

    return scipy.linalg.lapack
