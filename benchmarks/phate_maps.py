"""PHATE beside the phate package: time, agreement of labels in the map, paths along a tree.

Both with their defaults (two dimensions, 5 neighbors, decay 40, 2000 landmarks, t by the entropy),
on the same rows and with as many threads. Before the table, each is timed once in a process of its
own, imports and compilation included ("cold"), in CPU seconds; the table shows the best of several
warm runs. Accuracy is that of the 10 nearest neighbors in the map, trust the trustworthiness of 10
neighbors on 2 000 rows. "paths" is Spearman's correlation of distances in the map with the true
paths along the tree. With landmarks, phate's t depends on its seed; there, t is given.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from functools import cache, partial
from typing import Any

import numpy as np
from _harness import DATA, Case, main

import lowland
from lowland.datasets import branching_tree
from lowland.metrics import trustworthiness
from lowland.neighbors import knn_graph

THREADS = len(os.sched_getaffinity(0))
TREES = {1000: 0, 3000: 1}  # rows of a tree, and its seed


def ours(X: np.ndarray, **params: Any) -> np.ndarray:
    return lowland.PHATE(random_state=0, **params).fit_transform(X)


def peer(X: np.ndarray, **params: Any) -> np.ndarray:
    import phate

    model = phate.PHATE(random_state=0, n_jobs=THREADS, verbose=0, **params)
    return np.asarray(model.fit_transform(X))


# --- data -------------------------------------------------------------------------------------


@cache
def mnist10() -> np.ndarray:
    X = np.load(DATA / "mnist.npz")["X"][:10_000].astype(np.float64)
    return np.ascontiguousarray(lowland.PCA(50).fit_transform(X))


@cache
def cells() -> np.ndarray:
    """Blood cells in 50 principal components of their genes."""
    return np.ascontiguousarray(np.load(DATA / "pbmc3k.npz")["X_pca"], np.float64)


def tree(n: int) -> np.ndarray:
    return branching_tree(n, random_state=TREES[n]).X


# --- quality ----------------------------------------------------------------------------------


def labeled(labels: Any, X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    y = labels()
    near = y[knn_graph(np.ascontiguousarray(Y, np.float64), 10).indices]
    votes = np.stack([(near == label).sum(axis=1) for label in np.unique(y)])
    right = np.unique(y)[votes.argmax(axis=0)] == y
    some = np.sort(np.random.default_rng(0).choice(len(X), min(len(X), 2000), replace=False))
    trust = trustworthiness(X[some], np.ascontiguousarray(Y[some], np.float64), n_neighbors=10)
    return {"accuracy": float(right.mean()), "trust": float(trust)}


def digits_of() -> np.ndarray:
    return np.load(DATA / "mnist.npz")["y"][:10_000]


def types_of() -> np.ndarray:
    return np.load(DATA / "pbmc3k.npz")["y"]


def paths(X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    from scipy.spatial.distance import pdist
    from scipy.stats import spearmanr

    truth = branching_tree(len(X), random_state=TREES[len(X)]).truth
    return {"paths": float(spearmanr(pdist(truth, "cityblock"), pdist(Y))[0])}


# --- cases ------------------------------------------------------------------------------------

BOTH = {"lowland": ours, "phate": peer}
AT_40 = {"lowland": partial(ours, t=40), "phate": partial(peer, t=40)}
CASES = [
    Case("mnist 10000 x 50", mnist10, BOTH, partial(labeled, digits_of), "accuracy, trust"),
    Case("blood cells 2638 x 50", cells, BOTH, partial(labeled, types_of), "accuracy, trust"),
    Case("tree 1000 x 60", partial(tree, 1000), BOTH, paths, "paths"),
    Case("tree 3000 x 60, t = 40", partial(tree, 3000), AT_40, paths, "paths"),
]


def cold(who: str, name: str) -> float:
    """CPU seconds of a first fit in a new process, its imports included."""
    command = [sys.executable, sys.argv[0], "--cold", who, name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def cold_here(who: str, name: str) -> float:
    case = next(case for case in CASES if case.name == name)
    X = case.load()
    before = resource.getrusage(resource.RUSAGE_SELF)
    case.candidates[who](X)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cold"]:
        print(json.dumps(cold_here(*sys.argv[2:])))
    else:
        chosen = sys.argv[sys.argv.index("--case") + 1] if "--case" in sys.argv else None
        if "--memory-of" not in sys.argv:
            for case in CASES:
                if chosen in (None, case.name):
                    try:
                        taken = {who: cold(who, case.name) for who in BOTH}
                    except subprocess.CalledProcessError as problem:
                        print(f"{case.name}: no cold run, {problem.stderr.splitlines()[-1]}")
                        continue
                    shown = ", ".join(f"{who} {seconds:.1f}" for who, seconds in taken.items())
                    print(f"{case.name}, cold, CPU seconds: {shown}", flush=True)
        main(CASES, repeats=3, patience=60.0)
