"""The place of each row under a known process: every row by itself, by damped Newton steps.

    bound:       E(x) = b/2 (|y - mean(x)|^2 + D var(x)) + |x|^2 / 2,   b = 1 / s^2
    likelihood:  E(x) = D/2 log(s^2 + var(x)) + |y - mean(x)|^2 / (2 (s^2 + var(x))) + |x|^2 / 2

with |x| in deviations of the prior.

The first one is what the rows of a table have to lower for the bound of :mod:`sparse` to rise; the
second one is minus the logarithm of the probability of a new row and its place. A step costs
O((1 + q) m (m + min(m, D))) for m inputs of the process, and O(m D) once per row.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from lowland._engines.gaussian_processes.exact import Posterior
from lowland._engines.gaussian_processes.sparse import in_blocks
from lowland._engines.grids.nearest_units import nearest_units
from lowland._engines.linalg import products

Criterion = Literal["bound", "likelihood"]


class Placed(NamedTuple):
    """Places (n, q), E there (n,) up to a constant of the row, and how many steps were taken."""

    X: np.ndarray
    energy: np.ndarray
    n_steps: int


class _Here(NamedTuple):
    """E (n,), its slope (n, q) and its Hessian (n, q, q)."""

    energy: np.ndarray
    slope: np.ndarray
    hessian: np.ndarray


class _Process(NamedTuple):
    """A posterior, the number of columns, and T (m, r) with T Q^T = A for orthonormal columns Q."""

    posterior: Posterior
    n_columns: int
    basis: np.ndarray | None
    weights: np.ndarray
    criterion: Criterion
    prior: np.ndarray  # 1 / variance of each axis


def place_rows(
    posterior: Posterior,
    Y: np.ndarray,
    starts: np.ndarray,
    *,
    n_steps: int,
    threads: int,
    criterion: Criterion = "bound",
    tol: float = 1e-10,
    n_columns: int | None = None,
    deviations: np.ndarray | None = None,
) -> Placed:
    """Descend from ``starts`` (n, q) by at most ``n_steps`` steps; E of a row never rises.

    A row rests when a step promises less than ``tol`` times max(1, |E|). The result of a row
    depends on itself only, to the last bit. ``deviations`` (q,) are those of the prior; 1 if None.
    See :func:`exact.log_likelihood` for ``n_columns``.
    """
    if deviations is None:
        deviations = np.ones(posterior.covariance.q)
    process = _process(posterior, Y.shape[1], n_columns or Y.shape[1], criterion, deviations)
    X, energy = np.array(starts, dtype=np.float64), np.empty(len(Y))

    def of_block(rows: slice) -> int:
        X[rows], energy[rows], taken = _descend(process, Y[rows], X[rows], n_steps, tol)
        return taken

    taken = max(in_blocks(of_block, len(Y), len(posterior.inputs), threads), default=0)
    return Placed(X, energy, taken)


def likely_starts(
    posterior: Posterior, Y: np.ndarray, places: np.ndarray, threads: int
) -> np.ndarray:
    """For each row that one of ``places`` whose mean is nearest to it, (n, q)."""
    means = posterior.mean(places, threads)
    return places[nearest_units(np.ascontiguousarray(Y), means, threads)[:, 0]]


def _process(
    posterior: Posterior, seen: int, n_columns: int, criterion: Criterion, deviations: np.ndarray
) -> _Process:
    """Rows with more columns than the process has inputs are seen in the span of its weights."""
    weights, basis = posterior.weights, None
    if seen > len(weights):
        basis, triangle = np.linalg.qr(weights.T)
        weights = triangle.T
    weights, prior = np.ascontiguousarray(weights), deviations**-2.0
    return _Process(posterior, n_columns, basis, weights, criterion, prior)


@np.errstate(over="ignore", invalid="ignore")  # a step to NaN is not taken
def _descend(
    process: _Process, Y: np.ndarray, X: np.ndarray, n_steps: int, tol: float
) -> tuple[np.ndarray, np.ndarray, int]:
    Y = np.ascontiguousarray(Y, dtype=np.float64)
    rest = np.zeros(len(Y))
    if process.basis is not None:
        squares = _dot(Y, Y)
        Y = products.times(Y, np.zeros(Y.shape[1]), process.basis, 1)
        rest = np.maximum(squares - _dot(Y, Y), 0.0)
    X = X.copy()
    here = _energy(process, X, Y, rest)
    damping, active = np.zeros(len(X)), np.arange(len(X))
    for step in range(n_steps):
        own = _Here(*(part[active] for part in here))
        move = _newton(own, damping[active], float(process.prior.min()))
        gain = -0.5 * _dot(move, own.slope)
        moving = gain > tol * np.maximum(1.0, np.abs(own.energy))
        active, move = active[moving], move[moving]
        if len(active) == 0:
            return X, here.energy, step
        trial = _energy(process, X[active] + move, Y[active], rest[active])
        better = trial.energy <= here.energy[active]  # False for NaN
        size = np.einsum("ijj->i", np.abs(own.hessian[moving])) / X.shape[1]
        now = damping[active]
        damping[active] = np.where(
            better, np.where(now > 1e-3 * size, now / 8, 0.0), np.maximum(8 * now, 0.5 * size)
        )
        taken = active[better]
        X[taken] += move[better]
        for old, new in zip(here, trial, strict=True):
            old[taken] = new[better]
    return X, here.energy, n_steps


def _newton(here: _Here, damping: np.ndarray, least: float) -> np.ndarray:
    """-(H + damping)^-1 slope, by L D L^T; pivots in D have at least the prior's curvature."""
    q = here.slope.shape[1]
    L, pivots = here.hessian.copy(), np.empty_like(here.slope)
    L[:, np.arange(q), np.arange(q)] += damping[:, None]
    for j in range(q):
        for k in range(j):
            L[:, j:, j] -= L[:, j:, k] * (L[:, j, k] * pivots[:, k])[:, None]
        pivots[:, j] = np.maximum(np.abs(L[:, j, j]), least)
        L[:, j + 1 :, j] /= pivots[:, j, None]
    move = -here.slope
    for j in range(q):
        for k in range(j):
            move[:, j] -= L[:, j, k] * move[:, k]
    move /= pivots
    for j in reversed(range(q)):
        for k in range(j + 1, q):
            move[:, j] -= L[:, k, j] * move[:, k]
    return move


