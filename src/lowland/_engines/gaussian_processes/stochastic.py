"""Latent variable models of long tables: parts of the rows train the process, then all of them.

    E = -F(X, Z, theta, s^2) - log N(X; 0, I),   F: the bound of :mod:`sparse`

A random part of the rows is fitted by L-BFGS on all unknowns. Given the process, each further row
has its own likeliest place (:mod:`places`), so a part four times as large is placed by the
process of the smaller one and fitted by half as many steps, and so on to the whole table. Sums
over rows are made in blocks, so memory is O(n q).

E per value, trustworthiness of the map and CPU seconds on 10 000 rows with 50 inducing points and
``max_iter=200``; compared with 200 steps of L-BFGS on all rows from the same start; and with 25
epochs of mini-batches of 500 rows (natural gradients for the process as in Hensman, Fusi & Lawrence
2013, Adam with rate .02 for Z, theta and s^2, two Newton steps for the rows; not tuned further):

                     parts                all rows             mini-batches
    MNIST, 50 axes   1.048  .968  4 s     1.118  .942  7 s     1.121  .946   59 s
    oil flow         -.430  .981  3 s     -.350  .984  7 s     -.287  .995  104 s (50 epochs)
    swiss roll      -1.557  .992  3 s    -1.535  .987  5 s     -.792  .997   50 s

So E is lower and time shorter in all three; maps of mini-batches, which fit less closely, keep the
neighbors of oil flow and roll better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.traits import Estimate
from lowland._engines.gaussian_processes.exact import Posterior
from lowland._engines.gaussian_processes.places import likely_starts, place_rows
from lowland._engines.gaussian_processes.sparse import (
    SparseProcess,
    sparse_bound,
    sparse_posterior,
    sparse_value,
)
from lowland._engines.grids.nearest_units import nearest_units
from lowland._engines.network.quasi_newton import Minimum, minimize

FIRST_ROWS = 500  # of the first part, or ROWS_PER_INPUT for each inducing point
ROWS_PER_INPUT = 10
GROWTH = 4  # about how much larger each part is
LEAST_STEPS = 10  # on each part, if max_iter allows
PLACE_STEPS = 10  # of Newton's method, for each row of a new part
CANDIDATES = 1000  # places that a row may start from
PAIRS_BYTES = 2**28  # of the pairs of L-BFGS
LOG_BOUNDS = (-10.0, 10.0)  # of the logarithms of the parameters
LOG_NOISE_BOUNDS = (float(np.log(1e-6)), float(np.log(1e2)))  # of s^2, for standardized rows


class Trained(NamedTuple):
    """The process at all places, its posterior and the bound F of all rows, E per value by steps.

    ``losses`` begin with the start. Each is that of the part of the rows on which the step was
    taken, an estimate of the whole table's; the last ones are those of the whole table,
    unless training was stopped before. ``bound`` is that of the whole table in any case.
    ``converged`` states whether the steps on the whole table ended by ``tol``.
    """

    process: SparseProcess
    posterior: Posterior
    bound: float
    losses: np.ndarray
    n_iter: int
    converged: bool


def _vector(at: SparseProcess, step: float) -> np.ndarray:
    """theta, log s^2, Z / step and X / step."""
    places = np.concatenate([at.Z.ravel(), at.X.ravel()]) / step
    return np.concatenate([at.theta, [at.log_noise], places])


def _of_vector(like: SparseProcess, vector: np.ndarray, step: float) -> SparseProcess:
    """The process of the same shapes whose vector this is."""
    at = len(like.theta) + 1
    places, end = step * vector[at:], like.Z.size
    Z, X = places[:end].reshape(like.Z.shape), places[end:].reshape(like.X.shape)
    return SparseProcess(like.covariance, vector[: at - 1], float(vector[at - 1]), X, Z)


def part_sizes(n: int, m: int) -> list[int]:
    """Numbers of rows of the parts, the last of which is the table; m inducing points.

    >>> part_sizes(100_000, 50), part_sizes(1900, 50)
    ([1562, 6250, 25000, 100000], [1900])
    """
    sizes = [n]
    while sizes[0] // GROWTH >= _first_rows(m):
        sizes.insert(0, sizes[0] // GROWTH)
    return sizes


def part_steps(sizes: list[int], m: int, max_iter: int) -> list[int]:
    """At most so many steps on each part: in total, O(sqrt(n)) times the cost of the first one.

    >>> part_steps(part_sizes(100_000, 50), 50, 400)
    [400, 113, 57, 28]
    """
    shares = np.sqrt(_first_rows(m) / np.array(sizes[1:]))
    fewer = [max(LEAST_STEPS, round(min(max_iter, 10**9) * share)) for share in shares]
    return [max_iter, *(min(max_iter, steps) for steps in fewer)]


def _first_rows(m: int) -> int:
    return max(FIRST_ROWS, ROWS_PER_INPUT * m)


def training_cost(n: int, D: int, q: int, m: int, max_iter: int) -> Estimate:
    """Of :func:`train`; the rows themselves are not counted."""
    sizes = part_sizes(n, m)
    steps = part_steps(sizes, m, max_iter)
    row_steps = 1.1 * sum(size * count for size, count in zip(sizes, steps, strict=True))
    placed = PLACE_STEPS * sum(sizes[1:])
    step = 8e-11 * (3 * m * m + 2 * m * D) + 5e-10 * m * (20 + 8 * q)
    place = 8e-11 * (1 + q) * m * (m + min(m, D)) + 5e-10 * m * (20 + 10 * q + 5 * q * q)
    held = 8.0 * n * q * (2 * _pairs(n * q, steps[-1]) + 12)
    if len(sizes) > 1:
        held += 8.0 * sizes[-2] * D
    return Estimate(row_steps * step + placed * place, held + 8.0 * 2048 * m * (8 + 2 * q))


def train(
    start: SparseProcess,
    Y: np.ndarray,
    run: FitContext,
    *,
    max_iter: int,
    tol: float = 1e-7,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
    step: float = 1.0,
    in_parts: bool = True,
    n_columns: int | None = None,
) -> Trained:
    """Fit from a start to standardized rows Y (n, D).

    ``max_iter`` steps at most are taken on the first part, about half as many on each further one
    (:func:`part_steps`). ``bounds`` are the least and the largest (theta, log s^2). E of the
    whole table is never above that of the start. A stop keeps the process that there is, and
    places the rows that have no place yet. L-BFGS sees X / step and Z / step: with a large step
    places move sooner than parameters. Without ``in_parts`` all steps are on the whole table. See
    :func:`exact.log_likelihood` for ``n_columns``.
    """
    n, D, threads = len(Y), n_columns or Y.shape[1], run.threads
    start = start._replace(
        log_noise=float(start.log_noise), X=np.ascontiguousarray(start.X, np.float64)
    )
    m = len(start.Z)
    order, sizes = run.rng.permutation(n), part_sizes(n, m) if max_iter and in_parts else [n]
    most = part_steps(sizes, m, max_iter)
    state, rows = start, order
    losses, n_iter = np.empty(0), 0
    for part, size in enumerate(sizes):
        whole, former = size == n, rows
        rows = np.arange(n) if whole else order[:size]
        task = _Task(Y if whole else Y[rows], D, run, tol, bounds, step)
        if part == 0:
            state = start._replace(X=start.X[rows])
        else:
            seen = former if whole else np.arange(len(former))  # their numbers in this part
            state = task.placed(state, seen)
            if whole and task.loss(start) < task.loss(state):
                state = start
        steps = 0 if run.monitor.stopped else most[part]
        found = task.fitted(state, steps, n_iter, None if whole else _shown(Y, rows, threads))
        state = _of_vector(state, found.point, step)
        losses, n_iter = np.append(losses, found.losses[min(part, 1) :]), n_iter + found.n_iter
    posterior, bound = sparse_posterior(state, Y, threads), sparse_value(state, Y, D, threads)
    converged = found.converged and not run.monitor.stopped
    return Trained(state, posterior, bound, losses, n_iter, converged)


class _Task(NamedTuple):
    """Rows (n, D), and how their places and the process are sought together."""

    Y: np.ndarray
    n_columns: int
    run: FitContext
    tol: float
    bounds: tuple[np.ndarray, np.ndarray] | None
    step: float

    @property
    def n_values(self) -> int:
        return len(self.Y) * self.n_columns

    def fitted(
        self,
        start: SparseProcess,
        max_iter: int,
        done: int,
        show: Callable[[np.ndarray], np.ndarray] | None,
    ) -> Minimum:
        """L-BFGS on all unknowns; ``show(X)`` makes the map of all rows of places of these."""
        first, step = _vector(start, self.step), self.step

        def function(vector: np.ndarray) -> tuple[float, np.ndarray]:
            state = _of_vector(start, vector, step)
            F = sparse_bound(state, self.Y, self.n_columns, self.run.threads)
            process, Z, X = [-F.theta, [-F.noise]], -step * F.Z, step * (state.X - F.X)
            slope = np.concatenate([*process, Z.ravel(), X.ravel()])
            return (minus_log_prior(state.X) - F.value) / self.n_values, slope / self.n_values

        return minimize(
            function,
            first,
            max_iter=max_iter,
            tol=self.tol,
            monitor=self.run.monitor,
            show=lambda vector: (show or np.asarray)(_of_vector(start, vector, step).X),
            bounds=self._limits(first, len(start.theta)),
            memory=_pairs(len(first), max_iter),
            done=done,
        )

    def loss(self, state: SparseProcess) -> float:
        """E per value."""
        value = sparse_value(state, self.Y, self.n_columns, self.run.threads)
        return (minus_log_prior(state.X) - value) / self.n_values

    def placed(self, state: SparseProcess, seen: np.ndarray) -> SparseProcess:
        """The process of ``state``, and places of all rows; ``seen`` are those that have one.

        These keep a place near it, unless the new one is likelier.
        """
        threads = self.run.threads
        posterior = sparse_posterior(state, self.Y[seen], threads)
        starts = likely_starts(posterior, self.Y, state.X[:CANDIDATES], threads)
        how: dict[str, Any] = {"n_steps": PLACE_STEPS, "n_columns": self.n_columns}
        new = place_rows(posterior, self.Y, starts, threads=threads, **how)
        old = place_rows(posterior, self.Y[seen], state.X, threads=threads, **how)
        keeping = old.energy <= new.energy[seen]
        new.X[seen[keeping]] = old.X[keeping]
        return state._replace(X=new.X)

    def _limits(self, first: np.ndarray, n_parameters: int) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the process, which the start may be beyond; places have none."""
        at = slice(0, n_parameters + 1)
        least, most = np.full(len(first), -np.inf), np.full(len(first), np.inf)
        if self.bounds is not None:
            least[at], most[at] = self.bounds
        else:
            least[at], most[at] = LOG_BOUNDS
            least[n_parameters], most[n_parameters] = LOG_NOISE_BOUNDS
        return np.minimum(least, first), np.maximum(most, first)


def minus_log_prior(X: np.ndarray) -> float:
    """-log N(X; 0, I)."""
    return 0.5 * float(np.einsum("ij,ij->", X, X)) + 0.5 * X.size * float(np.log(2 * np.pi))


def _pairs(n_unknowns: int, steps: int) -> int:
    """How many pairs L-BFGS holds: 20, if there is memory for them and use."""
    return max(3, min(20, steps, PAIRS_BYTES // (16 * n_unknowns)))


def _shown(Y: np.ndarray, rows: np.ndarray, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """Makes a map of all rows: those that have no place yet are where a similar one is."""
    similar: list[np.ndarray] = []

    def show(X: np.ndarray) -> np.ndarray:
        if not similar:
            similar.append(
                nearest_units(np.ascontiguousarray(Y), Y[rows[:CANDIDATES]], threads)[:, 0]
            )
        everywhere = X[similar[0]]
        everywhere[rows] = X
        return everywhere

    return show
