"""Non-metric multidimensional scaling (Kruskal 1964)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.card import Card, Estimate
from lowland._core.constraints import OneOf
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._engines.distances.dissimilarities import check_connected, known_pairs
from lowland._engines.neighbors.duplicates import equal_in_distances
from lowland._engines.stress import initial_map
from lowland._engines.stress.disparities import Disparities
from lowland._engines.stress.majorization import Majorized
from lowland._engines.stress.monotone_regression import TIES, MonotoneCone, mid_ranks, stable_order
from lowland._engines.stress.objective import ListedPairs
from lowland.mds._stress import Problem, StressReducer

__all__ = ["NonmetricMDS"]

BYTES_PER_PAIR = 120


class NonmetricMDS(StressReducer):
    """min sqrt( sum (d - f(delta))^2 / sum d^2 ), f any rising function: only the order counts.

    For dissimilarities that are judgments, ranks or correlations, of which only the order means
    something. Beware of maps that collapse into a few places where groups are far apart: their
    stress is low too. Cost per step: O(n^2 q), after sorting all pairs once.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map.
    ties : {"primary", "secondary", "index"}, default="primary"
        Pairs with equal dissimilarities: "primary" lets their disparities differ, "secondary" keeps
        them equal, "index" lets them rise in the order of the rows (as MASS::isoMDS does).
    metric : str or callable, default="euclidean"
        Distance between rows, as in ``lowland.neighbors.knn_graph``. "precomputed": X holds
        dissimilarities, n x n or condensed; unknown ones are NaN, or not stored in a sparse matrix.
        A dissimilarity of 0 is the smallest, not an unknown one.
    metric_params : dict or None, default=None
        Parameters of the metric, ``{"p": 3}`` for "minkowski".
    init : {"classical", "random"} or array of shape (n, n_components), default="classical"
        Where the map starts; "classical" is classical scaling of the ranks of the dissimilarities.
    n_init : int, default=1
        Number of starts, all but the first at random; the map with the least stress counts.
    max_iter : int, default=300
        Steps at most. 0 gives the start.
    tol : float, default=1e-6
        Stop when the squared stress falls by less than this share of itself per step.
    pairs : {"auto", "all"}, default="auto"
        All pairs are needed; the method is for up to some thousand rows.
    callback : callable or None, default=None
        ``callback(step, map, stress)`` after each step; returning True stops and keeps the map.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The map, centered, with a mean squared distance of 1.
    stress_ : float
        Kruskal's stress-1.
    loss_history_ : ndarray
        The same at the start and after each step; it never rises.
    dissimilarities_, disparities_, distances_ : ndarray of shape (n_pairs,)
        The Shepard diagram, in the order of the dissimilarities: what was given, what the map's
        distances aim at, and what they are.
    stress_per_point_ : ndarray of shape (n,)
        sqrt(sum_j (d - f)^2 / sum_j f^2) of each row.
    n_iter_, rows_
        Steps done; what new rows are compared with.

    Notes
    -----
    The three arrays of the Shepard diagram take 12 n^2 bytes, and so does most of a model file.
    A strictly rising function of all dissimilarities changes nothing. The gradient of stress-1 with
    f at its best is followed by quasi-Newton steps, and by the Guttman transform where they fail.
    A new row aims at the disparities that its dissimilarities have between those of the fitted
    pairs.

    References
    ----------
    Kruskal (1964), Multidimensional scaling by optimizing goodness of fit to a nonmetric
    hypothesis, Psychometrika 29, 1-27, and Nonmetric multidimensional scaling: a numerical method,
    115-129.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> model = NonmetricMDS().fit(iris().X)
    >>> round(model.stress_, 3)
    0.026
    """

    ties: str = param(OneOf(*TIES), default="primary", doc="what equal dissimilarities may become")
    pairs: str = param(OneOf("auto", "all"), default="auto", doc="all pairs are needed")

    dissimilarities_: np.ndarray = fitted("n_pairs", doc="dissimilarities of all pairs, sorted")
    disparities_: np.ndarray = fitted("n_pairs", doc="the rising function of them, pair by pair")
    distances_: np.ndarray = fitted("n_pairs", doc="distances in the map, pair by pair")

    card = Card(
        keeps="the order of the distances",
        use="for judgments, ranks and other dissimilarities whose values mean little",
        avoid="for more than some thousand rows, or groups far apart, which collapse",
        cost="O(n^2 log n) time, O(n^2) memory",
    )
    reference = "Kruskal (1964)"
    aliases = ("nmds", "kruskal")
    reading = StressReducer.reading._replace(
        distances="The map keeps the order of the distances, not their size: what is farther in "
        "the "
        "map is farther in the data, within the stress reported.",
        gaps="A gap shows that rows of different groups are farther apart than rows of one group. "
        "How wide the gap is has no meaning.",
        sizes="The sizes of groups can be ordered, but not measured.",
        scale="The scale of the axes has no meaning, because only the order of distances is used.",
    )
    accepts_missing = True
    only_order = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 100 steps over all pairs."""
        return Estimate(0.05 + n * n * (1e-10 * p + 1.2e-6), 8 * n * p + BYTES_PER_PAIR * n * n / 2)

    def _wants_sparse(self, n: int) -> bool:
        require_memory(
            BYTES_PER_PAIR * n * n // 2,
            task=f"NonmetricMDS with all pairs of {n} rows",
            alternative="use MDS, or fit fewer rows",
        )
        return False

    def _dense(self, D: np.ndarray, run: FitContext) -> Problem:
        n, q = len(D), int(self.n_components)
        i, j, delta = known_pairs(D)
        check_connected(n, i, j, "NonmetricMDS")
        order = stable_order(delta, run.threads)
        i, j, delta = i[order], j[order], delta[order].astype(np.float64)
        pairs = ListedPairs(n, i, j, delta / (delta[-1] or 1.0), None, run.threads)
        self.dissimilarities_ = delta

        def start() -> np.ndarray:
            ranks = np.full((n, n), np.nan)
            ranks[i, j] = ranks[j, i] = mid_ranks(delta) / len(delta)
            np.fill_diagonal(ranks, 0.0)
            return initial_map.classical_start(ranks, q, run)

        # a dissimilarity of 0 between given objects is a value; between rows it says they are equal
        equal = None if self._given else equal_in_distances(D)
        cone = MonotoneCone(delta, self.ties, threads=run.threads)
        return Problem(Disparities(pairs, cone), 1.0, start, equal)

    def _listed(self, D: Any, run: FitContext) -> Problem:
        raise ParameterError(
            f"NonmetricMDS: a sparse matrix of {D.shape[0]} rows is too large; it works for up to "
            "2000, and MDS for more."
        )

    def _loss(self, loss: np.ndarray, problem: Problem) -> np.ndarray:
        return np.sqrt(loss)

    def _length(self, Y: np.ndarray, problem: Problem) -> float:
        objective: Disparities = problem.objective
        d = objective.pairs.distances(Y)
        size = objective.size(d)
        return float(np.sqrt(len(d) / size)) if size > 0 else 1.0

    def _keep(self, found: Majorized, problem: Problem, X: Any) -> None:
        super()._keep(found, problem, X)
        length = self._length(found.Y, problem)
        d, fit = problem.objective.fit(found.Y)
        self.distances_, self.disparities_ = d * length, fit * length

    def _targets(self, D: np.ndarray) -> np.ndarray:
        """Disparities between those of the fitted pairs; beyond them, that of the last."""
        given = self.dissimilarities_
        starts = np.concatenate([[0], np.flatnonzero(given[1:] != given[:-1]) + 1])
        members = np.diff(np.append(starts, len(given)))
        means = np.add.reduceat(self.disparities_, starts) / members
        return np.where(np.isnan(D), np.nan, np.interp(D, given[starts], means))
