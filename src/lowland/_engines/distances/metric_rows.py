"""Rows as the distance kernels take them: directions for cosine, and units that do not overflow.

Squares of extreme values overflow or vanish. Such rows are multiplied by a power of two, their
unit, which changes no digit, and the distances are divided by the same power of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._engines.distances.directions import Directions
from lowland._engines.distances.metrics import check_values, has_directions, unit_power
from lowland._engines.linalg.magnitude import unit_for, units_for


def metric_unit(greatest: float, metric: Any) -> float:
    """The unit for rows whose largest value is ``greatest``; 1 unless that is extreme."""
    return 1.0 if unit_power(metric) is None else unit_for(greatest)


def metric_units(greatest: np.ndarray, metric: Any) -> np.ndarray:
    """:func:`metric_unit` of each of several values."""
    return np.ones(len(greatest)) if unit_power(metric) is None else units_for(greatest)


def in_units(distances: np.ndarray, unit: float, metric: Any) -> np.ndarray:
    """Distances of the given rows, from the distances of rows in a unit."""
    return in_type(distances, unit, metric, np.float64)


def in_type(distances: np.ndarray, unit: float, metric: Any, dtype: Any) -> np.ndarray:
    """:func:`in_units` in the type of the rows; refused if it cannot hold a distance."""
    with np.errstate(over="ignore", under="ignore"):
        found = distances
        for _ in range(unit_power(metric) or 0 if unit != 1.0 else 0):
            found = found / unit
        found = found.astype(dtype, copy=False)
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
    """Rows as the search takes them, and which of them have no direction (None: no matter)."""
    check_values(X, metric, argument)
    if has_directions(metric):
        return Directions.of(X, metric)
    return np.ascontiguousarray(X), None


def true_distances(squares: np.ndarray, metric: str) -> np.ndarray:
    """Distances from the squared ones of :func:`rows_of`, which may be overwritten."""
    if metric == "sqeuclidean":
        return squares
    return np.sqrt(squares, out=squares) if metric == "euclidean" else squares / 2
