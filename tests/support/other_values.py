"""Other values of a parameter, derived from its constraint.

For a test that has to change a parameter it knows nothing of: choices, the other truth value, and
numbers near the one in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lowland._base.constraints import (
    Boolean,
    Constraint,
    Either,
    Integer,
    Null,
    OneOf,
    Real,
    Seed,
    Several,
)

# "precomputed" changes the meaning of X, so it is not another value for the same X
ABOUT_DATA = ("precomputed",)


def other_values(constraint: Constraint, value: Any) -> list[Any]:
    """Values that ``constraint`` allows beside ``value``; none for functions, arrays and names.

    >>> other_values(Integer(1), 10), other_values(OneOf("a", "b", "c"), "b")
    ([20, 5, 11, 9, 2], ['a', 'c'])
    >>> other_values(Boolean(), False), other_values(Null() | Real(0, 1), None)
    ([True], [0.5, 0.1])
    """
    found: list[Any] = []
    for other in _others(constraint, value):
        if constraint.allows(other) and not _equal(other, value):
            found += [] if any(_equal(other, known) for known in found) else [other]
    return found


def _others(constraint: Constraint, value: Any) -> Iterator[Any]:
    if isinstance(constraint, Either):
        for option in constraint.options:
            yield from _others(option, value)
    elif isinstance(constraint, OneOf):
        yield from (choice for choice in constraint.choices if choice not in ABOUT_DATA)
    elif isinstance(constraint, Boolean | Null):
        yield None if isinstance(constraint, Null) else not value
    elif isinstance(constraint, Integer):
        yield from _integers(value)
    elif isinstance(constraint, Real):
        yield from _numbers(value)
    elif isinstance(constraint, Several) and isinstance(value, list | tuple):
        kind = type(value)
        for items in zip(*(list(_others(constraint.each, item)) for item in value), strict=False):
            yield kind(items)
    elif isinstance(constraint, Seed):
        yield 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _integers(value: Any) -> Iterator[int]:
    if _is_number(value):
        near = (2 * int(value), int(value) // 2, int(value) + 1, int(value) - 1)
        yield from (*near, int(value) // 20, 2)  # many steps, far beyond the last one that counts
    else:  # the method chose one: a few that it may not have chosen
        yield from (5, 9, 3, 20, 1)


def _numbers(value: Any) -> Iterator[float]:
    if _is_number(value) and value != 0:
        yield from (2.0 * value, value / 2, value + 1.0, value / 10, 1 - value)
    else:
        yield from (0.5, 2.0, 0.1, -0.5)


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(np.array_equal(a, b))
