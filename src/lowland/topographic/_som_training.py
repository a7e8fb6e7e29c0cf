"""How the units of a self-organizing map learn: neighborhoods, the batch and the online rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._core.errors import ParameterError
from lowland._core.validation import is_sparse
from lowland._engines.grids.lattice import Lattice
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.linalg.products import times
from lowland.topographic._som_sums import Table

AUTO_END = 0.7  # steps; the automatic radius falls from half of the longer side to this
DECLINE = 0.7  # share of the epochs in which the radius falls; then it stays
ONLINE_ROWS = 2**12  # rows that are gathered at a time
TOUCHING = 1 + 1e-9  # distances on a grid are rounded


class Trained(NamedTuple):
    """The codebook, and the mean distance of rows to their units at the start and per epoch."""

    codebook: np.ndarray
    losses: list[float]


def radii(radius: Any, kind: str, lattice: Lattice) -> tuple[float, float]:
    """The first and the last radius that the parameter means for this grid."""
    if isinstance(radius, str):
        unit = NEIGHBORHOODS[kind][1]
        return unit * max(max(lattice.sides) / 2, AUTO_END), unit * AUTO_END
    if np.ndim(radius) == 0:
        return float(radius), float(radius)
    if len(radius) != 2:
        raise ParameterError(
            f"SOM: radius={radius!r} has {len(radius)} numbers; give the first and the last "
            "radius, or one number."
        )
    return float(radius[0]), float(radius[1])


def _gaussian(D2: np.ndarray, square: float) -> np.ndarray:
    return np.exp(-D2 / (2 * square))


def _bubble(D2: np.ndarray, square: float) -> np.ndarray:
    return (square * TOUCHING >= D2).astype(np.float64)


def _epanechnikov(D2: np.ndarray, square: float) -> np.ndarray:
    return np.maximum(0.0, 1 - D2 / square)


# Each as a function of squared distances and the squared radius, and its radius in units of the
# standard deviation along an axis: an automatic radius is as wide for all of them.
NEIGHBORHOODS: dict[str, tuple[Callable[[np.ndarray, float], np.ndarray], float]] = {
    "gaussian": (_gaussian, 1.0),
    "bubble": (_bubble, 2.0),
    "epanechnikov": (_epanechnikov, float(np.sqrt(6))),
}


def neighborhood(kind: str, D2: np.ndarray, radius: float) -> np.ndarray:
    """h of squared distances on the grid; a radius of 0 leaves each unit alone."""
    with np.errstate(under="ignore", over="ignore"):
        square = np.float64(radius) ** 2
        if square < np.finfo(np.float64).tiny:
            return (D2 == 0).astype(np.float64)
        return NEIGHBORHOODS[kind][0](D2, square)


class Schedule(NamedTuple):
    """The radius falls by the same factor each epoch, then stays at its end."""

    start: float
    end: float
    n_epochs: int

    def radius(self, epoch: int) -> float:
        falling = max(1, round(DECLINE * self.n_epochs) - 1)
        if epoch >= falling or self.start == self.end:
            return self.end
        return float(np.exp(np.interp(epoch / falling, [0, 1], np.log([self.start, self.end]))))


class Task(NamedTuple):
    """What is learned from, and how; ``report(epoch, codebook, loss)`` is True to stop."""

    table: Table
    lattice: Lattice
    kind: str
    schedule: Schedule
    threads: int
    report: Callable[[int, np.ndarray, float], bool]


# --- batch --------------------------------------------------------------------------------------


def batch(task: Task, codebook: np.ndarray) -> Trained:
    """m_j = sum_c h_cj s_c / sum_c h_cj n_c, with the sum s_c and the number n_c of c's rows.

    Ends when a constant radius finds the same winners again.
    """
    D2, found = task.lattice.squared_distances(), task.table.epoch(codebook)
    losses, last, H = [found.mean_distance], -1.0, D2
    for epoch in range(task.schedule.n_epochs):
        radius, winners = task.schedule.radius(epoch), found.winners
        if radius != last:
            H = neighborhood(task.kind, D2, radius)
        codebook = _means(H, found.counts, found.sums, codebook, task.threads)
        found = task.table.epoch(codebook)
        losses.append(found.mean_distance)
        stopped = task.report(epoch + 1, codebook, losses[-1])
        settled = radius == task.schedule.radius(epoch + 1)
        if stopped or (settled and winners == found.winners):
            break
        last = radius
    return Trained(codebook, losses)


def _means(
    H: np.ndarray, counts: np.ndarray, sums: np.ndarray, old: np.ndarray, threads: int
) -> np.ndarray:
    """Weighted means; a unit that no row reaches stays where it is.

    Weights are divided by their sum first: units that only one winner reaches are then exactly
    equal, and not by chance the one or the other is nearer to a row.
    """
    least, zero = np.finfo(np.float64).tiny / np.finfo(np.float64).eps, np.zeros(len(H))
    if counts.ndim == 2:  # with missing values each column has weights of its own
        totals, weights = (times(H, zero, table, threads) for table in (sums, counts))
        reached = weights > least
        return np.where(reached, totals / np.where(reached, weights, 1.0), old)
    shares = H * counts
    weights = shares.sum(axis=1)
    reached = weights > least
    shares /= np.where(reached, weights, 1.0)[:, None]
    means = times(shares, zero, sums / np.maximum(counts, 1.0)[:, None], threads)
    return np.where(reached[:, None], means, old)


# --- online -------------------------------------------------------------------------------------


def online(
    task: Task, X: Any, codebook: np.ndarray, learning_rate: float, rng: np.random.Generator
) -> Trained:
    """m_j += a_t h_cj (x_t - m_j), the rows X of an epoch in random order; a_t falls to 0."""
    n, codebook = X.shape[0], codebook.copy()
    D2, losses = task.lattice.squared_distances(), [task.table.epoch(codebook).mean_distance]
    for epoch in range(task.schedule.n_epochs):
        H = neighborhood(task.kind, D2, task.schedule.radius(epoch))
        order = rng.permutation(n)
        for rows in row_blocks(n, ONLINE_ROWS):
            some = X[order[rows]]
            block = np.ascontiguousarray(some.toarray() if is_sparse(X) else some)
            done = (epoch + np.arange(rows.start, rows.stop) / n) / task.schedule.n_epochs
            _native.som_steps(block, learning_rate * (1 - done), H, codebook)
        losses.append(task.table.epoch(codebook).mean_distance)
        if task.report(epoch + 1, codebook, losses[-1]):
            break
    return Trained(codebook, losses)
