"""Neighbors in every metric and regime against a naive oracle; what is refused, and how."""

import os

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from lowland._base.errors import DataError, MemoryLimitError, ParameterError, StoppedError
from lowland._base.monitor import Monitor
from lowland._engines.neighbors import search
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query
from lowland.neighbors import knn_graph, knn_query
from support.cases import each
from support.searches import in_order, others

REGIMES = {
    "euclidean": ("auto", "exact", "tree", "cells"),
    "sqeuclidean": ("auto", "exact", "tree", "cells"),
    "cosine": ("auto", "exact", "cells"),
    "correlation": ("auto", "exact", "cells"),
    "manhattan": ("auto", "exact", "tree"),
    "chebyshev": ("auto", "exact", "tree"),
    "minkowski": ("auto", "exact", "tree"),
    "hamming": ("auto", "exact"),
    "jaccard": ("auto", "exact"),
}
EXACT_PAIRS = [(m, r) for m, regimes in REGIMES.items() for r in regimes if r != "cells"]
CELLS_METRICS = [m for m, regimes in REGIMES.items() if "cells" in regimes]
PARAMS = {"minkowski": {"p": 3}}


# --- the oracle ---------------------------------------------------------------------------------


def directions(X, metric):
    """Rows of length 1 in extended precision, and which rows have no direction."""
    U = X.astype(np.longdouble)
    if metric == "correlation":
        U = U - U.mean(axis=1, keepdims=True)
    length = np.sqrt((U**2).sum(axis=1))
    size = np.abs(X).astype(np.longdouble).max(axis=1)
    empty = length <= 1e-13 * size * np.sqrt(X.shape[1])
    return U / np.where(empty, 1, length)[:, None], empty


def oracle(queries, X, metric):
    """All distances by definition, in float64 or better.

    Rows without direction are at distance 1 from the others and 0 from their like.
    """
    queries, X = np.asarray(queries, float), np.asarray(X, float)
    if metric in ("cosine", "correlation"):
        (U, no_u), (V, no_v) = directions(queries, metric), directions(X, metric)
        D = ((U[:, None, :] - V[None, :, :]) ** 2).sum(axis=2) / 2
        D[no_u[:, None] ^ no_v[None, :]] = 1
        D[no_u[:, None] & no_v[None, :]] = 0
        return D.astype(float)
    if metric == "jaccard":
        return cdist(queries.astype(bool), X.astype(bool), "jaccard")
    name = {"manhattan": "cityblock"}.get(metric, metric)
    return cdist(queries, X, name, **PARAMS.get(metric, {}))


def tolerance(X, metric, dtype):
    """Relative and absolute error that is allowed.

    A distance is a sum of at most a few hundred rounded terms: 1e-12 of its value is generous in
    float64; a float32 result is rounded once. Cosine is a function of unit rows, whose coordinates
    are off by some eps; centering a row (correlation) loses the digits of its mean besides.
    """
    relative = 1e-12 if dtype == np.float64 else np.finfo(np.float32).eps
    if metric not in ("cosine", "correlation"):
        return relative, 0.0
    X = np.asarray(X, float)
    lost = 1.0
    if metric == "correlation":
        spread = np.ptp(X, axis=1)
        lost += (np.abs(X).max(axis=1)[spread > 0] / spread[spread > 0]).max(initial=0)
    return relative, 4 * X.shape[1] * np.finfo(float).eps * lost


def assert_exact(graph, D, tolerances):
    """The distances are the oracle's least ones, and each belongs to the row it is said to."""
    relative, absolute = tolerances
    n, k = graph.indices.shape
    assert (graph.indices >= 0).all()
    assert (graph.indices < D.shape[1]).all()
    assert all(len(set(row)) == k for row in graph.indices.tolist())
    assert (np.diff(graph.distances, axis=1) >= 0).all()
    least = np.sort(D, axis=1)[:, :k]
    assert np.isfinite(least).all()
    np.testing.assert_allclose(graph.distances, least, rtol=relative, atol=absolute)
    reported = np.take_along_axis(D, graph.indices.astype(int), axis=1)
    np.testing.assert_allclose(graph.distances, reported, rtol=relative, atol=absolute)
    assert n == D.shape[0]


def share_found(graph, D):
    """Share of neighbors as near as the true ones (ties count as found)."""
    k = graph.n_neighbors
    kth = np.sort(D, axis=1)[:, k - 1 : k]
    reached = np.take_along_axis(D, graph.indices.astype(int), axis=1)
    return (reached <= kth * (1 + 1e-9)).mean()


# --- the data -----------------------------------------------------------------------------------


def clustered(rng, n, d):
    return 10 * rng.standard_normal((4, d))[rng.integers(0, 4, n)] + rng.normal(0, 0.01, (n, d))


def constant_columns(rng, n, d):
    X = rng.standard_normal((n, d))
    X[:, ::2] = 0.1
    return X


