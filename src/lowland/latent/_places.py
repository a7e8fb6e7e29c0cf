"""Where rows belong in the map of a Gaussian process, each row by itself.

    min over x of  f(x) = D/2 log s^2(x) + |y - mean(x)|^2 / (2 s^2(x)) + |x|^2 / 2,
    s^2(x) = var(x) + noise,

minus the logarithm of the density of the row and its place, but for a constant. Each row descends
by damped Newton steps from several places: fitted ones, or beyond them, where f is lowest.
All rows take their steps together, in products whose rows do not depend on each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.posterior import Posterior
from lowland._engines.linalg import products
from lowland._engines.linalg.blocks import row_blocks, rows_within

__all__ = ["Placed", "placed_rows"]

N_STARTS, FIRST_STEPS, N_FINISHED = 8, 6, 3  # those lowest after the first steps go on
START_INPUTS = 4000  # starts times inputs: of many inputs there are fewer starts, at least 2
APART = 0.3  # starts of one row are so many deviations of the map, or a length scale, apart
MOST_ANCHORS = 500  # fitted places among which the starts of a row are chosen
OUTSIDE = (1.25, 2.0, 4.0)  # some of them are also tried so many times farther from the center
N_OUTSIDE = 100
MOST_STEPS = 200
SETTLED = 1e-8  # a step that is smaller, beside 1 + |x|, ends the search
NO_GAIN = 1e-10  # a step that lowers f by less than this share of |f| + 1 ends the search
DAMPING = (1e-3, 1e-9, 1e12)  # the first, the least and the largest, where the search ends
FARTHEST = 1e8  # standardized values beyond this are set to it: their squares hide all others
BLOCK_BYTES = 2**27  # many rows at a time: a product reads all of the precision


class Placed(NamedTuple):
    """Places (n, q), and log p(y | x) of each standardized row there (n,)."""

    X: np.ndarray
    log_densities: np.ndarray


class _Process(NamedTuple):
    """The posterior, seen by rows in the span of its means: of D columns, r matter."""

    posterior: Posterior
    weights: np.ndarray  # (m, r)
    n_columns: int

    @property
    def transposed(self) -> np.ndarray:
        return np.ascontiguousarray(self.weights.T)

    def mean(self, K: np.ndarray, threads: int) -> np.ndarray:
        return _times(K, self.weights, threads)


class _Rows(NamedTuple):
    """Coordinates of rows in that span, and their squared distances from it."""

    inside: np.ndarray
    outside: np.ndarray

    def __getitem__(self, at: object) -> _Rows:  # type: ignore[override]
        return _Rows(self.inside[at], self.outside[at])  # type: ignore[index]


class _Expansion(NamedTuple):
    """f, its slope (n, q), a positive definite part of its curvature (n, q, q), and all of it."""

    value: np.ndarray
    slope: np.ndarray
    safe: np.ndarray
    full: np.ndarray


def placed_rows(posterior: Posterior, anchors: np.ndarray, Y: np.ndarray, threads: int) -> Placed:
    """Places of standardized rows Y (n, D); ``anchors`` (a, q) are places of fitted rows."""
    Y = np.clip(Y, -FARTHEST, FARTHEST)
    D, q, m = Y.shape[1], posterior.covariance.q, len(posterior.inputs)
    anchors = _with_places_outside(anchors)
    process, basis = _in_its_span(posterior)
    images = process.mean(_values(posterior, anchors), threads)
    spread = posterior.variance(anchors, threads) + posterior.noise
    X, heights = np.empty((len(Y), q)), np.empty(len(Y))
    each = (5 + 2 * q) * m + (3 + q) * images.shape[1]
    per_row = 8 * (2 * len(anchors) + 2 * D + N_STARTS * each)
    with np.errstate(all="ignore"):
        for at in row_blocks(len(Y), rows_within(per_row, BLOCK_BYTES)):
            rows = _seen(Y[at], basis, threads)
            starts = _starts(process, anchors, images, spread, rows, threads)
            X[at], heights[at] = _best(process, anchors[starts], rows, threads)
    prior = 0.5 * np.sum(X**2, axis=1)
    return Placed(X, prior - heights - 0.5 * D * np.log(2 * np.pi))


def _with_places_outside(anchors: np.ndarray) -> np.ndarray:
    """Some anchors, and places around the map: rows unlike all others belong where s^2 is large."""
    some = anchors[:: -(-len(anchors) // MOST_ANCHORS)]
    few, center = anchors[:: -(-len(anchors) // N_OUTSIDE)], anchors.mean(axis=0)
    return np.concatenate([some, *(center + times * (few - center) for times in OUTSIDE)])


def _in_its_span(posterior: Posterior) -> tuple[_Process, np.ndarray | None]:
    """The process with weights in an orthonormal basis (D, r) of its means, and the basis."""
    weights = posterior.weights
    m, D = weights.shape
    if m >= D:
        return _Process(posterior, weights, D), None
    with limit_blas(1):
        basis, R = np.linalg.qr(weights.T)
    return _Process(posterior, np.ascontiguousarray(R.T), D), np.ascontiguousarray(basis)


def _seen(Y: np.ndarray, basis: np.ndarray | None, threads: int) -> _Rows:
    if basis is None:
        return _Rows(Y, np.zeros(len(Y)))
    inside = _times(Y, basis, threads)
    rest = Y - _times(inside, np.ascontiguousarray(basis.T), threads)
    return _Rows(inside, np.sum(rest**2, axis=1))


def _starts(
    process: _Process,
    anchors: np.ndarray,
    images: np.ndarray,
    spread: np.ndarray,
    rows: _Rows,
    threads: int,
) -> np.ndarray:
    """Numbers of anchors (s, n): the one where f is lowest, then the lowest at other places."""
    F = -2 * _times(rows.inside, np.ascontiguousarray(images.T), threads)
    F += np.sum(images**2, axis=1)
    F += (np.sum(rows.inside**2, axis=1) + rows.outside)[:, None]
    F /= 2 * spread
    F += 0.5 * process.n_columns * np.log(spread) + 0.5 * np.sum(anchors**2, axis=1)
    _, lengths, _, _ = process.posterior.covariance.parameters(process.posterior.theta)
    scaled = anchors / np.maximum(np.minimum(lengths, APART * anchors.std(axis=0)), 1e-300)
    found = []
    for _ in range(_n_starts(process)):
        lowest = np.argmin(F, axis=1)
        found.append(lowest)
        gaps = np.zeros(F.shape)
        for coordinate in scaled.T:
            gaps += (coordinate[lowest][:, None] - coordinate) ** 2
        F[gaps < 1] = np.inf  # once all are, the first anchor is tried again
    return np.array(found)


def _n_starts(process: _Process) -> int:
    return min(N_STARTS, max(2, START_INPUTS // len(process.weights)))


def _best(
    process: _Process, starts: np.ndarray, rows: _Rows, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest minimum below those starts (s, n, q) that are the lowest after a few steps."""
    X, heights = _descended(process, starts, rows, FIRST_STEPS, threads)
    finished = max(1, N_FINISHED * len(starts) // N_STARTS)
    order = np.argsort(heights, axis=0, kind="stable")[:finished]
    chosen = np.take_along_axis(X, order[:, :, None], axis=0)
    X, heights = _descended(process, chosen, rows, MOST_STEPS, threads)
    best, each = np.argmin(heights, axis=0), np.arange(X.shape[1])
    return X[best, each], heights[best, each]


def _descended(
    process: _Process, starts: np.ndarray, rows: _Rows, max_steps: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Damped steps from each start (s, n, q) of each row: the places reached, and f there."""
    shape = starts.shape
    X, which = starts.reshape(-1, shape[2]).copy(), np.tile(np.arange(shape[1]), shape[0])
    damping, active = np.full(len(X), DAMPING[0]), np.arange(len(X))
    now = _expanded(process, X, rows[which], threads)
    for _ in range(max_steps):
        if not len(active):
            break
        steps = _step(now, active, damping[active])
        tried = X[active] - steps
        new = _expanded(process, tried, rows[which[active]], threads)
        better = new.value < now.value[active]
        gain = now.value[active] - new.value
        still = np.abs(gain) <= NO_GAIN * (1 + np.abs(new.value))
        took = active[better]
        X[took] = tried[better]
        for old, found in zip(now, new, strict=True):
            old[took] = found[better]
        damping[took] = np.maximum(damping[took] / 10, DAMPING[1])
        damping[active[~better]] *= 10
        size = np.sqrt(np.sum(steps**2, axis=1))
        small = size <= SETTLED * (1 + np.sqrt(np.sum(X[active] ** 2, axis=1)))
        active = active[~(small | still | (damping[active] > DAMPING[2]))]
    return X.reshape(shape), now.value.reshape(shape[:2])


def _step(now: _Expansion, active: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Newton's step, or that of Gauss and Newton where the curvature has no minimum."""
    added = np.einsum("i,ikk,kj->ikj", damping, now.safe[active], np.eye(now.slope.shape[1]))
    slope = now.slope[active]
    steps = _solved(now.full[active] + added, slope)
    hollow = ~np.isfinite(steps).all(axis=1)
    steps[hollow] = _solved(now.safe[active[hollow]] + added[hollow], slope[hollow])
    return steps


def _expanded(process: _Process, X: np.ndarray, rows: _Rows, threads: int) -> _Expansion:
    """With d = grad s^2 / s^2, J = grad mean, e = y - mean and E = |y - mean|^2:

        slope = (D - E / s^2) d / 2 - J^T e / s^2 + x

    The second derivatives of the variance are without its term in grad k P grad k, which is small
    where E is about D s^2.
    """
    posterior, (n, q), half = process.posterior, X.shape, 0.5 * process.n_columns
    near = _with_slopes(posterior, X)
    e = rows.inside - process.mean(near.K, threads)
    KP = _times(near.K, posterior.precision, threads)
    prior, prior_slope, weights = _prior(posterior, X)
    s2 = np.maximum(prior - np.sum(near.K * KP, axis=1), 0.0) + posterior.noise
    inside = np.sum(e**2, axis=1) / s2
    ratio = inside + rows.outside / s2  # E / s^2
    value = half * np.log(s2) + 0.5 * ratio + 0.5 * np.sum(X**2, axis=1)
    by_s2 = half - 0.5 * ratio
    # what f gains from each value of k, by which its second derivatives are weighted
    gains = -(_times(e, process.transposed, threads) + 2 * by_s2[:, None] * KP) / s2[:, None]
    tangents = [_times(slope, process.weights, threads) for slope in near.slopes]
    d = [(prior_slope[:, k] - 2 * np.sum(near.slopes[k] * KP, axis=1)) / s2 for k in range(q)]
    along = [np.sum(tangent * e, axis=1) / s2 for tangent in tangents]
    slope, safe, full = X.copy(), np.zeros((n, q, q)), np.zeros((n, q, q))
    for k in range(q):
        slope[:, k] += by_s2 * d[k] - along[k]
        for j in range(k + 1):
            both = np.sum(tangents[k] * tangents[j], axis=1) / s2
            both += along[k] * d[j] + d[k] * along[j]
            safe[:, k, j] = both + np.maximum(ratio - half, inside) * d[k] * d[j]
            full[:, k, j] = both + (ratio - half) * d[k] * d[j]
            full[:, k, j] += near.bend(gains, k, j)
        safe[:, k, k] += 1.0
        full[:, k, k] += 1.0 + 2 * weights[k] * by_s2 / s2
    return _Expansion(value, slope, safe, full)


def _values(posterior: Posterior, X: np.ndarray) -> np.ndarray:
    return posterior.covariance.matrix(posterior.theta, X, posterior.inputs)


class _Near(NamedTuple):
    """k(x, Z) (n, m), its derivatives by each coordinate, and parts of its second derivatives:

    d2k / dx_k dx_j = curve u_k u_j + (slope_factor / l_k^2 if k = j)
    """

    K: np.ndarray
    slopes: list[np.ndarray]
    u: list[np.ndarray]
    curve: np.ndarray | None
    slope_factor: np.ndarray | None
    lengths: np.ndarray

    def bend(self, G: np.ndarray, k: int, j: int) -> np.ndarray:
        """Sums over Z of second derivatives, weighted by G."""
        if self.curve is None or self.slope_factor is None:
            return np.zeros(len(G))
        total = np.sum(G * self.curve * self.u[k] * self.u[j], axis=1)
        if k == j:
            total += np.sum(G * self.slope_factor, axis=1) / self.lengths[k] ** 2
        return total


def _with_slopes(posterior: Posterior, X: np.ndarray) -> _Near:
    covariance, Z = posterior.covariance, posterior.inputs
    v, lengths, weights, b = covariance.parameters(posterior.theta)
    shape = len(X), len(Z)
    K, slopes, u = np.full(shape, b), [np.zeros(shape) for _ in Z.T], []
    curve = slope_factor = None
    if covariance.stationary:
        squares = np.zeros(shape)
        for k, (x, z) in enumerate(zip(X.T, Z.T, strict=True)):
            u.append(np.subtract.outer(x, z) / lengths[k])
            squares += u[k] ** 2
            u[k] /= lengths[k]
        f, df, ddf = _shape(covariance, squares)
        K += v * f
        curve, slope_factor = 4 * v * ddf, 2 * v * df
        slopes = [slope_factor * each for each in u]
    if covariance.linear:
        for k, (x, z) in enumerate(zip(X.T, Z.T, strict=True)):
            K += weights[k] * np.multiply.outer(x, z)
            slopes[k] += weights[k] * z
    return _Near(K, slopes, u, curve, slope_factor, lengths)


def _shape(
    covariance: Covariance, squares: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f(r^2) of the stationary part, and its first and second derivatives."""
    if covariance.stationary == "rbf":
        f = np.exp(-0.5 * squares)
        return f, -0.5 * f, 0.25 * f
    if covariance.stationary == "matern32":
        a = np.sqrt(3 * squares)
        decay = np.exp(-a)
        return (1 + a) * decay, -1.5 * decay, 2.25 * decay / np.maximum(a, 1e-12)
    a = np.sqrt(5 * squares)
    decay = np.exp(-a)
    return (1 + a + a**2 / 3) * decay, -5 / 6 * (1 + a) * decay, 25 / 12 * decay


def _prior(posterior: Posterior, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """k(x, x) (n,), its slope (n, q), and the weights, half of its second derivative."""
    v, _, weights, b = posterior.covariance.parameters(posterior.theta)
    return v + b + np.sum(X**2 * weights, axis=1), 2 * X * weights, weights


def _solved(A: np.ndarray, g: np.ndarray) -> np.ndarray:
    """A_i^-1 g_i by Cholesky factors, all matrices at once; A is overwritten."""
    q = A.shape[1]
    for k in range(q):
        A[:, k, k] = np.sqrt(A[:, k, k])
        A[:, k + 1 :, k] /= A[:, k, k, None]
        A[:, k + 1 :, k + 1 :] -= A[:, k + 1 :, k, None] * A[:, None, k + 1 :, k]
    s = g.copy()
    for k in range(q):
        s[:, k] /= A[:, k, k]
        s[:, k + 1 :] -= s[:, k, None] * A[:, k + 1 :, k]
    for k in reversed(range(q)):
        s[:, k] /= A[:, k, k]
        s[:, :k] -= s[:, k, None] * A[:, k, :k]
    return s


def _times(K: np.ndarray, W: np.ndarray, threads: int) -> np.ndarray:
    return products.times(np.ascontiguousarray(K), np.zeros(len(W)), W, threads)
