"""Stress of a linear map: the points of the map are Z = (X - 1 m^T) W, and W is what varies.

With U an orthonormal basis of the columns of the centered X, Z = U A: in A the majorizing quadratic
of the stress has the matrix U^T V U, which is n I where all weights are 1. So the variables are
equally scaled whatever the columns of X are (Webb 1995).
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from lowland._core.context import FitContext
from lowland._core.threads import limit_blas
from lowland._engines.linalg import products
from lowland._engines.linalg.magnitude import squarable
from lowland._engines.linalg.moments import moments
from lowland._engines.linalg.principal_axes import by_covariance, by_gram
from lowland._engines.stress.majorization import Height

__all__ = ["Basis", "LinearStress", "orthonormal_basis"]

NEGLIGIBLE = 1e-7  # of the largest singular value: a column of rounding errors
COVARIANCE_COLUMNS = 3000


class Basis(NamedTuple):
    """U (n, r) = (X - 1 m^T) axes^T / lengths, with U^T U = I; axes (r, p) in rows."""

    U: np.ndarray
    mean: np.ndarray
    axes: np.ndarray
    lengths: np.ndarray

    def weights(self, A: np.ndarray) -> np.ndarray:
        """W (p, q) of Z = U A = (X - 1 m^T) W."""
        scaled = A / self.lengths[:, None]
        return np.einsum("rp,rq->pq", self.axes, scaled)

    def variables(self, W: np.ndarray) -> np.ndarray:
        """A of W, as far as the rows tell them apart."""
        return np.einsum("rp,pq->rq", self.axes, W) * self.lengths[:, None]


def orthonormal_basis(X: Any, run: FitContext) -> Basis:
    """All directions in which the rows vary, the widest first."""
    X = squarable(X)
    n, p = X.shape
    r = min(n, p)
    if p <= COVARIANCE_COLUMNS and p <= n:
        found = by_covariance(moments(X, run.threads, run.monitor), r, scaled=False)
    else:
        found = by_gram(X, r, False, run.threads)
    lengths = np.sqrt(np.maximum(found.variances, 0.0) * (n - 1))
    kept = max(1, int((lengths > NEGLIGIBLE * lengths.max(initial=0.0)).sum()))
    axes = found.axes[:kept]
    lengths = np.where(lengths[:kept] > 0, lengths[:kept], 1.0)
    U = products.times(X, found.mean, axes.T, run.threads).astype(np.float64) / lengths
    return Basis(np.ascontiguousarray(U), found.mean, axes, lengths)


class LinearStress:
    """A stress of maps as one of the variables A of linear maps."""

    def __init__(self, stress: Any, U: np.ndarray, threads: int) -> None:
        self.stress, self.U, self.threads = stress, U, threads
        self.floor, self.scale = stress.floor, stress.scale
        self.zero = np.zeros(U.shape[1])
        self.factor, self.bound = None, float(len(U))
        if not stress.laplacian.uniform:
            degrees = stress.laplacian.degrees
            self.bound = 2 * float(degrees.max())
            with limit_blas(1), contextlib.suppress(scipy.linalg.LinAlgError):
                # 2 diag(V) lies above V; the factor fails only where rows do not vary at all
                M = (U * (2 * degrees)[:, None]).T @ U
                self.factor = scipy.linalg.cho_factor(M, check_finite=False)

    def points(self, A: np.ndarray) -> np.ndarray:
        """Z = U A."""
        return products.times(self.U, self.zero, A, self.threads)

    def __call__(self, A: np.ndarray) -> Height:
        loss, forces = self.stress(self.points(A))
        return Height(loss, products.transpose_times(self.U, self.zero, forces, self.threads))

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        if self.factor is None:
            return slope / self.bound
        return scipy.linalg.cho_solve(self.factor, slope, check_finite=False)

    def guttman_step(self, A: np.ndarray, here: Height) -> np.ndarray:
        return self.precondition(here.slope)
