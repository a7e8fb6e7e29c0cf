"""UMAP beside umap-learn; PaCMAP, PHATE and t-SNE of both sides for context: time and quality.

All with their defaults, neighbors included, warm: compilation on the first call is not counted. The
line "cold" is a fresh process from its start to the map, as a script or a command has it. Quality:
trustworthiness and neighbor recall (15 neighbors), accuracy of the 10 nearest neighbors in the map,
Spearman's correlation of distances, correlation of the distances of class centers, and the largest
radius of a point in units of the median radius.

``--case`` and ``--only`` pick: the slow peers take minutes. ``--cold`` times fresh processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from functools import cache, partial
from typing import Any

import numpy as np
from _harness import Case, main
from knn import million, mnist50
from tsne import accuracy, digits64, labels_of, mnist10, open_tsne

import lowland
from lowland.metrics import neighbor_recall, trustworthiness

THREADS = len(os.sched_getaffinity(0))


def ours(name: str, X: np.ndarray) -> np.ndarray:
    return getattr(lowland, name)(random_state=0).fit_transform(X)


def umap_learn(seed: int | None, X: np.ndarray) -> np.ndarray:
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = THREADS if seed is None else 1  # a seed is refused with several threads
        return UMAP(random_state=seed, n_jobs=threads).fit_transform(X)


def pacmap(X: np.ndarray) -> np.ndarray:
    from pacmap import PaCMAP

    return PaCMAP().fit_transform(X)


def phate(X: np.ndarray) -> np.ndarray:
    from phate import PHATE

    return PHATE(n_jobs=THREADS, random_state=0, verbose=0).fit_transform(X)


def quality(X: np.ndarray, Y: Any) -> dict[str, float]:
    Y, labels = np.ascontiguousarray(Y, np.float32), labels_of(X)
    found = {"accuracy": accuracy(Y, labels)}
    if len(X) > 100_000:
        return found
    sample = np.random.default_rng(0).choice(len(X), 1500, replace=False)
    away = np.linalg.norm(Y - np.median(Y, axis=0), axis=1)
    centers = [_pairs(_centers(A, labels)) for A in (X, Y)]
    return {
        "trust": float(trustworthiness(X, Y, n_neighbors=15)),
        "recall": float(neighbor_recall(X, Y, n_neighbors=15)),
        **found,
        "spearman": _spearman(_pairs(X[sample]), _pairs(Y[sample])),
        "centers": float(np.corrcoef(*centers)[0, 1]),
        "radius": float(away.max() / np.median(away)),
    }


def _pairs(X: np.ndarray) -> np.ndarray:
    from scipy.spatial.distance import pdist

    return pdist(X)


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(a, b)[0])


def _centers(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.array([X[labels == label].mean(axis=0) for label in np.unique(labels)])


# --- new rows -----------------------------------------------------------------------------------


@cache
def _fitted(who: str) -> Any:
    X = mnist50()
    if who == "lowland":
        return lowland.UMAP(random_state=0).fit(X).transform
    from umap import UMAP

    return UMAP(n_jobs=THREADS).fit(X).transform


def place(who: str, X: np.ndarray) -> np.ndarray:
    return _fitted(who)(X)


def new_rows() -> np.ndarray:
    """10 000 digits with noise; the models that are to place them are fitted now."""
    _fitted("lowland"), _fitted("umap-learn")
    X = mnist10()
    return X + 0.1 * X.std() * np.random.default_rng(1).standard_normal(X.shape, np.float32)


# --- fresh processes ----------------------------------------------------------------------------

COLD = {
    "lowland UMAP": "import lowland; lowland.UMAP(random_state=0).fit_transform(X)",
    "umap-learn": "import umap; umap.UMAP().fit_transform(X)",
    "lowland PaCMAP": "import lowland; lowland.PaCMAP(random_state=0).fit_transform(X)",
    "pacmap": "import pacmap; pacmap.PaCMAP().fit_transform(X)",
    "lowland PHATE": "import lowland; lowland.PHATE(random_state=0).fit_transform(X)",
    "phate": "import phate; phate.PHATE(verbose=0).fit_transform(X)",
    "openTSNE": "import openTSNE; openTSNE.TSNE().fit(X)",
    "lowland TSNE": "import lowland; lowland.TSNE(random_state=0).fit_transform(X)",
}


def cold(repeats: int = 3) -> None:
    """Seconds from the start of a process to the map of the digits, the best of some."""
    data = "from sklearn.datasets import load_digits; X = load_digits().data; "
    base = _seconds(data, repeats)
    print(f"\ndigits, fresh process (python, numpy and the data, {base:.2f} s, subtracted)")
    for name, code in COLD.items():
        print(f"{name:32}{_seconds(data + code, repeats) - base:9.2f}", flush=True)


def _seconds(code: str, repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        command = [sys.executable, "-W", "ignore", "-c", code]
        subprocess.run(command, check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


NAMES = "trust, recall, accuracy, spearman, centers, radius"
WANTED = {"lowland": partial(ours, "UMAP")}
PEERS = {
    "umap-learn": partial(umap_learn, None),
    "umap-learn, seed 0": partial(umap_learn, 0),
    "umap-learn, seed 1": partial(umap_learn, 1),
    "umap-learn, seed 2": partial(umap_learn, 2),
    "lowland TSNE": partial(ours, "TSNE"),
    "openTSNE": open_tsne,
    "lowland PaCMAP": partial(ours, "PaCMAP"),
    "pacmap": pacmap,
}
PHATES = {"lowland PHATE": partial(ours, "PHATE"), "phate": phate}

CASES = [
    Case("digits 1797 x 64", digits64, WANTED | PEERS | PHATES, quality, NAMES),
    Case("mnist 10000 x 50", mnist10, WANTED | PEERS | PHATES, quality, NAMES),
    Case("mnist 70000 x 50", mnist50, WANTED | PEERS, quality, NAMES),
    Case("mnist and noisy copies, 1000000 x 50", million, WANTED, quality, "accuracy"),
    Case(
        "10000 new rows in a map of 70000",
        new_rows,
        {"lowland": partial(place, "lowland"), "umap-learn": partial(place, "umap-learn")},
        lambda X, Y: accuracy(np.ascontiguousarray(Y, np.float32), labels_of(X)),
        "accuracy",
    ),
]

if __name__ == "__main__":
    if "--cold" in sys.argv:
        cold()
    else:
        main(CASES, repeats=3, patience=60)
