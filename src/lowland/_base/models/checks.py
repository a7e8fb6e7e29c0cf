"""What the contents of a fitted attribute must satisfy, declared next to its shape.

    edge_ends_: np.ndarray = fitted("n_edges", type=int, meaning=index_of("n_kept"))

Compiled code trusts what it gets from a fitted model: types, shapes, indices, starts. So a model
file is refused if its state contradicts its declaration: :func:`check_state`. Checks say nothing
about whether the numbers are those of a good fit. Bounds may name a size of the model
("n_samples"). Unknown values (NaN) pass every check; whether they may occur is declared by
``allows_nan``. Errors are fragments without the name of the method.
"""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any, Literal

import numpy as np

from lowland._base.errors import DataError, ModelFileError
from lowland._base.params import Check, Declared, Fitted
from lowland._base.sparse_input import well_formed
from lowland._base.validation import is_sparse


def size_of(expression: str | float | None, sizes: dict[str, int]) -> Any:
    """The value of "n_kept", "n_kept + 1" or a number; None if a size in it is not known."""
    if not isinstance(expression, str):
        return expression
    terms = [term.strip() for term in expression.split("+")]
    known = [int(term) if term.isdigit() else sizes.get(term) for term in terms]
    return None if None in known else sum(term for term in known if term is not None)


def first_flaw(value: Any, wrong: Any) -> str | None:
    """Position and value of the first entry that is marked."""
    wrong = np.asarray(wrong)
    if not wrong.any():
        return None
    if wrong.ndim == 0:
        return f" = {value!r}"
    place = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return f"[{', '.join(map(str, place))}] = {np.asarray(value)[place].item()!r}"


def shown(bound: Any, sizes: dict[str, int]) -> str:
    """A bound for a message: a number, or a size by name and number."""
    return f"{bound} = {size_of(bound, sizes)}" if isinstance(bound, str) else f"{bound:g}"


@dataclasses.dataclass(frozen=True)
class Interval(Check):
    """Each value lies between two bounds, each a number or a size; None is not a bound."""

    low: float | str | None = None
    high: float | str | None = None
    outside: Literal["low", "high"] | None = None  # this bound is not a value itself
    what: str = "a value"

    def flaw(self, value: Any, sizes: dict[str, int]) -> str | None:
        found = value.data if hasattr(value, "indptr") else np.asarray(value)
        wrong = np.zeros(found.shape, bool)
        # a size that no attribute has, such as that of a map that was not kept, is not a bound
        low, high = size_of(self.low, sizes), size_of(self.high, sizes)
        if low is not None:
            wrong |= found <= low if self.outside == "low" else found < low
        if high is not None:
            wrong |= found >= high if self.outside == "high" else found > high
        return first_flaw(found if found.ndim else value, wrong)

    def describe(self, sizes: dict[str, int]) -> str:
        parts = []
        if self.low is not None:
            parts.append(f"{'>' if self.outside == 'low' else '>='} {shown(self.low, sizes)}")
        if self.high is not None:
            parts.append(f"{'<' if self.outside == 'high' else '<='} {shown(self.high, sizes)}")
        return f"{self.what} {' and '.join(parts)}"


def index_of(axis: str) -> Interval:
    """Each value is an index into an axis of that size."""
    return Interval(0, axis, "high", f"an index into {axis}:")


def count(low: int | str = 0, high: int | str | None = None) -> Interval:
    """A number of things, both bounds included."""
    return Interval(low, high, what="a number")


def at_least(low: float) -> Interval:
    return Interval(low)


def above(low: float) -> Interval:
    return Interval(low, outside="low")


def share() -> Interval:
    """A part of a whole, from 0 to 1 up to rounding."""
    return Interval(-1e-6, 1 + 1e-6, what="a share")


class Ascending(Check):
    """Each value is at least the one before; greater, if ``strict``."""

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict

    def flaw(self, value: Any, sizes: dict[str, int]) -> str | None:
        wrong = np.zeros(len(value), bool)
        after, before = value[1:], value[:-1]
        wrong[1:] = after <= before if self.strict else after < before
        return first_flaw(value, wrong)

    def describe(self, sizes: dict[str, int]) -> str:
        return f"ascending values{', each once' if self.strict else ''}"


