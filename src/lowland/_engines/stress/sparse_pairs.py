"""A sparse set of pairs that represents all pairs: neighbors, and partners drawn at random.

The rows are shuffled and divided into groups, several times; all pairs within a group are taken.
Every row gets the same number of partners, and distances in any metric are computed by blocks. The
weights of these pairs represent all pairs that are not neighbors, so that the stress of a fixed map
is estimated without bias. (A few pivots as partners of all rows are not enough: a map can fit its
distances to them by moving the pivots out and all other rows in, because no pair separates those.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._engines.distances.distance_rows import CrossDistances, distance_rows
from lowland._engines.neighbors.search import neighbor_graph
from lowland._engines.stress.objective import ListedPairs, drop_negligible, inverse_powers

NEIGHBORS = 10
GROUP, ROUNDS = 64, 4  # 252 partners at random


class SparseSet(NamedTuple):
    """Pairs i < j, each once, with their distances, and how many pairs each represents."""

    n: int
    first: np.ndarray
    second: np.ndarray
    delta: np.ndarray
    stands_for: np.ndarray

    def unit(self) -> float:
        """The root mean square of all distances, as estimated."""
        mean = np.average(np.square(self.delta, dtype=np.float64), weights=self.stands_for)
        return float(np.sqrt(mean)) or 1.0

    def objective(self, unit: float, power: int, threads: int) -> ListedPairs:
        delta = (self.delta / unit).astype(np.float32)
        drop_negligible(delta, power)
        weights = (inverse_powers(delta, power) * self.stands_for).astype(np.float32)
        return ListedPairs(self.n, self.first, self.second, delta, weights, threads)


def choose_pairs(
    X: Any, metric: Any, metric_params: dict[str, Any] | None, run: FitContext
) -> SparseSet:
    """Ten neighbors of each row, and four times 63 partners at random."""
    n = X.shape[0]
    graph = neighbor_graph(
        X,
        min(NEIGHBORS, n - 1),
        metric=metric,
        metric_params=metric_params,
        threads=run.threads,
        rng=run.rng,
        monitor=run.monitor,
    )
    row = np.repeat(np.arange(n), graph.n_neighbors)
    near, at = np.unique(_keys(row, graph.indices.ravel(), n), return_index=True)
    keys, delta = _random_pairs(X, metric, metric_params, run)
    far = ~np.isin(keys, near)
    keys, delta = keys[far], delta[far]
    share = (n * (n - 1) / 2 - len(near)) / max(1, len(keys))
    every = np.concatenate([near, keys])
    return SparseSet(
        n,
        (every // n).astype(np.int32),
        (every % n).astype(np.int32),
        np.concatenate([graph.distances.ravel()[at], delta]),
        np.concatenate([np.ones(len(near)), np.full(len(keys), share)]),
    )


def _keys(i: np.ndarray, j: np.ndarray, n: int) -> np.ndarray:
    """One number per pair, whichever end comes first."""
    return np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j)


def _random_pairs(
    X: Any, metric: Any, metric_params: dict[str, Any] | None, run: FitContext
) -> tuple[np.ndarray, np.ndarray]:
    n = X.shape[0]
    source = distance_rows(X, metric, metric_params, run.threads)
    keys, found = [], []
    n_groups = -(-n // GROUP)
    with run.monitor.phase("distances of random pairs", total=ROUNDS * n_groups) as phase:
        for _ in range(ROUNDS if n_groups > 1 else 1):
            for rows in np.array_split(run.rng.permutation(n), n_groups):
                i, j = np.triu_indices(len(rows), 1)
                found.append(source.subset(rows).of(np.arange(len(rows)))[i, j])
                keys.append(_keys(rows[i], rows[j], n))
                phase.advance()
    pairs, at = np.unique(np.concatenate(keys), return_index=True)
    return pairs, np.concatenate(found)[at]


def distances_to_some(
    X: Any, chosen: np.ndarray, metric: Any, metric_params: dict[str, Any] | None, run: FitContext
) -> np.ndarray:
    """Distances (m, n) of chosen rows to all, for a start."""
    if metric == "precomputed":
        return X[chosen].astype(np.float64)
    cross = CrossDistances(X[chosen], metric, metric_params, run.threads)
    return np.vstack([D for _, D in cross.blocks(X)]).T
