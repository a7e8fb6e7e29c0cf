"""Measures of matches between two maps against their definition by loops."""

import numpy as np
import pytest

from lowland.errors import DataError, LowlandError
from lowland.metrics import match_accuracy, match_rank, match_ranks


def by_loops(Y1, Y2, pairs):
    accuracy, rank = [], []
    for own, other, ends in ((Y1, Y2, pairs), (Y2, Y1, pairs[:, ::-1])):
        for i, j in ends:
            d = [np.sqrt(sum((own[i] - y) ** 2)) for y in other]
            nearer, ties = sum(x < d[j] for x in d), sum(x == d[j] for x in d)
            accuracy.append(1 / ties if nearer == 0 else 0.0)
            rank.append((nearer + (ties - 1) / 2) / (len(other) - 1))
    return np.mean(accuracy), np.mean(rank)


def test_both_are_those_of_the_definition(irregular):
    Y1 = irregular(40, 3, seed=1)
    Y2 = np.vstack([Y1[::-1] + 0.3, irregular(9, 3, seed=2), np.round(Y1[:3]), np.round(Y1[:3])])
    pairs = np.array([[i, 39 - i] for i in range(0, 40, 3)] + [[0, 49], [2, 54]])
    accuracy, rank = by_loops(Y1, Y2, pairs)
    assert match_accuracy(Y1, Y2, pairs) == pytest.approx(accuracy)
    assert match_rank(Y1, Y2, pairs) == pytest.approx(rank)
    assert match_accuracy(Y1 * 1e60, Y2 * 1e60, pairs) == pytest.approx(accuracy)


def test_a_perfect_map_a_random_one_and_a_point():
    rng = np.random.default_rng(0)
    Y, Z = rng.standard_normal((2, 300, 2))
    same = np.column_stack([np.arange(300)] * 2)
    assert match_accuracy(Y, Y, same) == 1
    assert match_rank(Y, Y, same) == 0
    found = match_rank(Y, Z, same)
    assert abs(found - 0.5) < 4 * found.standard_error
    assert 0 < found.standard_error < 0.03
    assert match_rank(0 * Y, 0 * Y, same) == pytest.approx(0.5)
    assert match_accuracy(0 * Y, 0 * Y, same) == pytest.approx(1 / 300)
    nearer, ties = match_ranks(Y, Y, same)
    assert (nearer == 0).all()
    assert (ties == 1).all()


def test_bad_pairs_are_refused_by_place():
    Y = np.zeros((4, 2))
    for pairs, message in (
        ([[0, 4]], r"pairs\[0, 1\] = 4 is not a row of Y2; expected 0 to 3"),
        ([[-1, 0]], r"pairs\[0, 0\] = -1"),
        ([[0.0, 1.0]], "expected integers"),
        ([0, 1], r"expected \(m, 2\)"),
        (np.empty((0, 2), int), r"m >= 1"),
    ):
        with pytest.raises(LowlandError, match=message):
            match_accuracy(Y, Y, pairs)
    with pytest.raises(DataError, match="common axes"):
        match_rank(Y, Y[:, :1], [[0, 0]])
