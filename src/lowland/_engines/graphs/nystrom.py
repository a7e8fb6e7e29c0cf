"""Places of new rows from their distances to fitted rows (Nystroem's formula).

y(x) = sum_j p(x, x_j) y_j / lambda,    p(x, x_j) = w(x, x_j) / sum_j w(x, x_j)
"""

from __future__ import annotations

import numpy as np

from lowland._engines.linalg.magnitude import in_units_of

SMALLEST_DIVISOR = 0.05  # smaller 1 - lambda would only amplify the noise of new rows


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


def nystrom_divisors(eigenvalues: np.ndarray) -> np.ndarray:
    """1 - lambda for the eigenvalues of a normalized Laplacian; 1 where that is below 0.05."""
    divisors = 1 - eigenvalues
    return np.where(divisors > SMALLEST_DIVISOR, divisors, 1.0)
