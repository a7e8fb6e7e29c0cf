"""Classical multidimensional scaling (Torgerson 1952; Gower 1966)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from lowland._base.constraints import Boolean, OneOf
from lowland._base.context import FitContext
from lowland._base.errors import shown
from lowland._base.memory import require_memory
from lowland._base.models.checks import at_least
from lowland._base.params import fitted, param
from lowland._base.rows.chunks import Block
from lowland._base.rows.fitting import needs_memory
from lowland._base.rows.table import Rows
from lowland._base.threads import resolve_n_jobs
from lowland._base.traits import Card, Estimate
from lowland._base.validation import is_sparse
from lowland._engines.distances.distance_rows import CrossDistances
from lowland._engines.distances.metrics import canonical
from lowland._engines.linalg import products
from lowland._engines.linalg.moments import survey
from lowland._engines.linalg.principal_axes import by_covariance, principal_axes_cost
from lowland._engines.linalg.products import times_cost
from lowland._engines.stress import classical_scaling
from lowland._engines.stress.objective import chosen_partners, relative_stress
from lowland.methods._bases.distances import DistanceReducer

# The signs of the axes of a map whose rows are read in chunks.


def farthest(axes: np.ndarray, mean: np.ndarray, n_jobs: int | None, block: Block) -> np.ndarray:
    """The coordinate of largest absolute value on each axis; the first of equal ones."""
    Y = products.times(block.X, mean, axes.T, resolve_n_jobs(n_jobs))
    return Y[np.abs(Y).argmax(axis=0), np.arange(Y.shape[1])].astype(np.float64)


def farther(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The farthest coordinates of both sets of rows."""
    return np.where(np.abs(b) > np.abs(a), b, a)


SPECTRUM_ROWS = 1000  # all eigenvalues of so many rows take about a tenth of a second