def _energy(process: _Process, X: np.ndarray, Y: np.ndarray, rest: np.ndarray) -> _Here:
    """E and its derivatives, by those of u = |y - mean|^2 and w = var."""
    covariance, theta, Z, _, precision, _ = process.posterior
    (n, q), m = X.shape, len(Z)
    near, linear = covariance.expanded(theta, X, Z), covariance.parameters(theta)[2]
    error = Y - _times(near.K, process.weights)
    tangents = _times(near.slopes.reshape(-1, m), process.weights).reshape(q, n, -1)
    solved = _times(near.K, precision)
    u = _dot(error, error) + rest
    w = covariance.diagonal(theta, X) - _dot(near.K, solved)
    value, by_u, by_w, by_uw, by_ww = _outer(process, u, w)
    du = np.stack([-2 * _dot(error, tangent) for tangent in tangents], axis=1)
    dw = 2 * linear * X - np.stack([2 * _dot(slope, solved) for slope in near.slopes], axis=1)
    # what E gains from each value of k, which weighs the second derivatives of k
    gains = -2 * (by_u[:, None] * _times(error, process.weights.T) + by_w[:, None] * solved)
    hessian = np.empty((n, q, q))
    # costs as much as all other products, but without it five times as many steps are needed
    across = _times(near.slopes.reshape(-1, m), precision).reshape(q, n, m)
    for a in range(q):
        for c in range(a + 1):
            part = 2 * by_u * _dot(tangents[a], tangents[c]) + near.bend(gains, a, c)
            part -= 2 * by_w * _dot(near.slopes[a], across[c])
            part += by_uw * (du[:, a] * dw[:, c] + du[:, c] * dw[:, a])
            part += by_ww * dw[:, a] * dw[:, c]
            hessian[:, a, c] = hessian[:, c, a] = part
        hessian[:, a, a] += process.prior[a] + 2 * by_w * linear[a]
    pull = X * process.prior
    slope = by_u[:, None] * du + by_w[:, None] * dw + pull
    return _Here(value + 0.5 * _dot(X, pull), slope, hessian)


def _times(A: np.ndarray, V: np.ndarray) -> np.ndarray:
    return products.times(A, np.zeros(len(V)), V, 1)


def _dot(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Inner products of rows; each is summed in the same order in any company."""
    return np.einsum("ij,ij->i", A, B)


def _outer(process: _Process, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """E without the prior, and its derivatives by u, by w, by both, and twice by w."""
    D, noise = process.n_columns, process.posterior.noise
    if process.criterion == "bound":
        half, none = np.full(len(u), 0.5 / noise), np.zeros(len(u))
        return half * (u + D * w), half, D * half, none, none
    b = 1 / (noise + np.maximum(w, 0.0))
    value = 0.5 * (u * b - D * np.log(b))
    return value, 0.5 * b, 0.5 * b * (D - u * b), -0.5 * b**2, b**2 * (u * b - 0.5 * D)
