"""Where rows belong in the map of a Gaussian process, each row by itself.

    min over x of  f(x) = D/2 log s^2(x) + |y - mean(x)|^2 / (2 s^2(x)) + |x|^2 / 2,
    s^2(x) = var(x) + noise,

minus the logarithm of the density of the row and its place, but for a constant. Each row descends
by damped Gauss-Newton steps from several fitted places: those where f is lowest. All rows take
their steps together, in products whose rows do not depend on each other.
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

N_STARTS = 3
MOST_ANCHORS = 2000  # fitted places among which the starts of a row are chosen
MOST_STEPS = 60
SETTLED = 1e-8  # a step that is smaller, beside 1 + |x|, ends the search
NO_GAIN = 1e-11  # a step that lowers f by less than this share of |f| + 1 ends the search
DAMPING = (1e-3, 1e-9, 1e12)  # the first, the least and the largest, where the search ends
FARTHEST = 1e8  # standardized values beyond this are set to it: their squares hide all others
BLOCK_BYTES = 2**24


class Placed(NamedTuple):
    """Places (n, q), and log p(y | x) of each standardized row there (n,)."""

    X: np.ndarray
    log_densities: np.ndarray


class _Process(NamedTuple):
    """The posterior, seen by rows in the span of its means: of D columns, r matter."""

    posterior: Posterior
    weights: np.ndarray  # (m, r)
    n_columns: int

    def mean(self, K: np.ndarray, threads: int) -> np.ndarray:
        return _times(K, self.weights, threads)


class _Rows(NamedTuple):
    """Coordinates of rows in that span, and their squared distances from it."""

    inside: np.ndarray
    outside: np.ndarray

    def __getitem__(self, at: object) -> _Rows:  # type: ignore[override]
        return _Rows(self.inside[at], self.outside[at])  # type: ignore[index]


class _Expansion(NamedTuple):
    """f, its slope (n, q) and a positive definite part of its curvature (n, q, q)."""

    value: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


def placed_rows(posterior: Posterior, anchors: np.ndarray, Y: np.ndarray, threads: int) -> Placed:
    """Places of standardized rows Y (n, D); ``anchors`` (a, q) are places of fitted rows."""
    Y = np.clip(Y, -FARTHEST, FARTHEST)
    D, q, m = Y.shape[1], posterior.covariance.q, len(posterior.inputs)
    anchors = anchors[:: -(-len(anchors) // MOST_ANCHORS)]
    process, basis = _in_its_span(posterior)
    images = process.mean(_values(posterior, anchors), threads)
    spread = posterior.variance(anchors, threads) + posterior.noise
    X, heights = np.empty((len(Y), q)), np.empty(len(Y))
    per_row = 8 * (2 * len(anchors) + (2 + 2 * q) * m + (3 + q) * images.shape[1] + 2 * D)
    with np.errstate(all="ignore"):
        for at in row_blocks(len(Y), rows_within(per_row, BLOCK_BYTES)):
            rows = _seen(Y[at], basis, threads)
            starts = _starts(process, anchors, images, spread, rows, threads)
            X[at], heights[at] = _best(process, [anchors[s] for s in starts], rows, threads)
    prior = 0.5 * np.sum(X**2, axis=1)
    return Placed(X, prior - heights - 0.5 * D * np.log(2 * np.pi))


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
) -> list[np.ndarray]:
    """Numbers of anchors (n,): the one where f is lowest, then the lowest at other places."""
    F = -2 * _times(rows.inside, np.ascontiguousarray(images.T), threads)
    F += np.sum(images**2, axis=1)
    F += (np.sum(rows.inside**2, axis=1) + rows.outside)[:, None]
    F /= 2 * spread
    F += 0.5 * process.n_columns * np.log(spread) + 0.5 * np.sum(anchors**2, axis=1)
    _, lengths, _, _ = process.posterior.covariance.parameters(process.posterior.theta)
    scaled = anchors / lengths
    found = []
    for _ in range(N_STARTS):
        lowest = np.argmin(F, axis=1)
        found.append(lowest)
        gaps = np.zeros(F.shape)
        for coordinate in scaled.T:
            gaps += (coordinate[lowest][:, None] - coordinate) ** 2
        F[gaps < 1] = np.inf  # once all are, the first anchor is tried again
    return found


def _best(
    process: _Process, starts: list[np.ndarray], rows: _Rows, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest of the minima that the starts lead to; of equal ones the first."""
    best, lowest = starts[0].copy(), np.full(len(starts[0]), np.inf)
    for start in starts:
        X, heights = _descended(process, start, rows, threads)
        better = heights < lowest
        best[better], lowest[better] = X[better], heights[better]
    return best, lowest


