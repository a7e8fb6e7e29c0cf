"""Maps with partially known places (Ham, Lee & Saul 2005, section 3.2)."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._core.errors import ConvergenceWarning, DataError
from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.linalg.products import matrix_times

TOLERANCE = 1e-10  # of the residual, relative to the right-hand side


def harmonic_map(
    W: scipy.sparse.csr_matrix,
    nodes: np.ndarray,
    S: np.ndarray,
    weight: float | None,
    owner: str,
    run: FitContext,
) -> np.ndarray:
    """min over Y of tr(Y^T L Y) + weight sum over known rows |y_i - s_i|^2.

    ``nodes`` are those of the known rows, and ``S`` their places. Without a weight they are kept
    exactly: L_uu Y_u = -L_uk S. By conjugate gradients with the degrees as preconditioner.
    """
    n = W.shape[0]
    L, degrees = laplacian(W)
    center = S.mean(axis=0)
    sums = np.zeros((n, S.shape[1]))
    np.add.at(sums, nodes, S - center)
    counts = np.bincount(nodes, minlength=n)
    if weight is not None:
        extra = weight * counts
        M = scipy.sparse.csr_matrix(L + scipy.sparse.diags_array(extra))
        return _solve(M, weight * sums, degrees + extra, run) + center
    known = counts > 0
    places = sums / np.maximum(counts, 1)[:, None]
    if np.abs(places[nodes] - (S - center)).max() > 1e-9 * max(np.abs(S - center).max(), 1e-300):
        raise DataError(f"{owner}: coordinates gives matched rows different places; mu='hard'.")
    Y = places
    if not known.all():
        free = np.flatnonzero(~known)
        right = -(L[free][:, np.flatnonzero(known)] @ places[known])
        M = scipy.sparse.csr_matrix(L[free][:, free])
        Y[free] = _solve(M, right, degrees[free], run)
    return Y + center


def _solve(
    M: scipy.sparse.csr_matrix, right: np.ndarray, diagonal: np.ndarray, run: FitContext
) -> np.ndarray:
    """M^-1 right, one column by the side of the other."""
    times = matrix_times(M, run.threads)
    Y, R = np.zeros_like(right), right.copy()
    scale = np.einsum("iq,iq->q", right, right / diagonal[:, None])
    Z = R / diagonal[:, None]
    P, rho = Z.copy(), np.einsum("iq,iq->q", R, Z)
    most = 2 * len(right) + 100
    with run.monitor.phase("known places", total=most) as phase:
        for _ in range(most):
            open_columns = rho > TOLERANCE**2 * scale
            if not open_columns.any():
                return Y
            image = times(P)
            curve = np.einsum("iq,iq->q", P, image)
            step = np.where(open_columns & (curve > 0), rho / np.where(curve > 0, curve, 1.0), 0.0)
            Y += step * P
            R -= step * image
            Z = R / diagonal[:, None]
            before, rho = rho, np.einsum("iq,iq->q", R, Z)
            P = Z + np.where(before > 0, rho / np.where(before > 0, before, 1.0), 0.0) * P
            phase.advance()
    warnings.warn(
        "the known places are not fitted to the last digit: conjugate gradients stopped after "
        f"{most} steps.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return Y
