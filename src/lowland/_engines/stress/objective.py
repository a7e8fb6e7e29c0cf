"""Stress as an objective: sum over pairs of w_ij (delta_ij - d_ij)^2, in one pass over the pairs.

    AllPairs      a matrix of targets; w given, or delta^-power, or 1; NaN where nothing is known
    ListedPairs   targets of some pairs

The majorizing quadratic has the matrix V, the Laplacian of the weights: V_ij = -w_ij,
V_ii = sum_j w_ij. If all weights are 1, V^+ is 1/n on centered maps. Else V is factored where that
is cheap; where it is not, 2 diag(V), which lies above V, takes its place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

import numpy as np
import scipy.linalg

from lowland import _native
from lowland._base.threads import limit_blas
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.stress.majorization import Evaluation

FACTORED_ROWS = 1500
NEGLIGIBLE = 1e-12  # of the root mean square: smaller distances mean that rows are equal
ROUNDING = {np.dtype(np.float32): 1e-13, np.dtype(np.float64): 1e-28}


def drop_negligible(delta: np.ndarray, power: int) -> None:
    """Set to 0, in place, distances whose weight delta^-power would exceed all others by far."""
    if power == 0:
        return
    for rows in row_blocks(len(delta), rows_within(8 * int(np.prod(delta.shape[1:])), 2**23)):
        part = delta[rows]
        part[part < NEGLIGIBLE] = 0


def inverse_powers(delta: np.ndarray, power: int) -> np.ndarray:
    """delta^-power; 0 where delta is 0 (if power > 0) or unknown."""
    if power == 0:
        return (~np.isnan(delta)).astype(delta.dtype)
    with np.errstate(divide="ignore"):
        return np.where(delta > 0, delta, np.inf) ** -power


class Laplacian:
    """Products with V^+ of the weights, or with that of a diagonal matrix above V."""

    def __init__(self, degrees: np.ndarray, dense: np.ndarray | None, uniform: bool) -> None:
        # a point whose pairs all have weight 0 has no force either
        self.degrees = np.where(degrees > 0, degrees, 1.0)
        self.uniform, self.factor = uniform, None
        if dense is not None and not uniform:
            V = -dense.astype(np.float64)
            np.fill_diagonal(V, 0.0)
            degrees = -V.sum(axis=1)
            # V 1 = 0: with 11^T added, the inverse equals V^+ on centered maps
            V += degrees.mean() / len(V)
            V[np.diag_indices_from(V)] += degrees
            with limit_blas(1), contextlib.suppress(scipy.linalg.LinAlgError):
                self.factor = scipy.linalg.cho_factor(V, overwrite_a=True, check_finite=False)

    def solve(self, slope: np.ndarray) -> np.ndarray:
        if self.uniform:
            return slope / len(slope)
        if self.factor is not None:
            return scipy.linalg.cho_solve(self.factor, slope, check_finite=False)
        return slope / (2 * self.degrees[:, None])


class Quadratic:
    """Base of the objectives of raw stress: the Guttman transform is Y - V^+ slope."""

    laplacian: Laplacian

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        return self.laplacian.solve(slope)

    def guttman_step(self, Y: np.ndarray, here: Evaluation) -> np.ndarray:
        return self.laplacian.solve(here.slope)


class AllPairs(Quadratic):
    """Stress over all pairs of a matrix of targets, each pair once.

    Attributes
    ----------
    delta, weights : ndarray of shape (n, n)
        Symmetric; ``weights`` is empty where they follow from ``power``. Both have one float type,
        in which distances are computed; sums are in double.
    scale : float
        sum over i < j of w delta^2: the stress of a map with all points in one place.
    uniform : bool
        Whether all pairs are known and weigh 1.
    """

    def __init__(
        self, delta: np.ndarray, weights: np.ndarray | None, power: int, threads: int
    ) -> None:
        self.delta, self.power, self.threads = delta, power, threads
        self.weights = np.empty((0, 0), delta.dtype) if weights is None else weights
        self.n = n = len(delta)
        self.complete = weights is None and not np.isnan(delta.sum(dtype=np.float64))
        self.uniform = uniform = self.complete and power == 0
        degrees, scale, dense = np.full(n, float(n)), 0.0, None
        if n <= FACTORED_ROWS and not uniform:
            dense = np.empty((n, n))
        for rows in row_blocks(n, 256):
            w, known = self._weights_of(rows), np.nan_to_num(delta[rows], posinf=0.0)
            if not uniform:
                degrees[rows] = w.sum(axis=1, dtype=np.float64)
            if dense is not None:
                dense[rows] = w
            scale += float((w * known**2).sum(dtype=np.float64)) / 2
        self.laplacian, self.scale = Laplacian(degrees, dense, uniform), scale
        self.floor = ROUNDING[delta.dtype] * scale

    def _weights_of(self, rows: slice) -> np.ndarray:
        delta = self.delta[rows]
        if not self.weights.size:
            w = inverse_powers(delta, self.power)
        else:
            w = np.where(np.isnan(delta), 0, self.weights[rows])
        at = np.arange(len(w))
        w[at, at + rows.start] = 0
        return w

    def __call__(self, Y: np.ndarray) -> Evaluation:
        stress, forces = self.per_point(Y)
        return Evaluation(float(stress.sum()) / 2, forces)

    def per_point(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """sum_j w (delta - d)^2 of each point, and half the gradient of the stress."""
        at = np.ascontiguousarray(Y, self.delta.dtype)
        stress, forces = np.empty(self.n), np.empty(Y.shape)
        _native.stress_rows(
            at, at, self.delta, self.weights, self.power, stress, forces, self.threads
        )
        return stress, forces

    def relative_per_point(self, Y: np.ndarray) -> np.ndarray:
        """sqrt( sum_j w (delta - d)^2 / sum_j w delta^2 ): 1 if all points are in one place."""
        return _root_ratio(self.per_point(Y)[0], self.per_point(np.zeros((self.n, 1)))[0])


class ListedPairs(Quadratic):
    """Stress over pairs (first_p, second_p) with targets delta_p and weights, each pair once."""

    def __init__(
        self,
        n: int,
        first: np.ndarray,
        second: np.ndarray,
        delta: np.ndarray,
        weights: np.ndarray | None,
        threads: int,
    ) -> None:
        self.n, self.threads, self.delta = n, threads, np.ascontiguousarray(delta)
        self.first, self.second = (np.ascontiguousarray(e, np.int32) for e in (first, second))
        self.weights = (
            np.empty(0, delta.dtype) if weights is None else np.ascontiguousarray(weights)
        )
        w = np.ones(len(first)) if weights is None else self.weights.astype(np.float64)
        ends = np.concatenate([self.first, self.second])
        degrees = np.bincount(ends, np.tile(w, 2), minlength=n)
        uniform = weights is None and 2 * len(first) == n * (n - 1)
        dense = None
        if n <= FACTORED_ROWS and not uniform:
            dense = np.zeros((n, n))
            dense[self.first, self.second] = dense[self.second, self.first] = w
        self.laplacian = Laplacian(degrees, dense, uniform)
        self.scale = float((w * self.delta.astype(np.float64) ** 2).sum())
        self.floor = ROUNDING[self.delta.dtype] * self.scale

    def __call__(self, Y: np.ndarray) -> Evaluation:
        stress, forces = self.per_point(Y)
        return Evaluation(float(stress.sum()) / 2, forces)

    def per_point(
        self, Y: np.ndarray, delta: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """As :meth:`AllPairs.per_point`; other targets of the same pairs may be given."""
        at = np.ascontiguousarray(Y, self.delta.dtype)
        stress, forces = np.empty(self.n), np.empty(Y.shape)
        targets = self.delta if delta is None else delta
        ends = (self.first, self.second)
        _native.stress_pairs(at, *ends, targets, self.weights, stress, forces, self.threads)
        return stress, forces

    def distances(self, Y: np.ndarray) -> np.ndarray:
        """d_p of all pairs."""
        out = np.empty(len(self.first), self.delta.dtype)
        at = np.ascontiguousarray(Y, self.delta.dtype)
        _native.pair_distances(at, self.first, self.second, out, self.threads)
        return out

    def relative_per_point(self, Y: np.ndarray, delta: np.ndarray | None = None) -> np.ndarray:
        """As :meth:`AllPairs.relative_per_point`."""
        size = self.per_point(np.zeros((self.n, 1)), delta)[0]
        return _root_ratio(self.per_point(Y, delta)[0], size)


def _root_ratio(stress: np.ndarray, size: np.ndarray) -> np.ndarray:
    return np.sqrt(stress / np.where(size > 0, size, 1.0))


# Relative error of the distances of each point, for maps that do not minimize a stress.


PARTNERS = 1000  # of each point, enough for a mean


def chosen_partners(n: int) -> np.ndarray:
    """Rows whose distances to all others are measured: all, or evenly spread ones."""
    return np.arange(n) if n <= 2 * PARTNERS else np.linspace(0, n - 1, PARTNERS).astype(np.int64)


def relative_stress(
    Y: np.ndarray, partners: np.ndarray, distances: Callable[[slice], np.ndarray], threads: int
) -> np.ndarray:
    """sqrt( sum_j (delta_ij - d_ij)^2 / sum_j delta_ij^2 ) over the partners j of each row i.

    ``distances(rows)`` are those of some rows to the partners.
    """
    out, some = np.zeros(len(Y)), np.ascontiguousarray(Y[partners], np.float64)
    none = np.empty((0, 0))
    for rows in row_blocks(len(Y), rows_within(8 * len(partners), 2**24)):
        delta = np.ascontiguousarray(distances(rows), np.float64)
        at = np.ascontiguousarray(Y[rows], np.float64)
        stress, forces = np.empty(len(at)), np.empty(at.shape)
        _native.stress_rows(at, some, delta, none, 0, stress, forces, threads)
        out[rows] = _root_ratio(stress, np.einsum("ij,ij->i", delta, delta))
    return out


# Stress-1 with disparities: sum w (d - f)^2 / sum w d^2, with f the nearest of a cone.
#
# Kruskal's stress-1, squared. It does not change with the size of the map. At the best f its
# derivative with respect to f is 0, so that half its gradient is (F - S V Y) / sum w d^2, where F
# is half the gradient of the raw stress with f as targets, S the loss and V Y that of sum w d^2.
# The Guttman transform V^+ B Y, at the size at which it equals Y in a solution, is Y - V^+ slope *
# sum w d^2 / (1 - S): the loss does not rise, because for fixed f it falls and then f is chosen
# anew.


# Disparities: the target distances of a map, as the best function of the dissimilarities.
#
#     monotone_fit    any non-decreasing function (Kruskal 1964), by pooling adjacent violators
#     MonotoneCone    the same for fixed dissimilarities, sorted once
#     IntervalCone    a + b delta with b >= 0 and no value below 0
#
# The functions form a cone: with the best fit f of distances d, sum w (d - f)^2 / sum w d^2 is the
# squared sine of the angle between d and the cone.


TIES = ("primary", "secondary", "index")


def stable_order(values: np.ndarray, threads: int) -> np.ndarray:
    """The order of a vector, ties by position."""
    order = np.empty((1, len(values)), np.int32)
    _native.sort_rows(np.ascontiguousarray(values, np.float64)[None, :], False, order, threads)
    return order[0]


def mid_ranks(ordered: np.ndarray) -> np.ndarray:
    """Ranks, from 1, of values in ascending order; equal ones share the mean of theirs."""
    rises = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    bounds = np.concatenate([[0], rises, [len(ordered)]])
    return np.repeat((bounds[:-1] + 1 + bounds[1:]) / 2, np.diff(bounds))


def monotone_fit(delta: np.ndarray, d: np.ndarray, ties: str, threads: int = 1) -> np.ndarray:
    """The non-decreasing function of delta nearest to d in least squares, at every pair."""
    order = stable_order(delta, threads)
    fit = np.empty(len(d))
    fit[order] = MonotoneCone(delta[order], ties, threads=threads).nearest(d[order])
    return fit


class MonotoneCone:
    """Non-decreasing functions of dissimilarities that are given in ascending order.

    ``ties`` sets what happens where dissimilarities are equal: "primary" lets the function differ
    there, "secondary" keeps it equal, "index" lets it rise in the order given.
    """

    def __init__(
        self, ordered: np.ndarray, ties: str, weights: np.ndarray | None = None, threads: int = 1
    ) -> None:
        self.ties, self.threads = ties, threads
        self.weights = np.empty(0) if weights is None else weights.astype(np.float64)
        rises = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        bounds = np.concatenate([[0], rises, [len(ordered)]]).astype(np.int32)
        self.members = np.diff(bounds)
        order_is_fixed = ties == "index" or (ties == "primary" and len(rises) + 1 == len(ordered))
        self.bounds = np.empty(0, np.int32) if order_is_fixed else bounds

    def nearest(self, d: np.ndarray) -> np.ndarray:
        """The function nearest to d in (weighted) least squares."""
        d = np.ascontiguousarray(d, np.float64)
        if self.ties != "secondary":
            fit = np.empty(len(d))
            _native.pool_adjacent(d, self.weights, self.bounds, fit, self.threads)
            return fit
        starts = self.bounds[:-1]
        sizes = self.members.astype(np.float64)
        sums = d
        if self.weights.size:
            sizes, sums = np.add.reduceat(self.weights, starts), d * self.weights
        fit = np.empty(len(starts))
        means = np.add.reduceat(sums, starts) / sizes
        _native.pool_adjacent(means, sizes, np.empty(0, np.int32), fit, self.threads)
        return np.repeat(fit, self.members)


class IntervalCone:
    """a + b delta with b >= 0 and no value below 0: all a 1 + b (delta - min) with a, b >= 0."""

    def __init__(self, delta: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.delta = delta
        self.low = float(delta.min())
        self.w = np.ones(len(delta)) if weights is None else weights / weights.mean()
        self.span = delta - self.low
        with limit_blas(1):  # the sums must not depend on the number of threads
            self.total, self.ones_span = float(self.w.sum()), float(self.w @ self.span)
            self.span2 = float(self.w @ self.span**2)

    def coefficients(self, d: np.ndarray) -> tuple[float, float]:
        """(a, b) of the nearest a + b delta."""
        one, along = float(self.w @ d), float((self.w * self.span) @ d)
        determinant = self.total * self.span2 - self.ones_span**2
        candidates = [(one / self.total, 0.0)]
        if self.span2 > 0:
            candidates.append((0.0, along / self.span2))
        if determinant > 1e-12 * self.total * self.span2:
            base = (one * self.span2 - along * self.ones_span) / determinant
            slope = (along * self.total - one * self.ones_span) / determinant
            if base >= 0 and slope >= 0:
                candidates = [(base, slope)]
        base, slope = max(candidates, key=lambda c: c[0] * one + c[1] * along)
        return base - slope * self.low, slope

    def nearest(self, d: np.ndarray) -> np.ndarray:
        a, b = self.coefficients(d)
        return np.maximum(a + b * self.delta, 0.0)


class Cone(Protocol):
    """Functions of the dissimilarities, closed under sums and positive factors."""

    def nearest(self, d: np.ndarray) -> np.ndarray: ...


class Disparities:
    """Squared stress-1 over listed pairs, whose order is that of the cone."""

    floor = 1e-14
    scale = 1.0

    def __init__(self, pairs: ListedPairs, cone: Cone) -> None:
        self.pairs, self.cone = pairs, cone
        self.w = pairs.weights if pairs.weights.size else None
        self.zeros = np.zeros(len(pairs.delta), pairs.delta.dtype)

    def fit(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances of the map and disparities, pair by pair."""
        d = self.pairs.distances(Y)
        return d, self.cone.nearest(d)

    def size(self, d: np.ndarray) -> float:
        """sum w d^2."""
        return float(d @ d) if self.w is None else float(d @ (self.w * d))

    def __call__(self, Y: np.ndarray) -> Evaluation:
        d, fit = self.fit(Y)
        size = self.size(d)
        if not size > 0:  # all points in one place: nothing is fitted, unless all distances are 0
            return Evaluation(float(self.pairs.delta.any()), np.zeros_like(Y))
        loss = self.size(d - fit) / size
        _, forces = self.pairs.per_point(Y, fit)
        return Evaluation(loss, (forces - loss * self._spread(Y)) / size)

    def _spread(self, Y: np.ndarray) -> np.ndarray:
        """V Y: half the gradient of sum w d^2."""
        if self.pairs.laplacian.uniform:
            return len(Y) * (Y - Y.mean(axis=0))
        return self.pairs.per_point(Y, self.zeros)[1]

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        return self.pairs.precondition(slope)

    def guttman_step(self, Y: np.ndarray, here: Evaluation) -> np.ndarray:
        size = self.size(self.pairs.distances(Y))
        return self.pairs.precondition(here.slope) * (size / max(1 - here.loss, 1e-3))

    def relative_per_point(self, Y: np.ndarray) -> np.ndarray:
        """sqrt( sum_j w (d - f)^2 / sum_j w f^2 ) of each point."""
        return self.pairs.relative_per_point(Y, self.fit(Y)[1])
