"""Whether one island of a map holds two groups that the data separate."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import scipy.sparse

from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._engines.graphs.components import connected_components
from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.linalg.eigen import smallest_eigenpairs
from lowland._engines.linalg.magnitude import near_one
from lowland._engines.neighbors.search import neighbor_graph
from lowland.metrics._cloud import Cloud, checked_islands, checked_neighbors
from lowland.metrics._options import Keywords, Options
from lowland.metrics.gaps import NEIGHBORS, Gap, crossing, distinct, gap_between

LEAST_SHARE = 0.1  # of the rows of an island, on the smaller side of a split
FEWEST = 40  # different rows of an island that is split
ROWS = 500  # of an island


def inner_gaps(
    X: Any, islands: Any, *, n_neighbors: int = NEIGHBORS, **options: Unpack[Keywords]
) -> dict[int, Gap]:
    """The test of :func:`gap_test` for the most likely split of each island.

    The neighbor graph of the rows of an island (at most 500) is split where the fewest edges are
    cut relative to the smaller side: along the second eigenvector of its normalized Laplacian, at
    the place of the least conductance that leaves 10 % of the rows on either side. A cut below
    0.3 is *real*: the island holds two groups, and the map has laid them over one another. Islands
    of fewer than 40 different rows are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 5))
    >>> X[300:] += 8
    >>> inner_gaps(X, np.ones(400, int))[1].verdict
    'real'
    """
    how = Options(**options)
    cloud = Cloud.over(X, how)
    codes = checked_islands(islands, cloud.n)
    n_neighbors = checked_neighbors(n_neighbors)
    seed = int(how.rng.integers(2**31))
    found = {}
    with limit_blas(1):
        for number in range(1, int(codes.max(initial=0)) + 1):
            rng = np.random.default_rng(seed)  # not of the number, see gap_test
            rows = np.flatnonzero(codes == number)
            rows = np.sort(rng.choice(rows, min(ROWS, len(rows)), replace=False))
            points = rows
            if len(rows) >= FEWEST:
                points = distinct(near_one(cloud.of(rows)), how.threads)
            if len(points) >= FEWEST:
                found[number] = split_gap(number, points, n_neighbors, rng, how.threads)
    return found


def split_gap(number: int, X: np.ndarray, k: int, rng: np.random.Generator, threads: int) -> Gap:
    """The test of the best split of one cloud.

    The best of all splits cuts fewer edges than a split at a given place. The reference is
    therefore at most what the best split of one of the two sides cuts: if the sides are clouds
    without a gap, these are as good.
    """
    side = best_split(X, k, threads, rng)
    A, B = X[~side], X[side]
    again = [_best_cut(part, k, threads, rng) for part in (A, B) if len(part) >= FEWEST // 2]
    return gap_between(number, number, A, B, k, rng, threads, most=max(again, default=np.inf))


def _best_cut(X: np.ndarray, k: int, threads: int, rng: np.random.Generator) -> float:
    side = best_split(X, k, threads, rng)
    least = min(int(side.sum()), int((~side).sum()))
    k = max(1, min(k, least // 2))
    return max(crossing(X, side, k, threads), 1) / (2 * k * least)


def best_split(X: np.ndarray, k: int, threads: int, rng: np.random.Generator) -> np.ndarray:
    """Two sides of a cloud, with the least conductance along the Fiedler vector."""
    n = len(X)
    k = max(1, min(k, n // 4))
    ids = neighbor_graph(X, k, threads=threads).indices
    ones = np.ones(n * k)
    W = scipy.sparse.csr_matrix((ones, ids.ravel(), np.arange(0, n * k + 1, k)), (n, n))
    W = (W + W.T).tocsr()
    n_parts, part = connected_components(W)
    if n_parts > 1:
        along = _by_parts(part, n_parts, n)
    else:
        L, degrees = laplacian(W, "symmetric")
        with Monitor("metrics", verbose=False) as monitor:
            pairs = smallest_eigenpairs(
                L,
                1,
                tol=1e-3,
                rng=rng,
                monitor=monitor,
                threads=threads,
                trivial=np.sqrt(degrees),
                norm=2.0,
            )
        along = pairs.vectors[:, 0] / np.sqrt(degrees)
    return _sweep(W, along)


def _by_parts(part: np.ndarray, n_parts: int, n: int) -> np.ndarray:
    """Components in the order of their sizes, so that a sweep does not cut any of them first."""
    sizes = np.bincount(part, minlength=n_parts)
    place = np.empty(n_parts)
    place[np.argsort(-sizes, kind="stable")] = np.arange(n_parts)
    return place[part]


def _sweep(W: Any, along: np.ndarray) -> np.ndarray:
    """The threshold with the least conductance, cut / volume of the smaller side."""
    n = len(along)
    order = np.argsort(along, kind="stable")
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    edges = W.tocoo()
    # An edge from place a to place b > a is cut by every threshold between the two.
    low = np.minimum(place[edges.row], place[edges.col])
    high = np.maximum(place[edges.row], place[edges.col])
    opened = np.bincount(low, edges.data, n) - np.bincount(high, edges.data, n)
    cut = np.cumsum(opened)[:-1]
    volume = np.cumsum(np.asarray(W.sum(axis=1)).ravel()[order])
    conductance = cut / np.minimum(volume[:-1], volume[-1] - volume[:-1])
    least = max(1, int(LEAST_SHARE * n))
    allowed = slice(least - 1, n - least)
    best = least - 1 + int(np.argmin(conductance[allowed]))
    side = np.zeros(n, bool)
    side[order[best + 1 :]] = True
    return side
