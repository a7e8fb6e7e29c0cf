"""Ledoit and Wolf's shrinkage of the classes of a table in leaves, in two passes or more.

The first pass gives the means and deviations of each class. The second gives, in these units, the
scatter matrix of each class and the sum of |z_i|^4. Together they give the share d of each class
(:mod:`lowland.linear._shrinkage`) and the covariance within classes. If the matrices of all
classes take more than GROUP_BYTES, classes come in groups, with one pass for each group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.memory import require_memory
from lowland._core.monitor import Monitor
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.targets import check_labels
from lowland._engines.linalg.class_moments import ClassColumns
from lowland._engines.linalg.moments import Moments, merge, moments
from lowland.linear._discriminant import column_units
from lowland.linear._shrinkage import divided, row_lengths, share_of_norms

GROUP_BYTES = 1 << 28  # of the scatter matrices that are summed in one pass


class Spread(NamedTuple):
    """Moments of scaled rows of a class, and the sum of the fourth powers of their lengths."""

    moments: Moments | None
    fourth: float


def shrunk_scatter(
    rows: Rows,
    classes: np.ndarray,
    columns: ClassColumns,
    weights: np.ndarray,
    threads: int,
    monitor: Monitor,
) -> np.ndarray:
    """The shrunk covariance within classes; ``columns`` are the sums of each class by column."""
    counts, C, p = columns.counts, len(classes), rows.shape[1]
    n = int(counts.sum())
    usual, _ = column_units(columns.variances, columns.means, weights)
    variances = columns.squares / counts[:, None]
    units = np.where(variances > 0, np.sqrt(variances), usual)
    size = max(1, GROUP_BYTES // (8 * p * p))
    require_memory(
        8 * p * p * (4 + 3 * min(size, C)),
        task=f"LDA with {p} x {p} covariances of {min(size, C)} classes",
        alternative="reduce the columns first, for example with PCA(n_components=1000)",
    )
    S, ridge = np.zeros((p, p)), np.zeros(p)
    for first in range(0, C, size):
        group = range(first, min(C, first + size))
        work = ClassSpreads(classes, columns.means, units, group, threads)
        for c, spread in zip(group, rows.total(work, merged, monitor, "shrinkage"), strict=True):
            scatter = spread.moments.scatter
            share = share_of_norms(scatter, spread.fourth, int(counts[c]))
            S += (1.0 - share) * scatter * np.outer(units[c], units[c])
            ridge += counts[c] * share * (variances[c] > 0).mean() * units[c] ** 2
    S[np.diag_indices(p)] += ridge
    return S / (n - C)


class ClassSpreads:
    """The spread of each class of a group among the rows of one block."""

    def __init__(
        self,
        classes: np.ndarray,
        means: np.ndarray,
        units: np.ndarray,
        group: range,
        threads: int,
    ) -> None:
        self.classes, self.group, self.threads = classes, group, threads
        some = slice(group.start, group.stop)
        self.means, self.units = means[some], units[some]

    def __call__(self, block: Block) -> list[Spread]:
        labels = check_labels(block.y, block.n_rows, owner="LDA")
        codes = np.searchsorted(self.classes, labels.classes)[labels.codes]
        found = []
        for c, mean, unit in zip(self.group, self.means, self.units, strict=True):
            ids = np.flatnonzero(codes == c)
            if len(ids):
                Z = divided(block.X[ids], unit)
                lengths = row_lengths(Z, mean / unit)
                found.append(Spread(moments(Z, self.threads, Monitor()), float((lengths**2).sum())))
            else:
                found.append(Spread(None, 0.0))
        return found


def merged(a: list[Spread], b: list[Spread]) -> list[Spread]:
    """The spreads of the classes of both."""
    return [_both(first, second) for first, second in zip(a, b, strict=True)]


def _both(a: Spread, b: Spread) -> Spread:
    some: Any = a.moments if b.moments is None else b.moments
    both = merge(a.moments, b.moments) if a.moments and b.moments else some
    return Spread(both, a.fourth + b.fourth)
