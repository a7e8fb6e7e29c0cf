"""Missing neighbors and strangers: the definition, ties, chance, other forms of the data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from scipy.stats import hypergeom

from lowland import metrics
from lowland.datasets import digits
from lowland.errors import LowlandError
from lowland.metrics import Comparison, missing_neighbors, missing_p_values, strangers
from lowland.neighbors import knn_graph
from support.cases import each
from support.planted_truths import changed


def ranks(D):
    """1 for the nearest other row, 0 for the row itself."""
    D = np.array(D, dtype=float)
    np.fill_diagonal(D, -1)
    return np.argsort(np.argsort(D, axis=1, kind="stable"), axis=1, kind="stable")


def lost(D, d, k, reach):
    """The share of the k nearest by D that are not among the ``reach`` nearest by d."""
    near, seen = ranks(D), ranks(d)
    n = len(D)
    return np.array(
        [sum(1 <= near[i, j] <= k and seen[i, j] > reach for j in range(n)) / k for i in range(n)]
    )


def counts(shares, k=15):
    """Whole numbers of neighbors, which can be compared exactly."""
    found = np.rint(k * shares)
    np.testing.assert_allclose(found, k * shares, atol=1e-9)
    return found.astype(int)


def both(X, Y, **options):
    return missing_neighbors(X, Y, **options), strangers(X, Y, **options)


@each(
    ("n", "k", "reach"), [(90, 15, None), (400, 15, None), (400, 5, 40), (330, 30, 30), (9, 2, 5)]
)
def test_both_measures_are_their_definition(n, k, reach, irregular):
    X, Y = irregular(n, 6, 1), irregular(n, 6, 1)[:, :2] + 0.3 * irregular(n, 2, 2)
    quarter = (n - 1) // 4
    K = min(75 if reach is None else reach, quarter)
    D, d = cdist(X, X), cdist(Y, Y)
    k, K = min(k, quarter), max(K, min(k, quarter))
    found = both(X, Y, n_neighbors=k, reach=reach)
    assert np.array_equal(counts(found[0], k), counts(lost(D, d, k, K), k))
    assert np.array_equal(counts(found[1], k), counts(lost(d, D, k, K), k))
    assert 0.02 < found[0].mean() < 0.9  # a map that is neither right nor random


def test_the_reach_is_75_up_to_7500_rows_and_one_percent_beyond(irregular):
    for n, reach in ((301, 75), (200, 49), (7500, 75), (7700, 77), (12_000, 120)):
        Y = irregular(n, 2)
        assert metrics.point_home(Y, Y).reach == reach


@each("d", [2, 4])
def test_a_reach_beyond_the_lists_is_extrapolated(d, irregular):
    # 150 of lists of 75: half of the disc is extrapolated. Its radius is wrong by the error of a
    # count of 75, 12 %, so that ranks from 120 to 180 may be judged wrongly. These are a few
    # hundredths of a row's neighbors, and errors of both signs.
    n, reach = 2000, 150
    X = irregular(n, d, 3)
    Y = X[:, :2] + 0.4 * irregular(n, 2, 4)
    listed = knn_graph(X, reach), knn_graph(Y, reach)
    for found, true in (
        (missing_neighbors(X, Y, reach=reach), beyond(*listed)),
        (strangers(X, Y, reach=reach), beyond(*listed[::-1])),
    ):
        assert np.abs(found - true).mean() < 0.03
        assert abs(found.mean() - true.mean()) < 0.015
        assert np.corrcoef(found, true)[0, 1] > 0.95


def beyond(near, seen):
    """The share of the 15 nearest of one graph that are not in the lists of another."""
    pairs = zip(near.indices[:, :15], seen.indices, strict=True)
    return 1 - np.array([np.isin(ids, listed).sum() for ids, listed in pairs]) / 15


def test_one_percent_of_many_rows_against_the_exact_lists(irregular):
    n = 9000
    X = irregular(n, 3, 5)
    Y = X[:, :2] + 0.3 * irregular(n, 2, 6)
    listed = knn_graph(X, 90), knn_graph(Y, 90)  # 1 % of the rows
    assert np.abs(missing_neighbors(X, Y) - beyond(*listed)).mean() < 0.03
    assert np.abs(strangers(X, Y) - beyond(*listed[::-1])).mean() < 0.03


# --- ties ---------------------------------------------------------------------------------------

SURVEY = np.random.default_rng(0).integers(1, 6, (500, 3)).astype(float)
TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
TIED = {
    "the map is the data": (SURVEY, SURVEY),
    "turned, so that ties are rounded": (SURVEY, 0.7 * SURVEY @ TURN),
    "two answers": (SURVEY[:, :2], SURVEY[:, :2]),
    "one answer": (SURVEY[:, :1], SURVEY[:, :1] * 0.1),
    "five points of many rows": (np.repeat(SURVEY[:5, :2], 60, axis=0),) * 2,
    "all rows equal": (np.ones((300, 4)), np.zeros((300, 2))),
    "all data equal": (np.ones((300, 4)), np.random.default_rng(2).normal(size=(300, 2))),
}


@each("name", TIED)
@each("width", [np.float64, np.float32])
def test_ties_are_no_errors(name, width):
    X, Y = (Z.astype(width) for Z in TIED[name])
    for found in both(X, Y):
        assert not found.any()


def lost_at_best(D, d, k, radius):
    """The same as :func:`lost` for the best choice of k nearest among rows that are equally near.

    ``radius`` is the distance of the K nearest by d, which all of them may have.
    """
    shares = []
    for i in range(len(D)):
        others = [j for j in range(len(D)) if j != i]
        last = sorted(D[i, others])[k - 1]
        nearer = [j for j in others if D[i, j] < last]
        tied = [j for j in others if D[i, j] == last]
        far = {j for j in others if d[i, j] > radius[i] * (1 + 1e-9)}
        hits = sum(j not in far for j in nearer)
        hits += min(sum(j not in far for j in tied), k - len(nearer))
        shares.append(1 - hits / k)
    return np.array(shares)


@each("seed", [0, 1, 2])
def test_the_best_choice_of_equally_near_rows_counts_and_no_more(seed):
    """Whole numbers in few columns; lists are longer than any tie at the k-th neighbor."""
    rng = np.random.default_rng(seed)
    X, Y = rng.integers(0, 9, (240, 3)).astype(float), rng.integers(0, 16, (240, 2)).astype(float)
    D, d = (np.sqrt(((Z[:, None] - Z) ** 2).sum(axis=2)) for Z in (X, Y))
    k, K = 6, 20
    radii = [np.sort(side, axis=1)[:, K] for side in (D, d)]
    found = both(X, Y, n_neighbors=k, reach=K)
    expected = lost_at_best(D, d, k, radii[1]), lost_at_best(d, D, k, radii[0])
    tied = [(np.sort(side, axis=1)[:, k + 1] == np.sort(side, axis=1)[:, k]) for side in (D, d)]
    assert all(row.mean() > 0.3 for row in tied)
    for one, other, side in zip(found, expected, (D, d), strict=True):
        complete = np.sort(side, axis=1)[:, K + 1] > np.sort(side, axis=1)[:, k]  # ties are listed
        assert complete.mean() > 0.9
        assert np.array_equal(counts(one[complete], k), counts(other[complete], k))


def test_a_map_of_one_place_keeps_all_neighbors_and_shows_strangers(irregular):
    """All rows at one place are as near as the nearest: nothing is lost, but unlike rows meet."""
    X = irregular(300, 3)
    missing, strange = both(X, np.zeros((300, 2)))
    assert not missing.any()
    assert 0 < strange.mean() < metrics.chance_of_missing(300, 74)  # the best of the tied count


def test_a_grid_of_cells_is_no_error():
    # The 15 nearest of 600 points in a square lie within .09, the 75 nearest within .2 of a point;
    # rounding to a grid of .05 moves each of two points by .036 at most.
    X = np.random.default_rng(3).uniform(size=(600, 2))
    for found in both(X, np.round(20 * X)):
        assert not found.any()


def test_true_errors_are_seen_among_ties():
    rng = np.random.default_rng(4)
    X = np.vstack([rng.integers(0, 5, (200, 3)), rng.integers(20, 25, (200, 3))]).astype(float)
    Y = X[:, :2].copy()
    Y[[0, 399]] = Y[[399, 0]]
    for found in both(X, Y):
        assert np.array_equal(found[[0, 399]], [1, 1])
        assert np.delete(found, [0, 399]).max() < 0.5


# --- chance -------------------------------------------------------------------------------------


@each(("n", "k", "reach"), [(400, 15, 75), (100, 20, 24), (60, 3, 10)])
def test_random_maps_are_hypergeometric(n, k, reach):
    kept = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
        for found in both(X, Y, n_neighbors=k, reach=reach):
            kept.append(np.rint(k * (1 - found)).astype(int))
    kept = np.concatenate(kept)
    law = hypergeom(n - 1, reach, k)
    # Points of one map are not independent: as if there were n / k of them in each of 40 maps.
    error = law.std() / np.sqrt(40 * n / k)
    assert abs(kept.mean() - law.mean()) < 4 * error
    assert abs(1 - kept.mean() / k - metrics.chance_of_missing(n, reach)) < 4 * error / k
    seen = np.bincount(kept, minlength=k + 1) / len(kept)
    expected = law.pmf(np.arange(k + 1))
    assert np.abs(seen - expected).max() < 4 * np.sqrt(0.25 / (40 * n / k))
    p = missing_p_values(1 - kept / k, n, k, reach)
    for level in (0.01, 0.05, 0.2):  # at most so many by chance; fewer, because counts are whole
        assert (p <= level).mean() < level + 4 * np.sqrt(level / (40 * n / k))


def test_p_values_are_those_of_scipy():
    for n, k, reach in ((1000, 15, 75), (61, 15, 15), (100_000, 15, 1000), (20, 4, 16)):
        hits = np.arange(k + 1)
        found = missing_p_values(1 - hits / k, n, k, reach)
        np.testing.assert_allclose(
            found, hypergeom(n - 1, reach, k).sf(hits - 1), rtol=1e-8, atol=1e-300
        )
    assert np.isnan(missing_p_values(np.array([np.nan, 0.2]), 100, 15, 20)).tolist() == [
        True,
        False,
    ]


def test_p_values_of_a_home_are_those_of_its_numbers(irregular):
    X = irregular(200, 4)
    found = metrics.point_home(X, X[:, :2], sample=50)
    expected = missing_p_values(found.missing, 200, found.n_neighbors, found.reach)
    np.testing.assert_array_equal(found.p_values(), expected)
    assert np.isfinite(found.p_values()).sum() == 50


# --- input --------------------------------------------------------------------------------------


def test_the_same_data_in_other_forms(irregular):
    X = np.where(irregular(250, 8) > 3, irregular(250, 8), 0.0)
    Y = irregular(250, 2, 1)
    dense = both(X, Y)
    D = cdist(X, X)
    for found in (
        both(scipy.sparse.csr_array(X), Y),
        both(X.tolist(), Y.tolist()),
        both(D, Y, metric="precomputed"),
        both(knn_graph(X, 75), Y),
        both(X, Y, graph=knn_graph(X, 90)),
        (
            missing_neighbors(Comparison(X, Y, sample=None)),
            strangers(Comparison(X, Y, sample=None)),
        ),
    ):
        assert all(np.array_equal(a, b) for a, b in zip(dense, found, strict=True))
    assert np.abs(dense[0] - both(X.astype(np.float32), Y.astype(np.float32))[0]).mean() < 1e-3


def test_other_metrics(irregular):
    X, Y = np.abs(irregular(200, 5)) + 0.1, irregular(200, 2, 1)
    for metric, name in (("cosine", "cosine"), ("manhattan", "cityblock"), ("correlation",) * 2):
        D = cdist(X, X, name)
        missing, strange = both(X, Y, metric=metric)
        assert np.array_equal(counts(missing), counts(lost(D, cdist(Y, Y), 15, 49)))
        assert np.array_equal(counts(strange), counts(lost(cdist(Y, Y), D, 15, 49)))
    sparse = both(scipy.sparse.csr_array(X), Y, metric="cosine")
    assert np.array_equal(sparse[0], both(X, Y, metric="cosine")[0])


def test_a_sample_has_the_values_of_all_rows(irregular):
    X, Y = irregular(300, 5), irregular(300, 2, 1)
    for measure in (missing_neighbors, strangers):
        every, some = measure(X, Y), measure(X, Y, sample=60)
        known = np.isfinite(some)
        assert known.sum() == 60
        assert np.array_equal(some[known], every[known])


def test_threads_and_inputs(irregular):
    X, Y = irregular(3000, 5), irregular(3000, 2, 1)
    X.flags.writeable = Y.flags.writeable = False
    before = X.copy(), Y.copy()
    one, two = both(X, Y, n_jobs=1), both(X, Y, n_jobs=2)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))
    assert np.array_equal(X, before[0])
    assert np.array_equal(Y, before[1])


def test_position_size_and_order_do_not_matter(irregular):
    X = irregular(300, 5)
    Y = X[:, :2] + irregular(300, 2, 1)
    first = both(X, Y)
    for order, Z in changed(Y, np.random.default_rng(0)).values():
        for one, other in zip(first, both(X[order], Z), strict=True):
            assert np.array_equal(one[order], other)


def test_order_does_not_matter_in_tables_of_whole_numbers():
    X = digits().X[:400]  # many distances are equal, few rows
    Y = X[:, 20:22] + np.random.default_rng(0).normal(size=(400, 2))
    order = np.random.default_rng(1).permutation(400)
    for one, other in zip(both(X, Y), both(X[order], Y[order]), strict=True):
        assert np.array_equal(one[order], other)


@each("measure", [missing_neighbors, strangers, metrics.point_home])
@each("bad", [0, -3, 2.5, "5", True, [5]])
def test_numbers_of_neighbors_that_are_none(measure, bad, irregular):
    X = irregular(40, 3)
    for k in (bad, None):
        with pytest.raises(LowlandError, match="n_neighbors="):
            measure(X, X, k)
    with pytest.raises(LowlandError, match="reach="):
        measure(X, X, 5, bad)


def test_numbers_of_neighbors_may_be_narrow(irregular):
    X = irregular(300, 3)
    found = missing_neighbors(X, X[:, :2], np.int8(15), np.int8(70))
    assert np.array_equal(found, missing_neighbors(X, X[:, :2], 15, 70))
    assert metrics.map_agreement(X, X, np.int8(100)).mean == 1
    assert missing_p_values(np.array([0.5]), 1000, np.int8(15), np.int8(75))[0] < 1e-3


def test_bad_arguments_of_chance_are_named():
    for call, name in (
        (lambda: metrics.chance_of_missing(1, 75), "n=1"),
        (lambda: metrics.chance_of_missing(100, 0), "reach=0"),
        (lambda: missing_p_values(np.array([1.5]), 100, 15, 75), "missing"),
        (lambda: missing_p_values(np.array([0.5]), 10, 15, 5), "n_neighbors=15"),
        (lambda: missing_p_values(np.array([0.5]), 100, 15, 100), "reach=100"),
        (lambda: missing_p_values(np.array([0.5]), "100", 15, 50), "n='100'"),
        (lambda: missing_p_values(["a"], 100, 15, 50), "missing has the type"),
        (
            lambda: missing_p_values([[1], [1, 2]], 100, 15, 50),
            "missing cannot be read",
        ),
    ):
        with pytest.raises(LowlandError, match=name):
            call()


def test_a_graph_with_too_few_neighbors_is_refused_by_name(irregular):
    X = irregular(400, 3)
    with pytest.raises(LowlandError, match="n_neighbors=75 is more than the 20"):
        missing_neighbors(knn_graph(X, 20), X[:, :2])
