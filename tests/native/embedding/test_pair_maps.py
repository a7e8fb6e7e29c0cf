"""The kernels of maps by pairs against loops over pairs; their random numbers against Python."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind

LANES = _native.PAIR_LANES
MASK = 2**64 - 1


def mixed(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def stream(seed, row, slot, n):
    """Numbers below n, one after the other: functions of seed, row, slot and their count."""
    key = mixed((mixed((mixed(seed) + row) & MASK) + slot) & MASK)
    count = 0
    while True:
        count += 1
        yield ((mixed((key + 0x9E3779B97F4A7C15 * count) & MASK) >> 32) * n) >> 32


def partners(n, k, seed=0):
    rng = np.random.default_rng(seed)
    picks = [rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)]
    return np.array(picks, np.int32).reshape(n, k)


def lists_of(pairs, threads=1, isa="auto"):
    starts = np.empty(len(pairs) + 1, np.int64)
    _native.pair_starts(pairs, starts, threads, isa)
    columns = np.full(starts[-1], -1, np.int32)
    _native.pair_lists(pairs, starts, columns, threads, isa)
    return starts, columns


# --- random numbers ---------------------------------------------------------------------------


@each("threads", [1, 3])
@each_isa
def test_groups_are_drawn_by_counters(threads, isa):
    n, groups, size, seed = 23, 4, 6, 2**62 - 3
    out = np.empty((n - 5, groups * size), np.int32)
    _native.draw_groups(5, n, seed, groups, out, threads, isa)
    for i, row in enumerate(out.reshape(n - 5, groups, size)):
        for g, found in enumerate(row):
            expected = []
            for j in stream(seed, i + 5, g, n):
                if j != i + 5 and j not in expected:
                    expected.append(j)
                if len(expected) == size:
                    break
            assert found.tolist() == expected


@each("threads", [1, 3])
@each_isa
def test_far_rows_are_drawn_by_counters_and_are_not_near(threads, isa):
    near = partners(40, 7)
    out = np.empty((40, 12), np.int32)
    _native.draw_far(near, 99, out, threads, isa)
    for i in range(40):
        expected = []
        for slot in range(12):
            taken = {i, *near[i], *expected}
            expected.append(next(j for j in stream(99, i, slot, 40) if j not in taken))
        assert out[i].tolist() == expected


def test_all_rows_that_are_not_near_can_be_drawn():
    near = partners(12, 4)
    out = np.empty((12, 7), np.int32)
    _native.draw_far(near, 0, out, 1)
    for i in range(12):
        assert sorted([i, *near[i], *out[i]]) == list(range(12))


def test_draws_are_uniform():
    """Each of 400 rows is drawn about as often; the chi-square of 399 degrees has sd 28."""
    out = np.empty((400, 300), np.int32)
    _native.draw_far(np.empty((400, 0), np.int32), 5, out, 2)
    counts = np.bincount(out.ravel(), minlength=400)
    expected = 300.0
    # without replacement the variance of a count is 300 (1 - 300/399)
    chi = ((counts - expected) ** 2).sum() / (expected * (1 - 300 / 399))
    assert 399 - 5 * 28.3 < chi < 399 + 5 * 28.3


@each("d", [1, 2, 4])
@each_kind
def test_far_rows_are_drawn_again_within_the_reach(d, dtype, isa):
    n, k, count, reach = 300, 5, 8, 4.0
    rng = np.random.default_rng(3)
    y = (6 * rng.standard_normal((n, d))).astype(dtype)
    y[:3] += 1e3  # alone: nothing is within the reach of these
    near = partners(n, k)
    old = partners(n, count, seed=1)
    found = {}
    for threads in (1, 2):
        far, within = old.copy(), np.empty(n, np.int32)
        _native.redraw_far(near, y, reach, 7, far, within, threads, isa)
        found[threads] = far
    np.testing.assert_array_equal(found[1], found[2])
    wide = y.astype(float)
    D = np.sqrt(((wide[:, None] - wide[None]) ** 2).sum(axis=2))
    for i in range(n):
        allowed = set(np.flatnonzero(reach * (1 - 1e-6) >= D[i])) - {i, *near[i]}
        maybe = set(np.flatnonzero(reach * (1 + 1e-6) >= D[i])) - {i, *near[i]}
        drawn = [j for j, before in zip(far[i], old[i], strict=True) if j != before]
        assert set(drawn) <= maybe
        assert len(set(drawn)) == len(drawn)
        if len(allowed) >= 3 * count:  # then 100 tries never fail
            assert set(far[i]) <= maybe
        if not maybe:
            np.testing.assert_array_equal(far[i], old[i])
    share = within.sum() / (reach >= D).sum()
    assert 0.9 < share < 1.1  # an estimate from some 10 000 draws


@each("p", [1, 7, 8, 33])
@each_kind
def test_squares_of_listed_rows(p, dtype, isa, irregular):
    x, ids = irregular(50, p).astype(dtype), partners(50, 9)[10:40]
    out = np.empty((30, 9), dtype)
    _native.listed_squares(x, 10, np.ascontiguousarray(ids), out, 2, isa)
    wide = x.astype(np.longdouble)
    expected = ((wide[10:40, None] - wide[ids]) ** 2).sum(axis=2)
    np.testing.assert_allclose(out, expected.astype(float), rtol=2 * (p + 2) * np.finfo(dtype).eps)


# --- lists, forces, steps ---------------------------------------------------------------------


@each("threads", [1, 2, 5])
@each("k", [0, 1, 7, 20])
@each_isa
def test_lists_hold_both_directions_and_whole_vectors(k, threads, isa):
    pairs = partners(41, k)
    starts, columns = lists_of(pairs, threads, isa)
    assert (starts % LANES == 0).all()
    for i in range(41):
        expected = [*pairs[i], *[j for j in range(41) if i in pairs[j]]]
        found = columns[starts[i] : starts[i + 1]].tolist()
        assert found[: len(expected)] == expected
        assert found[len(expected) :] == [i] * (-len(expected) % LANES)


WEIGHTS = [(2.0, 600.0, 1.0, 0.0), (1.0, 0.0, 1.0, 0.0), (1.5, 0.0, 0.5, 5.0), (1.0, 3.0, 1.0, 2.0)]


def losses_and_gradient(kinds, weights, y):
    """Straight from the definition, pair by pair."""
    near, mid, far, c = weights
    losses, gradient = np.zeros(3), np.zeros_like(y)
    for kind, (pairs, w) in enumerate(zip(kinds, (near, mid, far), strict=True)):
        for i, row in enumerate(pairs):
            for j in row:
                gap = y[i] - y[j]
                s = 1 + (gap**2).sum()
                if kind == 0 and c:
                    loss = (
                        w * c * (np.sqrt(s) / (10 + s) + np.arctan(np.sqrt(s / 10)) / np.sqrt(10))
                    )
                    slope = w * 20 / (10 + s) ** 2 * c / np.sqrt(s)
                elif kind == 0:
                    loss, slope = w * s / (10 + s), w * 20 / (10 + s) ** 2
                elif kind == 1:
                    loss, slope = w * s / (1e4 + s), w * 2e4 / (1e4 + s) ** 2
                else:
                    loss, slope = w / (1 + s), -w * 2 / (1 + s) ** 2
                losses[kind] += loss
                gradient[i] += slope * gap
                gradient[j] -= slope * gap
    return losses, gradient


@each("weights", WEIGHTS)
@each("d", [1, 2, 3, 5])
@each_kind
def test_loss_and_gradient_are_those_of_the_definition(d, weights, dtype, isa, irregular):
    y = irregular(37, d).astype(dtype)
    y[5] = y[6]
    kinds = partners(37, 6), partners(37, 3, seed=1), partners(37, 11, seed=2)
    flat = [part for pairs in kinds for part in lists_of(pairs)]
    gradient, losses = np.full_like(y, np.nan), np.full(37, np.nan)
    _native.pair_forces(*flat, np.array(weights), y, gradient, losses, 2, isa)
    expected, slopes = losses_and_gradient(kinds, weights, y.astype(float))
    np.testing.assert_allclose(
        losses.sum(), expected.sum(), rtol=1e-5 if dtype == np.float32 else 1e-12
    )
    # terms of both signs and of sizes up to the largest: relative to the largest gradient
    close = 200 * np.finfo(dtype).eps * np.abs(slopes).max()
    np.testing.assert_allclose(gradient, slopes, rtol=0, atol=close)


@each("d", [1, 2, 3, 5])
@each_kind
def test_a_step_is_adams(d, dtype, isa, irregular):
    y = irregular(37, d).astype(dtype)
    kinds = partners(37, 6), partners(37, 3, seed=1), partners(37, 11, seed=2)
    flat = [part for pairs in kinds for part in lists_of(pairs)]
    weights, rate = np.array([2.0, 400.0, 1.0, 0.0]), 0.3
    rng = np.random.default_rng(0)
    means, squares = (rng.standard_normal((37, d)).astype(dtype) for _ in range(2))
    squares = np.abs(squares)
    gradient = np.empty_like(y)
    _native.pair_forces(*flat, weights, y, gradient, np.empty(37), 1, isa)
    found = {}
    for threads in (1, 2):
        next_y, m, v = np.empty_like(y), means.copy(), squares.copy()
        _native.pair_step(*flat, weights, rate, y, next_y, m, v, threads, isa)
        found[threads] = [part.tobytes() for part in (next_y, m, v)]
    assert found[1] == found[2]
    g = gradient.astype(float)
    m_expected, v_expected = 0.9 * means + 0.1 * g, 0.999 * squares + 0.001 * g**2
    close = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(m, m_expected, rtol=close, atol=close * np.abs(g).max())
    np.testing.assert_allclose(v, v_expected, rtol=close)
    moved = y - rate * m_expected / (np.sqrt(v_expected) + 1e-7)
    np.testing.assert_allclose(next_y, moved, rtol=20 * close, atol=20 * close * np.abs(y).max())


# --- new rows ---------------------------------------------------------------------------------


def height(z, y, ids, local, far, reach):
    s = 1 + ((z - y) ** 2).sum(axis=1)
    near = s[ids]
    pull = near / (10 + near)
    if local:
        pull = local * (np.sqrt(near) / (10 + near) + np.arctan(np.sqrt(near / 10)) / np.sqrt(10))
    push = 1 / (1 + s)
    if np.isfinite(reach):
        end = 2 + reach**2
        push = np.where(1 + s < end, push - 1 / end + (1 + s - end) / end**2, 0)
    return pull.sum() + far * push.sum()


@each("reach", [np.inf, 3.0])
@each("d", [1, 2, 3, 5])
@each_isa
def test_new_rows_settle_where_no_small_step_is_lower(d, reach, isa, irregular):
    y = np.ascontiguousarray(2 * irregular(47, d))
    ids = partners(47, 6)[:9]
    local, far = (0.0, 0.2) if np.isinf(reach) else (reach / 2, 0.5)
    z = np.empty((9, d))
    _native.settle_pairs(ids, y, local, far, reach, np.zeros(d), 1.0, None, 500, 1e-7, z, 2, isa)
    rng = np.random.default_rng(0)
    for place, near in zip(z, ids, strict=True):
        here = height(place, y, near, local, far, reach)
        starts = [y[near].mean(axis=0), *y[near]]
        assert here <= min(height(start, y, near, local, far, reach) for start in starts) + 1e-12
        for way in rng.standard_normal((40, d)):
            step = 1e-3 * way / np.linalg.norm(way)
            assert height(place + step, y, near, local, far, reach) >= here - 1e-9


# --- what is refused --------------------------------------------------------------------------


def test_arrays_that_do_not_fit_are_refused():
    near, y = partners(20, 3), np.zeros((20, 2))
    count, far = np.empty(20, np.int32), np.empty((20, 17), np.int32)
    starts, columns = lists_of(near)
    flat = np.zeros(21, np.int64)
    flat[-1] = 8
    lists = [starts, columns] * 3
    odd = [starts + np.arange(21), np.zeros(starts[-1] + 20, np.int32), *lists[2:]]
    step = (0.1, y, np.empty_like(y), np.empty_like(y), np.empty_like(y))
    z, small = np.empty((20, 2)), np.zeros((5, 5), np.float32)
    for kernel, arguments, message in [
        ("draw_groups", (0, 5, 0, 1, np.empty((5, 5), np.int32)), "at most n - 1"),
        ("draw_groups", (3, 5, 0, 1, np.empty((5, 2), np.int32)), "rows must be below n"),
        ("draw_far", (near, 0, far), "count <= n - 1 - k"),
        ("draw_far", (near + 18, 0, far[:, :2].copy()), "not below n"),
        ("redraw_far", (near, y, 0.0, 0, near.copy(), count), "reach"),
        ("listed_squares", (y, 0, near - 5, np.empty((20, 3))), "not below n"),
        ("pair_lists", (near, starts, columns[1:]), "do not fit"),
        ("pair_lists", (near, flat, np.empty(8, np.int32)), "not those of pair_starts"),
        ("pair_step", (*odd, np.ones(4), *step), "PAIR_LANES"),
        ("pair_step", (*lists, -np.ones(4), *step), "weights"),
        ("pair_step", (*lists, np.ones(4), 0.1, y, y, *step[3:]), "another array"),
        ("settle_pairs", (near - 1, y[:5], 0, 0, 1, y[0], 1, None, 1, 0.1, z), "not below n"),
        ("settle_pairs", (near, y, 0, 0, 1, np.zeros(2), 1, small, 1, 0.1, z), "11 nodes"),
    ]:
        with pytest.raises(ValueError, match=message):
            getattr(_native, kernel)(*arguments, 1)
