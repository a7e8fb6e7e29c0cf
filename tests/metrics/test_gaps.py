"""Gaps between islands, and inside of one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist

from lowland.errors import LowlandError
from lowland.metrics import gap_test, inner_gaps
from lowland.metrics._cloud import linked_pairs, neighboring_pairs
from lowland.metrics.gaps import best_split, crossed, gaussian_cut, median_cuts, verdict_of
from lowland.neighbors import knn_graph
from support.cases import each
from support.planted_truths import groups, two_gaussians


def nearest(X, k):
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1, kind="stable")[:, :k]


def naive_severed(X, side, k):
    """Edges that cross, of all points that are not exceptions, by loops."""
    ids = nearest(X, k)
    across = [[side[j] != side[i] for j in ids[i]] for i in range(len(X))]
    lost = [np.mean(row) >= 0.8 for row in across]
    for which in (False, True):
        members = [i for i in range(len(X)) if side[i] == which]
        if sum(lost[i] for i in members) > 0.1 * len(members):
            for i in members:
                lost[i] = False
    count = sum(
        across[i][place]
        for i in range(len(X))
        for place, j in enumerate(ids[i])
        if not lost[i] and not lost[j]
    )
    return count / (2 * k * min(sum(side), len(side) - sum(side)))


@each("distance", [0.0, 2.0, 4.0])
@each("swaps", [0, 4])
def test_the_severed_share_is_its_definition(distance, swaps, irregular):
    X, islands = two_gaussians(150, 4, distance, np.random.default_rng(1))
    X = X + 0.3 * irregular(150, 4)
    rng = np.random.default_rng(2)
    for code in (1, 2):  # some points on the wrong side
        islands[rng.choice(np.flatnonzero(islands == code), swaps, replace=False)] = 3 - code
    found = gap_test(X, islands)[0]
    # the rows of the first island come first, as in the test
    order = np.argsort(islands, kind="stable")
    expected = naive_severed(X[order], (islands[order] == 2).tolist(), 15)
    assert found.severed == pytest.approx(expected, rel=1e-12)
    assert found.cut == pytest.approx(found.severed / found.reference)
    assert found.verdict == verdict_of(found.cut)


def test_points_on_a_line_have_a_closed_form():
    # Each of k / 2 points on either side has 1, 2, ..., k / 2 neighbors beyond the cut:
    # k (k + 2) / 4 edges of k n.
    n, k = 400, 14
    X = np.arange(n, dtype=float)[:, None]
    found = gap_test(X, np.repeat([1, 2], n // 2), n_neighbors=k)[0]
    assert found.severed == pytest.approx((k + 2) / (4 * n))
    # The halves are such lines, too, and of half the size; but a Gaussian is cut as the line is.
    assert median_cuts(X[: n // 2], k, 1) == [pytest.approx((k + 2) / (2 * n))]
    assert found.reference < (k + 2) / (2 * n)
    assert found.verdict == "not in the data"


@each(("n_first", "scales"), [(100, [1.0]), (100, [3.0, 1.0, 0.5]), (60, [1.0, 1.0, 1.0, 1.0])])
def test_the_gaussian_reference_is_a_cut_gaussian(n_first, scales):
    """Mean of many draws, beside draws made here: cut across the first axis at the same share."""
    n, d, k = 200, len(scales), 10
    base = np.random.default_rng(0).normal(size=(n, d))
    base = (base - base.mean(axis=0)) / base.std(axis=0, ddof=1)
    base = np.linalg.svd(base, full_matrices=False)[0] * np.sqrt(n - 1)  # uncorrelated exactly
    base = base * scales
    side = np.zeros(n, bool)
    side[np.argsort(base[:, 0])[n_first:]] = True
    ours, here = [], []
    for seed in range(60):
        ours.append(gaussian_cut(base, side, k, np.random.default_rng(seed), 1))
        Z = np.random.default_rng([1, seed]).normal(size=(n, d)) * scales
        cut = np.zeros(n, bool)
        cut[np.argsort(Z[:, 0])[n_first:]] = True
        here.append(crossed(nearest(Z, k), cut) / (2 * k * min(n_first, n - n_first)))
    # The direction of the cut is that of S_W^-1 (m_B - m_A), which is the first axis up to what
    # 200 points deviate; a turned cut of an isotropic Gaussian is the same, of a long one shorter.
    error = np.hypot(np.std(ours), np.std(here)) / np.sqrt(60)
    assert abs(np.mean(ours) - np.mean(here)) < 4 * error + 0.05 * np.mean(here)


def test_median_cuts_are_cuts_of_principal_axes(irregular):
    X = irregular(120, 5)
    centered = X - X.mean(axis=0)
    expected = []
    for axis in np.linalg.svd(centered)[2][:3]:
        score = centered @ axis
        expected.append(naive_severed(X, (score > np.median(score)).tolist(), 10))
    np.testing.assert_allclose(median_cuts(X, 10, 1), expected, rtol=1e-12)


def test_verdicts_have_limits():
    found = [verdict_of(cut) for cut in (0, 0.29, 0.3, 0.5, 0.51, 3, float("nan"))]
    unsure = "unclear"
    assert found == ["real", "real", unsure, unsure, *["not in the data"] * 2, unsure]


def test_a_strip_in_three_is_bridged_by_its_middle():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 2)) * [6, 2]
    islands = 1 + (X[:, 0] // 2).astype(int)
    found = {(gap.one, gap.other): gap for gap in gap_test(X, islands)}
    assert found[1, 2].verdict == found[2, 3].verdict == "not in the data"
    assert (found[1, 3].verdict, found[1, 3].through) == ("bridged", (2,))
    assert found[1, 3].cut < 0.3
    away = X.copy()
    away[islands == 3] += [0, 30]
    found = {(gap.one, gap.other): gap for gap in gap_test(away, islands)}
    assert [found[pair].verdict for pair in ((1, 2), (1, 3), (2, 3))] == [
        "not in the data",
        "real",
        "real",
    ]


def test_few_misplaced_points_do_not_deny_a_gap_and_many_do():
    rng = np.random.default_rng(1)
    X, group = groups(400, 5, 2, 10.0, rng)
    for share, verdict in ((0.0, "real"), (0.06, "real"), (0.3, "not in the data")):
        islands = group + 1
        moved = rng.permutation(400)[: round(share * 400)]
        islands[moved] = 3 - islands[moved]
        assert gap_test(X, islands)[0].verdict == verdict


# --- inside of an island ------------------------------------------------------------------------


def test_two_groups_in_one_island_are_told_apart_and_one_is_not():
    rng = np.random.default_rng(2)
    X, group = groups(500, 5, 3, 8.0, rng)
    found = inner_gaps(X, np.where(group == 2, 2, 1))
    assert found[1].verdict == "real"
    assert found[2].verdict != "real"
    assert (found[1].one, found[1].other) == (1, 1)
    side = best_split(X[group < 2], 15, 1, rng)
    true = group[group < 2] == 1
    assert max((side == true).mean(), (side != true).mean()) > 0.99


def test_single_clouds_are_not_called_two():
    wrong = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        d = [2, 5, 10][seed % 3]
        clouds = rng.normal(size=(150, d)), rng.uniform(size=(150, d))
        wrong += sum(inner_gaps(X, np.ones(150, int))[1].verdict == "real" for X in clouds)
    # At a rate of 5 %, 5 of 24 or more would come once in 140 times.
    assert wrong <= 4


def test_the_best_split_is_measured_against_the_best_splits_of_its_sides():
    binding = 0
    for seed in range(6):
        X = np.exp(np.random.default_rng(seed).normal(size=(200, 4)))
        found = inner_gaps(X, np.ones(200, int))[1]
        side = best_split(X, 15, 1, np.random.default_rng(0))
        again = []
        for part in (X[~side], X[side]):
            if len(part) >= 20:
                halves = best_split(part, 15, 1, np.random.default_rng(0))
                k = min(15, min(halves.sum(), (~halves).sum()) // 2)
                again.append(naive_severed(part, halves.tolist(), k))
        assert found.reference <= max(again) * (1 + 1e-9)
        binding += found.reference > max(again) * (1 - 1e-9)
    assert binding  # at least once it is the least of all references


def test_numbers_without_rows_are_no_islands(irregular):
    X, islands = irregular(80, 3), np.repeat([1, 4], 40)
    assert [(gap.one, gap.other) for gap in gap_test(X, islands)] == [(1, 4)]
    assert gap_test(X, islands, pairs=[(1, 2)])[0].verdict == "unclear"
    assert set(inner_gaps(X, islands)) == {1, 4}


def test_small_and_equal_islands_are_left_out():
    X = np.random.default_rng(0).normal(size=(140, 3))
    islands = np.repeat([1, 2, 3], [70, 35, 35])
    X[:70] = X[0]
    assert inner_gaps(X, islands) == {}
    gap = gap_test(X, islands, pairs=[(1, 2)])[0]
    assert gap.verdict == "unclear"
    assert np.isnan(gap.cut)


# --- which pairs --------------------------------------------------------------------------------


def test_neighboring_islands_are_a_gabriel_graph():
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [10, 0], [20, 0], [10, 10], [-3, 25]], float)
    codes = np.repeat(np.arange(1, 6), 30)
    Y = centers[codes - 1] + 0.1 * rng.normal(size=(150, 2))
    expected = []
    d2 = [
        [cdist(Y[codes == a], Y[codes == b]).min() ** 2 for b in range(1, 6)] for a in range(1, 6)
    ]
    for a in range(5):
        for b in range(a + 1, 5):
            others = [c for c in range(5) if c not in (a, b)]
            if all(d2[a][b] <= d2[a][c] + d2[b][c] for c in others):
                expected.append((a + 1, b + 1))
    assert neighboring_pairs(Y, codes) == expected
    assert (1, 2) in expected
    assert (1, 3) not in expected  # the second lies between


def test_islands_that_the_data_link_are_tested_though_they_are_far_apart():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(400, 2)) * [4, 1]
    islands = 1 + (X[:, 0] // 1).astype(int)
    place = np.array(
        [[0, 0], [30, 0], [10, 0], [20, 0]], float
    )  # the second lies beyond the others
    Y = place[islands - 1] + 0.1 * rng.normal(size=(400, 2))
    graph = knn_graph(X, 15)
    assert linked_pairs(graph.indices, islands) == [(1, 2), (2, 3), (3, 4)]
    tested = {(gap.one, gap.other) for gap in gap_test(X, islands, Y, graph=graph)}
    assert (1, 2) in tested
    assert (1, 2) not in {(gap.one, gap.other) for gap in gap_test(X, islands, Y)}
    assert len(gap_test(X, islands)) == 6
    assert [(g.one, g.other) for g in gap_test(X, islands, pairs=[(3, 1), (1, 3)])] == [(1, 3)]


# --- input --------------------------------------------------------------------------------------


def test_rounded_values_do_not_make_gaps():
    X, side = two_gaussians(500, 3, 0.0, np.random.default_rng(0))
    found = gap_test(np.round(2 * X), side)[0]
    assert found.verdict == "not in the data"
    found = gap_test(np.repeat(np.round(2 * X[:200]), 3, axis=0), np.repeat(side[:200], 3))[0]
    assert found.verdict == "not in the data"
    assert inner_gaps(np.round(2 * X), np.ones(500, int))[1].verdict != "real"
    cells = np.array([(a, b) for a in range(12) for b in range(12)], float)  # a grid, as of a SOM
    assert gap_test(cells, 1 + (cells[:, 0] > 5))[0].verdict == "not in the data"


def test_other_forms_of_the_data_give_the_same_verdicts():
    rng = np.random.default_rng(4)
    X, group = groups(300, 4, 3, 8.0, rng)
    X = X + 40  # all in one direction from zero, so that cosines are small but tell groups apart
    half = X[:, 0] > np.median(X[group == 2, 0])
    islands = np.where((group == 2) & half, 4, group + 1)
    first = [(gap.one, gap.other, gap.verdict) for gap in gap_test(X, islands)]
    assert {verdict for *_, verdict in first} == {"real", "not in the data"}
    wide = np.hstack([X, 1e-9 * rng.normal(size=(300, 120))])
    for table, options in (
        (scipy.sparse.csr_array(X), {}),
        (X.astype(np.float32), {}),
        (wide, {}),
        (cdist(X, X), {"metric": "precomputed"}),
        (X, {"metric": "manhattan"}),
        (X, {"metric": "sqeuclidean"}),
        (X, {"metric": lambda a, b: float(np.sqrt(((a - b) ** 2).sum()))}),
    ):
        found = [(gap.one, gap.other, gap.verdict) for gap in gap_test(table, islands, **options)]
        assert found == first, options
    centered = X - X.mean(axis=0)
    angles = gap_test(centered, islands, metric="cosine")
    assert any(gap.verdict == "real" for gap in angles)


def test_order_numbers_turns_and_units_do_not_matter():
    rng = np.random.default_rng(5)
    X, group = groups(360, 5, 4, 4.5, rng)  # equal sizes; some gaps are unclear
    islands = group + 1
    first = {(gap.one, gap.other): gap for gap in gap_test(X, islands)}
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    order = rng.permutation(360)
    number = np.array([0, 3, 1, 4, 2])
    for table, codes, names in (
        (X[order], islands[order], np.arange(5)),
        (X, number[islands], number),
        (1e-3 * X, islands, np.arange(5)),
    ):
        found = {(gap.one, gap.other): gap for gap in gap_test(table, codes)}
        for (one, other), gap in first.items():
            again = found[tuple(sorted((names[one], names[other])))]
            assert again.severed == pytest.approx(gap.severed)
            assert again.cut == pytest.approx(gap.cut)
            assert again.verdict == gap.verdict
    # the Gaussian is drawn along other axes if the data are turned: edges are the same
    for gap in gap_test(X @ turn, islands):
        assert gap.severed == pytest.approx(first[gap.one, gap.other].severed)


def test_threads_seeds_and_inputs():
    X, group = groups(2500, 5, 2, 5.0, np.random.default_rng(6))  # more rows than are taken
    islands = group + 1
    X.flags.writeable = islands.flags.writeable = False
    assert gap_test(X, islands, n_jobs=1) == gap_test(X, islands, n_jobs=2)
    assert inner_gaps(X, islands, n_jobs=1) == inner_gaps(X, islands, n_jobs=2)
    assert gap_test(X, islands) == gap_test(X, islands, random_state=0)
    assert gap_test(X, islands) != gap_test(X, islands, random_state=1)


def test_bad_input_is_named(irregular):
    X, islands = irregular(60, 3), np.repeat([1, 2], 30)
    graph = knn_graph(X, 10)
    for call, name in (
        (lambda: gap_test(graph, islands), "X is a neighbor graph"),
        (lambda: inner_gaps(graph, islands), "X is a neighbor graph"),
        (lambda: gap_test(X, islands[:9]), "islands has shape"),
        (lambda: gap_test(X, islands * 0.5), "islands has shape"),
        (lambda: inner_gaps(X, islands - 2), "islands holds -1"),
        (lambda: gap_test(X, islands * 10**6), "islands holds 2000000"),
        (lambda: gap_test(X, [[1], [1, 2]] * 30), "islands cannot be read as an array"),
        (lambda: gap_test(X, islands, pairs=[(1, 3)]), "pairs: "),
        (lambda: gap_test(X, islands, pairs=[(1, 1)]), "pairs: "),
        (lambda: gap_test(X, islands, pairs=[(1.5, 2)]), "pairs: "),
        (lambda: gap_test(X, islands, pairs=3), "pairs=3"),
        (lambda: gap_test(X, islands, X[:5, :2]), "Y has 5 rows, but X has 60"),
        (lambda: gap_test(X, islands, np.full((60, 2), np.nan)), "Y contains NaN"),
        (lambda: gap_test(X, islands, X[:, :2], graph=3), "graph=int"),
        (lambda: gap_test(X, islands, X[:, :2], graph=knn_graph(X[1:], 5)), "graph has 59 rows"),
        (lambda: gap_test(np.full((60, 3), np.inf), islands), "X contains infinity"),
        (lambda: gap_test(X, islands, metric="cosin"), "did you mean 'cosine'"),
        (lambda: inner_gaps(X, islands, random_state=-1), "random_state=-1"),
        *((lambda k=k: gap_test(X, islands, n_neighbors=k), "n_neighbors=") for k in BAD_NUMBERS),
        *((lambda k=k: inner_gaps(X, islands, n_neighbors=k), "n_neighbors=") for k in BAD_NUMBERS),
    ):
        with pytest.raises(LowlandError, match=name):
            call()


BAD_NUMBERS = [0, -1, 2.5, "5", None, True, [5]]


def test_wide_spacings_along_a_curve_are_no_gaps():
    """The widest of n spacings on a line is ln n times the mean one, but hardly twice the next."""
    found = []
    for seed in range(20):
        t = np.sort(np.random.default_rng(seed).uniform(0, 3, 300))
        arc = np.column_stack([np.cos(t), np.sin(t), 0.3 * t])
        widest = int(np.argmax(np.diff(t[30:-30]))) + 31
        found.append(gap_test(arc, np.where(np.arange(300) < widest, 1, 2))[0].verdict)
    # exp(-ln n) of all curves have a spacing twice as wide as the next
    assert found.count("real") <= 1
    apart = np.concatenate([t[:150] / 3, 1.2 + t[:150] / 3])  # sixty spacings
    arcs = np.column_stack([np.cos(apart), np.sin(apart)])
    assert gap_test(arcs, np.repeat([1, 2], 150))[0].verdict == "real"
