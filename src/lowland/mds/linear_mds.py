"""Linear multidimensional scaling: the best projection matrix for a stress (Webb 1995)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.base import Invertible
from lowland._core.card import Card, Estimate
from lowland._core.constraints import Array, Function, Integer, OneOf
from lowland._core.context import FitContext
from lowland._core.errors import DataError
from lowland._core.params import fitted, param
from lowland._engines.distances.metrics import METRICS
from lowland._engines.linalg import products
from lowland._engines.linalg.column_basis import ColumnBasis, orthonormal_basis
from lowland._engines.linalg.eigen import all_eigenpairs, fix_signs
from lowland._engines.stress.initial_map import given_numbers
from lowland._engines.stress.majorization import Majorized
from lowland.mds._linear_stress import LinearStress
from lowland.mds._stress import Problem, StressReducer

__all__ = ["LinearMDS"]


class LinearMDS(StressReducer, Invertible):
    """z = W^T (x - m) with W minimizing sum (|z_i - z_j| - delta_ij)^2 / delta_ij^power.

    Sammon's mapping or metric scaling by one matrix: new rows are placed by a product, coordinates
    are combinations of columns, and there is a way back. It shows distances better than PCA, which
    makes them all too small, and worse than a free map. Cost per step: O(n^2 q + n p q).

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map.
    power : {0, 1, 2}, default=1
        0: raw stress. 1: Sammon's stress, divided by the sum of all delta. 2: squared relative
        errors.
    metric : str or callable, default="euclidean"
        Distance between rows that the map should keep, as in ``lowland.neighbors.knn_graph``.
    metric_params : dict or None, default=None
        Parameters of the metric, ``{"p": 3}`` for "minkowski".
    init : {"pca", "random"} or array of shape (p, n_components), default="pca"
        The first W.
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
    components_ : ndarray of shape (n_components, p)
        W^T. Not orthonormal: its scale is learnt. Turned so that the map's coordinates are
        uncorrelated, the widest first.
    mean_ : ndarray of shape (p,)
        Mean of the columns.
    embedding_ : ndarray of shape (n, n_components)
        The map of the fitted rows.
    stress_ : float
        The stress of the map; for "sparse" pairs an estimate.
    loss_history_ : ndarray
        The same at the start and after each step; it never rises.
    stress_per_point_ : ndarray of shape (n,)
        sqrt(sum_j w (delta - d)^2 / sum_j w delta^2) of each row.
    n_iter_, rows_
        Steps done; always None.

    Notes
    -----
    ``inverse_transform`` is m + W^+ z: of all rows with that place, the one nearest to the mean.

    References
    ----------
    Webb (1995), Multidimensional scaling by iterative majorization using radial basis functions,
    Pattern Recognition 28, 753-759; Alpaydin (2020), Introduction to Machine Learning, section 6.7.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> model = LinearMDS().fit(iris().X)
    >>> round(model.stress_, 4)
    0.0053
    """

    power: int = param(Integer(0, 2), default=1, doc="exponent of the distance that divides")
    metric: Any = param(
        OneOf(*(name for name in METRICS if name != "precomputed")) | Function(),
        default="euclidean",
        doc="distance between rows",
    )
    init: Any = param(OneOf("pca", "random") | Array(), default="pca", doc="the first W")

    components_: np.ndarray = fitted("n_components", "n_features", doc="W^T")
    mean_: np.ndarray = fitted("n_features", doc="mean of the columns")

    card = Card(
        keeps="distances, as far as one matrix can",
        use="when new rows come often, coordinates must be explained, or a way back is needed",
        avoid="when structure is curved",
        cost="O(n^2) per step and memory, O(n p) with sparse pairs",
    )
    reference = "Webb (1995)"
    accepts_distances = False
    reading = StressReducer.reading._replace(
        axes="Each axis is a weighted sum of the columns, so a position along an axis has a "
        "meaning."
    )
    transform_uses_blas = False

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 50 steps over all pairs."""
        seconds = 0.05 + n * n * (1e-10 * p + 5e-8) + 1e-7 * n * p + 2e-11 * n * p * p
        return Estimate(seconds, 16 * n * p + 9 * n * n)

    def _power(self) -> int:
        return int(self.power)

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        problem = self._problem(X, run)
        basis = orthonormal_basis(X, run.threads, run.monitor)
        objective = LinearStress(problem.objective, basis.U, run.threads)
        starts = (self._first(i, basis, problem.unit, run) for i in range(self.n_init))
        found = self._lowest(objective, starts, problem, run, objective.points)
        self._keep_linear(found, problem, basis, objective, X)
        self.rows_ = None
        return self.embedding_.copy()

    def _first(self, number: int, basis: ColumnBasis, unit: float, run: FitContext) -> np.ndarray:
        q, (r, p) = int(self.n_components), basis.loadings.shape
        if number > 0 or (isinstance(self.init, str) and self.init == "random"):
            W = run.rng.standard_normal((p, q)) / np.sqrt(p)
        elif isinstance(self.init, str):
            W = np.zeros((p, q))
            W[:, : min(q, r)] = basis.axes[:q].T
        else:
            W = given_numbers(self.init, (p, q), f"W is {p} columns of X x {q} components")
            if not W.any():
                raise DataError("init is 0 everywhere, from where no step leads; use init='pca'.")
        return basis.variables(W) / unit

    def _keep_linear(
        self,
        found: Majorized,
        problem: Problem,
        basis: ColumnBasis,
        objective: LinearStress,
        X: Any,
    ) -> None:
        Z = objective.points(found.Y)
        # stress does not change with a rotation: the one in which coordinates are uncorrelated
        turn = all_eigenpairs(np.einsum("ni,nj->ij", Z, Z)).vectors
        Z = np.einsum("ni,ij->nj", Z, turn)
        signs = np.where((fix_signs(Z) == Z).all(axis=0), 1.0, -1.0)
        A = np.einsum("ri,ij->rj", found.Y, turn * signs)
        self._keep(found._replace(Y=Z * signs), problem, X)
        self.components_ = np.ascontiguousarray(basis.weights(A).T) * problem.unit
        self.mean_ = basis.mean

    def _loss(self, loss: np.ndarray, problem: Problem) -> np.ndarray:
        if self.power != 1:
            return loss * problem.unit ** (2 - self.power)
        scale = float(problem.objective.scale)
        return loss / (scale if scale > 0 else 1.0)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return products.times(X, self.mean_, self.components_.T, run.threads)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        back = np.linalg.pinv(self.components_).T
        X = products.times(Y, np.zeros(Y.shape[1]), back, run.threads)
        return X + self.mean_.astype(Y.dtype)
