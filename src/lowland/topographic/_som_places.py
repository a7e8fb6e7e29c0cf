"""Where rows lie on the grid of a self-organizing map, and what its units tell of each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.validation import is_sparse
from lowland._engines.grids.lattice import Lattice
from lowland._engines.grids.nearest_units import nearest_units, squares_to_units
from lowland._engines.linalg.blocks import row_blocks, rows_within

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

    @property
    def topographic_error(self) -> float:
        """Share of the rows whose two nearest units are no neighbors."""
        return float(1 - self.in_order / self.hits.sum())


def smooth_places(
    X: Any, codebook: np.ndarray, lattice: Lattice, nearest: np.ndarray, threads: int
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
        squares = squares_to_units(some, codebook, units, near.units, threads)
        scale = scales[units]
        if not is_sparse(X):
            scale *= 1 - np.isnan(some).mean(axis=1)
        with np.errstate(under="ignore", over="ignore"):
            gaps = squares - squares.min(axis=1, keepdims=True)
            weights = np.exp(-gaps / np.maximum(scale, np.finfo(np.float64).tiny)[:, None])
        weights /= weights.sum(axis=1, keepdims=True)
        found[rows] = own[units] + np.einsum("ij,ijk->ik", weights, near.ways[units])
    return _wrapped(found, lattice)


def _reach(lattice: Lattice) -> float:
    """Two steps, but less than half of a closed axis: a unit must not pull from both sides."""
    closed = lattice.periods()[lattice.periods() > 0]
    return max(1.0, min([REACH, *(0.49 * closed)]))


def _wrapped(P: np.ndarray, lattice: Lattice) -> np.ndarray:
    """Places with closed axes from 0 to their length."""
    periods = lattice.periods()
    return np.where(periods > 0, np.mod(P, np.where(periods > 0, periods, 1.0)), P)


def neighbor_distances(codebook: np.ndarray, lattice: Lattice, power: int = 1) -> np.ndarray:
    """Mean distance in the data, to a power, of each unit to its neighbors on the grid."""
    a, b = lattice.edges().T
    lengths = np.empty(len(a))
    for some in row_blocks(len(a), rows_within(8 * codebook.shape[1])):
        lengths[some] = np.square(codebook[a[some]] - codebook[b[some]]).sum(axis=1)
    lengths **= power / 2
    total = np.bincount(a, lengths, lattice.n_units) + np.bincount(b, lengths, lattice.n_units)
    number = np.bincount(a, minlength=lattice.n_units) + np.bincount(b, minlength=lattice.n_units)
    return total / np.maximum(number, 1)


def _are_neighbors(lattice: Lattice, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Whether units are neighbors, on a rectangular grid also across a corner."""
    near = lattice.within(1.0 if lattice.kind == "hexagon" else np.sqrt(2)).units
    return (near[first] == second[:, None]).any(axis=1)


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
    X: Any, codebook: np.ndarray, lattice: Lattice, threads: int, missing: bool
) -> UnitCounts:
    """The rows of each unit, and how many rows have two nearest units that are neighbors."""
    few = lattice.n_units < 3  # any two are neighbors
    found = nearest_units(X, codebook, threads, 1 if few else 2, missing)
    nearest = found[:, 0]
    in_order = len(found) if few else int(_are_neighbors(lattice, *found.T).sum())
    return UnitCounts(np.bincount(nearest, minlength=lattice.n_units), in_order, nearest)
