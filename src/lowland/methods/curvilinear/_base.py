"""The bases of methods that keep short distances: starts, descents, new rows; radii that shrink."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Array, Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above, some_of
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate, Reading
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.local_stress import objective
from lowland._engines.local_stress.objective import (
    Annealed,
    LocalStress,
    anneal,
    place_by_law,
    sums_at,
)
from lowland._engines.neighbors.duplicates import EqualRows, at_common_place, equal_in_distances
from lowland._engines.stress import classical_scaling, initial_map
from lowland.methods._bases.distances import FLOAT64_ROWS, DistanceReducer, random_landmarks


class CurvilinearReducer(DistanceReducer):
    """A map that keeps short distances, found by a descent over the places of all points.

    A method writes ``_fit``, which starts at ``_start``, and ``_place``, which finds places for new
    rows from their distances to the fitted rows.

    Parameters
    ----------
    init : {"classical", "random"} or array of shape (n, n_components), default="classical"
        The start: classical scaling (PCA for Euclidean rows), random points, or given coordinates.
    max_iter : int, default=200
        Maximum number of steps. 0 keeps the start.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, centered, in the unit of the distances.
    stress_ : float
        The objective of the method at the map.
    loss_history_ : ndarray of shape (n_steps,)
        What the descent lowers, at the start and after each step.
    """

    init: Any = param(OneOf("classical", "random") | Array(), default="classical")
    max_iter: int = param(Integer(0), default=200)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    stress_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")
    n_iter_: int = fitted(type=int)

    reading = Reading(
        axes="The axes have no meaning. Only short distances can be read.",
        distances="Short distances are those of the data. Long distances are given up where they "
        "contradict short ones.",
        gaps="A gap separates rows that are not neighbors, or it is a tear: a closed surface has "
        "to be cut to lie flat. The continuity measures how often neighbors were torn apart.",
        sizes="The size of a small group is its size in the data. Large groups may be stretched.",
        scale="The axes have the unit of the distances.",
    )

    # --- the start ----------------------------------------------------------------------------

    def _start(self, X: Any, run: FitContext, D: np.ndarray | None = None) -> np.ndarray:
        """The start that ``init`` asks for, centered, in the unit of the distances.

        ``D`` are all distances, if there are any; without them a few landmarks are enough.
        """
        n, q = X.shape[0], int(self.n_components)
        if not isinstance(self.init, str):
            return initial_map.given_start(self.init, n, q, 1.0)
        classical = self._classical_start(X, D, run)
        if self.init == "classical":
            return classical
        size = float(np.sqrt(np.mean(np.square(classical)))) or 1.0
        return initial_map.random_start(n, q, run.rng) * (size * np.sqrt(2 * q))

    def _classical_start(self, X: Any, D: np.ndarray | None, run: FitContext) -> np.ndarray:
        q = int(self.n_components)
        if isinstance(self.metric, str) and self.metric == "euclidean":
            return classical_scaling.of_rows(X, q, run).Y
        if D is not None:
            return initial_map.classical_start(D, q, run)
        return self._landmark_start(X, 1.0, run)

    # --- the descent --------------------------------------------------------------------------

    def _separated(self, Y: np.ndarray, equal: EqualRows | None, run: FitContext) -> np.ndarray:
        """Y without points that coincide by chance; equal rows share one place.

        Equal rows that start at one place have the same gradient and stay together.
        """
        Y = at_common_place(Y, equal)
        return at_common_place(initial_map.separated(Y, run.rng), equal)

    def _annealed(
        self,
        objective_at: Callable[[float, np.ndarray], LocalStress],
        start: np.ndarray,
        unit: float,
        power: int,
        run: FitContext,
    ) -> Annealed:
        """The end of the annealing of an objective in units of ``unit**power``."""
        with limit_blas(1):  # sums over all points must not depend on the number of threads
            return anneal(
                objective_at,
                start,
                max_iter=int(self.max_iter),
                tol=float(self.tol),  # type: ignore[attr-defined]
                monitor=run.monitor,
                shown=lambda Y: centered(Y, unit),
                told=lambda loss: loss * unit**power,
            )


def centered(Y: np.ndarray, unit: float) -> np.ndarray:
    """The map of the points Y, in the unit of the distances."""
    return (Y - Y.mean(axis=0)) * unit


def in_unit(D: np.ndarray, unit: float) -> np.ndarray:
    """D / unit, in single precision for many rows."""
    dtype = np.float64 if len(D) <= FLOAT64_ROWS else np.float32
    return np.divide(D, unit, dtype=dtype, casting="same_kind")


ALL_ROWS, LANDMARKS = 4000, 2000  # "auto" takes all rows up to here, and of more rows so many

STRAY = 1 + 1e-9  # the sum of weights of a point that counts for itself only


class Problem(NamedTuple):
    """All pairs of the landmarks, in units of ``unit``; ``equal`` rows share one place.

    ``radii`` are in the unit of the data: a product with the unit could lose the k-th neighbor.
    """

    pairs: objective.AllPairs
    unit: float
    radii: np.ndarray
    equal: EqualRows | None


class RadialReducer(CurvilinearReducer):
    """A local stress with radii that shrink to those of neighborhoods.

    A method writes ``_law``, and may write ``_radii``, the final radii of points from the distances
    to their k-th neighbors.

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

    landmarks_: np.ndarray = fitted("n_landmarks", type=int, meaning=some_of("n_samples"))
    radii_: np.ndarray = fitted("n_landmarks", meaning=above(0))
    fitted_rows_: Any = fitted("n_landmarks", "n_features", optional=True, sparse=True)

    @classmethod
    def _radial_cost(cls, n: int, p: int) -> Estimate:
        """Cost of a fit with 300 steps, and of placing the rows that are not landmarks."""
        m = n if n <= ALL_ROWS else LANDMARKS
        distances = cls._distances_cost(m, p)
        steps = Estimate(300 * (7e-10 * m * m + 1e-4), 4 * m * m).holding(distances.n_bytes)
        place = Estimate((n - m) * m * (1.5e-7 + 1e-10 * p), 3e7 if n > m else 0)
        return (Estimate(0.05, 0) + distances + steps + place).holding(16 * n * p)

    # --- what a method writes -----------------------------------------------------------------

    def _law(self) -> objective.Law:
        raise NotImplementedError

    def _radii(self, kth: np.ndarray) -> np.ndarray:
        """The final radii of the landmarks, all above 0; by default the same for all."""
        return np.full(len(kth), float(kth.mean()) or 1.0)

    def _radii_of_new(self, kth: np.ndarray) -> np.ndarray:
        """The radii of new rows, from the distances to their k-th nearest landmarks."""
        return np.maximum(kth, float(self.radii_.min()))

    def _widest(self, Y: np.ndarray, delta: np.ndarray) -> float:
        """The radius that the annealing begins with: about the largest distance of the start."""
        return objective.farthest(Y)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n = X.shape[0]
        auto, owner = (ALL_ROWS, LANDMARKS), type(self).__name__
        self.landmarks_ = random_landmarks(self.landmarks, n, auto, owner, run)
        A = self._part_of(X, self.landmarks_)
        self._fit_landmarks(X, A, self._distances(A, run, "set landmarks to fewer rows"), run)
        self.fitted_rows_ = None if self._has_distances else A.copy()
        others = np.setdiff1d(np.arange(n), self.landmarks_)
        if others.size:
            self._place_all(others, self._distances_to_fitted(X[others], run), run)
        return self.embedding_.copy()

    def _fit_landmarks(self, X: Any, A: Any, D: np.ndarray, run: FitContext) -> None:
        """Map the landmarks, rows A of X with distances D, and set what is fitted of them."""
        problem = self._problem(D, run)
        if isinstance(self.init, str):
            start = self._start(A, run, D)
        else:
            shape = X.shape[0], int(self.n_components)
            start = initial_map.given_start(self.init, *shape, 1.0)[self.landmarks_]
        self._keep(self._descend(problem, start, run), problem, X.dtype, X.shape[0])

    def _problem(self, D: np.ndarray, run: FitContext) -> Problem:
        """All pairs of a matrix of distances, which is not changed."""
        n = len(D)
        require_memory(
            n * n * (8 if n <= FLOAT64_ROWS else 4),
            task=f"{type(self).__name__} with all pairs of {n} rows",
            alternative="set landmarks to fewer rows",
        )
        unit = float(np.sqrt(np.einsum("ij,ij->", D, D, dtype=np.float64) / (n * n))) or 1.0
        delta = in_unit(D, unit)
        kth = kth_smallest(D, int(self.n_neighbors) + 1)  # the first is the row itself
        radii = self._radii(kth)
        return Problem(
            objective.AllPairs(delta, run.threads), unit, radii, equal_in_distances(delta)
        )

    def _descend(self, problem: Problem, start: np.ndarray, run: FitContext) -> objective.Annealed:
        Y, law = start / problem.unit, self._law()
        final = problem.radii / problem.unit
        if self.max_iter > 0 and problem.pairs.delta.any():
            Y = self._separated(Y, problem.equal, run)
        elif self.max_iter > 0:
            Y = at_common_place(Y, problem.equal)
        widest = np.maximum(final, self._widest(Y, problem.pairs.delta))

        # a step makes creases in which points are caught; where it is smooth, fewer are
        softer = law._replace(kind="sigmoid") if law.kind == "step" else law

        def objective_at(t: float, Y: np.ndarray) -> objective.LocalStress:
            if t == 1:
                return objective.LocalStress(problem.pairs, law, final)
            return objective.LocalStress(
                problem.pairs, softer, objective.geometric(widest, final, t)
            )

        return self._annealed(objective_at, Y, problem.unit, 2, run)

    def _keep(self, found: objective.Annealed, problem: Problem, dtype: Any, n: int) -> None:
        """Set the fitted attributes of the landmarks."""
        self.radii_, unit = problem.radii, problem.unit
        Y = self._with_strays(found.Y, problem) if found.n_iter else found.Y
        sums = problem.pairs.sums(Y, self._law(), problem.radii / unit)
        self.loss_history_, self.n_iter_ = found.losses * unit**2, found.n_iter
        self.stress_ = float(sums.stress.sum()) / 2 * unit**2
        self.embedding_ = np.empty((n, Y.shape[1]), dtype)
        self.embedding_[self.landmarks_] = centered(Y, unit)
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
        """Place rows that are not landmarks; ``blocks`` are their distances to the landmarks."""
        with run.monitor.phase("placing rows", total=len(rows)) as phase:
            for block, distances in blocks:
                D = np.ascontiguousarray(distances, np.float64)
                Z = self._place(D, run)
                self.embedding_[rows[block]] = Z
                self.stress_per_point_[rows[block]] = self._stress_at(Z, D, run)
                phase.advance(len(Z))

    # --- new rows -----------------------------------------------------------------------------

    def _compared(self) -> Any:
        return self.landmarks_

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


def _relative(sums: objective.PointSums, radii: np.ndarray) -> np.ndarray:
    """The weighted root mean square error of each point's distances, relative to its radius."""
    return np.sqrt(sums.stress / np.where(sums.degrees > 0, sums.degrees, 1.0)) / radii
