"""Smoothers of a principal curve: x as a function of t, by splines or local lines.

Rows with equal or nearly equal t are first averaged in cells, so that a smoother costs the same for
any number of rows. All smoothers are linear: the fitted values at the cells are S X with a matrix S
that depends on t only. The trace of S is their degrees of freedom, which are 2 for a straight line
(1 for a point, where t is a circle). A control, large where the curve is smooth, sets them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.interpolate import BSpline
from scipy.optimize import brentq

MOST_CELLS = 2000
LOCAL_CELLS = 500  # of local lines, whose cost is cells times knots
FEW_CELLS = 150  # enough to count their degrees of freedom
MOST_SITES = 100  # knots of a spline
CLOSEST = 1e-3  # closer knots would make the equations singular
ROUNDING = 1e-14  # added to the diagonal, where cells leave it undetermined
LARGEST_RATIO = 1e11  # of penalty and sum of squares
CAUTION = 1.4  # GCV counts each degree of freedom as so many (Kim & Gu 2004)
TRIED = 16  # controls that GCV compares, and then 4 around the best


class Cells(NamedTuple):
    """Mean t in 0 .. 1, mean row and share of the rows of each cell, t ascending.

    ``within`` is the mean squared distance of the rows from the mean of their cell.
    """

    t: np.ndarray
    X: np.ndarray
    w: np.ndarray
    within: float
    n: int


def cells_of(t: np.ndarray, X: np.ndarray, most: int = MOST_CELLS) -> Cells:
    """Rows with equal t share a cell; beyond ``most`` values of t, neighbors do."""
    n = len(t)
    order = np.argsort(t, kind="stable")
    new = np.empty(n, bool)
    new[0], new[1:] = True, t[order[1:]] != t[order[:-1]]
    label = np.cumsum(new) - 1
    if label[-1] >= most:
        label = label * most // (label[-1] + 1)
    starts = np.append(np.flatnonzero(np.diff(label, prepend=-1)), n)
    sizes = np.diff(starts).astype(np.float64)
    sums = scipy.sparse.csr_matrix((np.ones(n), order, starts), shape=(len(sizes), n))
    means = (sums @ X) / sizes[:, None]
    total = float(np.einsum("ij,ij->", X, X))
    between = float(np.einsum("i,ij,ij->", sizes, means, means))
    return Cells((sums @ t) / sizes, means, sizes / n, max(0.0, total - between) / n, n)


def merged(cells: Cells, most: int) -> Cells:
    """At most so many cells, for what needs no more."""
    c = len(cells.t)
    if c <= most:
        return cells
    starts = np.arange(most) * c // most
    w = np.add.reduceat(cells.w, starts)
    t = np.add.reduceat(cells.w * cells.t, starts) / w
    X = np.add.reduceat(cells.w[:, None] * cells.X, starts) / w[:, None]
    lost = float(np.einsum("i,ij,ij->", cells.w, cells.X, cells.X))
    lost -= float(np.einsum("i,ij,ij->", w, X, X))
    return Cells(t, X, w, cells.within + max(0.0, lost), cells.n)


class Spline:
    """min sum w |x - f(t)|^2 + 10^control int |f''|^2 dt over cubic splines; O(cells).

    The knots are the cells, or evenly chosen ones of them. Then f is the smoothing spline of
    Reinsch (1967). A closed spline has evenly spaced knots. The straight line is taken out before,
    so that large penalties do not magnify rounding. ``closed``: t = 0 and t = 1 are the same place.
    """

    controls = (-10.0, 4.0)  # the least and the greatest one, as powers of 10

    def __init__(self, cells: Cells, closed: bool) -> None:
        self.cells, self.closed = cells, closed
        t, w = cells.t, cells.w
        self.mean = w @ t, w @ cells.X
        spread = w @ (t - self.mean[0]) ** 2
        along = (w * (t - self.mean[0])) @ cells.X
        flat = closed or spread == 0
        self.slope = np.zeros_like(along) if flat else along / spread
        rest = cells.X - self._line(t)
        self.n_sites = min(len(t), MOST_SITES)
        if closed:
            self.n_sites = max(4, self.n_sites)
            self.penalty = _periodic_penalty(self.n_sites)
        else:
            sites = _apart(t[np.arange(self.n_sites) * (len(t) - 1) // max(1, self.n_sites - 1)])
            self.knots = np.concatenate([[0.0] * 3, sites, [1.0] * 3])
            self.penalty = _bending(self.knots)
        B = self._basis(t)
        self.gram = (B.T @ (B.multiply(w[:, None]))).toarray()
        self.right = B.T @ (w[:, None] * rest)
        self.left_over = float(np.einsum("i,ij,ij->", w, rest, rest))
        # between few cells a spline with hardly any penalty would run far away
        loose = -4 * np.log10(np.pi * len(t)) - 2
        # beyond this penalty rounding is larger than what is left of the spline: a straight line
        straight = np.log10(LARGEST_RATIO * self.gram.max() / self.penalty.max())
        low, high = self.controls
        self.controls = (max(low, float(loose)), min(high, float(straight)))

    def _line(self, t: np.ndarray) -> np.ndarray:
        return self.mean[1] + (t - self.mean[0])[:, None] * self.slope

    def _basis(self, t: np.ndarray) -> scipy.sparse.csr_matrix:
        if not self.closed:
            return BSpline.design_matrix(np.clip(t, 0.0, 1.0), self.knots, 3).tocsr()
        m, place = self.n_sites, np.mod(t, 1.0) * self.n_sites
        first = np.minimum(place.astype(np.int64), m - 1)
        u = place - first
        values = [(1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, 3 * (u + u**2 - u**3) + 1, u**3]
        columns = (first[:, None] + np.arange(4)) % m
        starts = np.arange(0, 4 * len(t) + 1, 4)
        entries = (np.stack(values, axis=1) / 6).ravel()
        return scipy.sparse.csr_matrix((entries, columns.ravel(), starts), shape=(len(t), m))

    def _solved(self, control: float, right: np.ndarray) -> np.ndarray:
        A = self.gram + 10.0**control * self.penalty
        np.fill_diagonal(A, np.diagonal(A) + ROUNDING * self.gram.max())
        if self.closed:
            return scipy.linalg.solve(A, right, assume_a="pos", check_finite=False)
        bands = np.zeros((4, len(A)))
        for k in range(min(4, len(A))):
            bands[k, : len(A) - k] = np.diagonal(A, -k)
        return scipy.linalg.solveh_banded(bands, right, lower=True, check_finite=False)

    def _coefficients(self, control: float) -> np.ndarray:
        if control >= self.controls[1]:
            return np.zeros_like(self.right)
        return self._solved(control, self.right)

    def trace(self, control: float) -> float:
        """Degrees of freedom."""
        return float(np.trace(self._solved(control, self.gram)))

    def residual(self, control: float) -> float:
        """Mean squared distance of the rows from the curve at their own t."""
        c = self._coefficients(control)
        fitted = np.einsum("ij,ij->", c, self.gram @ c - 2 * self.right)
        return self.cells.within + max(0.0, self.left_over + float(fitted))

    def curve(self, control: float, t: np.ndarray) -> np.ndarray:
        """Points of the curve."""
        return self._line(t) + self._basis(t) @ self._coefficients(control)


def _apart(sites: np.ndarray) -> np.ndarray:
    """From 0 to 1 those of the sites that are not too close to the one before."""
    kept = [0.0]
    for site in sites[1:-1]:
        if kept[-1] + CLOSEST <= site <= 1 - CLOSEST:
            kept.append(float(site))
    return np.array([*kept, 1.0])


def _bending(knots: np.ndarray) -> np.ndarray:
    """int B_i'' B_j'' dt: products of lines, exact by Gauss's rule with two nodes."""
    size = len(knots) - 4
    second = BSpline(knots, np.eye(size), 3).derivative(2)
    ends = np.unique(knots)
    middle, half = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    values = [second(middle + side * half / np.sqrt(3)) for side in (-1, 1)]
    return sum(v.T @ (half[:, None] * v) for v in values)


