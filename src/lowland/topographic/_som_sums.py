"""What the batch rule of a self-organizing map needs of all rows, in memory or leaf by leaf.

Both kinds of table sum by the same function of a block of rows; leaves are merged.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple, Protocol

import numpy as np

from lowland._core.context import FitContext
from lowland._core.monitor import Monitor
from lowland._core.rows.fitting import rows_at
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.threads import resolve_n_jobs
from lowland._core.validation import dense_if_small
from lowland._engines.grids.lattice import Lattice
from lowland._engines.grids.nearest_units import nearest_with_squares, unit_sums
from lowland._engines.grids.principal_plane import (
    PrincipalPlane,
    plane_of_leaves,
    principal_plane,
)
from lowland._engines.linalg.streamed_moments import Survey
from lowland.topographic._som_places import UnitCounts, unit_counts


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
    nearest = nearest_with_squares(X, codebook, threads, 1, missing)
    ids = nearest.ids[:, 0]
    counts, sums = unit_sums(X, ids, len(codebook), threads, missing)
    distance = float(np.sqrt(nearest.squares[:, 0]).sum())
    return EpochSums(counts, sums, len(ids), distance, _digest(ids.tobytes()))


def merged_sums(a: EpochSums, b: EpochSums) -> EpochSums:
    """Of both sets of rows."""
    return EpochSums(
        a.counts + b.counts,
        a.sums + b.sums,
        a.n_rows + b.n_rows,
        a.distance + b.distance,
        _digest(a.winners + b.winners),
    )


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


class Table(Protocol):
    """Rows that units are laid through."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def plane(self, n_axes: int, run: FitContext) -> PrincipalPlane:
        """The plane of the first principal axes."""
        ...

    def at(self, numbers: np.ndarray) -> Any:
        """The rows with these numbers."""
        ...

    def epoch(self, codebook: np.ndarray) -> EpochSums:
        """The sums over all rows."""
        ...

    def counts(self, codebook: np.ndarray, lattice: Lattice) -> UnitCounts:
        """The rows of each unit, and how many have two nearest units that are neighbors."""
        ...


class InMemory(NamedTuple):
    """Dense or sparse rows."""

    X: Any
    missing: bool
    threads: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def plane(self, n_axes: int, run: FitContext) -> PrincipalPlane:
        return principal_plane(self.X, n_axes, run)

    def at(self, numbers: np.ndarray) -> Any:
        return self.X[numbers]

    def epoch(self, codebook: np.ndarray) -> EpochSums:
        return epoch_sums(self.X, codebook, self.missing, self.threads)

    def counts(self, codebook: np.ndarray, lattice: Lattice) -> UnitCounts:
        return unit_counts(self.X, codebook, lattice, self.threads, self.missing)


class InLeaves(NamedTuple):
    """Rows that are read leaf by leaf: a pass for each call."""

    rows: Rows
    found: Survey
    n_jobs: int | None
    monitor: Monitor

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape

    def plane(self, n_axes: int, run: FitContext) -> PrincipalPlane:
        return plane_of_leaves(self.rows, self.found, n_axes, self.n_jobs, run)

    def at(self, numbers: np.ndarray) -> Any:
        return rows_at(self.rows, numbers, self.monitor)

    def epoch(self, codebook: np.ndarray) -> EpochSums:
        f = BlockSums(codebook, self.found.missing, self.n_jobs)
        total: EpochSums = self.rows.total(f, merged_sums, self.monitor, "epoch")
        return total

    def counts(self, codebook: np.ndarray, lattice: Lattice) -> UnitCounts:
        f = BlockCounts(codebook, lattice, self.found.missing, self.n_jobs)
        total: UnitCounts = self.rows.total(f, merged_counts, self.monitor, "places")
        return total


class BlockSums:
    """:func:`epoch_sums` of one block."""

    def __init__(self, codebook: np.ndarray, missing: bool, n_jobs: int | None) -> None:
        self.codebook, self.missing, self.n_jobs = codebook, missing, n_jobs

    def __call__(self, block: Block) -> EpochSums:
        X = dense_if_small(block.X)
        return epoch_sums(X, self.codebook, self.missing, resolve_n_jobs(self.n_jobs))


class BlockCounts:
    """:func:`unit_counts` of one block."""

    def __init__(
        self, codebook: np.ndarray, lattice: Lattice, missing: bool, n_jobs: int | None
    ) -> None:
        self.codebook, self.lattice = codebook, lattice
        self.missing, self.n_jobs = missing, n_jobs

    def __call__(self, block: Block) -> UnitCounts:
        X, threads = dense_if_small(block.X), resolve_n_jobs(self.n_jobs)
        found = unit_counts(X, self.codebook, self.lattice, threads, self.missing)
        return found._replace(nearest=None)


def merged_counts(a: UnitCounts, b: UnitCounts) -> UnitCounts:
    """Of both sets of rows."""
    return UnitCounts(a.hits + b.hits, a.in_order + b.in_order, None)
