"""The pairs of rows that maps by pairs are made of: near, mid-near and far (Wang et al. 2021).

    near      the k rows with the least d_ij^2 / (s_i s_j) among the k + 50 nearest, where s_i is
              the mean distance of row i to its fourth, fifth and sixth neighbor
    mid-near  the second nearest of six random rows, several times
    far       random rows that are not near

Random rows are functions of a seed, the row and the place in its list (counter-based numbers): no
draw depends on another row, nor on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._base.validation import is_sparse
from lowland._engines.distances.distance_rows import rows_of
from lowland._engines.distances.metrics import (
    canonical,
    from_products,
    has_directions,
    pair_distances,
)
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.graph import NeighborGraph

MORE_CANDIDATES = 50  # neighbors beyond k that near pairs are chosen from
SCALE_OF = slice(3, 6)  # the neighbors whose mean distance is the scale of a row
LEAST_SCALE = 1e-10  # of the largest scale: rows with many copies have none of their own
GROUP = 6  # random rows, the second nearest of which is mid-near
SEVERAL = 10_000  # from here on more neighbors are used by default


class PairCounts(NamedTuple):
    """How many pairs of each kind a row has."""

    near: int
    mid: int
    far: int


def default_neighbors(n: int) -> int:
    """10 neighbors, and 15 more for each factor of ten beyond 10 000 rows."""
    return 10 if n <= SEVERAL else round(10 + 15 * (math.log10(n) - math.log10(SEVERAL)))


def pair_counts(n: int, k: int, mid_ratio: float, far_ratio: float) -> PairCounts:
    """k near pairs, and mid-near and far pairs in these ratios; of few rows, shares of n.

    There is at least one near pair and, of three rows or more, one far pair.
    """
    near, mid, far = min(k, n - 1), round(k * mid_ratio), max(1, round(k * far_ratio))
    if near + mid + far >= n:
        share = n / (1 + mid_ratio + far_ratio)
        near, mid = max(1, min(near, int(share))), int(share * mid_ratio)
        far = max(1, int(share * far_ratio))
    return PairCounts(near, min(mid, n - 1), min(far, n - 1 - near))


def local_scales(distances: np.ndarray) -> np.ndarray:
    """s_i: the mean distance to the fourth, fifth and sixth neighbor; of fewer, to the last one."""
    some = distances[:, SCALE_OF] if distances.shape[1] > SCALE_OF.start else distances[:, -1:]
    scales = some.astype(np.float64).mean(axis=1)
    least = LEAST_SCALE * float(scales.max())
    return np.maximum(scales, least if least > 0 else 1.0)


def nearest_scaled(
    graph: NeighborGraph, scales: np.ndarray, k: int, threads: int, own: np.ndarray | None = None
) -> np.ndarray:
    """The k rows with the least d_ij^2 / (s_i s_j) of each list, (m, k); ties by distance.

    ``own`` holds the s_i. They do not change the order, but keep the quotients near 1.
    """
    distances = graph.distances.astype(np.float64)
    if own is not None:
        distances /= own[:, None]
    order = np.empty(distances.shape, np.int32)
    _native.sort_rows(distances / np.sqrt(scales[graph.indices]), False, order, threads)
    return np.ascontiguousarray(
        np.take_along_axis(graph.indices, order[:, :k].astype(np.int64), axis=1), np.int32
    )


def mid_near_pairs(
    X: Any,
    count: int,
    seed: int,
    *,
    metric: Any,
    metric_params: dict[str, Any] | None,
    run: FitContext,
) -> np.ndarray:
    """For each row ``count`` times the second nearest of six random rows, (n, count)."""
    n = X.shape[0]
    size = min(GROUP, n - 1)
    pairs = np.empty((n, count), np.int32)
    if count == 0:
        return pairs
    distances_of = _measure(X, canonical(metric), metric_params, run.threads)
    with run.monitor.phase("mid-near pairs", total=n) as phase:
        for rows in row_blocks(n, rows_within(24 * size * count + 8 * X.shape[1])):
            m = rows.stop - rows.start
            drawn = np.empty((m, count * size), np.int32)
            _native.draw_groups(rows.start, n, seed, count, drawn, run.threads)
            distances = distances_of(rows, drawn).reshape(m, count, size)
            if size > 1:
                nearest = distances.argmin(axis=2)[..., None]
                np.put_along_axis(distances, nearest, np.inf, axis=2)
            second = distances.argmin(axis=2)[..., None]
            groups = drawn.reshape(m, count, size)
            pairs[rows] = np.take_along_axis(groups, second, axis=2)[..., 0]
            phase.advance(m)
    return pairs


def _measure(X: Any, metric: Any, params: dict[str, Any] | None, threads: int) -> Any:
    """A function of rows and lists (m, c) of others: distances in their order, at least, (m, c)."""
    if metric == "precomputed":
        return lambda rows, ids: np.take_along_axis(X[rows], ids.astype(np.int64), axis=1).astype(
            np.float64
        )
    if is_sparse(X):
        return _sparse_measure(X, metric)
    if from_products(metric):
        points, _ = rows_of(X, metric, "X")

        def squares(rows: slice, ids: np.ndarray) -> np.ndarray:
            found = np.empty(ids.shape, points.dtype)
            _native.listed_squares(points, rows.start, ids, found, threads)
            return found

        return squares
    return lambda rows, ids: np.stack(
        [
            pair_distances(X[i : i + 1], X[partners], metric, params)[0]
            for i, partners in zip(range(rows.start, rows.stop), ids, strict=True)
        ]
    )


def _sparse_measure(X: Any, metric: Any) -> Any:
    """Squared distances of sparse rows from their products; of directions with cosine."""
    X = X.tocsr().astype(np.float64)
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    directions = has_directions(metric)

    def squares(rows: slice, ids: np.ndarray) -> np.ndarray:
        m, count = ids.shape
        here = np.repeat(np.arange(rows.start, rows.stop), count)
        products = np.asarray(X[here].multiply(X[ids.ravel()]).sum(axis=1)).ravel()
        if directions:
            lengths = np.sqrt(norms[here] * norms[ids.ravel()])
            cosines = np.divide(products, lengths, out=np.zeros(m * count), where=lengths > 0)
            return (1 - cosines).reshape(m, count)
        return (norms[here] + norms[ids.ravel()] - 2 * products).reshape(m, count)

    return squares


# Descent of maps by pairs: three phases of steps of Adam (Kingma & Ba 2015) on all pairs.
#
# With s = 1 + |y_i - y_j|^2 the loss is
#
#     sum over near pairs      w s / (10 + s)
#   + sum over mid-near pairs  w s / (10^4 + s)
#   + sum over far pairs       w / (1 + s)
#
# The weights w change from phase to phase: mid-near pairs lay out the map at first and are let go
# in the end. Each point sums the forces on it over lists of its partners in both directions, in
# one fixed order, so that the map is the same for any number of threads.


FIRST_MID = 1000.0  # weight of mid-near pairs at the start
BETAS = (0.9, 0.999)
LOOK = 50  # the loss is computed every so many steps
REDRAW = 10  # far pairs of LocalMAP are drawn again after so many steps


class Weights(NamedTuple):
    """Weights of near, mid-near and far pairs; c of LocalMAP, 0 for PaCMAP."""

    near: float
    mid: float
    far: float
    local: float = 0.0


class PairLists(NamedTuple):
    """Partners of each point in both directions: starts and columns of each kind of pairs."""

    near: tuple[np.ndarray, np.ndarray]
    mid: tuple[np.ndarray, np.ndarray]
    far: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, near: np.ndarray, mid: np.ndarray, far: np.ndarray, threads: int) -> PairLists:
        """The lists of pairs that are given as partners of each row, (n, k)."""
        return cls(*(both_directions(pairs, threads) for pairs in (near, mid, far)))

    def flat(self) -> tuple[np.ndarray, ...]:
        return (*self.near, *self.mid, *self.far)


class PairDescent(NamedTuple):
    """The final map, losses during the descent, the number of steps, and the last weights."""

    Y: np.ndarray
    losses: list[float]
    n_iter: int
    weights: Weights
    lists: PairLists


def both_directions(pairs: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and columns of the lists of partners and of those that have the point as partner."""
    starts = np.empty(len(pairs) + 1, np.int64)
    _native.pair_starts(pairs, starts, threads)
    columns = np.empty(starts[-1], np.int32)
    _native.pair_lists(pairs, starts, columns, threads)
    return starts, columns


