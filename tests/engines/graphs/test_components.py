"""Undirected graphs, components and the bridges between them, against dense definitions."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from lowland._base.errors import DataError, ParameterError, StoppedError
from lowland._base.monitor import Monitor
from lowland._engines.graphs.components import connect, connected_components
from lowland._engines.graphs.weights import checked_graph, symmetrize
from lowland._engines.neighbors.graph import NeighborGraph
from support.cases import each
from support.graphs import canonical, clusters, graph_of, to_dense


def from_dense(W, dtype=np.float64):
    """A graph whose edges are the entries that are not NaN; zeros are stored."""
    i, j = np.nonzero(~np.isnan(W))
    return scipy.sparse.csr_matrix((W[i, j].astype(dtype), (i, j)), shape=W.shape)


@st.composite
def dense_graphs(draw):
    """Distances, NaN where there is no edge; zeros among them; directions that disagree."""
    n = draw(st.integers(1, 9))
    entry = st.sampled_from([np.nan, np.nan, 0.0, 0.5, 1.0, np.nextafter(1.0, 2), 3e-310, 7e200])
    W = np.array(draw(st.lists(entry, min_size=n * n, max_size=n * n))).reshape(n, n)
    np.fill_diagonal(W, np.nan)
    return W


# --- symmetrize ---------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(dense_graphs(), st.sampled_from([np.float32, np.float64]))
def test_an_edge_in_either_direction_becomes_an_edge_of_the_lesser_length(W, dtype):
    W = np.where(W > 1e100, 1e30, W).astype(dtype)
    found = symmetrize(from_dense(W, dtype))
    assert np.array_equal(to_dense(found), np.fmin(W, W.T), equal_nan=True)
    assert canonical(found)
    assert found.dtype == dtype


def test_loops_are_dropped_and_of_repeated_edges_the_shortest_stays():
    graph = scipy.sparse.csr_matrix(
        (np.array([9.0, 4, 3, 0, 2, 1]), np.array([1, 1, 0, 1, 1, 0]), np.array([0, 3, 6])), (2, 2)
    )
    before = graph.data.copy(), graph.indices.copy()
    checked, undirected = checked_graph(graph), symmetrize(graph)
    assert np.array_equal(to_dense(checked), [[np.nan, 4], [1, np.nan]], equal_nan=True)
    assert np.array_equal(to_dense(undirected), [[np.nan, 1], [1, np.nan]], equal_nan=True)
    with_loops = checked_graph(graph, keep_loops=True)
    assert np.array_equal(to_dense(with_loops), [[3, 4], [1, 0]], equal_nan=True)
    assert np.array_equal(graph.data, before[0])
    assert np.array_equal(graph.indices, before[1])


def test_integers_become_float64_and_negative_zero_is_zero():
    graph = scipy.sparse.csr_matrix(np.array([[0, 2], [1, 0]]))
    assert symmetrize(graph).dtype == np.float64
    graph = scipy.sparse.csr_matrix(([-0.0, 1.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert np.array_equal(symmetrize(graph).data, [0, 0])
    assert not np.signbit(symmetrize(graph).data).any()


def test_what_is_no_graph_of_distances_is_refused():
    with pytest.raises(DataError, match=r"square sparse matrix.*\(2, 3\)"):
        symmetrize(scipy.sparse.csr_matrix((2, 3)))
    with pytest.raises(DataError, match="ndarray"):
        symmetrize(np.zeros((2, 2)))
    with pytest.raises(DataError, match=r"square.*\(2, 5\)"):
        symmetrize(NeighborGraph(np.array([[0], [4]]), np.ones((2, 1)), 5))
    for bad in (-1, np.nan, np.inf):
        with pytest.raises(DataError, match="finite and not negative"):
            symmetrize(scipy.sparse.csr_matrix(([bad], ([0], [1])), shape=(2, 2)))


def test_missing_neighbors_of_a_neighbor_graph_are_no_edges():
    graph = NeighborGraph(
        np.array([[1, 2], [0, -1], [0, -1]]), np.array([[1.0, 2], [1, np.inf], [2, np.inf]]), 3
    )
    assert np.array_equal(symmetrize(graph).toarray(), [[0, 1, 2], [1, 0, 0], [2, 0, 0]])


# --- components and bridges ---------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(dense_graphs())
def test_components_are_what_can_be_reached_numbered_by_their_first_row(W):
    reach = ~np.isnan(W) | ~np.isnan(W.T) | np.eye(len(W), dtype=bool)
    for _ in range(len(W)):
        reach = reach @ reach
    first = reach.argmax(axis=1)  # the first row of each row's component
    n_components, labels = connected_components(from_dense(W))
    assert n_components == np.unique(first).size
    assert np.array_equal(labels, np.searchsorted(np.unique(first), first))


def naive_tree_length(D, labels):
    """Kruskal on all pairs: lengths of the shortest edges that join the components, ascending."""
    labels, lengths = labels.copy(), []
    i, j = np.triu_indices(len(D), 1)
    for e in np.argsort(D[i, j], kind="stable"):
        a, b = labels[i[e]], labels[j[e]]
        if a != b:
            labels[labels == b] = a
            lengths.append(D[i[e], j[e]])
    return np.array(lengths)


@each("d", [1, 3, 12, 13, 60])
@each("c", [2, 7, 80])
@each("spread", [0.0, 3.0])
def test_bridges_are_a_minimum_spanning_tree_of_the_components(d, c, spread):
    X, labels = clusters(200, d, c, seed=d + c, spread=spread)
    found = connect(graph_of(labels), X, threads=2)
    D = cdist(X, X)
    assert np.allclose(found.added.distances, naive_tree_length(D, labels), rtol=1e-12, atol=0)
    assert np.allclose(found.added.distances, D[found.added.rows, found.added.columns])
    assert found.n_components == np.unique(labels).size
    assert connected_components(found.graph)[0] == 1
    assert np.array_equal(found.kept, np.arange(200))


@each("metric", ["manhattan", "chebyshev", "cosine", "correlation", "sqeuclidean", "canberra"])
@each("d", [4, 30])
def test_bridges_are_shortest_in_every_metric(metric, d):
    X, labels = clusters(120, d, 9)
    added = connect(graph_of(labels), X, metric=metric).added
    D = cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))
    assert np.allclose(added.distances, naive_tree_length(D, labels), rtol=1e-9)


def test_bridges_take_parameters_of_the_metric_booleans_functions_and_sparse_rows():
    X, labels = clusters(60, 20, 5)
    graph = graph_of(labels)

    def check(D, X, metric, params=None):
        added = connect(graph, X, metric=metric, metric_params=params).added
        assert np.allclose(added.distances, naive_tree_length(D, labels))

    check(cdist(X, X, "minkowski", p=3), X, "minkowski", {"p": 3})
    check(cdist(X > 1, X > 1, "jaccard"), (X > 1).astype(float), "jaccard")
    check(cdist(X, X, "cityblock"), X, lambda a, b: np.abs(a - b).sum())
    thin = np.where(X > 0.5, X, 0)
    check(cdist(thin, thin), scipy.sparse.csr_matrix(thin), "euclidean")
    check(cdist(thin, thin, "cosine"), scipy.sparse.csr_array(thin), "cosine")


def test_bridges_come_from_a_matrix_of_distances_as_from_the_rows():
    X, labels = clusters(90, 5, 6)
    graph, D = graph_of(labels), cdist(X, X)
    by_rows, by_matrix = connect(graph, X), connect(graph, D, metric="precomputed")
    assert all(np.array_equal(a, b) for a, b in zip(by_rows.added, by_matrix.added, strict=True))
    D[np.triu_indices(90)] *= 1 + 1e-12  # directions that disagree: the lesser counts
    again = connect(graph, D, metric="precomputed")
    assert np.array_equal(again.added.rows, by_rows.added.rows)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 40), st.integers(1, 3), st.integers(2, 12), st.integers(0, 10**6))
def test_bridges_are_right_on_lattices_with_ties_and_copies(n, d, c, seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.integers(0, 4, (n, d)).astype(float), rng.integers(0, c, n)
    for padding in (0, 15):  # few columns: trees; many: products
        wide = np.hstack([X, np.zeros((n, padding))])
        added = connect(graph_of(labels), wide).added
        assert np.array_equal(added.distances, naive_tree_length(cdist(X, X), labels))


@pytest.mark.parametrize("padding", [0, 20])
def test_of_bridges_of_one_length_the_first_rows_win(padding):
    X = np.stack(np.meshgrid([0.0, 7.0, 14.0], np.arange(6)), -1).reshape(-1, 2)
    X = np.hstack([X, np.zeros((18, padding))])
    labels = (X[:, 0] / 7).astype(int)
    added = connect(graph_of(labels), X).added
    assert np.array_equal(added.rows, [0, 1])
    assert np.array_equal(added.columns, [1, 2])


def test_bridges_between_copies_have_length_0_and_are_stored():
    X = np.ones((6, 2))
    found = connect(scipy.sparse.csr_matrix((6, 6)), X)
    assert np.array_equal(found.added.distances, np.zeros(5))
    assert found.graph.nnz == 10
    assert connected_components(found.graph)[0] == 1


@pytest.mark.parametrize("d", [3, 40])
def test_rounding_far_from_the_origin_does_not_mislead(d):
    X, labels = clusters(150, d, 6)
    X = 1e-3 * X + 1e4
    added = connect(graph_of(labels), X).added
    assert np.allclose(added.distances, naive_tree_length(cdist(X, X), labels), rtol=1e-9, atol=0)
    huge = connect(graph_of(labels), X * 1e148).added
    assert np.array_equal(huge.rows, added.rows)


@pytest.mark.parametrize("d", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_thousands_of_pairs_are_joined(d):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((1500, d)), 2, axis=0) + 0.001 * rng.random((3000, d))
    found = connect(graph_of(np.arange(3000) // 2), X, threads=2)
    assert found.added.rows.size == 1499
    assert connected_components(found.graph)[0] == 1
    tree = scipy.sparse.csgraph.minimum_spanning_tree(cdist(X, X)).data
    assert np.allclose(found.added.distances, np.sort(tree)[1500:])


@pytest.mark.parametrize("d", [3, 40])
def test_threads_do_not_change_the_bridges(d):
    X, labels = clusters(500, d, 12)
    one = connect(graph_of(labels), X, threads=1).added
    for threads in (2, 5):
        again = connect(graph_of(labels), X, threads=threads).added
        assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))


def test_bridges_keep_the_type_the_edges_and_the_input_of_a_graph():
    X, labels = clusters(80, 4, 5)
    graph = graph_of(labels).astype(np.float32)
    before = to_dense(graph)
    found = connect(graph, X.astype(np.float32))
    assert found.graph.dtype == found.added.distances.dtype == np.float32
    assert canonical(found.graph)
    after = to_dense(found.graph)
    assert np.array_equal(after[~np.isnan(before)], before[~np.isnan(before)])
    assert found.graph.nnz == graph.nnz + 2 * (found.n_components - 1)
    assert np.array_equal(after, after.T, equal_nan=True)
    assert np.array_equal(to_dense(graph), before, equal_nan=True)


def test_the_largest_component_is_kept_and_of_equals_the_first():
    labels = np.array([2, 0, 1, 0, 1, 2, 2, 1, 3])
    found = connect(graph_of(labels), None, "largest")
    assert np.array_equal(found.kept, [0, 5, 6])
    assert found.n_components == 4
    assert np.array_equal(to_dense(found.graph), to_dense(graph_of(np.zeros(3))), equal_nan=True)
    last = connect(graph_of(np.array([2, 0, 1, 1, 2, 1])), None, "largest")
    assert np.array_equal(last.kept, [2, 3, 5])


def test_several_components_can_be_an_error_that_says_what_to_do():
    with pytest.raises(DataError, match=r"3 components, of 4, 2, 1 rows;.*n_neighbors.*bridge"):
        connect(graph_of(np.array([0, 1, 1, 2, 2, 2, 2])), None, "raise")
    with pytest.raises(DataError, match=r"30 components, of 2, 2, .*, \.\.\. rows"):
        connect(graph_of(np.arange(60) // 2), None, "raise")


@pytest.mark.parametrize("policy", ["bridge", "largest", "raise"])
@pytest.mark.parametrize("n", [1, 5])
def test_a_graph_in_one_piece_stays_as_it_is(policy, n):
    graph = graph_of(np.zeros(n))
    found = connect(graph, None, policy)
    assert found.graph is graph
    assert found.n_components == 1
    assert found.added.rows.size == 0
    assert np.array_equal(found.kept, np.arange(n))


def test_arguments_of_connect_that_make_no_sense_are_named():
    graph, X = graph_of(np.array([0, 0, 1, 1])), np.zeros((4, 2))
    with pytest.raises(ParameterError, match="did you mean 'bridge'"):
        connect(graph, X, "bridges")
    with pytest.raises(ParameterError, match="did you mean 'euclidean'"):
        connect(graph, X, metric="euclidian")
    with pytest.raises(DataError, match="4 rows, but X has 3"):
        connect(graph, X[:3])
    for matrix in (X, scipy.sparse.csr_matrix((4, 4))):
        with pytest.raises(DataError, match="square array of distances"):
            connect(graph, matrix, metric="precomputed")
    with pytest.raises(DataError, match="infinite or NaN"):
        connect(graph, np.full((4, 4), np.inf), metric="precomputed")


def test_the_search_for_bridges_can_be_cancelled():
    monitor = Monitor("test")
    monitor.cancel()
    X, labels = clusters(50, 30, 4)
    with pytest.raises(StoppedError, match="bridges"):
        connect(graph_of(labels), X, monitor=monitor)
