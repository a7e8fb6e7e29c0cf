"""Naive definitions of every measure, and data that tell them apart: uneven, tied, repeated."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.spatial.distance import cdist, squareform
from scipy.stats import pearsonr, spearmanr


def ranks(D):
    """r_ij: 1 for the nearest other row, ties by row number, 0 for the row itself."""
    D = np.array(D, dtype=float)
    np.fill_diagonal(D, -1)
    return np.argsort(np.argsort(D, axis=1, kind="stable"), axis=1, kind="stable")


def trustworthiness(D, d, k):
    """Venna & Kaski (2001), eq. 1, by loops."""
    n, r, low = len(D), ranks(D), ranks(d)
    cost = sum(max(0, r[i, j] - k) for i in range(n) for j in range(n) if 1 <= low[i, j] <= k)
    return 1 - 2 / (n * k * (2 * n - 3 * k - 1)) * cost


def recall(D, d, k):
    r, low = ranks(D), ranks(d)
    both = (r >= 1) & (r <= k) & (low >= 1) & (low <= k)
    return both.sum() / (len(D) * k)


def rank_errors(D, d, k):
    """Lee & Verleysen (2009): (false, missing)."""
    n, r, low = len(D), ranks(D), ranks(d)
    H = n * sum(abs(n - 2 * step + 1) / step for step in range(1, k + 1))
    false = missing = 0.0
    for i in range(n):
        for j in range(n):
            if 1 <= low[i, j] <= k:
                false += abs(r[i, j] - low[i, j]) / low[i, j]
            if 1 <= r[i, j] <= k:
                missing += abs(r[i, j] - low[i, j]) / r[i, j]
    return false / H, missing / H


def coranking(D, d):
    n, r, low = len(D), ranks(D), ranks(d)
    Q = np.zeros((n - 1, n - 1), int)
    for i in range(n):
        for j in range(n):
            if i != j:
                Q[r[i, j] - 1, low[i, j] - 1] += 1
    return Q


def rnx(D, d):
    """From sums over the corners of the co-ranking matrix."""
    n, Q = len(D), coranking(D, d)
    K = np.arange(1, n - 1)
    qnx = np.array([Q[:k, :k].sum() / (k * n) for k in K])
    return ((n - 1) * qnx - K) / (n - 1 - K)


def rnx_auc(D, d):
    K = np.arange(1, len(D) - 1)
    return np.sum(rnx(D, d) / K) / np.sum(1 / K)


def pairs(D, d):
    return squareform(D, checks=False), squareform(d, checks=False)


def raw_stress(D, d):
    a, b = pairs(D, d)
    return ((a - b) ** 2).sum()


def scaled_stress(D, d):
    """The least of the stress over a fine search of scales."""
    from scipy.optimize import minimize_scalar

    a, b = pairs(D, d)
    most = 10 * a.max() / b.max()
    found = minimize_scalar(
        lambda c: ((a - c * b) ** 2).sum(),
        bounds=(0, most),
        method="bounded",
        options={"xatol": 1e-12 * most},
    )
    return np.sqrt(((a - found.x * b) ** 2).sum() / (a**2).sum())


def sammon(D, d):
    a, b = pairs(D, d)
    some = a > 0
    return ((a - b)[some] ** 2 / a[some]).sum() / a.sum()


def kruskal(D, d, ties):
    a, b = pairs(D, d)
    fit = np.empty(len(a))
    if ties == "secondary":
        levels = np.unique(a)
        means = [b[a == level].mean() for level in levels]
        weights = [(a == level).sum() for level in levels]
        for level, value in zip(levels, isotonic_regression(means, weights=weights).x, strict=True):
            fit[a == level] = value
    else:
        order = np.lexsort((b, a)) if ties == "primary" else np.argsort(a, kind="stable")
        fit[order] = isotonic_regression(b[order]).x
    return np.sqrt(((b - fit) ** 2).sum() / (b**2).sum())


def spearman(D, d):
    return spearmanr(*pairs(D, d)).statistic


def pearson(D, d):
    return pearsonr(*pairs(D, d)).statistic


@pytest.fixture(scope="session")
def oracle():
    return SimpleNamespace(
        coranking=coranking,
        kruskal=kruskal,
        pearson=pearson,
        rank_errors=rank_errors,
        ranks=ranks,
        raw_stress=raw_stress,
        recall=recall,
        rnx=rnx,
        rnx_auc=rnx_auc,
        sammon=sammon,
        scaled_stress=scaled_stress,
        spearman=spearman,
        trustworthiness=trustworthiness,
    )


def distances(X):
    """Differences squared and summed as they are: equal rows are at 0, ties of integers exact."""
    return np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=-1))


def uneven(n, p, seed):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return rng.gamma(2.0, size=(n, p)) * (1.0 + np.arange(p)) ** -0.7 @ turn + 3.0


def _tied(seed):
    """Points of a small grid: most distances occur many times, many rows more than once."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (70, 4)).astype(float), rng.integers(0, 4, (70, 2)).astype(float)


def _repeated(seed):
    """Every third row is a copy of an earlier one, in the data; others are in the map."""
    X, Y = uneven(72, 6, seed), uneven(72, 2, seed + 1)
    X[2::3], Y[1::4] = X[0::3], Y[0::4]
    return X, Y


PAIRS = {
    "uneven": lambda: (uneven(80, 7, 0), uneven(80, 2, 1)),
    "projection": lambda: (uneven(90, 5, 2), uneven(90, 5, 2)[:, :2]),
    "tied": lambda: _tied(3),
    "repeated": lambda: _repeated(4),
    "float32": lambda: tuple(Z.astype(np.float32) for Z in (uneven(75, 9, 5), uneven(75, 3, 6))),
    "tiny": lambda: (uneven(5, 3, 7), uneven(5, 2, 8)),
    "constant map": lambda: (uneven(40, 4, 9), np.ones((40, 2))),
    "one far away": lambda: (
        np.vstack([uneven(60, 3, 10), np.full((1, 3), 1e6)]),
        uneven(61, 2, 11),
    ),
}


def made(name):
    X, Y = PAIRS[name]()
    wide = [Z.astype(np.float64) for Z in (X, Y)]
    return SimpleNamespace(
        name=name, X=X, Y=Y, n=len(X), D=distances(wide[0]), d=distances(wide[1])
    )


@pytest.fixture(params=PAIRS)
def pair(request):
    """Data, map, and their distances by definition."""
    return made(request.param)


@pytest.fixture(params=[name for name in PAIRS if name != "constant map"])
def varied(request):
    """The same, of maps that have distances."""
    return made(request.param)


@pytest.fixture(scope="session")
def metric_distances():
    def of(X, metric):
        return cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))

    return of
