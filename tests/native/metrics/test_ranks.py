"""count_ranks, sort_rows, distance_rows and distance_sums against obvious numpy."""

import numpy as np
import pytest
import scipy.stats

from lowland import _native
from lowland._engines.distances.filter_space import PackedPoints, panel_width
from support.cases import each
from support.kernels import each_isa, each_kind


def naive_squares(X):
    """As the kernels sum: eight partial sums in double, joined as a tree."""
    X = X.astype(np.float64)
    n, d = X.shape
    sums = np.zeros((8, n, n))
    for k in range(d):
        sums[k % 8] += np.subtract.outer(X[:, k], X[:, k]) ** 2
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))


def naive_ranks(squares):
    squares = squares.copy()
    np.fill_diagonal(squares, -1)
    return np.argsort(np.argsort(squares, axis=1, kind="stable"), axis=1)


def kernel_ranks(X, rows, partners, coordinates, threads=1, isa="auto"):
    """Ranks of the lists of partners, with scores in the type of the given coordinates."""
    points = PackedPoints.of(coordinates, threads)
    starts = np.concatenate([[0], np.cumsum([len(p) for p in partners])]).astype(np.int64)
    asked = np.concatenate([*partners, []]).astype(np.int32)
    ranks = np.full(len(asked), -7, np.int32)
    _native.count_ranks(
        points.panels,
        points.halves,
        X,
        np.asarray(rows, np.int32),
        starts,
        asked,
        2 * points.rounding,
        ranks,
        threads,
        isa,
    )
    return np.split(ranks, starts[1:-1])


TABLES = {
    "random": lambda rng: rng.standard_normal((300, 13)),
    "one column": lambda rng: rng.standard_normal((130, 1)),
    "wide": lambda rng: rng.standard_normal((90, 500)),
    "grid": lambda rng: rng.integers(0, 3, (250, 3)).astype(float),
    "copies": lambda rng: np.repeat(rng.standard_normal((9, 4)), 20, axis=0),
    "all equal": lambda rng: np.ones((60, 2)),
    "far from the origin": lambda rng: rng.standard_normal((200, 5)) + 1e4,
    "nearly equal": lambda rng: 1 + 1e-9 * rng.standard_normal((150, 6)),
    "two rows": lambda rng: rng.standard_normal((2, 3)),
}


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param](np.random.default_rng(0))


@each("score_type", [np.float32, np.float64], ids=["scores32", "scores64"])
@each_kind
def test_ranks_are_those_of_exact_distances(table, score_type, dtype, isa):
    X = np.ascontiguousarray(table.astype(dtype))
    expected = naive_ranks(naive_squares(X))
    rng = np.random.default_rng(1)
    rows = rng.permutation(len(X))
    partners = [rng.permutation(np.delete(np.arange(len(X)), row))[:12] for row in rows]
    found = kernel_ranks(X, rows, partners, X.astype(score_type), isa=isa)
    for row, asked, ranks in zip(rows, partners, found, strict=True):
        assert np.array_equal(ranks, expected[row, asked])


def test_lists_of_any_length_and_rows_more_than_once(isa):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, 4))
    expected = naive_ranks(naive_squares(X))
    rows = [5, 5, 0, 119, 7]
    partners = [[1, 2], [], np.arange(100, 119), [0], [3, 3, 3]]
    found = kernel_ranks(X, rows, partners, X.astype(np.float32), isa=isa)
    for row, asked, ranks in zip(rows, partners, found, strict=True):
        assert np.array_equal(ranks, expected[row, np.asarray(asked, int)])


@each_isa
def test_threads_do_not_change_a_rank(isa, same_for_threads):
    X = np.random.default_rng(0).standard_normal((700, 9))
    partners = [np.arange(row + 1, row + 9) % 700 for row in range(700)]
    given = X, np.arange(700), partners, X.astype(np.float32)
    same_for_threads(lambda threads: kernel_ranks(*given, threads, isa), (2, 5))


# --- sort_rows ---------------------------------------------------------------------------------


def kernel_sort(values, inverse, threads=1, isa="auto"):
    out = np.full(values.shape, -7, np.int32)
    _native.sort_rows(np.ascontiguousarray(values, np.float64), inverse, out, threads, isa)
    return out


VALUES = {
    "random": lambda rng: rng.random((5, 1000)),
    "tied": lambda rng: rng.integers(0, 4, (5, 300)).astype(float),
    "signs and zeros": lambda rng: rng.integers(-3, 4, (4, 200)) * rng.choice([0.0, -0.0, 0.5]),
    "equal to nine digits": lambda rng: 1 + 1e-9 * rng.random((3, 2000)),
    "equal to nine digits, falling": lambda rng: 1 + 1e-9 * np.arange(900.0, 0, -1)[None],
    "sizes of all kinds": lambda rng: np.exp(rng.uniform(-700, 700, (4, 500))),
    "infinite": lambda rng: np.array([[np.inf, 1.0, -np.inf, np.inf, 0.0]]),
    "one column": lambda rng: rng.random((6, 1)),
    "no column": lambda rng: np.empty((6, 0)),
    "no row": lambda rng: np.empty((0, 6)),
}


