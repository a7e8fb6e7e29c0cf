"""Maps with errors that are known because they were planted, and data whose structure is known.

The tests take few small ones of them, ``benchmarks/trust.py`` many larger ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

import lowland
from lowland.datasets import digits
from lowland.trust import component_scores

MAPS: dict[str, Callable[[Any, int], np.ndarray]] = {
    "t-SNE": lambda X, seed: lowland.TSNE(2, random_state=seed, n_jobs=1).fit_transform(X),
    "PCA": lambda X, seed: lowland.PCA(2).fit_transform(X),
    "Isomap": lambda X, seed: lowland.Isomap(2, n_neighbors=12).fit_transform(X),
    "LaplacianEigenmaps": lambda X, seed: lowland.LaplacianEigenmaps(2).fit_transform(X),
}
NOISE = ("Gaussian", "cube", "t3", "permuted PCs")


# --- data ---------------------------------------------------------------------------------------


def groups(n: int, d: int, k: int, distance: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """k Gaussians of unit variance, no two centers nearer than ``distance``; rows and groups."""
    centers = np.zeros((k, d))
    for place in range(1, k):
        reach = distance
        while True:
            centers[place] = rng.normal(size=d) * reach / np.sqrt(2 * d)
            if np.linalg.norm(centers[:place] - centers[place], axis=1).min() >= distance:
                break
            reach *= 1.02
    group = rng.permutation(np.arange(n) % k)
    return centers[group] + rng.normal(size=(n, d)), group


def sheets(
    n: int, d: int, k: int, distance: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """k flat Gaussian clouds of two dimensions in d, with a little noise; rows and groups.

    A map of two dimensions can show them without an error.
    """
    flat, group = groups(n, 2, k, distance, rng)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return np.hstack([flat, 0.02 * rng.normal(size=(n, d - 2))]) @ turn, group


def good_data(name: str, n: int, k: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Data that a method maps well, so that what is wrong in a map was planted.

    t-SNE shows groups of five dimensions, the others show flat groups.
    """
    if name == "t-SNE":
        return groups(n, 5, k, 9.0, rng)
    return sheets(n, 10, k, 9.0, rng)


def patches(n: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A flat square in d dimensions; 0 and 1 in two discs of it, 2 far from both, 3 near them."""
    flat = rng.uniform(size=(n, 2))
    away = np.stack([np.linalg.norm(flat - center, axis=1) for center in (0.25, 0.75)], axis=1)
    group = np.where(away.min(axis=1) < 0.17, away.argmin(axis=1), 3)
    group[away.min(axis=1) > 0.3] = 2
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return np.hstack([flat, 0.005 * rng.normal(size=(n, d - 2))]) @ turn, group


def noise(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Rows without groups."""
    if kind == "Gaussian":
        return rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d)
    if kind == "cube":
        return rng.uniform(size=(n, d))
    if kind == "t3":
        return rng.standard_t(3, size=(n, d))
    assert kind == "permuted PCs", kind
    # Real data without a gap along a principal axis: a gap there would outlast the permutation.
    X = digits().X
    scores = component_scores(X[rng.choice(len(X), n, replace=False)])
    return rng.permuted(scores, axis=0)[:, :d]


