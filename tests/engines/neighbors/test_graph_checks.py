"""A NeighborGraph that somebody made is checked once, when it is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lowland
from lowland import metrics
from lowland._base import registry
from lowland.errors import DataError, DataTypeError, LowlandError
from lowland.neighbors import NeighborGraph, knn_graph, knn_query
from support.cases import each
from support.methods import small

X = np.random.default_rng(5).standard_normal((40, 4))
GRAPHS = [cls for cls in registry.all_methods() if cls.accepts_graph]


def changed(**parts: Any) -> NeighborGraph:
    graph = knn_graph(X, 6)
    given = {"indices": graph.indices, "distances": graph.distances, "n_points": 40, **parts}
    return NeighborGraph(**given)


def with_entry(name: str, value: float, place: tuple[int, int] = (7, 3)) -> NeighborGraph:
    graph = knn_graph(X, 6)
    array = getattr(graph, name).astype(np.int64 if name == "indices" else np.float64)
    array[place] = value
    return changed(**{name: array})


@each("index", [40, 10**6, -2, -7, 2**40, -(2**63), 2**63 - 1])
def test_an_index_outside_the_rows_is_refused_by_its_place(index):
    with pytest.raises(DataError, match=rf"indices\[7, 3\] = {index}"):
        with_entry("indices", index)


@each("distance", [np.nan, -1.0, -1e-300, np.inf, -np.inf])
def test_a_distance_that_is_none_is_refused_by_its_place(distance):
    with pytest.raises(DataError, match=r"distances\[7, 3\]"):
        with_entry("distances", distance)


def test_a_missing_neighbor_is_at_infinity_and_only_it():
    with pytest.raises(DataError, match="infinity exactly where the index is -1"):
        with_entry("indices", -1)
    ids, d = knn_graph(X, 6).indices.copy(), knn_graph(X, 6).distances.copy()
    ids[7, 4:], d[7, 4:] = -1, np.inf
    graph = NeighborGraph(ids, d, 40)
    assert graph.to_csr().nnz == 40 * 6 - 2


def test_neighbors_are_listed_nearest_first():
    graph = knn_graph(X, 6)
    with pytest.raises(DataError, match=r"distances\[0, 1\] = .* nearest first"):
        NeighborGraph(graph.indices[:, ::-1], graph.distances[:, ::-1], 40)


def test_a_neighbor_is_listed_once():
    graph = knn_graph(X, 6)
    twice = int(graph.indices[7, 0])
    with pytest.raises(DataError, match=f"row 7 has the neighbor {twice} twice"):
        with_entry("indices", twice)


def test_the_row_itself_is_no_neighbor_in_a_fit_but_may_be_in_a_query():
    query = knn_query(X, X, 6)
    assert (query.indices[:, 0] == np.arange(40)).all()
    for method in GRAPHS:
        params = {"n_neighbors": 6} if method.__name__ == "DiffusionMaps" else small(method)
        with pytest.raises(DataError, match="row 0 of the graph is its own neighbor"):
            method(**params).fit(query)


@each(
    "parts",
    [
        {"indices": np.zeros((40, 6))},
        {"indices": np.zeros((40, 6), bool)},
        {"indices": np.zeros((40, 6), np.uint64)},
        {"indices": np.full((40, 6), "a")},
        {"distances": np.zeros((40, 6), complex)},
        {"distances": np.full((40, 6), None)},
    ],
)
def test_arrays_of_other_types_are_refused(parts):
    with pytest.raises(DataTypeError, match=next(iter(parts))):
        changed(**parts)


@each(
    "parts",
    [
        {"indices": np.zeros((40, 5), int)},
        {"distances": np.zeros((39, 6))},
        {"indices": np.zeros(40, int), "distances": np.zeros(40)},
        {"indices": [[0], [0, 1]]},
        {"n_points": -1},
        {"n_points": 2.5},
        {"n_points": True},
        {"n_points": 2**60},
        {"n_points": 3},
        {"metric": "no metric"},
        {"metric": None},
        {"recall_": 1.5},
        {"recall_": np.nan},
        {"recall_sample_": -1},
    ],
)
def test_parts_that_do_not_fit_are_refused(parts):
    with pytest.raises(DataError, match="NeighborGraph"):
        changed(**parts)


def test_a_graph_may_have_no_rows():
    assert NeighborGraph(np.empty((0, 2), int), np.empty((0, 2)), 0).n_points == 0


def test_lists_and_narrow_integers_become_the_types_of_a_search():
    graph = NeighborGraph([[1, 2], [0, 2], [0, 1]], [[1, 2], [1, 3], [2, 3]], 3)
    assert graph.indices.dtype == np.int64
    assert graph.distances.dtype == np.float64
    narrow = NeighborGraph(graph.indices.astype(np.uint8), graph.distances.astype("f4"), 3)
    assert narrow.indices.dtype == np.int64
    assert narrow.distances.dtype == np.float32


@each("method", GRAPHS, ids=[cls.__name__ for cls in GRAPHS])
@each("missing", ["some", "all of one row", "all"])
def test_missing_neighbors_give_a_finite_map_or_an_error(method, missing):
    graph = knn_graph(X, 12)
    ids, d = graph.indices.copy(), graph.distances.copy()
    rows = {"some": slice(3, 9), "all of one row": slice(7, 8), "all": slice(None)}[missing]
    since = 9 if missing == "some" else 0
    ids[rows, since:], d[rows, since:] = -1, np.inf
    gaps = NeighborGraph(ids, d, 40)
    params = {"n_neighbors": 12} if method.__name__ == "DiffusionMaps" else small(method)
    params |= {"perplexity": 3.0, "max_iter": 20} if "perplexity" in params else {}
    model = method(random_state=0, **params)
    if missing != "all":
        assert np.isfinite(model.fit(gaps).embedding_).all()
        return
    with pytest.raises(LowlandError):
        model.fit(gaps)


@each("measure", [metrics.continuity, metrics.neighbor_recall, metrics.lcmc, metrics.quality])
def test_measures_refuse_neighbors_that_are_missing_or_the_row_itself(measure):
    graph, Y = knn_graph(X, 12), lowland.PCA(2).fit_transform(X)
    ids, d = graph.indices.copy(), graph.distances.copy()
    ids[3, 5:], d[3, 5:] = -1, np.inf
    gaps = NeighborGraph(ids, d, 40)
    measure(gaps, Y, n_neighbors=5)
    with pytest.raises(DataError, match="row 3 of the graph has fewer than the 8 neighbors"):
        measure(gaps, Y, n_neighbors=8)
    with pytest.raises(DataError, match="row 0 of the graph is its own neighbor"):
        measure(knn_query(X, X, 12), Y, n_neighbors=5)
    with pytest.raises(DataError, match="row 0 of the graph is its own neighbor"):
        measure(X, Y, n_neighbors=5, graph=knn_query(X, X, 12))


def test_hubness_refuses_missing_neighbors():
    ids, d = knn_graph(X, 12).indices.copy(), knn_graph(X, 12).distances.copy()
    ids[3, 5:], d[3, 5:] = -1, np.inf
    with pytest.raises(DataError, match="row 3 of the graph has fewer"):
        metrics.hubness(NeighborGraph(ids, d, 40), n_neighbors=8)
