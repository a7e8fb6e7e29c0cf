"""The base of methods that minimize a stress: pairs, starts, the descent, out-of-sample rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Array, Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import available_memory
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse
from lowland._engines.distances.dissimilarities import check_connected, known_pairs
from lowland._engines.linalg import products
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.duplicates import EqualRows, at_common_place, equal_in_distances
from lowland._engines.stress import initial_map
from lowland._engines.stress.classical_scaling import classical_scaling_cost
from lowland._engines.stress.majorization import Majorized, Objective, majorization_cost, majorize
from lowland._engines.stress.objective import AllPairs, ListedPairs, drop_negligible, inverse_powers
from lowland._engines.stress.placement import equal_points, place_by_stress
from lowland._engines.stress.sparse_pairs import choose_pairs
from lowland.methods._bases.distances import FLOAT64_ROWS, DistanceReducer

# Points that a descent cannot move: each is tried at other places while all others stay.
#
# A point on the wrong side of the map is held there, because on its way across the stress rises.
# The places of a grid over the map are tried for all points at once: with E the distances between
# the m places and the n points, the stress of point i at place c is, up to a constant, sum_j
# E_cj^2 - 2 sum_j delta_ij E_cj, one product of delta with an n x m matrix. It costs as much as
# some ten steps of the descent.


SIDES = {1: 64, 2: 12, 3: 5}  # places along each axis, by the number of axes
LEAST_GAIN = 1e-9  # of the whole stress


def can_relocate(objective: Any, n_components: int) -> bool:
    """Whether the objective is the raw stress of all pairs, of maps with one to three axes."""
    return n_components in SIDES and isinstance(objective, AllPairs) and objective.uniform


def relocated(objective: AllPairs, Y: np.ndarray) -> np.ndarray | None:
    """Y with the points that have a lower stress at a place of the grid put there; None if none.

    The loss of the result is lower than that of Y. Only where :func:`can_relocate`.
    """
    places = _grid(Y, SIDES[Y.shape[1]])
    E = np.sqrt(((Y[:, None, :] - places) ** 2).sum(axis=2))  # n x m
    crossed = products.times(objective.delta, np.zeros(len(Y)), E, objective.threads)
    # without the distance of the point to itself; the terms delta^2 are the same everywhere
    tried = (E**2).sum(axis=0) - E**2 - 2 * crossed.astype(np.float64)
    here, _ = objective.per_point(Y)
    known = np.einsum("ij,ij->i", objective.delta, objective.delta, dtype=np.float64)
    best = tried.argmin(axis=1)
    gains = here - known - tried[np.arange(len(Y)), best]
    loss = objective(Y).loss
    order = np.argsort(-gains, kind="stable")
    for moved in (order[gains[order] > LEAST_GAIN * loss], order[:1]):
        # all that gain; if they gain only apart from each other, the one that gains most
        Z = Y.copy()
        Z[moved] = places[best[moved]]
        if moved.size and objective(Z).loss < loss * (1 - LEAST_GAIN):
            return Z
    return None


def _grid(Y: np.ndarray, side: int) -> np.ndarray:
    """The middles of the cells of a grid over the box of the points."""
    low, high = Y.min(axis=0), Y.max(axis=0)
    shares = (np.arange(side) + 0.5) / side
    axes = [a + (b - a) * shares for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, Y.shape[1])


# Stress problems: the loss over maps for all pairs, for listed pairs, or for a sample of pairs.


class Problem(NamedTuple):
    """A loss over maps.

    Attributes
    ----------
    objective : object
        The loss; its maps and distances are divided by ``unit``.
    unit : float
        The root mean square of the dissimilarities.
    start : callable
        Gives the classical start.
    equal : EqualRows or None
        Rows that share one place in the map.
    """

    objective: Any
    unit: float
    start: Callable[[], np.ndarray]
    equal: EqualRows | None


def with_unknowns(D: Any) -> np.ndarray:
    """The upper triangle of a sparse matrix as a symmetric array, NaN where nothing is stored."""
    dense = np.full(D.shape, np.nan, D.dtype)
    i, j, delta = known_pairs(D)
    dense[i, j] = dense[j, i] = delta
    np.fill_diagonal(dense, 0.0)
    return dense


def _root_mean_square(D: np.ndarray) -> float:
    """The root mean square of the known entries; 1 if all are 0."""
    total, count = 0.0, 0
    for rows in row_blocks(len(D), 256):
        known = np.square(D[rows], dtype=np.float64)
        total, count = total + float(np.nansum(known)), count + int((~np.isnan(known)).sum())
    return float(np.sqrt(total / count)) or 1.0


RELOCATIONS = 3  # how often points are put to better places at most
ROUGH = 1e-3  # the tolerance until then
SPARSE_GIVEN_ROWS = 2000  # a sparse matrix of distances up to this size becomes dense


class StressReducer(DistanceReducer):
    """A map that minimizes a stress over the coordinates of all points.

    A method writes those of the hooks below that differ from the default, which is raw stress, or
    the stress with the ``power`` of a parameter of that name.

    Parameters
    ----------
    metric : str or function, default="euclidean"
        Distance between rows: a name, a function of two rows, or "precomputed". With
        "precomputed", X holds the distances of the fitted rows, n x n or condensed, and new rows
        are given by their distances to the fitted rows. Unknown distances are NaN, or are not
        stored in a sparse matrix.
    init : {"classical", "random"} or array of shape (n, n_components), default="classical"
        The start: classical scaling, random points, or given coordinates.
    n_init : int, default=1
        Number of starts, of which the map with the lowest stress is kept. All but the first are
        random.
    max_iter : int, default=300
        Maximum number of steps. 0 keeps the start.
    tol : float, default=1e-6
        The fit stops when a step lowers the loss by less than this share of it.
    pairs : {"auto", "all", "sparse"}, default="auto"
        Use all pairs, or ten neighbors and 252 random partners of each row ("sparse"). "auto" is
        "sparse" if the distances of all pairs take more than half of the memory.

    Attributes
    ----------
    stress_ : float
        Stress of the map; with "sparse" pairs an estimate.
    loss_history_ : ndarray of shape (n_steps,)
        Loss at the start and after each step; it never increases.
    """

    init: Any = param(OneOf("classical", "random") | Array(), default="classical")
    n_init: int = param(Integer(1), default=1)
    max_iter: int = param(Integer(0), default=300)
    tol: float = param(Real(0, closed="left"), default=1e-6)
    pairs: str = param(OneOf("auto", "all", "sparse"), default="auto")
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    stress_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")
    n_iter_: int = fitted(type=int)

    @classmethod
    def _stress_cost(cls, n: int, p: int, n_steps: int) -> Estimate:
        """Cost of a fit with so many steps over all pairs."""
        distances = cls._distances_cost(n, p)
        descent = classical_scaling_cost(n, 2) + majorization_cost(n, 2, n_steps)
        work = distances + descent.holding(distances.n_bytes + 4 * n * n)
        return (Estimate(0.03, 0) + work).holding(16 * n * p)

    # --- what a method may define otherwise ---------------------------------------------------

    def _power(self) -> int:
        """The weight of a pair is delta^-power."""
        return int(getattr(self, "power", 0))

    def _weights(self, n: int) -> Any:
        """Given weights of all pairs, checked: an array, CSR or None."""
        return None

    def _stated_loss(self, loss: np.ndarray, problem: Problem) -> np.ndarray:
        """The loss as the method defines it, from the loss of the objective."""
        if self._power() != 1:
            return loss * problem.unit ** (2 - self._power())
        scale = float(problem.objective.scale)  # with w = 1/delta it is the sum of the distances
        return loss / (scale if scale > 0 else 1.0)

    def _map_unit(self, Y: np.ndarray, problem: Problem) -> float:
        """The length in the map of a length of 1 in the variables Y of the objective."""
        return problem.unit

    def _targets(self, D: np.ndarray) -> np.ndarray:
        """The distances that new rows with the dissimilarities D should have in the map."""
        return D

    def _all_pairs(self, D: np.ndarray, run: FitContext) -> Problem:
        """The stress of all pairs. NaN in D is unknown; D is overwritten unless it was given."""
        n, power = len(D), self._power()
        W, unit = self._weights(n), _root_mean_square(D)
        dtype = np.float64 if n <= FLOAT64_ROWS else np.float32
        own = not self._has_distances and D.dtype == dtype
        target = D if own else np.empty((n, n), dtype)
        delta = np.divide(D, unit, out=target, casting="same_kind")
        drop_negligible(delta, power)
        W = W.toarray() if is_sparse(W) else W
        weights = None if W is None else np.ascontiguousarray(W, dtype)
        if weights is not None or np.isnan(delta.sum(dtype=np.float64)):
            known = ~np.isnan(delta) & (True if weights is None else weights > 0)
            check_connected(n, *np.nonzero(np.triu(known, 1)), type(self).__name__)
            delta = np.where(known, delta, np.nan).astype(dtype)
            np.fill_diagonal(delta, 0.0)
        start = partial(initial_map.classical_start, delta, int(self.n_components), run)
        objective = AllPairs(delta, weights, power, run.threads)
        return Problem(objective, unit, start, equal_in_distances(delta))

    def _listed_pairs(self, D: Any, run: FitContext) -> Problem:
        """The stress of the pairs that a sparse matrix of distances stores."""
        i, j, delta = known_pairs(D)
        n, power = D.shape[0], self._power()
        W, weights = self._weights(n), None
        if W is not None:
            weights = np.asarray(W[i, j], np.float64).ravel()
            kept = weights > 0
            i, j, delta, weights = i[kept], j[kept], delta[kept], weights[kept]
        check_connected(n, i, j, type(self).__name__)
        unit = float(np.sqrt(np.mean(np.square(delta, dtype=np.float64)))) or 1.0
        delta = delta.astype(np.float64) / unit
        if power:
            drop_negligible(delta, power)
            weights = inverse_powers(delta, power)
        pairs = ListedPairs(n, i, j, delta, weights, run.threads)
        q = int(self.n_components)
        return Problem(pairs, unit, lambda: initial_map.landmark_start(D / unit, q, run), None)

    def _sampled_pairs(self, X: Any, run: FitContext) -> Problem:
        """An estimate of the stress of all pairs from neighbors and random pairs."""
        name = type(self).__name__
        if self._weights(X.shape[0]) is not None:
            raise ParameterError(
                f"{name}: weights need all pairs; set pairs='all', or give a sparse matrix of "
                "distances with metric='precomputed'."
            )
        if self._has_distances and np.isnan(X.sum()):
            i, j = np.argwhere(np.isnan(X))[0]
            raise ParameterError(
                f"{name}: pairs='sparse' chooses from all distances, but X[{i}, {j}] is not known; "
                "set pairs='auto', or give the known distances as a sparse matrix."
            )
        chosen = choose_pairs(X, self.metric, self.metric_params, run)
        unit = chosen.unit()
        objective = chosen.objective(unit, self._power(), run.threads)
        return Problem(objective, unit, partial(self._landmark_start, X, unit, run), None)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        problem = self._problem(X, run)
        with limit_blas(1):  # sums over all pairs must not depend on the number of threads
            starts = self._starts(X.shape[0], problem, run)
            found = self._descend(problem.objective, starts, problem, run)
            self._keep(found, problem, X)
        self.fitted_rows_ = None if self._has_distances else X.copy()
        return self.embedding_.copy()

    def _problem(self, X: Any, run: FitContext) -> Problem:
        n = X.shape[0]
        if self._has_distances and is_sparse(X):
            if n > SPARSE_GIVEN_ROWS or self.pairs == "sparse":
                return self._listed_pairs(X, run)
            X = with_unknowns(X)
        if self._takes_sample(n):
            return self._sampled_pairs(X, run)
        return self._all_pairs(self._distances(X, run, "use pairs='sparse'"), run)

    def _takes_sample(self, n: int) -> bool:
        if self.pairs != "auto" or self._has_distances:  # given distances are in memory already
            return self.pairs == "sparse"
        return n > 4 * FLOAT64_ROWS and 4 * n * n > available_memory() // 2

    def _starts(self, n: int, problem: Problem, run: FitContext) -> Iterator[np.ndarray]:
        q, objective = int(self.n_components), problem.objective
        for number in range(self.n_init):
            if number > 0 or (isinstance(self.init, str) and self.init == "random"):
                Y = initial_map.random_start(n, q, run.rng)
            elif isinstance(self.init, str):
                Y = problem.start()
            else:
                Y = initial_map.given_start(self.init, n, q, problem.unit)
            if self.max_iter > 0:
                # equal rows that start at one place have the same gradient and stay together
                Y = at_common_place(Y, problem.equal)
                if objective(Y).loss > 1e-12 * objective.scale:
                    Y = at_common_place(initial_map.separated(Y, run.rng), problem.equal)
            yield Y

    def _descend(
        self,
        objective: Objective,
        starts: Iterable[np.ndarray],
        problem: Problem,
        run: FitContext,
        points: Callable[[np.ndarray], np.ndarray] = lambda Y: Y,
    ) -> Majorized:
        """The lowest end of the descents from all starts; ``points`` maps variables to points.

        A given start is followed to its own minimum; on the way from others, points may move.
        """
        movable = can_relocate(objective, int(self.n_components)) and isinstance(self.init, str)
        best: Majorized | None = None
        for start in starts:
            if movable:
                found = self._with_relocations(start, problem, run)
            else:
                found = self._descent(objective, start, problem, run, points)
            if best is None or found.losses[-1] < best.losses[-1]:
                best = found
            if run.monitor.stopped:
                break
        assert best is not None
        return best

    def _descent(
        self,
        objective: Objective,
        start: np.ndarray,
        problem: Problem,
        run: FitContext,
        points: Callable[[np.ndarray], np.ndarray] = lambda Y: Y,
        tol: float | None = None,
        steps_before: int = 0,
    ) -> Majorized:
        return majorize(
            objective,
            start,
            max_iter=self.max_iter,
            tol=self.tol if tol is None else tol,
            monitor=run.monitor,
            shown=lambda Y: self._map(points(Y), problem),
            told=lambda loss: float(self._stated_loss(np.array(loss), problem)),
            steps_before=steps_before,
        )

    def _with_relocations(self, start: np.ndarray, problem: Problem, run: FitContext) -> Majorized:
        """A rough descent, single points put to better places, and the descent to the end.

        Points that a descent cannot move are known long before it ends.
        """
        rough = max(ROUGH, float(self.tol))
        found = self._descent(problem.objective, start, problem, run, tol=rough)
        for _ in range(RELOCATIONS):
            if self._is_over(found, problem, run):
                return found
            Y = relocated(problem.objective, found.Y)
            Y = None if Y is None else at_common_place(Y, problem.equal)
            if Y is None or problem.objective(Y).loss >= found.losses[-1]:
                break
            found = self._followed(found, Y, problem, run, tol=rough)
        if self._is_over(found, problem, run) or rough <= self.tol:
            return found
        return self._followed(found, found.Y, problem, run, tol=float(self.tol))

    def _is_over(self, found: Majorized, problem: Problem, run: FitContext) -> bool:
        done = found.losses[-1] <= problem.objective.floor or found.n_iter >= self.max_iter
        return done or not found.converged or run.monitor.stopped

    def _followed(
        self, found: Majorized, Y: np.ndarray, problem: Problem, run: FitContext, tol: float
    ) -> Majorized:
        """``found``, and after it the descent from Y; a move to another Y counts as a step."""
        moved = Y is not found.Y
        more = self._descent(
            problem.objective, Y, problem, run, tol=tol, steps_before=found.n_iter + moved
        )
        losses = np.concatenate([found.losses, more.losses[1 - moved :]])
        return more._replace(losses=losses, n_iter=len(losses) - 1)

    def _map(self, Y: np.ndarray, problem: Problem) -> np.ndarray:
        """The map of the points Y: centered, in the unit of the map."""
        return (Y - Y.mean(axis=0)) * self._map_unit(Y, problem)

    def _keep(self, found: Majorized, problem: Problem, X: Any) -> None:
        """Set the fitted attributes."""
        self.embedding_ = self._map(found.Y, problem).astype(X.dtype)
        self.loss_history_ = self._stated_loss(found.losses, problem)
        self.stress_, self.n_iter_ = float(self.loss_history_[-1]), found.n_iter
        self.stress_per_point_ = problem.objective.relative_per_point(found.Y)

    # --- new rows -----------------------------------------------------------------------------

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        shared = self.embedding_, self._power()
        targets = self._targets(D)
        equal = equal_points(D, targets, *shared, run.threads)
        return place_by_stress(targets, *shared, equal, run.threads)
