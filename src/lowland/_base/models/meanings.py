"""What the contents of a fitted attribute must satisfy, declared beside its shape.

    edge_ends_: np.ndarray = fitted("n_edges", type=int, meaning=index_of("n_kept"))

A model file is checked against these, because compiled code trusts an index or a start that it is
given. Each meaning describes itself for the message, and proposes values that violate it, from
which the contract tests make hostile files. Bounds may name a size of the model ("n_samples").
Unknown values (NaN) satisfy every meaning; whether they may occur is declared by ``allows_nan``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

ROUNDING = 1e-6  # relative; sums and shares of real models differ from theirs by far less


class State(NamedTuple):
    """All fitted attributes of a model, and its sizes by name."""

    values: dict[str, Any]
    sizes: dict[str, int]


def size_of(expression: str | float, sizes: dict[str, int]) -> Any:
    """The value of "n_kept", "n_kept + 1" or a number; None if a size in it is not known."""
    if not isinstance(expression, str):
        return expression
    terms = [term.strip() for term in expression.split("+")]
    known = [int(term) if term.isdigit() else sizes.get(term) for term in terms]
    return None if None in known else sum(term for term in known if term is not None)


class Meaning:
    """A property of the contents of an attribute.

    One that ``relates`` to another attribute is checked after all that do not.
    """

    relates: ClassVar[bool] = False

    def flaw(self, value: Any, state: State) -> str | None:
        """The first entry that contradicts it, such as ``[30] = 100000``; None if there is none."""
        raise NotImplementedError

    def describe(self, state: State) -> str:
        """What was expected."""
        raise NotImplementedError

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        """Values of the same type and shape as a correct one that contradict the meaning."""
        raise NotImplementedError


def first_flaw(value: Any, wrong: Any) -> str | None:
    """Position and value of the first entry that is marked."""
    wrong = np.asarray(wrong)
    if not wrong.any():
        return None
    if wrong.ndim == 0:
        return f" = {value!r}"
    place = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return f"[{', '.join(map(str, place))}] = {np.asarray(value)[place].item()!r}"


def shown(bound: Any, state: State) -> str:
    """A bound for a message: a number, or a size by name and number."""
    return f"{bound} = {size_of(bound, state.sizes)}" if isinstance(bound, str) else f"{bound:g}"


def with_entry(value: Any, entry: Any, place: int = -1) -> Any:
    """A copy of an array with another entry; for a number, the entry itself."""
    if not isinstance(value, np.ndarray):
        return type(value)(entry)
    changed = value.copy()
    changed.flat[place] = entry
    return changed


@dataclasses.dataclass(frozen=True)
class Interval(Meaning):
    """Each value lies between two bounds, each a number or a size; None is no bound."""

    low: float | str | None = None
    high: float | str | None = None
    closed: Literal["left", "right", "both", "neither"] = "both"
    what: str = "a value"

    def flaw(self, value: Any, state: State) -> str | None:
        low, high = self._bounds(state)
        numbers = value.data if hasattr(value, "indptr") else np.asarray(value)
        wrong = np.zeros(numbers.shape, bool)
        if low is not None:
            wrong |= numbers < low if self._closed("left") else numbers <= low
        if high is not None:
            wrong |= numbers > high if self._closed("right") else numbers >= high
        return first_flaw(numbers if numbers.ndim else value, wrong)

    def describe(self, state: State) -> str:
        low, high = self._bounds(state)
        parts = []
        if low is not None:
            parts.append(f"{'>=' if self._closed('left') else '>'} {shown(self.low, state)}")
        if high is not None:
            parts.append(f"{'<=' if self._closed('right') else '<'} {shown(self.high, state)}")
        return f"{self.what} {' and '.join(parts)}"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        low, high = self._bounds(state)
        whole = np.asarray(value).dtype.kind in "iu"
        far = 2**62 if whole else 1e300
        beyond = []
        if low is not None:
            beyond += [low - 1, -far] + ([] if self._closed("left") else [low])
        if high is not None:
            beyond += [high + 1, far] + ([] if self._closed("right") else [high])
        limit = np.iinfo(np.asarray(value).dtype).max if whole else np.inf
        for entry in beyond:
            if abs(entry) <= limit:
                yield with_entry(value, entry)

    def _closed(self, side: str) -> bool:
        return self.closed in (side, "both")

    def _bounds(self, state: State) -> tuple[Any, Any]:
        low = None if self.low is None else size_of(self.low, state.sizes)
        high = None if self.high is None else size_of(self.high, state.sizes)
        return low, high


def index_of(axis: str) -> Interval:
    """Each value is an index into an axis of that size."""
    return Interval(0, axis, "left", f"an index into {axis}:")


def count(low: int | str = 0, high: int | str | None = None) -> Interval:
    """A number of things, both bounds included."""
    return Interval(low, high, "both", "a number")


def at_least(low: float) -> Interval:
    return Interval(low)


def above(low: float) -> Interval:
    return Interval(low, closed="neither")


def share() -> Interval:
    """A part of a whole, from 0 to 1 up to rounding."""
    return Interval(-ROUNDING, 1 + ROUNDING, what="a share")


class Ascending(Meaning):
    """Each value is at least the one before; greater, if ``strict``."""

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict

    def flaw(self, value: Any, state: State) -> str | None:
        wrong = np.zeros(len(value), bool)
        after, before = value[1:], value[:-1]
        wrong[1:] = after <= before if self.strict else after < before
        return first_flaw(value, wrong)

    def describe(self, state: State) -> str:
        return f"ascending values{', each once' if self.strict else ''}"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        if len(value) > 1 and value[0] != value[-1]:
            yield value[::-1].copy()
        if len(value) > 1 and self.strict:
            yield with_entry(value, value[-2])


@dataclasses.dataclass(frozen=True)
class Starts(Meaning):
    """Where the parts of an axis start: from 0, never decreasing, up to the size of the axis."""

    axis: str

    def flaw(self, value: Any, state: State) -> str | None:
        wrong = np.zeros(len(value), bool)
        wrong[1:] = value[1:] < value[:-1]
        wrong[0] |= value[0] != 0
        wrong[-1] |= value[-1] != state.sizes[self.axis]
        wrong |= (value < 0) | (value > state.sizes[self.axis])
        return first_flaw(value, wrong)

    def describe(self, state: State) -> str:
        return f"starts from 0 to {self.axis} = {state.sizes[self.axis]} that never decrease"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        middle, far = len(value) // 2, int(np.iinfo(value.dtype).max)
        for entry in (-1, value[-1] + 1, 100_000 + value[-1], far, -far - 1):
            yield with_entry(value, entry, middle)
        yield with_entry(value, 1, 0)
        yield with_entry(value, value[-1] + 1)
        if value[-1] > 0:
            yield with_entry(value, value[-1] - 1)
            yield value[::-1].copy()


class Distinct(Meaning):
    """No value occurs twice."""

    def flaw(self, value: Any, state: State) -> str | None:
        wrong = np.ones(len(value), bool)
        wrong[np.unique(value, return_index=True)[1]] = False
        return first_flaw(value, wrong)

    def describe(self, state: State) -> str:
        return "each value once"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        if len(value) > 1:
            yield with_entry(value, value[0])


class Permutation(Meaning):
    """Each of the numbers 1 to n once."""

    def flaw(self, value: Any, state: State) -> str | None:
        inside = (value >= 1) & (value <= len(value))
        return first_flaw(value, ~inside) or Distinct().flaw(value, state)

    def describe(self, state: State) -> str:
        return "each rank from 1 to n once"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        for entry in (0, -1, len(value) + 1, 2**31 - 1):
            yield with_entry(value, entry)
        if len(value) > 1:
            yield with_entry(value, value[0])


@dataclasses.dataclass(frozen=True)
class SumsTo(Meaning):
    """The values add up to a number or a size."""

    total: float | str

    def flaw(self, value: Any, state: State) -> str | None:
        with np.errstate(over="ignore", invalid="ignore"):
            found, total = float(value.sum(dtype=np.float64)), size_of(self.total, state.sizes)
        near = abs(found - total) <= ROUNDING * abs(total)
        return None if near else f" with the sum {found:g}"

    def describe(self, state: State) -> str:
        return f"the sum {shown(self.total, state)}"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        yield with_entry(value, value[-1] + 1)


@dataclasses.dataclass(frozen=True)
class Names(Meaning):
    """One of a few words."""

    words: tuple[str, ...]

    def flaw(self, value: Any, state: State) -> str | None:
        return None if str(value) in self.words else f" = {str(value)[:80]!r}"

    def describe(self, state: State) -> str:
        return " | ".join(map(repr, self.words))

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        yield f"no {value}"


class Semidefinite(Meaning):
    """A symmetric matrix without negative eigenvalues, up to rounding."""

    def flaw(self, value: Any, state: State) -> str | None:
        diagonal = np.diagonal(value)
        if (diagonal < 0).any():
            i = int(np.argmax(diagonal < 0))
            return f"[{i}, {i}] = {diagonal[i].item()!r}"
        root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            scaled = value / root[:, None] / root  # of correlations; 0 where nothing varies
        wrong = ~(np.abs(scaled) <= 1 + ROUNDING)
        with np.errstate(invalid="ignore"):
            wrong |= ~(np.abs(scaled - scaled.T) <= ROUNDING)
        wrong[diagonal == 0] = value[diagonal == 0] != 0
        if found := first_flaw(value, wrong):
            return found
        try:  # O(p^3 / 3), a second for 5000 columns
            np.linalg.cholesky(scaled + ROUNDING * len(value) * np.eye(len(value)))
        except np.linalg.LinAlgError:
            return " with a negative eigenvalue"
        return None

    def describe(self, state: State) -> str:
        return "a symmetric matrix without negative eigenvalues"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        yield with_entry(value, -1.0)
        yield -1.0 - value
        if len(value) > 1:
            yield with_entry(value, value[0, 1] + 1.0, 1)
            both = with_entry(value, 10.0 * (1.0 + value.max()), 1)
            both[1, 0] = both[0, 1]
            yield both


# What the contents of a fitted attribute must satisfy beside those of another attribute.


@dataclasses.dataclass(frozen=True)
class Best(Meaning):
    """True for the best of the ranks in another attribute, and for at least one."""

    ranks: str
    relates: ClassVar[bool] = True

    def flaw(self, value: Any, state: State) -> str | None:
        kept = int(value.sum())
        return "without a True" if not kept else first_flaw(value, value != self._best(kept, state))

    def describe(self, state: State) -> str:
        return f"True for the best ranks in {self.ranks!r}, and for at least one"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        yield np.zeros_like(value)
        if not value.all():
            yield ~value

    def _best(self, kept: int, state: State) -> np.ndarray:
        return state.values[self.ranks] <= kept


@dataclasses.dataclass(frozen=True)
class RowCounts(Meaning):
    """How often each row of another attribute is True."""

    table: str
    relates: ClassVar[bool] = True

    def flaw(self, value: Any, state: State) -> str | None:
        return first_flaw(value, value != state.values[self.table].sum(axis=1))

    def describe(self, state: State) -> str:
        return f"the number of True in each row of {self.table!r}"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        yield with_entry(value, value[-1] + 1)
        yield with_entry(value, -1)


@dataclasses.dataclass(frozen=True)
class KnownOutside(Meaning):
    """NaN only in the rows that another attribute lists, and there in whole rows."""

    rows: str
    relates: ClassVar[bool] = True

    def flaw(self, value: Any, state: State) -> str | None:
        listed = np.zeros(len(value), bool)
        listed[state.values[self.rows]] = True
        unknown = np.isnan(value)
        return first_flaw(value, unknown & (~listed | ~unknown.all(axis=1))[:, None])

    def describe(self, state: State) -> str:
        return f"numbers, or NaN in whole rows of {self.rows!r}"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        kept = np.setdiff1d(np.arange(len(value)), state.values[self.rows])
        yield with_entry(value, np.nan, int(kept[0]) * value.shape[1])


@dataclasses.dataclass(frozen=True)
class Without(Meaning):
    """No index that another attribute lists."""

    others: str
    relates: ClassVar[bool] = True

    def flaw(self, value: Any, state: State) -> str | None:
        return first_flaw(value, np.isin(value, state.values[self.others]))

    def describe(self, state: State) -> str:
        return f"no index that {self.others!r} lists"

    def violations(self, value: Any, state: State) -> Iterator[Any]:
        if len(state.values[self.others]):
            yield with_entry(value, state.values[self.others][0])
