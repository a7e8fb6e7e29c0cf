"""The parts of the neighbor engine, each against its plain definition."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from lowland._base.errors import DataError
from lowland._base.monitor import Monitor
from lowland._engines.distances.filter_space import FilterSpace
from lowland._engines.neighbors import block_search as engine
from lowland._engines.neighbors.block_search import (
    block_search,
    nearest_in_rows,
    sparse_search,
    stored_neighbors,
    tree_of,
    tree_search,
)
from lowland._engines.neighbors.exact_search import ExactIndex, exact_join, spatial_order
from support.cases import each
from support.searches import in_order, others

# --- filter space -------------------------------------------------------------------------------


def low_rank(rng, n, d, rank):
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) + 3


FILTER_DATA = {
    "few columns": lambda rng: rng.gamma(1.0, size=(80, 7)),
    "as many as are kept": lambda rng: rng.gamma(1.0, size=(80, 128)),
    "noise": lambda rng: rng.standard_normal((150, 129)),
    "leading directions": lambda rng: rng.standard_normal((200, 300)) * 0.9 ** np.arange(300),
    "low rank": lambda rng: low_rank(rng, 150, 200, 5),
    "fewer rows than axes": lambda rng: rng.standard_normal((30, 200)),
    "very wide": lambda rng: rng.standard_normal((60, 3100)),
    "far from the origin": lambda rng: 1e6 + rng.standard_normal((150, 160)),
    "all equal": lambda rng: np.tile(rng.standard_normal(150), (120, 1)),
    "one outlier": lambda rng: (
        rng.standard_normal((150, 160)) + 1e5 * (np.arange(150) == 9)[:, None]
    ),
}


@each("what", FILTER_DATA)
@each("dtype", [np.float32, np.float64])
def test_no_pair_is_farther_in_filter_space_than_in_truth(what, dtype):
    rng = np.random.default_rng(0)
    X = FILTER_DATA[what](rng).astype(dtype)
    queries = (X[:20] * 1.5 + rng.standard_normal((20, X.shape[1]))).astype(dtype)
    space = FilterSpace.of(X, 2)
    F, G = space.coordinates(X, 2), space.coordinates(queries, 1)
    assert F.dtype == np.float32
    norms, query_norms = np.linalg.norm(F.astype(float), axis=1), np.linalg.norm(G, axis=1)
    for A, B, a, b, left, right in (
        (F, F, norms, norms, X, X),
        (G, F, query_norms, norms, queries, X),
    ):
        true = cdist(left.astype(float), right.astype(float))
        seen = cdist(A.astype(float), B.astype(float))
        # Every coordinate is rounded to float32: each point moves by half an eps of its length.
        slack = np.finfo(np.float32).eps * (a[:, None] + b)
        assert (seen <= true + slack).all()


@pytest.mark.parametrize("what", ["few columns", "as many as are kept", "low rank"])
def test_nothing_is_lost_where_the_leading_coordinates_are_all_there_is(what):
    X = FILTER_DATA[what](np.random.default_rng(0))
    F = FilterSpace.of(X, 1).coordinates(X, 1).astype(float)
    np.testing.assert_allclose(cdist(F, F), cdist(X, X), rtol=1e-5, atol=1e-5 * np.ptp(X))


def test_the_length_left_out_is_one_more_coordinate():
    # Two points that differ only in how far they are from the leading plane.
    rng = np.random.default_rng(0)
    X = np.zeros((300, 200))
    X[:, :96] = 10 * rng.standard_normal((300, 96))
    X[:, 150] = 0.01 * np.arange(300)
    X[1, :96] = X[0, :96]
    X[0, 150], X[1, 150] = 1.5, 7.5  # the first is at the mean: nothing is left of it
    F = FilterSpace.of(X, 1).coordinates(X, 1).astype(float)
    assert F.shape == (300, 97)
    assert abs(F[0, 96] - F[1, 96]) > 1
    assert np.linalg.norm(F[0] - F[1]) <= 6 * (1 + 1e-5)


# --- the exact join -----------------------------------------------------------------------------


@each("chunk", [16, 384])
@each("n", [1, 5, 16, 17, 100, 1000, 5000])
def test_runs_of_a_line_in_spatial_order_are_its_pieces(n, chunk):
    line = np.random.default_rng(0).permutation(n).astype(np.float32)[:, None]
    order = spatial_order(line, chunk)
    assert np.array_equal(np.sort(order), np.arange(n))
    pieces = [line[order[start : start + chunk], 0] for start in range(0, n, chunk)]
    assert np.array_equal(np.concatenate([np.sort(piece) for piece in pieces]), np.arange(n))


def test_runs_in_spatial_order_are_small_in_space():
    F = np.random.default_rng(0).standard_normal((2048, 4)).astype(np.float32)
    order = spatial_order(F, 64)
    assert np.array_equal(np.sort(order), np.arange(2048))
    spread = F[order].reshape(32, 64, 4).var(axis=1).mean()
    # 5 median splits over 4 axes: the variance of a half normal is 0.36 of the whole.
    assert spread < 0.5 * F.var(axis=0).mean()


def test_equal_points_can_be_ordered_in_space():
    assert np.array_equal(np.sort(spatial_order(np.ones((300, 3), np.float32), 16)), np.arange(300))


@pytest.mark.parametrize("n", [2, 3, 100, 600])
def test_the_exact_join_and_query_are_exact_to_the_last_bit_of_ties(n):
    # Integers: squared distances are exact, nearly all are tied, and no row is left out.
    X = np.random.default_rng(0).integers(0, 4, (n, 10)).astype(float)
    k = min(n - 1, 9)
    D2 = cdist(X, X, "sqeuclidean")
    for found, expected in (
        (exact_join(X, k, 2, Monitor()), in_order(others(D2), k)),
        (
            ExactIndex(X, 2).query(X + 1, k, 2, Monitor()),
            in_order(cdist(X + 1, X, "sqeuclidean"), k),
        ),
    ):
        assert np.array_equal(found.ids, expected[0])
        assert np.array_equal(found.squares, expected[1])


@pytest.mark.parametrize("d", [5, 129, 3100])
def test_one_fitted_row_can_be_asked_for(d):
    X = np.random.default_rng(0).standard_normal((1, d))
    found = ExactIndex(X, 1).query(X + 1, 1, 1, Monitor())
    assert np.array_equal(found.ids, [[0]])
    np.testing.assert_allclose(found.squares, [[d]], rtol=1e-12)


# --- blocks -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100, derandomize=True, database=None)
@given(
    b=st.integers(1, 6), n=st.integers(1, 30), levels=st.integers(1, 6), seed=st.integers(0, 10**6)
)
def test_the_least_entries_of_rows_are_ordered_by_value_and_column(b, n, levels, seed):
    rng = np.random.default_rng(seed)
    D = rng.integers(0, levels, (b, n)).astype(float)
    D[rng.random((b, n)) < 0.1] = np.inf
    before = D.copy()
    for k in {1, n // 2 + 1, n}:
        ids, values = nearest_in_rows(D, k)
        expected = in_order(D, k)
        assert np.array_equal(ids, expected[0])
        assert np.array_equal(values, expected[1])
    assert np.array_equal(D, before)


@pytest.mark.parametrize("tile", [1, 45, 100, 10**6])
@pytest.mark.parametrize("self_join", [True, False])
def test_the_size_of_blocks_changes_nothing(monkeypatch, tile, self_join):
    monkeypatch.setattr(engine, "TILE", tile)
    X = np.random.default_rng(0).integers(0, 5, (45, 2)).astype(float)
    D = cdist(X, X)
    found = block_search(45, 45, 6, lambda rows: D[rows].copy(), self_join, Monitor())
    ids, distances = in_order(others(D) if self_join else D, 6)
    assert np.array_equal(found.ids, ids)
    assert np.array_equal(found.distances, distances)


@pytest.mark.parametrize("tile", [1, 100, 10**6])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_the_size_of_blocks_of_sparse_rows_changes_nothing(monkeypatch, tile, metric):
    monkeypatch.setattr(engine, "TILE", tile)
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((45, 12)) < 0.3, rng.integers(1, 4, (45, 12)), 0).astype(float)
    X = scipy.sparse.csr_matrix(dense)
    found = sparse_search(X, None, 6, metric, Monitor())
    ids, distances = in_order(others(cdist(dense, dense, metric)), 6)
    assert np.array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-15)


def test_sparse_search_never_makes_the_data_dense(monkeypatch):
    # One dense array is allowed: a block of distances, n columns wide and not d.
    shapes = []
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix):
        plain = kind.toarray
        monkeypatch.setattr(
            kind,
            "toarray",
            lambda self, *rest, plain=plain: shapes.append(self.shape) or plain(self, *rest),
        )
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 5000, (30, 4))
    X = scipy.sparse.csr_matrix(
        (np.ones(120), columns.ravel(), np.arange(0, 121, 4)), shape=(30, 5000)
    )
    X.sum_duplicates()
    for metric in ("euclidean", "cosine"):
        sparse_search(X, None, 3, metric, Monitor())
    assert shapes
    assert all(shape[1] == 30 for shape in shapes)


def test_stored_neighbors_are_the_least_stored_entries_zeros_included():
    rows = np.array([0, 0, 0, 0, 1, 1, 2, 2, 3, 3])
    columns = np.array([3, 1, 2, 0, 0, 2, 1, 0, 0, 2])
    values = np.array([1.0, 1, 0, 0, 5, 2, 2, 0, 1, 7])
    graph = scipy.sparse.csr_matrix((values, (rows, columns)), shape=(4, 4))
    found = stored_neighbors(graph, 2, True)
    assert np.array_equal(found.ids, [[2, 1], [2, 0], [0, 1], [0, 2]])
    assert np.array_equal(found.distances, [[0, 1], [2, 5], [0, 2], [1, 7]])
    assert np.array_equal(stored_neighbors(graph, 2, False).ids[0], [0, 2])
    with pytest.raises(DataError, match=r"row 1: .*stores 2 .*n_neighbors=3"):
        stored_neighbors(graph, 3, True)


# --- the tree -----------------------------------------------------------------------------------


TREE_METRICS = {"euclidean": 2, "sqeuclidean": 2, "manhattan": 1, "chebyshev": np.inf}


@each("metric", TREE_METRICS)
@each("levels", [2, 4, 30])
@each("k", [1, 4, 5, 20, 149])
def test_the_tree_orders_ties_and_copies_by_row_number(metric, levels, k):
    X = np.random.default_rng(levels).integers(0, levels, (150, 2)).astype(float)
    name = {"manhattan": "cityblock"}.get(metric, metric)
    ids, distances = in_order(others(cdist(X, X, name)), k)
    found = tree_search(tree_of(X), None, k, metric, None, 2, Monitor())
    assert np.array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-15)
    ids, distances = in_order(cdist(X + 0.5, X, name), k)
    found = tree_search(tree_of(X), X + 0.5, k, metric, None, 1, Monitor())
    assert np.array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-15)


@pytest.mark.parametrize("p", [1, 1.5, 3, np.inf])
def test_the_tree_takes_the_exponent_of_minkowski(p):
    X = np.random.default_rng(0).gamma(1.0, size=(120, 3))
    found = tree_search(tree_of(X), None, 7, "minkowski", {"p": p}, 1, Monitor())
    ids, distances = in_order(others(cdist(X, X, "minkowski", p=p)), 7)
    assert np.array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-13)
