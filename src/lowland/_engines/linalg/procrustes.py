"""Procrustes analysis (Schönemann 1966; Gower 1975): one map rotated to match another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland._engines.linalg.eigen import thin_svd


class Alignment(NamedTuple):
    """``aligned = scale * (Y @ rotation) + translation``, Y with zero columns up to the wider map.

    ``disparity`` is the share of the reference's variance that the aligned map does not explain: 0
    for the same map, 1 for unrelated ones. It does not depend on which of them is the reference.
    """

    aligned: np.ndarray
    rotation: np.ndarray
    scale: float
    translation: np.ndarray
    disparity: float


def align(reference: Any, Y: Any, *, scaling: bool = True, reflection: bool = True) -> Alignment:
    """min over s, R, t of |A - (s Y R + 1 t^T)|_F with R^T R = I.

    With A and Y centered and Y^T A = U S V^T, the solution is R = U V^T, s = tr S / |Y|^2 and
    t = mean(A) - s mean(Y) R; what is left of |A|^2 is 1 - (tr S)^2 / (|A| |Y|)^2. Without
    reflections the last column of U changes its sign where det(U V^T) < 0. A map with fewer columns
    gets columns of zeros. O(n m^2) for m columns.

    If one of the two maps is constant no rotation is better than another: R = I and s = 1, and the
    disparity is 1, or 0 if both are.

    References
    ----------
    Schönemann (1966), A generalized solution of the orthogonal Procrustes problem,
    Psychometrika 31.
    Gower (1975), Generalized Procrustes analysis, Psychometrika 40.

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    >>> turned = 3 * square[:, ::-1] + 7
    >>> align(square, turned).aligned.round(12) + 0.0
    array([[0., 0.], [0., 1.], [1., 1.], [1., 0.]])
    """
    A, Y = _checked(reference, "reference"), _checked(Y, "Y")
    if len(A) != len(Y):
        raise DataError(f"the reference has {len(A)} rows, but Y has {len(Y)}.")
    m = max(A.shape[1], Y.shape[1])
    A, Y = _widened(A, m), _widened(Y, m)
    (A0, a_mean, a_norm), (Y0, y_mean, y_norm) = _standardized(A), _standardized(Y)
    rotation, scale, disparity = np.eye(m), 1.0, float((a_norm > 0) != (y_norm > 0))
    if a_norm > 0 and y_norm > 0:
        # einsum sums in one fixed order, whatever the number of threads
        U, S, Vt = thin_svd(np.einsum("ni,nj->ij", Y0, A0))
        if not reflection and np.linalg.det(U) * np.linalg.det(Vt) < 0:
            U[:, -1] *= -1
            S[-1] *= -1
        rotation = U @ Vt
        common = min(float(S.sum()), 1.0)
        disparity = max(1.0 - common * common, 0.0)
        if scaling:
            scale = common * (a_norm / y_norm)
    translation = a_mean - scale * (y_mean @ rotation)
    # from the centered map: large means would cancel the digits of small distances
    aligned = (scale * y_norm) * (Y0 @ rotation) + a_mean
    return Alignment(aligned, rotation, scale, translation, disparity)


def turned_like(reference: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Y aligned with a reference, in as many columns as the wider of the two.

    A map of one dimension keeps its one column and is only mirrored where that brings it nearer to
    the first axis of the reference: as a line in the plane its slope would mean nothing.
    """
    if Y.shape[1] == 1:
        reference = reference[:, :1]
        return Y * (1.0 if align(reference, Y).rotation[0, 0] > 0 else -1.0)
    return align(reference, Y).aligned


def _checked(Y: Any, name: str) -> np.ndarray:
    Y = np.asarray(Y, dtype=np.float64)
    if Y.ndim != 2 or 0 in Y.shape:
        raise DataError(f"{name} must have rows and columns, but has shape {Y.shape}.")
    if not np.isfinite(Y).all():
        row = int(np.argmin(np.isfinite(Y).all(axis=1)))
        raise DataError(f"{name} holds NaN or infinity, first in row {row}.")
    return Y


def _widened(Y: np.ndarray, m: int) -> np.ndarray:
    return np.hstack([Y, np.zeros((len(Y), m - Y.shape[1]))])


def _standardized(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Y without its mean and of norm 1, the mean, and the norm: 0 for a map that is constant."""
    size = float(np.abs(Y).max()) or 1.0
    mean = (Y / size).mean(axis=0)
    Z = Y / size - mean
    norm = float(np.sqrt((Z * Z).sum()))
    if norm <= 1e-14 * np.sqrt(Z.size):  # all differences are rounding
        return np.zeros_like(Z), mean * size, 0.0
    return Z / norm, mean * size, norm * size
