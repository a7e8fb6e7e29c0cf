"""The center of the densest part of each category, for its name."""

from __future__ import annotations

import numpy as np

from lowland.plot.colors import Categories

CELLS = 32


def category_centers(Y: np.ndarray, categories: Categories) -> np.ndarray:
    """One place per named category, in the units of Y.

    The mean of a ring or of two groups may lie where the category has no points. Therefore the
    points of a category are counted on a coarse grid, the counts are smoothed, and the center is
    the mean of the points around the fullest cell.
    """
    low = Y.min(axis=0)
    width = max(float(np.ptp(Y, axis=0).max()), np.finfo(float).tiny)
    cells = np.minimum(((Y - low) * (CELLS / width)).astype(np.int64), CELLS - 1)
    order = np.argsort(categories.codes, kind="stable")
    starts = np.searchsorted(categories.codes[order], np.arange(len(categories.names) + 1))
    centers = np.empty((len(categories.names), 2))
    for code in range(len(categories.names)):
        rows = order[starts[code] : starts[code + 1]]
        column, line = cells[rows].T
        counts = np.bincount(column * CELLS + line, minlength=CELLS * CELLS)
        full = np.unravel_index(_blurred(counts.reshape(CELLS, CELLS)).argmax(), (CELLS, CELLS))
        near = (np.abs(cells[rows] - full) <= 2).all(axis=1)
        centers[code] = Y[rows[near]].mean(axis=0)
    return centers


def _blurred(counts: np.ndarray, steps: int = 2) -> np.ndarray:
    """Repeated means over three cells along each axis."""
    blurred = counts.astype(np.float64)
    for _ in range(steps):
        for axis in (0, 1):
            padded = np.pad(blurred, [(1, 1) if axis == a else (0, 0) for a in (0, 1)])
            thirds = [np.take(padded, range(k, k + CELLS), axis) for k in range(3)]
            blurred = np.mean(thirds, axis=0)
    return blurred * (counts > 0)