DATA = {
    "random": lambda rng, n, d: rng.standard_normal((n, d)),
    "skewed": lambda rng, n, d: rng.gamma(0.5, size=(n, d)) * rng.gamma(2, size=(n, 1)),
    "clustered": clustered,
    "duplicated": lambda rng, n, d: rng.standard_normal((4, d))[rng.integers(0, 4, n)],
    "few copies": lambda rng, n, d: rng.standard_normal((n, d))[np.arange(n) // 2 * 2],
    "constant columns": constant_columns,
    "lattice": lambda rng, n, d: rng.integers(0, 3, (n, d)).astype(float),
    "nearly equal": lambda rng, n, d: 1 + 1e-9 * rng.standard_normal((n, d)),
    "offset 1e4": lambda rng, n, d: 1e4 + rng.standard_normal((n, d)),
    "offset 1e6": lambda rng, n, d: 1e6 + rng.standard_normal((n, d)),
    "unlike norms": lambda rng, n, d: (
        rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 4, (n, 1))
    ),
    "one outlier": lambda rng, n, d: (
        rng.standard_normal((n, d)) + 1e7 * (np.arange(n) == n // 2)[:, None]
    ),
}
KINDS = {"float64": np.float64, "float32": np.float32, "integers": np.int64}


@st.composite
def tables(draw):
    """Any kind of data: tiny, narrow, and wide enough (more than 128) for the filter."""
    data = DATA[draw(st.sampled_from(sorted(DATA)))]
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    n = draw(st.sampled_from([2, 3, 4, 5, 13, 24, 25, 49, 70, 120]))
    d = draw(st.sampled_from([1, 2, 3, 8, 9, 17, 40, 135]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = data(rng, n, d)
    X = np.round(3 * X).astype(kind) if kind is np.int64 else X.astype(kind)
    return X, draw(st.integers(1, min(n - 1, 20)))


def for_metric(X, metric):
    """0/1 data for jaccard; for hamming, values that do repeat."""
    if metric == "jaccard":
        return (np.median(np.asarray(X, float), axis=0) < X).astype(X.dtype)
    return np.round(X) if metric == "hamming" else X


def float_of(X):
    return np.float32 if X.dtype == np.float32 else np.float64


every_table = settings(deadline=None, max_examples=60, derandomize=True, database=None)


# --- every metric and regime equals the oracle --------------------------------------------------


@pytest.mark.parametrize(("metric", "method"), EXACT_PAIRS)
@every_table
@given(case=tables())
def test_neighbors_are_those_of_the_oracle(metric, method, case):
    X, k = for_metric(case[0], metric), case[1]
    graph = knn_graph(X, k, metric=metric, metric_params=PARAMS.get(metric), method=method)
    D = others(oracle(X, X, metric))
    assert graph.distances.dtype == float_of(X)
    assert graph.recall_ is None
    assert graph.metric == metric
    assert_exact(graph, D, tolerance(X, metric, graph.distances.dtype))


@pytest.mark.parametrize("metric", CELLS_METRICS)
@every_table
@given(case=tables())
def test_cells_find_nearly_all_and_say_true_distances(metric, case):
    X, k = case
    graph = knn_graph(X, k, metric=metric, method="cells")
    D = others(oracle(X, X, metric))
    relative, absolute = tolerance(X, metric, graph.distances.dtype)
    assert all(len(set(row)) == k for row in graph.indices.tolist())
    reported = np.take_along_axis(D, graph.indices.astype(int), axis=1)
    assert np.isfinite(reported).all()  # never the row itself
    np.testing.assert_allclose(graph.distances, reported, rtol=relative, atol=absolute)
    # All cells of so small a table are searched: what is missed is lost in float32 scores.
    kth = np.sort(D, axis=1)[:, k - 1 : k]
    assert (reported <= kth * (1 + 1e-5) + absolute).mean() >= 0.9
    if graph.recall_ is None:  # one distinct row: there was nothing to search for
        assert not graph.distances.any()
        return
    assert 0 < graph.recall_ <= 1
    assert 1 <= graph.recall_sample_ <= len(X)
    if len(np.unique(X, axis=0)) == len(X) and len(X) == graph.recall_sample_:
        # It may not claim more than was found (ties count as found here, and may not there).
        found = (reported <= kth * (1 + relative) + 2 * absolute).mean()
        assert graph.recall_ <= found + 1e-9


@every_table
@given(case=tables())
def test_given_distances_are_read_and_not_computed(case):
    X, k = case
    D = oracle(X, X, "euclidean").astype(float_of(X))
    rows, columns = np.nonzero(~np.eye(len(D), dtype=bool))
    stored = scipy.sparse.csr_matrix((D[rows, columns], (rows, columns)), D.shape)
    for given_distances in (D, stored):
        graph = knn_graph(given_distances, k, metric="precomputed")
        ids, distances = in_order(others(D), k)
        assert np.array_equal(graph.indices, ids)
        assert np.array_equal(graph.distances, distances)
        assert graph.distances.dtype == D.dtype


def test_a_python_function_decides_also_about_equal_rows():
    X = np.array([[1.0], [1], [2], [2], [3], [7]])
    graph = knn_graph(X, 3, metric=lambda a, b: 1 + abs(a[0] - b[0]))
    assert np.array_equal(graph.distances, in_order(others(1 + np.abs(X - X.T)), 3)[1])


def test_a_python_function_gets_its_parameters():
    X = np.array([[0.0, 0], [1, 0], [0, 3], [5, 5]])
    graph = knn_graph(
        X,
        1,
        metric=lambda a, b, weights: (weights * np.abs(a - b)).sum(),
        metric_params={"weights": np.array([10, 1])},
    )
    assert np.array_equal(graph.indices[:, 0], [2, 0, 0, 1])
    assert np.array_equal(graph.distances[:, 0], [3, 10, 3, 45])
    assert graph.metric == "callable"


# --- order of ties ------------------------------------------------------------------------------


TIED = [
    (metric, method)
    for metric in ("euclidean", "sqeuclidean", "manhattan", "chebyshev", "hamming")
    for method in REGIMES[metric]
    if method != "cells"
]


@each(("metric", "method"), TIED)
@each(("n", "d", "levels"), [(300, 2, 12), (300, 9, 2), (1100, 3, 9)])
@each("kind", [np.float32, np.float64])
def test_ties_are_ordered_by_row_number(metric, method, n, d, levels, kind):
    X = np.random.default_rng(n + d).integers(0, levels, (n, d)).astype(kind)
    graph = knn_graph(X, 11, metric=metric, method=method)
    ids, distances = in_order(others(oracle(X, X, metric)), 11)
    assert np.array_equal(graph.indices, ids)
    np.testing.assert_allclose(graph.distances, distances, rtol=np.finfo(kind).eps)


# --- equal rows ---------------------------------------------------------------------------------


@each(("metric", "method"), [(m, r) for m in REGIMES for r in REGIMES[m]])
@each("n", [2, 3, 60])
def test_rows_that_are_all_equal_are_neighbors_in_the_order_of_their_numbers(metric, method, n):
    X = np.tile([1.0, 0.0, 1.0], (n, 1))
    k = min(4, n - 1)
    graph = knn_graph(X, k, metric=metric, metric_params=PARAMS.get(metric), method=method)
    assert np.array_equal(graph.indices, in_order(others(np.zeros((n, n))), k)[0])
    assert not graph.distances.any()


@pytest.mark.parametrize("method", ["exact", "tree", "cells"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_thousand_copies_of_few_rows_keep_the_order_of_their_numbers(method, kind):
    rng = np.random.default_rng(0)
    pool = rng.standard_normal((7, 5))
    X = pool[np.append(rng.integers(0, 6, 1000), 6)].astype(kind)  # and one without a copy
    ids, distances = in_order(others(oracle(X, X, "euclidean")), 15)
    graph = knn_graph(X, 15, method=method)
    assert np.array_equal(graph.indices, ids)
    np.testing.assert_allclose(graph.distances, distances, rtol=np.finfo(kind).eps)


def test_some_copies_among_many_rows_are_found_without_being_asked_for():
    # Fewer than one row in fifty: the search itself meets them.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 9)) + 50
    X[[17, 401]] = X[3]
    X[[599]] = X[300]
    graph = knn_graph(X, 3)
    assert np.array_equal(graph.indices[[3, 17, 401], :2], [[17, 401], [3, 401], [3, 17]])
    assert graph.indices[300, 0] == 599
    assert graph.indices[599, 0] == 300
    assert not graph.distances[[3, 17, 401], :2].any()
    assert_exact(graph, others(oracle(X, X, "euclidean")), (1e-12, 0))


# --- sizes and scales ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(700, 9), (700, 128), (500, 129), (400, 200), (90, 3100)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_many_blocks_and_wide_tables_are_exact(n, d, kind, irregular):
    X = irregular(n, min(d, 60)) @ np.random.default_rng(1).standard_normal((min(d, 60), d))
    X = (X + 0.1 * np.random.default_rng(2).standard_normal((n, d))).astype(kind)
    assert_exact(knn_graph(X, 12), others(oracle(X, X, "euclidean")), tolerance(X, "", kind))


DOUBLE = [-70, -45, -30, -23, -22, -21, -20, -16, 12, 18, 19, 25, 70]


@each(
    ("exponent", "kind"),
    [(e, np.float64) for e in DOUBLE] + [(e, np.float32) for e in (-21, -19, 12, 18)],
)
@each("d", [12, 140])
def test_the_unit_of_measurement_does_not_matter(exponent, kind, d):
    # Squares of such numbers leave the range of float32, but not that of float64.
    X = np.random.default_rng(0).standard_normal((300, d)).cumsum(axis=1)
    X = (X * 10.0**exponent).astype(kind)
    assert_exact(knn_graph(X, 5), others(oracle(X, X, "euclidean")), tolerance(X, "", kind))


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("exponent", [-200, 200])
def test_the_length_of_rows_does_not_matter_for_directions(metric, exponent):
    X = np.random.default_rng(0).standard_normal((40, 8))
    factor = 2.0 ** np.where(np.arange(40) % 2, exponent, 0)[:, None]  # a power of 2 is exact
    plain, scaled = knn_graph(X, 4, metric=metric), knn_graph(X * factor, 4, metric=metric)
    assert np.array_equal(plain.indices, scaled.indices)
    np.testing.assert_allclose(plain.distances, scaled.distances, rtol=1e-12)


def test_rows_without_direction_are_like_each_other_and_far_from_the_rest():
    X = np.array([[1.0, 2, 3], [0, 0, 0], [2, 4, 6], [0, 0, 0], [-1, -2, -3]])
    graph = knn_graph(X, 4, metric="cosine")
    assert np.array_equal(graph.indices[1], [3, 0, 2, 4])
    assert np.array_equal(graph.distances[1], [0, 1, 1, 1])
    assert np.array_equal(graph.indices[0], [2, 1, 3, 4])
    np.testing.assert_allclose(graph.distances[0], [0, 1, 1, 2], rtol=1e-15, atol=1e-15)
    level = np.array([[1.0, 2, 4], [5, 5, 5], [-7, -7, -7], [0, 1, 3]])
    graph = knn_graph(level, 3, metric="correlation")
    assert np.array_equal(graph.indices[:2], [[3, 1, 2], [2, 0, 3]])
    np.testing.assert_allclose(graph.distances[:2], [[0, 1, 1], [0, 1, 1]], atol=1e-15)


def test_memory_layout_does_not_matter(dense_layout, irregular):
    X = irregular(150, 13)
    for metric in ("euclidean", "correlation", "manhattan"):
        expected = knn_graph(X, 6, metric=metric)
        found = knn_graph(dense_layout(X), 6, metric=metric)
        assert found.indices.tobytes() == expected.indices.tobytes()
        assert found.distances.tobytes() == expected.distances.tobytes()


def test_few_columns_and_many_rows_go_to_the_tree_and_are_exact(monkeypatch):
    X = np.random.default_rng(0).gamma(1.0, size=(1500, 3))
    asked = []
    original = search.block_search.tree_search
    monkeypatch.setattr(
        search.block_search, "tree_search", lambda *rest: asked.append(1) or original(*rest)
    )
    assert_exact(knn_graph(X, 8, metric="manhattan"), others(oracle(X, X, "manhattan")), (1e-12, 0))
    assert asked == [1]
    assert_exact(knn_graph(X, 8), others(oracle(X, X, "euclidean")), (1e-12, 0))


def test_very_many_rows_go_to_cells(monkeypatch):
    monkeypatch.setattr(search, "CELLS_ROWS", 500)
    X = np.random.default_rng(0).standard_normal((600, 10))
    assert knn_graph(X, 5).recall_ is not None
    assert knn_graph(X, 5, metric="manhattan").recall_ is None
    assert knn_graph(X, 5, method="exact").recall_ is None


# --- cells --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "d"),
    [
        ("random", 10),
        ("random", 60),
        ("random", 300),  # all directions alike: those that are left out count as much
        ("unlike norms", 10),
        ("one outlier", 10),  # scores in float32 say little about the rest
    ],
)
def test_the_recall_of_cells_is_the_share_of_true_neighbors(what, d):
    # The sample is the whole table here: the measured recall must be the true one.
    X = DATA[what](np.random.default_rng(0), 500, d)
    graph = knn_graph(X, 10, method="cells")
    found = share_found(graph, others(oracle(X, X, "euclidean")))
    assert graph.recall_sample_ == 500
    assert graph.recall_ == pytest.approx(found, abs=1e-12)
    assert graph.recall_ >= 0.9


def test_cells_of_many_rows_reach_the_recall_they_report():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 3)) @ rng.standard_normal((3, 20))
    X += 0.05 * rng.standard_normal(X.shape)
    graph = knn_graph(X, 10, method="cells")
    rows = rng.choice(len(X), 400, replace=False)
    true = knn_query(X, X[rows], 11).indices[:, 1:]
    found = np.mean([np.isin(t, g).mean() for t, g in zip(true, graph.indices[rows], strict=True)])
    assert graph.recall_sample_ == 500
    assert found >= 0.97
    # Two samples of 4000 and 5000 neighbors: the standard error of the gap is about 0.003.
    assert abs(found - graph.recall_) < 0.015


def test_cells_fill_every_place_also_where_cells_are_nearly_empty():
    # Heavy tails: far out, sixteen cells together may hold fewer rows than were asked for.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((16_000, 2)) * 10.0 ** rng.gamma(0.3, 2.0, (16_000, 1))
    graph = knn_graph(X, 150, method="cells")
    assert (graph.indices >= 0).all()
    assert np.isfinite(graph.distances).all()
    assert (graph.indices != np.arange(len(X))[:, None]).all()


def test_cells_that_are_hard_to_tell_apart_give_no_neighbor_twice():
    # All directions alike: the first cells do not hold the neighbors, and more are searched.
    X = np.random.default_rng(0).standard_normal((10_000, 25))
    graph = knn_graph(X, 10, method="cells")
    ordered = np.sort(graph.indices, axis=1)
    assert (ordered[:, 1:] != ordered[:, :-1]).all()
    assert (graph.indices != np.arange(len(X))[:, None]).all()
    rows = np.arange(0, 10_000, 50)
    true = knn_query(X, X[rows], 11).distances[:, -1:]
    # 2000 neighbors here and 5000 in its own sample: standard errors of 0.005 and 0.003 at most.
    assert abs((graph.distances[rows] <= true).mean() - graph.recall_) < 0.03


def test_cells_are_reproducible_by_seed():
    X = np.random.default_rng(0).standard_normal((9000, 12))
    one, two, three = (knn_graph(X, 8, method="cells", random_state=s) for s in (3, 3, 4))
    assert one.indices.tobytes() == two.indices.tobytes()
    assert one.distances.tobytes() == two.distances.tobytes()
    assert one.recall_ == two.recall_
    assert one.indices.tobytes() != three.indices.tobytes() or one.recall_ != three.recall_


# --- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "method", "shape"),
    [
        ("euclidean", "exact", (900, 12)),
        ("euclidean", "exact", (300, 150)),
        ("cosine", "exact", (500, 10)),
        ("euclidean", "tree", (1200, 3)),
        ("minkowski", "tree", (500, 3)),
        ("euclidean", "cells", (3000, 9)),
        ("manhattan", "auto", (300, 12)),
    ],
)
def test_the_number_of_threads_changes_no_bit(metric, method, shape):
    X = np.random.default_rng(0).gamma(1.0, size=shape).astype(np.float32)
    options = {"metric": metric, "metric_params": PARAMS.get(metric)}
    asked = "auto" if method == "cells" else method
    found = set()
    for n in (1, 2, 5):
        graph = knn_graph(X, 9, method=method, n_jobs=n, **options)
        answer = knn_query(X, X[:70] + 0.5, 9, method=asked, n_jobs=n, **options)
        arrays = graph.indices, graph.distances, answer.indices, answer.distances
        found.add((*(array.tobytes() for array in arrays), graph.recall_))
    assert len(found) == 1


# --- queries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("metric", "method"), EXACT_PAIRS)
@settings(deadline=None, max_examples=25, derandomize=True, database=None)
@given(case=tables(), part=st.floats(0.1, 0.9))
def test_a_query_finds_what_the_oracle_finds(metric, method, case, part):
    table, k = for_metric(case[0], metric), case[1]
    cut = max(1, int(part * len(table)))
    X, Q = table[:cut], table[max(0, cut - 3) :]  # some queries are fitted rows
    k = min(k, len(X))
    graph = knn_query(X, Q, k, metric=metric, metric_params=PARAMS.get(metric), method=method)
    assert graph.distances.dtype == float_of(Q)
    assert graph.n_points == len(X)
    assert len(graph) == len(Q)
    assert_exact(graph, oracle(Q, X, metric), tolerance(table, metric, graph.distances.dtype))


@each(("metric", "method"), EXACT_PAIRS)
@each("d", [5, 150])
@each("order", ["C", "F"])
def test_every_query_is_answered_as_if_alone(metric, method, d, order):
    rng = np.random.default_rng(0)
    X = for_metric(rng.gamma(1.0, size=(130, d)), metric)
    Q = np.asarray(for_metric(rng.gamma(1.0, size=(30, d)), metric), order=order)
    options = {"metric": metric, "metric_params": PARAMS.get(metric), "method": method}
    together = knn_query(X, Q, 7, **options)
    for i in range(0, 30, 3):
        alone = knn_query(X, Q[i : i + 1], 7, **options)
        assert alone.indices.tobytes() == together.indices[i].tobytes()
        assert alone.distances.tobytes() == together.distances[i].tobytes()


def test_queries_of_another_float_type_are_answered_exactly():
    rng = np.random.default_rng(0)
    X, Q = rng.standard_normal((90, 11)), rng.standard_normal((20, 11))
    for a, b in ((np.float32, np.float64), (np.float64, np.float32), (np.float32, np.float32)):
        graph = knn_query(X.astype(a), Q.astype(b), 5)
        assert graph.distances.dtype == b
        assert_exact(
            graph, oracle(Q.astype(b), X.astype(a), "euclidean"), tolerance(X, "", np.dtype(b))
        )


def test_distances_of_queries_can_be_given():
    D = np.random.default_rng(0).random((8, 8))
    D = D + D.T
    Q = np.array([[5.0, 1, 1, 7, 0, 9, 9, 9], [1.0, 2, 3, 4, 5, 6, 7, 8]])
    graph = knn_query(D, Q, 3, metric="precomputed")
    assert np.array_equal(graph.indices, [[4, 1, 2], [0, 1, 2]])
    assert np.array_equal(graph.distances, [[0, 1, 1], [1, 2, 3]])
    assert graph.n_points == 8


# --- sparse data --------------------------------------------------------------------------------


def sparse_table(n, d, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n, d)) < share, rng.integers(1, 4, (n, d)), 0).astype(float)
    dense[[1, 5]] = 0
    dense[7] = dense[4]
    return dense


