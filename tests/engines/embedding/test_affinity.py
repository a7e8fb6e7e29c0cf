"""Affinities: perplexity attained, symmetric, summing to 1, equal to definitions and to others."""

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.manifold import _t_sne

from lowland._base.errors import DataError, ParameterError
from lowland._engines.embedding.affinity import (
    check_perplexity,
    conditional_affinities,
    default_neighbors,
    dense_conditional,
    joint_affinities,
    symmetrize_affinities,
)
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query
from support.graphs import dense_joint


def attained(weights):
    """exp(entropy) of each row."""
    p = np.asarray(weights, np.float64)
    return np.exp(-np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=1))


def naive_joint(graph, weights):
    """(C + C^T) / 2n, dense."""
    n = len(graph)
    C = np.zeros((n, n))
    C[np.arange(n)[:, None], graph.indices] = weights
    return (C + C.T) / (2 * n)


def check_joint(P):
    """What holds for all joint affinities, whatever the data."""
    A = P.to_csr()
    assert P.indptr.dtype == np.int64
    assert P.indices.dtype == np.int32
    assert np.isfinite(P.weights).all()
    assert (P.weights >= 0).all()
    assert P.weights.sum(dtype=np.float64) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(A.toarray(), A.toarray().T)
    assert not (P.indices == np.repeat(np.arange(P.n), np.diff(P.indptr))).any()
    for i in range(P.n):
        assert (np.diff(P.indices[P.indptr[i] : P.indptr[i + 1]]) > 0).all()


# --- definitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("perplexity", [1.5, 5, 30, 79.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_row_attains_the_perplexity(irregular, perplexity, dtype):
    graph = neighbor_graph(irregular(400, 6).astype(dtype), 80)
    weights, betas = conditional_affinities(graph, perplexity)
    assert weights.dtype == dtype
    assert weights.shape == (400, 80)
    assert betas.shape == (1, 400)
    np.testing.assert_allclose(attained(weights), perplexity, rtol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=1, dtype=np.float64), 1, rtol=1e-6)
    squares = graph.distances.astype(np.float64) ** 2
    gaussian = np.exp(-betas.T * (squares - squares[:, :1]))
    np.testing.assert_allclose(
        weights, gaussian / gaussian.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-9
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_joint_affinities_are_the_symmetric_mean(irregular, dtype):
    graph = neighbor_graph(irregular(300, 5), 40)
    P = joint_affinities(graph, 12, dtype=dtype)
    assert P.weights.dtype == dtype
    assert P.n == 300
    check_joint(P)
    expected = naive_joint(graph, conditional_affinities(graph, 12).weights)
    np.testing.assert_allclose(P.to_csr().toarray(), expected, rtol=1e-6, atol=1e-12)
    has = np.zeros((300, 300), bool)
    has[np.arange(300)[:, None], graph.indices] = True
    assert P.to_csr().nnz == (has | has.T).sum()


def test_several_perplexities_give_the_mean_of_the_conditional_distributions(irregular):
    graph = neighbor_graph(irregular(200, 5), 60)
    scales = [20, 3, 7.5]
    weights, betas = conditional_affinities(graph, scales)
    each = [conditional_affinities(graph, scale) for scale in scales]
    np.testing.assert_allclose(weights, np.mean([one.weights for one in each], axis=0), rtol=1e-12)
    assert np.array_equal(betas, np.vstack([one.betas for one in each]))
    P = joint_affinities(graph, scales)
    check_joint(P)
    np.testing.assert_allclose(P.to_csr().toarray(), naive_joint(graph, weights), rtol=1e-12)
    only = joint_affinities(graph, (7.5,))
    assert np.array_equal(only.weights, joint_affinities(graph, 7.5).weights)


# --- other implementations --------------------------------------------------------------------


def test_neighbors_agree_with_scikit_learn(irregular):
    graph = neighbor_graph(irregular(500, 8), 60)
    A = graph.to_csr().copy()  # it would share the distances
    A.data **= 2
    theirs = _t_sne._joint_probabilities_nn(A, 20, 0).toarray()
    ours = joint_affinities(graph, 20).to_csr().toarray()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * theirs.max())


# --- invariances ------------------------------------------------------------------------------


