"""A map of neighborhood ranks, after RankVisu (Lespinats, Fertil, Villemain & Herault 2009)."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.constraints import Integer, Null, OneOf
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.params import param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate
from lowland._base.validation import check_size, largest_value
from lowland._engines.neighbors.duplicates import (
    EqualRows,
    at_common_place,
    equal_in_distances,
    equal_in_graph,
)
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import given_neighbors, neighbor_graph_cost
from lowland._engines.stress import initial_map
from lowland.methods.curvilinear._base import CurvilinearReducer

# Lists of neighbors with their ranks, the stress of ranks in a map, a walk that lowers it.


MOMENTUM = 0.8
RATE = 1.0  # a pair alone would reach its target in half a step
WEAK = 0.05  # of the pushes at the start
EVEN = 0.3  # weight of what makes the map even, until steps become shorter
FILLED = 0.7  # spacing of the points, relative to that of a full ball: gaps remain
GROWING = 0.8  # share of the steps in which pushes grow to their full weight


class RankLists(NamedTuple):
    """The nearest points of each row, nearest first, and whether each ties with the next one."""

    points: np.ndarray  # (m, length) int32
    ties: np.ndarray  # (m, length) uint8


def rank_lists(graph: NeighborGraph, length: int) -> RankLists:
    """Lists of this length from a graph that has one more neighbor, unless there are no more."""
    distances = graph.distances
    ties = np.zeros((len(distances), length), np.uint8)
    known = min(length, distances.shape[1] - 1)
    ties[:, :known] = distances[:, :known] == distances[:, 1 : known + 1]
    return RankLists(np.ascontiguousarray(graph.indices[:, :length], np.int32), ties)


class RankStress:
    """S_i of each point of a map, and the step that its pairs pull each point to.

    Calls remember the radius around each point in which its neighbors are found; this changes the
    speed, not the result.
    """

    def __init__(self, lists: RankLists, k: int, threads: int) -> None:
        self.lists, self.k, self.threads = lists, k, threads
        self.reach = np.zeros(len(lists.points))

    def __call__(
        self, Y: np.ndarray, push: float = 1.0, even: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """The stress of each point (n,), and steps (n, q).

        Pushes have the weight ``push``, and what makes the map even has the weight ``even``.
        """
        n = len(Y)
        stress, forces, weights = np.empty(n), np.empty(Y.shape), np.empty(n)
        Y = np.ascontiguousarray(Y)
        out = self.reach, stress, forces, weights
        options = push, even, spacing(n, Y.shape[1], self.k)
        _native.rank_forces(Y, *self.lists, self.k, *options, *out, self.threads)
        return stress, forces / np.where(weights > 0, weights, 1.0)[:, None]


def normalized(Y: np.ndarray) -> tuple[np.ndarray, float]:
    """Y centered, with a mean squared distance of 1 between its points, and its factor."""
    Y = Y - Y.mean(axis=0)
    size = float(np.einsum("ij,ij->", Y, Y))
    factor = float(np.sqrt((len(Y) - 1) / (2 * size))) if size > 0 else 1.0
    return Y * factor, factor


def spacing(n: int, q: int, k: int) -> float:
    """The distance of the k-th neighbor in a ball of n even points, mean squared distance 1."""
    return float(FILLED * np.sqrt((q + 2) / (2 * q)) * (k / n) ** (1 / q))


def expected_stress(n: int, length: int, k: int) -> float:
    """The mean of S_i over all orders of the n - 1 other points in the map."""
    ranks = np.minimum(np.arange(1, n), length + 1)
    gaps = np.abs(ranks[:k, None] - ranks).sum(axis=1)  # of each of k ranks from all ranks
    both = np.abs(ranks[:k, None] - ranks[:k]).sum()
    return float(2 * gaps.sum() - both) / (n - 1)


RANKS_PER_NEIGHBOR = 10


class RankVisu(CurvilinearReducer):
    """min sum_ij |r_ij - r*_ij| where min(r, r*) <= K: ranks of neighbors, not distances.

    r_ij is the rank of j among the neighbors of i in the data (1 is the nearest), r*_ij its rank in
    the map. Only the K nearest count, in the data or in the map: neighbors that were torn apart,
    and rows that came between. Use it where distances cannot be kept, as among many columns, or
    where only their order has a meaning. Not for the sizes of groups or of the gaps between them,
    which ranks do not tell. Cost per step: O(n log n + n R), after a search for the nearest
    R = ``max_rank`` rows.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number K of neighbors whose ranks count.
    max_rank : int, "auto" or None, default="auto"
        Largest rank R that is distinguished. All ranks above it count as R + 1. "auto" is ten
        times ``n_neighbors``, None distinguishes all ranks.
    init : {"classical", "random"} or array of shape (n, n_components), default="classical"
        The start: classical scaling (PCA for Euclidean rows), random points, or given coordinates
        in any unit.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, centered, with a mean squared distance of 1.
    stress_ : float
        S = sum_ij |r_ij - r*_ij| over the pairs that count, at the map; a sum, not a mean.
    loss_history_ : ndarray of shape (n_steps,)
        Lowest S until each step, first that of the start.
    stress_per_point_ : ndarray of shape (n_samples,)
        S_i = sum_j |r_ij - r*_ij| of each row, divided by its mean over all orders of the other
        rows in the map: 0 if all ranks are right, about 1 for a random map.

    Notes
    -----
    The text of the paper was not at hand. The idea, to keep ranks that are small in either space,
    is the paper's; the weight 1 for min(r, r*) <= K and 0 otherwise is a choice, and so is all of
    the optimizer. The following was chosen by measurement on a sphere, irregular rows, a Swiss roll
    and MNIST digits. A pair pulls with the force of a stress whose target is Guttman's rank image:
    j should be as far from i as the point is now that has the rank which j should have. The weight
    of a pair falls with its distance in the map. The steps have momentum. At first, points that
    should be farther away push with a twentieth of their weight, so that groups pass through each
    other; this weight grows over four fifths of the steps, after which steps become shorter. The
    best map visited is kept. S does not tell how wide a group is. A weak force therefore makes the
    points evenly dense; without it, groups shrink to dots, and outliers fly away.

    Rows at equal distances share the interval of their ranks: no rank inside of it is wrong. Which
    of them are among the K nearest, or in the list of R, is decided by the row number. S does not
    change under a strictly increasing function of all distances, nor if the map is turned, moved or
    scaled.

    The stress of a new row is constant between jumps. Its place is the lowest found by a pattern
    search, with steps that are halved, from the places of its neighbors and from their means.

    References
    ----------
    Lespinats, Fertil, Villemain & Herault (2009), RankVisu: Mapping from the neighborhood network,
    Neurocomputing 72, 2964-2978.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> model = RankVisu().fit(iris().X)
    >>> bool(model.stress_ < 0.8 * model.loss_history_[0])
    True
    """

    n_neighbors: int = param(Integer(1), default=10)
    max_rank: Any = param(OneOf("auto") | Null() | Integer(1), default="auto")

    card = Card(
        keeps="the ranks of the nearest neighbors",
        use="where distances cannot be kept, or where only their order has a meaning",
        avoid="to compare the sizes of groups or the gaps between them",
        cost="O(n^2 p) time for the neighbors, O(n log n) per step, O(n R) memory",
    )
    reference = "Lespinats, Fertil, Villemain & Herault (2009)"
    reading = CurvilinearReducer.reading._replace(
        distances="Near and far can be compared around one point: its neighbors in the map are its "
        "neighbors in the data, in that order. Distances around different points cannot.",
        sizes="The size of a group shows how many rows it has, not how far they are apart.",
        scale="The scale of the axes has no meaning, because only ranks are used.",
    )
    uses_order_only = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: the search for 101 neighbors, and 200 steps."""
        search = neighbor_graph_cost(n, p, min(n - 1, 101) if n > 1 else 1)
        steps = 200 * (1e-4 + 1.5e-6 * n)
        return Estimate(0.02 + search.seconds + steps, search.n_bytes + n * (16 * p + 1200))

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n = X.shape[0]
        k, length = self._neighbors_and_ranks(n - 1)
        graph = self._nearest_others(X, min(length + 1, n - 1), run)
        equal = equal_in_distances(X) if self._has_distances else equal_in_graph(graph)
        stress = RankStress(rank_lists(graph, length), k, run.threads)
        start, first = self._starts(X, equal, run)
        del graph
        Y, self.loss_history_ = self._walk(stress, start, first, equal, X.dtype, run)
        self.embedding_ = Y.astype(X.dtype)
        each = stress(self.embedding_.astype(np.float64))[0]  # of the map as it is kept
        self.stress_, self.n_iter_ = float(each.sum()), len(self.loss_history_) - 1
        self.stress_per_point_ = each / (expected_stress(n, length, k) or 1.0)
        self.fitted_rows_ = None if self._has_distances else X.copy()
        return self.embedding_.copy()

    def _walk(
        self, stress: RankStress, start: Any, first: Any, equal: Any, dtype: Any, run: FitContext
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best map that is visited, and the lowest stress until each step.

        The walk follows the pulls of the pairs from ``first``; ``start`` is a visited map, too.
        Pushes are weak at first, so that points pass each other, and steps become shorter at last.
        """
        max_iter = int(self.max_iter)
        with limit_blas(1):
            best, least = start, float(stress(start)[0].sum())
            lowest, Y, velocity = [least], first, np.zeros(first.shape)
            pulls = stress(Y, WEAK, EVEN)[1] if least > 0 and max_iter > 0 else velocity
            for step in range(1, max_iter + 1):
                if least == 0:
                    break
                done = step / max_iter
                velocity = MOMENTUM * velocity + RATE * min(1.0, (1 - done) / (1 - GROWING)) * pulls
                Y, factor = normalized(at_common_place(Y + velocity, equal))
                velocity *= factor
                stress.reach *= factor**2
                even = EVEN * min(1.0, (1 - done) / (1 - GROWING))
                each, pulls = stress(Y, WEAK ** max(0.0, 1 - done / GROWING), even)
                if each.sum() < least:
                    best, least = Y, float(each.sum())
                lowest.append(least)
                shown = partial(best.astype, dtype)
                if run.monitor.iteration(step, shown, least, total=max_iter):
                    break
            return best, np.array(lowest)

    def _neighbors_and_ranks(self, others: int) -> tuple[int, int]:
        """K and R for lists out of so many rows."""
        k, length = int(self.n_neighbors), self.max_rank
        if length is None:
            length = others
        elif isinstance(length, str):
            length = RANKS_PER_NEIGHBOR * k
        elif length < k:
            raise ParameterError(
                f"RankVisu: max_rank={length} is below n_neighbors={k}; set it to {k} at least."
            )
        length = min(int(length), others)
        require_memory(
            40 * (others + 1) * length,
            task=f"RankVisu with {length} ranks of {others + 1} rows",
            alternative="a smaller max_rank",
        )
        return min(k, length), length

    def _starts(
        self, X: Any, equal: EqualRows | None, run: FitContext
    ) -> tuple[np.ndarray, np.ndarray]:
        """The start, and the same with points that coincide moved apart, unless rows are equal."""
        n, q = X.shape[0], int(self.n_components)
        if isinstance(self.init, str):
            Y = self._start(X, run, X if self._has_distances else None)
        else:
            Y = initial_map.given_numbers(self.init, (n, q), f"the map is {n} rows x {q} columns")
            Y = Y / (np.abs(Y).max() or 1.0)
        Y = normalized(at_common_place(Y, equal))[0]
        return Y, normalized(self._separated(Y, equal, run))[0]

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        m, n = D.shape
        k, length = self._neighbors_and_ranks(n)
        graph = given_neighbors(D, min(length + 1, n))
        lists = rank_lists(graph, length)
        equal = (graph.distances[:, :length] == 0).sum(axis=1).astype(np.int32)
        Y = np.ascontiguousarray(self.embedding_, np.float64)
        check_size(largest_value(Y), "embedding_", part=True)  # of a model file, perhaps
        Z = np.empty((m, Y.shape[1]))
        _native.rank_places(Y, *lists, k, equal, Z, run.threads)
        return Z