def some_of(axis: str) -> tuple[Check, ...]:
    """Indices into an axis of that size, ascending, each at most once."""
    return index_of(axis), Ascending(strict=True)


@dataclasses.dataclass(frozen=True)
class Starts(Check):
    """Where the parts of an axis start: from 0, never decreasing, up to the size of the axis.

    No part is empty, if ``strict``.
    """

    axis: str
    strict: bool = False

    def flaw(self, value: Any, sizes: dict[str, int]) -> str | None:
        end = sizes[self.axis]
        wrong = (value < 0) | (value > end)
        wrong[1:] |= value[1:] < value[:-1] + self.strict
        wrong[0] |= value[0] != 0
        wrong[-1] |= value[-1] != end
        return first_flaw(value, wrong)

    def describe(self, sizes: dict[str, int]) -> str:
        how = "increase" if self.strict else "never decrease"
        return f"starts from 0 to {self.axis} = {sizes[self.axis]} that {how}"


class Distinct(Check):
    """No value occurs twice."""

    def flaw(self, value: Any, sizes: dict[str, int]) -> str | None:
        wrong = np.ones(len(value), bool)
        wrong[np.unique(value, return_index=True)[1]] = False
        return first_flaw(value, wrong)

    def describe(self, sizes: dict[str, int]) -> str:
        return "each value once"


class Permutation(Check):
    """Each of the numbers 1 to n once."""

    def flaw(self, value: Any, sizes: dict[str, int]) -> str | None:
        inside = (value >= 1) & (value <= len(value))
        return first_flaw(value, ~inside) or Distinct().flaw(value, sizes)

    def describe(self, sizes: dict[str, int]) -> str:
        return "each rank from 1 to n once"


# The fitted state of a model file, checked against what the method declares.

# What the base class itself leaves behind; names of columns only if the data had them.
REQUIRED = {"n_features_in_": Fitted(None, int, meaning=(count(1),))}
POSSIBLE = {
    "feature_names_in_": Fitted(("n_features",), str),
    # of metric="gower"
    "column_ranges_": Fitted(("n_features",), float, meaning=(above(0),)),
    # of data whose fourth powers float32 cannot hold
    "needs_float64_": Fitted(None, bool),
}
# What fits leave behind. Kernels are compiled for these types and no others.
SCALARS: dict[type, tuple[type, ...]] = {
    float: (float, np.float64, np.float32),
    int: (int, np.int64, np.int32),
    bool: (bool, np.bool_),
    str: (str, np.str_),
}
NUMBERS = {float: ("float64", "float32"), int: ("int64", "int32"), bool: ("bool",)}


def in_own_order(value: Any) -> Any:
    """An array of a machine with another order of bytes, in the order of this one."""
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return value.astype(value.dtype.newbyteorder("="))
    return value


def check_state(state: dict[str, Any], model: Declared) -> None:
    """Refuse attributes that are missing or unknown, or that contradict their declaration.

    ``model`` has the parameters of the file, and none of its attributes yet.
    """
    required = {**REQUIRED, **model.fitted_attributes}
    declared = {**POSSIBLE, **required}
    for name in required:
        if name not in state:
            raise ModelFileError(f"lacks the attribute {name!r}")
    for name, value in state.items():
        if name not in declared:
            raise ModelFileError(f"has no attribute {name!r}")
        _check_kind(name, value, declared[name])
    sizes = sizes_of(state, model)
    for name, value in state.items():
        for check in declared[name].meaning if value is not None else ():
            if flaw := check.flaw(value, sizes):
                raise ModelFileError(f"has {name!r}{flaw}, expected {check.describe(sizes)}")


