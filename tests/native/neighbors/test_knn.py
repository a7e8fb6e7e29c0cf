"""The neighbor kernels against all pairs in numpy: candidates, proof, repair, refusals."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_kind

WIDTH = {np.float32: _native.PANEL_WIDTH_FLOAT32, np.float64: _native.PANEL_WIDTH_FLOAT64}
ENTRY = {
    np.float32: np.dtype([("score", np.float32), ("id", np.int32)]),
    np.float64: np.dtype(
        {"names": ["score", "id"], "formats": ["f8", "i4"], "offsets": [0, 8], "itemsize": 16}
    ),
}


class Packed:
    """Points in panels; empty places at the end have infinite halves and the number -1."""

    def __init__(self, F, threads=1, isa="auto"):
        n, q = F.shape
        self.F, self.kind, self.n = F, F.dtype.type, n
        width = WIDTH[self.kind]
        n_panels = -(-n // width)
        self.panels = np.full((n_panels, q, width), np.nan, F.dtype)
        _native.pack_points(F, self.panels, threads, isa)
        self.halves = np.full(n_panels * width, np.inf, F.dtype)
        self.halves[:n] = (F.astype(float) ** 2).sum(axis=1) / 2
        self.ids = np.full(n_panels * width, -1, np.int32)
        self.ids[:n] = np.arange(n)
        # As in the engine: q products and sums, halves and coordinates are rounded once each.
        self.rounding = (q + 5) * float(np.finfo(F.dtype).eps) / 2

    def look(self, lead):
        """The arguments for a look after ``lead`` coordinates."""
        if lead is None:
            return {}
        tails = np.zeros(len(self.ids), self.kind)
        tails[: self.n] = np.sqrt((self.F[:, lead:].astype(float) ** 2).sum(axis=1))
        return {"tails": tails * self.kind(1 + 4 * np.finfo(self.kind).eps), "lead": lead}


class Kept:
    """Buffers of candidates for so many places."""

    def __init__(self, n_places, keep, kind):
        self.keep, self.kind = keep, kind
        self.entries = np.zeros((n_places, 2 * keep * ENTRY[kind].itemsize), np.uint8)
        self.counts = np.zeros(n_places, np.int32)
        self.thresholds = np.full(n_places, np.finfo(kind).min, kind)

    def best(self, row):
        """Numbers and scores of the kept candidates of a row, best first, cut to ``keep``."""
        own = self.entries[row].view(ENTRY[self.kind])[: self.counts[row]]
        order = np.lexsort((own["id"], -own["score"]))[: self.keep]
        return own["id"][order], own["score"][order]

    def bytes(self):
        rows = range(len(self.counts))
        return [(i.tobytes(), s.tobytes()) for i, s in (self.best(row) for row in rows)]


def boxes(points, panels_per_block, n_box):
    """Low and high corners and the largest half square of the blocks."""
    size = panels_per_block * WIDTH[points.kind]
    blocks = [slice(start, start + size) for start in range(0, points.n, size)]
    low = np.stack([points.F[block, :n_box].min(axis=0) for block in blocks])
    high = np.stack([points.F[block, :n_box].max(axis=0) for block in blocks])
    return low, high, np.stack([points.halves[: points.n][block].max() for block in blocks])


def join(
    points,
    keep,
    panels_per_block=2,
    n_box=2,
    corners=None,
    step=None,
    threads=1,
    isa="auto",
    lead=None,
):
    """All rounds of the tournament, ``step`` at a time."""
    low, high, top = boxes(points, panels_per_block, min(n_box, points.F.shape[1]))
    low, high = (low, high) if corners is None else corners(low, high)
    kept = Kept(len(points.ids), keep, points.kind)
    n_rounds = 1 << (len(low) - 1).bit_length()
    step = step or n_rounds
    for first in range(0, n_rounds, step):
        _native.join_rounds(
            points.panels,
            points.halves,
            low,
            high,
            top,
            panels_per_block,
            points.rounding,
            kept.entries,
            kept.counts,
            kept.thresholds,
            keep,
            first,
            min(first + step, n_rounds),
            threads,
            isa,
            **points.look(lead),
        )
    return kept


def all_scores(F, G):
    """-|x - y|^2 / 2 in float64."""
    gaps = F.astype(float)[:, None, :] - G.astype(float)[None, :, :]
    return -(gaps**2).sum(axis=2) / 2


def lattice(n, q, dtype, seed=0, levels=5):
    """Small integers: every score is exact, and most are tied."""
    return np.random.default_rng(seed).integers(0, levels, (n, q)).astype(dtype)


def clusters(n, q, dtype, seed=0):
    """Groups far apart, one after the other: most blocks need not meet."""
    rng = np.random.default_rng(seed)
    centers = np.repeat(100 * rng.integers(-9, 9, (8, q)), -(-n // 8), axis=0)[:n]
    return (centers + rng.integers(-3, 4, (n, q))).astype(dtype)


def strips(n, q, dtype, seed=0):
    """Points of a sheet, strip by strip: blocks have all kinds of distances to their neighbors."""
    F = np.random.default_rng(seed).gamma(0.7, size=(n, q))
    return F[np.lexsort((F[:, 1], np.argsort(np.argsort(F[:, 0])) // 90))].astype(dtype)


def decaying(n, q, dtype, seed=0):
    """Most of the spread in the first coordinates, and outliers: tiles end early, or must not."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, q)) * 0.7 ** np.arange(q)
    F[:: n // 7] *= 1e3
    F[n // 2 : n // 2 + 40] = F[n // 2]
    return F.astype(dtype)


def expected_best(scores, keep):
    order = np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores))
    return order[:, :keep], np.take_along_axis(scores, order[:, :keep], axis=1)


