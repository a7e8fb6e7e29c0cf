"""Classical multidimensional scaling (Torgerson 1952; Gower 1966)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Boolean, OneOf
from lowland._core.context import FitContext
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._core.validation import is_sparse
from lowland._engines.distances.cross_distances import CrossDistances
from lowland._engines.linalg import products
from lowland._engines.linalg.magnitude import check_magnitude, largest
from lowland._engines.stress import classical_scaling
from lowland._engines.stress.point_stress import chosen_partners, relative_stress
from lowland.mds._base import DistanceReducer

__all__ = ["ClassicalMDS"]

WHOLE_SPECTRUM_ROWS = 1000  # up to so many, all eigenvalues take about a tenth of a second


class ClassicalMDS(DistanceReducer):
    """min |B - Y Y^T|_F with B = -1/2 H D^2 H: inner products, and so distances, from distances.

    The closed-form map of distances: one eigenproblem, no starts, nested axes. Euclidean distances
    of rows give PCA, without any matrix of distances. Large distances decide; where the small ones
    matter, take MDS or Sammon. Cost: O(n^2 q) per product with D, some ten products; for Euclidean
    rows O(n p min(n, p)).

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map.
    metric : str or callable, default="euclidean"
        Distance between rows, as in ``lowland.neighbors.knn_graph``. "precomputed": X holds
        distances, n x n or condensed.
    metric_params : dict or None, default=None
        Parameters of the metric, ``{"p": 3}`` for "minkowski".
    additive_constant : bool, default=False
        Add the least constant to all distances that makes them Euclidean (Cailliez 1983): no
        eigenvalue is negative then. O(n^3).
    spectrum : {"auto", "all", "top"}, default="auto"
        Whether all eigenvalues are computed, in O(n^3), or those of the map alone. "auto" computes
        all of up to 1000 rows; of more, and of Euclidean rows, those of the map.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The map, centered; its columns are orthogonal. 0 where no positive eigenvalue is left.
    eigenvalues_ : ndarray
        Of B, largest first, negative ones included: all, or those of the map. Negative: the
        distances are not Euclidean.
    goodness_of_fit_ : ndarray of shape (2,) or None
        Sum of the map's eigenvalues over the sum of all absolute, and of all positive ones. None
        for ``spectrum="top"``, and for "auto" with more than 1000 rows, unless they are Euclidean:
        then the sum is known without the eigenvalues.
    additive_constant_ : float
        What was added to the distances.
    stress_per_point_ : ndarray of shape (n,)
        sqrt(sum_j (delta_ij - d_ij)^2 / sum_j delta_ij^2); of many rows, over 1 000 partners j.
    components_, mean_, mean_squares_, rows_
        What new rows are placed with.

    Notes
    -----
    The entry of each column of the map that is largest in absolute value is positive. A new row
    lands where its squared distances to the fitted rows say (Gower 1968).

    References
    ----------
    Torgerson (1952), Multidimensional scaling: I. Theory and method, Psychometrika 17; Gower
    (1966), Biometrika 53; Gower (1968), Biometrika 55, on new rows; Cailliez (1983),
    Psychometrika 48.

    Examples
    --------
    >>> triangle = [[0, 3, 4], [3, 0, 5], [4, 5, 0]]
    >>> model = ClassicalMDS(metric="precomputed").fit(triangle)
    >>> model.eigenvalues_.round(3) + 0.0
    array([12.964,  3.703,  0.   ])
    """

    additive_constant: bool = param(
        Boolean(), default=False, doc="add what makes the distances Euclidean"
    )
    spectrum: str = param(
        OneOf("auto", "all", "top"), default="auto", doc="which eigenvalues are computed"
    )

    eigenvalues_: np.ndarray = fitted("n_eigenvalues", doc="of B, largest first: all or the map's")
    goodness_of_fit_: np.ndarray | None = fitted(
        "two", doc="share of the absolute and of the positive eigenvalues", optional=True
    )
    additive_constant_: float = fitted(doc="what was added to the distances")
    mean_squares_: np.ndarray | None = fitted(
        "n_samples", doc="mean squared distance of each row; None for PCA", optional=True
    )
    components_: np.ndarray | None = fitted(
        "n_components", "n_features", doc="axes in the space of the rows, or None", optional=True
    )
    mean_: np.ndarray | None = fitted("n_features", doc="mean of the rows, or None", optional=True)

    card = Card(
        keeps="distances as inner products, the large ones best",
        use="when only distances are known; as a fast first map of them",
        avoid="when neighborhoods matter more than the overall picture, or distances are ordinal",
        cost="O(n^2) per product with the distances; O(n p min(n, p)) for Euclidean rows",
    )
    reference = "Torgerson (1952); Gower (1966)"

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: Euclidean rows, that is PCA."""
        size = min(n, p)
        return Estimate(
            0.02 + 2e-11 * n * p * size + 3e-10 * size**3, 8 * (2 * n * p + 4 * size**2)
        )

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, q = X.shape[0], int(self.n_components)
        shared = {"threads": run.threads, "rng": run.rng, "monitor": run.monitor}
        constant, D, owner = 0.0, None, type(self).__name__
        if self.metric == "euclidean" and not self.additive_constant:
            check_magnitude(largest(X.data if is_sparse(X) else X), owner, "value")
            size = min(X.shape)  # inner products of columns or rows, and their eigenvectors
            require_memory(
                8 * (3 * size**2 + (0 if is_sparse(X) else n * X.shape[1])),
                task=f"{owner} of {n} rows and {X.shape[1]} columns",
                alternative="use LandmarkMDS",
            )
            found = classical_scaling.of_rows(X, q, all_values=self.spectrum == "all", **shared)
        else:
            D = self._distances(X, run, "use LandmarkMDS")
            check_magnitude(largest(D), owner)
            if self.additive_constant:
                constant = self._constant(D)
                D = D + constant * (1 - np.eye(n))
            few = self.spectrum == "auto" and n <= WHOLE_SPECTRUM_ROWS
            found = classical_scaling.of_distances(
                D, q, all_values=few or self.spectrum == "all", **shared
            )
        self._keep(found, X, constant)
        self.stress_per_point_ = self._point_stress(X, D, found.Y, run)
        return self.embedding_.copy()

    def _constant(self, D: np.ndarray) -> float:
        n = len(D)
        require_memory(
            8 * 3 * (2 * n) ** 2,
            task=f"the additive constant of {n} rows",
            alternative="set additive_constant=False",
        )
        return classical_scaling.additive_constant(D)

    def _keep(self, found: classical_scaling.Scaling, X: Any, constant: float) -> None:
        q = int(self.n_components)
        top = np.maximum(found.eigenvalues[:q], 0.0).sum()
        self.embedding_ = found.Y.astype(X.dtype)
        self.eigenvalues_, self.additive_constant_ = found.eigenvalues, constant
        self.goodness_of_fit_ = None
        if found.absolute is not None and found.positive is not None:
            sums = np.array([found.absolute, found.positive])
            self.goodness_of_fit_ = top / np.where(sums > 0, sums, 1.0)
        self.mean_squares_, self.components_, self.mean_ = (
            found.mean_squares,
            found.axes,
            found.mean,
        )
        compared = not self._given and found.axes is None
        self.rows_ = X.copy() if compared else None

    def _point_stress(
        self, X: Any, D: np.ndarray | None, Y: np.ndarray, run: FitContext
    ) -> np.ndarray:
        partners = chosen_partners(len(Y))
        if D is not None:
            return relative_stress(Y, partners, lambda rows: D[rows][:, partners], run.threads)
        cross = CrossDistances(X[partners], "euclidean", None, run.threads)

        def distances(rows: slice) -> np.ndarray:
            return np.vstack([part for _, part in cross.blocks(X[rows])])

        return relative_stress(Y, partners, distances, run.threads)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        if self.components_ is not None:
            return products.times(X, self.mean_, self.components_.T, run.threads)
        out = np.empty((X.shape[0], int(self.n_components)))
        fitted_map = self.embedding_.astype(np.float64)
        lengths = np.zeros(fitted_map.shape[1])
        known = self.eigenvalues_[: len(lengths)]
        lengths[: len(known)] = known
        for rows, D in self._blocks_of_distances(X, run):
            squares = (D + self.additive_constant_) ** 2
            out[rows] = classical_scaling.triangulate(
                squares, fitted_map, lengths, self.mean_squares_, run.threads
            )
            if self.additive_constant_:  # a fitted row is not so far from itself
                at_home = D.min(axis=1) == 0
                out[rows][at_home] = fitted_map[D[at_home].argmin(axis=1)]
        return out.astype(X.dtype)
