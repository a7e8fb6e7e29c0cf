"""The neighbor graph across parts, against all pairs and against the graph in memory."""

from __future__ import annotations

import numpy as np
import pytest

from lowland._base.rows.arrays import array_rows
from lowland._base.rows.engines import using
from lowland.chunks import graph as module
from lowland.chunks.graph import NeighborLists, PartLists, knn_graph
from lowland.errors import DataError, MemoryLimitError, ParameterError
from lowland.neighbors import knn_graph as graph_in_memory
from support.cases import each
from support.row_engines import Backward


@pytest.fixture(scope="module")
def X():
    """Clusters of very different sizes and widths, in no order."""
    rng = np.random.default_rng(1)
    sizes = [1500, 400, 80, 15, 4, 1]
    centers = rng.standard_normal((len(sizes), 6)) * 4
    parts = [
        center + rng.standard_normal((size, 6)) * rng.uniform(0.3, 2)
        for center, size in zip(centers, sizes, strict=True)
    ]
    return rng.permutation(np.concatenate(parts)).astype(np.float32)


def all_pairs(X, k):
    """Distances of the k nearest other rows."""
    D = np.zeros((len(X), len(X)))
    for column in X.T.astype(np.float64):
        D += (column[:, None] - column) ** 2
    D = np.sqrt(D)
    np.fill_diagonal(D, np.inf)
    return np.sort(D, axis=1)[:, :k]


def brute_recall(graph, X, k):
    farthest = all_pairs(X, k)[:, -1:].astype(np.float32)
    return (graph.distances <= farthest).mean(axis=1)


def assert_true_distances(graph, X):
    """Each distance is that of the pair it stands for, and lists are in order."""
    there = graph.indices >= 0
    rows = np.nonzero(there)[0]
    gaps = X[rows].astype(np.float64) - X[graph.indices[there]]
    np.testing.assert_allclose(graph.distances[there], np.sqrt((gaps**2).sum(axis=1)), rtol=1e-6)
    ties = (np.diff(graph.distances, axis=1) == 0) & there[:, 1:]
    assert (np.diff(graph.indices, axis=1)[ties] > 0).all()


@each("dtype", [np.float32, np.float64])
def test_one_part_is_the_graph_in_memory(X, dtype):
    found = knn_graph(array_rows(X.astype(dtype), task_rows=300), 7, n_parts=1)
    exact = graph_in_memory(X, 7)
    assert np.array_equal(found.indices, exact.indices)
    assert np.array_equal(found.distances, exact.distances)
    assert found.recall_ == 1


@each("n_parts", [2, 10, 40])
@each("copies", [1, 2])
def test_the_recall_told_is_that_of_all_pairs(X, monkeypatch, n_parts, copies):
    monkeypatch.setattr(module, "RECALL_ROWS", 10_000)  # all rows
    rows = array_rows(X, task_rows=300)
    graph = knn_graph(rows, 5, n_parts=n_parts, copies=copies, target_recall=0)
    recalls = brute_recall(graph, X, 5)
    assert graph.recall_ == pytest.approx(recalls.mean(), abs=1e-12)
    assert graph.recall_sample_ == len(X)
    assert_true_distances(graph, X)


def test_copies_are_raised_until_the_recall_is_reached(X):
    rows = array_rows(X, task_rows=300)
    few = knn_graph(rows, 5, n_parts=40, copies=1, target_recall=0)
    enough = knn_graph(rows, 5, n_parts=40, copies=1)
    assert few.recall_ < 0.9
    assert enough.recall_ >= 0.985
    assert brute_recall(enough, X, 5).mean() >= 0.98


def test_a_join_that_misses_neighbors_is_repeated_with_more_copies(X, monkeypatch):
    monkeypatch.setattr(module, "_enough_copies", lambda rows, parts, *others: parts.copies)
    assert knn_graph(array_rows(X), 5, n_parts=40, copies=1).recall_ >= 0.985


def test_bytes_depend_on_rows_and_seed_only(X):
    def found(**options):
        options = {"seed": 3, **options}
        graph = knn_graph(array_rows(X, task_rows=300), 5, n_parts=12, **options)
        return graph.indices.tobytes() + graph.distances.tobytes()

    one = found(n_jobs=1)
    assert found(n_jobs=2) == one
    with using(Backward()):
        assert found() == one


def sizes_of_parts(monkeypatch):
    """A list that gets the number of rows of each part that is searched."""
    sizes = []
    join = module.PartJoin.__call__

    def noted(self, part, X, numbers):
        sizes.append(len(X))
        return join(self, part, X, numbers)

    monkeypatch.setattr(module.PartJoin, "__call__", noted)
    return sizes


@each("n_copies", [30, 1200])
def test_copies_of_rows_are_neighbors_at_distance_0(X, monkeypatch, n_copies):
    monkeypatch.setattr(module, "_part_rows", lambda p: 300)
    table = np.concatenate([X[:800], np.tile(X[10:13], (n_copies, 1))])
    sizes = sizes_of_parts(monkeypatch)
    graph = knn_graph(array_rows(table, task_rows=500), 5)
    copied = (table[:, None] == X[None, 10:13]).all(axis=2).any(axis=1)
    assert copied.sum() == 3 * n_copies + 3
    assert (graph.distances[copied] == 0).all()
    assert brute_recall(graph, table, 5).mean() >= 0.97
    assert_true_distances(graph, table)
    assert max(sizes) <= 1200  # estimated from a sample: twice the most


