"""Rows made ready for Euclidean kernels: directions for cosine, units that do not overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._engines.distances.directions import Directions

__all__ = ["in_type", "in_units", "rows_of", "true_distances"]


def in_units(distances: np.ndarray, unit: float, metric: Any) -> np.ndarray:
    """Distances of the rows as they were given, from those of scaled ones."""
    if unit == 1.0 or metric in ("cosine", "correlation"):
        return distances
    with np.errstate(over="ignore"):  # infinity is what is beyond the largest number
        return distances / unit / unit if metric == "sqeuclidean" else distances / unit


def in_type(distances: np.ndarray, unit: float, metric: Any, dtype: Any) -> np.ndarray:
    """Distances of the rows as they were given, in the type of the rows, if they fit into it."""
    with np.errstate(over="ignore"):
        found = in_units(distances, unit, metric).astype(dtype)
    if unit != 1.0:
        lost = (np.isinf(found) & np.isfinite(distances)) | ((found == 0) & (distances > 0))
        if lost.any():
            raise DataError(
                f"X: with metric={metric!r} a distance of two rows is {distances[lost][0]:g} in "
                f"units of {1 / unit:g}, which is beyond what {np.dtype(dtype)} can hold; divide X "
                f"by {1 / unit:.0e}."
            )
    return found


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
