"""Unfolding methods beside Isomap, a conic solver and tapkee: sheets with a known flat form.

"mvu" keeps the distances of 6 neighbors of a swiss roll to 0.001; a conic solver (cvxpy with
Clarabel) runs on 30 rows, beyond 100 it does not finish. "tcie" and "sculpting" stand beside our
Isomap with the same neighbors. tapkee, the only package with manifold sculpting, does not finish
300 rows; it is run in another process with a time limit. The quality "error" is that of the map
after the best rigid motion and scale, relative to the size of the flat form. "growth" prints times
for more rows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from _harness import Case, main

import lowland
from lowland._engines.linalg.procrustes import align
from lowland.datasets import s_curve, swiss_roll

LIMIT = 60  # seconds for tapkee


def error(truth: np.ndarray, Y: np.ndarray) -> float:
    aligned = align(truth, Y).aligned
    return float(np.linalg.norm(aligned - truth) / np.linalg.norm(truth - truth.mean(axis=0)))


def roll(n: int, hole: bool = False, seed: int = 0) -> np.ndarray:
    """The rows, and beside them their places on the flat roll."""
    data = swiss_roll(n, hole=hole, random_state=seed)
    return np.column_stack([data.X, data.truth])


def curve(n: int) -> np.ndarray:
    data = s_curve(n, random_state=0)
    return np.column_stack([data.X, data.truth])


def fit(method: Any, data: np.ndarray, **params: Any) -> np.ndarray:
    return method(2, random_state=0, **params).fit_transform(data[:, :3])


def quality(data: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    return {"error": error(data[:, 3:], Y)}


# --- maximum variance unfolding -----------------------------------------------------------------


def helix() -> np.ndarray:
    t = np.linspace(0, 3 * np.pi, 30)
    return np.column_stack([np.cos(t), np.sin(t), t / 4])


def kept_pairs(X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    near = np.argsort(D, axis=1, kind="stable")[:, 1 : k + 1]
    joined = np.zeros(D.shape, bool)
    joined[np.arange(len(X))[:, None], near] = True
    i, j = np.nonzero(np.triu(joined | joined.T))
    return i, j, D[i, j]


def conic(X: np.ndarray) -> np.ndarray:
    import cvxpy

    K = cvxpy.Variable((len(X), len(X)), PSD=True)
    bounds = [cvxpy.sum(K) == 0]
    for i, j, d in zip(*kept_pairs(X, 4), strict=True):
        bounds.append(K[i, i] - 2 * K[i, j] + K[j, j] == d * d)
    cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(K)), bounds).solve(solver="CLARABEL")
    values, axes = np.linalg.eigh(K.value)
    return axes * np.sqrt(np.maximum(values, 0))


def unfolded_helix(X: np.ndarray) -> np.ndarray:
    model = lowland.MVU(2, n_neighbors=4, slack=0.0, random_state=0).fit(X)
    return model.factor_ * model.edge_unit_


def kept(X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    i, j, d = kept_pairs(X, 4)
    off = np.sqrt(((Y[i] - Y[j]) ** 2).sum(axis=1)) / d - 1
    return {"trace": float(((Y - Y.mean(axis=0)) ** 2).sum()), "wrong": float(np.abs(off).max())}


# --- manifold sculpting -------------------------------------------------------------------------

TAPKEE = """
import numpy as np, sys, tapkee
X = np.load(sys.argv[1])
Y = tapkee.embed(X.T, method="manifold_sculpting", num_neighbors=10, target_dimension=2)
np.save(sys.argv[2], np.asarray(Y))
"""


def tapkee_sculpting(data: np.ndarray) -> np.ndarray:
    """NaN if it does not finish in time."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        rows, found = Path(folder, "rows.npy"), Path(folder, "map.npy")
        np.save(rows, data[:, :3])
        command = [sys.executable, "-c", TAPKEE, str(rows), str(found)]
        try:
            subprocess.run(command, check=True, timeout=LIMIT, capture_output=True)
        except subprocess.SubprocessError as problem:
            print(f"tapkee: {type(problem).__name__} ({LIMIT} s)", flush=True)
            return np.random.default_rng(0).standard_normal((len(data), 2))
        return np.load(found).reshape(len(data), -1)


CASES = [
    Case(
        "mvu-helix",
        helix,
        {"lowland": unfolded_helix, "cvxpy (Clarabel)": conic},
        kept,
        "trace wrong",
    ),
    Case(
        "mvu-1000",
        partial(roll, 1000),
        {"lowland": lambda data: fit(lowland.MVU, data, slack=9e-4)},
        quality,
        "error",
    ),
    Case(
        "mvu-10000",
        partial(roll, 10_000),
        {"lowland": lambda data: fit(lowland.MVU, data)},
        quality,
        "error",
    ),
    Case(
        "tcie-5000",
        partial(roll, 5000, True),
        {
            "lowland": lambda data: fit(lowland.TCIE, data),
            "our Isomap": lambda data: fit(lowland.Isomap, data),
        },
        quality,
        "error",
    ),
    Case(
        "sculpting-300",
        partial(curve, 300),
        {
            "lowland": lambda data: fit(lowland.ManifoldSculpting, data),
            "our Isomap": lambda data: fit(lowland.Isomap, data),
            "our LLE": lambda data: fit(lowland.LLE, data),
            "tapkee": tapkee_sculpting,
        },
        quality,
        "error",
    ),
    Case(
        "sculpting-5000",
        partial(curve, 5000),
        {
            "lowland": lambda data: fit(lowland.ManifoldSculpting, data),
            "our Isomap": lambda data: fit(lowland.Isomap, data),
            "our LLE": lambda data: fit(lowland.LLE, data),
        },
        quality,
        "error",
    ),
    Case(
        "diffeomorphic-1000",
        partial(curve, 1000),
        {"lowland": lambda data: fit(lowland.DiffeomorphicMap, data)},
        quality,
        "error",
    ),
]


def growth() -> None:
    """Times for more and more rows, and the largest violation of MVU."""
    for name, method, make, sizes in (
        ("MVU", lowland.MVU, roll, (100, 1000, 3000, 10_000, 20_000)),
        ("TCIE", lowland.TCIE, partial(roll, hole=True), (100, 1000, 5000, 6000, 20_000)),
        ("ManifoldSculpting", lowland.ManifoldSculpting, curve, (100, 1000, 1100, 5000, 20_000)),
        ("DiffeomorphicMap", lowland.DiffeomorphicMap, curve, (100, 1000, 5000, 20_000)),
    ):
        for n in sizes:
            data = make(n)
            start = time.perf_counter()
            model = method(2, random_state=0).fit(data[:, :3])
            taken = time.perf_counter() - start
            wrong = getattr(model, "violation_max_", None)
            shown = "" if wrong is None else f", violation {wrong:.1e}"
            off = error(data[:, 3:], model.embedding_)
            print(f"{name}: {n} rows {taken:.1f} s, error {off:.3f}{shown}", flush=True)


if __name__ == "__main__":
    if "--growth" in sys.argv:
        growth()
    else:
        main(CASES, repeats=3)
        if len(sys.argv) == 1:
            growth()
