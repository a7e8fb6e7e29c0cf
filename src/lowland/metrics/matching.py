"""How well one map of two tables finds the partner of a row in the other table."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError, DataTypeError
from lowland._core.threads import resolve_n_jobs
from lowland._core.validation import as_array, check_matrix
from lowland._engines.distances.cross_distances import CrossDistances
from lowland._engines.linalg.magnitude import near_one
from lowland.metrics._measured import Measured


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
    Y1, Y2 = _maps(Y1, Y2)
    nearer, ties = match_ranks(Y1, Y2, pairs)
    others = np.array([[max(len(Y2) - 1, 1)], [max(len(Y1) - 1, 1)]])
    return _mean((nearer + (ties - 1) / 2) / others)


def match_ranks(Y1: Any, Y2: Any, pairs: Any) -> tuple[np.ndarray, np.ndarray]:
    """How many rows are nearer than the partner, and how many are as near, itself included.

    Arrays of shape (2, m): from Y1 to Y2, and back.
    """
    Y1, Y2 = _maps(Y1, Y2)
    pairs = _pairs(pairs, len(Y1), len(Y2))
    both = near_one(np.concatenate([Y1, Y2]).astype(np.float64))
    maps = both[: len(Y1)], both[len(Y1) :]
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


def _maps(Y1: Any, Y2: Any) -> tuple[np.ndarray, np.ndarray]:
    Y1 = check_matrix(Y1, owner="lowland.metrics", argument="Y1")
    Y2 = check_matrix(Y2, owner="lowland.metrics", argument="Y2")
    if Y1.shape[1] != Y2.shape[1]:
        raise DataError(
            f"Y1 has {Y1.shape[1]} columns, but Y2 has {Y2.shape[1]}; give maps with common axes."
        )
    return Y1, Y2


def _pairs(given: Any, n1: int, n2: int) -> np.ndarray:
    pairs = as_array(given, "pairs")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise DataError(f"pairs has shape {pairs.shape}, expected (m, 2) with m >= 1.")
    if pairs.dtype.kind not in "iu":
        raise DataTypeError(f"pairs holds {pairs.dtype}, expected integers: row numbers.")
    for column, n in enumerate((n1, n2)):
        wrong = (pairs[:, column] < 0) | (pairs[:, column] >= n)
        if wrong.any():
            i = int(wrong.argmax())
            raise DataError(
                f"pairs[{i}, {column}] = {pairs[i, column]} is no row of Y{column + 1}; expected 0 "
                f"to {n - 1}."
            )
    return pairs.astype(np.int64)
