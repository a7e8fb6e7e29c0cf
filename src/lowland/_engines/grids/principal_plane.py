"""The plane of the first principal axes, where grids start; missing values are set to the mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.rows.table import Rows
from lowland._core.validation import is_sparse
from lowland._engines.linalg.moments import without_gaps
from lowland._engines.linalg.principal_axes import PrincipalAxes, by_covariance, leading_axes
from lowland._engines.linalg.streamed_moments import Survey, filled_moments


class PrincipalPlane(NamedTuple):
    """Mean (p,), unit axes in rows (q, p), and the standard deviation (q,) along each axis.

    Axes beyond the rank of the data have the deviation 0.
    """

    mean: np.ndarray
    axes: np.ndarray
    deviations: np.ndarray
    total_variance: float

    def points(self, Z: np.ndarray) -> np.ndarray:
        """Points of the data space for coordinates Z (m, q) in deviations along the axes."""
        return self.mean + np.einsum("ij,jk->ik", Z * self.deviations, self.axes)


def principal_plane(X: Any, n_axes: int, run: FitContext) -> PrincipalPlane:
    """Of dense or sparse rows; sums of float64 whatever their type."""
    X = X if is_sparse(X) else without_gaps(X)
    n, p = X.shape
    return plane_of(leading_axes(X, min(n_axes, n, p), run.threads, run.rng, run.monitor), n_axes)


def plane_of_leaves(
    rows: Rows, found: Survey, n_axes: int, n_jobs: int | None, run: FitContext
) -> PrincipalPlane:
    """Of rows that are read leaf by leaf; a second pass if values are missing."""
    sums = found.moments
    if sums is None:
        sums = filled_moments(rows, found.mean, n_jobs=n_jobs, monitor=run.monitor)
    return plane_of(by_covariance(sums, min(n_axes, *rows.shape), scaled=False), n_axes)


def plane_of(found: PrincipalAxes, n_axes: int) -> PrincipalPlane:
    """The plane of the first axes, and of zeros if there are fewer than asked for."""
    p = len(found.mean)
    missing = n_axes - len(found.variances)
    axes = np.vstack([found.axes, np.zeros((missing, p))])
    deviations = np.sqrt(np.maximum(np.append(found.variances, np.zeros(missing)), 0))
    return PrincipalPlane(found.mean, axes, deviations, found.total_variance)