def unsorted(X):
    """The same matrix, the columns of every row stored backwards."""
    flipped = X.copy()
    for row in range(X.shape[0]):
        at = slice(X.indptr[row], X.indptr[row + 1])
        flipped.indices[at], flipped.data[at] = X.indices[at][::-1], X.data[at][::-1]
    flipped.has_sorted_indices = flipped.has_canonical_format = False
    return flipped


SPARSE_FORMS = {
    "csr_array": scipy.sparse.csr_array,
    "csr_matrix": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
    "unsorted": lambda X: unsorted(scipy.sparse.csr_array(X)),
    "integers": lambda X: scipy.sparse.csr_array(X.astype(np.int32)),
    "float32": lambda X: scipy.sparse.csr_array(X.astype(np.float32)),
}


@each("form", SPARSE_FORMS)
@each("metric", ["euclidean", "sqeuclidean", "cosine"])
def test_sparse_data_give_what_dense_data_give(form, metric):
    dense = sparse_table(90, 25)
    X = SPARSE_FORMS[form](dense)
    before = X.copy()
    graph = knn_graph(X, 8, metric=metric)
    kind = np.float32 if form == "float32" else np.float64
    assert graph.distances.dtype == kind
    limits = tolerance(dense, metric, kind)
    assert_exact(graph, others(oracle(dense, dense, metric)), limits)
    assert (np.sort(graph.indices[[4, 7]], axis=1)[:, :1] < 8).all()
    assert graph.indices[4, 0] == 7
    assert graph.indices[7, 0] == 4
    assert not graph.distances[[4, 7], 0].any()
    if metric != "cosine":  # squares of small integers: ties are exact
        expected = knn_graph(dense, 8, metric=metric)
        assert np.array_equal(graph.indices, expected.indices)
    assert np.array_equal(X.indices, before.indices)
    assert np.array_equal(X.data, before.data)
    queries = SPARSE_FORMS[form](dense[::7])
    answer = knn_query(X, queries, 8, metric=metric)
    assert_exact(answer, oracle(dense[::7], dense, metric), limits)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_queries_and_fitted_rows_may_be_one_sparse_and_the_other_dense(metric):
    dense = sparse_table(60, 15)
    expected = knn_query(dense, dense[:20] * 2, 5, metric=metric)
    for X, Q in (
        (scipy.sparse.csr_array(dense), dense[:20] * 2),
        (dense, scipy.sparse.csr_array(dense[:20] * 2)),
    ):
        found = knn_query(X, Q, 5, metric=metric)
        np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("offset", [0, 1e6])
