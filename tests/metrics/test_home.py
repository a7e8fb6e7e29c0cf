"""The home of each point, and its kind."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from lowland.metrics import missing_neighbors, point_home, strangers
from lowland.metrics.home import KINDS
from lowland.neighbors import knn_graph
from support.cases import each
from support.planted_truths import changed, cut_apart, overlaid, sheets, swapped, torn


def naive_home(Y, near):
    """Medoid of some positions, and the median distance to it."""
    D = cdist(Y[near], Y[near])
    center = near[D.sum(axis=1).argmin()]
    return Y[center], np.median(np.linalg.norm(Y[near] - Y[center], axis=1))


def naive_kind(missing, strange, spread, away, typical):
    if missing >= 0.8 and spread <= 2 * typical and away > 2 * spread:
        return "misplaced"
    if missing >= 0.5:
        return "torn"
    return "pressed" if strange >= 0.5 else "fine"


@each("dimension", [1, 2, 3])
def test_home_spread_and_kind_are_their_definition(dimension, irregular):
    X = irregular(240, 5, 1)
    Y, _ = swapped(
        X[:, :dimension] + 0.2 * irregular(240, dimension, 2), 0.1, np.random.default_rng(0)
    )
    found = point_home(X, Y)
    ids = knn_graph(X, 15).indices
    expected = [naive_home(Y, near) for near in ids]
    np.testing.assert_allclose(found.home, [home for home, _ in expected], rtol=1e-12)
    np.testing.assert_allclose(found.spread, [spread for _, spread in expected], rtol=1e-12)
    assert np.array_equal(found.missing, missing_neighbors(X, Y))
    assert np.array_equal(found.strangers, strangers(X, Y))
    typical = np.median(found.spread)
    away = np.linalg.norm(Y - found.home, axis=1)
    columns = (found.missing, found.strangers, found.spread, away)
    kinds = [naive_kind(*values, typical) for values in zip(*columns, strict=True)]
    assert [KINDS[code] for code in found.kind] == kinds
    assert len(set(kinds)) >= 3  # the data hold enough kinds to tell them apart
    assert found.counts() == {kind: kinds.count(kind) for kind in KINDS}
    assert (found.n_neighbors, found.reach) == (15, 59)
    assert found.chance == 1 - 59 / 239


def test_each_kind_is_what_it_says():
    rng = np.random.default_rng(0)
    X, group = sheets(600, 6, 4, 12.0, rng)
    Y = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0][:, :2] * 10
    assert point_home(X, Y).counts() == {"fine": 600, "misplaced": 0, "torn": 0, "pressed": 0}
    wrong, moved = swapped(Y, 0.02, rng, farther=0.3)
    found = point_home(X, wrong)
    assert (found.kind[moved] == KINDS.index("misplaced")).mean() > 0.9
    assert (found.kind[~moved] == KINDS.index("fine")).all()
    cut, half = cut_apart(Y, group == 0, rng)
    found = point_home(X, cut)
    split = torn(knn_graph(X, 15).indices, group == 0, half)
    assert (found.kind[split] == KINDS.index("torn")).mean() > 0.9
    assert (found.kind[group != 0] == KINDS.index("fine")).all()
    found = point_home(X, overlaid(Y, group == 0, group == 1))
    pressed = found.kind == KINDS.index("pressed")
    assert not pressed[group > 1].any()
    assert pressed[group <= 1].mean() > 0.3  # half of the neighbors are strangers, on average


def test_homes_turn_with_the_map(irregular):
    X = irregular(300, 4)
    Y, _ = swapped(X[:, :2], 0.1, np.random.default_rng(1))
    first = point_home(X, Y)
    for how, (order, Z) in changed(Y, np.random.default_rng(2)).items():
        found = point_home(X[order], Z)
        assert np.array_equal(found.kind, first.kind[order]), how
        # the home is a point of the map: the same one, wherever it lies now
        before = cdist(first.home[order], Y).argmin(axis=1)
        assert np.array_equal(order[cdist(found.home, Z).argmin(axis=1)], before), how


def test_rows_that_are_not_measured_are_marked(irregular):
    X, Y = irregular(200, 4), irregular(200, 2, 1)
    every, some = point_home(X, Y), point_home(X, Y, sample=40)
    known = some.kind >= 0
    assert known.sum() == 40
    for values in (some.missing, some.strangers, some.spread, some.home[:, 0], some.home[:, 1]):
        assert np.array_equal(np.isfinite(values), known)
    assert np.array_equal(some.home[known], every.home[known])
    assert sum(some.counts().values()) == 40


def test_equal_rows_and_few_rows():
    for n in (3, 5, 12):
        found = point_home(np.arange(n, dtype=float)[:, None], np.arange(n, dtype=float)[:, None])
        assert found.counts()["fine"] == n
    found = point_home(np.ones((50, 3)), np.zeros((50, 2)))
    assert found.counts()["fine"] == 50
    assert not found.spread.any()


def test_threads_do_not_change_a_byte(irregular):
    X, Y = irregular(5000, 4), irregular(5000, 2, 1)
    one, two = point_home(X, Y, n_jobs=1), point_home(X, Y, n_jobs=2)
    for a, b in zip(one[:5], two[:5], strict=True):
        assert a.tobytes() == b.tobytes()
