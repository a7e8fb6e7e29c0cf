"""What a person should know before choosing a method, stated once by the method itself."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Card", "Estimate"]


class Card(NamedTuple):
    """A method in four sentences."""

    keeps: str
    use: str
    avoid: str
    cost: str


class Estimate(NamedTuple):
    """Rough need of a fit on two cores: right within a factor of some 3, no promise."""

    seconds: float
    n_bytes: float
