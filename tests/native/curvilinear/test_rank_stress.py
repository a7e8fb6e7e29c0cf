"""rank_forces, rank_heights and rank_places against their definitions."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland import _native
from support.cases import each
from support.kernels import each_isa
from support.oracles.curvilinear_rank_visu import rank_gaps, rank_intervals


def lists_of(D, length, own):
    """The nearest points of each row of D, and whether they tie with the next ones."""
    points, ties = [], []
    for i, row in enumerate(D):
        order = [j for j in np.lexsort((np.arange(len(row)), row)) if not own or j != i]
        points.append(order[:length])
        ties.append(
            [p + 1 < len(order) and row[j] == row[order[p + 1]] for p, j in enumerate(order)]
        )
    return np.array(points, np.int32), np.array(ties, np.uint8)[:, :length].copy()


def forces_of(Y, lists, k, options=(1.0, 0.0, 1.0), reach=None, threads=1, isa="auto"):
    n = len(Y)
    reach = np.zeros(n) if reach is None else reach
    stress, forces, weights = np.full(n, np.nan), np.full(Y.shape, np.nan), np.full(n, np.nan)
    _native.rank_forces(Y, *lists, k, *options, reach, stress, forces, weights, threads, isa)
    return stress, forces, weights


def without(row, i):
    return np.delete(row, i)


def stress_oracle(Y, D, k, length):
    d = cdist(Y, Y)
    return [
        rank_gaps(rank_intervals(without(D[i], i), length), without(d[i], i), k, length)
        for i in range(len(Y))
    ]


def forces_oracle(Y, D, k, length, push, even, spacing):
    """One pair at a time, as the comment in rank_forces.cpp says."""
    n, d = len(Y), cdist(Y, Y)
    forces, weights = np.zeros(Y.shape), np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        intervals = dict(zip(others, rank_intervals(D[i, others], length), strict=True))
        order = sorted(others, key=lambda j: (d[i, j], j))
        squares = [d[i, j] ** 2 for j in order[:length]]
        for place, j in enumerate(order, 1):
            rank, (listed, first, last) = min(place, length + 1), intervals[j]
            right = min(max(rank, first), last)
            if min(place, listed) > k or right == rank:
                continue
            target = squares[min(right, length) - 1]
            if k < right <= length:  # a line between the k-th and the last one
                target = np.interp(right, [k, length], [squares[k - 1], squares[length - 1]])
            weight = (
                squares[k - 1] / (squares[k - 1] + d[i, j] ** 2) * (push if rank < right else 1)
            )
            pull = weight * (1 - np.sqrt(target) / d[i, j]) * (Y[j] - Y[i])
            forces[i] += pull
            forces[j] -= pull
            weights[[i, j]] += weight
        wider = np.clip((spacing / np.sqrt(squares[k - 1])) ** 0.25, 0.5, 2)
        for j, square in zip(order[:k], squares[:k], strict=True):
            weight = even * squares[k - 1] / (squares[k - 1] + square)
            forces[i] += weight * (1 - wider) * (Y[j] - Y[i])
            forces[j] -= weight * (1 - wider) * (Y[j] - Y[i])
            weights[[i, j]] += weight
    return forces, weights


@each("d", [1, 2, 3, 5])
@each_isa
def test_stress_and_forces_equal_their_definitions(d, isa, irregular):
    for n, k, length in [(2, 1, 1), (3, 1, 2), (9, 3, 8), (50, 4, 7), (60, 5, 30), (40, 3, 39)]:
        Y, D = irregular(n, d, seed=1), cdist(*[irregular(n, 4)] * 2)
        lists = lists_of(D, length, own=True)
        for options in [(0.3, 0.0, 1.0), (0.3, 0.2, 1e-9), (1.0, 0.5, 0.7)]:
            stress, forces, weights = forces_of(Y, lists, k, options, isa=isa)
            np.testing.assert_array_equal(stress, stress_oracle(Y, D, k, length))
            expected, sums = forces_oracle(Y, D, k, length, *options)
            np.testing.assert_allclose(weights, sums, rtol=1e-9, atol=1e-12)
            size = np.abs(expected).max(initial=1)
            np.testing.assert_allclose(forces, expected, atol=1e-9 * size)


@each_isa
def test_ties_and_points_at_one_place(isa, irregular):
    rng = np.random.default_rng(4)
    for n, length in [(40, 9), (90, 25), (70, 69)]:
        D = np.ceil(3 * cdist(*[irregular(n, 3)] * 2))
        Y = rng.integers(0, 4, (n, 2)).astype(float)
        lists = lists_of(D, length, own=True)
        stress, forces, weights = forces_of(Y, lists, 5, (1.0, 0.1, 1.0), isa=isa)
        np.testing.assert_array_equal(stress, stress_oracle(Y, D, 5, length))
        assert np.isfinite(forces).all()
        assert np.isfinite(weights).all()
    one = np.zeros((50, 2))
    assert forces_of(one, lists_of(np.zeros((50, 50)), 20, own=True), 5, isa=isa)[0].sum() == 0


@each("shape", ["even", "clusters", "line", "one far away"])
def test_many_points_are_searched_as_few(shape, irregular):
    n, length = 1500, 20
    rng = np.random.default_rng(2)
    Y = rng.standard_normal((n, 2))
    if shape == "clusters":
        Y = 1e-4 * Y + rng.integers(0, 5, (n, 2))
    elif shape == "line":
        Y[:, 1] = 0
    elif shape == "one far away":
        Y[7] = 1e9
    X = irregular(n, 3)
    some = rng.choice(n, 40, replace=False)
    near = np.argsort(cdist(X, X) + np.diag(np.full(n, np.inf)), axis=1)[:, :length]
    lists = np.ascontiguousarray(near, np.int32), np.zeros((n, length), np.uint8)
    found = forces_of(Y, lists, 4)
    for reach in (1e-12, 1.0, 1e30):  # what is remembered of an earlier map changes no byte
        for a, b in zip(forces_of(Y, lists, 4, reach=np.full(n, reach)), found, strict=True):
            np.testing.assert_array_equal(a, b)
    for i in some:
        D, d = cdist(X[[i]], X)[0], np.sqrt(((Y - Y[i]) ** 2).sum(axis=1))
        order, place = np.argsort(without(d, i), kind="stable"), np.empty(n - 1, int)
        place[order] = np.arange(1, n)
        rank = np.empty(n - 1, int)
        rank[np.argsort(without(D, i), kind="stable")] = np.arange(1, n)
        counts = np.minimum(rank, place) <= 4
        gaps = np.abs(np.minimum(rank, length + 1) - np.minimum(place, length + 1))
        assert found[0][i] == gaps[counts].sum()


@each_isa
def test_two_threads_give_the_same_bytes(isa, irregular, same_for_threads):
    Y, D = irregular(400, 2, seed=1), cdist(*[irregular(400, 5)] * 2)
    lists = lists_of(D, 30, own=True)
    same_for_threads(lambda t: forces_of(Y, lists, 6, (0.1, 0.3, 0.1), threads=t, isa=isa))


@each("d", [1, 2, 3, 4])
@each_isa
def test_heights_of_new_rows_equal_their_definition(d, isa, irregular):
    for n, k, length in [(1, 1, 1), (5, 2, 5), (80, 4, 12)]:
        Y, Z, T = (
            irregular(n, d),
            irregular(11, d, seed=3),
            cdist(irregular(11, 3), irregular(n, 3)),
        )
        out = np.full(11, np.nan)
        _native.rank_heights(Y, *lists_of(T, length, own=False), k, Z, out, 1, isa)
        expected = [
            rank_gaps(rank_intervals(t, length), cdist(z[None], Y)[0], k, length)
            for t, z in zip(T, Z, strict=True)
        ]
        np.testing.assert_array_equal(out, expected)


def places_of(Y, lists, k, equal=None, threads=1):
    Z = np.full((len(lists[0]), Y.shape[1]), np.nan)
    equal = np.zeros(len(Z), np.int32) if equal is None else equal
    _native.rank_places(Y, *lists, k, equal, Z, threads)
    return Z


@each("d", [1, 2, 3, 5])
def test_places_are_not_higher_than_those_of_the_nearest_points(
    d, irregular, same_for_threads, same_alone
):
    Y, T = irregular(300, d), cdist(irregular(20, 4, seed=5), irregular(300, 4))
    lists = points, ties = lists_of(T, 40, own=False)
    Z = places_of(Y, lists, 5)
    same_for_threads(lambda threads: places_of(Y, lists, 5, threads=threads))
    same_alone(lambda rows: [places_of(Y, (points[rows], ties[rows]), 5)], range(20))

    def heights(Z):
        out = np.empty(20)
        _native.rank_heights(Y, *lists, 5, np.ascontiguousarray(Z), out, 1)
        return out

    best = np.min([heights(Y[lists[0][:, t]]) for t in range(5)], axis=0)
    assert (heights(Z) <= best).all()
    assert heights(Z).sum() < best.sum()


def test_equal_rows_get_the_place_of_a_point(irregular):
    Y, T = irregular(30, 2), cdist(irregular(6, 3), irregular(30, 3))
    lists = lists_of(T, 10, own=False)
    Z = places_of(Y, lists, 3, np.ones(6, np.int32))
    np.testing.assert_array_equal(Z, Y[lists[0][:, 0]])


def test_wrong_lists_are_refused(irregular):
    Y = irregular(6, 2)
    points, ties = lists_of(cdist(Y, Y), 3, own=True)
    for places, lists, k, message in [
        (Y, (points + 4, ties), 2, "below n"),
        (Y, (points - 3, ties), 2, "below n"),
        (Y, (points, ties), 4, "k must be"),
        (Y, (points, ties[:, :2].copy()), 2, "ties"),
        (Y, (points[:5], ties[:5]), 2, "one list per point"),
        (Y[:3], (points[:3] % 3, ties[:3]), 2, "longer"),
        (np.where(np.eye(6, 2) > 0, np.nan, Y), (points, ties), 2, "finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            forces_of(places, lists, k)
    with pytest.raises(ValueError, match="equal must be from 0"):
        places_of(Y, (points, ties), 2, np.full(6, 4, np.int32))
