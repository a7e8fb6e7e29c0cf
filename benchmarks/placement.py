"""New rows in t-SNE maps of many fitted rows, beside a search in hnswlib and faiss: CPU time.

The maps are not fitted, which would take minutes, but laid out by the hidden coordinates of
clusters that the rows are drawn from. ``--exact`` compares with every fitted row in every call.
Peers only search for the neighbors; lowland also places the rows in the map. Their recall of the
neighbors stands beside the time, on the first queries.

    .venv/bin/python benchmarks/placement.py --rows 70000 1000000 --new 1 10000 1000000
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lowland import TSNE
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.embedding.particle_mesh import ParticleMesh, similarity
from lowland._engines.neighbors import search
from lowland.neighbors import knn_query

GROUPS, HIDDEN, NEIGHBORS = 50, 8, 90
THREADS = len(os.sched_getaffinity(0))
SAMPLE = 200  # queries that recall is measured on


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


class Asked(NamedTuple):
    """New rows, and how many of them are asked for at a time."""

    Q: np.ndarray
    batches: list[int]


class Peer(NamedTuple):
    """The search for neighbors by another library, without placing anything."""

    name: str
    build: Callable[[np.ndarray], Any]
    search: Callable[[Any, np.ndarray], np.ndarray]


def peers() -> list[Peer]:
    """hnswlib and faiss, where they are installed, at a recall like ours."""
    found = []
    with contextlib.suppress(ImportError):
        import hnswlib

        def graph(X: np.ndarray) -> Any:
            made = hnswlib.Index("l2", X.shape[1])
            made.init_index(len(X), M=16, ef_construction=100)
            made.set_num_threads(THREADS)
            made.add_items(X)
            made.set_ef(150)
            return made

        found.append(Peer("hnswlib", graph, lambda made, Q: made.knn_query(Q, NEIGHBORS)[0]))
    with contextlib.suppress(ImportError):
        import faiss

        def cells(X: np.ndarray) -> Any:
            faiss.omp_set_num_threads(THREADS)
            n_cells = max(1, int(2 * np.sqrt(len(X))))
            made = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_cells)
            made.train(X[:: max(1, len(X) // (40 * n_cells))])
            made.add(X)
            made.nprobe = max(8, n_cells // 25)
            return made

        found.append(Peer("faiss IVF", cells, lambda made, Q: made.search(Q, NEIGHBORS)[1]))
    return found


def spent(work: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """The least CPU seconds of some runs, and the last result."""
    best = np.inf
    for _ in range(times):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def recall(X: np.ndarray, Q: np.ndarray, ids: np.ndarray) -> float:
    """Share of the true neighbors of the first queries."""
    some = min(SAMPLE, len(Q))
    true = knn_query(X, Q[:some], NEIGHBORS, method="exact").indices
    pairs = zip(ids[:some], true, strict=True)
    return float(np.mean([np.isin(own, row).mean() for own, row in pairs]))


def row(name: str, work: Callable[[np.ndarray], Any], first: float, asked: Asked) -> np.ndarray:
    """Print the time of each new row, and return the last answer."""
    times = []
    for m in asked.batches:
        took, answer = spent(partial(work, asked.Q[:m]), 20 if m < 1000 else 1)
        times.append(f"{1e3 * took / m:9.4f}")
    print(f"  {name:26} | {first:8.2f} |", " | ".join(times), end=" | ", flush=True)
    return answer


def compare(X: np.ndarray, Y: np.ndarray, asked: Asked, with_peers: bool) -> None:
    made, Q = model(X, Y), asked.Q
    first, _ = spent(partial(made.transform, Q[:1]))
    row("lowland, rows placed", made.transform, first, asked)
    run = FitContext(np.random.default_rng(0), THREADS, Monitor(), None, made._once)
    options = {"metric": "euclidean", "metric_params": None, "run": run}
    near = search.query_fitted(X, Q[:SAMPLE], NEIGHBORS, **options)
    print(f"{recall(X, Q, near.indices):.4f}", flush=True)
    for peer in peers() if with_peers else []:
        first, built = spent(partial(peer.build, X))
        ids = row(f"{peer.name}, search only", partial(peer.search, built), first, asked)
        print(f"{recall(X, Q, ids):.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 70_000, 1_000_000])
    parser.add_argument("--new", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    if options.exact:
        search.INDEX_ROWS = 10**12
    print("CPU seconds of the first call or the index | CPU ms of each new row, in batches of")
    print(" " * 28, "| index, s |", " | ".join(f"{m:9}" for m in options.new), "| recall")
    Q, _ = clusters(max(*options.new, SAMPLE), options.columns, seed=5)
    for n in options.rows:
        print(f"{n} x {options.columns}")
        X, Y = clusters(n, options.columns, seed=0)
        compare(X, Y, Asked(Q, options.new), not options.no_peers)


if __name__ == "__main__":
    main()
