"""Rows made ready for Euclidean kernels: directions for cosine, units that do not overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse
from lowland._engines.directions import Directions

__all__ = [
    "check_fits",
    "in_units",
    "largest",
    "moderate",
    "rows_of",
    "scaled",
    "squarable",
    "true_distances",
    "unit_for",
    "units_for",
]

LARGEST_POWER = 1000  # of two, by which the tiniest of all numbers are multiplied
PROPORTIONAL = ("chebyshev", "cityblock", "euclidean", "manhattan", "minkowski", "precomputed")


def largest(rows: np.ndarray) -> float:
    """The largest absolute value, without a copy of the rows."""
    return max(float(rows.max(initial=0.0)), -float(rows.min(initial=0.0)))


def scaled(rows: np.ndarray, unit: float) -> np.ndarray:
    """Rows times a power of two; in float64, where that is exact."""
    return rows if unit == 1.0 else rows.astype(np.float64) * unit


def unit_for(greatest: float, metric: Any) -> float:
    """A power of two that brings extreme values to about 1: squares must not overflow float32."""
    return float(units_for(np.array([greatest]), metric)[0])


def units_for(greatest: np.ndarray, metric: Any) -> np.ndarray:
    """:func:`unit_for` each of several values."""
    units = np.ones(len(greatest))
    if callable(metric) or metric in ("hamming", "jaccard"):
        return units
    usual = (greatest > 1e-9) & (greatest < 1e9)
    extreme = ~usual & (greatest != 0) & np.isfinite(greatest)
    powers = -np.round(np.log2(greatest[extreme].astype(np.float64)))
    units[extreme] = 2.0 ** np.minimum(powers, LARGEST_POWER)
    return units


def moderate(X: Any, metric: Any) -> tuple[Any, float]:
    """X times a unit that lets no distance overflow or vanish, and this unit.

    It is 1 unless distances grow like the rows, and these are extreme.
    """
    if callable(metric) or metric not in PROPORTIONAL or 0 in X.shape:
        return X, 1.0
    unit = unit_for(largest(X.data if is_sparse(X) else np.asarray(X)), metric)
    return (X, 1.0) if unit == 1.0 else (X.astype(np.float64) * unit, unit)


def check_fits(Y: np.ndarray, dtype: Any, owner: str) -> None:
    """Refuse a map in the units of the data that their float type cannot hold."""
    reach, most = largest(Y), float(np.finfo(dtype).max)
    if not reach <= most:
        raise DataError(
            f"{owner}: coordinates of the map reach {reach:g}, beyond what {np.dtype(dtype)} can "
            "hold; divide X by a large number, or give it in float64."
        )


def squarable(X: Any) -> Any:
    """X, or in float64 what is too large or too small for squares in float32."""
    if X.dtype != np.float32 or unit_for(largest(X.data if is_sparse(X) else X), "euclidean") == 1:
        return X
    return X.astype(np.float64)


def in_units(distances: np.ndarray, unit: float, metric: Any) -> np.ndarray:
    """Distances of the rows as they were given, from those of scaled ones."""
    if unit == 1.0 or metric in ("cosine", "correlation"):
        return distances
    with np.errstate(over="ignore"):  # infinity is what is beyond the largest number
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
