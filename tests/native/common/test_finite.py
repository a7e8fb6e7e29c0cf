"""all_finite against numpy.isfinite, at every place where a block could be cut wrongly."""

import numpy as np
import pytest

from lowland._native import all_finite
from support.cases import each
from support.kernels import each_kind

BLOCK = 1 << 16  # elements per task
BAD = [np.nan, np.inf, -np.inf]


@each("size", [*range(1, 40), 63, 64, 65, 97])
@each_kind
def test_a_bad_value_is_seen_at_every_place_of_a_short_array(size, dtype, isa):
    x = np.linspace(-1e30, 1e30, size, dtype=dtype)
    assert all_finite(x, 1, isa)
    for place in range(size):
        for bad in BAD:
            y = x.copy()
            y[place] = bad
            assert not all_finite(y, 1, isa)


@each("threads", [1, 2, 5])
@each_kind
def test_a_bad_value_is_seen_on_both_sides_of_every_block_edge(threads, dtype, isa):
    x = np.ones(3 * BLOCK + 37, dtype)
    assert all_finite(x, threads, isa)
    edges = [0, BLOCK, 2 * BLOCK, 3 * BLOCK, x.size]
    near = {e + d for e in edges for d in (*range(-34, 34), 100) if 0 <= e + d < x.size}
    for place in sorted(near):
        x[place] = BAD[place % 3]
        assert not all_finite(x, threads, isa), place
        x[place] = 1
    assert all_finite(x, threads, isa)


@each_kind
def test_infinities_of_both_signs_do_not_cancel(dtype, isa):
    x = np.zeros(100, dtype)
    x[[3, 3 + 32]] = np.inf, -np.inf
    assert not all_finite(x, 1, isa)


@each_kind
def test_the_largest_and_smallest_numbers_are_finite(dtype, isa):
    limits = np.finfo(dtype)
    for value in (limits.max, limits.min, limits.tiny, limits.smallest_subnormal, -0.0):
        assert all_finite(np.full(70_000, value, dtype), 2, isa)


@each_kind
def test_no_elements_are_finite(dtype, isa):
    assert all_finite(np.empty(0, dtype), 1, isa)
    assert all_finite(np.empty((0, 7), dtype), 2, isa)


@each_kind
def test_arrays_of_any_number_of_dimensions_are_read_whole(dtype, isa):
    x = np.zeros((5, 6, 7), dtype)
    assert all_finite(x, 1, isa)
    x[-1, -1, -1] = np.nan
    assert not all_finite(x, 1, isa)
    assert not all_finite(np.array(np.inf, dtype), 1, isa)


@each_kind
def test_memory_that_starts_at_an_odd_address_is_read_right(dtype, isa):
    x = np.zeros(200, dtype)
    for start in range(1, 9):
        x[-1] = 0
        assert all_finite(x[start:], 1, isa)
        x[-1] = np.nan
        assert not all_finite(x[start:], 1, isa)
        assert all_finite(x[start:-1], 1, isa)


def test_gaps_between_elements_are_a_type_error_and_not_skipped():
    with pytest.raises(TypeError, match="incompatible"):
        all_finite(np.zeros((6, 4))[:, ::2], 1)
