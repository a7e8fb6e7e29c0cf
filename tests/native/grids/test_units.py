"""nearest_units, sum_by_unit and squares_to_units against their definitions."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind

SIZES = [(1, 2, 1), (5, 2, 2), (33, 7, 3), (64, 24, 1), (70, 25, 9), (40, 49, 16), (31, 500, 50)]
EITHER = [np.float32, np.float64]


def table(n, m, p, dtype, missing=False, ties=False, seed=0):
    rng = np.random.default_rng(seed)
    X, units = rng.standard_normal((n, p)), 0.7 * rng.standard_normal((m, p))
    if ties:  # rounded values, units twice, rows at units
        X, units = np.round(X), np.round(units)
        units[m // 2 :] = units[: m - m // 2]
        X[::3] = units[np.arange(len(X[::3])) % m]
    if missing:
        X[rng.random((n, p)) < 0.3] = np.nan
        X[:, 0] = 0.5
    return X.astype(dtype), units.astype(dtype)


def all_squares(X, units):
    gaps = X[:, None].astype(float) - units[None].astype(float)
    return np.nansum(gaps**2, axis=2)


def nearest(X, units, k, missing=False, threads=1, isa="auto", shift=None):
    ids, squares = np.full((len(X), k), -7, np.int32), np.full((len(X), k), np.nan)
    shift = units.mean(axis=0, dtype=float).astype(X.dtype) if shift is None else shift
    _native.nearest_units(X, units, shift, missing, ids, squares, threads, isa)
    return ids, squares


@each("missing", [False, True])
@each("ties", [False, True])
@each("k", [1, 2])
@each_kind
def test_the_nearest_units_are_those_of_all_distances(dtype, missing, ties, k, isa):
    for size in SIZES:
        X, units = table(*size, dtype, missing, ties)
        ids, squares = nearest(X, units, k, missing, isa=isa)
        D = all_squares(X, units)
        np.testing.assert_array_equal(ids, np.argsort(D, axis=1, kind="stable")[:, :k])
        np.testing.assert_allclose(squares, np.sort(D, axis=1)[:, :k], rtol=1e-12, atol=1e-300)


@each("offset", [1e3, 1e5])
@each_isa
def test_rounding_of_products_decides_nothing(offset, isa):
    """Far from the origin products in float32 lose all digits of the distances."""
    X, units = table(200, 60, 5, np.float32)
    X, units = X + np.float32(offset), units + np.float32(offset)
    zero = np.zeros(5, np.float32)
    wanted = all_squares(X, units).argsort(axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(nearest(X, units, 2, isa=isa, shift=zero)[0], wanted)


@each_kind
def test_values_whose_squares_overflow_are_compared_all_the_same(dtype, isa):
    X = np.array([[1e25, 0.0], [0.0, -1e25]], dtype)
    units = np.array([[0.0, 1e24], [1e24, 0.0], [0.0, 0.0]], dtype)
    np.testing.assert_array_equal(nearest(X, units, 1, isa=isa)[0][:, 0], [1, 2])


@each_isa
def test_equal_units_are_found_by_their_number(isa):
    X, units = np.ones((50, 3)), np.zeros((100, 3))
    np.testing.assert_array_equal(nearest(X, units, 2, isa=isa)[0], np.tile([0, 1], (50, 1)))


@each("missing", [False, True])
@each_kind
def test_sums_are_over_the_rows_of_each_unit(dtype, missing, isa):
    for n, m, p in SIZES:
        X, _ = table(n, m, p, dtype, missing)
        ids = (np.arange(n) ** 2 % m).astype(np.int32)
        counts, sums = np.full((m, p if missing else 1), np.nan), np.full((m, p), np.nan)
        _native.sum_by_unit(X, ids, missing, counts, sums, 2, isa)
        for j in range(m):
            rows = X[ids == j].astype(float)
            np.testing.assert_allclose(sums[j], np.nansum(rows, axis=0), rtol=1e-12, atol=1e-12)
            known = (~np.isnan(rows)).sum(axis=0) if missing else [len(rows)]
            np.testing.assert_array_equal(counts[j], known)


@each("missing", [False, True])
@each_kind
def test_squares_to_listed_units(dtype, missing, isa):
    for n, m, p in SIZES:
        X, units = table(n, m, p, dtype, missing)
        ids = (np.arange(n) % m).astype(np.int32)
        lists = np.random.default_rng(1).integers(-1, m, (m, 4)).astype(np.int32)
        squares = np.full((n, 4), np.nan)
        _native.squares_to_units(X, units, ids, lists, squares, 2, isa)
        wanted = np.take_along_axis(all_squares(X, units), lists[ids].astype(int), axis=1)
        np.testing.assert_allclose(squares, np.where(lists[ids] < 0, np.inf, wanted), rtol=1e-12)


@each("dtype", EITHER)
@each("missing", [False, True])
def test_threads_change_no_byte(dtype, missing, same_for_threads):
    X, units = table(3000, 77, 11, dtype, missing)
    same_for_threads(lambda threads: nearest(X, units, 2, missing, threads))
    ids = nearest(X, units, 1, missing)[0][:, 0].copy()

    def sums_of(threads):
        counts, sums = np.empty((77, 11 if missing else 1)), np.empty((77, 11))
        _native.sum_by_unit(X, ids, missing, counts, sums, threads)
        return counts, sums

    same_for_threads(sums_of)


def test_arguments_that_do_not_fit_are_refused():
    X, units = table(5, 4, 3, np.float64)
    ids, squares, shift = np.zeros((5, 1), np.int32), np.zeros((5, 1)), np.zeros(3)
    near, lists = np.zeros(5, np.int32), np.zeros((4, 2), np.int32)
    bad = [
        lambda: _native.nearest_units(X, units[:, :2].copy(), shift, False, ids, squares, 1),
        lambda: _native.nearest_units(X, units, shift[:2].copy(), False, ids, squares, 1),
        lambda: _native.nearest_units(X, units, shift, False, ids[:4], squares, 1),
        lambda: _native.nearest_units(
            X, units, shift, False, np.zeros((5, 3), np.int32), np.zeros((5, 3)), 1
        ),
        lambda: _native.nearest_units(X, units * np.nan, shift, False, ids, squares, 1),
        lambda: _native.nearest_units(X, units, shift, False, ids, squares, 0),
        lambda: _native.sum_by_unit(X, near + 4, False, np.zeros((4, 1)), np.zeros((4, 3)), 1),
        lambda: _native.sum_by_unit(X, near - 1, False, np.zeros((4, 1)), np.zeros((4, 3)), 1),
        lambda: _native.sum_by_unit(X, near, True, np.zeros((4, 1)), np.zeros((4, 3)), 1),
        lambda: _native.squares_to_units(X, units, near + 9, lists, np.zeros((5, 2)), 1),
        lambda: _native.squares_to_units(X, units, near, lists + 9, np.zeros((5, 2)), 1),
        lambda: _native.squares_to_units(X, units, near, lists, np.zeros((5, 3)), 1),
    ]
    for call in bad:
        with pytest.raises(ValueError, match=r"must|one or two"):
            call()
