"""Linear multidimensional scaling: the best projection matrix for a stress (Webb 1995)."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import scipy.linalg

from lowland._base.base import Invertible
from lowland._base.constraints import Array, Function, Integer, OneOf
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate
from lowland._base.validation import GOWER
from lowland._engines.distances.metrics import METRICS, unit_power
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs, fix_signs
from lowland._engines.linalg.principal_axes import (
    ColumnBasis,
    orthonormal_basis,
    orthonormal_basis_cost,
)
from lowland._engines.linalg.products import times_cost
from lowland._engines.stress.initial_map import given_numbers
from lowland._engines.stress.majorization import Evaluation, Majorized
from lowland.methods.mds._stress import Problem, StressReducer

# The stress of a linear map Z = (X - 1 m^T) W as a function of W.
#
# With U an orthonormal basis of the columns of the centered X, Z = U A: in A the majorizing
# quadratic of the stress has the matrix U^T V U, which is n I where all weights are 1. So the
# variables are equally scaled whatever the columns of X are (Webb 1995).


class LinearStress:
    """A stress of maps as a function of the variables A of linear maps."""

    def __init__(self, stress: Any, U: np.ndarray, threads: int) -> None:
        self.stress, self.U, self.threads = stress, U, threads
        self.floor, self.scale = stress.floor, stress.scale
        self.zero = np.zeros(U.shape[1])
        self.factor, self.bound = None, float(len(U))
        if not stress.laplacian.uniform:
            degrees = stress.laplacian.degrees
            self.bound = 2 * float(degrees.max())
            with limit_blas(1), contextlib.suppress(scipy.linalg.LinAlgError):
                # 2 diag(V) lies above V; the factorization fails only if the rows do not vary
                M = (U * (2 * degrees)[:, None]).T @ U
                self.factor = scipy.linalg.cho_factor(M, check_finite=False)

    def points(self, A: np.ndarray) -> np.ndarray:
        """Z = U A."""
        return products.times(self.U, self.zero, A, self.threads)

    def __call__(self, A: np.ndarray) -> Evaluation:
        loss, forces = self.stress(self.points(A))
        return Evaluation(loss, products.transpose_times(self.U, self.zero, forces, self.threads))

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        if self.factor is None:
            return slope / self.bound
        return scipy.linalg.cho_solve(self.factor, slope, check_finite=False)

    def guttman_step(self, A: np.ndarray, here: Evaluation) -> np.ndarray:
        return self.precondition(here.slope)


class LinearMDS(StressReducer, Invertible):
    """z = W^T (x - m) with W minimizing sum (|z_i - z_j| - delta_ij)^2 / delta_ij^power.

    Sammon's mapping or metric scaling by one matrix: new rows are placed by a product, coordinates
    are weighted sums of columns, and there is an inverse. It shows distances better than PCA, which
    makes all of them too small, and worse than a map that is not linear. Cost per step:
    O(n^2 q + n p q).

    Parameters
    ----------
    power : {0, 1, 2}, default=1
        Exponent of delta in the denominator: 0 is raw stress, 1 Sammon's stress. Sammon's stress
        is divided by the sum of all delta. 2 gives squared relative errors.
    metric : str or function, default="euclidean"
        Distance between rows that the map should keep: a name, or a function of two rows.
    init : {"pca", "random"} or array of shape (n_features, n_components), default="pca"
        The first W: principal axes, random numbers, or a given matrix.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        W^T, whose rows are not orthonormal, because their scale is fitted. They are rotated so that
        the coordinates of the map are uncorrelated, those with the largest variance first.
    mean_ : ndarray of shape (n_features,)
        Mean of the columns.
    fitted_rows_ : None
        Always None, because new rows are placed by a product.

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

    power: int = param(Integer(0, 2), default=1)
    metric: Any = param(
        OneOf(*(name for name in METRICS if name not in ("precomputed", GOWER))) | Function(),
        default="euclidean",
    )
    init: Any = param(OneOf("pca", "random") | Array(), default="pca")

    components_: np.ndarray = fitted("n_components", "n_features")
    mean_: np.ndarray = fitted("n_features")

    card = Card(
        keeps="distances, as well as a linear map can",
        use="when new rows come often, coordinates must be explained, or an inverse is needed",
        avoid="when structure is curved",
        cost="O(n^2) per step and memory, O(n p) with sparse pairs",
    )
    reference = "Webb (1995)"
    accepts_distances = False
    reading = StressReducer.reading._replace(
        axes="Each axis is a weighted sum of the columns, so a position along an axis has a "
        "meaning.",
        distances="The map keeps distances as well as a linear map can: near and far can be read, "
        "within the stress reported. By default relative errors count, so that short distances "
        "matter as much as long ones.",
    )
    transform_uses_blas = False

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 50 steps over all pairs."""
        products = 100 * times_cost(n, min(n, p), 2)
        return cls._stress_cost(n, p, 50) + orthonormal_basis_cost(n, p) + products

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        problem = self._problem(X, run)
        basis = orthonormal_basis(X, run.threads, run.monitor)
        objective = LinearStress(problem.objective, basis.U, run.threads)
        starts = (self._start(i, basis, problem.unit, run) for i in range(self.n_init))
        found = self._descend(objective, starts, problem, run, objective.points)
        self._keep_linear(found, problem, basis, objective, X)
        self.fitted_rows_ = None
        return self.embedding_.copy()

    def _start(self, number: int, basis: ColumnBasis, unit: float, run: FitContext) -> np.ndarray:
        q, (r, p) = int(self.n_components), basis.loadings.shape
        if number > 0 or (isinstance(self.init, str) and self.init == "random"):
            W = run.rng.standard_normal((p, q)) / np.sqrt(p)
        elif isinstance(self.init, str):
            W = np.zeros((p, q))
            W[:, : min(q, r)] = basis.axes[:q].T
        else:
            W = given_numbers(self.init, (p, q), f"W is {p} columns of X x {q} components")
            if not W.any():
                raise DataError(
                    "init is 0 everywhere: all points coincide, and no step separates them; use "
                    "init='pca'."
                )
            return basis.variables(W) / unit
        V = basis.variables(W)
        if unit_power(self.metric) == 1 or not V.any():
            return V / unit
        # Distances in another unit than X: the map starts as large as they are, in the mean square.
        V = V / np.abs(V).max()
        return V / np.sqrt(2 / (basis.U.shape[0] - 1) * (V**2).sum())

    def _keep_linear(
        self,
        found: Majorized,
        problem: Problem,
        basis: ColumnBasis,
        objective: LinearStress,
        X: Any,
    ) -> None:
        Z = objective.points(found.Y)
        # a rotation does not change the stress; this one makes the coordinates uncorrelated
        rotation = all_eigenpairs(np.einsum("ni,nj->ij", Z, Z)).vectors
        Z = np.einsum("ni,ij->nj", Z, rotation)
        signs = np.where((fix_signs(Z) == Z).all(axis=0), 1.0, -1.0)
        A = np.einsum("ri,ij->rj", found.Y, rotation * signs)
        self._keep(found._replace(Y=Z * signs), problem, X)
        self.components_ = np.ascontiguousarray(basis.weights(A).T) * problem.unit
        self.mean_ = basis.mean

    def _compares_rows(self) -> bool:
        return False  # a product places new rows

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return products.times(X, self.mean_, self.components_.T, run.threads)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        back = np.linalg.pinv(self.components_).T
        X = products.times(Y, np.zeros(Y.shape[1]), back, run.threads)
        return X + self.mean_.astype(Y.dtype)
