"""Objectives of the family straight from the papers, and the papers' own stochastic rules."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import ndtr


def principal_start(X, q=2):
    Z = X - X.mean(axis=0)
    U, S, _ = np.linalg.svd(Z, full_matrices=False)
    return (U * S)[:, :q]


def largest_distance(Y):
    return cdist(Y, Y).max()


def kth_radii(D, k):
    return np.sort(D, axis=1)[:, min(k, len(D) - 1)]


def weighting(kind, u, s):
    if kind == "step":
        return (u <= s).astype(float)
    if kind == "exp":
        return np.exp(-u / s)
    t = np.clip(u / s - 0.5, 0, 1)
    return 1 - 3 * t**2 + 2 * t**3


def cca_stress(D, Y, radius, kind="step"):
    """1/2 sum_i sum_{j != i} (delta - d)^2 F(d, radius)."""
    total = 0.0
    for i in range(len(D)):
        for j in range(len(D)):
            if i != j:
                d = np.linalg.norm(Y[i] - Y[j])
                total += (D[i, j] - d) ** 2 * weighting(kind, np.array(d), radius) / 2
    return float(total)


def tradeoff_stress(D, Y, radii, tradeoff):
    """1/2 sum_i sum_{j != i} (delta - d)^2 [(1 - l) F(d, s_i) + l F(delta, s_i)]."""
    total = 0.0
    for i in range(len(D)):
        for j in range(len(D)):
            if i != j:
                d = np.linalg.norm(Y[i] - Y[j])
                near, given = float(d <= radii[i]), float(D[i, j] <= radii[i])
                total += (D[i, j] - d) ** 2 * ((1 - tradeoff) * near + tradeoff * given) / 2
    return total


def ddhds_stress(D, Y, reach):
    """sum over pairs of |delta - d| F(min(delta, d))."""
    i, j = np.triu_indices(len(D), 1)
    delta, d = D[i, j], cdist(Y, Y)[i, j]
    center = delta.mean() - 2 * (1 - reach) * delta.std()
    F = ndtr(-(np.minimum(delta, d) - center) / (2 * reach * delta.std()))
    return float((np.abs(delta - d) * F).sum())


def ddhds_rule(D, Y, reach, steps, seed=0):
    """Lespinats et al.: springs on all pairs, and random forces by local pressure that fade."""
    rng, n, Y = np.random.default_rng(seed), len(D), Y.copy()
    pairs = D[np.triu_indices(n, 1)]
    center = pairs.mean() - 2 * (1 - reach) * pairs.std()
    width = 2 * reach * pairs.std()
    best, lowest = Y.copy(), ddhds_stress(D, Y, reach)
    for step in range(steps):
        fade = 1 - step / steps
        along = Y[:, None] - Y[None]
        d = np.sqrt((along**2).sum(axis=2)) + np.eye(n)
        F = ndtr(-(np.minimum(D, d) - center) / width)
        pull = F * (D - d) / d
        np.fill_diagonal(pull, 0)
        pressure = np.abs(pull * d).sum(axis=1) / n
        turn = rng.standard_normal(Y.shape)
        turn /= np.sqrt((turn**2).sum(axis=1, keepdims=True))
        # the mean of all springs moves a point; half of it is stable for all weights
        Y = Y + 0.5 * (pull[:, :, None] * along).sum(axis=1) / F.sum(axis=1, keepdims=True)
        Y += 0.3 * fade * pressure[:, None] * turn
        here = ddhds_stress(D, Y, reach)
        if here < lowest:
            best, lowest = Y.copy(), here
    return best


def ddhds_trial(D, Y, reach, rounding=1e-3):
    """Quasi-Newton steps down the objective, with |delta - d| rounded off, from a given map."""
    n, pairs = len(D), D[np.triu_indices(len(D), 1)]
    center, width = pairs.mean() - 2 * (1 - reach) * pairs.std(), 2 * reach * pairs.std()

    def value(y):
        y = y.reshape(n, -1)
        d = cdist(y, y)
        u = (np.minimum(D, d) - center) / width
        F, gap = ndtr(-u), np.sqrt((D - d) ** 2 + rounding**2)
        falls = np.where(d < D, gap * np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi) / width, 0)
        slope = ((d - D) / gap * F - falls) / (d + np.eye(n))
        np.fill_diagonal(slope, 0)
        gradient = slope.sum(axis=1)[:, None] * y - slope @ y
        return (gap * F).sum() / 2, gradient.ravel()

    steps = {"maxiter": 200}  # after which next to nothing changes
    return minimize(value, Y.ravel(), jac=True, method="L-BFGS-B", options=steps).x.reshape(n, -1)


def _geometric(first, last, share):
    return first * (last / first) ** share


def cca_rule(D, Y, radius, epochs, seed=0):
    """Demartines & Herault: a random row moves all others; a and lambda fall geometrically."""
    return tradeoff_rule(D, Y, np.full(len(D), radius), 0.0, epochs, seed)


def tradeoff_rule(D, Y, radii, tradeoff, epochs, seed=0):
    """Venna & Kaski: the same moves, with both weights and a radius of each row."""
    rng, n, Y = np.random.default_rng(seed), len(D), Y.copy()
    widest, steps = largest_distance(Y), epochs * len(D)
    order = np.concatenate([rng.permutation(n) for _ in range(epochs)])
    for step, i in enumerate(order):
        share = step / steps
        s, a = _geometric(max(widest, radii[i]), radii[i], share), _geometric(0.5, 0.01, share)
        along = Y - Y[i]
        d = np.sqrt((along**2).sum(axis=1))
        weight = (1 - tradeoff) * (d <= s) + tradeoff * (D[i] <= s)
        pull = np.where(d > 0, a * weight * (D[i] - d) / np.where(d > 0, d, 1), 0)
        Y += pull[:, None] * along
    return Y