class ClassicalMDS(DistanceReducer):
    """min |B - Y Y^T|_F with B = -1/2 H D^2 H: inner products, and so distances, from distances.

    The closed-form map of distances: one eigenproblem, no starts, and the axes of a smaller map are
    those of a larger one. Euclidean distances of rows give PCA, without a matrix of distances.
    Large distances dominate; use MDS or Sammon if small ones matter. Cost: O(n^2 q) per product
    with D, about ten products; for Euclidean rows O(n p min(n, p)). Euclidean rows may be read in
    chunks: two passes over them, and O(p^2) memory.

    Parameters
    ----------
    additive_constant : bool, default=False
        Add the smallest constant to all distances that makes them Euclidean (Cailliez 1983). Then
        no eigenvalue is negative. It costs O(n^3).
    spectrum : {"auto", "all", "top"}, default="auto"
        Which eigenvalues are computed: all, in O(n^3), or only those of the map ("top"). "auto" is
        "all" for up to 1000 rows with distances, else "top".

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components) or None
        Map of the fitted rows, centered, with orthogonal columns. A column without a positive
        eigenvalue is 0. None if the rows were read in chunks.
    eigenvalues_ : ndarray of shape (n_eigenvalues,)
        Eigenvalues of B, largest first: all, or those of the map, which are the sum of squares of
        each coordinate. Distances with negative eigenvalues are not Euclidean. Of rows that were
        read in chunks, "all" are one for each column; the others are 0.
    goodness_of_fit_ : ndarray of shape (2,) or None
        Sum of the map's eigenvalues over the sum of all absolute and of all positive eigenvalues.
        None if not all eigenvalues are known, except for Euclidean rows, where the sums are known
        without them.
    additive_constant_ : float
        What was added to the distances.
    stress_per_point_ : ndarray of shape (n_samples,) or None
        Relative stress of each row, sqrt(sum_j (delta_ij - d_ij)^2 / sum_j delta_ij^2). For more
        than 2000 rows, the sums are over 1000 partners j. None if the rows were read in chunks.
    components_ : ndarray of shape (n_components, n_features) or None
        Axes in the space of the rows, if the map is that of PCA.
    mean_ : ndarray of shape (n_features,) or None
        Mean of the rows, if the map is that of PCA.
    mean_squares_ : ndarray of shape (n_samples,) or None
        Mean squared distance of each row to all rows, by which new rows are placed. None if the
        map is that of PCA.

    Notes
    -----
    The largest entry of each column of the map is positive. A new row is placed by its squared
    distances to the fitted rows (Gower 1968).

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

    additive_constant: bool = param(Boolean(), default=False)
    spectrum: str = param(OneOf("auto", "all", "top"), default="auto")

    embedding_: np.ndarray | None = fitted("n_samples", "n_components", optional=True)
    stress_per_point_: np.ndarray | None = fitted("n_samples", optional=True)
    eigenvalues_: np.ndarray = fitted("n_eigenvalues")
    goodness_of_fit_: np.ndarray | None = fitted("2", optional=True)
    additive_constant_: float = fitted()
    mean_squares_: np.ndarray | None = fitted("n_samples", optional=True, meaning=at_least(0))
    components_: np.ndarray | None = fitted("n_components", "n_features", optional=True)
    mean_: np.ndarray | None = fitted("n_features", optional=True)

    card = Card(
        keeps="distances as inner products, large ones best",
        use="when only distances are known; as a fast first map of them",
        avoid="when neighborhoods matter more than large distances, or distances are ordinal",
        cost="O(n^2) per product with the distances; O(n p min(n, p)) for Euclidean rows",
    )
    reading = DistanceReducer.reading._replace(
        axes="For Euclidean distances the axes are principal components. For other distances only "
        "their order has a meaning: the first one explains most."
    )
    reference = "Torgerson (1952); Gower (1966)"
    fits_rows = True
    aliases = ("cmds", "pcoa", "torgerson")

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: PCA, for Euclidean rows."""
        axes = principal_axes_cost(n, p, 2) + times_cost(n, p, 2)
        stress = Estimate(n * len(chosen_partners(n)) * (8e-9 + 5e-11 * p), 2**24)
        return (Estimate(0.02, 0) + axes + stress).holding(8 * n * p)

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        if canonical(self.metric) == "euclidean" and not self.additive_constant:
            return self._fit_euclidean(X, run)
        n, q, constant = X.shape[0], int(self.n_components), 0.0
        D = self._distances(X, run, "use LandmarkMDS")
        if self.additive_constant:
            require_memory(
                8 * 3 * (2 * n) ** 2,
                task=f"the additive constant of {n} rows",
                alternative="set additive_constant=False",
            )
            constant = classical_scaling.additive_constant(D)
            D = D + constant * (1 - np.eye(n))
        everything = self.spectrum == "all" or (self.spectrum == "auto" and n <= SPECTRUM_ROWS)
        found = classical_scaling.of_distances(D, q, run, all_values=everything)
        partners = chosen_partners(n)
        stress = relative_stress(found.Y, partners, lambda rows: D[rows][:, partners], run.threads)
        return self._keep(found, X, constant, stress)

    def _fit_euclidean(self, X: Any, run: FitContext) -> np.ndarray:
        """Euclidean distances of rows: the map is that of PCA, and D is not needed."""
        n, p = X.shape
        size = min(n, p)  # inner products of columns or rows, and their eigenvectors
        require_memory(
            8 * (3 * size**2 + (0 if is_sparse(X) else n * p)),
            task=f"ClassicalMDS of {n} rows and {p} columns",
            alternative="use LandmarkMDS",
        )
        everything = self.spectrum == "all"
        found = classical_scaling.of_rows(X, int(self.n_components), run, all_values=everything)
        partners = chosen_partners(X.shape[0])
        cross = CrossDistances(X[partners], "euclidean", None, run.threads)

        def distances(rows: slice) -> np.ndarray:
            return np.vstack([part for _, part in cross.blocks(X[rows])])

        stress = relative_stress(found.Y, partners, distances, run.threads)
        return self._keep(found, X, 0.0, stress)

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        """Euclidean rows, in two passes: their moments, then the signs of the axes."""
        if canonical(self.metric) != "euclidean":
            advice = "" if self._has_distances else "use LandmarkMDS, or "
            raise needs_memory(type(self).__name__, f"metric={shown(self.metric)}", advice)
        if self.additive_constant:
            raise needs_memory(type(self).__name__, "additive_constant=True")
        (n, p), q, owner = rows.shape, int(self.n_components), type(self).__name__
        self._check_not_beyond_rows(n)
        found = survey(rows, owner, scatter=True, n_jobs=self.n_jobs, monitor=run.monitor)
        rows = self._with_room(rows, found.greatest)
        assert found.moments is not None
        k = min(n, p) if self.spectrum == "all" else min(q, n, p)
        principal = by_covariance(found.moments, k, scaled=False)
        scaling = classical_scaling.of_axes(
            principal, q, min(n, p) if self.spectrum == "all" else q
        )
        assert scaling.axes is not None
        of_block = partial(farthest, scaling.axes, scaling.mean, self.n_jobs)
        signs = np.where(rows.total(of_block, farther, run.monitor, "map") < 0, -1.0, 1.0)
        self._keep_solution(scaling._replace(axes=scaling.axes * signs[:, None]), 0.0)
        self.embedding_ = self.stress_per_point_ = self.fitted_rows_ = None

    def _keep(
        self, found: classical_scaling.Scaling, X: Any, constant: float, stress: np.ndarray
    ) -> np.ndarray:
        """Set the fitted attributes; returns the map."""
        Y = self.embedding_ = found.Y.astype(X.dtype)
        self.stress_per_point_ = stress
        self._keep_solution(found, constant)
        compares = not self._has_distances and found.axes is None
        self.fitted_rows_ = X.copy() if compares else None
        return Y.copy()

    def _keep_solution(self, found: classical_scaling.Scaling, constant: float) -> None:
        """Set the fitted attributes that have no entry for each row."""
        self.eigenvalues_, self.additive_constant_ = found.eigenvalues, constant
        self.goodness_of_fit_ = None
        if found.absolute is not None and found.positive is not None:
            top = np.maximum(found.eigenvalues[: int(self.n_components)], 0.0).sum()
            sums = np.array([found.absolute, found.positive])
            self.goodness_of_fit_ = top / np.where(sums > 0, sums, 1.0)
        self.mean_squares_ = found.mean_squares
        self.components_, self.mean_ = found.axes, found.mean

    def _compares_rows(self) -> bool:
        return not self._has_distances and self.components_ is None

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: rows are placed by a product, or by distances."""
        by_product = ("components_", "mean_")
        by_distances = ("mean_squares_", "embedding_")
        for name in by_distances if self.components_ is None else by_product:
            if getattr(self, name) is None:
                return f"no {name!r}"
        if self.components_ is not None and self._has_distances:
            return "'components_' with metric='precomputed'"
        return super().inconsistency()

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        if self.components_ is not None:
            return products.times(X, self.mean_, self.components_.T, run.threads)
        return super()._transform(X, run)

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        assert self.embedding_ is not None
        Y = self.embedding_.astype(np.float64)
        squares = (D + self.additive_constant_) ** 2
        duals = classical_scaling.gower_duals(Y, self.eigenvalues_)
        Z = classical_scaling.gower_placement(squares, self.mean_squares_, duals, run.threads)
        if self.additive_constant_:  # the constant is not added to the distance to itself
            is_fitted = D.min(axis=1) == 0
            Z[is_fitted] = Y[D[is_fitted].argmin(axis=1)]
        return Z
