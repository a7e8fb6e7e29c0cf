"""Places of new rows from their distances to fitted rows (Nystroem's formula).

y(x) = sum_j p(x, x_j) y_j / lambda,    p(x, x_j) = w(x, x_j) / sum_j w(x, x_j)
"""

from __future__ import annotations

import numpy as np

from lowland._core.errors import DataError

__all__ = ["heat_exponents", "in_units_of", "weighted_sum"]


def weighted_sum(weights: np.ndarray, indices: np.ndarray, places: np.ndarray) -> np.ndarray:
    """sum_j weights_ij places[indices_ij], one row per new row.

    The sum runs over the columns of ``weights``, so a result does not depend on the other rows.
    """
    Z = np.zeros((len(weights), places.shape[1]))
    for weight, index in zip(weights.T, indices.T, strict=True):
        Z += weight[:, None] * places[index]
    return Z


def heat_exponents(distances: np.ndarray, bandwidth: float, owner: str) -> np.ndarray:
    """(min d^2 - d^2) / bandwidth of each new row: the exponents of its weights.

    Subtracting the smallest square changes no p. The nearest row gets the exponent 0, so that a
    new row far from all fitted rows has a weight that does not underflow.
    """
    d = in_units_of(np.sqrt(bandwidth), distances, np.finfo(float).max / 2, owner)
    nearest = d.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # the exponent -infinity has the weight 0
        return -(d - nearest) * (d + nearest)


def in_units_of(unit: float, distances: np.ndarray, most: float, owner: str) -> np.ndarray:
    """distances / unit in float64; refuses a new row whose quotient is above ``most``."""
    with np.errstate(over="ignore"):  # in the unit of extreme data, a width may be 0
        d = distances.astype(np.float64) / max(unit, np.finfo(np.float64).tiny)
    if not d.max(initial=0.0) <= most:
        raise DataError(
            f"{owner}: X has a new row at distance {distances.max():.0e} from the fitted rows, "
            "which is too far to compute its place; leave it out."
        )
    return d
