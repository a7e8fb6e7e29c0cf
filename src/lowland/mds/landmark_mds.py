"""Landmark multidimensional scaling (de Silva & Tenenbaum 2004)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Integer, Null, OneOf
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._engines.distances.cross_distances import CrossDistances
from lowland._engines.linalg.magnitude import check_fits, check_magnitude, largest
from lowland._engines.stress import classical_scaling
from lowland._engines.stress.point_stress import relative_stress
from lowland.mds._base import DistanceReducer

__all__ = ["LandmarkMDS"]

DEFAULT_LANDMARKS = 200
BLOCK_BYTES = 33_000_000  # of distances to landmarks that are held at a time


def _working_bytes(n: int, p: int, m: int) -> int:
    """Landmarks, four matrices of their size for the eigenproblem, a block of distances."""
    return 8 * (m * p + 4 * m * m) + min(8 * n * m, BLOCK_BYTES)


class LandmarkMDS(DistanceReducer):
    """Classical scaling of a few landmarks; y = 1/2 L^-1 Y^T (b - t) for all other rows.

    t are a row's squared distances to the landmarks. The fast approximation of ClassicalMDS for
    distances that are no table of columns, or too many: only those to landmarks are computed. Cost:
    O(n m p + m^3) for m landmarks.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map.
    n_landmarks : int or None, default=None
        Rows that are scaled among themselves; None: 200, or all if there are fewer.
    selection : {"random", "maxmin"}, default="random"
        "maxmin" takes, one after another, the row farthest from all landmarks so far: it covers the
        data evenly, outliers first.
    metric : str or callable, default="euclidean"
        Distance between rows, as in ``lowland.neighbors.knn_graph``. "precomputed": X holds
        distances, n x n or condensed, of which the columns of landmarks are used.
    metric_params : dict or None, default=None
        Parameters of the metric, ``{"p": 3}`` for "minkowski".

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The map.
    landmarks_ : ndarray of int
        The rows that were chosen, ascending.
    landmark_map_ : ndarray of shape (n_landmarks, n_components)
        Their places.
    eigenvalues_ : ndarray
        Of the landmarks' inner products, largest first: all of up to 400, else the map's.
    stress_per_point_ : ndarray of shape (n,)
        sqrt(sum_j (delta_ij - d_ij)^2 / sum_j delta_ij^2) over the landmarks j.
    mean_squares_, rows_
        What new rows are placed with; ``rows_`` are the landmarks.

    Notes
    -----
    A new row lands exactly where it would have landed as a fitted one that is no landmark.

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

    n_landmarks: int | None = param(
        Null() | Integer(2), default=None, doc="rows that are scaled among themselves"
    )
    selection: str = param(
        OneOf("random", "maxmin"), default="random", doc="how landmarks are chosen"
    )

    landmarks_: np.ndarray = fitted("n_landmarks", type=int, doc="rows that are landmarks")
    landmark_map_: np.ndarray = fitted("n_landmarks", "n_components", doc="their places")
    eigenvalues_: np.ndarray = fitted("n_eigenvalues", doc="of the landmarks' inner products")
    mean_squares_: np.ndarray = fitted("n_landmarks", doc="their mean squared distances")

    card = Card(
        keeps="distances as inner products, the large ones best",
        use="for a fast map of very many rows, or of costly distances",
        avoid="when ClassicalMDS or PCA is fast enough: they are exact",
        cost="O(n m p + m^3) time for m landmarks, O(n p) memory",
    )
    reference = "de Silva & Tenenbaum (2004)"

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        m = min(n, DEFAULT_LANDMARKS)
        return Estimate(0.02 + 5e-10 * n * m * p, 8 * n * p + _working_bytes(n, p, m))

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, q = X.shape[0], int(self.n_components)
        m = min(n, DEFAULT_LANDMARKS) if self.n_landmarks is None else int(self.n_landmarks)
        if m > n:
            raise ParameterError(
                f"LandmarkMDS: n_landmarks={m} is more than the {n} rows of X; ask for at most {n}."
            )
        require_memory(
            _working_bytes(n, X.shape[1], m),
            task=f"{type(self).__name__} with {m} landmarks",
            alternative="set a smaller n_landmarks",
        )
        chosen = self._choose(X, m, run)
        self.landmarks_ = chosen
        self.rows_ = None if self._given else X[chosen].copy()
        among = X[np.ix_(chosen, chosen)] if self._given else self._to_landmarks(X, run, chosen)
        among = np.ascontiguousarray(among, np.float64)
        check_magnitude(largest(among), type(self).__name__)
        found = classical_scaling.of_distances(
            among, q, threads=run.threads, rng=run.rng, monitor=run.monitor
        )
        self.landmark_map_, self.eigenvalues_ = found.Y, found.eigenvalues
        self.mean_squares_ = found.mean_squares
        Y = self._place(X, run)
        self.embedding_ = Y.astype(X.dtype)
        delta = (
            (lambda rows: X[rows][:, chosen])
            if self._given
            else (lambda rows: self._to_landmarks(X, run, rows))
        )
        self.stress_per_point_ = relative_stress(Y, chosen, delta, run.threads)
        return self.embedding_.copy()

    def _choose(self, X: Any, m: int, run: FitContext) -> np.ndarray:
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
        if self._given:
            return X[row]
        one = CrossDistances(X[[row]], self.metric, self.metric_params, run.threads)
        return np.concatenate([D[:, 0] for _, D in one.blocks(X)])

    def _to_landmarks(self, X: Any, run: FitContext, rows: Any) -> np.ndarray:
        return np.vstack([D for _, D in self._blocks_of_distances(X[rows], run)])

    def _place(self, X: Any, run: FitContext) -> np.ndarray:
        """Distance-based triangulation, equation (2) of the paper."""
        lengths = np.zeros(int(self.n_components))
        known = self.eigenvalues_[: len(lengths)]
        lengths[: len(known)] = known
        Z = np.empty((X.shape[0], len(lengths)))
        with run.monitor.phase("triangulation", total=X.shape[0]) as phase:
            for rows, D in self._blocks_of_distances(X, run):
                near = D[:, self.landmarks_] if self._given else D
                Z[rows] = classical_scaling.triangulate(
                    np.ascontiguousarray(near) ** 2,
                    self.landmark_map_,
                    lengths,
                    self.mean_squares_,
                    run.threads,
                )
                phase.advance(len(D))
        return Z

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        Z = self._place(X, run)
        check_fits(Z, X.dtype, type(self).__name__)
        return Z.astype(X.dtype)