# --- packing ------------------------------------------------------------------------------------


@each("n", [1, 11, 12, 13, 24, 25, 100])
@each_kind
def test_panels_hold_the_points_coordinate_by_coordinate(n, dtype, isa):
    F = np.random.default_rng(0).standard_normal((n, 5)).astype(dtype)
    for threads in (1, 3):
        panels = Packed(F, threads, isa).panels
        rows = panels.transpose(0, 2, 1).reshape(-1, 5)
        assert np.array_equal(rows[:n], F)
        assert not rows[n:].any()


# --- join_rounds --------------------------------------------------------------------------------


@each("n", [2, 12, 25, 48, 97, 250])
@each("q", [1, 3, 20])
@each("keep", [1, 7])
@each_kind
def test_the_join_keeps_the_best_of_all_pairs_and_ties_by_number(n, q, keep, dtype, isa):
    points = Packed(lattice(n, q, dtype))
    scores = all_scores(points.F, points.F)
    np.fill_diagonal(scores, -np.inf)
    ids, best = expected_best(scores, min(keep, n - 1))
    kept = join(points, keep, isa=isa)
    for row in range(n):
        found, values = kept.best(row)
        assert np.array_equal(found, ids[row])
        assert np.array_equal(values, best[row])


@each_kind
def test_scores_are_within_the_rounding_that_the_proof_assumes(dtype, isa):
    rng = np.random.default_rng(0)
    F = (rng.standard_normal((200, 30)) * 10 ** rng.uniform(-2, 3, (200, 1))).astype(dtype)
    points = Packed(F)
    true = all_scores(F, F)
    halves = points.halves[:200].astype(float)
    bound = points.rounding * 2 * (halves[:, None] + halves)
    kept = join(points, 150, isa=isa)
    for row in range(200):
        ids, values = kept.best(row)
        assert (np.abs(values - true[row, ids]) <= bound[row, ids]).all()
        assert len(set(ids)) == 150
        assert row not in ids


@each("panels_per_block", [1, 2, 3, 100])
@each_kind
def test_neither_blocks_nor_threads_nor_steps_change_what_is_kept(panels_per_block, dtype, isa):
    F = np.random.default_rng(0).gamma(1.0, size=(333, 6)).astype(dtype)
    points = Packed(F)
    one = join(points, 9, panels_per_block, isa=isa).bytes()
    for threads in (2, 5):
        assert join(points, 9, panels_per_block, threads=threads, isa=isa).bytes() == one
    assert join(points, 9, panels_per_block, step=1, isa=isa).bytes() == one
    # Another partition scores the same pairs, some of them with the two points exchanged.
    assert join(points, 9, 4, isa=isa).bytes() == one


@each(("make", "q"), [(lattice, 4), (clusters, 4), (strips, 2), (strips, 4)])
@each("keep", [6, 20])
@each_kind
def test_matches_that_boxes_rule_out_would_have_changed_nothing(make, q, keep, dtype, isa):
    points = Packed(make(700, q, dtype))
    endless = join(
        points, keep, 1, corners=lambda low, high: (low * 0 - np.inf, high * 0 + np.inf), isa=isa
    )
    assert join(points, keep, 1, isa=isa).bytes() == endless.bytes()
    assert join(points, keep, 1, n_box=4, isa=isa).bytes() == endless.bytes()


@each("gap", [0.5, 1.5, 2 - 2**-10])
@each_kind
def test_boxes_a_little_nearer_than_the_worst_candidate_still_meet(gap, dtype, isa):
    # Two columns of points 2 apart, one block each: the nearest point is across the gap.
    width = WIDTH[dtype]
    F = np.zeros((2 * width, 2), dtype)
    F[width:, 0] = gap
    F[:, 1] = 2 * (np.arange(2 * width) % width)
    kept = join(Packed(F), 1, 1, n_box=1, isa=isa)
    nearest = [kept.best(row)[0][0] for row in range(2 * width)]
    assert np.array_equal(nearest, (np.arange(2 * width) + width) % (2 * width))


