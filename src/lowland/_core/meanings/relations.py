"""What the contents of a fitted attribute must satisfy beside those of another attribute."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from lowland._core.meanings.contents import Meaning, State, first_flaw, with_entry


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
