"""The index of fitted rows: recall of cells against all pairs, and no effect of company."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

from lowland._base.context import FitContext, Prepared
from lowland._base.errors import DataError, MemoryLimitError, ParameterError
from lowland._base.monitor import Monitor
from lowland._engines.neighbors import search as engine
from lowland._engines.neighbors import search as searching
from lowland._engines.neighbors.cell_index import CellIndex
from lowland._engines.neighbors.search import NeighborIndex, neighbor_query, query_fitted
from lowland.neighbors import knn_query
from support.cases import each
from support.searches import in_order

TARGET = 0.985


def sheets(rng, n, p=20):
    """Rows near a few bent sheets of four dimensions."""
    group = rng.integers(0, 6, n)
    frames = np.random.default_rng(7).standard_normal((6, 4, p))
    Z = rng.standard_normal((n, 4))
    X = np.einsum("nd,ndp->np", Z, frames[group]) + 8 * frames[group, 0]
    return X + 0.1 * rng.standard_normal((n, p))


DATA = {
    "sheets": sheets,
    "noise": lambda rng, n: rng.random((n, 8)),
    "heavy tails": lambda rng, n: rng.standard_t(2, (n, 6)),
    "copies": lambda rng, n: sheets(rng, 30)[rng.integers(0, 30, n)],
    "half of the rows equal": lambda rng, n: sheets(rng, n) * (rng.random((n, 1)) < 0.5),
    "constant columns": lambda rng, n: np.hstack([sheets(rng, n, 7), np.full((n, 9), 4.0)]),
    "all rows equal": lambda rng, n: np.ones((n, 3)),
    "wide": lambda rng, n: sheets(rng, n, 200),
    "wide, without leading directions": lambda rng, n: (
        np.repeat(np.eye(60), 4, axis=1)[rng.integers(0, 60, n)] * 30
        + rng.standard_normal((n, 240))
    ),
    "one column": lambda rng, n: rng.gamma(1.0, size=(n, 1)),
    "far from the origin": lambda rng, n: 1e4 + sheets(rng, n),
    "rounded": lambda rng, n: sheets(rng, n).round(),
    "groups of all sizes and widths": lambda rng, n: (
        (size := np.random.default_rng(3).geometric(0.02, n) % 40)[:, None] * np.ones(12)
        + 0.02 * (1 + size[:, None]) * rng.standard_normal((n, 12))
    ),
}


def tables(what, n=3000, m=150, dtype=np.float64):
    rng = np.random.default_rng(0)
    table = DATA[what](rng, n + m).astype(dtype)
    return table[:n], table[n:]


def cells(X, k, **options):
    return NeighborIndex(X, k, method="cells", **options)


@each("what", DATA)
@each(("k", "dtype"), [(1, np.float32), (30, np.float64)])
def test_cells_find_nearly_all_neighbors_of_new_rows_and_say_true_distances(what, k, dtype):
    X, Q = tables(what, dtype=dtype)
    graph = cells(X, k).query(Q, 2, Monitor())
    D = cdist(Q.astype(float), X.astype(float))
    true = in_order(D, k)[1]
    # 150 queries of k neighbors: of one neighbor each, four missed ones are within chance
    spare = 3 * np.sqrt(TARGET * (1 - TARGET) / len(Q))
    assert (graph.distances <= true[:, -1:] * (1 + 1e-5) + 1e-5).mean() >= TARGET - spare
    said = np.take_along_axis(D, graph.indices.astype(int), axis=1)
    np.testing.assert_allclose(graph.distances, said, rtol=1e-5, atol=1e-6)
    assert (np.diff(graph.distances, axis=1) >= 0).all()
    assert all(len(set(row)) == k for row in graph.indices.tolist())
    assert graph.recall_ >= TARGET


@each("metric", ["euclidean", "sqeuclidean", "cosine", "correlation"])
def test_cells_know_all_metrics_of_products(metric):
    X, Q = tables("sheets")
    X[5], Q[3] = 0, 0  # rows without direction
    graph = cells(X, 10, metric=metric).query(Q, 1, Monitor())
    exact = neighbor_query(X, Q, 10, metric=metric)
    assert (graph.distances <= exact.distances[:, -1:]).mean() >= TARGET - 0.005
    same = graph.indices == exact.indices
    assert np.array_equal(graph.distances[same], exact.distances[same])


@each("what", ["sheets", "copies", "wide", "heavy tails"])
def test_a_row_alone_is_answered_as_in_company(what):
    X, Q = tables(what)
    index = cells(X, 20)
    together = index.query(Q, 2, Monitor())
    for rows in ([0], [7], slice(40, 60), np.random.default_rng(1).permutation(len(Q))):
        some = index.query(Q[rows], 1, Monitor())
        assert some.indices.tobytes() == together.indices[rows].tobytes()
        assert some.distances.tobytes() == together.distances[rows].tobytes()


@each("what", ["sheets", "copies", "half of the rows equal", "wide", "far from the origin"])
@each("metric", ["euclidean", "cosine"])
def test_a_query_equal_to_fitted_rows_finds_the_first_of_them(what, metric):
    X, _ = tables(what)
    graph = cells(X, 5, metric=metric).query(X, 2, Monitor())
    exact = neighbor_query(X, X, 5, metric=metric)
    zero = exact.distances == 0
    assert zero[:, 0].all()
    assert np.array_equal(graph.indices[zero], exact.indices[zero])
    assert not graph.distances[zero].any()


def test_few_rows_in_the_nearest_cells_are_completed():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((2900, 3)), 100 * rng.standard_normal((100, 3))])
    graph = cells(X, 400).query(1000 * np.eye(3), 1, Monitor())
    assert (graph.indices >= 0).all()
    assert np.isfinite(graph.distances).all()


def test_the_number_of_cells_to_search_is_the_least_that_is_enough():
    X, _ = tables("sheets")
    index = CellIndex(X, 30, 1, Monitor())
    assert index.probes < len(index.centers)
    assert index.recall >= TARGET
    index.probes -= 1
    less = index.query(X[:500], 31, 1, Monitor()).squares
    true = in_order(cdist(X[:500], X, "sqeuclidean"), 31)[1]
    assert (less <= true[:, -1:]).mean() < 0.99


def test_small_tables_stay_exact(monkeypatch):
    X, Q = tables("sheets")
    expected = neighbor_query(X, Q, 9)
    options = {"metric": "euclidean", "metric_params": None}
    run = FitContext(np.random.default_rng(0), 1, Monitor(), None, Prepared())
    small = query_fitted(X, Q, 9, run=run, **options)
    assert small.indices.tobytes() == expected.indices.tobytes()
    assert small.distances.tobytes() == expected.distances.tobytes()
    assert small.recall_ is None
    monkeypatch.setattr(engine, "INDEX_ROWS", 1000)
    run = run._replace(kept=Prepared())
    assert query_fitted(X, Q, 9, run=run, **options).recall_ >= TARGET
    assert query_fitted(X, Q, 9, run=run, approximate=False, **options).recall_ is None
    assert query_fitted(X, Q, 9, run=run, metric="manhattan", metric_params=None).recall_ is None
    asked = neighbor_query(X, Q, 9)  # not of fitted rows: exact
    assert asked.indices.tobytes() == expected.indices.tobytes()


def test_users_may_ask_for_cells():
    X, Q = tables("sheets")
    assert knn_query(X, Q, 9).recall_ is None
    assert knn_query(X, Q, 9, method="cells").recall_ >= TARGET
    few = knn_query(X[:50], Q, 9, method="cells")  # too few rows for cells
    assert np.array_equal(few.indices, knn_query(X[:50], Q, 9).indices)
    with pytest.raises(ParameterError, match="cells"):
        knn_query(X, Q, 9, method="cells", metric="manhattan")


def test_an_index_answers_queries_of_any_float_type_and_of_extreme_size():
    X, Q = tables("sheets", dtype=np.float32)
    index = NeighborIndex(X, 6)
    for queries in (Q, Q.astype(np.float64), Q * np.float32(1e25), Q):
        graph = index.query(queries, 1, Monitor())
        expected = neighbor_query(X, queries, 6)
        assert graph.indices.tobytes() == expected.indices.tobytes()
        assert graph.distances.tobytes() == expected.distances.tobytes()
    with pytest.raises(DataError, match="19 columns"):
        index.query(Q[:, 1:], 1, Monitor())


@each("method", ["exact", "cells"])
@each("metric", ["euclidean", "cosine"])
def test_float64_queries_are_compared_with_float32_rows_in_exact_arithmetic(method, metric):
    X, Q = tables("sheets", dtype=np.float32)
    Q = Q.astype(np.float64) + 1e-9 * np.random.default_rng(0).standard_normal(Q.shape)
    graph = NeighborIndex(X, 9, metric=metric, method=method).query(Q, 2, Monitor())
    exact = neighbor_query(X.astype(np.float64), Q, 9, metric=metric)
    same = graph.indices == exact.indices
    assert graph.distances.dtype == np.float64
    assert same.all() if method == "exact" else same.mean() >= TARGET - 0.02
    np.testing.assert_allclose(graph.distances[same], exact.distances[same], rtol=1e-12, atol=1e-14)


class Builds:
    """Counts what is computed from all fitted rows."""

    def __init__(self, monkeypatch):
        self.made = []
        for name in ("CellIndex", "ExactIndex"):
            monkeypatch.setattr(engine, name, self._counted(getattr(engine, name)))

    def _counted(self, cls):
        def init(own, *given):
            self.made.append(cls.__name__)
            cls.__init__(own, *given)

        return type(cls.__name__, (cls,), {"__init__": init})


@each(("method", "made"), [("cells", ["CellIndex"]), ("exact", ["ExactIndex"])])
def test_rows_are_prepared_once_for_queries_of_any_type(method, made, monkeypatch):
    X, Q = tables("sheets", dtype=np.float32)
    builds, index = Builds(monkeypatch), NeighborIndex(X, 5, method=method)
    for queries in (Q[:1], Q[:1].astype(np.float64), Q, Q[3:5].astype(np.float64)):
        index.query(queries, 1, Monitor())
    assert builds.made == made


def test_an_index_counts_the_memory_beside_its_rows():
    X, Q = tables("sheets", dtype=np.float32)
    index = cells(X, 5)
    assert index.nbytes == 0
    index.query(Q, 1, Monitor())
    # packed rows of 20 columns and four numbers each, and a few empty places in each cell
    assert X.nbytes < index.nbytes < 2 * X.nbytes
    # directions are float64 and have a column more
    assert NeighborIndex(X, 5, metric="cosine").nbytes == 8 * X.shape[0] * (X.shape[1] + 1)


def test_many_queries_in_many_rows_take_cells(monkeypatch):
    X, Q = tables("sheets", m=400)
    monkeypatch.setattr(searching, "CELLS_ROWS", 3000)
    assert len(Q) >= searching.MANY_QUERIES * np.sqrt(len(X)) > 300
    many = knn_query(X, Q, 9)
    assert many.recall_ >= TARGET
    assert many.indices.tobytes() == knn_query(X, Q, 9, method="cells").indices.tobytes()
    for exact in (
        knn_query(X, Q[:300], 9),  # too few queries
        knn_query(X[:-1], Q, 9),  # too few rows
        knn_query(X, Q, 9, method="exact"),
        knn_query(X, Q, 9, metric="manhattan"),
        knn_query(X[:, :4], Q[:, :4], 9),  # few columns: exact searches are pruned
        knn_query(csr_matrix(X), Q, 9),
    ):
        assert exact.recall_ is None


def test_a_tree_is_kept_too():
    X, Q = tables("noise")
    index = NeighborIndex(X, 6, metric="manhattan")
    first = index.query(Q, 1, Monitor())
    assert index.query(Q, 2, Monitor()).indices.tobytes() == first.indices.tobytes()
    np.testing.assert_array_equal(first.indices, in_order(cdist(Q, X, "cityblock"), 6)[0])


def test_an_index_that_does_not_fit_in_memory_is_refused(monkeypatch):
    X, Q = tables("sheets")
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100kB")
    with pytest.raises(MemoryLimitError, match="index of 3000 fitted rows"):
        cells(X, 5).query(Q, 1, Monitor())


def test_a_batch_of_queries_does_not_decide_which_coordinates_are_compared_first():
    """Bounds on the rest of a product need the rest of both rows from the same coordinate on."""
    rng = np.random.default_rng(0)
    X = np.zeros((5000, 14))
    X[:, :4], X[:, 5] = 10 * rng.standard_normal((5000, 4)), 2 * rng.standard_normal(5000)
    Q = 5 * rng.standard_normal((300, 14))
    Q[:50] = 0
    Q[:50, :4], Q[:50, 5] = rng.standard_normal((50, 4)), 60
    expected = in_order(cdist(Q, X), 10)
    graph = neighbor_query(X, Q, 10)
    np.testing.assert_allclose(graph.distances, expected[1], rtol=1e-12)
