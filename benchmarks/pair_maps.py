"""PaCMAP and LocalMAP beside the package of their authors: time, CPU time, neighbors, accuracy.

All on the same data with 10 neighbors and 450 steps, the search for neighbors included. Ours is
exact, theirs approximate (HNSW of faiss). "cold" is a new process that imports, loads, fits and
ends; the others count the best of several runs in one process, after compilation. CPU seconds stand
beside the quality, because they mean something on a busy machine, too. (Not named after the
package, which the scripts of this folder could not import then.)
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _harness import DATA, Case, main

import lowland
from lowland.datasets import digits
from lowland.metrics import neighbor_recall, trustworthiness
from lowland.neighbors import knn_graph

SAMPLE = 5000  # rows that trustworthiness is measured on


class Made(NamedTuple):
    """A map, and the CPU seconds that it took."""

    Y: np.ndarray
    seconds: float


def timed(make: Callable[[np.ndarray], np.ndarray], X: np.ndarray) -> Made:
    make(X[:300])  # what is compiled at the first call is compiled now
    start = time.process_time()
    Y = make(X)
    return Made(np.ascontiguousarray(Y, np.float32), time.process_time() - start)


def ours(name: str, X: np.ndarray) -> np.ndarray:
    return getattr(lowland, name)(random_state=0).fit_transform(X)


def theirs(name: str, X: np.ndarray) -> np.ndarray:
    import pacmap

    logging.disable(logging.WARNING)
    return getattr(pacmap, name)().fit_transform(X)


COLD = """
import logging, sys
import numpy as np
logging.disable(logging.WARNING)
import {module}
{module}.{name}().fit_transform(np.load(sys.argv[1]))
"""


def cold(module: str, name: str, X: np.ndarray) -> Made:
    """The same in a new process; no map comes back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        code = COLD.format(module=module, name=name)
        before = os.times()
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)
        after = os.times()
    spent = after.children_user - before.children_user
    return Made(np.empty((0, 2)), spent + after.children_system - before.children_system)


def mnist(n: int) -> np.ndarray:
    return np.load(DATA / "mnist.npz")["X"][:n].astype(np.float32)


def digits64() -> np.ndarray:
    return digits().X


@cache
def labels_of(n: int) -> np.ndarray:
    return np.asarray(digits().y).astype(int) if n == 1797 else np.load(DATA / "mnist.npz")["y"][:n]


def quality(X: np.ndarray, made: Made) -> dict[str, float]:
    """CPU seconds; trustworthiness and recall of 10 neighbors; accuracy of 10 in the map."""
    if not len(made.Y):
        return {"cpu": made.seconds}
    labels = labels_of(len(X))
    near = labels[knn_graph(made.Y, 10).indices].astype(int)
    votes = np.stack([(near == label).sum(axis=1) for label in range(10)]).argmax(axis=0)
    sampled: dict[str, Any] = {"n_neighbors": 10}
    if len(X) > SAMPLE:
        sampled |= {"sample": SAMPLE, "random_state": 0}
    return {
        "cpu": made.seconds,
        "trust": float(trustworthiness(X, made.Y, **sampled)),
        "recall": float(neighbor_recall(X, made.Y, **sampled)),
        "accuracy": float((votes == labels).mean()),
    }


def warm(name: str) -> dict[str, Callable[[Any], Made]]:
    return {
        "lowland": partial(timed, partial(ours, name)),
        "pacmap": partial(timed, partial(theirs, name)),
    }


MEASURED = "CPU seconds, trustworthiness, recall, accuracy"
CASES = [
    Case(f"{name}, {what}", load, warm(name), quality, MEASURED)
    for name in ("PaCMAP", "LocalMAP")
    for what, load in (
        ("mnist 70000 x 784", partial(mnist, 70_000)),
        ("mnist 10000 x 784", partial(mnist, 10_000)),
        ("digits 1797 x 64", digits64),
    )
]
CASES.append(
    Case(
        "PaCMAP cold, mnist 10000 x 784",
        partial(mnist, 10_000),
        {
            "lowland": partial(cold, "lowland", "PaCMAP"),
            "pacmap": partial(cold, "pacmap", "PaCMAP"),
        },
        quality,
        "CPU seconds",
    )
)

if __name__ == "__main__":
    main(CASES, repeats=3, patience=60.0)
