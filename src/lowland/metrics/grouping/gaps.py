"""Whether the gap between two islands of a map is in the data."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Gap"]


class Gap(NamedTuple):
    """The gap between two islands; one and the same number for a split inside of an island."""

    one: int
    other: int
    severed: float  # share of neighbor edges that cross the gap
    reference: float  # the same for a cut through one cloud of the same shape
    cut: float  # severed / reference
    verdict: str  # "real", "not in the data", "unclear" or "bridged"
    through: tuple[int, ...] = ()  # islands that connect the two, where the verdict is "bridged"
