"""New rows in t-SNE maps of many fitted rows: CPU time per row, first call and later ones.

The maps are not fitted, which would take minutes, but laid out by the hidden coordinates of
clusters that the rows are drawn from. ``--exact`` compares with every fitted row in every call.

    .venv/bin/python benchmarks/placement.py --rows 50000 500000 --columns 50 --new 1 100 10000
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from lowland import TSNE
from lowland._engines.embedding.particle_mesh import ParticleMesh, similarity
from lowland._engines.neighbors import index

GROUPS, HIDDEN, NEIGHBORS = 50, 8, 90


def clusters(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows near bent pieces of eight dimensions in clusters, and places for them in a map."""
    fixed, rng = np.random.default_rng(1), np.random.default_rng(seed)
    centers = 4 * fixed.standard_normal((GROUPS, p))
    frames = fixed.standard_normal((GROUPS, HIDDEN, p))
    islands = 0.12 * np.sqrt(n) * fixed.uniform(-1, 1, (GROUPS, 2))
    group, Z = rng.integers(0, GROUPS, n), rng.standard_normal((n, HIDDEN))
    X = 0.3 * rng.standard_normal((n, p), dtype=np.float32)
    for g in range(GROUPS):
        X[group == g] += centers[g] + Z[group == g] @ frames[g]
    return X, (islands[group] + 0.015 * np.sqrt(n) * Z[:, :2]).astype(np.float32)


def model(X: np.ndarray, Y: np.ndarray) -> TSNE:
    """A t-SNE whose map of X is Y."""
    potential, forces = np.empty(len(Y)), np.empty_like(Y)
    ParticleMesh(similarity(1.0), 2).field(Y).at(Y, potential, forces, 2)
    made = TSNE()
    made.embedding_, made.fitted_rows_, made.n_features_in_ = Y, X, X.shape[1]
    made.n_neighbors_, made.mean_potential_ = NEIGHBORS, float(potential.mean())
    made.kl_divergence_, made.loss_history_, made.n_iter_ = 1.0, np.ones(1), 1
    return made


def seconds(made: TSNE, Q: np.ndarray) -> float:
    start = time.process_time()
    made.transform(Q)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 50_000, 500_000])
    parser.add_argument("--new", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--exact", action="store_true")
    options = parser.parse_args()
    if options.exact:
        index.INDEX_ROWS = 10**12
    print("rows, columns | first row, CPU ms |", *(f"{m} rows, CPU ms each |" for m in options.new))
    for n in options.rows:
        made = model(*clusters(n, options.columns, seed=0))
        Q, _ = clusters(max(options.new), options.columns, seed=5)
        times: list[Any] = [f"{1e3 * seconds(made, Q[:1]):.0f}"]
        for m in options.new:
            best = min(seconds(made, Q[:m]) for _ in range(5 if m < 1000 else 1))
            times.append(f"{1e3 * best / m:.4f}")
        print(n, options.columns, "|", " | ".join(times), flush=True)


if __name__ == "__main__":
    main()
