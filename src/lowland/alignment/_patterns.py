"""Matches without known correspondences: rows whose neighborhoods look alike.

The local pattern of a row is the matrix of distances among the row and its k nearest neighbors,
(k + 1) x (k + 1). Two patterns are compared in all k! orders of the neighbors of one of them, and
one is rescaled to fit the other, whichever way fits better (Wang & Mahadevan 2009):

    dist(A, B) = min over orders h of min(|B_h - a A|_F, |A - b B_h|_F)
               = min(|A|_F, |B|_F) sqrt(1 - c^2),     c = max over h of <A, B_h> / (|A|_F |B|_F)

as the best factors are a = <A, B_h> / |A|^2 and b = <A, B_h> / |B|^2. Patterns are divided by their
norms first, so that those of dense regions are not alike for their size alone: of 200 rows of a
curve, with noise of a tenth of their spacing, 35 % then find their partner, and 10 % otherwise.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.threads import limit_blas
from lowland._engines.distances.distance_tiles import DistanceTiles
from lowland._engines.linalg.blocks import row_blocks, rows_within
from lowland._engines.neighbors.search import neighbor_graph
from lowland.alignment._matches import Matches

K = 4  # neighbors in a pattern, as in the paper: 24 orders
BEST = 5  # a match is among so many best of both its rows
LEAST_WEIGHT = 1e-9  # of the best: weaker matches are left out
ENDS = tuple(itertools.combinations(range(K + 1), 2))


def pattern_matches(
    Xs: list[Any], starts: np.ndarray, metric: str, owner: str, run: FitContext
) -> Matches:
    """The rows of any two tables whose patterns are alike, weighted by exp(-dist / delta^2).

    A pair counts if each of the two is among the 5 best matches of the other. delta^2 is the median
    distance of a row to its best match. O(n_1 n_2) time, and O(n_1 + n_2) memory.
    """
    for d, X in enumerate(Xs):
        if X.shape[0] <= K:
            raise ParameterError(
                f"{owner}: Xs[{d}] has {X.shape[0]} rows, but without correspondences each row is "
                f"compared with its {K} nearest; give correspondences, or {K + 1} rows and more."
            )
    patterns = [local_patterns(X, metric, run) for X in Xs]
    found = []
    for a, b in itertools.combinations(range(len(Xs)), 2):
        i, j, distances = _mutual(patterns[a], patterns[b], run)
        found.append((i + starts[a], j + starts[b], _weights(i, distances)))
    rows, columns, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    strong = weights > LEAST_WEIGHT
    return Matches(rows[strong], columns[strong], weights[strong])


def local_patterns(X: Any, metric: str, run: FitContext) -> np.ndarray:
    """The 10 distances among each row and its 4 nearest neighbors, in the order of ENDS."""
    near = neighbor_graph(
        X, K, metric=metric, threads=run.threads, rng=run.rng, monitor=run.monitor
    )
    source, R = DistanceTiles(X, metric), np.empty((X.shape[0], len(ENDS)))
    R[:, :K] = near.distances  # the first ends are the row itself and a neighbor
    upper = np.triu_indices(K, 1)
    with run.monitor.phase("local patterns", total=len(R)) as phase:
        for row, ids in enumerate(near.indices):
            R[row, K:] = source.tile(ids, ids)[upper]
            phase.advance()
    return R


def pattern_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """sqrt(1 - c^2) of all patterns A (m, 10) and all B (n, 10); rows of equal points are alike."""
    A, B = _unit(A), _unit(B)
    c = np.full((len(A), len(B)), -1.0)
    with limit_blas(1):
        for order in itertools.permutations(range(1, K + 1)):
            label = (0, *order)
            ends = [ENDS.index((min(e), max(e))) for e in ((label[a], label[b]) for a, b in ENDS)]
            np.maximum(c, A @ B[:, ends].T, out=c)
    return np.sqrt(np.maximum(1 - c * c, 0.0))


def _unit(R: np.ndarray) -> np.ndarray:
    """Patterns of norm 1; that of equal points is the regular one."""
    size = np.linalg.norm(R, axis=1, keepdims=True)
    return np.where(size > 0, R / np.where(size > 0, size, 1.0), R.shape[1] ** -0.5)


def _weights(rows: np.ndarray, distances: np.ndarray) -> np.ndarray:
    order = np.lexsort((distances, rows))
    best = order[np.unique(rows[order], return_index=True)[1]]
    scale = float(np.median(distances[best])) if best.size else 1.0
    return np.exp(-distances / (scale or 1.0))


def _mutual(
    A: np.ndarray, B: np.ndarray, run: FitContext
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of patterns that are among the best matches of each other, and their distances."""
    there, distances = _nearest(A, B, run)
    back, _ = _nearest(B, A, run)
    i = np.repeat(np.arange(len(A)), there.shape[1])
    j = there.ravel()
    mutual = (back[j] == i[:, None]).any(axis=1)
    return i[mutual], j[mutual], distances.ravel()[mutual]


def _nearest(A: np.ndarray, B: np.ndarray, run: FitContext) -> tuple[np.ndarray, np.ndarray]:
    """The best matches of each pattern of A in B, the best first."""
    k = min(BEST, len(B))
    ids, found = np.empty((len(A), k), np.int64), np.empty((len(A), k))
    with run.monitor.phase("matches", total=len(A)) as phase:
        for rows in row_blocks(len(A), rows_within(24 * len(B))):
            D = pattern_distances(A[rows], B)
            some = np.argpartition(D, k - 1, axis=1)[:, :k]
            lengths = np.take_along_axis(D, some, axis=1)
            order = np.lexsort((some, lengths), axis=1)
            ids[rows] = np.take_along_axis(some, order, axis=1)
            found[rows] = np.take_along_axis(lengths, order, axis=1)
            phase.advance(rows.stop - rows.start)
    return ids, found
