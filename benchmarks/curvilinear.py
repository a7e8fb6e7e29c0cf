"""Curvilinear methods beside our metric MDS and the papers' own rules: MNIST, two dimensions.

No Python package offers these methods, so the peers are the rules of the papers, written in numpy.
"2000 rows" sets every method beside metric MDS. The "rule" cases run the paper's rule on the same
start; the quality is the paper's objective, which both lower. "growth" prints the time of the paths
for many rows and the exponent of its growth.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import numpy as np
from _harness import DATA, Case, main
from scipy.spatial.distance import cdist

import lowland
from lowland.metrics import continuity, trustworthiness

METHODS: dict[str, Any] = {
    "CCA": lowland.CurvilinearComponentAnalysis,
    "CDA": lowland.CurvilinearDistanceAnalysis,
    "LocalMDS": lowland.LocalMDS,
    "TradeoffMDS": lowland.TradeoffMDS,
    "DDHDS": lowland.DDHDS,
    "RankVisu": lowland.RankVisu,
    "RPM": lowland.RelationalPerspectiveMap,
}


def mnist(n: int, columns: int | None = None) -> np.ndarray:
    X = np.load(DATA / "mnist.npz")["X"][:n].astype(np.float32)
    return X if columns is None else lowland.PCA(columns).fit_transform(X)


def fit(method: Any, X: np.ndarray) -> np.ndarray:
    return method(random_state=0).fit_transform(X)


def neighborhoods(X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    return {"trust": float(trustworthiness(X, Y)), "continuity": float(continuity(X, Y))}


# --- the rules of the papers --------------------------------------------------------------------


def principal(X: np.ndarray) -> np.ndarray:
    return lowland.PCA(2).fit_transform(X).astype(np.float64)


def radial_rule(tradeoff: float, k: int, one: bool, X: np.ndarray, epochs: int = 50) -> np.ndarray:
    """CCA and Venna & Kaski: a random row moves all others; step and radii fall geometrically."""
    D, Y, rng = cdist(X, X), principal(X), np.random.default_rng(0)
    n, radii = len(D), np.sort(D, axis=1)[:, min(k, len(D) - 1)]
    radii = np.full(n, radii.mean()) if one else radii
    widest = cdist(Y, Y).max()
    for step, i in enumerate(np.concatenate([rng.permutation(n) for _ in range(epochs)])):
        share = step / (epochs * n)
        s, a = widest * (radii[i] / widest) ** share, 0.5 * 0.02**share
        along = Y - Y[i]
        d = np.sqrt((along**2).sum(axis=1))
        weight = (1 - tradeoff) * (d <= s) + tradeoff * (D[i] <= s)
        Y += (a * weight * (D[i] - d) / np.where(d > 0, d, np.inf))[:, None] * along
    return Y


def radial_stress(
    tradeoff: float, k: int, one: bool, X: np.ndarray, Y: np.ndarray
) -> dict[str, float]:
    D, d = cdist(X, X), cdist(Y, Y)
    radii = np.sort(D, axis=1)[:, [min(k, len(D) - 1)]]
    radii = np.full(radii.shape, radii.mean()) if one else radii
    weight = (1 - tradeoff) * (d <= radii) + tradeoff * (radii >= D)
    return {"E": float(((D - d) ** 2 * weight).sum() / 2), **neighborhoods(X, Y)}


def ddhds_rule(X: np.ndarray, steps: int = 200) -> np.ndarray:
    """Springs on all pairs, and random forces that fade."""
    from scipy.special import ndtr

    D, Y, rng = cdist(X, X), principal(X), np.random.default_rng(0)
    n, pairs = len(D), D[np.triu_indices(len(D), 1)]
    reach = lowland.DDHDS().reach
    center, width = pairs.mean() - 2 * (1 - reach) * pairs.std(), 2 * reach * pairs.std()
    for step in range(steps):
        along = Y[:, None] - Y[None]
        d = np.sqrt((along**2).sum(axis=2)) + np.eye(n)
        F = ndtr(-(np.minimum(D, d) - center) / width)
        pull = F * (D - d) / d
        np.fill_diagonal(pull, 0)
        turn = rng.standard_normal(Y.shape)
        turn *= (0.3 * (1 - step / steps) * np.abs(pull * d).mean(axis=1))[:, None]
        Y = Y + 0.5 * (pull[:, :, None] * along).sum(axis=1) / F.sum(axis=1)[:, None] + turn
    return Y


def ddhds_stress(X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    from scipy.special import ndtr

    i, j = np.triu_indices(len(X), 1)
    D, d, reach = cdist(X, X)[i, j], cdist(Y, Y)[i, j], lowland.DDHDS().reach
    F = ndtr(-(np.minimum(D, d) - D.mean() + 2 * (1 - reach) * D.std()) / (2 * reach * D.std()))
    return {"E": float((np.abs(D - d) * F).sum()), **neighborhoods(X, Y)}


def rule(name: str, ours: Any, theirs: Any, stress: Any, n: int) -> Case:
    candidates = {"lowland": partial(fit, ours), "rule of the paper": theirs}
    return Case(f"{name}-rule-{n}", partial(mnist, n, 50), candidates, stress, "E trust continuity")


RADIAL = {
    "CCA": (lowland.CurvilinearComponentAnalysis, (0.0, 20, True)),
    "TradeoffMDS": (lowland.TradeoffMDS, (0.1, 20, False)),
}
CASES = [
    *[
        Case(
            f"{name}-2000",
            partial(mnist, 2000),
            {"lowland": partial(fit, method), "metric MDS": partial(fit, lowland.MDS)},
            neighborhoods,
            "trust continuity",
        )
        for name, method in METHODS.items()
    ],
    *[
        rule(name, method, partial(radial_rule, *law), partial(radial_stress, *law), 1000)
        for name, (method, law) in RADIAL.items()
    ],
    rule("DDHDS", lowland.DDHDS, ddhds_rule, ddhds_stress, 500),
    *[
        Case(
            f"{name}-{5000 if name in ('DDHDS', 'RPM') else 10000}",
            partial(mnist, 5000 if name in ("DDHDS", "RPM") else 10_000),
            {"lowland": partial(fit, method)},
            neighborhoods,
            "trust continuity",
        )
        for name, method in METHODS.items()
    ],
]


def growth() -> None:
    """Times of the paths for many rows, and the exponent between the ends."""
    sizes = (10_000, 20_000, 40_000, 70_000)
    X = mnist(sizes[-1], 50)
    for name in ("CCA", "TradeoffMDS", "LocalMDS", "RankVisu"):
        times = []
        for n in sizes:
            start = time.perf_counter()
            fit(METHODS[name], X[:n])
            times.append(time.perf_counter() - start)
        exponent = np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0])
        shown = "  ".join(f"{n} rows {t:.1f} s" for n, t in zip(sizes, times, strict=True))
        print(f"growth of {name}: {shown}, n^{exponent:.2f}", flush=True)


if __name__ == "__main__":
    if "--growth" in sys.argv:
        growth()
    else:
        main(CASES, repeats=3)
        if len(sys.argv) == 1:
            growth()
