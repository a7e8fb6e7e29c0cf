"""One way to turn a seed into a random generator; numpy's global state is never touched."""

from __future__ import annotations

import numbers

import numpy as np

from lowland._core.errors import ParameterError
from lowland._core.wording import shown


def generator(
    seed: int | np.random.Generator | np.random.RandomState | None,
) -> np.random.Generator:
    """The ``Generator`` that ``seed`` stands for.

    ``None`` draws fresh entropy from the operating system, an integer always gives the same
    stream, a ``Generator`` is used as it is (its stream moves on), and a ``RandomState`` is asked
    for 128 bits, so that it moves on too and two calls give two different streams.

    >>> generator(0).random() == generator(0).random()
    True
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(0, 2**32, size=4, dtype=np.uint32))
    if seed is None:
        return np.random.default_rng()
    # bool is an Integral, but random_state=True is a mistake, not a seed
    if isinstance(seed, numbers.Integral) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(int(seed))
    raise ParameterError(
        f"random_state={shown(seed)} is not allowed; "
        "give None, an integer >= 0, a numpy Generator or RandomState."
    )