def test_float32_weights_of_distances_beyond_float32(irregular):
    D = cdist(*[irregular(50, 3)] * 2)
    near = np.sort(D, axis=1)[:, 1:]
    weights, _ = conditional_affinities(near * 1e100, 10, dtype=np.float32)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(attained(weights), 10, rtol=1e-5)


def test_inputs_are_not_written_to(irregular):
    graph = neighbor_graph(irregular(100, 4), 20)
    D = cdist(*[irregular(40, 3)] * 2)
    before = graph.indices.copy(), graph.distances.copy(), D.copy()
    joint_affinities(graph, [3, 6]), dense_joint(D, 5), conditional_affinities(D, 5)
    for old, new in zip(before, (graph.indices, graph.distances, D), strict=True):
        assert np.array_equal(old, new)


# --- degenerate data --------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(2, 11))
def test_few_rows(irregular, n):
    X = irregular(n, 3)
    for perplexity in {1, 1.5, n / 2, n - 1.5, n - 1}:
        if not 1 <= perplexity <= n - 1:
            continue
        graph = neighbor_graph(X, default_neighbors(perplexity, n))
        P = joint_affinities(graph, perplexity)
        check_joint(P)
        C = dense_conditional(cdist(X, X), perplexity)
        np.testing.assert_allclose(attained(C), perplexity, rtol=1e-6)
        assert (np.diag(C) == 0).all()
        np.testing.assert_allclose(C.sum(axis=1), 1)


def test_a_graph_of_all_neighbors_is_the_matrix_of_distances(irregular):
    X = irregular(40, 4)
    graph = neighbor_graph(X, 39)
    np.testing.assert_allclose(
        dense_conditional(graph, 7), dense_conditional(cdist(X, X), 7), rtol=1e-6, atol=1e-12
    )
    P = dense_joint(graph, 7)
    np.testing.assert_allclose(P, joint_affinities(graph, 7).to_csr().toarray(), rtol=1e-12)
    assert P.sum() == pytest.approx(1, abs=1e-14)
    assert np.array_equal(P, P.T)


# --- ragged graphs ----------------------------------------------------------------------------


def test_missing_neighbors_of_a_graph_are_passed_over(irregular):
    full = neighbor_graph(irregular(80, 4), 20)
    rng = np.random.default_rng(0)
    missing = rng.random((80, 20)) < 0.3
    missing[5] = True  # a row without neighbors, which may still be a neighbor
    missing[6, 3:] = True  # fewer than the perplexity
    stored = scipy.sparse.csr_matrix(full.to_csr())
    kept = ~missing.ravel()
    starts = np.concatenate([[0], np.cumsum((~missing).sum(axis=1))])
    ragged = scipy.sparse.csr_matrix((stored.data[kept], stored.indices[kept], starts), (80, 80))
    order = np.argsort(missing, axis=1, kind="stable")  # a graph lists missing neighbors last
    missing, ids, known = (
        np.take_along_axis(array, order, axis=1)
        for array in (missing, np.where(missing, -1, full.indices), full.distances)
    )
    gaps = NeighborGraph(ids, np.where(missing, np.inf, known), 80)
    careless = gaps.with_distances(known)

    weights, _ = conditional_affinities(gaps, 6)
    assert (weights[missing] == 0).all()
    assert (weights[5] == 0).all()
    np.testing.assert_allclose(weights[6, :3], 1 / (~missing[6]).sum())
    enough = (~missing).sum(axis=1) >= 6
    np.testing.assert_allclose(attained(weights[enough]), 6, rtol=1e-6)
    P = joint_affinities(gaps, 6)
    check_joint(P)
    for same in (joint_affinities(careless, 6), joint_affinities(ragged, 6)):
        assert np.array_equal(same.indptr, P.indptr)
        assert np.array_equal(same.indices, P.indices)
        np.testing.assert_allclose(same.weights, P.weights, rtol=1e-6, atol=1e-12)
    C = dense_conditional(gaps, 6)
    np.testing.assert_allclose(P.to_csr().toarray(), (C + C.T) / (2 * C.sum()), rtol=1e-10)


