"""What methods that minimize a stress share: pairs, starts, the descent, places for new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland._core.constraints import Array, Function, Integer, Null, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import available_memory
from lowland._core.params import fitted, param
from lowland._core.threads import limit_blas
from lowland._core.validation import is_sparse
from lowland._engines.distances.dissimilarities import check_connected, known_pairs
from lowland._engines.linalg.magnitude import check_magnitude
from lowland._engines.neighbors.duplicates import (
    EqualRows,
    at_common_place,
    equal_in_distances,
)
from lowland._engines.stress import initial_map
from lowland._engines.stress.majorization import Majorized, Objective, majorize
from lowland._engines.stress.objective import AllPairs, ListedPairs, drop_negligible, inverse_powers
from lowland._engines.stress.placement import homes, place_by_stress
from lowland._engines.stress.sparse_pairs import choose_pairs, distances_to_some
from lowland.mds._base import DOUBLE_ROWS, DistanceReducer

__all__ = ["Problem", "StressReducer"]

SPARSE_GIVEN_ROWS = 2000  # a sparse matrix of distances up to this size becomes dense


class Problem(NamedTuple):
    """A loss over maps whose unit of length is ``unit``, a start, and rows that are the same."""

    objective: Any
    unit: float
    start: Callable[[], np.ndarray]
    equal: EqualRows | None


class StressReducer(DistanceReducer):
    """Minimize a stress over the places of all points."""

    init: Any = param(
        OneOf("classical", "random") | Array(), default="classical", doc="where the map starts"
    )
    n_init: int = param(
        Integer(1), default=1, doc="starts, all but the first at random; the best counts"
    )
    max_iter: int = param(Integer(0), default=300, doc="steps at most")
    tol: float = param(
        Real(0, closed="left"), default=1e-6, doc="stop when the loss falls less per step"
    )
    pairs: str = param(
        OneOf("auto", "all", "sparse"),
        default="auto",
        doc="all pairs, or neighbors and a sample; auto: all that fit in memory",
    )
    callback: Callable[..., Any] | None = param(
        Null() | Function(), default=None, doc="called as callback(step, map, loss); True stops"
    )

    stress_: float = fitted(doc="the loss of the map")
    loss_history_: np.ndarray = fitted("n_steps", doc="loss at the start and after each step")
    n_iter_: int = fitted(type=int, doc="steps done")

    # --- what a method may say otherwise -------------------------------------------------------

    def _power(self) -> int:
        """Weights are delta^-power."""
        return 0

    def _weights(self, n: int) -> Any:
        """Weights of all pairs as they were given, checked: an array, CSR or None."""
        return None

    def _loss(self, loss: np.ndarray, problem: Problem) -> np.ndarray:
        """Losses as the method states them, from those of the objective."""
        raise NotImplementedError

    def _length(self, Y: np.ndarray, problem: Problem) -> float:
        """What the length 1 of the variables is in the map."""
        return problem.unit

    def _targets(self, D: np.ndarray) -> np.ndarray:
        """What the map's distances should be, for the dissimilarities of new rows."""
        return D

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        problem = self._problem(X, run)
        with limit_blas(1):  # sums over all pairs must not depend on the number of threads
            starts = self._starts(X.shape[0], problem, run)
            found = self._lowest(problem.objective, starts, problem, run, lambda Y: Y)
            self._keep(found, problem, X)
        self.rows_ = None if self._given else X.copy()
        return self.embedding_.copy()

    def _lowest(
        self,
        objective: Objective,
        starts: Iterable[np.ndarray],
        problem: Problem,
        run: FitContext,
        points: Callable[[np.ndarray], np.ndarray],
    ) -> Majorized:
        """Where the best of all descents ended; ``points`` makes a map of the variables."""
        best: Majorized | None = None
        for start in starts:
            found = majorize(
                objective,
                start,
                max_iter=self.max_iter,
                tol=self.tol,
                monitor=run.monitor,
                shown=lambda Y: self._map(points(Y), problem),
                told=lambda loss: float(self._loss(np.array(loss), problem)),
            )
            if best is None or found.losses[-1] < best.losses[-1]:
                best = found
            if run.monitor.stopped:
                break
        assert best is not None
        return best

    def _map(self, Y: np.ndarray, problem: Problem) -> np.ndarray:
        return (Y - Y.mean(axis=0)) * self._length(Y, problem)

    def _keep(self, found: Majorized, problem: Problem, X: Any) -> None:
        self.embedding_ = self._map(found.Y, problem).astype(X.dtype)
        self.loss_history_ = self._loss(found.losses, problem)
        self.stress_, self.n_iter_ = float(self.loss_history_[-1]), found.n_iter
        self.stress_per_point_ = problem.objective.relative_per_point(found.Y)

    def _problem(self, X: Any, run: FitContext) -> Problem:
        if self._given and is_sparse(X):
            if X.shape[0] > SPARSE_GIVEN_ROWS or self.pairs == "sparse":
                return self._listed(X, run)
            X = _with_unknowns(X)
        if self._wants_sparse(X.shape[0]):
            return self._sparse(X, run)
        D = self._distances(X, run, "use pairs='sparse'")
        return self._dense(D, run)

    def _wants_sparse(self, n: int) -> bool:
        if self.pairs != "auto" or self._given:  # given distances fit in memory: they are there
            return self.pairs == "sparse"
        return n > 4 * DOUBLE_ROWS and 4 * n * n > available_memory() // 2

    def _dense(self, D: np.ndarray, run: FitContext) -> Problem:
        n, q = len(D), int(self.n_components)
        check_magnitude(float(np.nanmax(D)), type(self).__name__)
        dtype = np.float64 if n <= DOUBLE_ROWS else np.float32
        unit = _root_mean_square(D)
        target = D if not self._given and D.dtype == dtype else np.empty((n, n), dtype)
        delta = np.divide(D, unit, out=target, casting="same_kind")
        drop_negligible(delta, self._power())
        W = self._weights(n)
        if is_sparse(W):
            W = W.toarray()
        weights = None if W is None else np.ascontiguousarray(W, dtype)
        if weights is not None or np.isnan(delta.sum(dtype=np.float64)):
            known = ~np.isnan(delta) & (True if weights is None else weights > 0)
            check_connected(n, *np.nonzero(np.triu(known, 1)), type(self).__name__)
            delta = np.where(known, delta, np.nan).astype(dtype)
            np.fill_diagonal(delta, 0.0)
        objective = AllPairs(delta, weights, self._power(), run.threads)
        return Problem(
            objective,
            unit,
            lambda: initial_map.classical_start(delta, q, run),
            equal_in_distances(delta),
        )

    def _listed(self, D: Any, run: FitContext) -> Problem:
        i, j, delta = known_pairs(D)
        n, q = D.shape[0], int(self.n_components)
        W, weights = self._weights(n), None
        if W is not None:
            weights = np.asarray(W[i, j], np.float64).ravel()
            kept = weights > 0
            i, j, delta, weights = i[kept], j[kept], delta[kept], weights[kept]
        check_connected(n, i, j, type(self).__name__)
        check_magnitude(float(delta.max()), type(self).__name__)
        unit = float(np.sqrt(np.mean(np.square(delta, dtype=np.float64)))) or 1.0
        delta = delta.astype(np.float64) / unit
        if self._power():
            drop_negligible(delta, self._power())
            weights = inverse_powers(delta, self._power())
        objective = ListedPairs(n, i, j, delta, weights, run.threads)
        return Problem(objective, unit, lambda: initial_map.landmark_start(D / unit, q, run), None)

    def _sparse(self, X: Any, run: FitContext) -> Problem:
        name = type(self).__name__
        if self._weights(X.shape[0]) is not None:
            raise ParameterError(
                f"{name}: weights need all pairs; set pairs='all', or give a sparse matrix of "
                "distances with metric='precomputed'."
            )
        if self._given and np.isnan(X.sum()):
            i, j = np.argwhere(np.isnan(X))[0]
            raise ParameterError(
                f"{name}: pairs='sparse' chooses from all distances, but X[{i}, {j}] is not known; "
                "set pairs='auto', or give the known ones as a sparse matrix."
            )
        chosen = choose_pairs(X, self.metric, self.metric_params, run)
        check_magnitude(float(chosen.delta.max()), name)
        unit, q = chosen.unit(), int(self.n_components)
        objective = chosen.objective(unit, self._power(), run.threads)

        def start() -> np.ndarray:
            n = X.shape[0]
            some = np.sort(run.rng.choice(n, min(n, initial_map.LANDMARKS), replace=False))
            D = distances_to_some(X, some, self.metric, self.metric_params, run)
            return initial_map.landmark_map(D / unit, some, q, run)

        return Problem(objective, unit, start, None)

    def _starts(self, n: int, problem: Problem, run: FitContext) -> Iterator[np.ndarray]:
        q = int(self.n_components)
        for number in range(self.n_init):
            if number > 0 or (isinstance(self.init, str) and self.init == "random"):
                Y = initial_map.random_start(n, q, run.rng)
            elif isinstance(self.init, str):
                Y = problem.start()
            else:
                Y = initial_map.given_start(self.init, n, q, problem.unit)
            objective = problem.objective
            if self.max_iter > 0:
                # rows that start at one place feel the same forces and stay together
                Y = at_common_place(Y, problem.equal)
                if objective(Y).loss > 1e-12 * objective.scale:
                    Y = at_common_place(initial_map.parted(Y, run.rng), problem.equal)
            yield Y

    # --- new rows -----------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        Z = np.empty((X.shape[0], int(self.n_components)))
        shared = self.embedding_, self._power()
        for rows, D in self._blocks_of_distances(X, run):
            targets = self._targets(D)
            home = homes(D, targets, *shared, run.threads)
            Z[rows] = place_by_stress(targets, *shared, home, run.threads)
        return Z.astype(X.dtype)


def _root_mean_square(D: np.ndarray) -> float:
    """Of the known entries, a block of rows at a time; 1 if all are 0."""
    total, count = 0.0, 0
    for start in range(0, len(D), 256):
        known = np.square(D[start : start + 256], dtype=np.float64)
        total, count = total + float(np.nansum(known)), count + int((~np.isnan(known)).sum())
    return float(np.sqrt(total / count)) or 1.0


def _with_unknowns(D: Any) -> np.ndarray:
    """The upper triangle of a sparse matrix as a symmetric array, NaN where nothing is stored."""
    dense = np.full(D.shape, np.nan, D.dtype)
    i, j, delta = known_pairs(D)
    dense[i, j] = dense[j, i] = delta
    np.fill_diagonal(dense, 0.0)
    return dense
