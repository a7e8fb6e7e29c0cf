"""How the units of a self-organizing map learn: neighborhoods, the batch and the online rule."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.fitting import rows_at
from lowland._base.rows.table import Rows
from lowland._base.threads import resolve_n_jobs
from lowland._base.validation import dense_if_small, is_sparse
from lowland._engines.grids import lattice as grids
from lowland._engines.grids import nearest_units as near_units
from lowland._engines.linalg.moments import Survey
from lowland._engines.linalg.products import row_blocks, rows_within, times

# Where rows lie on the grid of a self-organizing map, and what its units tell of each other.


REACH = 2.0  # steps from the nearest unit: the units that have a part in a row's place
BLOCK_ROWS = 2**14  # rows that are placed at a time
SHARPNESS = 2.0  # a unit as far as a neighbor of the nearest one has the weight exp(-2)


class UnitLabels(NamedTuple):
    """The most frequent label of each unit's rows (None: no rows), and its share of them."""

    labels: np.ndarray
    shares: np.ndarray


class UnitCounts(NamedTuple):
    """Rows of each unit, and rows whose two nearest units are neighbors on the grid.

    ``nearest`` is the nearest unit of each row, if the rows are in memory.
    """

    hits: np.ndarray
    in_order: int
    nearest: np.ndarray | None


def smooth_places(
    X: Any, codebook: np.ndarray, lattice: grids.Lattice, nearest: np.ndarray, threads: int
) -> np.ndarray:
    """r_c + sum_j w_j (r_j - r_c), w_j ~ exp(-2 (|x - m_j|^2 - min) / s_c), j near the unit c.

    s_c is the mean squared distance of unit c to its neighbors. With missing values, sums over the
    known columns stand for all of them.
    """
    near, own = lattice.within(_reach(lattice)), lattice.places()
    scales = neighbor_distances(codebook, lattice, power=2) / SHARPNESS
    found = np.empty((X.shape[0], own.shape[1]))
    for rows in row_blocks(X.shape[0], BLOCK_ROWS):
        some, units = X[rows], nearest[rows]
        squares = near_units.squares_to_units(some, codebook, units, near.units, threads)
        scale = scales[units]
        if not is_sparse(X):
            scale *= 1 - np.isnan(some).mean(axis=1)
        with np.errstate(under="ignore", over="ignore"):
            gaps = squares - squares.min(axis=1, keepdims=True)
            weights = np.exp(-gaps / np.maximum(scale, np.finfo(np.float64).tiny)[:, None])
        weights /= weights.sum(axis=1, keepdims=True)
        found[rows] = own[units] + np.einsum("ij,ijk->ik", weights, near.ways[units])
    return _wrapped(found, lattice)


def _reach(lattice: grids.Lattice) -> float:
    """Two steps, but less than half of a closed axis: a unit must not pull from both sides."""
    closed = lattice.periods()[lattice.periods() > 0]
    return max(1.0, min([REACH, *(0.49 * closed)]))


def _wrapped(P: np.ndarray, lattice: grids.Lattice) -> np.ndarray:
    """Places with closed axes from 0 to their length."""
    periods = lattice.periods()
    return np.where(periods > 0, np.mod(P, np.where(periods > 0, periods, 1.0)), P)


def neighbor_distances(codebook: np.ndarray, lattice: grids.Lattice, power: int = 1) -> np.ndarray:
    """Mean distance in the data, to a power, of each unit to its neighbors on the grid."""
    a, b = lattice.edges().T
    lengths = np.empty(len(a))
    for some in row_blocks(len(a), rows_within(8 * codebook.shape[1])):
        lengths[some] = np.square(codebook[a[some]] - codebook[b[some]]).sum(axis=1)
    lengths **= power / 2
    total = np.bincount(a, lengths, lattice.n_units) + np.bincount(b, lengths, lattice.n_units)
    number = np.bincount(a, minlength=lattice.n_units) + np.bincount(b, minlength=lattice.n_units)
    return total / np.maximum(number, 1)


