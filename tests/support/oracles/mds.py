"""Out-of-sample formulas and objectives of multidimensional scaling."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import scipy.optimize

from support.oracles.basics import HeldOut, distances_of, like_the_map

Height = Callable[[np.ndarray], np.ndarray]


def guttman(D: np.ndarray, Y: np.ndarray, W: np.ndarray, steps: int = 1) -> np.ndarray:
    """Steps Y+ = V^+ B(Y) Y of majorization, as Borg & Groenen and de Leeuw (1977) have them."""
    V = np.diag(W.sum(axis=1)) - W
    inverse = np.linalg.pinv(V)
    for _ in range(steps):
        d = np.sqrt(((Y[:, None] - Y[None]) ** 2).sum(axis=2))
        B = -W * np.divide(D, d, out=np.zeros_like(d), where=d > 0)
        B -= np.diag(B.sum(axis=1))
        Y = inverse @ (B @ Y)
    return Y


def cailliez(D: np.ndarray) -> float:
    """The least c >= 0 for which all eigenvalues of d + c, i != j, are >= 0: by bisection."""
    n = len(D)
    H = np.eye(n) - 1 / n

    def lowest(c: float) -> float:
        moved = D + c * (1 - np.eye(n))
        return float(np.linalg.eigvalsh(-0.5 * H @ moved**2 @ H).min())

    rounding = -1e-12 * n * (D**2).max()
    if lowest(0.0) >= rounding:
        return 0.0
    low, high = 0.0, 1.0
    while lowest(high) < rounding:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if lowest(middle) >= rounding else (middle, high)
    return high


def classical_mds(task: HeldOut) -> np.ndarray:
    """y_k = 1/2 sum_j y_jk (b_j - t_j) / lambda_k, b_j = mean_i d_ij^2, lambda_k = sum_j y_jk^2."""
    D, T = distances_of(task)
    if task.params["additive_constant"]:
        c = cailliez(D)
        D = D + c * (1 - np.eye(len(D)))
        T = np.where(T > 0, T + c, 0.0)
    return _gower(D, task.Y.astype(float), T)


def _gower(D: np.ndarray, Y: np.ndarray, T: np.ndarray) -> np.ndarray:
    b = np.array([sum(row**2) / len(row) for row in D])
    Z = np.zeros((len(T), Y.shape[1]))
    for i, t in enumerate(T):
        for k in range(Y.shape[1]):
            size = sum(Y[:, k] ** 2)
            Z[i, k] = 0.5 * sum(Y[:, k] * (b - t**2)) / size if size > 0 else 0.0
    return Z


def landmark_mds(task: HeldOut) -> np.ndarray:
    D, T = distances_of(task)
    marks = task.model.landmarks_
    return like_the_map(
        task,
        _gower(D[np.ix_(marks, marks)], task.Y[marks].astype(float), D[:, marks]),
        _gower(D[np.ix_(marks, marks)], task.Y[marks].astype(float), T[:, marks]),
    )


# --- stress -----------------------------------------------------------------------------------


def point_stress(task: HeldOut) -> list[Height | np.ndarray]:
    """For each new row its stress s(z) = sum_j w_j (f_j - |z - y_j|)^2, or its place if known.

    A row at distance 0 from a fitted row has that row's place.
    """
    D, T = distances_of(task)
    power = task.params.get("power", 0)
    name = type(task.model).__name__
    targets = T
    if name == "NonmetricMDS":
        targets = _interpolated(task, D, T)
    elif task.params.get("transformation") == "interval":
        a, b = _interval(task, D)
        targets = np.maximum(a + b * T, 0.0)
    Y = task.Y.astype(float)
    found: list[Height | np.ndarray] = []
    for t, f in zip(T, targets, strict=True):
        if (t == 0).any():
            zero = np.flatnonzero(t == 0)
            found.append(Y[zero[_stress(Y[zero], Y, f, power).argmin()]])
        else:
            found.append(lambda Z, f=f: _stress(Z, Y, f, power))
    return found


def _stress(Z: np.ndarray, Y: np.ndarray, f: np.ndarray, power: int) -> np.ndarray:
    """At each of the points Z; unknown distances do not count."""
    known = ~np.isnan(f)
    d = np.sqrt(((Z[:, None] - Y[None, known]) ** 2).sum(axis=2))
    return ((f[known] - d) ** 2 / f[known] ** power).sum(axis=1)


def _interval(task: HeldOut, D: np.ndarray) -> tuple[float, float]:
    """The a + b delta, b >= 0 and not below 0, nearest to the distances of the map, weighted."""
    W = task.params["weights"]
    W = np.ones(D.shape) if W is None else W
    pairs = [p for p in itertools.combinations(range(len(D)), 2) if W[p] > 0 and not np.isnan(D[p])]
    least = min(D[p] for p in pairs)  # a + b delta = base + b (delta - least), base and b >= 0
    roots = np.sqrt([W[p] for p in pairs])
    spans = np.array([D[p] - least for p in pairs])
    d = np.array([np.linalg.norm(task.Y[i] - task.Y[j]) for i, j in pairs])
    base, b = scipy.optimize.nnls(np.column_stack([roots, roots * spans]), roots * d)[0]
    return float(base - b * least), float(b)


def _interpolated(task: HeldOut, D: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Disparities of the fitted pairs, the mean where dissimilarities are tied, joined by lines."""
    pairs = [p for p in itertools.combinations(range(len(D)), 2) if not np.isnan(D[p])]
    delta = np.array([D[p] for p in pairs])
    d = np.array([np.linalg.norm(task.Y[i] - task.Y[j]) for i, j in pairs])
    fit = monotone(delta, d, task.params["ties"])
    levels = sorted(set(delta))
    means = [fit[delta == level].mean() for level in levels]
    out = np.full(T.shape, np.nan)
    for place in np.ndindex(T.shape):
        t = T[place]
        if np.isnan(t):
            continue
        if t <= levels[0] or t >= levels[-1]:
            out[place] = means[0] if t <= levels[0] else means[-1]
            continue
        above = next(k for k, level in enumerate(levels) if level > t)
        low, high = levels[above - 1], levels[above]
        share = (t - low) / (high - low)
        out[place] = (1 - share) * means[above - 1] + share * means[above]
    return out


def monotone(delta: np.ndarray, d: np.ndarray, ties: str) -> np.ndarray:
    """The increasing function of delta nearest to d: neighbors that decrease are pooled."""
    if ties == "secondary":
        blocks = [np.flatnonzero(delta == level) for level in sorted(set(delta))]
    else:
        second = d if ties == "primary" else np.arange(len(d))
        blocks = [np.array([p]) for p in sorted(range(len(d)), key=lambda p: (delta[p], second[p]))]
    pooled: list[np.ndarray] = []
    for block in blocks:
        pooled.append(block)
        while len(pooled) > 1 and d[pooled[-2]].mean() >= d[pooled[-1]].mean():
            pooled[-2:] = [np.concatenate(pooled[-2:])]
    fit = np.empty(len(d))
    for block in pooled:
        fit[block] = d[block].mean()
    return fit