def _descended(
    process: _Process, X: np.ndarray, rows: _Rows, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Damped steps from X: the places reached, and f there."""
    n, q = X.shape
    X, damping = X.copy(), np.full(n, DAMPING[0])
    now = _expanded(process, X, rows, threads)
    active = np.arange(n)
    for _ in range(MOST_STEPS):
        if not len(active):
            break
        A = now.curvature[active]
        diagonal = np.einsum("ikk->ik", A)
        A[:, np.arange(q), np.arange(q)] += damping[active, None] * diagonal
        steps = _solved(A, now.slope[active])
        tried = X[active] - steps
        new = _expanded(process, tried, rows[active], threads)
        better = new.value < now.value[active]
        gain = now.value[active] - new.value
        still = better & (gain <= NO_GAIN * (1 + np.abs(new.value)))
        took = active[better]
        X[took] = tried[better]
        for old, found in zip(now, new, strict=True):
            old[took] = found[better]
        damping[took] = np.maximum(damping[took] / 10, DAMPING[1])
        damping[active[~better]] *= 10
        size = np.sqrt(np.sum(steps**2, axis=1))
        small = size <= SETTLED * (1 + np.sqrt(np.sum(X[active] ** 2, axis=1)))
        active = active[~(small | still | (damping[active] > DAMPING[2]))]
    return X, now.value


def _expanded(process: _Process, X: np.ndarray, rows: _Rows, threads: int) -> _Expansion:
    """With d = grad s^2 and J = grad mean, where f is convex in mean and s^2:

    slope = (D/2 - E / (2 s^2)) d / s^2 - J^T e / s^2 + x,  e = y - mean,  E = |y - mean|^2
    """
    posterior, (n, q) = process.posterior, X.shape
    K, slopes = _with_slopes(posterior, X)
    e = rows.inside - process.mean(K, threads)
    KP = _times(K, posterior.precision, threads)
    prior, prior_slope = _prior(posterior, X)
    variance = np.maximum(prior - np.sum(K * KP, axis=1), 0.0) + posterior.noise
    E_inside = np.sum(e**2, axis=1)
    E, half = E_inside + rows.outside, 0.5 * process.n_columns
    value = half * np.log(variance) + E / (2 * variance) + 0.5 * np.sum(X**2, axis=1)
    slope, H = X.copy(), np.zeros((n, q, q))
    tangents, d, along = [], [], []
    for k in range(q):
        tangents.append(_times(slopes[k], process.weights, threads))
        d.append((prior_slope[:, k] - 2 * np.sum(slopes[k] * KP, axis=1)) / variance)
        along.append(np.sum(tangents[k] * e, axis=1) / variance)
        slope[:, k] += (half - E / (2 * variance)) * d[k] - along[k]
    bend = np.maximum(E / variance - half, E_inside / variance)
    for k in range(q):
        for j in range(k + 1):
            H[:, k, j] = np.sum(tangents[k] * tangents[j], axis=1) / variance
            H[:, k, j] += along[k] * d[j] + d[k] * along[j] + bend * d[k] * d[j]
            H[:, j, k] = H[:, k, j]
        H[:, k, k] += 1.0
    return _Expansion(value, slope, H)


def _values(posterior: Posterior, X: np.ndarray) -> np.ndarray:
    return posterior.covariance.matrix(posterior.theta, X, posterior.inputs)


def _with_slopes(posterior: Posterior, X: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """k(x, Z) (n, m), and its derivatives by each coordinate of x."""
    covariance, Z = posterior.covariance, posterior.inputs
    v, lengths, weights, b = covariance.parameters(posterior.theta)
    K, slopes = np.full((len(X), len(Z)), b), [np.zeros((len(X), len(Z))) for _ in range(len(Z.T))]
    if covariance.stationary:
        gaps = [np.subtract.outer(x, z) for x, z in zip(X.T, Z.T, strict=True)]
        squares = np.zeros(K.shape)
        for gap, length in zip(gaps, lengths, strict=True):
            squares += (gap / length) ** 2
        f, df = _shape(covariance, squares)
        K += v * f
        for k, gap in enumerate(gaps):
            slopes[k] += (2 * v / lengths[k] ** 2) * df * gap
    if covariance.linear:
        for k, (x, z) in enumerate(zip(X.T, Z.T, strict=True)):
            K += weights[k] * np.multiply.outer(x, z)
            slopes[k] += weights[k] * z
    return K, slopes


def _shape(covariance: Covariance, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f(r^2) of the stationary part, and its derivative."""
    if covariance.stationary == "rbf":
        f = np.exp(-0.5 * squares)
        return f, -0.5 * f
    if covariance.stationary == "matern32":
        a = np.sqrt(3 * squares)
        return (1 + a) * np.exp(-a), -1.5 * np.exp(-a)
    a = np.sqrt(5 * squares)
    return (1 + a + a**2 / 3) * np.exp(-a), -5 / 6 * (1 + a) * np.exp(-a)


def _prior(posterior: Posterior, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """k(x, x) (n,), and its slope (n, q)."""
    v, _, weights, b = posterior.covariance.parameters(posterior.theta)
    return v + b + np.sum(X**2 * weights, axis=1), 2 * X * weights


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
