"""covariance_matrix and covariance_slopes against their definitions, one pair at a time."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa

SHAPES = {
    "none": (lambda D: 0.0, lambda D: 0.0),
    "rbf": (lambda D: np.exp(-D / 2), lambda D: -np.exp(-D / 2) / 2),
    "matern32": (
        lambda D: (1 + np.sqrt(3 * D)) * np.exp(-np.sqrt(3 * D)),
        lambda D: -1.5 * np.exp(-np.sqrt(3 * D)),
    ),
    "matern52": (
        lambda D: (1 + np.sqrt(5 * D) + 5 * D / 3) * np.exp(-np.sqrt(5 * D)),
        lambda D: -5 / 6 * (1 + np.sqrt(5 * D)) * np.exp(-np.sqrt(5 * D)),
    ),
}
SIZES = [(1, 1), (1, 7), (5, 1), (6, 3), (3, 64), (9, 65), (23, 130)]


def task(n, m, q, r, seed=0):
    rng = np.random.default_rng(seed)
    u, v = rng.standard_normal((n, q)), rng.standard_normal((m, q))
    v[: min(n, m) // 2] = u[: min(n, m) // 2]  # some pairs have distance 0
    return u, v, rng.standard_normal((n, r)), rng.standard_normal((m, r))


def naive_matrix(u, v, a, b, shape, variance, bias):
    K = np.empty((len(u), len(v)))
    for i in range(len(u)):
        for j in range(len(v)):
            D = float(np.sum((u[i] - v[j]) ** 2))
            K[i, j] = bias + variance * SHAPES[shape][0](D) + a[i] @ b[j]
    return K


def naive_radial(u, v, shape, variance):
    D = ((u[:, None] - v[None]) ** 2).sum(axis=2)
    return np.array([[variance * SHAPES[shape][1](d) for d in row] for row in D])


def naive_slopes(u, v, a, b, shape, g):
    (n, q), m, r = u.shape, len(v), a.shape[1]
    rows, columns = np.zeros((n, 2 + 2 * q + r)), np.zeros((m, q + r))
    for i in range(n):
        for j in range(m):
            d = u[i] - v[j]
            value, slope = (f(float(d @ d)) for f in SHAPES[shape])
            h = g[i, j] * slope
            rows[i] += np.concatenate([[g[i, j] * value, g[i, j]], h * d, h * d**2, g[i, j] * b[j]])
            columns[j] += np.concatenate([h * d, g[i, j] * a[i]])
    return rows, columns


def slopes(u, v, a, b, shape, g, threads=1, isa="auto", upper=False):
    rows = np.full((len(u), 2 + 2 * u.shape[1] + a.shape[1]), np.nan)
    columns = np.full((len(v), u.shape[1] + a.shape[1]), np.nan)
    _native.covariance_slopes(u, v, a, b, shape, g, rows, columns, upper, threads, isa)
    return rows, columns


@each("shape", SHAPES)
@each_isa
def test_values_are_as_defined(shape, isa):
    for q, r in [(1, 0), (2, 2), (5, 0), (0, 3)]:
        if q == 0 and shape != "none":
            continue
        for n, m in SIZES:
            given = task(n, m, q, r)
            K, radial = np.full((2, n, m), np.nan)
            _native.covariance_matrix(*given, shape, 1.7, 0.3, K, radial, False, 1, isa)
            wanted = naive_matrix(*given, shape, 1.7, 0.3), naive_radial(*given[:2], shape, 1.7)
            np.testing.assert_allclose(K, wanted[0], rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(radial, wanted[1], rtol=1e-13, atol=1e-14)


@each("shape", SHAPES)
@each_isa
def test_sums_are_as_defined(shape, isa):
    for q, r in [(1, 0), (2, 2), (5, 0), (0, 3)]:
        if q == 0 and shape != "none":
            continue
        for n, m in SIZES:
            given = task(n, m, q, r)
            g = np.random.default_rng(1).standard_normal((n, m))
            for got, wanted in zip(
                slopes(*given, shape, g, isa=isa), naive_slopes(*given, shape, g), strict=True
            ):
                np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@each("shape", SHAPES)
@each_isa
def test_the_upper_triangle_stands_for_all_pairs(shape, isa):
    for n in (1, 3, 4, 9, 66, 131):
        q, r = (0, 3) if shape == "none" else (2, 2)
        rng = np.random.default_rng(n)
        u, a = rng.standard_normal((n, q)), rng.standard_normal((n, r))
        g = rng.standard_normal((n, n))
        g += g.T
        K, full = np.full((2, n, n), np.nan)
        _native.covariance_matrix(u, u, a, a, shape, 1.7, 0.3, K, K[:0], True, 1, isa)
        _native.covariance_matrix(u, u, a, a, shape, 1.7, 0.3, full, full[:0], False, 1, isa)
        assert np.array_equal(np.triu(K), np.triu(full))
        half = np.where(np.triu(np.ones((n, n), bool)), g, np.nan)
        rows, columns = slopes(u, u, a, a, shape, half, isa=isa, upper=True, threads=2)
        all_rows, all_columns = slopes(u, u, a, a, shape, g, isa=isa)
        tolerance = {"rtol": 1e-11, "atol": 1e-11}
        for at in (slice(0, 2), slice(2 + q, 2 + 2 * q)):  # sums that the parameters need
            np.testing.assert_allclose(rows.sum(axis=0)[at], all_rows.sum(axis=0)[at], **tolerance)
        for mine, others, sign in (
            (slice(2, 2 + q), slice(0, q), -1),
            (slice(2 + 2 * q, None), slice(q, None), 1),
        ):
            wanted = all_rows[:, mine] + sign * all_columns[:, others]
            got = rows[:, mine] + sign * columns[:, others]
            np.testing.assert_allclose(got, wanted, **tolerance)


def test_neither_threads_nor_company_change_a_byte(same_for_threads, same_alone):
    u, v, a, b = given = task(203, 70, 2, 2)
    g = np.random.default_rng(1).standard_normal((203, 70))
    same_for_threads(lambda threads: slopes(*given, "rbf", g, threads=threads))

    def matrix(rows, threads=1):
        K = np.empty((len(u[rows]), 70))
        _native.covariance_matrix(
            u[rows], v, a[rows], b, "matern52", 2.0, 0.1, K, K[:0], False, threads
        )
        return [K]

    same_for_threads(lambda threads: matrix(slice(None), threads))
    same_alone(matrix, (0, 101, 202))


def test_far_pairs_have_no_covariance():
    far = np.array([[1e200, 0.0]])
    none, K = np.empty((1, 0)), np.empty((1, 1))
    for shape in ("rbf", "matern32", "matern52"):
        _native.covariance_matrix(far, -far, none, none, shape, 2.0, 0.5, K, none[:0], False, 1)
        assert K[0, 0] == 0.5


@each(
    "changed",
    [
        {"v": np.zeros((3, 3))},
        {"a": np.zeros((2, 1))},
        {"b": np.zeros((3, 2))},
        {"out": np.zeros((3, 4))},
        {"radial": np.zeros((4, 2))},
        {"shape": "cubic"},
        {"upper": True},
        {"threads": 0},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_sizes_that_do_not_fit_are_refused(changed):
    given = {
        "u": np.zeros((4, 2)),
        "v": np.zeros((3, 2)),
        "a": np.zeros((4, 1)),
        "b": np.zeros((3, 1)),
        "shape": "rbf",
        "variance": 1.0,
        "bias": 0.0,
        "out": np.zeros((4, 3)),
        "radial": np.zeros((4, 3)),
        "upper": False,
        "threads": 1,
    }
    with pytest.raises((ValueError, TypeError)):
        _native.covariance_matrix(**{**given, **changed})


def test_slopes_of_wrong_sizes_are_refused(refuses):
    given = {
        "u": np.zeros((4, 2)),
        "v": np.zeros((3, 2)),
        "a": np.zeros((4, 0)),
        "b": np.zeros((3, 0)),
        "shape": "rbf",
        "g": np.zeros((4, 3)),
        "by_row": np.zeros((4, 6)),
        "by_column": np.zeros((3, 2)),
        "upper": False,
        "threads": 1,
    }
    changes = [(name, np.zeros((1, 1)), name) for name in ("g", "by_row", "by_column")]
    refuses(_native.covariance_slopes, given, changes)
