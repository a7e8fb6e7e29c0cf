"""Equal rows: found from rows, graphs and distances, and given one place."""

import time

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from lowland._engines.linalg import products
from lowland._engines.neighbors import duplicates
from lowland._engines.neighbors.duplicates import (
    at_common_place,
    equal_in_distances,
    equal_in_graph,
    equal_rows,
    expand,
)
from lowland._engines.neighbors.search import neighbor_graph
from lowland.errors import MemoryLimitError
from lowland.neighbors import knn_graph
from support.searches import in_order, others


def naive_distinct(X):
    """First row of each set in the order of appearance, and the set of every row."""
    sets, member_of = {}, []
    for row in X:
        member_of.append(sets.setdefault(tuple((row + 0.0).tolist()), len(sets)))
    first = [member_of.index(number) for number in range(len(sets))]
    return np.array(first), np.array(member_of)


@settings(deadline=None, max_examples=80, derandomize=True, database=None)
@given(
    n=st.integers(2, 60),
    d=st.integers(1, 4),
    levels=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_sets_of_equal_rows_are_found_in_the_order_of_their_first(n, d, levels, seed, dtype):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((levels, d))[rng.integers(0, levels, (n, d)), np.arange(d)]
    X = X.astype(dtype)
    X[rng.random((n, d)) < 0.2] = -0.0
    X[rng.random((n, d)) < 0.2] = 0.0
    found = equal_rows(X, 2, only_if_many=True)
    first, member_of = naive_distinct(X)
    assert found is not None
    assert np.array_equal(found.first, first)
    assert np.array_equal(found.group, member_of)


def test_few_copies_among_many_rows_are_not_worth_it():
    X = np.random.default_rng(0).standard_normal((500, 3))
    assert equal_rows(X, 1, only_if_many=True) is None
    X[:9] = X[0]  # fewer than one in fifty, but more than a search could tell apart
    found = equal_rows(X, 1, only_if_many=True)
    assert np.array_equal(found.first, np.append(0, np.arange(9, 500)))
    assert not found.group[:9].any()


def test_rows_that_differ_in_the_last_bit_are_not_equal():
    X = np.full((60, 5), 0.1)
    X[::2, 3] = np.nextafter(0.1, 1)
    found = equal_rows(
        X, 1, only_if_many=True
    )  # their marks may coincide; then sets may stay undiscovered
    if found is not None:
        assert np.array_equal(X[found.first][found.group], X)
    graph = neighbor_graph(X, 31)
    ids, distances = in_order(others(cdist(X, X)), 31)
    assert np.array_equal(graph.indices, ids)
    np.testing.assert_allclose(graph.distances, distances, rtol=1e-15)


def test_rows_with_equal_marks_are_not_taken_for_equal(monkeypatch):
    monkeypatch.setattr(products, "times", lambda X, *rest: np.zeros((len(X), 1)))
    X = np.random.default_rng(0).integers(0, 2, (40, 2)).astype(float)
    found = equal_rows(X, 1, only_if_many=True)
    if found is not None:
        assert np.array_equal(X[found.first][found.group], X)


@settings(deadline=None, max_examples=60, derandomize=True, database=None)
@given(n=st.integers(2, 40), levels=st.integers(1, 9), seed=st.integers(0, 10**6), data=st.data())
def test_neighbors_of_distinct_rows_expand_to_those_of_all_rows(n, levels, seed, data):
    k = data.draw(st.integers(1, n - 1))
    X = np.random.default_rng(seed).integers(0, levels, (n, 1)).astype(float)  # ties galore
    distinct = equal_rows(X, 1, only_if_many=True)
    few = X[distinct.first]
    ids, distances = in_order(others(np.abs(few - few.T)), min(k, len(few) - 1))
    found_ids, found_distances = expand(distinct, ids, distances, k)
    expected_ids, expected = in_order(others(np.abs(X - X.T)), k)
    assert np.array_equal(found_ids, expected_ids)
    assert np.array_equal(found_distances, expected)


def test_neighbors_expand_by_blocks_as_at_once(monkeypatch):
    X = np.random.default_rng(0).integers(0, 5, (300, 2)).astype(float)
    at_once = neighbor_graph(X, 20)
    monkeypatch.setattr(duplicates, "ENTRIES", 100)
    by_blocks = neighbor_graph(X, 20)
    assert np.array_equal(at_once.indices, by_blocks.indices)
    assert np.array_equal(at_once.distances, by_blocks.distances)


@pytest.mark.slow
def test_copies_do_not_make_the_search_slow(irregular):
    """A fourth of the rows are copies; without them the search costs at least as much."""

    def cpu_seconds(X):
        times = []
        for _ in range(3):
            start = time.process_time()
            neighbor_graph(X, 60)
            times.append(time.process_time() - start)
        return min(times)

    X = irregular(8000, 18)
    copied = X.copy()
    copied[6000:] = X[:2000]
    assert cpu_seconds(copied) < 2 * cpu_seconds(X)


# --- graphs, distances and places ---------------------------------------------------------------


def rows_with_copies(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    X[[7, 20, 31]] = X[2]
    X[39] = X[38]
    return X


def test_the_same_groups_are_found_from_rows_graphs_and_distances():
    X = rows_with_copies()
    graph = neighbor_graph(X, 5)
    for found in (
        equal_rows(X, 1),
        equal_in_graph(graph),
        equal_in_graph(graph.to_csr()),
        equal_in_distances(cdist(X, X)),
    ):
        first, group = naive_distinct(X)
        assert np.array_equal(found.first, first)
        assert np.array_equal(found.group, group)


def test_different_rows_have_no_groups():
    X = np.random.default_rng(0).standard_normal((30, 2))
    assert equal_rows(X, 1) is None
    assert equal_in_graph(neighbor_graph(X, 3)) is None
    assert equal_in_distances(cdist(X, X)) is None


def test_a_group_larger_than_the_number_of_neighbors_is_found_whole():
    X = np.repeat(np.arange(3.0)[:, None], [9, 1, 5], axis=0)
    found = equal_in_graph(neighbor_graph(X, 2))
    assert np.array_equal(found.first, [0, 9, 10])
    assert np.array_equal(found.group, np.repeat([0, 1, 2], [9, 1, 5]))


def test_a_distance_of_0_alone_does_not_make_rows_of_a_matrix_equal():
    D = np.array([[0.0, 0, 1], [0, 0, 2], [1, 2, 0]])
    assert equal_in_distances(D) is None
    D[1, 2] = D[2, 1] = np.nan
    assert equal_in_distances(D) is None
    D[0, 2] = D[2, 0] = np.nan
    assert np.array_equal(equal_in_distances(D).group, [0, 0, 1])


def test_missing_neighbors_are_not_equal_rows():
    D = scipy.sparse.csr_array(([0.0, 0.0, 2.0, 2.0], ([0, 1, 0, 2], [1, 0, 2, 0])), shape=(3, 3))
    found = equal_in_graph(D)
    assert np.array_equal(found.group, [0, 0, 1])


def test_equal_rows_get_the_mean_of_their_places():
    X, rng = rows_with_copies(), np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        Y = rng.standard_normal((40, 2)).astype(dtype)
        before = Y.copy()
        shared = at_common_place(Y, equal_rows(X, 1))
        assert shared.dtype == dtype
        np.testing.assert_allclose(shared[2], Y[[2, 7, 20, 31]].mean(axis=0), rtol=1e-6)
        assert (shared[[7, 20, 31]] == shared[2]).all()
        assert np.array_equal(shared[0], Y[0])
        assert np.array_equal(Y, before)
    assert at_common_place(Y, None) is Y


def test_many_neighbors_of_equal_rows_are_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "50MB")
    with pytest.raises(MemoryLimitError, match="2999 neighbors of 3000 rows"):
        knn_graph(np.ones((3000, 2)), 2999)
