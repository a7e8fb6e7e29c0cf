"""Rows made ready for Euclidean kernels: directions for cosine, units that do not overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse
from lowland._engines.directions import Directions

__all__ = ["in_units", "largest", "rows_of", "scaled", "squarable", "true_distances", "unit_for"]


def largest(rows: np.ndarray) -> float:
    """The largest absolute value, without a copy of the rows."""
    return max(float(rows.max(initial=0.0)), -float(rows.min(initial=0.0)))


def scaled(rows: np.ndarray, unit: float) -> np.ndarray:
    """Rows times a power of two; in float64, where that is exact."""
    return rows if unit == 1.0 else rows.astype(np.float64) * unit


def unit_for(greatest: float, metric: Any) -> float:
    """A power of two that brings extreme values to about 1: squares must not overflow float32."""
    if callable(metric) or metric in ("hamming", "jaccard") or greatest == 0:
        return 1.0
    if 1e-9 < greatest < 1e9:
        return 1.0
    return float(2.0 ** -np.round(np.log2(greatest)))


def squarable(X: Any) -> Any:
    """X, or in float64 what is too large or too small for squares in float32."""
    if X.dtype != np.float32 or unit_for(largest(X.data if is_sparse(X) else X), "euclidean") == 1:
        return X
    return X.astype(np.float64)


def in_units(distances: np.ndarray, unit: float, metric: Any) -> np.ndarray:
    """Distances of the rows as they were given, from those of scaled ones."""
    if unit == 1.0 or metric in ("cosine", "correlation"):
        return distances
    return distances / unit / unit if metric == "sqeuclidean" else distances / unit


def rows_of(X: np.ndarray, metric: Any, argument: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows as the search takes them, and which of them have no direction (if that matters)."""
    if metric == "jaccard" and not ((X == 0) | (X == 1)).all():
        raise DataError(
            f"{argument}: metric='jaccard' needs boolean data, only 0 and 1; got others."
        )
    if metric in ("cosine", "correlation"):
        return Directions.of(X, metric)
    return np.ascontiguousarray(X), None


def true_distances(squares: np.ndarray, metric: str) -> np.ndarray:
    """Distances from the squared ones of :func:`rows_of`, which may be overwritten."""
    if metric == "sqeuclidean":
        return squares
    return np.sqrt(squares, out=squares) if metric == "euclidean" else squares / 2