def _check_kind(name: str, value: Any, expected: Fitted) -> None:
    if expected.optional and value is None:
        return
    dimensions = len(expected.shape or ())
    if not _is_of_kind(value, expected):
        got = type(value).__name__
        if hasattr(value, "dtype"):
            got = f"{value.dtype} of shape {value.shape}"
        raise ModelFileError(
            f"has {name!r} as {got}, expected {expected.type.__name__} in {dimensions} dimensions"
        )
    if is_sparse(value):
        try:
            well_formed(value, repr(name))
        except DataError as error:
            raise ModelFileError(f"has a malformed attribute: {error}") from None
    entries = np.asarray(value.data if is_sparse(value) else value)
    broken = np.isinf if expected.allows_nan else lambda x: ~np.isfinite(x)
    if entries.dtype.kind == "f" and (wrong := broken(entries)).any():
        place = "" if not entries.ndim else f"[{', '.join(map(str, np.argwhere(wrong)[0]))}]"
        raise ModelFileError(
            f"has {name!r}{place} = {entries[wrong].flat[0]}, a value that is not finite"
        )


def _is_of_kind(value: Any, expected: Fitted) -> bool:
    """Whether type and number of dimensions are as declared."""
    if not expected.shape:
        known = type(value) in SCALARS[expected.type]
        return known and (expected.type is not int or abs(int(value)) < 2**63)
    if is_sparse(value):
        is_matrix = value.format == "csr" and expected.sparse
        return is_matrix and value.ndim == len(expected.shape) and value.dtype in NUMBERS[float]
    if not isinstance(value, np.ndarray) or value.ndim != len(expected.shape):
        return False
    if expected.type in (str, object) and value.dtype.kind in "OU":
        return True
    return value.dtype in NUMBERS.get(expected.type, ()) or (
        expected.type is object and value.dtype.kind in "biuf" and value.dtype != np.float16
    )


def sizes_of(state: dict[str, Any], model: Declared) -> dict[str, int]:
    """The sizes of the attributes; one name means one size."""
    declared = {**model.fitted_attributes, **REQUIRED, **POSSIBLE}
    sizes = _stated_sizes(state, model)
    shapes = [
        (name, size, expression)
        for name, value in state.items()
        if value is not None
        for size, expression in zip(np.shape(value), declared[name].shape or (), strict=True)
    ]
    for _, size, expression in sorted(shapes, key=lambda entry: "+" in entry[2]):
        term, _, more = expression.partition(" + ")  # "n_kept + 1" gives n_kept, too
        sizes.setdefault(term, size - int(more or 0))
    for name, size, expression in shapes:
        _check_size(name, np.shape(state[name]), size, expression, sizes)
        if size == 0 and not declared[name].may_be_empty:
            raise ModelFileError(f"has {name!r} of shape {np.shape(state[name])}, which is empty")
    for whole, parts in model.size_rules.items():
        total = size_of(parts, sizes)
        if total is not None and sizes.get(whole, total) != total:
            raise ModelFileError(f"has {whole} = {sizes[whole]}, but {parts} = {total}")
    return sizes


def _stated_sizes(state: dict[str, Any], model: Declared) -> dict[str, int]:
    """Sizes that ``n_something_`` attributes state, or else the parameter ``n_components``."""
    sizes = {"n_features": int(state["n_features_in_"])}
    if sizes["n_features"] < 1:
        raise ModelFileError(f"has 'n_features_in_' = {sizes['n_features']}, expected >= 1")
    for name in model.fitted_attributes:
        if name.startswith("n_") and state.get(name) is not None:
            sizes[name[:-1]] = int(state[name])
    wanted = getattr(model, "n_components", None)
    if isinstance(wanted, numbers.Integral):
        sizes.setdefault("n_components", int(wanted))
    return sizes


def _check_size(
    name: str, shape: tuple[int, ...], size: int, expression: str, sizes: dict[str, int]
) -> None:
    expected = size_of(expression, sizes)
    if size != expected:
        shown = expression if expression.isdigit() else f"{expression} = {expected}"
        raise ModelFileError(f"has {name!r} of shape {shape}, expected {shown}")
