"""Metric multidimensional scaling by majorization (de Leeuw 1977)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Array, Null, OneOf
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.params import fitted, param
from lowland._engines.distances.dissimilarities import known_pairs
from lowland._engines.stress.disparities import Disparities
from lowland._engines.stress.majorization import Majorized
from lowland._engines.stress.monotone_regression import IntervalCone
from lowland._engines.stress.objective import ListedPairs
from lowland.mds._pair_weights import checked_weights
from lowland.mds._stress import Problem, StressReducer

__all__ = ["MDS"]


class MDS(StressReducer):
    """min sum w_ij (delta_ij - |y_i - y_j|)^2: the map whose distances are those of the data.

    The map in which distances can be read, large ones best; with weights, with unknown distances,
    with distances up to an unknown constant. Not for clusters of many rows in many columns, whose
    distances are all alike: there a neighbor method shows more. Cost per step: O(n^2 q) with all
    pairs; about 30 to 100 steps.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map.
    transformation : {"ratio", "interval"}, default="ratio"
        "ratio": the map's distances aim at delta. "interval": at a + b delta, with the best a and
        b >= 0, for dissimilarities whose zero means nothing.
    weights : array or sparse matrix of shape (n, n) or None, default=None
        w_ij >= 0, symmetric; 0, or nothing stored, leaves a pair out. None: all 1.
    metric : str or callable, default="euclidean"
        Distance between rows, as in ``lowland.neighbors.knn_graph``. "precomputed": X holds
        distances, n x n or condensed; unknown ones are NaN, or not stored in a sparse matrix.
    metric_params : dict or None, default=None
        Parameters of the metric, ``{"p": 3}`` for "minkowski".
    init : {"classical", "random"} or array of shape (n, n_components), default="classical"
        Where the map starts.
    n_init : int, default=1
        Number of starts, all but the first at random; the map with the least stress counts.
    max_iter : int, default=300
        Steps at most. 0 gives the start; the first step is the Guttman transform.
    tol : float, default=1e-6
        Stop when the stress falls by less than this share of itself per step.
    pairs : {"auto", "all", "sparse"}, default="auto"
        "sparse": ten neighbors of each row and 252 partners at random stand for all pairs.
        "auto" does so when the distances do not fit in half of the memory.
    callback : callable or None, default=None
        ``callback(step, map, stress)`` after each step; returning True stops and keeps the map.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The map, centered, in the units of the distances.
    stress_ : float
        Raw stress, the sum over i < j of w (delta - d)^2; for "sparse" pairs an estimate.
    normalized_stress_ : float
        sqrt(stress_ / sum w delta^2), from 0 to 1.
    coefficients_ : ndarray of shape (2,)
        a and b of the distances that the map aims at; 0 and 1 for "ratio".
    loss_history_ : ndarray
        Raw stress at the start and after each step; it never rises. For "interval" it is Kruskal's
        stress-1, which does not depend on the size of the map.
    stress_per_point_ : ndarray of shape (n,)
        sqrt(sum_j w (delta - d)^2 / sum_j w delta^2) of each row.
    n_iter_, rows_
        Steps done; what new rows are compared with.

    Notes
    -----
    Each step tries a quasi-Newton step and takes the Guttman transform where that fails, so that
    stress never rises. Rows that are equal share one place (with sparse pairs, nearly). A new row,
    with weights of 1, lands where its own stress is least.

    References
    ----------
    de Leeuw (1977), Applications of convex analysis to multidimensional scaling; Borg & Groenen
    (2005), Modern Multidimensional Scaling, chapters 8 and 9; Ortmann, Klimenta & Brandes (2016) on
    sparse pairs.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> model = MDS().fit(iris().X)
    >>> round(model.normalized_stress_, 3)
    0.033
    """

    transformation: str = param(
        OneOf("ratio", "interval"), default="ratio", doc="what of the distances is meant"
    )
    weights: Any = param(Null() | Array(), default=None, doc="weights of the pairs")

    normalized_stress_: float = fitted(doc="sqrt(stress / sum w delta^2)")
    coefficients_: np.ndarray = fitted("two", doc="a and b of the targets a + b delta")

    card = Card(
        keeps="distances, the large ones best",
        use="for a map of up to some ten thousand rows in which distances can be read",
        avoid="when rows have many columns of noise: their distances are all alike",
        cost="O(n^2) per step and memory, O(n) with sparse pairs",
    )
    reference = "de Leeuw (1977)"
    aliases = ("metric_mds", "smacof")
    accepts_missing = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 60 steps over all pairs."""
        return Estimate(0.05 + n * n * (1e-10 * p + 6e-8), 8 * n * p + 9 * n * n)

    def _weights(self, n: int) -> Any:
        return None if self.weights is None else checked_weights(self.weights, n)

    def _dense(self, D: np.ndarray, run: FitContext) -> Problem:
        problem = super()._dense(D, run)
        if self.transformation == "ratio":
            return problem
        i, j, delta = known_pairs(problem.objective.delta.astype(np.float64))
        W = problem.objective.weights
        w = W[i, j].astype(np.float64) if W.size else None
        pairs = ListedPairs(len(D), i, j, delta, w, run.threads)
        return problem._replace(objective=Disparities(pairs, IntervalCone(delta, w)))

    def _listed(self, D: Any, run: FitContext) -> Problem:
        problem = super()._listed(D, run)
        if self.transformation == "ratio":
            return problem
        pairs = problem.objective
        w = pairs.weights if pairs.weights.size else None
        return problem._replace(objective=Disparities(pairs, IntervalCone(pairs.delta, w)))

    def _sparse(self, X: Any, run: FitContext) -> Problem:
        if self.transformation == "interval":
            raise ParameterError(
                "MDS: transformation='interval' needs all pairs; set pairs='all', or give a sparse "
                "matrix of distances with metric='precomputed'."
            )
        return super()._sparse(X, run)

    def _loss(self, loss: np.ndarray, problem: Problem) -> np.ndarray:
        return np.sqrt(loss) if self.transformation == "interval" else loss * problem.unit**2

    def _length(self, Y: np.ndarray, problem: Problem) -> float:
        if self.transformation == "ratio":
            return problem.unit
        # in the units of the data: the targets are as large as the distances
        objective: Disparities = problem.objective
        known, size = objective.size(objective.pairs.delta), objective.size(objective.fit(Y)[1])
        return float(np.sqrt(known / size)) * problem.unit if size > 0 else problem.unit

    def _keep(self, found: Majorized, problem: Problem, X: Any) -> None:
        super()._keep(found, problem, X)
        objective, length = problem.objective, self._length(found.Y, problem)
        if self.transformation == "ratio":
            self.coefficients_, size = np.array([0.0, 1.0]), objective.scale * length**2
        else:
            d, fit = objective.fit(found.Y)
            a, b = objective.cone.coefficients(d)
            self.coefficients_ = np.array([a * length, b * length / problem.unit])
            self.stress_ = objective.size(d - fit) * length**2
            size = objective.size(objective.pairs.delta) * problem.unit**2
        self.normalized_stress_ = float(np.sqrt(self.stress_ / size)) if size > 0 else 0.0

    def _targets(self, D: np.ndarray) -> np.ndarray:
        a, b = self.coefficients_
        return D if self.transformation == "ratio" else np.maximum(a + b * D, 0.0)
