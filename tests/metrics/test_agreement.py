"""Agreement of two maps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland.errors import LowlandError
from lowland.metrics import map_agreement
from support.cases import each
from support.planted_truths import changed


def nearest(Y, k):
    D = cdist(Y, Y)
    np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1, kind="stable")[:, :k]


@each(("n", "k"), [(80, 15), (300, 15), (300, 4), (9, 2)])
def test_agreement_is_the_share_of_common_neighbors(n, k, irregular):
    one, other = irregular(n, 3, 1), irregular(n, 3, 1)[:, :2] + 0.4 * irregular(n, 2, 2)
    found = map_agreement(one, other, k)
    ids = nearest(one, k), nearest(other, k)
    expected = [len(set(a) & set(b)) / k for a, b in zip(*map(np.ndarray.tolist, ids), strict=True)]
    np.testing.assert_allclose(found.points, expected, rtol=1e-12)
    assert found.mean == pytest.approx(np.mean(expected))
    assert found.chance == k / (n - 1)
    assert np.array_equal(map_agreement(other, one, k).points, found.points)


def test_a_map_agrees_with_itself_however_it_is_turned(irregular):
    Y, rng = irregular(200, 2), np.random.default_rng(0)
    other = irregular(200, 2, 5)
    first = map_agreement(Y, other)
    for order, Z in changed(Y, rng).values():
        assert map_agreement(Y[order], Z).points.min() == 1
        assert np.array_equal(map_agreement(Z, other[order]).points, first.points[order])


def test_unrelated_maps_agree_by_chance():
    n, k, means = 200, 10, []
    for seed in range(30):
        one, other = np.random.default_rng(seed).normal(size=(2, n, 2))
        means.append(map_agreement(one, other, k).mean)
    # k^2 / (n - 1) common neighbors at each of n points: a standard error of 1 / sqrt(all of them)
    assert abs(np.mean(means) / (k / (n - 1)) - 1) < 4 / np.sqrt(30 * n * k**2 / (n - 1))


def test_points_at_one_place_do_not_disagree(irregular):
    Y = irregular(120, 2)
    assert map_agreement(Y, np.zeros((120, 2))).mean == 1
    grid = np.random.default_rng(0).integers(0, 4, (200, 2)).astype(float)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert map_agreement(grid, 0.3 * grid @ turn).points.min() == 1


def test_threads_precision_and_inputs(irregular):
    one, other = irregular(3000, 2), irregular(3000, 3, 1)
    one.flags.writeable = other.flags.writeable = False
    a, b = map_agreement(one, other, n_jobs=1), map_agreement(one, other, n_jobs=2)
    assert a.points.tobytes() == b.points.tobytes()
    narrow = map_agreement(one.astype(np.float32), other.astype(np.float32))
    assert abs(narrow.mean - a.mean) < 1e-3


@each("bad", [0, -1, 2.5, "5", None, True, [], [3]])
def test_numbers_of_neighbors_that_are_none(bad, irregular):
    with pytest.raises(LowlandError, match="n_neighbors="):
        map_agreement(irregular(30, 2), irregular(30, 2), bad)


def test_bad_maps_are_named(irregular):
    Y = irregular(30, 2)
    with pytest.raises(LowlandError, match="Y2 has 29 rows, but Y1 has 30"):
        map_agreement(Y, Y[1:])
    with pytest.raises(LowlandError, match="Y2 contains NaN"):
        map_agreement(Y, np.where(Y[3, 1] == Y, np.nan, Y))
    with pytest.raises(LowlandError, match="n_samples=2"):
        map_agreement(Y[:2], Y[:2])
    with pytest.raises(LowlandError, match="n_jobs=0"):
        map_agreement(Y, Y, n_jobs=0)
