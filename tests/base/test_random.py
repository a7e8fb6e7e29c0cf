"""Seeds become generators, and numpy's global state stays out of it."""

import numpy as np
import pytest

from lowland._base.context import generator
from lowland._base.errors import ParameterError
from support.cases import each


def draws(rng):
    return rng.integers(2**62, size=4).tolist()


@pytest.mark.parametrize("seed", [0, 7, np.int32(7)])
def test_an_integer_always_gives_the_same_stream(seed):
    assert draws(generator(seed)) == draws(generator(seed))
    assert draws(generator(seed)) == draws(np.random.default_rng(int(seed)))


def test_none_gives_a_fresh_stream_each_time():
    assert draws(generator(None)) != draws(generator(None))


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(3)
    assert generator(rng) is rng


def test_a_random_state_is_reproducible_and_moves_on():
    state = np.random.RandomState(5)
    first, second = draws(generator(state)), draws(generator(state))
    assert first != second
    assert first == draws(generator(np.random.RandomState(5)))


@pytest.mark.parametrize("seed", [None, 0, 11])
def test_the_global_state_of_numpy_is_not_touched(seed):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    draws(generator(seed))
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@each("seed", [-1, 1.5, "7", True, np.random])
def test_anything_else_is_refused_with_its_value(seed):
    with pytest.raises(ParameterError, match="random_state=") as error:
        generator(seed)
    assert repr(seed) in str(error.value)
