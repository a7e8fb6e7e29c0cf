"""kernel_rows and kernel_times against their formulas in numpy."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_kind

SIDE = {np.float32: _native.TILE_SIDE_FLOAT32, np.float64: _native.TILE_SIDE_FLOAT64}
WIDTH = {np.float32: _native.PANEL_WIDTH_FLOAT32, np.float64: _native.PANEL_WIDTH_FLOAT64}

# kind, offset, degree
FUNCTIONS = {
    "product": (0, 0.0, 1),
    "gaussian": (1, 0.0, 1),
    "laplacian": (2, 0.0, 1),
    "cubic": (3, 0.7, 3),
    "fifth": (3, -0.2, 5),
    "sigmoid": (4, -0.3, 1),
}


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return FUNCTIONS[request.param]


def naive(X, Y, function):
    """The kernel's values in double, pair by pair."""
    kind, offset, degree = function
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    gaps = X[:, None, :] - Y[None, :, :]
    s = np.einsum("ik,jk->ij", X, Y)
    return {
        0: lambda: s,
        1: lambda: np.exp(-(gaps**2).sum(axis=2) / 2),
        2: lambda: np.exp(-np.abs(gaps).sum(axis=2)),
        3: lambda: (s + offset) ** degree,
        4: lambda: np.tanh(s + offset),
    }[kind]()


def points(n, d, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.gamma(2.0, size=(n, d)) - 1.5).astype(dtype) / dtype(np.sqrt(d))


def packed(X):
    width = WIDTH[X.dtype.type]
    panels = np.empty((-(-len(X) // width), X.shape[1], width), X.dtype)
    _native.pack_points(np.ascontiguousarray(X), panels, 1)
    return panels


def rows_of(X, Y, function, threads=1, isa="auto"):
    out = np.full((len(X), len(Y)), np.nan, X.dtype)
    _native.kernel_rows(packed(X), packed(Y), *function, out, threads, isa)
    return out


def n_tiles(n, dtype):
    groups = -(-n // SIDE[dtype])
    return groups * (groups + 1) // 2


def times(X, function, V, tiles=None, filled=False, threads=1, isa="auto"):
    dtype = X.dtype.type
    if tiles is None:
        tiles = np.empty((0, SIDE[dtype], SIDE[dtype]), dtype)
    out = np.full(V.shape, np.nan)
    _native.kernel_times(packed(X), *function, tiles, filled, V, out, threads, isa)
    return out


@each(("m", "n", "d"), [(1, 1, 1), (23, 25, 3), (50, 300, 7), (5, 24, 400)])
@each_kind
def test_values_are_those_of_the_formula(function, m, n, d, dtype, isa):
    X, Y = points(m, d, dtype), points(n, d, dtype, 1)
    expected = naive(X, Y, function)
    # sums of d terms of size up to about 3, then a function whose slope is below 100
    atol = 200 * np.finfo(dtype).eps * max(1.0, np.abs(expected).max()) * max(1, d / 50)
    np.testing.assert_allclose(rows_of(X, Y, function, isa=isa), expected, rtol=0, atol=atol)


@each_kind
def test_equal_points_have_the_value_one_exactly(dtype, isa):
    X = np.vstack([points(30, 9, dtype) * 50 + 100] * 2)
    K = rows_of(X, X, FUNCTIONS["gaussian"], isa=isa)
    assert (np.diag(K) == 1).all()
    assert (np.diag(K[:30, 30:]) == 1).all()


@each_kind
def test_far_points_have_the_value_zero(dtype, isa):
    X = np.array([[0.0], [1e10], [-1e10]], dtype)
    for kind in ("gaussian", "laplacian"):
        np.testing.assert_array_equal(rows_of(X, X, FUNCTIONS[kind], isa=isa), np.eye(3))


@each_kind
def test_sigmoid_is_odd_and_ends_at_one(dtype, isa):
    X = np.array([[1.0]], dtype)
    Y = np.array([[-1e4], [-1], [-1e-4], [0], [1e-4], [1], [1e4]], dtype)
    found = rows_of(X, Y, (4, 0.0, 1), isa=isa)[0]
    np.testing.assert_array_equal(found, -found[::-1])
    np.testing.assert_allclose(found, np.tanh(Y[:, 0]), rtol=0, atol=4 * np.finfo(dtype).eps)
    assert found[-1] == 1


@each_kind
def test_a_value_does_not_depend_on_the_place_of_its_points(function, dtype, isa):
    X, Y = points(61, 13, dtype), points(97, 13, dtype, 1)
    K = rows_of(X, Y, function, isa=isa)
    np.testing.assert_array_equal(rows_of(X[::-1], Y[::-1], function, isa=isa)[::-1, ::-1], K)
    np.testing.assert_array_equal(rows_of(X[7:8], Y, function, isa=isa), K[7:8])
    np.testing.assert_array_equal(rows_of(Y, X, function, isa=isa).T, K)


@each("n", [1, 120, 241, 731])
@each("q", [1, 25])
@each_kind
def test_products_are_those_with_the_matrix(function, n, q, dtype, isa):
    X = points(n, 6, dtype)
    V = np.random.default_rng(2).standard_normal((n, q)).astype(dtype)
    K = rows_of(X, X, function, isa=isa).astype(np.float64)
    V64 = V.astype(np.float64)
    # within a tile up to 240 terms are added in T
    atol = 30 * np.finfo(dtype).eps * (np.abs(K) @ np.abs(V64)).max()
    np.testing.assert_allclose(times(X, function, V, isa=isa), K @ V64, rtol=0, atol=atol)


@each_kind
def test_kept_tiles_change_no_byte(function, dtype, isa):
    n = 611
    X, V = points(n, 5, dtype), points(n, 24, dtype, 3)
    expected = times(X, function, V, isa=isa)
    tiles = np.full((n_tiles(n, dtype), SIDE[dtype], SIDE[dtype]), np.nan, dtype)
    np.testing.assert_array_equal(times(X, function, V, tiles, isa=isa), expected)
    np.testing.assert_array_equal(times(X, function, V, tiles, True, isa=isa), expected)
    # and they are what is read: the points no longer matter
    np.testing.assert_array_equal(times(X * 0, function, V, tiles, True, isa=isa), expected)


@each_kind
def test_threads_change_no_byte(function, dtype, isa, same_for_threads):
    X, V = points(1000, 5, dtype), points(1000, 10, dtype, 3)
    same_for_threads(lambda threads: times(X, function, V, threads=threads, isa=isa))
    same_for_threads(lambda threads: rows_of(X, X[:77], function, threads, isa))


def test_arrays_that_do_not_fit_are_refused():
    X = points(30, 4, np.float64)
    P, S = packed(X), SIDE[np.float64]
    none, V, out = np.empty((0, S, S)), np.zeros((30, 2)), np.zeros((30, 2))
    for arguments, message in [
        ((P, 5, 0.0, 1, none, False, V, out), "no such kind"),
        ((P, 3, 0.0, 0, none, False, V, out), "degree"),
        ((P, 1, 0.0, 1, none, False, V, out[:, :1].copy()), "as large as v"),
        ((P[:1], 1, 0.0, 1, none, False, V, out), "as many points"),
        ((P, 1, 0.0, 1, np.empty((2, S, S)), False, V, out), "upper half"),
    ]:
        with pytest.raises(ValueError, match=message):
            _native.kernel_times(*arguments, 1)
    with pytest.raises(ValueError, match="as many columns"):
        _native.kernel_rows(P, packed(X[:, :3].copy()), 1, 0.0, 1, np.empty((30, 30)), 1)