def majority(nearest: np.ndarray, classes: np.ndarray, codes: np.ndarray, m: int) -> UnitLabels:
    """Of the rows of each unit; of equally frequent labels the first in order."""
    # pairs that occur, because a table of all units and labels may be too large
    k = len(classes)
    pairs, counts = np.unique(nearest * k + codes, return_counts=True)
    order = np.lexsort((pairs, -counts, pairs // k))
    filled, first = np.unique(pairs[order] // k, return_index=True)
    best = order[first]
    labels, shares = np.full(m, None, dtype=object), np.zeros(m)
    labels[filled] = classes[pairs[best] % k].astype(object)
    shares[filled] = counts[best] / np.bincount(nearest, minlength=m)[filled]
    return UnitLabels(labels, shares)


def unit_counts(
    X: Any, codebook: np.ndarray, lattice: grids.Lattice, threads: int, missing: bool
) -> UnitCounts:
    """The rows of each unit, and how many rows have two nearest units that are neighbors.

    On a rectangular grid units are also neighbors across a corner.
    """
    few = lattice.n_units < 3  # any two are neighbors
    found = near_units.nearest_units(X, codebook, threads, 1 if few else 2, missing)
    nearest, in_order = found[:, 0], len(found)
    if not few:
        near = lattice.within(1.0 if lattice.kind == "hexagon" else np.sqrt(2)).units
        in_order = int((near[nearest] == found[:, 1:]).any(axis=1).sum())
    return UnitCounts(np.bincount(nearest, minlength=lattice.n_units), in_order, nearest)


# What the batch rule of a self-organizing map needs of all rows, in memory or in chunks.
#
# Both kinds of table sum by the same function of a block of rows; chunks are merged.


class EpochSums(NamedTuple):
    """Sums by the nearest unit of each row, and the summed distance of rows to it.

    ``winners`` is a digest of the nearest units of all rows: equal if and only if all are.
    """

    counts: np.ndarray
    sums: np.ndarray
    n_rows: int
    distance: float
    winners: bytes

    @property
    def mean_distance(self) -> float:
        return self.distance / self.n_rows


def epoch_sums(X: Any, codebook: np.ndarray, missing: bool, threads: int) -> EpochSums:
    """Of a block of rows."""
    nearest = near_units.nearest_with_squares(X, codebook, threads, 1, missing)
    ids = nearest.ids[:, 0]
    counts, sums = near_units.unit_sums(X, ids, len(codebook), threads, missing)
    distance = float(np.sqrt(nearest.squares[:, 0]).sum())
    return EpochSums(counts, sums, len(ids), distance, _digest(ids.tobytes()))


def merged_sums(a: EpochSums, b: EpochSums) -> EpochSums:
    """Of both sets of rows."""
    winners = _digest(a.winners + b.winners)
    return EpochSums(*(one + other for one, other in zip(a[:-1], b[:-1], strict=True)), winners)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


class InMemory(NamedTuple):
    """Dense or sparse rows that units are laid through."""

    X: Any
    missing: bool
    threads: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def plane(self, n_axes: int, run: FitContext) -> grids.PrincipalPlane:
        """The plane of the first principal axes."""
        return grids.principal_plane(self.X, n_axes, run)

    def at(self, numbers: np.ndarray) -> Any:
        return self.X[numbers]

    def epoch(self, codebook: np.ndarray) -> EpochSums:
        return epoch_sums(self.X, codebook, self.missing, self.threads)

    def counts(self, codebook: np.ndarray, lattice: grids.Lattice) -> UnitCounts:
        return unit_counts(self.X, codebook, lattice, self.threads, self.missing)


class InChunks(NamedTuple):
    """Rows that are read in chunks: a pass for each call."""

    rows: Rows
    found: Survey
    n_jobs: int | None
    monitor: Monitor

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape

    def plane(self, n_axes: int, run: FitContext) -> grids.PrincipalPlane:
        return grids.plane_of_chunks(self.rows, self.found, n_axes, self.n_jobs, run)

    def at(self, numbers: np.ndarray) -> Any:
        return rows_at(self.rows, numbers, self.monitor)

    def epoch(self, codebook: np.ndarray) -> EpochSums:
        f = functools.partial(block_sums, codebook, self.found.missing, self.n_jobs)
        return self.rows.total(f, merged_sums, self.monitor, "epoch")

    def counts(self, codebook: np.ndarray, lattice: grids.Lattice) -> UnitCounts:
        f = functools.partial(block_counts, codebook, lattice, self.found.missing, self.n_jobs)
        return self.rows.total(f, merged_counts, self.monitor, "places")


Table = InMemory | InChunks


def block_sums(codebook: np.ndarray, missing: bool, n_jobs: int | None, block: Block) -> EpochSums:
    """:func:`epoch_sums` of one block."""
    return epoch_sums(dense_if_small(block.X), codebook, missing, resolve_n_jobs(n_jobs))


def block_counts(
    codebook: np.ndarray, lattice: grids.Lattice, missing: bool, n_jobs: int | None, block: Block
) -> UnitCounts:
    """:func:`unit_counts` of one block."""
    X, threads = dense_if_small(block.X), resolve_n_jobs(n_jobs)
    return unit_counts(X, codebook, lattice, threads, missing)._replace(nearest=None)


def merged_counts(a: UnitCounts, b: UnitCounts) -> UnitCounts:
    """Of both sets of rows."""
    return UnitCounts(a.hits + b.hits, a.in_order + b.in_order, None)


# How large the grid of a self-organizing map is, and where its units start.


MOST_UNITS = 1000
NO_SPREAD = 1e-7  # share of the first deviation, or of the mean, below which one is rounding
START_WIDTH = 2.0  # standard deviations from the mean to the border of the first plane


def number_of_units(n: int) -> int:
    """About 5 sqrt(n), at most n and 1 000."""
    return max(1, min(round(5 * math.sqrt(n)), n, MOST_UNITS))


def sides_of_grid(
    n: int, plane: grids.PrincipalPlane, q: int, grid: str, even: bool
) -> tuple[int, ...]:
    """Sides as the deviations of the data; the second one is ``even`` if it must be."""
    first, size, wanted = plane.deviations[0], np.abs(plane.mean).max(), number_of_units(n)
    if first <= NO_SPREAD * size:
        sides = [1] * q  # equal rows need one unit
    elif q == 2 and plane.deviations[1] <= NO_SPREAD * first:
        sides = [wanted, 1]  # rows on a line
    else:
        kind = grid if q == 2 else "rectangle"
        sides = list(grids.sides_for(wanted, plane.deviations[:q], kind))
    while math.prod(sides) > n:  # rounding of the sides of a few units
        sides[int(np.argmax(sides))] -= 1
    return (sides[0], sides[1] + sides[1] % 2) if even else tuple(sides)


def given_sides(sides: Any, q: int, even: bool) -> tuple[int, ...]:
    """The parameter ``sides`` as one number for each of q axes."""
    given = [sides] * q if np.ndim(sides) == 0 else list(sides)
    if len(given) != q:
        raise ParameterError(
            f"SOM: sides={sides!r} has {len(given)} numbers, but n_components={q}; give "
            "one for each axis."
        )
    if even and given[1] % 2:
        raise ParameterError(
            f"SOM: sides={sides!r}; a closed hexagonal grid needs an even number of units "
            'along the second axis. Add one, or use grid="rectangle".'
        )
    return tuple(int(side) for side in given)


def given_units(init: Any, lattice: grids.Lattice, p: int) -> np.ndarray:
    """The parameter ``init`` as units of p columns."""
    given, m = np.array(init, np.float64), lattice.n_units
    if given.shape != (m, p) or not np.isfinite(given).all():
        raise DataError(
            f"SOM: init has shape {given.shape}; the grid with sides {lattice.sides} needs "
            f"finite numbers of shape {(m, p)}."
        )
    return given


def random_rows(table: Table, m: int, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random rows of a table, none twice if there are enough; missing values are the mean."""
    n = table.shape[0]
    rows = table.at(rng.choice(n, m, replace=m > n))
    rows = np.asarray(rows.toarray() if is_sparse(rows) else rows, np.float64)
    return np.where(np.isnan(rows), mean, rows)


def units_on_plane(lattice: grids.Lattice, plane: grids.PrincipalPlane) -> np.ndarray:
    """An open axis of the grid lies along a principal axis, a closed one on a circle of two."""
    P, Z = lattice.places(), np.zeros((lattice.n_units, len(plane.axes)))
    for axis, period in enumerate(lattice.periods()):
        along = P[:, axis]
        if period:
            turn = 2 * np.pi * along / period
            Z[:, 2 * axis] = START_WIDTH * np.cos(turn)
            Z[:, 2 * axis + 1] = START_WIDTH * np.sin(turn)
        else:
            middle, half = (along.max() + along.min()) / 2, max(np.ptp(along) / 2, 1e-9)
            Z[:, axis] = START_WIDTH * (along - middle) / half
    return plane.points(Z)


AUTO_END = 0.7  # steps; the automatic radius falls from half of the longer side to this
DECLINE = 0.7  # share of the epochs in which the radius falls; then it stays
ONLINE_ROWS = 2**12  # rows that are gathered at a time
TOUCHING = 1 + 1e-9  # distances on a grid are rounded
# Radii in units of the standard deviation along an axis: automatic ones are equally wide.
RADII = {"gaussian": 1.0, "bubble": 2.0, "epanechnikov": float(np.sqrt(6))}


def radii(radius: Any, kind: str, lattice: grids.Lattice) -> tuple[float, float]:
    """The first and the last radius that the parameter means for this grid."""
    if isinstance(radius, str):
        unit = RADII[kind]
        return unit * max(max(lattice.sides) / 2, AUTO_END), unit * AUTO_END
    if np.ndim(radius) == 0:
        return float(radius), float(radius)
    if len(radius) != 2:
        raise ParameterError(
            f"SOM: radius={radius!r} has {len(radius)} numbers; give the first and the last "
            "radius, or one number."
        )
    return float(radius[0]), float(radius[1])


def neighborhood(kind: str, D2: np.ndarray, radius: float) -> np.ndarray:
    """h of squared distances on the grid; a radius of 0 leaves each unit alone."""
    with np.errstate(under="ignore", over="ignore"):
        square = np.float64(radius) ** 2
        if square < np.finfo(np.float64).tiny:
            return (D2 == 0).astype(np.float64)
        if kind == "gaussian":
            return np.exp(-D2 / (2 * square))
        if kind == "bubble":
            return (square * TOUCHING >= D2).astype(np.float64)
        return np.maximum(0.0, 1 - D2 / square)


class Task(NamedTuple):
    """What is learned from, and how; ``report(epoch, codebook, loss)`` is True to stop.

    The radius falls by the same factor each epoch from the first to the last one, then it stays.
    """

    table: Table
    lattice: grids.Lattice
    kind: str
    radii: tuple[float, float]
    n_epochs: int
    threads: int
    report: Callable[[int, np.ndarray, float], bool]

    def radius(self, epoch: int) -> float:
        falling = max(1, round(DECLINE * self.n_epochs) - 1)
        if epoch >= falling or self.radii[0] == self.radii[1]:
            return self.radii[1]
        return float(np.exp(np.interp(epoch / falling, [0, 1], np.log(self.radii))))


# --- batch --------------------------------------------------------------------------------------


def batch(task: Task, codebook: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """m_j = sum_c h_cj s_c / sum_c h_cj n_c, with the sum s_c and the number n_c of c's rows.

    Ends when a constant radius finds the same winners again.
    """
    D2, found = task.lattice.squared_distances(), task.table.epoch(codebook)
    losses, last, H = [found.mean_distance], -1.0, D2
    for epoch in range(task.n_epochs):
        radius, winners = task.radius(epoch), found.winners
        if radius != last:
            H = neighborhood(task.kind, D2, radius)
        codebook = _means(H, found.counts, found.sums, codebook, task.threads)
        found = task.table.epoch(codebook)
        losses.append(found.mean_distance)
        stopped = task.report(epoch + 1, codebook, losses[-1])
        settled = radius == task.radius(epoch + 1)
        if stopped or (settled and winners == found.winners):
            break
        last = radius
    return codebook, losses


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
    task: Task, codebook: np.ndarray, learning_rate: float, rng: np.random.Generator
) -> tuple[np.ndarray, list[float]]:
    """m_j += a_t h_cj (x_t - m_j), the rows of an epoch in random order; a_t falls to 0."""
    n, codebook = task.table.shape[0], codebook.copy()
    D2, losses = task.lattice.squared_distances(), [task.table.epoch(codebook).mean_distance]
    for epoch in range(task.n_epochs):
        H = neighborhood(task.kind, D2, task.radius(epoch))
        order = rng.permutation(n)
        for rows in row_blocks(n, ONLINE_ROWS):
            some = task.table.at(order[rows])
            block = np.ascontiguousarray(some.toarray() if is_sparse(some) else some)
            done = (epoch + np.arange(rows.start, rows.stop) / n) / task.n_epochs
            _native.som_steps(block, learning_rate * (1 - done), H, codebook)
        losses.append(task.table.epoch(codebook).mean_distance)
        if task.report(epoch + 1, codebook, losses[-1]):
            break
    return codebook, losses