def weights_at(step: int, num_iters: Sequence[int], local: float = 0.0) -> Weights:
    """The weights of a step, counted from 0; ``local`` is c of LocalMAP in the third phase."""
    first, second, _ = num_iters
    if step < first:
        t = step / first
        return Weights(2.0, (1 - t) * FIRST_MID + t * 3.0, 1.0)
    if step < first + second:
        return Weights(3.0, 3.0, 1.0)
    return Weights(1.0, 0.0, 1.0, local)


def pair_loss(lists: PairLists, weights: Weights, Y: np.ndarray, threads: int) -> float:
    """The loss at the map Y."""
    losses = np.empty(len(Y))
    _native.pair_forces(*lists.flat(), np.array(weights), Y, np.empty_like(Y), losses, threads)
    return float(losses.sum())


def descend_pairs(
    lists: PairLists,
    Y: np.ndarray,
    num_iters: Sequence[int],
    *,
    learning_rate: float,
    monitor: Monitor,
    threads: int,
    local: float = 0.0,
    redraw: Callable[[int, np.ndarray], np.ndarray] | None = None,
) -> PairDescent:
    """Descend from Y. Losses are those before every ``LOOK``-th step, with its weights.

    ``redraw(number, Y)`` gives other far pairs (n, k) after every ``REDRAW`` steps of the third
    phase.
    """
    total, third = sum(num_iters), num_iters[0] + num_iters[1]
    here, there = Y.copy(), np.empty_like(Y)
    means, squares = np.zeros_like(Y), np.zeros_like(Y)
    weights, losses, done = weights_at(0, num_iters, local), [], 0
    for step in range(total):
        if redraw is not None and step > third and (step - third) % REDRAW == 0:
            far = redraw((step - third) // REDRAW, here)
            lists = lists._replace(far=both_directions(far, threads))
        weights = weights_at(step, num_iters, local)
        if step % LOOK == 0:
            losses.append(pair_loss(lists, weights, here, threads))
        # both corrections of Adam for the zeros that the moments start with
        first, second = (1 - beta ** (step + 1) for beta in BETAS)
        rate = learning_rate * second**0.5 / first
        _native.pair_step(
            *lists.flat(), np.array(weights), rate, here, there, means, squares, threads
        )
        here, there = there, here
        done = step + 1
        if monitor.iteration(done, here, losses[-1], total=total):
            break
    return PairDescent(here, losses, done, weights, lists)
