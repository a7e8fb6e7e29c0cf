"""Metric multidimensional scaling by majorization (de Leeuw 1977)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.constraints import Array, Null, OneOf
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.params import fitted, param
from lowland._base.sparse_input import compressed_rows
from lowland._base.traits import Card, Estimate
from lowland._base.validation import is_sparse
from lowland._engines.distances.dissimilarities import known_pairs
from lowland._engines.stress.majorization import Majorized
from lowland._engines.stress.objective import Disparities, IntervalCone, ListedPairs
from lowland.methods.mds._stress import Problem, StressReducer

# Checks of given weights of pairs: an n x n array or a sparse matrix.


SAME = 1e-6  # w_ij and w_ji may differ by this share of the weight, because of rounding
SMALLEST, LARGEST = 1e-30, 1e30  # within the range of float32, with some margin


def checked_weights(weights: Any, n: int) -> Any:
    """A symmetric (n, n) array of float64, or CSR, of finite numbers >= 0; the diagonal is 0."""
    shape = tuple(np.shape(weights))
    if shape != (n, n):
        raise DataError(f"weights have shape {shape}; {n} rows need {n} x {n}.")
    if is_sparse(weights):
        W = compressed_rows(weights, "weights").astype(np.float64)
        W.data[np.repeat(np.arange(n), np.diff(W.indptr)) == W.indices] = 0.0
    else:
        W = np.array(weights, np.float64)
        np.fill_diagonal(W, 0.0)
    values = W.data if is_sparse(W) else W
    _refuse(W, ~(values >= 0) | ~np.isfinite(values), "weights are finite and >= 0")
    moderate = (values == 0) | ((values >= SMALLEST) & (values <= LARGEST))
    reach = f"multiply all weights by one number, so that they lie in {SMALLEST:g} ... {LARGEST:g}"
    _refuse(W, ~moderate, reach)
    _check_symmetric(W)
    return W


def _refuse(W: Any, bad: np.ndarray, what: str) -> None:
    if bad.any():
        i, j = _first(W, bad)
        raise DataError(f"weights[{i}, {j}] = {W[i, j]:g}; {what}.")


def _first(W: Any, bad: np.ndarray) -> tuple[int, int]:
    """Row and column of the first marked entry of W, or of its stored entries."""
    if not is_sparse(W):
        return tuple(np.argwhere(bad)[0])
    stored = int(np.argmax(bad))
    return int(np.searchsorted(W.indptr, stored, side="right")) - 1, int(W.indices[stored])


def _check_symmetric(W: Any) -> None:
    if is_sparse(W):
        excess = (abs(W - W.T) - SAME * W.maximum(W.T)).tocsr()
        bad = excess.data > 0
    else:
        excess = abs(W - W.T) - SAME * np.maximum(W, W.T)
        bad = excess > 0
    if bad.any():
        i, j = _first(excess, bad)
        raise DataError(
            f"weights[{i}, {j}] = {W[i, j]:g}, but weights[{j}, {i}] = {W[j, i]:g}; a pair has one "
            "weight: use W + W.T if one triangle is empty, else (W + W.T) / 2."
        )


class MDS(StressReducer):
    """min sum w_ij (delta_ij - |y_i - y_j|)^2: the map whose distances are those of the data.

    The map in which distances can be read, large ones best. It takes weights, unknown distances,
    and distances that are known up to a constant. Do not use it for clusters of many rows in many
    columns, where all distances are similar: a neighbor method shows more there. Cost per step:
    O(n^2 q) with all pairs; about 30 to 100 steps.

    Parameters
    ----------
    transformation : {"ratio", "interval"}, default="ratio"
        Fit the distances delta ("ratio"), or a + b delta with the best a and b >= 0 ("interval").
        "interval" is for dissimilarities whose zero has no meaning.
    weights : array or sparse matrix of shape (n, n) or None, default=None
        Weights w_ij >= 0 of the pairs, symmetric. A pair with weight 0, or without a stored weight,
        is left out. None gives all pairs the weight 1.
    max_iter : int, default=300
        Maximum number of steps. 0 keeps the start; the first step is the Guttman transform.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, centered, in the unit of the distances.
    stress_ : float
        Raw stress, the sum over i < j of w (delta - d)^2; with "sparse" pairs an estimate.
    normalized_stress_ : float
        sqrt(stress_ / sum w delta^2), from 0 to 1.
    coefficients_ : ndarray of shape (2,)
        a and b of the distances a + b delta that the map is fitted to; 0 and 1 for "ratio".
    loss_history_ : ndarray of shape (n_steps,)
        Raw stress at the start and after each step; it never increases. For "interval" it is
        Kruskal's stress-1, which does not depend on the size of the map.

    Notes
    -----
    Each step tries a quasi-Newton step and takes the Guttman transform if that fails, so the stress
    never increases. Where all pairs are known and weigh 1, points that have a lower stress at
    another place of the map are put there, up to three times; this counts as a step. A map given
    as ``init`` is followed to its own minimum. Equal rows share one place (approximately with
    sparse pairs). A new row gets weights of 1 and is placed where its own stress is lowest.

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

    transformation: str = param(OneOf("ratio", "interval"), default="ratio")
    weights: Any = param(Null() | Array(), default=None)

    normalized_stress_: float = fitted()
    coefficients_: np.ndarray = fitted("2")

    card = Card(
        keeps="distances, large ones best",
        use="for a map of up to some ten thousand rows in which distances can be read",
        avoid="when rows have many columns of noise, because all distances are similar then",
        cost="O(n^2) per step and memory, O(n) with sparse pairs",
    )
    reference = "de Leeuw (1977)"
    aliases = ("metric_mds", "smacof")
    accepts_missing = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 60 steps over all pairs."""
        return cls._stress_cost(n, p, 60)

    def _weights(self, n: int) -> Any:
        return None if self.weights is None else checked_weights(self.weights, n)

    def _all_pairs(self, D: np.ndarray, run: FitContext) -> Problem:
        problem = super()._all_pairs(D, run)
        if self.transformation == "ratio":
            return problem
        i, j, delta = known_pairs(problem.objective.delta.astype(np.float64))
        W = problem.objective.weights
        w = W[i, j].astype(np.float64) if W.size else None
        pairs = ListedPairs(len(D), i, j, delta, w, run.threads)
        return problem._replace(objective=Disparities(pairs, IntervalCone(delta, w)))

    def _listed_pairs(self, D: Any, run: FitContext) -> Problem:
        problem = super()._listed_pairs(D, run)
        if self.transformation == "ratio":
            return problem
        pairs = problem.objective
        w = pairs.weights if pairs.weights.size else None
        return problem._replace(objective=Disparities(pairs, IntervalCone(pairs.delta, w)))

    def _sampled_pairs(self, X: Any, run: FitContext) -> Problem:
        if self.transformation == "interval":
            raise ParameterError(
                "MDS: transformation='interval' needs all pairs; set pairs='all', or give a sparse "
                "matrix of distances with metric='precomputed'."
            )
        return super()._sampled_pairs(X, run)

    def _stated_loss(self, loss: np.ndarray, problem: Problem) -> np.ndarray:
        interval = self.transformation == "interval"
        return np.sqrt(loss) if interval else super()._stated_loss(loss, problem)

    def _map_unit(self, Y: np.ndarray, problem: Problem) -> float:
        if self.transformation == "ratio":
            return problem.unit
        # the unit of the data: the fitted distances are as large as the given ones
        objective: Disparities = problem.objective
        known, size = objective.size(objective.pairs.delta), objective.size(objective.fit(Y)[1])
        return float(np.sqrt(known / size)) * problem.unit if size > 0 else problem.unit

    def _keep(self, found: Majorized, problem: Problem, X: Any) -> None:
        super()._keep(found, problem, X)
        objective, length = problem.objective, self._map_unit(found.Y, problem)
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