@each_kind
def test_boxes_do_rule_out_matches(dtype, isa):
    # Boxes that lie, far apart: after round 0 nobody meets, and neighbors are lost.
    size = WIDTH[dtype]
    points = Packed(lattice(8 * size, 3, dtype))

    def apart(low, high):
        at = 1e6 * np.arange(len(low), dtype=dtype)[:, None] + 0 * low
        return at, at

    kept = join(points, 4, 1, n_box=3, corners=apart, isa=isa)
    for row in range(8 * size):
        assert (kept.best(row)[0] // size == row // size).all()


@each_kind
def test_empty_places_are_nobodys_neighbor_and_have_none(dtype, isa):
    points = Packed(np.zeros((WIDTH[dtype] * 2 + 1, 3), dtype))
    kept = join(points, 5, 1, isa=isa)
    assert not kept.counts[points.n :].any()
    for row in range(points.n):
        assert (kept.best(row)[0] < points.n).all()
        assert len(kept.best(row)[0]) == 5


@each_kind
def test_many_candidates_are_thinned_without_losing_the_best(dtype, isa):
    """Buffers large enough for a threshold guessed from a sample, scores in an unkind order."""
    x = np.sort(np.random.default_rng(0).gamma(0.5, size=900))[::-1]
    points = Packed(np.column_stack([x, np.zeros(900)]).astype(dtype))
    scores = all_scores(points.F, points.F)
    np.fill_diagonal(scores, -np.inf)
    kept = join(points, 60, panels_per_block=1, isa=isa)
    order = np.sort(-scores, axis=1)[:, 59]
    for row in range(900):
        mine = np.sort(-kept.best(row)[1].astype(float))
        assert len(mine) == 60
        slack = 8 * points.rounding * (points.halves[row] + order[row])
        assert mine[-1] <= order[row] + slack


# --- query_groups -------------------------------------------------------------------------------


def query(
    sought, points, groups, ranges, query_ids, keep, threads=1, isa="auto", step=None, lead=None
):
    """``ranges`` is a list, for every group, of lists of (first, last) panels."""
    kept = Kept(len(sought.ids), keep, points.kind)
    starts = np.cumsum([0] + [len(own) for own in ranges])
    flat = np.array([pair for own in ranges for pair in own], np.int64).reshape(-1, 2)
    n_groups = len(groups) - 1
    look = points.look(lead)
    if look:
        look |= {"query_tails": sought.look(lead)["tails"], "rounding": points.rounding}
    for first in range(0, n_groups, step or n_groups):
        _native.query_groups(
            sought.panels,
            sought.halves,
            points.panels,
            points.halves,
            np.array(groups, np.int64),
            starts.astype(np.int64),
            flat,
            first,
            min(first + (step or n_groups), n_groups),
            query_ids,
            points.ids,
            kept.entries,
            kept.counts,
            kept.thresholds,
            keep,
            threads,
            isa,
            **look,
        )
    return kept


@each_kind
def test_a_query_sees_the_ranges_of_its_group_and_nothing_else(dtype, isa):
    width = WIDTH[dtype]
    points, sought = Packed(lattice(6 * width - 3, 4, dtype)), Packed(lattice(3 * width, 4, dtype))
    groups = [0, 1, 1, 3]  # the second is empty
    ranges = [[(0, 2), (5, 6)], [(0, 6)], [(2, 3), (4, 4)]]
    nobody = np.full(3 * width, -2, np.int32)
    scores = all_scores(sought.F, points.F)
    panel = np.arange(points.n) // width
    scores[:width, ~np.isin(panel, [0, 1, 5])] = -np.inf
    scores[width:, panel != 2] = -np.inf
    ids, best = expected_best(scores, 8)
    for threads in (1, 2, 5):
        kept = query(sought, points, groups, ranges, nobody, 8, threads, isa)
        for row in range(sought.n):
            assert np.array_equal(kept.best(row)[0], ids[row])
            assert np.array_equal(kept.best(row)[1], best[row])
    by_steps = query(sought, points, groups, ranges, nobody, 8, 1, isa, step=1)
    assert by_steps.bytes() == kept.bytes()


@each_kind
def test_a_query_does_not_see_the_point_that_bears_its_number(dtype, isa):
    points = Packed(lattice(70, 3, dtype, levels=2))  # many copies of every point
    n_panels = len(points.panels)
    groups, ranges = [0, n_panels], [[(0, n_panels)]]
    own = query(points, points, groups, ranges, points.ids, 69, isa=isa)
    scores = all_scores(points.F, points.F)
    np.fill_diagonal(scores, -np.inf)
    ids, _ = expected_best(scores, 69)
    for row in range(70):
        assert np.array_equal(own.best(row)[0], ids[row])
    assert not own.counts[70:].any()
    strangers = np.full(len(points.ids), -2, np.int32)
    seen = query(points, points, groups, ranges, strangers, 69, isa=isa)
    assert all(row in seen.best(row)[0] for row in range(8))


# --- probe_lists --------------------------------------------------------------------------------


def probe(points, tasks, lists, keep, threads=1, isa="auto", lead=None, sought=None, **change):
    """``lists`` holds (first panel, last panel, places that ask) in the order of the tasks.

    The points ask themselves, or others ask them, which are ``sought``.
    """
    asking = sought or points
    kept = Kept(len(asking.ids), keep, points.kind)
    rows = np.zeros((len(asking.ids), points.F.shape[1]), points.kind)
    rows[: asking.n] = asking.F
    given = {
        "panels": points.panels,
        "halves": points.halves,
        "rows": rows,
        "tasks": np.array(tasks, np.int64),
        "ranges": np.array([[first, last] for first, last, _ in lists], np.int64),
        "list_starts": np.cumsum([0] + [len(places) for _, _, places in lists]).astype(np.int64),
        "queries": np.concatenate([places for _, _, places in lists]).astype(np.int32),
        "entries": kept.entries,
        "counts": kept.counts,
        "thresholds": kept.thresholds,
        "rounding": points.rounding,
    }
    if sought:
        given["query_halves"] = sought.halves
        given |= {"query_tails": sought.look(lead)["tails"]} if lead else {}
    given |= {"keep": keep, "threads": threads, "isa": isa} | points.look(lead)
    _native.probe_lists(**(given | change))
    return kept


@each_kind
def test_places_see_the_panels_of_their_lists_and_never_themselves(dtype, isa):
    width = WIDTH[dtype]
    points = Packed(lattice(9 * width - 5, 3, dtype))
    n, n_panels = points.n, len(points.panels)
    rng = np.random.default_rng(0)
    tasks, lists, sees = [0], [], np.zeros((n, n), bool)
    panel = np.arange(n) // width
    for share in np.array_split(rng.permutation(n), 7):  # a place belongs to one task
        cuts = [0, 2, 3, 3, 6, n_panels]
        for first, last in itertools.pairwise(cuts):
            places = share[rng.random(len(share)) < 0.7]
            lists.append((first, last, places))
            sees[np.ix_(places, (first <= panel) & (panel < last))] = True
        tasks.append(len(lists))
    np.fill_diagonal(sees, False)
    scores = np.where(sees, all_scores(points.F, points.F), -np.inf)
    order = expected_best(scores, 6)[0]
    one = probe(points, tasks, lists, 6, isa=isa)
    for row in range(n):
        found, values = one.best(row)
        expected = order[row][: sees[row].sum()]
        assert np.array_equal(found, expected)
        assert np.array_equal(values, scores[row, expected])
    for threads in (2, 5):
        assert probe(points, tasks, lists, 6, threads, isa).bytes() == one.bytes()


def others_asking(dtype, m=37):
    """Points and other rows, whole numbers that grow smaller, and which lists each of them asks."""
    rng, shrinking = np.random.default_rng(0), 64 * 0.7 ** np.arange(9)
    F, G = (np.round(rng.standard_normal((n, 9)) * shrinking).astype(dtype) for n in (400, m))
    points, sought = Packed(F), Packed(G)
    firsts = np.arange(0, len(points.panels), 2)
    asks = rng.random((m, len(firsts))) < 0.5
    lasts = np.minimum(firsts + 2, len(points.panels))
    lists = [*zip(firsts, lasts, map(np.flatnonzero, asks.T), strict=True)]
    return points, sought, lists, asks[:, np.arange(400) // (2 * WIDTH[dtype])]


@each("lead", [None, 4])
@each_kind
def test_other_rows_find_the_best_of_the_lists_they_ask(lead, dtype, isa):
    points, sought, lists, sees = others_asking(dtype)
    scores = np.where(sees, all_scores(sought.F, points.F), -np.inf)
    kept = probe(points, [0, len(lists)], lists, 10, isa=isa, lead=lead, sought=sought)
    for row, best in enumerate(expected_best(scores, 10)[0]):
        assert kept.best(row)[0].tolist() == best[: sees[row].sum()].tolist()


def test_another_row_may_have_the_number_of_a_point():
    points = Packed(decaying(400, 9, np.float32)[:20])
    lists = [(0, len(points.panels), np.arange(20))]
    kept = probe(points, [0, 1], lists, 5, sought=points)
    assert [int(kept.best(row)[0][0]) for row in range(20)] == list(range(20))


def test_arrays_of_other_rows_that_do_not_fit_are_refused():
    points, sought, lists, _ = others_asking(np.float32)
    tails = np.zeros(len(sought.ids), np.float32)
    for change in (
        {"query_halves": sought.halves[1:]},
        {"query_tails": tails},  # of the queries only
        {"query_halves": None, "query_tails": tails},
        {"counts": np.zeros(len(sought.ids) - 1, np.int32)},
        {"queries": np.full(sum(len(places) for *_, places in lists), len(tails), np.int32)},
    ):
        with pytest.raises(ValueError, match=r"probe_lists|knn"):
            probe(points, [0, len(lists)], lists, 10, sought=sought, **change)


@each("lead", [1, 2, 7, 15, 16])
@each("keep", [1, 9, 30])
@each_kind
def test_a_look_on_the_way_changes_nothing(lead, keep, dtype, isa):
    points, sought = Packed(decaying(500, 16, dtype)), Packed(decaying(100, 16, dtype, seed=1))
    groups, ranges = [0, len(sought.panels)], [[(0, len(points.panels))]]
    nobody = np.full(len(sought.ids), -2, np.int32)
    lists = [(0, len(points.panels), np.arange(points.n))]
    for find in (
        lambda way: join(points, keep, isa=isa, lead=way),
        lambda way: join(points, keep, threads=3, isa=isa, lead=way),
        lambda way: query(sought, points, groups, ranges, nobody, keep, isa=isa, lead=way),
        lambda way: probe(points, [0, 1], lists, keep, isa=isa, lead=way),
    ):
        assert find(lead).bytes() == find(None).bytes()


# --- refine_neighbors ---------------------------------------------------------------------------


@each("k", [1, 4])
@each_kind
def test_neighbors_of_neighbors_are_looked_at_and_nobody_else(k, dtype, isa):
    # Some candidates for each point; the expected ones are theirs and those of their k best.
    width = WIDTH[dtype]
    points = Packed(lattice(6 * width - 4, 3, dtype, levels=9))
    n, n_panels = points.n, len(points.panels)
    lists = [(i, i + 1, np.arange(n)[np.arange(n) // width == i]) for i in range(n_panels)]
    lists += [(0, 1, np.arange(width, n, 3))]
    scores = all_scores(points.F, points.F)
    rows = np.zeros((len(points.ids), 3), dtype)
    rows[:n] = points.F
    outcomes = []
    for threads in (1, 2, 5):
        kept = probe(points, [0, len(lists)], lists, 5, isa=isa)
        before = [kept.best(row)[0] for row in range(n)]
        near = np.zeros((len(points.ids), k), np.int32)
        _native.refine_neighbors(
            rows, points.halves, near, kept.entries, kept.counts, kept.thresholds, 5, threads, isa
        )
        for row in range(n):
            pool = set(before[row])
            for friend in before[row][:k]:
                pool |= set(before[friend][:k])
            pool = np.array(sorted(pool - {row}))
            best = pool[np.lexsort((pool, -scores[row, pool]))][:5]
            found, values = kept.best(row)
            assert np.array_equal(values, scores[row, found])
            assert np.array_equal(found, best)
        outcomes.append(kept.bytes())
    assert outcomes[0] == outcomes[1] == outcomes[2]


# --- rerank and complete ------------------------------------------------------------------------


def rerank(X, points, kept, k, threads=1, isa="auto"):
    ids, squares = np.full((len(X), k), -7, np.int32), np.full((len(X), k), np.nan)
    certain = np.ones(len(points.ids), np.uint8)
    _native.rerank(
        X,
        X,
        points.ids,
        kept.entries,
        kept.counts,
        kept.thresholds,
        kept.keep,
        points.ids,
        points.halves,
        points.rounding,
        ids,
        squares,
        certain,
        threads,
        isa,
    )
    return ids, squares, certain


def complete(X, points, rows, ids, squares, threads=1, isa="auto"):
    _native.complete(
        points.panels,
        points.halves,
        points.panels,
        points.halves,
        X,
        X,
        np.asarray(rows, np.int64),
        points.ids,
        points.ids,
        True,
        points.rounding,
        ids,
        squares,
        threads,
        isa,
    )


def exact_neighbors(X, k):
    """By (squared distance, number); exact for data whose squared distances are integers."""
    D2 = -2 * all_scores(X, X)
    np.fill_diagonal(D2, np.inf)
    ids = np.argsort(D2, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(D2, ids, axis=1)


def with_outlier(n, q, dtype):
    X = lattice(n, q, dtype, levels=6)
    X[n // 3] += 4096
    return X


# Integers, so that float64 is exact: whatever order comes out can be held against the true one.
ADVERSARIAL = {
    "lattice with ties": lambda dtype: lattice(220, 3, dtype, levels=4),
    "few ties": lambda dtype: lattice(220, 9, dtype, levels=1000),
    "clusters far from the origin": lambda dtype: clusters(220, 5, dtype) + dtype(5000),
    "common offset": lambda dtype: lattice(220, 6, dtype, levels=40) + dtype(2**16),
    "one outlier": lambda dtype: with_outlier(220, 5, dtype),
    "unlike norms": lambda dtype: (
        lattice(220, 5, dtype, levels=9) * 2 ** (np.arange(220) % 12).astype(dtype)[:, None]
    ),
}


@each("what", ADVERSARIAL)
@each("keep", [5, 8, 13])
@each("exact_in", [np.float32, np.float64])
@each_kind
def test_what_is_certain_is_true_and_what_is_not_is_repaired(what, keep, exact_in, dtype, isa):
    k = 5
    X = ADVERSARIAL[what](dtype)
    points, X = Packed(X), X.astype(exact_in)  # filter and data may differ in type
    true_ids, true_squares = exact_neighbors(X, k)
    ids, squares, certain = rerank(X, points, join(points, keep, isa=isa), k, isa=isa)
    sure = np.flatnonzero(certain[: points.n])
    assert np.array_equal(ids[sure], true_ids[sure])
    assert np.array_equal(squares[sure], true_squares[sure])
    complete(X, points, np.flatnonzero(certain == 0), ids, squares, isa=isa)
    assert np.array_equal(ids, true_ids)
    assert np.array_equal(squares, true_squares)


@each_kind
def test_distinct_distances_are_proven_and_ties_at_the_edge_are_not(dtype, isa):
    # Points 2^i on a line: no two distances are alike. On a grid, all are.
    line = Packed((2.0 ** np.arange(40)[:, None] / 2**20).astype(dtype))
    assert rerank(line.F, line, join(line, 9, isa=isa), 3, isa=isa)[2].all()
    grid = Packed(np.stack(np.meshgrid(*[np.arange(9)] * 2), -1).reshape(-1, 2).astype(dtype))
    kept = join(grid, 6, isa=isa)
    assert not rerank(grid.F, grid, kept, 6, isa=isa)[2][: grid.n].any()


def test_scores_without_meaning_prove_nothing(isa):
    # In float32 all scores of these points are rounding noise, thousands of times the distances.
    X = np.random.default_rng(0).standard_normal((150, 8)) * 0.01
    points = Packed((X + 1000).astype(np.float32))
    ids, squares, certain = rerank(X, points, join(points, 13, isa=isa), 5, isa=isa)
    assert not certain[:150].any()
    complete(X, points, np.arange(150), ids, squares, isa=isa)
    D2 = -2 * all_scores(X, X)
    np.fill_diagonal(D2, np.inf)
    assert np.array_equal(ids, np.argsort(D2, axis=1)[:, :5])
    # A sum of 8 squares has at most 8 roundings more or less than another one.
    np.testing.assert_allclose(squares, np.sort(D2, axis=1)[:, :5], rtol=16 * 2.3e-16)


@each_kind
def test_a_row_that_has_seen_everybody_is_certain(dtype, isa):
    points = Packed(lattice(9, 2, dtype, levels=2))
    ids, squares, certain = rerank(points.F, points, join(points, 12, isa=isa), 8, isa=isa)
    assert certain.all()
    true_ids, true_squares = exact_neighbors(points.F, 8)
    assert np.array_equal(ids, true_ids)
    assert np.array_equal(squares, true_squares)


@each_kind
def test_too_few_candidates_leave_places_open_and_completion_fills_them(dtype, isa):
    points = Packed(lattice(60, 3, dtype))
    kept = join(points, 2, isa=isa)
    ids, squares, certain = rerank(points.F, points, kept, 6, isa=isa)
    assert (ids[:, -1] == -1).all()
    assert np.isinf(squares[:, -1]).all()
    assert not certain[:60].any()
    complete(points.F, points, np.arange(60), ids, squares, isa=isa)
    assert np.array_equal(ids, exact_neighbors(points.F, 6)[0])


@each_kind
def test_completion_touches_only_the_rows_it_is_given(dtype, isa):
    points = Packed(lattice(60, 3, dtype))
    ids, squares = np.full((60, 4), -7, np.int32), np.full((60, 4), np.inf)
    rows = [50, 3, 17]
    complete(points.F, points, rows, ids, squares, isa=isa)
    assert np.array_equal(ids[rows], exact_neighbors(points.F, 4)[0][rows])
    rest = np.setdiff1d(np.arange(60), rows)
    assert (ids[rest] == -7).all()
    assert np.isinf(squares[rest]).all()
    complete(points.F, points, [], ids, squares, isa=isa)
    assert (ids[rest] == -7).all()


@each("n", [150, 1000])
@each_kind
def test_proof_and_repair_do_not_depend_on_the_number_of_threads(n, dtype, isa):
    points = Packed(clusters(n, 5, dtype))
    answers = []
    for threads in (1, 2, 5):
        kept = join(points, 7, threads=threads, isa=isa)
        ids, squares, certain = rerank(points.F, points, kept, 5, threads, isa)
        before = ids.tobytes(), squares.tobytes(), certain.tobytes()
        complete(points.F, points, np.flatnonzero(certain == 0), ids, squares, threads, isa)
        answers.append((before, ids.tobytes(), squares.tobytes()))
    assert answers[0] == answers[1] == answers[2]


@each("d", [1, 7, 8, 9, 31])
@each_kind
def test_squares_are_computed_in_double_from_the_data_themselves(d, dtype, isa):
    rng = np.random.default_rng(0)
    X = (1e4 + rng.standard_normal((50, d))).astype(dtype)
    points = Packed((X - X.mean(axis=0)).astype(np.float32))
    ids, squares, _ = rerank(X, points, join(points, 49, isa=isa), 49, isa=isa)
    gaps = X.astype(np.longdouble)[:, None] - X.astype(np.longdouble)[ids]
    # Differences of float32 data are exact in double; d squares and sums are rounded once each.
    loss = (d + 3) * np.finfo(float).eps
    np.testing.assert_allclose(squares, (gaps**2).sum(axis=2).astype(float), rtol=loss)


# --- what is refused ----------------------------------------------------------------------------


PRELUDE = """
f4, i4, i8 = np.float32, np.int32, np.int64
P, H, ids = np.zeros((2, 3, 24), f4), np.zeros(48, f4), np.arange(48, dtype=i4)
E, C, T = np.zeros((48, 64), np.uint8), np.zeros(48, i4), np.full(48, -3.4028235e38, f4)
X, found, squares = np.zeros((48, 3)), np.zeros((48, 4), i4), np.zeros((48, 4))
kept = dict(entries=E, counts=C, thresholds=T, keep=4)
def pack(**change):
    _native.pack_points(**(dict(x=np.zeros((48, 3), f4), panels=P, threads=2) | change))
def join(**change):
    _native.join_rounds(**(dict(panels=P, halves=H, low=np.zeros((1, 3), f4),
        high=np.zeros((1, 3), f4), top_halves=np.zeros(1, f4), panels_per_block=2, rounding=1e-6,
        first=0, last=1, threads=2) | kept | change))
def query(**change):
    _native.query_groups(**(dict(query_panels=P, query_halves=H, panels=P, halves=H,
        groups=np.array([0, 2], i8), range_starts=np.array([0, 1], i8), ranges=np.array([[0, 2]]),
        first=0, last=1, query_ids=ids, point_ids=ids, threads=2) | kept | change))
def probe(**change):
    _native.probe_lists(**(dict(panels=P, halves=H, rows=np.zeros((48, 3), f4),
        tasks=np.array([0, 1], i8), ranges=np.array([[0, 2]]), list_starts=np.array([0, 48], i8),
        queries=ids, threads=2) | kept | change))
def rerank(**change):
    _native.rerank(**(dict(queries=X, x=X, query_rows=ids, point_ids=ids, halves=H, rounding=1e-6,
        ids=found, squares=squares, certain=np.ones(48, np.uint8), threads=2) | kept | change))
def rerank_few(place=5, point=5, count=1):
    room = E.shape[1]
    points, entries = np.full(100 * room, 7, i4), np.zeros((1, room), np.uint8)
    points[5], entries.view(i4)[0, 1] = point, place
    _native.rerank(queries=X[:1], x=X, query_rows=ids[:1], point_ids=points, halves=H[:1],
        rounding=1e-6, ids=found[:1].copy(), squares=squares[:1].copy(),
        certain=np.ones(1, np.uint8), threads=1, entries=entries, counts=np.array([count], i4),
        thresholds=T[:1].copy(), keep=kept["keep"])
def complete(**change):
    _native.complete(**(dict(query_panels=P, query_halves=H, panels=P, halves=H, queries=X, x=X,
        rows=np.arange(48), query_rows=ids, point_ids=ids, self_join=True, rounding=1e-6,
        ids=found, squares=squares, threads=2) | change))
"""

REFUSED = {
    "pack, too few panels": "pack(panels=np.zeros((1, 3, 24), f4))",
    "pack, panels of another width": "pack(panels=np.zeros((4, 3, 12), f4))",
    "pack, another dimension": "pack(x=np.zeros((48, 4), f4))",
    "pack, no threads": "pack(threads=0)",
    "join, halves too short": "join(halves=H[:47])",
    "join, panels of another width": "join(panels=np.zeros((6, 3, 8), f4),"
    " low=np.zeros((3, 3), f4), high=np.zeros((3, 3), f4), top_halves=np.zeros(3, f4))",
    "join, too few boxes": "join(panels_per_block=1)",
    "join, too many boxes": "join(low=np.zeros((2, 3), f4), high=np.zeros((2, 3), f4),"
    " top_halves=np.zeros(2, f4))",
    "join, high of another shape": "join(high=np.zeros((1, 2), f4))",
    "join, tails too short": "join(tails=H[:47], lead=2)",
    "join, a look before the first coordinate": "join(tails=H, lead=0)",
    "join, a look behind the last coordinate": "join(tails=H, lead=4)",
    "query, tails on one side": "query(tails=H, lead=2)",
    "query, tails too short": "query(tails=H[:47], query_tails=H, lead=2)",
    "probe, tails too short": "probe(tails=H[:47], lead=2)",
    "join, top_halves too long": "join(top_halves=np.zeros(2, f4))",
    "join, boxes wider than points": "join(low=np.zeros((1, 4), f4), high=np.zeros((1, 4), f4))",
    "join, no panels in a block": "join(panels_per_block=0)",
    "join, entries too few": "join(entries=E[:47])",
    "join, entries too narrow": "join(entries=np.zeros((48, 32), np.uint8))",
    "join, counts too short": "join(counts=C[:40])",
    "join, thresholds too short": "join(thresholds=T[:40])",
    "join, nothing to keep": "join(keep=0)",
    "join, a round before the first": "join(panels_per_block=1, low=np.zeros((2, 3), f4),"
    " high=np.zeros((2, 3), f4), top_halves=np.zeros(2, f4), first=-3)",
    "join, a round after the last": "join(panels_per_block=1, low=np.zeros((2, 3), f4),"
    " high=np.zeros((2, 3), f4), top_halves=np.zeros(2, f4), last=3)",
    "join, no threads": "join(threads=0)",
    "query, unlike dimensions": "query(query_panels=np.zeros((2, 4, 24), f4))",
    "query, panels of another width": "query(panels=np.zeros((6, 3, 8), f4))",
    "query, ids too short": "query(query_ids=ids[:40])",
    "query, point ids too short": "query(point_ids=ids[:40])",
    "query, ranges without end": "query(ranges=np.zeros((1, 1), i8))",
    "query, starts too short": "query(range_starts=np.zeros(1, i8))",
    "query, last beyond the groups": "query(last=2)",
    "query, first behind last": "query(first=1, last=0)",
    "query, first negative": "query(first=-1)",
    "query, groups beyond the panels": "query(groups=np.array([0, 9_000_000], i8))",
    "query, groups before the panels": "query(groups=np.array([-9_000_000, 2], i8))",
    "query, ranges beyond the panels": "query(ranges=np.array([[0, 9_000_000]]))",
    "query, ranges before the panels": "query(ranges=np.array([[-9_000_000, 2]]))",
    "query, starts beyond the ranges": "query(range_starts=np.array([0, 9_000_000], i8))",
    "query, entries of other places": "query(entries=E[:24])",
    "probe, rows of another dimension": "probe(rows=np.zeros((48, 4), f4))",
    "probe, rows too few": "probe(rows=np.zeros((40, 3), f4))",
    "probe, panels of another width": "probe(panels=np.zeros((6, 3, 8), f4))",
    "probe, no tasks at all": "probe(tasks=np.zeros(0, i8))",
    "probe, tasks beyond the lists": "probe(tasks=np.array([0, 9_000_000], i8))",
    "probe, tasks that go back": "probe(tasks=np.array([0, 9_000_000, 1], i8))",
    "probe, starts beyond the places": "probe(list_starts=np.array([0, 9_000_000], i8))",
    "probe, starts too short": "probe(list_starts=np.zeros(1, i8))",
    "probe, ranges without end": "probe(ranges=np.zeros((1, 1), i8))",
    "probe, ranges beyond the panels": "probe(ranges=np.array([[0, 9_000_000]]))",
    "probe, a place that is not there": "probe(queries=ids + 9_000_000)",
    "probe, entries too few": "probe(entries=E[:40])",
    "rerank, unlike dimensions": "rerank(x=np.zeros((48, 4)))",
    "rerank, halves too short": "rerank(halves=H[:40])",
    "rerank, certain too short": "rerank(certain=np.ones(40, np.uint8))",
    "rerank, ids and squares of unlike width": "rerank(squares=np.zeros((48, 3)))",
    "rerank, ids too short": "rerank(ids=found[:40])",
    "rerank, no neighbors": "rerank(ids=found[:, :0].copy(), squares=squares[:, :0].copy())",
    "rerank, a row that is not there": "rerank(query_rows=ids + 9_000_000)",
    "rerank, entries too few": "rerank(entries=E[:40])",
    "rerank, a point that is not there": "rerank(point_ids=ids + 9_000_000)",
    "rerank of few, a candidate that is not there": "rerank_few(place=9_000_000)",
    "rerank of few, a candidate before the first": "rerank_few(place=-2)",
    "rerank of few, a point that is not there": "rerank_few(point=48)",
    "rerank of few, a candidate at an empty place": "rerank_few(point=-1)",
    "rerank of few, more candidates than places": "rerank_few(count=9_000_000)",
    "rerank of few, fewer candidates than none": "rerank_few(count=-9_000_000)",
    "complete, unlike dimensions": "complete(query_panels=np.zeros((2, 4, 24), f4))",
    "complete, panels of another width": "complete(query_panels=np.zeros((6, 3, 8), f4))",
    "complete, data of unlike dimensions": "complete(x=np.zeros((48, 4)))",
    "complete, point ids too short": "complete(point_ids=ids[:40])",
    "complete, ids too short": "complete(ids=found[:40])",
    "complete, squares too narrow": "complete(squares=np.zeros((48, 3)))",
    "complete, no neighbors": "complete(ids=found[:, :0].copy(), squares=squares[:, :0].copy())",
    "complete, a place that is not there": "complete(rows=np.array([9_000_000]))",
    "complete, a negative place": "complete(rows=np.array([-9_000_000]))",
    "complete, a row that is not there": "complete(query_rows=ids + 9_000_000)",
    "complete, a point that is not there": "complete(point_ids=ids + 9_000_000)",
    "complete, no threads": "complete(threads=0)",
    "unknown instruction set": "join(isa='mmx')",
}


@pytest.fixture(scope="module")
def answers():
    """What every refused call says, from few processes: a crash costs one restart, not the run."""
    said, left = {}, list(REFUSED)
    while left:
        calls = "".join(
            f"try:\n    {REFUSED[what]}\n    print({what!r}, 'nothing', sep='|', flush=True)\n"
            f"except Exception as e:\n"
            f"    print({what!r}, type(e).__name__, sep='|', flush=True)\n"
            for what in left
        )
        head = "import numpy as np\nfrom lowland import _native\n" + PRELUDE
        done = subprocess.run(
            [sys.executable, "-c", head + calls], capture_output=True, text=True, timeout=60
        )
        lines = [line.rsplit("|", 1) for line in done.stdout.splitlines()]
        said |= dict(lines)
        if done.returncode:
            said[left[len(lines)]] = f"died with {done.returncode}"
            lines.append(None)
        left = left[len(lines) :]
    return said


@each("what", REFUSED)
def test_what_a_kernel_cannot_do_is_a_value_error_and_not_a_crash(what, answers):
    assert answers[what] == "ValueError"


@each("call", ["pack()", "join()", "query()", "probe()", "rerank()", "rerank_few()", "complete()"])
def test_the_calls_that_the_refusals_change_are_fine_by_themselves(call, run_apart):
    assert run_apart(PRELUDE + call) == ""


def test_kernels_leave_their_inputs_alone(dtype):
    points = Packed(lattice(70, 4, dtype))
    X = points.F.copy()
    copies = points.panels.copy(), points.halves.copy(), points.ids.copy()
    kept = join(points, 6, threads=2)
    ids, squares, certain = rerank(X, points, kept, 4, 2)
    complete(X, points, np.flatnonzero(certain == 0), ids, squares, 2)
    assert np.array_equal(X, points.F)
    for array, copy in zip((points.panels, points.halves, points.ids), copies, strict=True):
        assert np.array_equal(array, copy)
