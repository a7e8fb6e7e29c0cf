"""t-SNE beside scikit-learn, scikit-learn-intelex and openTSNE: time, divergence, accuracy.

All on the same data and perplexity, neighbors included, 750 steps. The divergence is computed by us
for every map, from one set of affinities and over all pairs; accuracy is that of the 10 nearest
neighbors in the map. umap-learn and PaCMAP, which have another goal, stand there for context.

``--case`` and ``--only`` pick: the slow peers take minutes.
"""

from __future__ import annotations

import os
from functools import cache, partial
from typing import Any

import numpy as np
from _harness import DATA, Case, main
from knn import million, mnist50

import lowland
from lowland._engines.embedding.affinity import joint_affinities
from lowland._engines.embedding.descent import Divergence, entropy_of
from lowland._engines.embedding.repulsion import pairwise_repulsion
from lowland.datasets import digits
from lowland.neighbors import knn_graph

THREADS = len(os.sched_getaffinity(0))
STEPS = 750


def ours(d: int, steps: int, X: np.ndarray) -> np.ndarray:
    return lowland.TSNE(d, max_iter=steps, tol=0, random_state=0).fit_transform(X)


def scikit(d: int, X: np.ndarray) -> np.ndarray:
    from sklearn.manifold import TSNE

    return TSNE(d, max_iter=STEPS, n_jobs=THREADS, random_state=0).fit_transform(X)


def intelex(d: int, X: np.ndarray) -> np.ndarray:
    from sklearnex.manifold import TSNE

    return TSNE(d, max_iter=STEPS, n_jobs=THREADS, random_state=0).fit_transform(X)


def open_tsne(X: np.ndarray) -> np.ndarray:
    from openTSNE import TSNE

    return np.asarray(TSNE(n_jobs=THREADS, random_state=0).fit(X))


def umap(X: np.ndarray) -> np.ndarray:
    from umap import UMAP

    return UMAP(n_jobs=THREADS).fit_transform(X)


def pacmap(X: np.ndarray) -> np.ndarray:
    from pacmap import PaCMAP

    return PaCMAP().fit_transform(X)


def mnist10() -> np.ndarray:
    return np.ascontiguousarray(mnist50()[_some()])


def digits64() -> np.ndarray:
    return digits().X


@cache
def _some() -> np.ndarray:
    return np.sort(np.random.default_rng(0).choice(70_000, 10_000, replace=False))


def labels_of(X: np.ndarray) -> np.ndarray:
    if len(X) == len(digits().X):
        return np.asarray(digits().y)
    labels = np.load(DATA / "mnist.npz")["y"]
    return np.resize(labels if len(X) != 10_000 else labels[_some()], len(X))


def quality(X: np.ndarray, Y: Any) -> dict[str, float]:
    """Divergence over all pairs and the share of rows whose neighbors in the map have its label."""
    Y = np.ascontiguousarray(Y, np.float32)
    numbers = {"accuracy": accuracy(Y, labels_of(X))}
    if len(X) <= 70_000:
        P = joint_affinities(knn_graph(X, 90), 30.0, threads=THREADS, dtype=np.float32)
        exact = pairwise_repulsion(1.0, THREADS)
        divergence = Divergence(P, 1.0, exact, entropy_of(P.weights), THREADS)
        numbers = {"KL": divergence.loss(Y), **numbers}
    return numbers


def accuracy(Y: np.ndarray, labels: np.ndarray) -> float:
    near = labels[knn_graph(Y, 10).indices].astype(int)
    votes = np.stack([(near == label).sum(axis=1) for label in range(10)])
    return float((votes.argmax(axis=0) == labels).mean())


def place_ours(X: np.ndarray) -> np.ndarray:
    return _fitted("lowland")(X)


def place_open_tsne(X: np.ndarray) -> np.ndarray:
    return _fitted("openTSNE")(X)


@cache
def _fitted(who: str) -> Any:
    """How a model of MNIST places new rows."""
    X = mnist50()
    if who == "lowland":
        model = lowland.TSNE(random_state=0).fit(X)
        return model.transform
    from openTSNE import TSNE

    theirs = TSNE(n_jobs=THREADS, random_state=0).fit(X)
    return lambda data: np.asarray(theirs.transform(data))


def new_rows() -> np.ndarray:
    """10 000 digits with noise; the models that are to place them are fitted now."""
    _fitted("lowland"), _fitted("openTSNE")
    X = mnist10()
    return X + 0.1 * X.std() * np.random.default_rng(1).standard_normal(X.shape, np.float32)


PEERS = {
    "scikit-learn-intelex": partial(intelex, 2),
    "openTSNE": open_tsne,
    "scikit-learn": partial(scikit, 2),
    "umap-learn": umap,
    "PaCMAP": pacmap,
}
WANTED = {"lowland": partial(ours, 2, STEPS)}

CASES = [
    Case("mnist 70000 x 50", mnist50, WANTED | PEERS, quality, "KL, accuracy"),
    Case("mnist 10000 x 50", mnist10, WANTED | PEERS, quality, "KL, accuracy"),
    Case("digits 1797 x 64", digits64, WANTED | PEERS, quality, "KL, accuracy"),
    Case(
        "mnist 70000 x 50, three dimensions",
        mnist50,
        {"lowland": partial(ours, 3, STEPS), "lowland, two dimensions": partial(ours, 2, STEPS)},
        quality,
        "KL, accuracy",
    ),
    Case(
        "new rows 10000 in a map of 70000",
        new_rows,
        {"lowland": place_ours, "openTSNE": place_open_tsne},
        lambda X, Y: accuracy(np.ascontiguousarray(Y, np.float32), labels_of(X)),
        "accuracy",
    ),
    Case(
        "copies 1000000 x 50, 500 steps",
        million,
        {"lowland": partial(ours, 2, 500)},
        quality,
        "accuracy",
    ),
]

if __name__ == "__main__":
    main(CASES, repeats=3, patience=60.0)
