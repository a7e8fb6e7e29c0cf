"""Non-metric multidimensional scaling (Kruskal 1964)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.constraints import OneOf
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._engines.distances.dissimilarities import check_connected, known_pairs
from lowland._engines.neighbors.duplicates import equal_in_distances
from lowland._engines.stress import initial_map, objective
from lowland._engines.stress.majorization import Majorized
from lowland._engines.stress.objective import ListedPairs
from lowland.methods.mds._stress import Problem, StressReducer

BYTES_PER_PAIR = 120


class NonmetricMDS(StressReducer):
    """min sqrt( sum (d - f(delta))^2 / sum d^2 ) over increasing f: only the order counts.

    For dissimilarities that are judgments, ranks or correlations, of which only the order has a
    meaning. If groups are far apart, the map may collapse to a few points, although its stress is
    low. Cost per step: O(n^2 q), after one sort of all pairs.

    Parameters
    ----------
    ties : {"primary", "secondary", "index"}, default="primary"
        How pairs with equal dissimilarities are treated. "primary" lets their disparities differ,
        "secondary" keeps them equal, and "index" lets them increase in the order of the rows (as
        MASS::isoMDS does).
    metric : str or function, default="euclidean"
        Distance between rows: a name, a function of two rows, or "precomputed". With
        "precomputed", X holds the dissimilarities of the fitted rows, n x n or condensed, and new
        rows are given by their dissimilarities to the fitted rows. Unknown dissimilarities are
        NaN, or are not stored in a sparse matrix. A dissimilarity of 0 is the smallest one.
    init : {"classical", "random"} or array of shape (n, n_components), default="classical"
        The start: classical scaling of the ranks, random points, or given coordinates. The ranks
        are those of the dissimilarities.
    pairs : {"auto", "all"}, default="auto"
        All pairs are used in either case. The method is for up to a few thousand rows.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, centered, with a mean squared distance of 1.
    stress_ : float
        Kruskal's stress-1.
    dissimilarities_ : ndarray of shape (n_pairs,)
        Dissimilarities of all pairs, sorted: the horizontal axis of the Shepard diagram.
    disparities_ : ndarray of shape (n_pairs,)
        Increasing function f of the dissimilarities that fits the distances best, pair by pair.
    distances_ : ndarray of shape (n_pairs,)
        Distances in the map, pair by pair.
    stress_per_point_ : ndarray of shape (n_samples,)
        Relative stress of each row, sqrt(sum_j (d - f)^2 / sum_j f^2).

    Notes
    -----
    The three arrays of the Shepard diagram take 12 n^2 bytes, which is most of a model file. A
    strictly increasing function of all dissimilarities does not change the map. Quasi-Newton steps
    follow the gradient of stress-1 with the best f; if a step fails, the Guttman transform is
    taken. The disparities of a new row are interpolated between those of the fitted pairs.

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

    ties: str = param(OneOf(*objective.TIES), default="primary")
    pairs: str = param(OneOf("auto", "all"), default="auto")

    dissimilarities_: np.ndarray = fitted("n_pairs")
    disparities_: np.ndarray = fitted("n_pairs")
    distances_: np.ndarray = fitted("n_pairs")

    card = Card(
        keeps="the order of the distances",
        use="for judgments, ranks and other dissimilarities of which only the order has a meaning",
        avoid="for more than a few thousand rows, or if groups are far apart: they may collapse",
        cost="O(n^2 log n) time, O(n^2) memory",
    )
    reference = "Kruskal (1964)"
    aliases = ("nmds", "kruskal")
    reading = StressReducer.reading._replace(
        distances="The map keeps the order of the distances, not their size: what is farther in "
        "the map is farther in the data, within the stress reported.",
        gaps="A gap shows that rows of different groups are farther apart than rows of one group. "
        "How wide the gap is has no meaning.",
        sizes="The sizes of groups can be ordered, but not measured.",
        scale="The scale of the axes has no meaning, because only the order of distances is used.",
    )
    accepts_missing = True
    uses_order_only = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 100 steps over all pairs."""
        return Estimate(0.05 + n * n * (1e-10 * p + 1.2e-6), 8 * n * p + BYTES_PER_PAIR * n * n / 2)

    def _takes_sample(self, n: int) -> bool:
        require_memory(
            BYTES_PER_PAIR * n * n // 2,
            task=f"NonmetricMDS with all pairs of {n} rows",
            alternative="use MDS, or fit fewer rows",
        )
        return False

    def _all_pairs(self, D: np.ndarray, run: FitContext) -> Problem:
        n, q = len(D), int(self.n_components)
        i, j, delta = known_pairs(D)
        check_connected(n, i, j, "NonmetricMDS")
        order = objective.stable_order(delta, run.threads)
        i, j, delta = i[order], j[order], delta[order].astype(np.float64)
        pairs = ListedPairs(n, i, j, delta / (delta[-1] or 1.0), None, run.threads)
        self.dissimilarities_ = delta

        def start() -> np.ndarray:
            ranks = np.full((n, n), np.nan)
            ranks[i, j] = ranks[j, i] = objective.mid_ranks(delta) / len(delta)
            np.fill_diagonal(ranks, 0.0)
            return initial_map.classical_start(ranks, q, run)

        # rows at distance 0 are equal; a given dissimilarity of 0 is only the smallest value
        equal = None if self._has_distances else equal_in_distances(D)
        cone = objective.MonotoneCone(delta, self.ties, threads=run.threads)
        return Problem(objective.Disparities(pairs, cone), 1.0, start, equal)

    def _listed_pairs(self, D: Any, run: FitContext) -> Problem:
        raise ParameterError(
            f"NonmetricMDS: X is a sparse matrix of {D.shape[0]} rows, but at most 2000 are "
            "possible; use MDS, which takes more."
        )

    def _stated_loss(self, loss: np.ndarray, problem: Problem) -> np.ndarray:
        return np.sqrt(loss)

    def _map_unit(self, Y: np.ndarray, problem: Problem) -> float:
        objective: objective.Disparities = problem.objective
        d = objective.pairs.distances(Y)
        size = objective.size(d)
        return float(np.sqrt(len(d) / size)) if size > 0 else 1.0

    def _keep(self, found: Majorized, problem: Problem, X: Any) -> None:
        super()._keep(found, problem, X)
        length = self._map_unit(found.Y, problem)
        d, fit = problem.objective.fit(found.Y)
        self.distances_, self.disparities_ = d * length, fit * length

    def _targets(self, D: np.ndarray) -> np.ndarray:
        """Disparities interpolated between those of the fitted pairs, and constant beyond them."""
        given = self.dissimilarities_
        starts = np.concatenate([[0], np.flatnonzero(given[1:] != given[:-1]) + 1])
        members = np.diff(np.append(starts, len(given)))
        means = np.add.reduceat(self.disparities_, starts) / members
        return np.where(np.isnan(D), np.nan, np.interp(D, given[starts], means))