def test_sparse_distances_do_not_cancel(offset):
    dense = sparse_table(50, 12, share=0.9, seed=3)
    dense[dense > 0] += offset
    dense[20:25] = dense[15:20] + 1e-7 * (dense[15:20] > 0)
    graph = knn_graph(scipy.sparse.csr_array(dense), 6)
    assert_exact(graph, others(oracle(dense, dense, "euclidean")), (1e-12, 0))


# --- what is refused ----------------------------------------------------------------------------


X8 = np.random.default_rng(8).random((8, 3))
D8 = np.linalg.norm(X8[:, None] - X8, axis=2)


S8, GIVEN = scipy.sparse.csr_array(X8), {"metric": "precomputed"}
FEW = scipy.sparse.csr_array(np.where(D8 + D8.max() * np.eye(8) < 0.5, D8, 0))


def bad(value):
    X = X8.copy()
    X[2, 1] = value
    return X


PARAMETERS = [  # that cannot be
    (X8, 8, {}, "n_neighbors=8.*8 fitted rows"),
    (X8, 0, {}, "n_neighbors=0.*1 to 7"),
    (X8, -1, {}, "n_neighbors=-1"),
    (X8, 2.5, {}, "n_neighbors.*2.5"),
    (X8, "3", {}, "n_neighbors.*3"),
    (X8, None, {}, "n_neighbors.*None"),
    (X8[:1], 1, {}, "n_neighbors=1.*more rows"),
    (X8, 2, {"metric": "euclidian"}, "metric.*'euclidean'"),
    (X8, 2, {"metric": "xyz"}, "metric 'xyz'.*cosine"),
    (X8, 2, {"metric": None}, "metric"),
    (X8, 2, {"method": "exakt"}, "method.*'exact'"),
    (X8, 2, {"method": "cells", "metric": "hamming"}, "method='cells'.*metric='hamming'"),
    (X8, 2, {"method": "tree", "metric": "cosine"}, "method='tree'.*metric='cosine'"),
    (S8, 2, {"method": "cells"}, "method='cells'.*dense"),
    (S8, 2, {"method": "tree"}, "method='tree'.*dense"),
    (S8, 2, {"metric": "manhattan"}, "metric='manhattan'.*sparse"),
    (S8, 2, {"metric": lambda a, b: 0.0}, "metric.*sparse"),
    (X8, 2, {"metric": "manhattan", "metric_params": {"p": 3}}, "metric_params"),
    (X8, 2, {"metric": "minkowski", "metric_params": {"exponent": 3}}, "metric_params"),
    (X8, 2, {"metric": "minkowski", "metric_params": {"p": -1}}, "metric_params"),
]
DATA_AND_DISTANCES = [
    (bad(np.nan), 2, {}, "X contains NaN.*column 1.*row 2"),
    (bad(np.inf), 2, {}, "X contains infinity"),
    (X8[0], 2, {}, "X has shape"),
    (X8, 2, {"metric": "jaccard"}, "X: .*jaccard.*0 and 1"),
    (D8[:5], 2, GIVEN, r"X: .*square.*\(5, 8\)"),
    (D8 + np.triu(np.ones((8, 8)), 1), 2, GIVEN, "X: .*symmetric"),
    (-D8, 2, GIVEN, "X: .*>= 0"),
    (scipy.sparse.csr_array(-D8), 2, GIVEN, "X: .*>= 0"),
    (FEW, 6, GIVEN, "X, row .*n_neighbors=6"),
]
REFUSED = [(ParameterError, *case) for case in PARAMETERS]
REFUSED += [(DataError, *case) for case in DATA_AND_DISTANCES]


