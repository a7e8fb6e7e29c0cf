"""Rows for points of a map: the placement of new rows with the roles of the spaces exchanged."""

from __future__ import annotations

import numpy as np

from lowland._engines.local_stress.laws import Law
from lowland._engines.local_stress.placement import law_height
from lowland._engines.stress.placement import between_nearest, settled

CLOSE = 1e-9  # of the size of the rows: a row that moves less has converged


def rows_at(
    T: np.ndarray, X: np.ndarray, law: Law, own: np.ndarray, radii: np.ndarray, threads: int
) -> np.ndarray:
    """Rows (m, p) at the distances T (m, n) from the rows X, as far as those count.

    Each minimizes sum_j F(t_j) (t_j - |x - x_j|)^2, from the mean of the rows of the three nearest
    points, weighted by inverse distances. A point of the map that has a row gets that row. F is
    that of the distances in the map: weights that change with x would be 0 for all rows where the
    descent begins, if the map is smaller than the data.
    """
    X = np.ascontiguousarray(X, np.float64)
    equal = T == 0
    found = X[equal.argmax(axis=1)]
    new = np.flatnonzero(~equal.any(axis=1))
    if new.size:
        targets = np.ascontiguousarray(T[new])
        height = law_height(targets, X, law._replace(tradeoff=1.0), own[new], radii, threads)
        width = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
        found[new] = settled(between_nearest(targets, X), height, CLOSE * width)[0]
    return found
