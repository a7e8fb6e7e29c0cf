"""The stress of a linear map Z = (X - 1 m^T) W as a function of W.

With U an orthonormal basis of the columns of the centered X, Z = U A: in A the majorizing quadratic
of the stress has the matrix U^T V U, which is n I where all weights are 1. So the variables are
equally scaled whatever the columns of X are (Webb 1995).
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import scipy.linalg

from lowland._core.threads import limit_blas
from lowland._engines.linalg import products
from lowland._engines.stress.majorization import Evaluation


class LinearStress:
    """A stress of maps as a function of the variables A of linear maps."""

    def __init__(self, stress: Any, U: np.ndarray, threads: int) -> None:
        self.stress, self.U, self.threads = stress, U, threads
        self.floor, self.scale = stress.floor, stress.scale
        self.zero = np.zeros(U.shape[1])
        self.factor, self.bound = None, float(len(U))
        if not stress.laplacian.uniform:
            degrees = stress.laplacian.degrees
            self.bound = 2 * float(degrees.max())
            with limit_blas(1), contextlib.suppress(scipy.linalg.LinAlgError):
                # 2 diag(V) lies above V; the factorization fails only if the rows do not vary
                M = (U * (2 * degrees)[:, None]).T @ U
                self.factor = scipy.linalg.cho_factor(M, check_finite=False)

    def points(self, A: np.ndarray) -> np.ndarray:
        """Z = U A."""
        return products.times(self.U, self.zero, A, self.threads)

    def __call__(self, A: np.ndarray) -> Evaluation:
        loss, forces = self.stress(self.points(A))
        return Evaluation(loss, products.transpose_times(self.U, self.zero, forces, self.threads))

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        if self.factor is None:
            return slope / self.bound
        return scipy.linalg.cho_solve(self.factor, slope, check_finite=False)

    def guttman_step(self, A: np.ndarray, here: Evaluation) -> np.ndarray:
        return self.precondition(here.slope)