@each(("kind", "X", "k", "options", "message"), REFUSED)
def test_what_cannot_be_done_is_refused_by_the_name_of_the_argument(kind, X, k, options, message):
    with pytest.raises(kind, match=message):
        knn_graph(X, k, **options)


ONE = scipy.sparse.csr_array(([1.0], ([0], [3])), shape=(1, 8))
REFUSED_QUERIES = [
    (DataError, X8, X8[:, :2], 2, {}, "queries have 2 columns.* 3"),
    (DataError, S8, S8[:, :2], 2, {}, "queries have 2 columns.* 3"),
    (DataError, D8, D8[:2, :5], 2, GIVEN, r"queries.* 8 fitted rows.*\(2, 5\)"),
    (DataError, D8, -D8[:2], 2, GIVEN, "queries.*>= 0"),
    (DataError, D8, ONE, 2, GIVEN, "queries, row 0.*n_neighbors=2"),
    (DataError, X8, bad(np.nan), 2, {}, "queries contains NaN"),
    (DataError, (X8 > 0.5) * 1.0, X8, 2, {"metric": "jaccard"}, "queries.*jaccard"),
    (ParameterError, X8, X8[:2], 9, {}, "n_neighbors=9.*1 to 8"),
    (ParameterError, X8, X8[:2], 0, {}, "n_neighbors=0"),
    (ParameterError, X8, X8, 2, {"metric": "cosin"}, "metric.*'cosine'"),
    (ParameterError, X8, S8, 2, {"metric": "manhattan"}, "metric='manhattan'.*sparse"),
    (ParameterError, X8, S8, 2, {"metric": "correlation"}, "metric='correlation'.*sparse"),
    (ParameterError, X8, S8, 2, {"metric": "hamming"}, "metric='hamming'.*sparse"),
]


