"""Manifold alignment beside PCA and Procrustes; no installable peer was found.

"--matches": two views of the same objects, a part of which is matched; of the others, the share
whose partner is the nearest row of the other view, and the share of rows that are nearer than the
partner. "--patterns": the same without any known match, on a curve and its bent copy. "--growth":
times for more and more rows.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from _harness import DATA

from lowland import PCA, ManifoldAlignment, procrustes
from lowland.datasets import digits
from lowland.metrics import match_accuracy, match_rank

Views = tuple[np.ndarray, np.ndarray]


def halves(images: np.ndarray) -> Views:
    """The left and the right half of each image."""
    n, _, width = images.shape
    left, right = images[:, :, : width // 2], images[:, :, width // 2 :]
    return left.reshape(n, -1), right.reshape(n, -1)


def faces() -> Views:
    """The upper half, and the lower half turned by a right angle."""
    images = np.load(DATA / "isomap_faces_32.npz")["X"].astype(float).reshape(-1, 32, 32)
    upper, lower = images[:, :16], np.rot90(images[:, 16:], 1, (1, 2))
    return upper.reshape(len(images), -1), lower.reshape(len(images), -1)


def people() -> Views:
    return halves(np.load(DATA / "olivetti_faces.npz")["X"].astype(float).reshape(-1, 64, 64))


def sensors() -> Views:
    X = np.load(DATA / "oil_flow.npz")["X"]
    order = np.random.default_rng(0).permutation(X.shape[1])
    return X[:, order[:6]], X[:, order[6:]]


def genes() -> Views:
    """Two halves of the genes, each as 50 principal components of the 1 000 that vary most."""
    import scipy.sparse

    counts = scipy.sparse.load_npz(DATA / "pbmc3k.npz").astype(float)
    X = np.log1p(1e4 * counts.toarray() / np.asarray(counts.sum(axis=1)))
    order = np.random.default_rng(0).permutation(X.shape[1])
    views = []
    for part in np.array_split(order, 2):
        most = part[np.argsort(-X[:, part].var(axis=0))[:1000]]
        views.append(PCA(50).fit_transform(X[:, most]))
    return views[0], views[1]


TABLES: dict[str, Any] = {
    "digits": lambda: halves(digits().X.reshape(-1, 8, 8)),
    "faces": faces,
    "people": people,
    "sensors": sensors,
    "genes": genes,
}


def turned(views: Views, pairs: np.ndarray, q: int) -> Views:
    """A PCA map of each view, the second turned onto the first by the known pairs."""
    first, second = (PCA(min(q, X.shape[1])).fit_transform(X) for X in views)
    return first, procrustes(first, second, pairs=pairs).aligned


def matches() -> None:
    """Held-out pairs, for several shares of known ones and several numbers of axes."""
    for name, load in TABLES.items():
        views = load()
        order = np.random.default_rng(7).permutation(len(views[0]))
        for share in (0.05, 1 / 6, 0.5):
            known, others = np.split(order, [int(share * len(order))])
            pairs, held = np.column_stack([known, known]), np.column_stack([others, others])
            for q in (2, 10):
                said = []
                for way, made in {
                    "instance": lambda q: ManifoldAlignment(q, random_state=0),
                    "feature": lambda q: ManifoldAlignment(q, level="feature", random_state=0),
                }.items():
                    Y = made(q).fit_transform(list(views), correspondence=pairs)
                    said.append(f"{way} {match_accuracy(*Y, held):.3f} {match_rank(*Y, held):.3f}")
                Y = turned(views, pairs, q)
                said.append(
                    f"PCA, Procrustes {match_accuracy(*Y, held):.3f} {match_rank(*Y, held):.3f}"
                )
                print(
                    f"{name}, {len(known)} of {len(order)}, {q} axes: {'; '.join(said)}", flush=True
                )


def patterns() -> None:
    """A curve and its bent copy, without any known match."""
    for n in (100, 300, 500):
        t = np.sort(np.random.default_rng(0).uniform(0, 1, n))
        curve = np.column_stack([np.cos(9 * t**1.5), np.sin(9 * t**1.5), 2 * t])
        steps = np.linalg.norm(np.diff(curve, axis=0), axis=1)
        s = np.concatenate([[0.0], np.cumsum(steps)])  # the same lengths along another curve
        bent = np.column_stack([np.cos(s / 4), np.sin(s / 4)]) * 4
        Y = ManifoldAlignment(1, random_state=0).fit_transform([curve, bent])
        own = np.column_stack([np.arange(n), np.arange(n)])
        print(f"curve of {n}: {match_accuracy(*Y, own):.3f} {match_rank(*Y, own):.3f}", flush=True)


def views(n: int, p: int = 50) -> Views:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, 5))
    first, second = (np.tanh(Z @ rng.standard_normal((5, p))) for _ in range(2))
    return tuple(X + 0.05 * rng.standard_normal(X.shape) for X in (first, second))  # type: ignore


def growth() -> None:
    """Times of fits; n rows in each of two tables."""
    for n in (100, 300, 1000, 3000, 10_000, 30_000, 100_000):
        Xs, known = views(n), np.arange(max(n // 10, 30))
        for level in ("instance", "feature"):
            start = time.perf_counter()
            model = ManifoldAlignment(level=level, random_state=0)
            model.fit(list(Xs), correspondence=np.column_stack([known, known]))
            taken, guess = time.perf_counter() - start, model.estimate(2 * n, 50).seconds
            print(f"{level}: 2 x {n} x 50: {taken:.2f} s (estimate {guess:.2f} s)", flush=True)
        if n <= 3000:
            start = time.perf_counter()
            ManifoldAlignment(random_state=0).fit(list(Xs))
            print(f"patterns: 2 x {n} x 50: {time.perf_counter() - start:.2f} s", flush=True)


if __name__ == "__main__":
    others = {"--matches": matches, "--patterns": patterns, "--growth": growth}
    chosen = [work for option, work in others.items() if option in sys.argv]
    for work in chosen or others.values():
        work()
