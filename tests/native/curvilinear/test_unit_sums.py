"""unit_sums against its definition."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_kind


def oracle(Z, Y):
    """Sums of distances and of unit vectors, by matrices in long double."""
    along = Z.astype(np.longdouble)[:, None, :] - Y.astype(np.longdouble)[None, :, :]
    d = np.sqrt((along**2).sum(axis=2))
    units = np.divide(along, d[:, :, None], out=np.zeros_like(along), where=d[:, :, None] > 0)
    return d.sum(axis=1), units.sum(axis=1)


def found(Z, Y, threads=1, isa="auto"):
    sums, units = np.full(len(Z), np.nan), np.full(Z.shape, np.nan)
    _native.unit_sums(Z, Y, sums, units, threads, isa)
    return sums, units


def assert_close(got, true, dtype):
    for a, b in zip(got, true, strict=True):
        slack = 100 * np.finfo(dtype).eps * max(float(np.abs(b).max(initial=0)), 1.0)
        np.testing.assert_allclose(a, b.astype(float), rtol=0, atol=slack)


@each("d", [1, 2, 3, 5, 11])
@each_kind
def test_sums_equal_their_definition(d, dtype, isa, irregular):
    for m, n in [(1, 1), (2, 3), (3, 8), (5, 9), (33, 130), (7, 1100)]:
        Z, Y = irregular(m, d, seed=1).astype(dtype), irregular(n, d).astype(dtype)
        Y[0] = Z[-1]  # a pair at one place adds nothing
        assert_close(found(Z, Y, isa=isa), oracle(Z, Y), dtype)


@each("d", [1, 2, 3, 4])
@each_kind
def test_a_map_with_itself_leaves_out_equal_places(d, dtype, isa, irregular):
    Y = irregular(70, d).astype(dtype)
    Y[::3] = Y[0]
    assert_close(found(Y, Y, isa=isa), oracle(Y, Y), dtype)
    sums, units = found(np.repeat(Y[:1], 20, axis=0), np.repeat(Y[:1], 33, axis=0), isa=isa)
    assert not sums.any()
    assert not units.any()


@each_kind
def test_neither_threads_nor_company_change_a_byte(
    dtype, isa, irregular, same_for_threads, same_alone
):
    for d in (1, 2, 3, 4):
        Y = irregular(700, d).astype(dtype)
        same_for_threads(lambda threads, Y=Y: found(Y, Y, threads, isa))
        same_alone(lambda rows, Y=Y: found(Y[rows], Y, isa=isa), (0, 17, 699))


def test_shapes_that_do_not_fit_are_refused():
    Y = np.zeros((4, 2))
    sums, units = np.empty(4), np.empty((4, 2))
    for wrong in [
        (Y, np.zeros((4, 3)), sums, units, 1),
        (Y, Y, np.empty(3), units, 1),
        (Y, Y, sums, np.empty((4, 3)), 1),
        (np.zeros((4, 0)), np.zeros((4, 0)), sums, np.empty((4, 0)), 1),
        (Y, Y, sums, units, 0),
    ]:
        with pytest.raises(ValueError, match=r"unit_sums|threads"):
            _native.unit_sums(*wrong)
