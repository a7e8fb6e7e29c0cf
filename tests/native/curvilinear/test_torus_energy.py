"""torus_energy against its definition."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_kind

NEAREST = 1e-6
KINDS = [-1.0, -0.5, -0.25, 0.0, 1.0, -0.7, 0.4, 2.0]  # some have code of their own


def oracle(Z, Y, sides, delta, p):
    """Energy, forces and stiffness of each point, by matrices in long double."""
    Z, Y, sides, delta = (np.asarray(a, np.longdouble) for a in (Z, Y, sides, delta))
    along = Z[:, None] - Y
    length = np.minimum(np.abs(along), sides - np.abs(along))
    h = np.sign(along) * np.where(2 * np.abs(along) < sides, 1, -1)
    h[(along == 0) | (2 * np.abs(along) == sides)] = 0
    d = np.maximum(length.sum(axis=2), np.longdouble(NEAREST))
    delta = np.repeat(delta, len(Z) // len(delta), axis=0)
    energy = -delta * np.log(d) if p == 0 else delta / (p * d**p)
    f = delta / d ** (p + 1)
    return energy.sum(axis=1), (h * f[:, :, None]).sum(axis=1), (f / d).sum(axis=1)


def found(Z, Y, sides, delta, p, threads=1, isa="auto"):
    out = np.full(len(Z), np.nan), np.full(Z.shape, np.nan), np.full(len(Z), np.nan)
    _native.torus_energy(Z, Y, sides, delta, p, NEAREST, *out, threads, isa)
    return out


def task(m, n, q, dtype, repeats=1, seed=0):
    rng = np.random.default_rng(seed)
    sides = np.array([1.0, 1.5, 0.75, 1.0, 2.0])[:q]
    Z, Y = ((rng.random((k, q)) * sides).astype(dtype) for k in (m * repeats, n))
    delta = rng.gamma(2.0, size=(m, n)).astype(dtype)
    delta[::3, ::4] = 0
    return Z, Y, sides, delta


def assert_close(got, expected, dtype):
    for name, a, b in zip(("energy", "forces", "stiffness"), got, expected, strict=True):
        # a difference of coordinates is rounded as the coordinates are: near points feel it most
        slack = 1e3 * np.finfo(dtype).eps * max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a, b.astype(float), rtol=0, atol=slack, err_msg=name)


@each("p", KINDS)
@each("q", [1, 2, 3, 5])
@each_kind
def test_points_repel_as_defined(p, q, dtype, isa):
    for m, n, repeats in [(1, 1, 1), (3, 8, 2), (7, 33, 1), (4, 1100, 3)]:
        Z, Y, sides, delta = task(m, n, q, dtype, repeats)
        assert_close(found(Z, Y, sides, delta, p, isa=isa), oracle(Z, Y, sides, delta, p), dtype)


@each("p", KINDS)
@each_kind
def test_equal_places_and_half_a_side_have_no_direction(p, dtype, isa):
    Y = np.array([[0.25, 0.5], [0.75, 0.5], [0.25, 0.0], [0.0, 0.0]], dtype)
    delta = np.array([[0, 1, 2, 3], [1, 0, 1, 1], [2, 1, 0, 5], [3, 1, 5, 0]], dtype)
    got = found(Y, Y, np.ones(2), delta, p, isa=isa)
    assert_close(got, oracle(Y, Y, np.ones(2), delta, p), dtype)
    # the first two points are half a side apart on the first axis and agree on the second
    alone = found(Y[:2], Y[:2], np.ones(2), np.ascontiguousarray(delta[:2, :2]), p, isa=isa)
    np.testing.assert_array_equal(alone[1], 0)


@each("p", KINDS)
@each_kind
def test_points_in_one_place_are_finite_and_only_distances_repel(p, dtype, isa):
    Y = np.full((5, 2), 0.3, dtype)
    delta = np.ones((5, 5), dtype) - np.eye(5, dtype=dtype)
    energy, forces, stiffness = found(Y, Y, np.ones(2), delta, p, isa=isa)
    assert np.isfinite([energy, stiffness]).all()
    assert not forces.any()
    for part in found(Y, Y, np.ones(2), 0 * delta, p, isa=isa):
        np.testing.assert_array_equal(part, 0)


@each_kind
def test_many_axes(dtype, isa):
    rng = np.random.default_rng(1)
    Y = rng.random((9, 70)).astype(dtype)
    delta = rng.random((9, 9)).astype(dtype)
    got = found(Y, Y, np.ones(70), delta, 0.4, isa=isa)
    assert_close(got, oracle(Y, Y, np.ones(70), delta, 0.4), dtype)


@each("p", [0.0, 0.3])
@each_kind
def test_the_number_of_threads_does_not_change_a_byte(p, dtype, isa, same_for_threads):
    given = task(101, 700, 2, dtype)
    same_for_threads(lambda threads: found(*given, p, threads, isa))


def test_sizes_that_do_not_fit_are_refused():
    Z, Y, sides, delta = task(4, 6, 2, np.float64)
    out = np.empty(4), np.empty((4, 2)), np.empty(4)
    wrong = [
        (Z[:, :1].copy(), Y, sides, delta, 0.0, 1e-6, *out, 1),
        (Z, Y, sides[:1], delta, 0.0, 1e-6, *out, 1),
        (Z, Y, sides, delta[:, :5].copy(), 0.0, 1e-6, *out, 1),
        (Z, Y, sides, delta[:3], 0.0, 1e-6, *out, 1),
        (Z, Y, sides, delta[:0], 0.0, 1e-6, *out, 1),
        (Z, Y, sides, delta, np.nan, 1e-6, *out, 1),
        (Z, Y, sides, delta, 0.0, 0.0, *out, 1),
        (Z, Y, sides, delta, 0.0, 1e-6, out[0][:3], *out[1:], 1),
        (Z, Y, sides, delta, 0.0, 1e-6, out[0], out[1][:3], out[2], 1),
        (Z, Y, sides, delta, 0.0, 1e-6, *out[:2], out[2][:3], 1),
        (Z, Y, sides, delta, 0.0, 1e-6, *out, 0),
    ]
    for arguments in wrong:
        with pytest.raises(ValueError, match=r"torus_energy|threads"):
            _native.torus_energy(*arguments)