def _periodic_penalty(m: int) -> np.ndarray:
    """The same of evenly spaced splines on a circle of length 1."""
    row = np.zeros(m)
    for shift, value in zip(range(4), (8 / 3, -3 / 2, 0.0, 1 / 6), strict=True):
        row[shift % m] += value
        row[-shift % m] += value if shift else 0.0
    return float(m) ** 3 * scipy.linalg.circulant(row)


class Kernel:
    """Local lines with Gaussian weights exp(-(t - s)^2 / (2 h^2)), h = 10^control; O(cells)."""

    controls = (-3.5, 2.0)

    def __init__(self, cells: Cells, closed: bool) -> None:
        self.cells, self.closed = merged(cells, LOCAL_CELLS), closed
        self.few = merged(cells, FEW_CELLS)

    def _weights(self, gaps: np.ndarray, w: np.ndarray, control: float) -> np.ndarray:
        squares = gaps**2
        squares -= squares.min(axis=1, keepdims=True)  # the nearest cell always counts
        return w * np.exp(-0.5 * squares / 10.0 ** (2 * control))

    def _matrix(self, t: np.ndarray, cells: Cells, control: float) -> np.ndarray:
        """Rows of S at t: the line through the weighted cells, or their mean if they have none."""
        gaps = cells.t - t[:, None]
        if self.closed:
            gaps = np.mod(gaps + 0.5, 1.0) - 0.5
        W = self._weights(gaps, cells.w, control)
        W /= W.sum(axis=1, keepdims=True)
        first = np.einsum("ij,ij->i", W, gaps)[:, None]
        gaps -= first
        spread = np.einsum("ij,ij,ij->i", W, gaps, gaps)[:, None]
        tilt = np.divide(first, spread, out=np.zeros_like(first), where=spread > 1e-14)
        return W * (1 - gaps * tilt)

    def trace(self, control: float) -> float:
        return float(np.trace(self._matrix(self.few.t, self.few, control)))

    def residual(self, control: float) -> float:
        rest = self.few.X - self._matrix(self.few.t, self.few, control) @ self.few.X
        return self.few.within + float(np.einsum("i,ij,ij->", self.few.w, rest, rest))

    def curve(self, control: float, t: np.ndarray) -> np.ndarray:
        return self._matrix(t, self.cells, control) @ self.cells.X