def test_the_diagonal_and_wide_integers_are_no_hindrance():
    starts, columns = np.array([0, 2, 4]), np.array([0, 1, 1, 0])  # int64
    P = symmetrize_affinities(starts, columns, np.array([0.5, 1.0, 0.5, 3.0]))
    assert np.array_equal(P.to_csr().toarray(), [[0, 0.5], [0.5, 0]])


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [0, 0.99, -3, np.nan, np.inf, True, "30", None, [], [5, 0.5], [[5]]]
)
def test_what_is_no_perplexity_is_refused_by_name(bad):
    with pytest.raises(ParameterError, match=r"perplexity=.* is not allowed; expected a number"):
        check_perplexity(bad, 100)


def test_too_large_a_perplexity_is_refused_with_the_largest_possible(irregular):
    assert check_perplexity(9, 10) == (9.0,)
    assert check_perplexity([2, np.float32(9)], 10) == (2.0, 9.0)
    assert check_perplexity(np.array([2.0, 3.0]), 10, 5) == (2.0, 3.0)
    with pytest.raises(ParameterError, match=r"perplexity=30 .*n_samples=10.* at most .* = 9"):
        check_perplexity(30, 10)
    with pytest.raises(ParameterError, match=r"perplexity=9\.5 .* 10 rows"):
        check_perplexity([2, 9.5], 10)
    graph = neighbor_graph(irregular(50, 3), 15)
    with pytest.raises(ParameterError, match=r"perplexity=16 is too large for 15 neighbors"):
        joint_affinities(graph, 16)
    with pytest.raises(ParameterError, match=r"perplexity=60 .* 50 rows"):
        joint_affinities(graph, 60)
    with pytest.raises(ParameterError, match=r"perplexity=20 .* 20 rows"):
        dense_joint(cdist(*[irregular(20, 3)] * 2), 20)
    with pytest.raises(DataError, match="at least 2 rows"):
        check_perplexity(1, 1)


def test_default_neighbors_are_three_times_the_perplexity():
    assert default_neighbors(30, 1000) == 90
    assert default_neighbors(30.1, 1000) == 91
    assert default_neighbors([5, 50], 1000) == 150
    assert default_neighbors(30, 50) == 49
    assert default_neighbors(1, 2) == 1


def test_graphs_that_have_no_joint_affinities_are_refused(irregular):
    X = irregular(30, 3)
    with pytest.raises(DataError, match=r"4 new rows.*30 fitted rows"):
        joint_affinities(neighbor_query(X, X[:4], 10), 3)
    nobody = NeighborGraph(np.full((3, 2), -1, np.int32), np.full((3, 2), np.inf), 3)
    with pytest.raises(DataError, match="no row of the 3 has a neighbor"):
        joint_affinities(nobody, 1.5)
    with pytest.raises(DataError, match="square"):
        dense_conditional(np.ones((3, 4)), 2)
    with pytest.raises(DataError, match="distance nan"):
        conditional_affinities(np.array([[1.0, np.nan]]), 1.5)
    with pytest.raises(DataError, match="distance -1"):
        conditional_affinities(np.array([[1, -1]]), 1.5)
    with pytest.raises(DataError, match="NeighborGraph or an"):
        conditional_affinities(np.ones(4), 1.5)
    with pytest.raises(ParameterError, match="dtype="):
        joint_affinities(neighbor_graph(X, 5), 3, dtype=np.int32)


def test_affinities_that_do_not_fit_into_memory_are_refused(irregular, monkeypatch):
    graph = neighbor_graph(irregular(60, 3), 30)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "10kB")
    with pytest.raises(MemoryError, match="joint affinities of 60 rows needs"):
        joint_affinities(graph, 5)
    with pytest.raises(MemoryError, match="all pairs of 60 rows needs"):
        dense_joint(graph, 5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_in_ascending_order_have_the_same_joint_affinities(dtype):
    rng = np.random.default_rng(0)
    n, k = 60, 5
    columns = np.array([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)])
    weights = rng.random((n, k)).astype(dtype)
    starts = np.arange(n + 1) * k
    order = np.argsort(columns, axis=1)
    P = symmetrize_affinities(starts, columns.ravel(), weights.ravel())
    lists = np.take_along_axis(columns, order, 1), np.take_along_axis(weights, order, 1)
    Q = symmetrize_affinities(starts, *(array.ravel() for array in lists), ascending=True)
    assert np.array_equal(P.indptr, Q.indptr)
    assert np.array_equal(P.indices, Q.indices)
    assert P.weights.tobytes() == Q.weights.tobytes()
