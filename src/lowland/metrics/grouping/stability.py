"""Whether the islands of a map come again in other maps of the same rows."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["IslandStability"]


class IslandStability(NamedTuple):
    """How well an island comes again: mean Jaccard index, and its 90 % interval."""

    island: int
    jaccard: float
    low: float
    high: float
    verdict: str  # "stable", "doubtful" or "unstable"
