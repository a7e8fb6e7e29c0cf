"""Coordinates for finding neighbor candidates fast, whose distances are lower bounds.

Candidates are searched among float32 points F with  |F_i - F_j| <= |x_i - x_j|  up to a known
rounding error: a pair that is too far apart in F is too far apart in the data. Up to
``FULL_COLUMNS`` columns F is the centered data, rotated so that the first coordinates have most of
the variance. For wider data F holds the leading principal coordinates and one more, the length of
the residual: with x = P x + r,

    |x - y|^2 = |P x - P y|^2 + |r_x - r_y|^2 >= |P x - P y|^2 + (|r_x| - |r_y|)^2.

The kernels use the same inequality again: after the first ``lead`` coordinates of F most pairs are
already excluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lowland import _native
from lowland._base.monitor import Monitor
from lowland._base.validation import is_usual, largest
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.linalg.moments import moments
from lowland._engines.linalg.principal_axes import by_covariance, by_gram
from lowland._engines.linalg.products import contiguous_blocks

FULL_COLUMNS = 128
LEADING = 96
FILTER_COLUMNS = LEADING + 1  # coordinates of wider tables, with the length that is left over
TURNED_COLUMNS = 16  # fewer columns are not rotated: a rotation would gain nothing
LEAD_SHARE = 0.75  # share of the variance in the coordinates that are compared first


def filter_scale(X: np.ndarray) -> float:
    """A power of two that brings rows of unusual size to where float32 holds their squares."""
    greatest = largest(X)
    return 1.0 if is_usual(greatest) else float(2.0 ** -np.round(np.log2(greatest)))


@dataclass(frozen=True)
class FilterSpace:
    """The map from data to filter coordinates."""

    mean: np.ndarray
    axes: np.ndarray | None

    @classmethod
    def of(cls, X: np.ndarray, threads: int, full: bool = False) -> FilterSpace:
        """The filter space of the rows of X; ``full`` keeps all coordinates."""
        n, p = X.shape
        if full or p <= FULL_COLUMNS or n <= 2 * LEADING:
            # The median: an outlier would move the mean, and all other rows would lose digits.
            sample = np.ascontiguousarray(X[:: max(1, n // 1000)])
            center = np.median(sample, axis=0).astype(np.float64)
            return cls(center, _principal_frame(sample - center))
        if p <= 3000:
            found = by_covariance(moments(X, threads, Monitor()), LEADING, scaled=False)
        else:
            sample = np.ascontiguousarray(X[:: max(1, n // 1000)])
            found = by_gram(sample, min(LEADING, len(sample) - 1), False, threads)
        return cls(found.mean, np.ascontiguousarray(found.axes.T))

    def coordinates(self, X: np.ndarray, threads: int, dtype: Any = np.float32) -> np.ndarray:
        """F of the rows of X."""
        if self.axes is None:
            F = np.empty(X.shape, dtype)
            for rows, block in contiguous_blocks(X, 2**14):
                F[rows] = block - self.mean
            return F
        p, q = self.axes.shape
        F = np.empty((X.shape[0], min(p, q + 1)), dtype)
        for rows, block in contiguous_blocks(X, 2**12):
            # In float64: the length left over is a difference of nearly equal squares.
            centered = block - self.mean
            leading = products.times(centered, np.zeros(p), self.axes, threads)
            F[rows, :q] = leading
            if q == p:
                continue
            left = np.einsum("ij,ij->i", centered, centered)
            left -= np.einsum("ij,ij->i", leading, leading)
            F[rows, q] = np.sqrt(np.maximum(left, 0.0))
        return F


@dataclass(frozen=True)
class PackedPoints:
    """Points in the kernels' layout: panels, half squares, and the row number at each place."""

    panels: np.ndarray
    halves: np.ndarray
    ids: np.ndarray
    rounding: float
    tails: np.ndarray
    lead: int

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        arrays = (self.panels, self.halves, self.ids, self.tails)
        return sum(int(array.nbytes) for array in arrays)

    @classmethod
    def of(
        cls, F: np.ndarray, threads: int, ids: np.ndarray | None = None, lead: int | None = None
    ) -> PackedPoints:
        """Pack the points F; ``ids`` has the row of each of them; None: all, in order.

        Queries take the ``lead`` of the points they are compared with: a bound on the rest of a
        product needs tails that begin at the same coordinate.
        """
        n, q = F.shape
        ids = np.arange(n, dtype=np.int32) if ids is None else ids
        panels = packed(np.ascontiguousarray(F), threads)
        n_places = len(panels) * panels.shape[2]
        halves = np.full(n_places, np.inf, F.dtype)
        halves[:n] = np.einsum("ij,ij->i", F, F, dtype=np.float64) / 2
        halves[:n][ids < 0] = np.inf  # an empty place
        places = np.full(n_places, -1, np.int32)
        places[:n] = ids
        eps = float(np.finfo(F.dtype).eps)
        lead = _lead_of(F) if lead is None else lead
        tails = np.zeros(n_places, F.dtype)
        tails[:n] = np.sqrt(np.einsum("ij,ij->i", F[:, lead:], F[:, lead:], dtype=np.float64))
        tails *= 1 + 4 * eps  # never too short
        # q products and sums, the half squares and the coordinates are rounded once each.
        return cls(panels, halves, places, (q + 5) * eps / 2, tails, lead)


def _principal_frame(sample: np.ndarray) -> np.ndarray | None:
    """All principal axes of centered rows as columns, leading first; None for no rotation."""
    n, p = sample.shape
    if not TURNED_COLUMNS < p <= FULL_COLUMNS or n < 2 * p:
        return None
    sample = sample.astype(np.float64)
    scale = np.abs(sample).max()
    if scale == 0 or not np.isfinite(scale):
        return None
    sample /= scale
    return np.ascontiguousarray(all_eigenpairs(sample.T @ sample).vectors)


def _lead_of(F: np.ndarray) -> int:
    """The number of coordinates to compare first: few that hold most of the variance."""
    n, q = F.shape
    variances = F[:: max(1, n // 1000)].var(axis=0, dtype=np.float64)
    lead = 4 * (1 + int(np.searchsorted(np.cumsum(variances), LEAD_SHARE * variances.sum())) // 4)
    return lead if lead <= 0.7 * q else q


def panel_width(dtype: Any) -> int:
    """Points per panel."""
    single = np.dtype(dtype) == np.float32
    return _native.PANEL_WIDTH_FLOAT32 if single else _native.PANEL_WIDTH_FLOAT64


def packed(points: np.ndarray, threads: int) -> np.ndarray:
    """Points in the kernels' layout."""
    width = panel_width(points.dtype)
    panels = np.empty((-(-len(points) // width), points.shape[1], width), points.dtype)
    _native.pack_points(points, panels, threads)
    return panels
