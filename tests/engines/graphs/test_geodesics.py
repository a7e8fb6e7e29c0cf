"""Shortest paths against Floyd and Warshall, scipy, and graphs whose distances are known."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from hypothesis import given, settings
from hypothesis import strategies as st

from lowland._base.errors import DataError, MemoryLimitError, ParameterError, StoppedError
from lowland._base.monitor import Monitor
from lowland._engines.graphs import geodesics
from lowland._engines.graphs.geodesics import shortest_path_blocks, shortest_paths
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.neighbors.search import neighbor_graph
from support.oracles.basics import shortest_paths as oracle


def floyd_warshall(graph):
    """The three loops; what is stored is an edge, also a 0."""
    A = graph.tocoo()
    D = np.full(graph.shape, np.inf)
    np.minimum.at(D, (A.row, A.col), A.data)
    return oracle(D)


def roll(n, seed=0):
    rng = np.random.default_rng(seed)
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.c_[t * np.cos(t), 21 * rng.random(n), t * np.sin(t)]


@pytest.fixture(scope="module")
def roll_graph():
    return symmetrize(neighbor_graph(roll(900), 8))


@st.composite
def graphs(draw):
    """Directed graphs with loops, repeated and zero edges, and rows without any."""
    n = draw(st.integers(1, 14))
    edge = st.tuples(
        st.integers(0, n - 1),
        st.integers(0, n - 1),
        st.sampled_from([0.0, 0.1, 0.25, 1.0, 7.5, 1e3]),
    )
    edges = draw(st.lists(edge, max_size=40))
    i, j, w = (np.array(part) for part in zip(*edges, strict=True)) if edges else ([], [], [])
    starts = np.searchsorted(np.sort(i), np.arange(n + 1))
    order = np.argsort(i, kind="stable")
    i, j, w = (np.asarray(part)[order] for part in (i, j, w))
    return scipy.sparse.csr_matrix((w.astype(float), j.astype(int), starts), shape=(n, n))


@settings(deadline=None, max_examples=150)
@given(graphs())
def test_any_graph_gives_the_distances_of_floyd_and_warshall(graph):
    assert np.allclose(shortest_paths(graph), floyd_warshall(graph), rtol=1e-14, atol=0)


def test_the_order_of_rows_does_not_change_a_bit(roll_graph):
    order = np.random.default_rng(0).permutation(900)
    turned = roll_graph[order][:, order]
    found = shortest_paths(turned)
    assert np.array_equal(found, shortest_paths(roll_graph)[order][:, order])


def test_sources_may_be_some_of_the_rows_in_any_order_and_repeated(roll_graph):
    full = shortest_paths(roll_graph)
    for sources in ([3], [899, 0, 3, 3], np.random.default_rng(0).integers(0, 900, 200)):
        assert np.array_equal(shortest_paths(roll_graph, sources), full[sources])
    assert shortest_paths(roll_graph, []).shape == (0, 900)


@pytest.mark.parametrize("block_rows", [None, 1, 50, 10_000])
def test_blocks_together_are_all_rows_once(roll_graph, block_rows):
    sources = np.arange(0, 900, 7)
    found = np.full((sources.size, 900), np.nan)
    sizes = []
    for rows, block in shortest_path_blocks(roll_graph, sources, threads=2, block_rows=block_rows):
        assert np.isnan(found[rows]).all()
        found[rows] = block
        sizes.append(len(rows))
    assert np.array_equal(found, shortest_paths(roll_graph, sources))
    assert block_rows is None or max(sizes) <= block_rows


def test_rows_without_a_path_are_at_infinity_and_many_components_are_no_trouble():
    n = 3000
    pairs = np.arange(n) ^ 1
    graph = scipy.sparse.csr_matrix((1.0 + np.arange(n) // 2, (np.arange(n), pairs)), (n, n))
    D = shortest_paths(graph, threads=2, dtype=np.float32)
    assert np.isfinite(D).sum() == 2 * n
    assert np.array_equal(D[np.arange(n), pairs], 1 + np.arange(n) // 2)
    assert (D.diagonal() == 0).all()


def test_components_of_unlike_size_match_scipy():
    parts = [symmetrize(neighbor_graph(roll(m, seed=m), 5)) for m in (300, 6, 170, 40)]
    graph = scipy.sparse.csr_matrix(scipy.sparse.block_diag(parts))
    order = np.random.default_rng(0).permutation(516)
    graph = graph[order][:, order]
    assert np.array_equal(shortest_paths(graph), scipy.sparse.csgraph.dijkstra(graph))


def test_the_result_goes_into_the_array_given(roll_graph):
    out = np.empty((5, 900), np.float32)
    assert shortest_paths(roll_graph, range(5), dtype=np.float32, out=out) is out
    assert np.array_equal(out, shortest_paths(roll_graph, range(5), dtype=np.float32))
    for bad in (
        np.empty((5, 900)),
        np.empty((4, 900), np.float32),
        np.empty((900, 5), np.float32).T,
    ):
        with pytest.raises(ParameterError, match="out must be"):
            shortest_paths(roll_graph, range(5), dtype=np.float32, out=bad)


def test_the_graph_is_not_written_to(roll_graph):
    before = roll_graph.copy()
    shortest_paths(roll_graph, threads=2)
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(roll_graph, name), getattr(before, name))


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_lengths_that_are_none_are_refused(bad):
    graph = scipy.sparse.csr_matrix(([1.0, bad], ([0, 1], [1, 2])), shape=(3, 3))
    with pytest.raises(DataError, match="finite and not negative"):
        shortest_paths(graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sources": [0.5]}, "row numbers"),
        ({"sources": [[0]]}, "row numbers"),
        ({"sources": [-1]}, "from 0 to 899"),
        ({"sources": [900]}, "from 0 to 899"),
        ({"dtype": np.int64}, "float32 or float64"),
    ],
)
def test_arguments_that_make_no_sense_are_named(roll_graph, arguments, message):
    with pytest.raises(ParameterError, match=message):
        shortest_paths(roll_graph, **arguments)


def test_sums_that_would_overflow_are_refused_and_not_called_unreachable():
    graph = scipy.sparse.csr_matrix(([3e38, 3e38], ([0, 1], [1, 2])), shape=(3, 3))
    assert shortest_paths(graph)[0, 2] == 6e38
    with pytest.raises(DataError, match=r"do not fit into float32.*divide"):
        shortest_paths(graph, dtype=np.float32)


def test_a_matrix_that_does_not_fit_is_refused_and_blocks_are_not(roll_graph, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "3MB")
    with pytest.raises(MemoryLimitError, match=r"900 sources to 900 rows needs .*landmarks"):
        shortest_paths(roll_graph)
    rows = [rows for rows, _ in shortest_path_blocks(roll_graph, block_rows=32)]
    assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(900))


def test_progress_reaches_the_number_of_sources_and_cancel_stops(roll_graph, monkeypatch):
    monkeypatch.setattr(geodesics, "BLOCK", 900 * 64)
    monitor, seen = Monitor("test"), []
    for rows, _ in shortest_path_blocks(roll_graph, monitor=monitor):
        seen.append(len(rows))
        if len(seen) == 3:
            monitor.cancel()
            break
    with pytest.raises(StoppedError, match="geodesics"):
        shortest_paths(roll_graph, monitor=monitor)
    assert seen == [64, 64, 64]
