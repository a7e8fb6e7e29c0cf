"""Cosine and correlation as Euclidean distances between directions.

For rows u, v of length 1, |u - v|^2 / 2 = 1 - cos(u, v); for correlation the rows are centered
first. A row without direction (all zeros; for correlation: constant) is at distance 1 from all
rows with a direction, and at distance 0 from other rows without one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Directions(NamedTuple):
    """Rows of length 1, with one more column that is 1 for rows without direction."""

    rows: np.ndarray
    empty: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, metric: str) -> Directions:
        U = np.array(X, dtype=np.float64, order="C")
        size = np.abs(U).max(axis=1, keepdims=True)
        U /= np.where(size > 0, size, 1.0)  # neither tiny nor huge rows may over- or underflow
        if metric == "correlation":
            U -= U.mean(axis=1, keepdims=True)
        length = np.linalg.norm(U, axis=1, keepdims=True)
        empty = length <= 1e-13 * np.sqrt(X.shape[1])
        U = np.where(empty, 0.0, U / np.where(empty, 1.0, length))
        return cls(np.hstack([U, empty.astype(np.float64)]), empty[:, 0])


def settle_empty(
    ids: np.ndarray,
    distances: np.ndarray,
    empty_points: np.ndarray,
    empty_rows: np.ndarray,
    self_join: bool,
) -> None:
    """Set distances to and from rows without direction to exactly 1 or 0, in place.

    For such a row, all rows with a direction tie, so that the first of them are its neighbors.
    """
    k = ids.shape[1]
    for row in np.flatnonzero(empty_rows):
        order = np.concatenate([np.flatnonzero(empty_points), np.flatnonzero(~empty_points)])
        if self_join:
            order = order[order != row]
        ids[row] = order[:k]
        distances[row] = np.where(empty_points[ids[row]], 0.0, 1.0)
    touched = np.flatnonzero(~empty_rows & empty_points[ids].any(axis=1))
    distances[touched] = np.where(empty_points[ids[touched]], 1.0, distances[touched])
    order = np.lexsort((ids[touched], distances[touched]), axis=1)
    ids[touched] = np.take_along_axis(ids[touched], order, axis=1)
    distances[touched] = np.take_along_axis(distances[touched], order, axis=1)