class Lowess(Kernel):
    """Local lines with weights (1 - |u|^3)^3, u = (t - s) / h, of the share 10^control of the rows.

    h is the distance within which that share lies, times the share if it is above 1.
    """

    controls = (-3.0, 2.0)

    def _weights(self, gaps: np.ndarray, w: np.ndarray, control: float) -> np.ndarray:
        far, share = np.abs(gaps), 10.0**control
        order = np.argsort(far, axis=1, kind="stable")
        held = np.cumsum(w[order], axis=1)
        last = np.minimum((held < min(share, 1.0) * (1 - 1e-12)).sum(axis=1), len(w) - 1)
        rows = np.arange(len(far))
        h = far[rows, order[rows, last]] * max(1.0, share)
        # a little beyond the last cell, and beyond a second one
        second = far[rows, order[rows, min(1, len(w) - 1)]]
        h = 1.0001 * np.maximum(np.maximum(h, 1.5 * second), 1e-9)
        return w * np.maximum(0.0, 1 - (far / h[:, None]) ** 3) ** 3


Smoother = Spline | Kernel


def control_with(smoother: Smoother, df: float) -> float:
    """The control with these degrees of freedom, or the nearest."""
    low, high = smoother.controls

    def surplus(control: float) -> float:
        return smoother.trace(control) - df

    if surplus(high) >= 0:
        return high
    if surplus(low) <= 0:
        return low
    return float(brentq(surplus, low, high, xtol=1e-4, maxiter=60))


def best_control(smoother: Smoother, least_df: float, most_df: float) -> float:
    """The control with the least GCV among those with degrees of freedom between two bounds.

    GCV = residual / (1 - 1.4 trace / n)^2 estimates the squared distance of new rows from the curve
    at their own t (Craven & Wahba 1979).
    """
    low, high = smoother.controls
    if np.isfinite(most_df):
        low = control_with(smoother, most_df)
    if smoother.closed:
        high = max(low, control_with(smoother, least_df))
    tried = np.linspace(high, low, TRIED)
    best = float(tried[int(np.argmin([gcv(smoother, c) for c in tried]))])
    near = best + (high - low) / (TRIED - 1) * np.array([0.6, 0.3, 0.0, -0.3, -0.6])
    near = np.clip(near, low, high)
    return float(near[int(np.argmin([gcv(smoother, c) for c in near]))])


def gcv(smoother: Smoother, control: float) -> float:
    left = 1 - CAUTION * smoother.trace(control) / smoother.cells.n
    return smoother.residual(control) / left**2 if left > 0 else np.inf
