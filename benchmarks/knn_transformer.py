"""Neighbor graphs as a step of a pipeline, beside the transformers of scikit-learn and pynndescent.

``scanpy.pp.neighbors`` takes any of them; the search of pynndescent is what it uses by default.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
from _harness import DATA, Case, main
from pynndescent import PyNNDescentTransformer
from sklearn.neighbors import KNeighborsTransformer

import lowland
from lowland.neighbors import KNNTransformer

THREADS = len(os.sched_getaffinity(0))
K = 15


def ours(X: Any) -> Any:
    return KNNTransformer(K, n_jobs=THREADS).fit_transform(X)


def scikit(algorithm: str, X: Any) -> Any:
    return KNeighborsTransformer(n_neighbors=K, algorithm=algorithm, n_jobs=THREADS).fit_transform(
        X
    )


def descent(X: Any) -> Any:
    return PyNNDescentTransformer(n_neighbors=K, n_jobs=THREADS, random_state=0).fit_transform(X)


def recall(X: Any, graph: Any, n_sample: int = 100) -> float:
    """Share of the true neighbors found, on a sample of rows, by distance (ties count)."""
    rows = np.random.default_rng(1).choice(X.shape[0], n_sample, replace=False)
    dense = X.toarray() if hasattr(X, "toarray") else X
    hits = []
    for row in rows:
        squares = ((dense - dense[row]) ** 2).sum(axis=1, dtype=np.float64)
        squares[row] = np.inf
        kth = np.partition(squares, K - 1)[K - 1]
        found = graph.indices[graph.indptr[row] : graph.indptr[row + 1]]
        found = found[found != row][:K]
        hits.append((squares[found] <= kth * (1 + 1e-6)).sum() / K)
    return float(np.mean(hits))


def digits(n: int) -> np.ndarray:
    X = np.load(DATA / "mnist.npz")["X"][:n].astype(np.float32)
    return np.ascontiguousarray(lowland.PCA(50, random_state=0).fit_transform(X))


def cells() -> Any:
    """Counts of genes in 2 700 cells, sparse, as logarithms."""
    import scipy.sparse

    rng = np.random.default_rng(0)
    rates = rng.gamma(0.3, size=(8, 2_000))[rng.integers(8, size=2_700)]
    return scipy.sparse.csr_matrix(np.log1p(rng.poisson(0.3 * rates)).astype(np.float32))


CANDIDATES = {
    "lowland": ours,
    "scikit-learn brute": partial(scikit, "brute"),
    "pynndescent": descent,
}
CASES = [
    Case(f"mnist {n} x 50, k = 15", partial(digits, n), CANDIDATES, recall, "recall")
    for n in (5_000, 20_000, 70_000)
] + [Case("counts 2700 x 2000, sparse, k = 15", cells, CANDIDATES, recall, "recall")]

if __name__ == "__main__":
    main(CASES, repeats=3, patience=30.0)
