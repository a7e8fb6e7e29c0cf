"""Landmark multidimensional scaling (de Silva & Tenenbaum 2004)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base import validation
from lowland._base.constraints import Integer, Null, OneOf
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError, shown
from lowland._base.memory import require_memory
from lowland._base.models.checks import at_least, some_of
from lowland._base.monitor import Phase
from lowland._base.params import fitted, param
from lowland._base.rows.chunks import Block
from lowland._base.rows.fitting import needs_memory, rows_at
from lowland._base.rows.table import Rows
from lowland._base.traits import Card, Estimate
from lowland._engines.distances.distance_rows import CrossDistances
from lowland._engines.linalg.products import BLOCK_BYTES, times_cost
from lowland._engines.stress import classical_scaling
from lowland._engines.stress.objective import relative_stress
from lowland.methods._bases.distances import DistanceReducer

DEFAULT_LANDMARKS = 200


def column_ends(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest value of each column of dense rows."""
    return block.X.min(axis=0), block.X.max(axis=0)


def wider(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> Any:
    """Least and greatest values in both sets of rows."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


class LandmarkMDS(DistanceReducer):
    """Classical scaling of a few landmarks; y = 1/2 L^-1 Y^T (b - t) for all other rows.

    t are the squared distances of a row to the landmarks. The method is a fast approximation of
    ClassicalMDS for costly distances or for very many rows, because only distances to landmarks are
    computed. Cost: O(n m p + m^3) for m landmarks.

    Parameters
    ----------
    n_landmarks : int or None, default=None
        Number of landmarks; None is 200, or all rows if there are fewer.
    selection : {"random", "maxmin"}, default="random"
        How landmarks are chosen. "maxmin" takes the row farthest from all earlier landmarks, one
        after another, which covers the data evenly and takes outliers first.
    metric : str or function, default="euclidean"
        Distance between rows: a name, a function of two rows, or "precomputed". With
        "precomputed", X holds the distances of the fitted rows, n x n or condensed, of which only
        those to landmarks are used, and new rows are given by their distances to the fitted rows.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks,)
        Row numbers of the landmarks, ascending.
    landmark_map_ : ndarray of shape (n_landmarks, n_components)
        Map of the landmarks.
    eigenvalues_ : ndarray of shape (n_eigenvalues,)
        Eigenvalues of the inner products of the landmarks, largest first: the sum of squares of
        each coordinate over the landmarks. All of them for up to 400 landmarks, else those of the
        map.
    mean_squares_ : ndarray of shape (n_landmarks,)
        Mean squared distance of each landmark to all landmarks, by which rows are placed.
    embedding_ : ndarray of shape (n_samples, n_components) or None
        Map of the fitted rows. None if they were read in chunks.
    stress_per_point_ : ndarray of shape (n_samples,) or None
        Relative stress of each row, sqrt(sum_j (delta_ij - d_ij)^2 / sum_j delta_ij^2), over the
        landmarks j. None if the rows were read in chunks.
    fitted_rows_ : ndarray or sparse matrix of shape (n_landmarks, n_features), or None
        The landmarks, which new rows are compared with. None if distances were given.

    Notes
    -----
    A new row is placed exactly where it would be as a fitted row that is not a landmark. If rows
    are read in chunks, ``fit`` reads the chunks that have landmarks, the same ones as in memory.

    References
    ----------
    de Silva & Tenenbaum (2004), Sparse multidimensional scaling using landmark points, Stanford
    University; Gower (1968), Biometrika 55.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> LandmarkMDS(n_landmarks=30, random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    n_landmarks: int | None = param(Null() | Integer(2), default=None)
    selection: str = param(OneOf("random", "maxmin"), default="random")

    landmarks_: np.ndarray = fitted("n_landmarks", type=int, meaning=some_of("n_samples"))
    landmark_map_: np.ndarray = fitted("n_landmarks", "n_components")
    eigenvalues_: np.ndarray = fitted("n_eigenvalues")
    mean_squares_: np.ndarray = fitted("n_landmarks", meaning=at_least(0))
    fitted_rows_: Any = fitted("n_landmarks", "n_features", optional=True, sparse=True)
    embedding_: np.ndarray | None = fitted("n_samples", "n_components", optional=True)
    stress_per_point_: np.ndarray | None = fitted("n_samples", optional=True)

    card = Card(
        keeps="distances as inner products, large ones best",
        use="for a fast map of very many rows, or of distances that are costly to compute",
        avoid="when ClassicalMDS or PCA is fast enough, because they are exact",
        cost="O(n m p + m^3) time for m landmarks, O(n p) memory",
    )
    reading = DistanceReducer.reading._replace(
        axes="For Euclidean distances the axes are principal components. For other distances only "
        "their order has a meaning: the first one explains most."
    )
    reference = "de Silva & Tenenbaum (2004)"
    fits_rows = True
    aliases = ("lmds",)

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        m = min(n, DEFAULT_LANDMARKS)
        distances = Estimate(n * m * (2e-9 + 5e-10 * p), min(8 * n * m, BLOCK_BYTES))
        scaling = classical_scaling.classical_scaling_cost(m, 2) + times_cost(n, m, 2)
        return (Estimate(0.02, 0) + distances + scaling).holding(8 * n * p)

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        m = self._landmark_count(X.shape[0])
        self._require_memory(*X.shape, m)
        self.landmarks_ = self._choose(X, m, run)
        self.fitted_rows_ = None if self._has_distances else X[self.landmarks_].copy()
        with run.monitor.phase("distances of landmarks", total=m) as phase:
            among = self._to_landmarks(X[self.landmarks_], run, phase)
        q = int(self.n_components)
        found = classical_scaling.of_distances(among, q, run)
        self.landmark_map_, self.eigenvalues_ = found.Y, found.eigenvalues
        self.mean_squares_ = found.mean_squares
        Y = self._triangulated(X, run)
        found_map = self.embedding_ = Y.astype(X.dtype)
        self.stress_per_point_ = relative_stress(
            Y, self.landmarks_, lambda rows: self._to_landmarks(X[rows], run), run.threads
        )
        return found_map.copy()

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        """Only landmarks are read: the map is computed from them alone."""
        if self._has_distances:
            raise needs_memory(type(self).__name__, "metric='precomputed'")
        n, p = rows.shape
        m = self._landmark_count(n)
        if self.selection != "random":
            setting = f"selection={shown(self.selection)}"
            raise needs_memory(type(self).__name__, setting, "set selection='random', or ")
        self._check_not_beyond_rows(n)
        self._require_memory(m, p, m)
        landmarks = self._choose(rows, m, run)
        X = rows_at(rows, landmarks, run.monitor)
        X = validation.dense_if_small(X) if n * p <= validation.DENSE_NUMBERS else X
        if validation.needs_ranges(X, self.metric):
            ends = rows.total(column_ends, wider, run.monitor, "ranges")
            self.column_ranges_ = validation.ranges_between(*ends)
            X = validation.in_ranges(X, self.column_ranges_)
        validation.check_size(validation.largest_value(X))
        self._fitted_map(X, None, run)  # all of these rows are landmarks
        self.landmarks_ = landmarks
        self.embedding_ = self.stress_per_point_ = None

    def _require_memory(self, n: int, p: int, m: int) -> None:
        """For landmarks, four matrices of their size for the eigenproblem, and a block."""
        require_memory(
            8 * (m * p + 4 * m * m) + min(8 * n * m, BLOCK_BYTES),
            task=f"LandmarkMDS with {m} landmarks",
            alternative="set a smaller n_landmarks",
        )

    def _landmark_count(self, n: int) -> int:
        m = min(n, DEFAULT_LANDMARKS) if self.n_landmarks is None else int(self.n_landmarks)
        if m > n:
            raise ParameterError(
                f"LandmarkMDS: n_landmarks={m} is more than the {n} rows of X; ask for at most {n}."
            )
        return m

    def _choose(self, X: Any, m: int, run: FitContext) -> np.ndarray:
        """Row numbers of the landmarks."""
        n = X.shape[0]
        if self.selection == "random":
            return np.sort(run.rng.choice(n, m, replace=False))
        chosen = [int(run.rng.integers(n))]
        nearest = np.full(n, np.inf)
        with run.monitor.phase("landmarks", total=m) as phase:
            while len(chosen) < m:
                nearest = np.minimum(nearest, self._from_row(X, chosen[-1], run))
                nearest[chosen] = -1.0
                chosen.append(int(nearest.argmax()))
                phase.advance()
        return np.sort(np.array(chosen))

    def _from_row(self, X: Any, row: int, run: FitContext) -> np.ndarray:
        """Distances of one row to all rows."""
        if self._has_distances:
            return X[row]
        one = CrossDistances(X[[row]], self.metric, self.metric_params, run.threads)
        return np.concatenate([D[:, 0] for _, D in one.blocks(X)])

    def _to_landmarks(self, X: Any, run: FitContext, phase: Phase | None = None) -> np.ndarray:
        """Distances of rows of X to the landmarks."""
        parts = []
        for _, D in self._distances_to_fitted(X, run):
            parts.append(D)
            if phase is not None:
                phase.advance(len(D))
        return np.vstack(parts)

    def _compared(self) -> Any:
        return self.landmarks_

    def _triangulated(self, X: Any, run: FitContext) -> np.ndarray:
        """Distance-based triangulation, equation (2) of the paper."""
        duals = classical_scaling.gower_duals(self.landmark_map_, self.eigenvalues_)
        Z = np.empty((X.shape[0], duals.shape[1]))
        with run.monitor.phase("triangulation", total=X.shape[0]) as phase:
            for rows, t in self._distances_to_fitted(X, run):
                squares = np.ascontiguousarray(t) ** 2
                Z[rows] = classical_scaling.gower_placement(
                    squares, self.mean_squares_, duals, run.threads
                )
                phase.advance(len(t))
        return Z

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._triangulated(X, run).astype(X.dtype)
