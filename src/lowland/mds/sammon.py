"""Sammon's mapping (Sammon 1969)."""

from __future__ import annotations

import numpy as np

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Integer
from lowland._core.params import param
from lowland.mds._stress import Problem, StressReducer

__all__ = ["Sammon"]


class Sammon(StressReducer):
    """min (1 / sum delta) sum (delta - d)^2 / delta: relative errors count, so that all scales do.

    Metric scaling in which small distances are told as well as large ones. More faithful to
    neighborhoods than MDS, more to the overall picture than t-SNE. Cost per step: O(n^2 q) with all
    pairs.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map.
    power : {1, 2}, default=1
        1: Sammon's stress. 2: sum (delta - d)^2 / delta^2, in which small distances count still
        more.
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
        Steps at most. 0 gives the start.
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
        The map, in the units of the distances.
    stress_ : float
        The stress of the map; for "sparse" pairs an estimate.
    loss_history_ : ndarray
        The same at the start and after each step; it never rises.
    stress_per_point_ : ndarray of shape (n,)
        sqrt(sum_j (delta - d)^2 / delta^power) of each row, relative to a map of one point.
    n_iter_, rows_
        Steps done; what new rows are compared with.

    Notes
    -----
    Pairs at distance 0 are left out; rows that are equal share one place. Sammon's own diagonal
    Newton steps with a "magic factor" are replaced by majorization with quasi-Newton steps, which
    never raise the stress and need fewer steps. A new row lands where its own stress is least.

    References
    ----------
    Sammon (1969), A nonlinear mapping for data structure analysis, IEEE Trans. Computers 18.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> model = Sammon().fit(iris().X)
    >>> round(model.stress_, 4)
    0.004
    """

    power: int = param(Integer(1, 2), default=1, doc="exponent of the distance that divides")

    card = Card(
        keeps="distances, the small ones as well as the large",
        use="for a map of up to some ten thousand rows in which distances can be read",
        avoid="when there are many near duplicates, whose tiny distances dominate",
        cost="O(n^2) per step and memory, O(n) with sparse pairs",
    )
    reference = "Sammon (1969)"
    aliases = ("sammon_mapping",)
    reading = StressReducer.reading._replace(
        distances="The map keeps relative errors of distances small, so that short distances count "
        "as much as long ones: near and far can be read, within the stress reported."
    )
    accepts_missing = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 100 steps over all pairs."""
        return Estimate(0.05 + n * n * (1e-10 * p + 1e-7), 8 * n * p + 9 * n * n)

    def _power(self) -> int:
        return int(self.power)

    def _loss(self, loss: np.ndarray, problem: Problem) -> np.ndarray:
        if self.power == 2:
            return loss
        scale = float(problem.objective.scale)  # with w = 1/delta it is the sum of the distances
        return loss / (scale if scale > 0 else 1.0)