@each(("kind", "X", "Q", "k", "options", "message"), REFUSED_QUERIES)
def test_a_query_that_cannot_be_answered_is_refused_by_name(kind, X, Q, k, options, message):
    with pytest.raises(kind, match=message):
        knn_query(X, Q, k, **options)


# --- progress, cancel, memory -------------------------------------------------------------------


class Recorder(Monitor):
    """Remembers the phases it hands out."""

    def __init__(self, label=""):
        super().__init__(label)
        self.phases = []

    def phase(self, name, total=None):
        self.phases.append(super().phase(name, total))
        return self.phases[-1]


SEARCHES = {
    "exact": {},
    "cells": {"method": "cells"},
    "tree": {"method": "tree"},
    "manhattan": {"metric": "manhattan"},
    "a function": {"metric": lambda a, b: abs(a[0] - b[0])},
}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_monitor_sees_a_search_from_start_to_end(name):
    X = np.random.default_rng(0).standard_normal((60, 3))
    monitor = Recorder()
    neighbor_graph(X, 4, monitor=monitor, **SEARCHES[name])
    assert "neighbors" in [phase.name for phase in monitor.phases]
    for phase in monitor.phases:
        assert phase.total is not None
        assert phase.done <= phase.total  # rounds that turn out not to be needed are not played
        assert phase.done == phase.total or phase.name != "neighbors"


