"""The base of methods in which a pair counts while it is within a radius that shrinks.

CCA, CDA and Venna & Kaski's local MDS differ in their distances, radii and laws. The landmarks, the
annealing of the radii, and the placement of other rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import Ascending, above, index_of
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.local_stress.objective import (
    AllPairs,
    Annealed,
    Law,
    LocalStress,
    PointSums,
    anneal,
    farthest,
    geometric,
    place_by_law,
    sums_at,
)
from lowland._engines.neighbors.duplicates import EqualRows, at_common_place, equal_in_distances
from lowland._engines.stress import initial_map
from lowland.methods._bases.distances import FLOAT64_ROWS
from lowland.methods.curvilinear._base import CurvilinearReducer

ALL_ROWS, LANDMARKS = 4000, 2000  # "auto" takes all rows up to here, and of more rows so many

STRAY = 1 + 1e-9  # the sum of weights of a point that counts for itself only


class Problem(NamedTuple):
    """All pairs of the landmarks, in units of ``unit``; ``equal`` rows share one place.

    ``radii`` are in the unit of the data: a product with the unit could lose the k-th neighbor.
    """

    pairs: AllPairs
    unit: float
    radii: np.ndarray
    equal: EqualRows | None


class RadialReducer(CurvilinearReducer):
    """A local stress with radii that shrink to those of neighborhoods.

    A method writes ``_law``, and ``_radii``, the final radii of points from the distances to their
    k-th neighbors.

    Parameters
    ----------
    n_neighbors : int, default=20
        Number k of neighbors whose distances are kept. The radii shrink to the distance of the
        k-th neighbor.
    max_iter : int, default=300
        Maximum number of steps. 0 keeps the start.
    tol : float, default=1e-5
        The fit stops when a step with the final radii lowers the loss by less than this share.
    landmarks : int, "auto" or None, default="auto"
        Number of random rows whose pairs make the map. The other rows are placed like new rows.
        None takes all rows. "auto" takes all up to 4000 rows, and 2000 of more.
    init : {"classical", "random"} or array of shape (n, n_components), default="classical"
        The start: classical scaling (PCA for Euclidean rows), random points, or given coordinates.
        Given coordinates are those of all rows; only those of the landmarks are used.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks,)
        Indices of the rows whose pairs made the map.
    radii_ : ndarray of shape (n_landmarks,)
        Final radius of each of them.
    fitted_rows_ : ndarray or sparse matrix of shape (n_landmarks, n_features), or None
        Rows that new rows are compared with. None if distances were given.
    stress_ : float
        Objective E of the landmarks, with the final radii.
    loss_history_ : ndarray of shape (n_steps,)
        The potential of the forces, at the start and after each step. The radii shrink in 20
        stages; within a stage it never increases. At the end, rows that are near no other row are
        placed like new rows.
    stress_per_point_ : ndarray of shape (n_samples,)
        Error of the distances that count for each row: their root mean square, weighted, relative
        to its radius.
    """

    n_neighbors: int = param(Integer(1), default=20)
    max_iter: int = param(Integer(0), default=300)
    tol: float = param(Real(0, closed="left"), default=1e-5)
    landmarks: Any = param(Null() | OneOf("auto") | Integer(2), default="auto")

    landmarks_: np.ndarray = fitted(
        "n_landmarks", type=int, meaning=(index_of("n_samples"), Ascending(strict=True))
    )
    radii_: np.ndarray = fitted("n_landmarks", meaning=above(0))
    fitted_rows_: Any = fitted("n_landmarks", "n_features", optional=True, sparse=True)
    stress_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")

    @classmethod
    def _radial_cost(cls, n: int, p: int) -> Estimate:
        """Cost of a fit with 300 steps, and of placing the rows that are no landmarks."""
        m = n if n <= ALL_ROWS else LANDMARKS
        distances = cls._distances_cost(m, p)
        steps = Estimate(300 * (7e-10 * m * m + 1e-4), 4 * m * m).holding(distances.n_bytes)
        place = Estimate((n - m) * m * (1.5e-7 + 1e-10 * p), 3e7 if n > m else 0)
        return (Estimate(0.05, 0) + distances + steps + place).holding(16 * n * p)

    # --- what a method writes -----------------------------------------------------------------

    def _law(self) -> Law:
        raise NotImplementedError

    def _radii(self, kth: np.ndarray) -> np.ndarray:
        """The final radii of the landmarks, all above 0."""
        raise NotImplementedError

    def _radii_of_new(self, kth: np.ndarray) -> np.ndarray:
        """The radii of new rows, from the distances to their k-th nearest landmarks."""
        raise NotImplementedError

    def _widest(self, Y: np.ndarray, delta: np.ndarray) -> float:
        """The radius that the annealing begins with: about the largest distance of the start."""
        return farthest(Y)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n = X.shape[0]
        self.landmarks_ = chosen = self._choose_landmarks(n, run)
        every = chosen.size == n
        A = X if every else X[np.ix_(chosen, chosen)] if self._has_distances else X[chosen]
        D = self._distances(A, run, "set landmarks to fewer rows")
        problem = self._problem(D, run)
        start = self._start_of_landmarks(A, D, n, run)
        found = self._descend(problem, start, run)
        self.fitted_rows_ = None if self._has_distances else A.copy()
        self._keep(found, problem, X.dtype, n)
        others = np.setdiff1d(np.arange(n), chosen)
        if others.size:
            self._place_all(others, self._distances_to_fitted(X[others], run), run)
        return self.embedding_.copy()

    def _choose_landmarks(self, n: int, run: FitContext) -> np.ndarray:
        m = self.landmarks
        if m == "auto":
            m = n if n <= ALL_ROWS else LANDMARKS
        if m is None:
            return np.arange(n)
        if m > n:
            raise ParameterError(
                f"{type(self).__name__}: landmarks={m} is more than n_samples={n}; ask for at most "
                f"{n}, or for all with landmarks=None."
            )
        return np.sort(run.rng.choice(n, int(m), replace=False)) if m < n else np.arange(n)

    def _start_of_landmarks(self, A: Any, D: np.ndarray, n: int, run: FitContext) -> np.ndarray:
        """The start of the landmarks, rows A with distances D, of n rows in all."""
        if isinstance(self.init, str):
            return self._start(A, run, D)
        given = initial_map.given_start(self.init, n, int(self.n_components), 1.0)
        return given[self.landmarks_]

    def _problem(self, D: np.ndarray, run: FitContext) -> Problem:
        """All pairs of a matrix of distances, which is not changed."""
        n = len(D)
        dtype = np.float64 if n <= FLOAT64_ROWS else np.float32
        require_memory(
            n * n * np.dtype(dtype).itemsize,
            task=f"{type(self).__name__} with all pairs of {n} rows",
            alternative="set landmarks to fewer rows",
        )
        unit = float(np.sqrt(np.einsum("ij,ij->", D, D, dtype=np.float64) / (n * n))) or 1.0
        delta = np.divide(D, unit, dtype=dtype, casting="same_kind")
        kth = kth_smallest(D, int(self.n_neighbors) + 1)  # the first is the row itself
        radii = self._radii(kth)
        return Problem(AllPairs(delta, run.threads), unit, radii, equal_in_distances(delta))

    def _descend(self, problem: Problem, start: np.ndarray, run: FitContext) -> Annealed:
        Y, unit, law = start / problem.unit, problem.unit, self._law()
        final = problem.radii / unit
        if self.max_iter > 0:
            # equal rows that start at one place have the same gradient and stay together
            Y = at_common_place(Y, problem.equal)
            if problem.pairs.delta.any():
                Y = at_common_place(initial_map.separated(Y, run.rng), problem.equal)
        widest = np.maximum(final, self._widest(Y, problem.pairs.delta))

        # a step makes creases in which points are caught; where it is smooth, fewer are
        softer = law._replace(kind="sigmoid") if law.kind == "step" else law

        def objective_at(t: float, Y: np.ndarray) -> LocalStress:
            if t == 1:
                return LocalStress(problem.pairs, law, final)
            return LocalStress(problem.pairs, softer, geometric(widest, final, t))

        with limit_blas(1):  # sums over all points must not depend on the number of threads
            return anneal(
                objective_at,
                Y,
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                monitor=run.monitor,
                shown=lambda Y: _centered(Y, unit),
                told=lambda loss: loss * unit**2,
            )

    def _keep(self, found: Annealed, problem: Problem, dtype: Any, n: int) -> None:
        """Set the fitted attributes of the landmarks."""
        self.radii_, unit = problem.radii, problem.unit
        Y = self._with_strays(found.Y, problem) if found.n_iter else found.Y
        sums = problem.pairs.sums(Y, self._law(), problem.radii / unit)
        self.loss_history_, self.n_iter_ = found.losses * unit**2, found.n_iter
        self.stress_ = float(sums.stress.sum()) / 2 * unit**2
        self.embedding_ = np.empty((n, Y.shape[1]), dtype)
        self.embedding_[self.landmarks_] = _centered(Y, unit)
        self.stress_per_point_ = np.empty(n)
        self.stress_per_point_[self.landmarks_] = _relative(sums, problem.radii / unit)

    def _with_strays(self, Y: np.ndarray, problem: Problem) -> np.ndarray:
        """Y, in which points that are near no other are placed like new rows.

        No pair counts for them, so that they may have been pushed out as far as they would go.
        """
        unit, pairs, law = problem.unit, problem.pairs, self._law()
        degrees = pairs.sums(Y, law, problem.radii / unit).degrees
        stray = degrees <= STRAY
        rest = np.flatnonzero(~stray)
        if not stray.any() or len(rest) <= int(self.n_neighbors):
            return Y
        delta = pairs.delta[np.ix_(stray, rest)].astype(np.float64) * unit
        own, radii = self._own_radii(delta), problem.radii[rest]
        Y = Y.copy()
        Y[stray] = place_by_law(delta, Y[rest] * unit, law, own, radii, pairs.threads) / unit
        return Y

    def _place_all(
        self, rows: np.ndarray, blocks: Iterable[tuple[slice, np.ndarray]], run: FitContext
    ) -> None:
        """Place rows that are no landmarks; ``blocks`` are their distances to the landmarks."""
        if not rows.size:
            return
        with run.monitor.phase("placing rows", total=len(rows)) as phase:
            for block, distances in blocks:
                D = np.ascontiguousarray(distances, np.float64)
                Z = self._place(D, run)
                self.embedding_[rows[block]] = Z
                self.stress_per_point_[rows[block]] = self._stress_at(Z, D, run)
                phase.advance(len(Z))

    # --- new rows -----------------------------------------------------------------------------

    def _unchecked_distances(self, X: Any, run: FitContext) -> Iterator[tuple[slice, np.ndarray]]:
        """Distances to the landmarks."""
        for rows, D in super()._unchecked_distances(X, run):
            given = self._has_distances and len(self.landmarks_) < D.shape[1]
            yield rows, np.ascontiguousarray(D[:, self.landmarks_]) if given else D

    def _own_radii(self, D: np.ndarray) -> np.ndarray:
        return self._radii_of_new(kth_smallest(D, int(self.n_neighbors)))

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        own, Y = self._own_radii(D), self.embedding_[self.landmarks_]
        return place_by_law(D, Y, self._law(), own, self.radii_, run.threads)

    def _stress_at(self, Z: np.ndarray, D: np.ndarray, run: FitContext) -> np.ndarray:
        """The relative stress of rows at the places Z."""
        own, Y = self._own_radii(D), self.embedding_[self.landmarks_]
        return _relative(sums_at(Z, D, Y, self._law(), own, self.radii_, run.threads), own)


def kth_smallest(D: np.ndarray, k: int) -> np.ndarray:
    """The k-th smallest number of each row, or the largest if there are fewer."""
    k, found = min(k, D.shape[1]) - 1, np.empty(len(D))
    for rows in row_blocks(len(D), rows_within(8 * D.shape[1])):  # the partition is a copy
        found[rows] = np.partition(D[rows], k, axis=1)[:, k]
    return found


def _centered(Y: np.ndarray, unit: float) -> np.ndarray:
    return (Y - Y.mean(axis=0)) * unit


def _relative(sums: PointSums, radii: np.ndarray) -> np.ndarray:
    """The weighted root mean square error of each point's distances, relative to its radius."""
    return np.sqrt(sums.stress / np.where(sums.degrees > 0, sums.degrees, 1.0)) / radii
