"""The nearest unit of each row, and sums over the rows of each unit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._engines.neighbors.cell_search import nearest_centers

__all__ = ["UnitSums", "nearest_units", "unit_sums"]


class UnitSums(NamedTuple):
    """How many rows each unit has (n_units,), and their sum (n_units, p), both in float64."""

    counts: np.ndarray
    sums: np.ndarray


def nearest_units(X: np.ndarray, units: np.ndarray, threads: int, n_nearest: int = 1) -> np.ndarray:
    """Numbers (n, n_nearest) of the units nearest to each dense row, nearest first.

    Distances are compared in float64; equal ones are decided by the lower number.
    """
    return nearest_centers(X, np.ascontiguousarray(units, X.dtype), n_nearest, threads, Monitor())


def unit_sums(X: np.ndarray, nearest: np.ndarray, n_units: int) -> UnitSums:
    """Sums over the rows whose nearest unit each one is; ``nearest`` is (n,)."""
    order = np.argsort(nearest, kind="stable")
    counts = np.bincount(nearest, minlength=n_units)
    filled = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts[filled])[:-1]])
    sums = np.zeros((n_units, X.shape[1]))
    sums[filled] = np.add.reduceat(X[order], starts, axis=0, dtype=np.float64)
    return UnitSums(counts.astype(np.float64), sums)
