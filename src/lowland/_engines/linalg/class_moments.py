"""Mergeable sums by class: counts, means, and one scatter matrix within all classes together.

    S_W = sum_c sum_{i in c} (x_i - m_c)(x_i - m_c)^T

Two batches of labeled rows give the sums of both, as in :mod:`lowland._engines.linalg.moments`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.targets import Labels, check_labels, join_classes
from lowland._base.threads import limit_blas
from lowland._base.validation import is_sparse
from lowland._engines.linalg import moments
from lowland._engines.linalg.products import mirror

# Rows gathered at a time: enough that adding p x p matrices costs little, few enough for memory
GATHERED_ROWS = 4096


class ClassMoments(NamedTuple):
    """n_c, m_c in rows, and S_W; a class without rows has n_c = 0 and m_c = 0."""

    counts: np.ndarray
    means: np.ndarray
    scatter: np.ndarray

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())


def members(codes: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """Row numbers of each class, ascending."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=n_classes))[:-1])


@moments.may_overflow
def class_moments(
    X: Any,
    codes: np.ndarray,
    n_classes: int,
    threads: int,
    monitor: Monitor,
    weights: np.ndarray | None = None,
) -> ClassMoments:
    """Sums of the rows of X by class; ``weights`` (C,) weigh the classes in the scatter matrix.

    Rows are gathered by class and shifted by a value near the mean of their class, in float64. So
    large distances between classes cause no cancellation in the scatter matrix, and pixels that
    are mostly one value become zeros, which the kernel skips.
    """
    weights = np.ones(n_classes) if weights is None else weights
    if is_sparse(X):
        return _sparse_class_moments(X, codes, n_classes, weights)
    p = X.shape[1]
    order = np.argsort(codes, kind="stable")
    gather = _Gatherer(X)
    scatter, block, sums = np.zeros((p, p)), np.zeros((p, p)), np.empty(p)  # upper triangles
    owners, counts, shifts, offsets = [], [], [], []
    chunks = list(_chunks(np.bincount(codes, minlength=n_classes)))
    with monitor.phase("within-class scatter", total=len(chunks)) as phase:
        for start, stop in chunks:
            ids = order[start:stop]
            rows, pieces = gather(ids), _pieces(codes[ids])
            if len(pieces) == 1:  # the kernel shifts and sums
                shifts.append(moments.pilot(rows))
                _native.scatter_matrix(rows, shifts[-1], sums, block, threads)
                offsets.append(sums / len(ids))
                block *= weights[pieces[0][0]]
            else:
                for owner, piece in pieces:
                    shifts.append(moments.pilot(rows[piece]))
                    rows[piece] -= shifts[-1]
                    offsets.append(rows[piece].mean(axis=0))
                    rows[piece] *= np.sqrt(weights[owner])
                _native.scatter_matrix(rows, np.zeros(p), sums, block, threads)
            scatter += block
            owners += [owner for owner, _ in pieces]
            counts += [piece.stop - piece.start for _, piece in pieces]
            phase.advance()
    mirror(scatter)
    of, count, mean = np.array(owners), np.array(counts), np.array(shifts) + np.array(offsets)
    class_mean = _gathered_means(of, count, mean, n_classes)
    weight = (weights[of] * count)[:, None]
    _add_outer(scatter, np.array(offsets), -weight)
    _add_outer(scatter, mean - class_mean[of], weight)  # a class in several pieces
    return ClassMoments(np.bincount(codes, minlength=n_classes), class_mean, scatter)


class _Gatherer:
    """Rows by number as a writable float64 array, which reuses its memory."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        shape = min(len(X), GATHERED_ROWS), X.shape[1]
        self.taken = np.empty(shape, dtype=X.dtype)
        self.rows = self.taken if X.dtype == np.float64 else np.empty(shape)

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        np.take(self.X, ids, axis=0, out=self.taken[: len(ids)], mode="clip")
        if self.rows is not self.taken:
            self.rows[: len(ids)] = self.taken[: len(ids)]
        return self.rows[: len(ids)]


def _chunks(counts: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of rows sorted by class: a large class alone, small ones together."""
    start = stop = 0
    for count in counts.tolist():
        alone = count >= GATHERED_ROWS // 8
        if stop > start and (alone or stop - start + count > GATHERED_ROWS):
            yield start, stop
            start = stop
        stop += count
        while stop - start > GATHERED_ROWS or (alone and stop > start):
            end = min(start + GATHERED_ROWS, stop)
            yield start, end
            start = end
    if stop > start:
        yield start, stop


def _pieces(codes: np.ndarray) -> list[tuple[int, slice]]:
    """Runs of equal numbers in sorted codes."""
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    return [(int(codes[start]), slice(start, stop)) for start, stop in itertools.pairwise(edges)]


def _gathered_means(
    owner: np.ndarray, count: np.ndarray, means: np.ndarray, n_classes: int
) -> np.ndarray:
    """Means of classes from those of their pieces; exact where all pieces agree."""
    first = np.zeros((n_classes, means.shape[1]))
    first[owner[::-1]] = means[::-1]
    away = np.zeros_like(first)
    np.add.at(away, owner, (means - first[owner]) * count[:, None])
    rows = np.bincount(owner, count, minlength=n_classes)
    return first + away / np.maximum(rows, 1)[:, None]


def _add_outer(scatter: np.ndarray, vectors: np.ndarray, weight: np.ndarray) -> None:
    """scatter += sum_j w_j v_j v_j^T, on one BLAS thread; vectors of zeros are left out."""
    some = vectors.any(axis=1)
    if some.any():
        with limit_blas(1):
            scatter += (vectors[some] * weight[some]).T @ vectors[some]


