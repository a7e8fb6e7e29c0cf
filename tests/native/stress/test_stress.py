"""stress_rows, stress_pairs, pair_distances and pool_adjacent against their definitions."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind


def oracle(Z, Y, delta, weights):
    """Stress of each row and half its gradient, by matrices in long double."""
    Z, Y, delta, weights = (np.asarray(a, np.longdouble) for a in (Z, Y, delta, weights))
    along = Z[:, None, :] - Y[None, :, :]
    d = np.sqrt((along**2).sum(axis=2))
    known = ~np.isnan(delta) & (weights > 0)
    gap = np.where(known, delta - d, 0)
    w = np.where(known, weights, 0)
    share = np.divide(w * gap, d, out=np.zeros_like(d), where=d > 0)
    return (w * gap**2).sum(axis=1), -(share[:, :, None] * along).sum(axis=1)


def power_weights(delta, power):
    wide = np.where(delta > 0, delta, np.nan).astype(np.longdouble)
    return np.ones(delta.shape) if power == 0 else np.nan_to_num(wide**-power)


def rows(Z, Y, delta, weights=None, power=0, threads=1, isa="auto"):
    stress, forces = np.full(len(Z), np.nan), np.full(Z.shape, np.nan)
    weights = np.empty((0, 0), Z.dtype) if weights is None else weights
    _native.stress_rows(Z, Y, delta, weights, power, stress, forces, threads, isa)
    return stress, forces


def assert_close(found, expected, dtype, size=1.0):
    for got, true in zip(found, expected, strict=True):
        slack = 200 * np.finfo(dtype).eps * max(float(np.abs(true).max(initial=0)), size)
        np.testing.assert_allclose(got, true.astype(float), rtol=0, atol=slack)


def targets(m, n, dtype, seed=3):
    delta = np.random.default_rng(seed).gamma(2.0, size=(m, n)).astype(dtype)
    delta[::5, ::3] = np.nan
    delta[1::4, ::7] = 0
    return delta


@each("power", [0, 1, 2])
@each("d", [1, 2, 3, 5])
@each_kind
def test_rows_equal_their_definition(d, power, dtype, isa, irregular):
    for m, n in [(1, 1), (3, 8), (7, 33), (20, 1100)]:
        Z, Y = irregular(m, d, seed=1).astype(dtype), irregular(n, d).astype(dtype)
        Y[0] = Z[0]  # a pair without distance has no direction
        delta = targets(m, n, dtype)
        expected = oracle(Z, Y, delta, power_weights(delta, power))
        assert_close(rows(Z, Y, delta, power=power, isa=isa), expected, dtype)


@each("d", [1, 2, 4])
@each_kind
def test_given_weights_count_and_zero_leaves_a_pair_out(d, dtype, isa, irregular):
    m, n = 13, 61
    Z, Y = irregular(m, d, seed=1).astype(dtype), irregular(n, d).astype(dtype)
    delta = targets(m, n, dtype)
    weights = np.random.default_rng(0).gamma(1.0, size=(m, n)).astype(dtype)
    weights[::2, ::3] = 0
    expected = oracle(Z, Y, delta, weights)
    assert_close(rows(Z, Y, delta, weights, isa=isa), expected, dtype)
    delta[weights == 0] = np.inf  # whatever stands there
    assert_close(rows(Z, Y, delta, weights, isa=isa), expected, dtype)


@each_kind
def test_listed_pairs_equal_their_definition(dtype, isa, irregular):
    rng = np.random.default_rng(0)
    for n, count in [(2, 1), (40, 300), (300, 40_000)]:
        Y = irregular(n, 2).astype(dtype)
        i = rng.integers(0, n - 1, count)
        j = i + rng.integers(1, n - i)
        delta, weights = rng.gamma(2.0, size=(2, count)).astype(dtype)
        stress, forces = np.full(n, np.nan), np.full(Y.shape, np.nan)
        ends = i.astype(np.int32), j.astype(np.int32)
        _native.stress_pairs(Y, *ends, delta, weights, stress, forces, 2, isa)
        wide = Y.astype(np.longdouble)
        along = wide[i] - wide[j]
        d = np.sqrt((along**2).sum(axis=1))
        gap = delta - d
        expected, pull = np.zeros(n, np.longdouble), np.zeros(Y.shape, np.longdouble)
        share = (weights * gap / np.where(d > 0, d, np.inf))[:, None] * along
        for end, sign in ((i, -1), (j, 1)):
            np.add.at(expected, end, weights * gap**2)
            np.add.at(pull, end, sign * share)
        assert_close((stress, forces), (expected, pull), dtype)
        out = np.empty(count, dtype)
        _native.pair_distances(Y, *ends, out, 2, isa)
        assert_close([out], [d], dtype)


@each_kind
def test_the_number_of_threads_does_not_change_a_byte(dtype, isa, irregular, same_for_threads):
    Y = irregular(500, 2).astype(dtype)
    delta = targets(500, 500, dtype)
    i, j = (e.astype(np.int32) for e in np.triu_indices(500, 1))

    def pairs(threads):
        stress, forces, none = np.empty(500), np.empty((500, 2)), np.empty(0, dtype)
        _native.stress_pairs(Y, i, j, delta[i, j], none, stress, forces, threads, isa)
        return stress, forces

    same_for_threads(pairs)
    same_for_threads(lambda threads: rows(Y, Y, delta, power=1, threads=threads, isa=isa))


def test_pooling_is_isotonic_regression(isa):
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 50, 3000):
        d = rng.gamma(2.0, size=n)
        for weights in (np.empty(0), rng.gamma(2.0, size=n)):
            fit = np.full(n, np.nan)
            _native.pool_adjacent(d, weights, np.empty(0, np.int32), fit, 1, isa)
            if n:
                w = weights if weights.size else None
                np.testing.assert_allclose(fit, isotonic_regression(d, weights=w).x, rtol=1e-12)


@each("most", [2, 40, 900])
@each_isa
def test_within_a_group_the_order_is_free(most, isa):
    rng = np.random.default_rng(0)
    bounds = np.concatenate([[0], np.cumsum(rng.integers(0, most, 60))]).astype(np.int32)
    d = rng.integers(0, 30, bounds[-1]).astype(float)  # with ties among the values too
    fit = np.full(len(d), np.nan)
    _native.pool_adjacent(d, np.empty(0), bounds, fit, 1, isa)
    group = np.repeat(np.arange(60), np.diff(bounds))
    order = np.lexsort((np.arange(len(d)), d, group))
    expected = np.empty(len(d))
    expected[order] = isotonic_regression(d[order]).x
    np.testing.assert_allclose(fit, expected, rtol=1e-12)


@each("size", [0, 1, 7, 30_000])
@each_isa
def test_long_sequences_are_pooled_in_parts_with_the_same_bytes_for_any_threads(size, isa):
    """Parts are 16 384 long; groups may reach over several of them."""
    rng = np.random.default_rng(0)
    n = 100_003
    d = np.sort(rng.normal(size=n)) + rng.normal(size=n)
    d[20_000:70_000] -= np.linspace(0, 3, 50_000)  # one block over parts
    bounds = np.append(np.arange(0, n, size), n).astype(np.int32) if size else np.empty(0, np.int32)
    group = np.arange(n) // max(size, 1)
    order = np.lexsort((np.arange(n), d, group)) if size else np.arange(n)
    expected = np.empty(n)
    expected[order] = isotonic_regression(d[order]).x
    fits = [np.full(n, np.nan) for _ in range(3)]
    for threads, fit in enumerate(fits, start=1):
        _native.pool_adjacent(d, np.empty(0), bounds, fit, threads, isa)
    np.testing.assert_allclose(fits[0], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])


def test_wrong_shapes_are_refused(isa):
    Y, one = np.zeros((4, 2)), np.zeros(4)
    pair = np.array([0], np.int32), np.array([4], np.int32)
    none = np.empty((0, 0))
    for call, match in [
        (lambda: _native.stress_rows(Y, Y, np.zeros((4, 3)), none, 0, one, Y, 1), "delta must be"),
        (lambda: _native.stress_rows(Y, Y, np.zeros((4, 4)), none, 3, one, Y, 1), "power"),
        (lambda: _native.pair_distances(Y, *pair, np.zeros(1), 1), "not below n"),
        (
            lambda: _native.pool_adjacent(
                one, np.empty(0), np.array([0, 9], np.int32), np.zeros(4), 1
            ),
            "groups must rise",
        ),
    ]:
        with pytest.raises(ValueError, match=match):
            call()
