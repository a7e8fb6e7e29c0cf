"""What can be read from a map: declared by each method, shown by the report and the docs."""

from __future__ import annotations

from typing import NamedTuple


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