def _sparse_class_moments(
    X: Any, codes: np.ndarray, n_classes: int, weights: np.ndarray
) -> ClassMoments:
    """S_W = X^T X - sum_c n_c m_c m_c^T: the zeros stay implicit."""
    counts, means, squares = class_columns(X, codes, n_classes)
    X = X.astype(np.float64)
    weighted = X.multiply(weights[codes][:, None]).tocsr()
    scatter = (X.T @ weighted).toarray()
    _add_outer(scatter, means, -(weights * counts)[:, None])
    diagonal = weights @ squares
    constant = diagonal == 0
    scatter[constant], scatter[:, constant] = 0.0, 0.0
    np.fill_diagonal(scatter, diagonal)
    return ClassMoments(counts, means, scatter)


class ClassColumns(NamedTuple):
    """n_c, m_c, and sums of squared deviations from it, by column: (C,), (C, p), (C, p)."""

    counts: np.ndarray
    means: np.ndarray
    squares: np.ndarray

    @property
    def variances(self) -> np.ndarray:
        """The diagonal of S_W / (n - C)."""
        return self.squares.sum(axis=0) / (self.counts.sum() - len(self.counts))


def class_columns(X: Any, codes: np.ndarray, n_classes: int) -> ClassColumns:
    """Sums of the classes column by column, without a p x p matrix."""
    means, squares = np.zeros((n_classes, X.shape[1])), np.zeros((n_classes, X.shape[1]))
    groups = members(codes, n_classes)
    for c, ids in enumerate(groups):
        if len(ids):
            means[c], squares[c] = moments.column_moments(X[ids])
    return ClassColumns(np.array([len(ids) for ids in groups]), means, squares)


def widened(sums: ClassMoments, places: np.ndarray, n_classes: int) -> ClassMoments:
    """The same sums among more classes: class c becomes class ``places[c]`` of ``n_classes``."""
    counts, means = np.zeros(n_classes, int), np.zeros((n_classes, sums.means.shape[1]))
    counts[places], means[places] = sums.counts, sums.means
    return ClassMoments(counts, means, sums.scatter)


@moments.may_overflow
def merge_classes(a: ClassMoments, b: ClassMoments) -> ClassMoments:
    """Sums of two disjoint sets of rows over the same classes (Chan et al. 1983, eq. 2.1)."""
    counts = a.counts + b.counts
    delta = np.where((a.counts * b.counts)[:, None] > 0, b.means - a.means, 0.0)
    share = (b.counts / np.maximum(counts, 1))[:, None]
    scatter = a.scatter + b.scatter
    _add_outer(scatter, delta, a.counts[:, None] * share)
    means = np.where(a.counts[:, None] > 0, a.means, b.means) + delta * share
    return ClassMoments(counts, means, scatter)


# Mergeable sums of columns by class: blocks of labeled rows may have different classes.


class LabeledColumns(NamedTuple):
    """The sorted classes, and sums (C, p) with one row for each."""

    classes: np.ndarray
    sums: moments.ColumnSums

    @property
    def low(self) -> np.ndarray:
        return self.sums.low.min(axis=0)

    @property
    def high(self) -> np.ndarray:
        return self.sums.high.max(axis=0)

    @property
    def by_class(self) -> ClassColumns:
        return ClassColumns(self.sums.known[:, 0], self.sums.mean, self.sums.squares)


def sums_by_class(rows: Rows, owner: str, monitor: Monitor) -> LabeledColumns:
    """The sums of all classes of a table with a target, in one pass."""
    work = functools.partial(_of_block, owner=owner)
    merge: Callable = functools.partial(merge_labeled, owner=owner)
    return rows.total(work, merge, monitor, "means of classes")


def _of_block(block: Block, owner: str) -> LabeledColumns:
    return labeled_columns(block.X, block.y, owner)


def labeled_columns(X: Any, y: Any, owner: str) -> LabeledColumns:
    """Sums of the rows of X by class, y having one label per row. O(n p)."""
    classes, codes = check_labels(y, X.shape[0], owner=owner)
    _require_room(len(classes), X.shape[1], owner)
    parts = [moments.column_sums(X[ids]) for ids in members(codes, len(classes))]
    stacked = (np.stack(values) for values in zip(*parts, strict=True))
    return LabeledColumns(classes, moments.ColumnSums(*stacked))


def merge_labeled(a: LabeledColumns, b: LabeledColumns, owner: str) -> LabeledColumns:
    """Sums of the rows of both, over the classes of either."""
    new = Labels(b.classes, np.arange(len(b.classes)))
    classes = join_classes(new, a.classes, None, owner=owner)
    _require_room(len(classes), a.sums.mean.shape[1], owner)
    parts = [_widened(part, classes) for part in (a, b)]
    return LabeledColumns(classes, moments.merge_columns(*parts))


def _widened(part: LabeledColumns, classes: np.ndarray) -> moments.ColumnSums:
    """The same sums among more classes, some of which have no rows."""
    places = np.searchsorted(classes, part.classes)
    wide = moments.ColumnSums(
        *(a.copy() for a in moments.no_columns((len(classes), part.sums.mean.shape[1])))
    )
    for values, own in zip(wide, part.sums, strict=True):
        values[places] = own
    return wide


def _require_room(n_classes: int, p: int, owner: str) -> None:
    require_memory(
        8 * 5 * 3 * n_classes * p,
        task=f"{owner}: sums of {p} columns for {n_classes} classes",
        alternative="give a target with fewer classes",
    )