def test_a_table_of_equal_rows(monkeypatch):
    monkeypatch.setattr(module, "_part_rows", lambda p: 100)
    graph = knn_graph(array_rows(np.full((1500, 3), 2.5)), 4)
    assert not graph.distances.any()
    assert graph.recall_ == 1


def test_rows_of_parts_with_too_few_rows_still_get_all_neighbors(X):
    few = X[:120]
    graph = knn_graph(array_rows(few, task_rows=50), 11, n_parts=10, copies=1, target_recall=0)
    assert (graph.indices >= 0).all()
    one = knn_graph(array_rows(few[:9], task_rows=4), 8)
    assert np.array_equal(np.sort(one.indices), [[j for j in range(9) if j != i] for i in range(9)])


def test_parts_that_would_all_hold_all_rows_are_one_part():
    X = np.random.default_rng(0).standard_normal((600, 12))
    found = knn_graph(array_rows(X, task_rows=100), 5, n_parts=3, copies=2, target_recall=1.0)
    assert np.array_equal(found.indices, graph_in_memory(X, 5).indices)


def test_parts_that_are_too_large_are_divided(X, monkeypatch):
    monkeypatch.setattr(module, "_part_rows", lambda p: 200)
    sizes = sizes_of_parts(monkeypatch)
    graph = knn_graph(array_rows(X), 5, n_parts=2, copies=2, target_recall=0)
    assert len(sizes) > 8
    assert max(sizes) <= 400
    assert graph.recall_ > 0.9


@each("size", [1e-30, 1e-12, 1e25, 1e70])
def test_rows_of_extreme_size_have_the_same_neighbors(X, size):
    small = X[:300].astype(np.float64)
    graph = knn_graph(array_rows(small * size, task_rows=100), 4, n_parts=4)
    plain = knn_graph(array_rows(small, task_rows=100), 4, n_parts=4)
    assert np.array_equal(graph.indices, plain.indices)
    np.testing.assert_allclose(graph.distances, plain.distances.astype(float) * size, rtol=1e-6)


def test_merged_lists_are_the_nearest_of_all_lists():
    rng = np.random.default_rng(0)
    n, k = 50, 6
    D = rng.integers(0, 9, (n, n)).astype(np.float32)  # many ties
    lists, seen = NeighborLists(n, k), np.zeros((n, n), bool)
    for _ in range(5):
        rows = np.sort(rng.choice(n, 30, replace=False))
        ids = np.array([rng.choice(np.setdiff1d(np.arange(n), i), 4, replace=False) for i in rows])
        seen[rows[:, None], ids] = True
        ids = np.array(
            [row[np.lexsort((row, D[i, row]))] for i, row in zip(rows, ids, strict=True)]
        )
        lists.add(PartLists(rows, ids.astype(np.int32), D[rows[:, None], ids]))
    for i in range(n):
        there = np.flatnonzero(seen[i])
        wanted = there[np.lexsort((there, D[i, there]))][:k]
        assert np.array_equal(lists.ids[i], [*wanted, *[-1] * (k - len(wanted))])
        assert np.array_equal(lists.distances[i, : len(wanted)], D[i, wanted])
        assert np.isinf(lists.distances[i, len(wanted) :]).all()


@each(
    ("options", "message"),
    [
        ({"k": 0}, "n_neighbors=0"),
        ({"k": 2000}, "n_neighbors=2000"),
        ({"k": 2**63}, "n_neighbors="),
        ({"metric": "cosine"}, "metric='cosine' is not possible across parts"),
        ({"n_parts": 0}, "n_parts=0"),
        ({"n_parts": 10**6}, "n_parts=1000000"),
        ({"copies": 9}, "copies=9 is not allowed; expected an integer from 1 to 8"),
        ({"target_recall": 1.5}, "target_recall=1.5"),
        ({"seed": -1}, "seed=-1"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_nonsense_is_refused(X, options, message):
    options = {"k": 5, **options}
    with pytest.raises(ParameterError, match=message):
        knn_graph(array_rows(X), options.pop("k"), **options)


def test_data_in_memory_is_sent_to_the_other_function(X):
    with pytest.raises(ParameterError, match=r"lowland\.neighbors\.knn_graph"):
        knn_graph(X, 5)


def test_bad_values_are_named_with_their_rows(X):
    bad = X.copy()
    bad[777, 4] = np.inf
    with pytest.raises(DataError, match=r"X, rows 600 to 899: .*infinity.*column 4"):
        knn_graph(array_rows(bad, task_rows=300), 5)


def test_a_graph_beyond_memory_is_refused_before_it_is_made(X, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100kB")
    with pytest.raises(MemoryLimitError, match="the graph of 5 neighbors of 2000 rows"):
        knn_graph(array_rows(X), 5)
