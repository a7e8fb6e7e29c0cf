"""``lowland.procrustes``: how alike two maps are after rotation, scaling and translation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, DataTypeError, count
from lowland._base.threads import resolve_n_jobs
from lowland._base.validation import as_array, check_matrix
from lowland._engines.distances.distance_rows import CrossDistances
from lowland._engines.linalg.procrustes import Alignment, align
from lowland.metrics._measured import Measured

OWNER = "procrustes"
ROUNDING = 8 * np.finfo(np.float64).eps  # of 1 - (tr S)^2, whose terms are 1 for the same map


class Procrustes(NamedTuple):
    """``aligned = scale * (Y2 @ rotation) + translation``, and what is left between the maps.

    The narrower of two maps has columns of zeros up to the width of the other, here and in
    ``rotation`` and ``translation``.
    """

    aligned: np.ndarray  # all rows of Y2, as near to Y1 as they can be brought
    rotation: np.ndarray  # orthogonal; its determinant is -1 if it mirrors
    scale: float
    translation: np.ndarray
    disparity: float  # 0: the same map; 1: nothing in common
    residuals: np.ndarray  # the distance of the two points of each pair, in the units of Y1

    def __repr__(self) -> str:
        rows, columns = self.aligned.shape
        size = f"{count(rows, 'row')}, {count(columns, 'dimension')}"
        return f"Procrustes({size}, disparity {self.disparity:.3g}, scale {self.scale:.3g})"


def procrustes(
    Y1: Any, Y2: Any, *, pairs: Any = None, scaling: bool = True, reflection: bool = True
) -> Procrustes:
    """Turn, mirror, scale and move a map so that it lies on another one of the same objects.

    min over s, R, t of sum_i |y1_i - (s R^T y2_i + t)|^2 with R^T R = I. Most methods leave open
    how a map is turned, so two maps can be compared only after this. O(n m^2) for m columns.

    Parameters
    ----------
    Y1 : array or data frame of shape (n_rows, n_columns)
        The map that stays where it is.
    Y2 : array or data frame of shape (n_rows, n_columns)
        The map that is moved: the same rows in the same order, unless ``pairs`` states which belong
        together. The number of columns may differ; the narrower map gets columns of zeros.
    pairs : array of int of shape (n_pairs, 2), optional
        Rows of Y1 and of Y2 that are the same object. Only they decide how Y2 is moved; all of its
        rows are.
    scaling : bool, default=True
        Whether the size of Y2 may change.
    reflection : bool, default=True
        Whether Y2 may be mirrored.

    Returns
    -------
    Procrustes
        ``aligned``, ``rotation``, ``scale``, ``translation``; ``disparity``, the share of the
        variance of Y1 that the aligned map does not explain, with the best scale whatever
        ``scaling`` says, and the same if the maps change places; ``residuals``, the distance that
        is left between the two points of each pair, in the order of the pairs.

    References
    ----------
    Schönemann (1966), A generalized solution of the orthogonal Procrustes problem,
    Psychometrika 31.
    Gower (1975), Generalized Procrustes analysis, Psychometrika 40.

    Examples
    --------
    >>> import lowland
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> pca, mds = lowland.PCA(2).fit_transform(X), lowland.ClassicalMDS(2).fit_transform(3 * X)
    >>> found = lowland.procrustes(pca, -mds)
    >>> found
    Procrustes(150 rows, 2 dimensions, disparity 0, scale 0.333)
    >>> bool(found.residuals.max() < 1e-9)
    True
    """
    first = check_matrix(Y1, owner=OWNER, argument="Y1").astype(np.float64, copy=False)
    second = check_matrix(Y2, owner=OWNER, argument="Y2").astype(np.float64, copy=False)
    n, m = len(first), len(second)
    if pairs is None and n != m:
        raise DataError(
            f"{OWNER}: Y1 has {count(n, 'row')}, but Y2 has {m}; give pairs, which state "
            "which rows belong together."
        )
    fixed, own = first, second
    if pairs is not None:
        rows = _row_pairs(pairs, n, m)
        fixed, own = first[rows[:, 0]], second[rows[:, 1]]
    found = align(fixed, own, scaling=scaling, reflection=reflection)
    aligned = found.aligned if pairs is None else _moved(second, own, found)
    there = np.zeros_like(found.aligned)
    there[:, : first.shape[1]] = fixed
    residuals = np.linalg.norm(there - found.aligned, axis=1)
    disparity = found.disparity if found.disparity > ROUNDING else 0.0
    return Procrustes(
        aligned, found.rotation, float(found.scale), found.translation, disparity, residuals
    )


def _row_pairs(given: Any, n1: int, n2: int) -> np.ndarray:
    """Row numbers of two maps of ``n1`` and ``n2`` rows, (m, 2), checked."""
    pairs = as_array(given, "pairs")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise DataError(f"pairs has shape {pairs.shape}, expected (m, 2) with m >= 1.")
    if pairs.dtype.kind not in "iu":
        raise DataTypeError(f"pairs holds {pairs.dtype}, expected integers: row numbers.")
    wrong = (pairs < 0) | (pairs >= [n1, n2])
    if wrong.any():
        i, column = np.argwhere(wrong)[0].tolist()
        raise DataError(
            f"pairs[{i}, {column}] = {pairs[i, column]} is not a row of Y{column + 1}; expected 0 "
            f"to {(n1, n2)[column] - 1}."
        )
    return pairs.astype(np.int64)


def _moved(Y: np.ndarray, own: np.ndarray, found: Alignment) -> np.ndarray:
    """All rows of a map, moved as the paired ones were.

    They are moved together with the center of the paired rows: large means would cancel the digits
    of small distances.
    """
    center = own.mean(axis=0)
    offsets = np.zeros((len(Y), len(found.rotation)))
    offsets[:, : Y.shape[1]] = Y - center
    return found.scale * (offsets @ found.rotation) + found.aligned.mean(axis=0)


# How well one map of two tables finds the partner of a row in the other table.


def match_accuracy(Y1: Any, Y2: Any, pairs: Any) -> Measured:
    """The share of pairs (i, j) in which no row of Y2 is nearer to row i of Y1 than row j is.

    The search runs in both directions, from Y1 to Y2 and back, over all rows of the other map. A
    partner that shares the nearest distance with m - 1 others counts 1 / m, so that a map of one
    point does not score. 1 is best; chance gives about 1 / n. Measure pairs that the map was not
    made with. O(m n q) for m pairs.

    Parameters
    ----------
    Y1, Y2 : arrays of shape (n_1, q) and (n_2, q)
        Maps of two tables with the same axes.
    pairs : integer array of shape (m, 2)
        Row of Y1 and row of Y2 of each object.

    Returns
    -------
    Measured
        Its standard error is that of m pairs drawn at random.

    Examples
    --------
    >>> Y = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> match_accuracy(Y, Y[::-1] + 0.1, [[0, 3], [1, 2], [2, 1], [3, 0]])
    1.0
    >>> match_accuracy(Y, Y, [[0, 1], [1, 0], [2, 2], [3, 3]])
    0.5
    """
    nearer, ties = match_ranks(Y1, Y2, pairs)
    return _mean(np.where(nearer == 0, 1 / ties, 0.0))


def match_rank(Y1: Any, Y2: Any, pairs: Any) -> Measured:
    """The mean share of rows of the other map that are nearer than the partner.

    Also known as FOSCTTM, the fraction of samples closer than the true match. 0 is best and 0.5 is
    chance. Rows at the same distance as the partner count half. Parameters as in
    :func:`match_accuracy`.

    Examples
    --------
    >>> Y = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> match_rank(Y, Y, [[0, 0], [1, 1]]), match_rank(Y, Y, [[0, 3], [3, 0]])
    (0.0, 1.0)
    """
    nearer, ties = match_ranks(Y1, Y2, pairs)
    others = np.array([[max(len(Y2) - 1, 1)], [max(len(Y1) - 1, 1)]])
    return _mean((nearer + (ties - 1) / 2) / others)


def match_ranks(Y1: Any, Y2: Any, pairs: Any) -> tuple[np.ndarray, np.ndarray]:
    """How many rows are nearer than the partner, and how many are as near, itself included.

    Arrays of shape (2, m): from Y1 to Y2, and back.
    """
    Y1 = check_matrix(Y1, owner="lowland.metrics", argument="Y1")
    Y2 = check_matrix(Y2, owner="lowland.metrics", argument="Y2")
    if Y1.shape[1] != Y2.shape[1]:
        raise DataError(
            f"Y1 has {Y1.shape[1]} columns, but Y2 has {Y2.shape[1]}; give maps with common axes."
        )
    pairs = _row_pairs(pairs, len(Y1), len(Y2))
    maps = Y1.astype(np.float64), Y2.astype(np.float64)
    nearer, ties = np.empty((2, len(pairs)), np.int64), np.empty((2, len(pairs)), np.int64)
    for side, (own, other) in enumerate((maps, maps[::-1])):
        rows, partners = (pairs, pairs[:, ::-1])[side].T
        cross = CrossDistances(other, "euclidean", None, resolve_n_jobs(None))
        for block, D in cross.blocks(own[rows]):
            true = np.take_along_axis(D, partners[block, None], axis=1)
            nearer[side, block] = (true > D).sum(axis=1)
            ties[side, block] = (true == D).sum(axis=1)
    return nearer, ties


def _mean(values: np.ndarray) -> Measured:
    """The mean of both directions; the two values of a pair are not independent."""
    each = values.mean(axis=0)
    error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else 0.0
    return Measured(float(each.mean()), error, len(each))
