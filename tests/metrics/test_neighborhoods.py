"""Trustworthiness, continuity, recall, LCMC, rank errors, co-ranking, R_NX: against definitions."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.manifold import trustworthiness as sklearn_trustworthiness

from lowland import metrics
from lowland.metrics import Comparison
from lowland.neighbors import knn_graph
from support.cases import each


def sizes_of(n):
    return sorted({1, 2, min(7, (n - 1) // 2), (n - 1) // 2})


def test_trustworthiness_and_continuity_are_their_definitions(pair, oracle):
    sizes = sizes_of(pair.n)
    trust = metrics.trustworthiness(pair.X, pair.Y, sizes)
    torn = metrics.continuity(pair.X, pair.Y, sizes)
    for k, t, c in zip(sizes, trust, torn, strict=True):
        assert t == pytest.approx(oracle.trustworthiness(pair.D, pair.d, k), abs=1e-12)
        assert c == pytest.approx(oracle.trustworthiness(pair.d, pair.D, k), abs=1e-12)


def test_recall_and_lcmc_are_their_definitions(pair, oracle):
    n = pair.n
    sizes = [*sizes_of(n), n - 1]
    recalls = metrics.neighbor_recall(pair.X, pair.Y, sizes)
    corrected = metrics.lcmc(pair.X, pair.Y, sizes)
    for k, q, c in zip(sizes, recalls, corrected, strict=True):
        assert q == pytest.approx(oracle.recall(pair.D, pair.d, k), abs=1e-12)
        assert c == pytest.approx(oracle.recall(pair.D, pair.d, k) - k / (n - 1), abs=1e-12)


def test_rank_errors_are_their_definition(pair, oracle):
    sizes = sizes_of(pair.n)
    for k, errors in zip(
        sizes, metrics.mean_relative_rank_errors(pair.X, pair.Y, sizes), strict=True
    ):
        assert errors == pytest.approx(oracle.rank_errors(pair.D, pair.d, k), abs=1e-12)


def test_the_coranking_matrix_is_its_definition(pair, oracle):
    expected = oracle.coranking(pair.D, pair.d)
    assert np.array_equal(metrics.coranking_matrix(pair.X, pair.Y), expected)
    for k in sizes_of(pair.n):
        corner = metrics.coranking_matrix(pair.X, pair.Y, k)
        assert np.array_equal(corner, expected[:k, :k])


def test_rnx_is_read_from_the_coranking_matrix(pair, oracle):
    curve = metrics.rnx_curve(pair.X, pair.Y)
    assert np.array_equal(curve.n_neighbors, np.arange(1, pair.n - 1))
    assert curve.values == pytest.approx(oracle.rnx(pair.D, pair.d), abs=1e-12)
    assert metrics.rnx_auc(pair.X, pair.Y) == pytest.approx(
        oracle.rnx_auc(pair.D, pair.d), abs=1e-12
    )
    assert not curve.standard_errors.any()
    assert curve.sample_size == pair.n


@each("k", [1, 5, 12, 60])
@each("metric", ["euclidean", "cosine", "manhattan"])
def test_trustworthiness_equals_scikit_learns(metric, k, irregular):
    X = irregular(150, 10)
    Y = X[:, :2] + np.random.default_rng(0).normal(scale=0.3, size=(150, 2))
    theirs = sklearn_trustworthiness(X, Y, n_neighbors=k, metric=metric)
    assert metrics.trustworthiness(X, Y, k, metric=metric) == pytest.approx(theirs, abs=1e-12)


def test_points_share_in_the_mean_and_a_planted_fault_is_found(irregular):
    X = irregular(120, 6)
    Y = X.copy()
    Y[7] = Y[90] + 1e-3  # row 7 is torn from its neighbors and glued to those of row 90
    trust, torn = metrics.point_trust(X, Y, 8), metrics.point_continuity(X, Y, 8)
    assert trust.mean() == pytest.approx(metrics.trustworthiness(X, Y, 8), abs=1e-12)
    assert torn.mean() == pytest.approx(metrics.continuity(X, Y, 8), abs=1e-12)
    assert trust.argmin() == 7
    assert torn.argmin() == 7


def test_points_that_are_not_measured_are_nan(irregular):
    X = irregular(60, 4)
    values = metrics.point_trust(X, X[:, :2], 5, sample=10)
    assert np.isfinite(values).sum() == 10
    whole = metrics.point_trust(X, X[:, :2], 5)
    assert np.array_equal(values[np.isfinite(values)], whole[np.isfinite(values)])


# --- every kind of data ------------------------------------------------------------------------


KINDS = ["euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev"]


@pytest.mark.parametrize("metric", KINDS)
def test_any_metric_of_the_data_counts(metric, irregular, oracle, metric_distances):
    X, Y = irregular(70, 6), irregular(70, 2, seed=1)
    D, d = metric_distances(X, metric), metric_distances(Y, "euclidean")
    both = Comparison(X, Y, metric=metric)
    assert metrics.trustworthiness(both, None, 6) == pytest.approx(
        oracle.trustworthiness(D, d, 6), abs=1e-12
    )
    assert metrics.rnx_auc(both) == pytest.approx(oracle.rnx_auc(D, d), abs=1e-12)
    given = Comparison(D, Y, metric="precomputed")
    assert metrics.trustworthiness(given, None, 6) == metrics.trustworthiness(both, None, 6)
    assert metrics.continuity(given, None, 6) == metrics.continuity(both, None, 6)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_rows_without_direction_are_at_distance_one(metric, irregular, oracle, metric_distances):
    X = irregular(40, 5)
    X[[3, 17, 18]] = 0.0
    Y = irregular(40, 2, seed=2)
    some = np.ones(40, bool)
    some[[3, 17, 18]] = False
    D = np.ones((40, 40))
    D[np.ix_(some, some)] = metric_distances(X[some], metric)
    D[np.ix_(~some, ~some)] = 0.0
    d = metric_distances(Y, "euclidean")
    for k in (1, 6):
        assert metrics.trustworthiness(X, Y, k, metric=metric) == pytest.approx(
            oracle.trustworthiness(D, d, k), abs=1e-12
        )
    assert metrics.rnx_auc(X, Y, metric=metric) == pytest.approx(oracle.rnx_auc(D, d), abs=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows_are_the_same_rows(metric):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.8, (90, 30)).astype(float)
    if metric == "cosine":  # counts tie in exact arithmetic, but not in rounded cosines
        X *= rng.random(X.shape)
    X[40:50] = X[:10]
    Y = rng.normal(size=(90, 2))
    sparse = Comparison(scipy.sparse.csr_array(X), Y, metric=metric)
    dense = Comparison(X, Y, metric=metric)
    for measure in (metrics.trustworthiness, metrics.continuity, metrics.neighbor_recall):
        assert measure(sparse, None, 9) == pytest.approx(measure(dense, None, 9), abs=1e-12)
    assert metrics.rnx_auc(sparse) == pytest.approx(metrics.rnx_auc(dense), abs=1e-12)


def test_a_graph_is_enough_where_only_neighbors_of_the_data_matter(irregular):
    X, Y = irregular(80, 6), irregular(80, 2)
    graph = knn_graph(X, 12)
    for measure in (metrics.continuity, metrics.neighbor_recall, metrics.lcmc):
        assert measure(graph, Y, [3, 12]) == measure(X, Y, [3, 12])
    with pytest.raises(ValueError, match="neighbor graph, which has neither"):
        metrics.trustworthiness(graph, Y, 12)
    with pytest.raises(ValueError, match="n_neighbors=13 is more than the 12"):
        metrics.continuity(graph, Y, 13)


# --- what is known without computing -----------------------------------------------------------


def test_the_identity_is_perfect(irregular):
    X = irregular(100, 5)
    both = Comparison(X, X)
    for measure in (metrics.trustworthiness, metrics.continuity, metrics.neighbor_recall):
        assert measure(both, None, [1, 10, 49]) == [1.0, 1.0, 1.0]
    assert metrics.rnx_auc(both) == pytest.approx(1, abs=1e-12)
    assert metrics.rnx_curve(both).values == pytest.approx(np.ones(98), abs=1e-12)
    assert metrics.mean_relative_rank_errors(both, None, 10) == (0.0, 0.0)
    assert np.array_equal(metrics.coranking_matrix(both), 100 * np.eye(99, dtype=int))


# --- shared work -------------------------------------------------------------------------------


def test_a_comparison_gives_the_same_numbers_as_x_and_y(irregular):
    X, Y = irregular(80, 5), irregular(80, 2, seed=1)
    both = Comparison(X, Y)
    for k in (3, 11, 7):  # lists grow, and are cut
        assert metrics.trustworthiness(both, None, k) == metrics.trustworthiness(X, Y, k)
        assert metrics.continuity(both, None, k) == metrics.continuity(X, Y, k)
        assert metrics.neighbor_recall(both, None, k) == metrics.neighbor_recall(X, Y, k)
    other = both.with_map(X[:, :1])
    assert metrics.trustworthiness(other, None, 5) == metrics.trustworthiness(X, X[:, :1], 5)
    assert metrics.rnx_auc(both) == metrics.rnx_auc(X, Y)


@pytest.mark.parametrize("sample", [None, 40])
def test_threads_do_not_change_a_bit(sample, irregular):
    X, Y = irregular(400, 20), irregular(400, 2, seed=1)
    one, many = (Comparison(X, Y, n_jobs=n, sample=sample) for n in (1, 3))
    for measure in (
        metrics.trustworthiness,
        metrics.continuity,
        metrics.rnx_auc,
        metrics.raw_stress,
        metrics.shepard_correlation,
    ):
        a, b = measure(one), measure(many)
        assert (a, a.standard_error) == (b, b.standard_error)


def test_inputs_are_not_written_to(irregular):
    X, Y = irregular(50, 4), irregular(50, 2)
    kept = X.copy(), Y.copy()
    X.flags.writeable = Y.flags.writeable = False
    metrics.quality(X, Y, np.arange(50) % 3)
    assert np.array_equal(X, kept[0])
    assert np.array_equal(Y, kept[1])
