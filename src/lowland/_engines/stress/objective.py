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
        size = np.einsum("ij,ij->i", delta, delta)
        out[rows] = np.sqrt(stress / np.where(size > 0, size, 1.0))
    return out
