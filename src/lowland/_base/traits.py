"""What can be read from a map: declared by each method, shown by the report and the docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# What a person should know before choosing a method, stated once by the method itself.


class Card(NamedTuple):
    """A method in four sentences."""

    keeps: str
    use: str
    avoid: str
    cost: str


@dataclass(frozen=True)
class Estimate:
    """Rough need of some work on two cores: right within a factor of about 3, no promise.

    ``n_bytes`` is the peak of memory. Estimates of steps that follow each other are added: seconds
    add up, and of the memory the larger one counts, because a step frees what it worked with.
    Arrays that stay are added by :meth:`holding`. A number times an estimate is that many
    repetitions, one after the other.

    >>> Estimate(1.0, 8e6) + 10 * Estimate(0.5, 2e6)
    Estimate(seconds=6.0, n_bytes=8000000.0)
    >>> Estimate(1.0, 8e6).holding(1e6).n_bytes
    9000000.0
    """

    seconds: float
    n_bytes: float

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.seconds + other.seconds, max(self.n_bytes, other.n_bytes))

    def __mul__(self, times: float) -> Estimate:
        return Estimate(times * self.seconds, self.n_bytes)

    __rmul__ = __mul__

    def holding(self, n_bytes: float) -> Estimate:
        """The same while ``n_bytes`` of arrays are held."""
        return Estimate(self.seconds, self.n_bytes + n_bytes)


class Reading(NamedTuple):
    """What the parts of a map mean, one sentence each.

    A family base declares it for its methods; a method that differs declares
    ``reading = Base.reading._replace(scale=...)``.
    """

    axes: str  # what a position along an axis means
    distances: str  # what near and far mean
    gaps: str  # what an empty space between groups means
    sizes: str  # what the size and the density of a group mean
    scale: str  # what sets the scale of the axes