def test_the_monitor_sees_sparse_searches_and_queries():
    X = sparse_table(60, 9)
    for find in (
        lambda monitor: neighbor_graph(scipy.sparse.csr_matrix(X), 4, monitor=monitor),
        lambda monitor: neighbor_query(X, X[:9], 4, monitor=monitor),
        lambda monitor: neighbor_graph(
            oracle(X, X, "euclidean"), 4, metric="precomputed", monitor=monitor
        ),
    ):
        monitor = Recorder()
        find(monitor)
        assert "neighbors" in [phase.name for phase in monitor.phases]
        assert all(phase.done == phase.total for phase in monitor.phases)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_can_be_cancelled(name):
    X = np.random.default_rng(0).standard_normal((60, 3))
    monitor = Monitor("test")
    monitor.cancel()
    with pytest.raises(StoppedError, match="test: cancelled"):
        neighbor_graph(X, 4, monitor=monitor, **SEARCHES[name])


def test_progress_is_shown_on_request(capsys):
    knn_graph(np.random.default_rng(0).standard_normal((60, 9)), 3, verbose=True)
    assert "knn_graph" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["exact", "cells"])
def test_a_search_that_exceeds_the_memory_limit_is_refused(monkeypatch, method):
    X = np.random.default_rng(0).standard_normal((300, 9))
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "20kB")
    with pytest.raises(MemoryLimitError, match="fewer neighbors"):
        knn_graph(X, 5, method=method)
    with pytest.raises(MemoryLimitError, match="5 neighbors"):
        knn_query(X, X, 5, method=method)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "20MB")
    assert len(knn_graph(X, 5, method=method)) == 300