@each("kind", VALUES)
@each_isa
def test_rows_are_sorted_and_ties_keep_their_order(kind, isa):
    values = VALUES[kind](np.random.default_rng(0))
    order = np.argsort(values, axis=1, kind="stable")
    assert np.array_equal(kernel_sort(values, False, isa=isa), order)
    ranks = np.argsort(order, axis=1)
    for threads in (1, 4):
        assert np.array_equal(kernel_sort(values, True, threads, isa), ranks)


@each("kind", VALUES)
@each_isa
def test_equal_entries_share_their_mean_rank(kind, isa):
    values = VALUES[kind](np.random.default_rng(0))
    out = np.full(values.shape, np.nan)
    for threads in (1, 4):
        _native.mid_ranks(values.astype(np.float64), out, threads, isa)
        expected = scipy.stats.rankdata(values, axis=1) - 1 if values.size else values
        assert np.array_equal(out, expected)


# --- distances ---------------------------------------------------------------------------------


def packed(X):
    width = panel_width(X.dtype)
    panels = np.empty((-(-len(X) // width), X.shape[1], width), X.dtype)
    _native.pack_points(np.ascontiguousarray(X), panels, 1)
    return panels


@each("root", [False, True])
@each_kind
def test_distances_are_summed_in_the_order_that_decides(table, root, dtype, isa):
    X = np.ascontiguousarray(table.astype(dtype))
    out = np.full((len(X), len(X)), np.nan)
    _native.distance_rows(packed(X), X, root, out, 2, isa)
    squares = naive_squares(X)
    expected = np.sqrt(squares) if root else squares
    # a fused multiply-add may round once where numpy rounds twice
    assert (np.abs(out - expected) <= np.maximum(1e-14 * expected, 1e-12)).all()
    assert not np.diag(out).any()
    assert np.array_equal(out, out.T)


@each_kind
def test_distances_have_the_bits_that_rank_neighbors(dtype, isa):
    """What a neighbor search calls a distance is the same number here."""
    from lowland.neighbors import knn_graph

    X = np.random.default_rng(0).standard_normal((200, 21)).astype(dtype)
    graph = knn_graph(X.astype(np.float64), 10)
    D = np.empty((200, 200))
    _native.distance_rows(packed(X), X, True, D, 1, "auto")
    assert np.array_equal(np.take_along_axis(D, graph.indices, axis=1), graph.distances)


def test_sums_of_two_rows_of_distances(isa):
    rng = np.random.default_rng(0)
    a, b = rng.random((30, 37)), rng.random((30, 37))
    a[rng.random(a.shape) < 0.2] = 0.0
    own = rng.integers(-1, 37, 30).astype(np.int32)
    out = np.empty((30, _native.DISTANCE_SUMS))
    for threads in (1, 3):
        _native.distance_sums(a, b, own, 1.7, out, threads, isa)
        for row in range(30):
            keep = np.arange(37) != own[row]
            x, y = a[row, keep], b[row, keep]
            gap2 = (x - 1.7 * y) ** 2
            relative = (gap2[x > 0] / x[x > 0]).sum()
            expected = [x.sum(), y.sum(), x @ x, y @ y, x @ y, gap2.sum(), relative]
            assert out[row] == pytest.approx(expected, rel=1e-13)


def test_sums_of_columns_are_those_of_rows_turned_around(isa):
    rng = np.random.default_rng(0)
    a, b = rng.random((37, 130)), rng.random((37, 130))
    a[rng.random(a.shape) < 0.2] = 0.0
    for first in (0, 5, 130):
        out = np.ones((130 - first, _native.DISTANCE_SUMS))
        expected = np.empty((130, _native.DISTANCE_SUMS))
        nobody = np.full(130, -1, np.int32)
        turned = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
        _native.distance_sums(*turned, nobody, 0.6, expected, 1, isa)
        _native.add_column_sums(a, b, first, 0.6, out, 3, isa)
        assert out == pytest.approx(1 + expected[first:], rel=1e-13)


# --- what would lead a kernel astray is refused -------------------------------------------------


def good_counts():
    X = np.arange(8.0).reshape(4, 2)
    points = PackedPoints.of(X, 1)
    return {
        "panels": points.panels,
        "halves": points.halves,
        "x": X,
        "rows": np.array([0], np.int32),
        "starts": np.array([0, 2], np.int64),
        "partners": np.array([1, 2], np.int32),
        "rounding": 1e-12,
        "ranks": np.zeros(2, np.int32),
        "threads": 1,
    }


CHANGES = [
    ("x", np.zeros((40, 2)), "must hold every row"),
    ("halves", np.zeros(3), "fill the panels"),
    ("rows", np.array([4], np.int32), "no such rows"),
    ("rows", np.array([-1], np.int32), "no such rows"),
    ("partners", np.array([1, 4], np.int32), "no such partners"),
    ("starts", np.array([0, 3], np.int64), "do not fit together"),
    ("starts", np.array([1, 2], np.int64), "do not fit together"),
    ("ranks", np.zeros(1, np.int32), "do not fit together"),
    ("rounding", -1.0, "small number"),
    ("threads", 0, "at least 1"),
]


def test_counts_refuse_what_does_not_fit(refuses):
    refuses(_native.count_ranks, good_counts(), CHANGES)


def test_the_others_refuse_what_does_not_fit():
    X, narrow, D = np.zeros((5, 3)), np.zeros((5, 2)), np.zeros((5, 5))
    own, out = np.zeros(5, np.int32), np.zeros((5, _native.DISTANCE_SUMS))
    for kernel, arguments, message in [
        ("sort_rows", (X, True, np.zeros((5, 2), np.int32)), "wrong shape"),
        ("mid_ranks", (X, np.zeros((4, 3))), "wrong shape"),
        ("distance_rows", (packed(X), X, True, np.zeros((5, 40))), "a column for every packed row"),
        ("distance_rows", (packed(X), narrow, True, D), "differ in dimension"),
        ("distance_rows", (packed(X), X, True, D[:4]), "a row for every row"),
        ("distance_sums", (X, narrow, own, 1.0, out), "differ in shape"),
        ("add_column_sums", (X, narrow, 0, 1.0, out), "differ in shape"),
        ("add_column_sums", (X, X, 1, 1.0, out), r"out must be \(n - first"),
        ("distance_sums", (X, X, own + 3, 1.0, out), "no such column"),
        ("distance_sums", (X, X, own, 1.0, np.zeros((5, 3))), "DISTANCE_SUMS"),
    ]:
        with pytest.raises(ValueError, match=message):
            getattr(_native, kernel)(*arguments, 1)


# --- queries against blocks of a table ----------------------------------------------------------


@each("name", [name for name in TABLES if name != "two rows"])
@each_kind
def test_counts_of_blocks_add_up_to_ranks(name, dtype, isa):
    rng = np.random.default_rng(1)
    X = TABLES[name](rng).astype(dtype)
    n, k = len(X), 4
    numbers = np.sort(rng.choice(n, 30, replace=False))
    partners = (numbers[:, None] + 1 + rng.integers(0, n - 1, (30, k))) % n
    heights = np.empty(30 * k)
    _native.pair_squares(np.repeat(X[numbers], k, axis=0), X[partners.ravel()], heights, 2, isa)
    squares = naive_squares(X)
    expected = squares[np.repeat(numbers, k), partners.ravel()]
    np.testing.assert_allclose(heights, expected, rtol=1e-14)  # fused sums round differently
    found = np.zeros(30 * k, np.int64)
    queries = PackedPoints.of(X[numbers], 1)
    for start in range(0, n, 41):
        block = np.ascontiguousarray(X[start : start + 41])
        points = PackedPoints.of(block, 1)
        inside = (numbers >= start) & (numbers < start + len(block))
        _native.count_nearer(
            *(points.panels, points.halves, block),
            *(queries.panels, queries.halves, X[numbers]),
            np.where(inside, numbers - start, -1).astype(np.int32),
            np.arange(0, 30 * k + 1, k, dtype=np.int64),
            heights,
            np.clip(partners.ravel() - start, 0, len(block)).astype(np.int32),
            2 * points.rounding,
            found,
            2,
            isa,
        )
    ranks = naive_ranks(squares)[numbers[:, None], partners]
    assert np.array_equal(found.reshape(30, k) + 1, ranks)


def test_counts_of_blocks_refuse_what_does_not_fit(refuses):
    X = np.arange(8.0).reshape(4, 2)
    points = PackedPoints.of(X, 1)
    good = {
        "panels": points.panels,
        "halves": points.halves,
        "x": X,
        "query_panels": points.panels,
        "query_halves": points.halves,
        "queries": X,
        "own": np.arange(4, dtype=np.int32),
        "starts": np.array([0, 1, 1, 1, 2], np.int64),
        "squares": np.array([1.0, 4.0]),
        "ties": np.zeros(2, np.int32),
        "rounding": 1e-12,
        "counts": np.zeros(2, np.int64),
        "threads": 1,
    }
    changes = [
        ("x", np.zeros((40, 2)), "must hold every row"),
        ("queries", np.zeros((40, 2)), "must hold every query"),
        ("queries", np.zeros((4, 3)), "differ in dimension"),
        ("query_halves", np.zeros(3), "fill the panels"),
        ("own", np.array([0, 1, 2, 4], np.int32), "no such row"),
        ("starts", np.array([0, 1, 1, 1, 3], np.int64), "do not fit together"),
        ("starts", np.array([0, 2, 1, 1, 2], np.int64), "must not fall"),
        ("squares", np.array([np.nan, 1.0]), "negative or no number"),
        ("counts", np.zeros(1, np.int64), "do not fit together"),
        ("rounding", 0.5, "small number"),
    ]
    refuses(_native.count_nearer, good, changes)
    with pytest.raises(ValueError, match="pair_squares"):
        _native.pair_squares(X, X[:2], np.zeros(4), 1)
