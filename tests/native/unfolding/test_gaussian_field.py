"""gaussian_field against its definition."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa

SIZES = [(1, 1), (1, 7), (5, 1), (6, 3), (3, 64), (9, 65), (4, 130), (23, 201)]


def oracle(u, b, v, w):
    """The sums and the gradients, one pair at a time."""
    sums, pulls = np.zeros(u.shape), np.zeros(u.shape)
    for i in range(len(u)):
        for j in range(len(v)):
            k = np.exp(-np.sum((u[i] - v[j]) ** 2) / 2)
            sums[i] += k * w[j]
            pulls[i] += k * (b[i] @ w[j]) * (v[j] - u[i])
    return sums, pulls


def found(u, b, v, w, threads=1, isa="auto"):
    sums, pulls = np.full(u.shape, np.nan), np.full(u.shape, np.nan)
    _native.gaussian_field(u, b, v, w, sums, pulls, threads, isa)
    return sums, pulls


def task(n, m, d, seed=0):
    rng = np.random.default_rng(seed)
    u, b = rng.standard_normal((2, n, d))
    v, w = rng.standard_normal((2, m, d))
    v[: min(n, m) // 2] = u[: min(n, m) // 2]  # some points are centers
    return u, b, v, w


def assert_close(got, expected):
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(b).max()))


@each("d", [1, 2, 3, 5, 17])
@each_isa
def test_sums_and_gradients_are_as_defined(d, isa):
    for n, m in SIZES:
        given = task(n, m, d)
        assert_close(found(*given, isa=isa), oracle(*given))


@each_isa
def test_without_vectors_there_are_sums_only(isa):
    u, b, v, w = task(9, 70, 3)
    sums, nothing = np.empty_like(u), np.empty((0, 3))
    _native.gaussian_field(u, nothing, v, w, sums, nothing, 1, isa)
    np.testing.assert_array_equal(sums, found(u, b, v, w, isa=isa)[0])


@each_isa
def test_far_points_feel_nothing(isa):
    u, b, v, w = task(5, 9, 2)
    for far in (60.0, 1e160, 1e300):
        for part in found(u + far, b, v, w, isa=isa):
            np.testing.assert_array_equal(part, 0)


@each_isa
def test_no_centers_give_no_field(isa):
    u, b, v, w = task(5, 9, 2)
    for part in found(u, b, v[:0], w[:0], isa=isa):
        np.testing.assert_array_equal(part, 0)


@each("d", [1, 3, 30])
@each_isa
def test_a_point_depends_neither_on_the_others_nor_on_the_threads(
    d, isa, same_for_threads, same_alone
):
    u, b, v, w = task(103, 150, d)
    same_for_threads(lambda threads: found(u, b, v, w, threads, isa))
    same_alone(lambda rows: found(u[rows], b[rows], v, w, isa=isa), (0, 1, 2, 3, 50, 102))


def test_sizes_that_do_not_fit_are_refused():
    u, b, v, w = task(4, 6, 2)
    out = np.empty((4, 2)), np.empty((4, 2))
    wrong = [
        (u[:, :1].copy(), b, v, w, *out, 1),
        (u[:, :0].copy(), b[:, :0].copy(), v[:, :0].copy(), w[:, :0].copy(), *out, 1),
        (u, b[:3], v, w, *out, 1),
        (u, b, v, w[:5], *out, 1),
        (u, b, v, w[:, :1].copy(), *out, 1),
        (u, b, v, w, out[0][:3], out[1], 1),
        (u, b, v, w, out[0], out[1][:3], 1),
        (u, b, v, w, *out, 0),
    ]
    for arguments in wrong:
        with pytest.raises(ValueError, match=r"gaussian_field|threads"):
            _native.gaussian_field(*arguments)
    with pytest.raises(TypeError):
        _native.gaussian_field(u.astype(np.float32), b, v, w, *out, 1)
