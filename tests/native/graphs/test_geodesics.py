"""shortest_paths against relaxation until nothing changes, bit for bit."""

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._native import PATH_LANES
from support.cases import each
from support.kernels import each_kind


def naive_paths(W):
    """d = min(d, d + w) over all edges in the type of W until nothing changes; inf: not an edge."""
    D = np.full_like(W, np.inf)
    np.fill_diagonal(D, 0)
    while True:
        nearer = np.minimum(D, np.array([(row[:, None] + W).min(axis=0) for row in D]))
        if np.array_equal(nearer, D):
            return D
        D = nearer


def kernel_paths(W, sources=None, threads=1, isa="auto", place=None, rows=None):
    """The kernel on a dense matrix of lengths, where inf is not an edge."""
    n = len(W)
    i, j = np.nonzero(np.isfinite(W))
    starts = np.searchsorted(i, np.arange(n + 1)).astype(np.int64)
    sources = np.arange(n) if sources is None else np.asarray(sources)
    rows = np.arange(len(sources)) if rows is None else rows
    place = np.arange(n) if place is None else place
    out = np.full((len(sources), n), np.nan, W.dtype)
    _native.shortest_paths(
        starts,
        j.astype(np.int32),
        W[i, j],
        sources.astype(np.int32),
        rows.astype(np.int64),
        place.astype(np.int32),
        out,
        threads,
        isa,
    )
    return out


def random_lengths(n, density, dtype, seed, directed=True):
    """Lengths of very unlike size, some of them 0."""
    rng = np.random.default_rng(seed)
    W = rng.random((n, n)) ** 6
    W[rng.random((n, n)) < 0.1] = 0
    W[rng.random((n, n)) > density] = np.inf
    return (W if directed else np.minimum(W, W.T)).astype(dtype)


def trap(n, dtype):
    """Where sweeps make no headway: a road whose order the first source cannot know.

    Source 0 has short edges to all vertices of the road in random order, source 1 only one to its
    beginning; the road leads one way and is longer than the short edges.
    """
    W = np.full((n + 2, n + 2), np.inf)
    road = 2 + np.random.default_rng(0).permutation(n)
    W[0, road] = np.random.default_rng(1).random(n)
    W[1, road[0]] = 0.5
    W[road[:-1], road[1:]] = 10.0
    return W.astype(dtype), road


@each("directed", [True, False])
@each(("n", "density"), [(1, 1), (2, 1), (7, 0.4), (40, 0.05), (70, 0.1), (70, 0.9)])
@each_kind
def test_distances_are_the_least_rounded_sums_bit_for_bit(n, density, directed, dtype, isa):
    for seed in range(3):
        W = random_lengths(n, density, dtype, seed, directed)
        assert np.array_equal(kernel_paths(W, isa=isa), naive_paths(W))


@each_kind
def test_threads_do_not_change_a_bit(dtype, isa, same_for_threads):
    W = random_lengths(600, 0.01, dtype, 0, directed=False)
    same_for_threads(lambda threads: kernel_paths(W, threads=threads, isa=isa), (2, 5))


@each_kind
def test_a_source_gets_the_same_bits_alone_and_in_company(dtype, isa):
    W = random_lengths(300, 0.02, dtype, 1)
    together = kernel_paths(W, isa=isa)
    for sources in ([5], [299, 0], np.arange(250, 100, -1), [7] * (PATH_LANES + 3)):
        assert np.array_equal(kernel_paths(W, sources, isa=isa), together[sources])


@each("n_sources", [1, PATH_LANES - 1, PATH_LANES, PATH_LANES + 1, 4 * PATH_LANES + 5])
@each_kind
def test_any_number_of_sources_fills_its_rows_and_no_others(n_sources, dtype, isa):
    W = random_lengths(200, 0.05, dtype, 2)
    out = kernel_paths(W, np.arange(n_sources), isa=isa)
    assert np.array_equal(out, kernel_paths(W, isa=isa)[:n_sources])