# --- the graph ----------------------------------------------------------------------------------


def test_a_graph_says_what_it_is():
    X = np.random.default_rng(0).standard_normal((40, 3))
    exact, cells = knn_graph(X, 6), knn_graph(X, 6, method="cells")
    assert repr(exact) == "NeighborGraph(40 rows x 6 neighbors, exact)"
    assert repr(cells) == f"NeighborGraph(40 rows x 6 neighbors, recall {cells.recall_:.3f})"
    assert (exact.recall_, exact.recall_sample_) == (None, 0)
    assert cells.recall_sample_ == 40
    assert (len(exact), exact.n_neighbors, exact.n_points) == (40, 6, 40)
    with pytest.raises(AttributeError):
        exact.indices = exact.indices


def test_a_graph_as_csr_keeps_edges_of_length_0():
    X = np.array([[1.0], [1.0], [1.0], [4.0]])
    matrix = knn_graph(X, 2).to_csr()
    assert matrix.nnz == 8
    assert (matrix.data == 0).sum() == 6
    assert matrix.shape == (4, 4)
    assert np.array_equal(matrix.toarray()[3], [3, 3, 0, 0])
    assert knn_query(X, X[:1], 3).to_csr().shape == (1, 4)


@each(("metric", "method"), [(m, r) for m in REGIMES for r in REGIMES[m]])
def test_inputs_and_the_environment_are_left_alone(metric, method):
    X = for_metric(np.random.default_rng(0).standard_normal((50, 4)), metric)
    X[20:30] = X[5]
    before, environment = X.copy(), dict(os.environ)
    X.flags.writeable = False
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the global one must not move
    options = {"metric": metric, "metric_params": PARAMS.get(metric)}
    knn_graph(X, 4, method=method, **options)
    knn_query(X, X, 4, method=method, **options)
    assert np.array_equal(X, before)
    assert dict(os.environ) == environment
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("far", [1e12, 1e25, 1e70])
def test_a_query_far_beyond_the_fitted_rows_still_finds_its_neighbors(far):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 9))
    queries = np.vstack([X[:2] + 0.01, np.full(9, far)])
    graph = knn_query(X, queries, 5)
    squares = ((queries[:, None] - X) ** 2).sum(axis=2)
    assert (graph.indices >= 0).all()
    assert np.allclose(graph.distances, np.sqrt(np.sort(squares, axis=1)[:, :5]), rtol=1e-12)
    alone = knn_query(X, queries[:1], 5)
    assert np.array_equal(graph.indices[0], alone.indices[0])
    assert graph.distances[0].tobytes() == alone.distances[0].tobytes()


@pytest.mark.parametrize(
    ("metric", "layout"),
    [
        ("euclidean", np.asarray),
        ("manhattan", np.asarray),
        ("euclidean", scipy.sparse.csr_matrix),
        ("cosine", scipy.sparse.csr_matrix),
    ],
)
def test_an_extreme_query_has_no_say_in_the_answers_of_others(metric, layout):
    rng = np.random.default_rng(0)
    rows, asked = rng.standard_normal((200, 3)), rng.standard_normal((10, 3))
    alone = neighbor_query(layout(rows), layout(asked), 5, metric=metric)
    company = np.vstack([np.full((1, 3), 1e70), asked, np.full((1, 3), -1e30)])
    found = neighbor_query(layout(rows), layout(company), 5, metric=metric)
    np.testing.assert_array_equal(found.indices[1:-1], alone.indices)
    np.testing.assert_array_equal(found.distances[1:-1], alone.distances)
    assert np.isfinite(found.distances).all()