def two_gaussians(
    n: int, d: int, delta: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians ``delta`` standard deviations apart, cut in the middle between the centers."""
    X = rng.normal(size=(n, d))
    X[n // 2 :, 0] += delta
    side = X[:, 0] > (delta / 2 if delta else np.median(X[:, 0]))
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return X @ turn, np.where(side, 2, 1)


def impostor(D: np.ndarray, c: float) -> np.ndarray:
    """Distances with D^2 + c: the same order of neighbors, but hardly any contrast."""
    found = np.sqrt(D**2 + c)
    np.fill_diagonal(found, 0.0)
    return found


# --- maps with a planted error ------------------------------------------------------------------


def width(Y: np.ndarray) -> float:
    """The largest extent of a map along its axes."""
    return float(np.ptp(Y, axis=0).max())


def swapped(
    Y: np.ndarray, share: float, rng: np.random.Generator, farther: float = 0.15
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of points change places; both of them lie ``farther`` apart, as a part of the width."""
    n, least = len(Y), farther * width(Y)
    free, moved, found = np.ones(n, bool), np.zeros(n, bool), Y.copy()
    for one in rng.permutation(n):
        if moved.sum() + 2 > max(2, round(share * n)):
            break
        others = np.flatnonzero(free & (np.linalg.norm(Y - Y[one], axis=1) > least))
        if free[one] and len(others):
            other = rng.choice(others)
            found[[one, other]] = Y[[other, one]]
            free[[one, other]], moved[[one, other]] = False, True
    return found, moved


def cut_apart(
    Y: np.ndarray, members: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One group is cut in halves along a random line; the second half moves beyond all others."""
    rows = np.flatnonzero(members)
    along = rng.normal(size=Y.shape[1])
    along /= np.linalg.norm(along)
    half = np.zeros(len(Y), bool)
    half[rows[np.argsort(Y[rows] @ along, kind="stable")[len(rows) // 2 :]]] = True
    found = Y.copy()
    diameter = np.sqrt(2) * width(Y)
    found[half] += 1.2 * diameter * along  # no point moves so far and meets another
    return found, half


def torn(ids: np.ndarray, members: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Points of a cut group with at least half of their data neighbors on the other side."""
    other = members[ids] & (half[ids] != half[:, None])
    return members & (other.mean(axis=1) >= 0.5)


def overlaid(Y: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A group is turned by 180 degrees onto another one; their centers and sizes agree then."""
    found = Y.copy()
    centered = Y[other].mean(axis=0) - Y[other]
    scale = Y[one].std(axis=0).max() / max(centered.std(axis=0).max(), 1e-300)
    found[other] = Y[one].mean(axis=0) + scale * centered
    return found


def pressed(Y: np.ndarray, group: np.ndarray, k: int = 15) -> np.ndarray:
    """Points of groups 0 and 1 with a quarter or more of their map neighbors in the other one."""
    D = cdist(Y, Y)
    np.fill_diagonal(D, np.inf)
    ids = np.argsort(D, axis=1, kind="stable")[:, :k]
    return (group <= 1) & ((group[ids] == 1 - group[:, None]).mean(axis=1) >= 0.25)


# --- what is asked of a diagnostic --------------------------------------------------------------


def auc(score: np.ndarray, truth: np.ndarray) -> float:
    """P(a true case scores higher than a false one); ties count one half."""
    ranks = rankdata(score)
    m = int(truth.sum())
    return float((ranks[truth].sum() - m * (m + 1) / 2) / (m * (len(truth) - m)))


def apart(gaps: list[Any], island_of: np.ndarray, truth: np.ndarray) -> list[tuple[Any, Any, Any]]:
    """Each gap with the groups that most rows of its two islands belong to."""
    most = [0] + [
        np.bincount(truth[island_of == number]).argmax()
        for number in range(1, int(island_of.max()) + 1)
    ]
    return [(gap, most[gap.one], most[gap.other]) for gap in gaps]


def real_shares(found: list[list[Any]]) -> float:
    """The share of maps with at least one gap that is called real."""
    return float(np.mean([any(gap.verdict == "real" for gap in gaps) for gaps in found]))


def changed(Y: np.ndarray, rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The same map in other positions and sizes, and in another order: order of rows, and map."""
    every, order = np.arange(len(Y)), rng.permutation(len(Y))
    angle = rng.uniform(0, 2 * np.pi)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return {
        "rotated": (every, Y @ turn),
        "mirrored": (every, Y * [-1, 1]),
        "scaled": (every, 1e3 * Y),
        "moved": (every, Y + 10 * width(Y)),
        "permuted": (order, Y[order]),
    }


def same_verdicts(first: Any, other: Any, order: np.ndarray) -> dict[str, bool]:
    """Whether two diagnoses of one map agree; the second has its rows in another order."""
    every = np.arange(len(order))
    gaps, inner = zip(_verdicts(first, first, every), _verdicts(first, other, order), strict=True)
    return {
        "points": all(
            np.array_equal(a[order], b)
            for a, b in (
                (first.points.missing, other.points.missing),
                (first.points.strangers, other.points.strangers),
                (first.points.kind, other.points.kind),
            )
        ),
        "gaps": gaps[0] == gaps[1],
        "merged": inner[0] == inner[1],
    }


def _verdicts(first: Any, other: Any, order: np.ndarray) -> tuple[Any, Any]:
    """The gaps and inner gaps of a second diagnosis by the island numbers of the first.

    Islands are numbered by size; those of equal size may change numbers where the map is turned.
    """
    number = [0] + [
        int(np.bincount(first.island_of[order][other.island_of == island.number]).argmax())
        for island in other.islands
    ]
    gaps = {frozenset((number[gap.one], number[gap.other])): gap.verdict for gap in other.gaps}
    inner = {number[each.number]: each.inner and each.inner.verdict for each in other.islands}
    return gaps, inner
