"""Landmarks of a table that is read leaf by leaf, and the axes of all its rows.

The landmarks and the rows that gamma is taken from are the same ones as in memory. They are read
first; then one pass sums the kernel values of all rows with the landmarks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.memory import require_memory
from lowland._core.rows.fitting import rows_at
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.threads import resolve_n_jobs
from lowland._core.validation import DENSE_NUMBERS, dense_if_small
from lowland._engines.kernels.kernel_operators import Kernel, kernel_matrix
from lowland._engines.kernels.kernel_scale import mean_square, sample_numbers
from lowland.kernel._axes import (
    KernelAxes,
    LandmarkSums,
    axes_of_landmarks,
    chosen_landmarks,
    landmark_sums,
    merged_sums,
)

HELD = 16  # matrices of the landmarks: sums of a leaf, a task and the tree, and the eigenproblem


class ReadRows(NamedTuple):
    """The landmarks, their row numbers, and the sample of rows that gamma is taken from."""

    landmarks: Any
    numbers: np.ndarray
    sample: Any


def read_rows(rows: Rows, n_landmarks: int, run: FitContext) -> ReadRows:
    """Read the landmarks and the sample, both at once."""
    (n, p), m = rows.shape, n_landmarks
    require_memory(
        8 * (HELD * m * m + m * p),
        task=f"KernelPCA with {m} landmarks",
        alternative="use a smaller n_landmarks",
    )
    numbers, sample = chosen_landmarks(n, m, run), sample_numbers(n, p)
    both = np.union1d(numbers, sample)
    found = rows_at(rows, both, run.monitor)
    if math.prod(rows.shape) <= DENSE_NUMBERS:  # as a table in memory
        found = dense_if_small(found)
    places = [np.searchsorted(both, some) for some in (numbers, sample)]
    return ReadRows(found[places[0]], numbers, found[places[1]])


def sums_of_leaves(
    rows: Rows, read: ReadRows, kernel: Kernel, n_jobs: int | None, run: FitContext
) -> LandmarkSums:
    """The sums over all rows, in one pass."""
    f = KernelSums(read.landmarks, kernel, n_jobs)
    found: LandmarkSums = rows.total(f, merged_sums, run.monitor, "landmarks")
    return found


def axes_of_leaves(
    read: ReadRows, sums: LandmarkSums, kernel: Kernel, n_axes: int, run: FitContext
) -> KernelAxes:
    """The axes, which keep the landmarks as all their rows."""
    K = kernel_matrix(read.landmarks, kernel, run.threads)
    return axes_of_landmarks(K, sums, read.numbers, n_axes, run)._replace(kept=None)


class KernelSums:
    """The sums of one block."""

    def __init__(self, landmarks: Any, kernel: Kernel, n_jobs: int | None) -> None:
        self.landmarks, self.kernel, self.n_jobs = landmarks, kernel, n_jobs

    def __call__(self, block: Block) -> LandmarkSums:
        K = kernel_matrix(self.landmarks, self.kernel, resolve_n_jobs(self.n_jobs))
        return landmark_sums(block.X, K)


def mean_square_of(rows: Rows, run: FitContext) -> float:
    """The mean of |x|^2, in a pass of its own."""
    n, total = rows.total(_squares, _added, run.monitor, "scale")
    return float(total / n)


def _squares(block: Block) -> tuple[int, float]:
    return block.n_rows, block.n_rows * mean_square(block.X)


def _added(a: tuple[int, float], b: tuple[int, float]) -> tuple[int, float]:
    return a[0] + b[0], a[1] + b[1]
