"""Neighbor graphs beside faiss, hnswlib and scikit-learn; recall beside time."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import faiss
import hnswlib
import numpy as np
from _harness import DATA, Case, main
from sklearn.neighbors import NearestNeighbors

import lowland
from lowland.datasets import swiss_roll
from lowland.neighbors import knn_graph, knn_query

THREADS = len(os.sched_getaffinity(0))


def ours(k: int, X: np.ndarray) -> np.ndarray:
    return knn_graph(X, k).indices


def scikit(k: int, algorithm: str, X: np.ndarray) -> np.ndarray:
    search = NearestNeighbors(n_neighbors=k, algorithm=algorithm, n_jobs=THREADS).fit(X)
    return search.kneighbors(return_distance=True)[1]


def faiss_search(index: Any, k: int, X: np.ndarray) -> np.ndarray:
    faiss.omp_set_num_threads(THREADS)
    if not index.is_trained:
        index.train(X[:: max(1, len(X) // 100_000)])
    index.add(X)
    return without_self(index.search(X, k + 1)[1])


def faiss_flat(k: int, X: np.ndarray) -> np.ndarray:
    return faiss_search(faiss.IndexFlatL2(X.shape[1]), k, X)


def faiss_hnsw(k: int, links: int, effort: int, X: np.ndarray) -> np.ndarray:
    index = faiss.IndexHNSWFlat(X.shape[1], links)
    index.hnsw.efSearch = effort
    return faiss_search(index, k, X)


def faiss_ivf(k: int, cells: int, probes: int, X: np.ndarray) -> np.ndarray:
    quantizer = faiss.IndexFlatL2(X.shape[1])
    index = faiss.IndexIVFFlat(quantizer, X.shape[1], cells)
    index.nprobe = probes
    return faiss_search(index, k, X)


def hnsw(k: int, links: int, effort: int, X: np.ndarray) -> np.ndarray:
    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), M=links, ef_construction=100)
    index.set_num_threads(THREADS)
    index.add_items(X)
    index.set_ef(max(effort, k + 1))
    return without_self(index.knn_query(X, k + 1)[0])


def without_self(ids: np.ndarray) -> np.ndarray:
    """Peers return the row itself, usually first; drop it, or else the last."""
    ids = ids.astype(np.int64)
    own = ids == np.arange(len(ids))[:, None]
    own[~own.any(axis=1), -1] = True
    return ids[~own].reshape(len(ids), -1)


def recall(X: np.ndarray, ids: np.ndarray, n_sample: int = 100) -> float:
    """Share of the true neighbors found, on a sample of rows, by distance (ties count)."""
    rows = np.random.default_rng(1).choice(len(X), n_sample, replace=False)
    hits = []
    for row in rows:
        squares = ((X - X[row]) ** 2).sum(axis=1, dtype=np.float64)
        squares[row] = np.inf
        kth = np.partition(squares, ids.shape[1] - 1)[ids.shape[1] - 1]
        hits.append((squares[ids[row]] <= kth * (1 + 1e-6)).mean())
    return float(np.mean(hits))


def mnist784() -> np.ndarray:
    return np.load(DATA / "mnist.npz")["X"].astype(np.float32)


def mnist50() -> np.ndarray:
    return np.ascontiguousarray(lowland.PCA(50).fit_transform(mnist784()))


def million() -> np.ndarray:
    """Noisy rotated copies of MNIST's 50 components."""
    rng = np.random.default_rng(0)
    X = mnist50()
    noise = 0.1 * X.std()
    copies = []
    for _ in range(15):
        rotation = np.linalg.qr(rng.standard_normal((50, 50)))[0].astype(np.float32)
        copies.append(X @ rotation + noise * rng.standard_normal(X.shape, dtype=np.float32))
    return np.ascontiguousarray(np.vstack(copies)[:1_000_000])


def roll() -> np.ndarray:
    return swiss_roll(100_000, random_state=0).X


def queries() -> np.ndarray:
    return mnist50()


def query_ours(X: np.ndarray) -> np.ndarray:
    return knn_query(X[1000:], X[:1000], 15).indices


def query_scikit(X: np.ndarray) -> np.ndarray:
    search = NearestNeighbors(n_neighbors=15, algorithm="brute", n_jobs=THREADS).fit(X[1000:])
    return search.kneighbors(X[:1000])[1]


def query_recall(X: np.ndarray, ids: np.ndarray) -> float:
    hits = []
    for row in range(0, 1000, 10):
        squares = ((X[1000:] - X[row]) ** 2).sum(axis=1, dtype=np.float64)
        kth = np.partition(squares, 14)[14]
        hits.append((squares[ids[row]] <= kth * (1 + 1e-6)).mean())
    return float(np.mean(hits))


CASES = [
    Case(
        "mnist 70000 x 50, k = 90",
        mnist50,
        {
            "lowland": partial(ours, 90),
            "faiss flat": partial(faiss_flat, 90),
            "scikit-learn brute": partial(scikit, 90, "brute"),
            "faiss HNSW 16/128": partial(faiss_hnsw, 90, 16, 128),
            "hnswlib 16/150": partial(hnsw, 90, 16, 150),
        },
        recall,
        "recall",
    ),
    Case(
        "mnist 70000 x 784, k = 15",
        mnist784,
        {"lowland": partial(ours, 15), "scikit-learn brute": partial(scikit, 15, "brute")},
        recall,
        "recall",
    ),
    Case(
        "copies 1000000 x 50, k = 15",
        million,
        {
            "lowland": partial(ours, 15),
            "faiss IVF 2048/16": partial(faiss_ivf, 15, 2048, 16),
            "faiss HNSW 16/96": partial(faiss_hnsw, 15, 16, 96),
            "hnswlib 16/96": partial(hnsw, 15, 16, 96),
        },
        recall,
        "recall",
    ),
    Case(
        "swiss roll 100000 x 3, k = 15",
        roll,
        {
            "lowland": partial(ours, 15),
            "scikit-learn kd_tree": partial(scikit, 15, "kd_tree"),
        },
        recall,
        "recall",
    ),
    Case(
        "query 1000 against 69000 x 50, k = 15",
        queries,
        {"lowland": query_ours, "scikit-learn brute": query_scikit},
        query_recall,
        "recall",
    ),
]

if __name__ == "__main__":
    main(CASES, repeats=3, patience=30.0)