@each_kind
def test_rows_and_places_say_where_results_go(dtype, isa):
    W = random_lengths(150, 0.05, dtype, 3)
    rng = np.random.default_rng(0)
    place, rows, sources = rng.permutation(150), rng.permutation(90), rng.permutation(150)[:90]
    out = kernel_paths(W, sources, isa=isa, place=place, rows=rows)
    assert np.array_equal(out[rows], kernel_paths(W, isa=isa)[sources][:, place])


@each_kind
def test_a_graph_that_sweeps_do_not_suit_is_solved_all_the_same(dtype, isa):
    W, road = trap(700, dtype)
    D = kernel_paths(W, [0, 1, road[0], road[350]], threads=2, isa=isa)
    steps = np.arange(700) * dtype(10)
    assert np.array_equal(D[2][road], steps)
    assert np.array_equal(D[3][road[350:]], steps[:350])
    assert np.isinf(D[3][road[:350]]).all()
    assert np.array_equal(D[1][road], steps + dtype(0.5))
    assert np.array_equal(D[0][road], W[0][road])


@each_kind
def test_rounding_never_makes_a_path_shorter_than_its_edges(dtype, isa):
    # 1 + tiny rounds to 1: many walks have the same rounded sum, and none may go on forever
    n, tiny = 50, np.finfo(dtype).eps / 8
    W = np.full((n, n), np.inf, dtype)
    W[np.arange(n - 1), np.arange(1, n)] = W[np.arange(1, n), np.arange(n - 1)] = tiny
    W[0, 1] = W[1, 0] = 1
    assert np.array_equal(kernel_paths(W, isa=isa), naive_paths(W))


@each_kind
def test_no_sources_and_no_edges_are_no_special_cases(dtype, isa):
    empty = np.full((3, 3), np.inf, dtype)
    assert kernel_paths(empty, [], isa=isa).shape == (0, 3)
    assert np.array_equal(np.isfinite(kernel_paths(empty, isa=isa)), np.eye(3, dtype=bool))


GOOD = {
    "starts": np.array([0, 1, 2], np.int64),
    "columns": np.array([1, 0], np.int32),
    "weights": np.array([1.0, 2.0]),
    "sources": np.array([0], np.int32),
    "rows": np.array([0], np.int64),
    "place": np.array([0, 1], np.int32),
    "out": np.zeros((1, 2)),
    "threads": 1,
}


CHANGES = [
    ("starts", np.array([0, 2], np.int64), "starts must be"),
    ("starts", np.array([0, 2, 1], np.int64), "must not fall"),
    ("starts", np.array([0, 1, 3], np.int64), "do not fit together"),
    ("starts", np.array([-1, 1, 2], np.int64), "do not fit together"),
    ("columns", np.array([1, 2], np.int32), "column is not below n"),
    ("columns", np.array([1, -1], np.int32), "column is not below n"),
    ("weights", np.array([1.0, -1e-9]), "negative or NaN"),
    ("weights", np.array([1.0, np.nan]), "negative or NaN"),
    ("sources", np.array([2], np.int32), "source is not below n"),
    ("rows", np.array([1], np.int64), "too few rows"),
    ("rows", np.array([0, 0], np.int64), "as many rows as sources"),
    ("place", np.array([0, 2], np.int32), "place is not below n"),
    ("place", np.array([0], np.int32), "place must be"),
    ("threads", 0, "threads must be at least 1"),
]


def test_arrays_that_would_lead_the_kernel_astray_are_refused(refuses):
    refuses(_native.shortest_paths, GOOD, CHANGES)


def test_the_oracle_agrees_with_scipy():
    W = random_lengths(60, 0.1, np.float64, 0)
    i, j = np.nonzero(np.isfinite(W))
    graph = scipy.sparse.csr_matrix((W[i, j], (i, j)), shape=W.shape)
    assert np.array_equal(naive_paths(W), scipy.sparse.csgraph.dijkstra(graph))
