"""Where a map can be believed: misplaced points, gaps that are not in the data, stability, chance.

:func:`trust` takes the data and a map of any tool.
"""

from lowland.trust.result import (
    Chance,
    Contrast,
    Island,
    OtherMap,
    Plateau,
    Sentence,
    Stability,
    Trust,
)

__all__ = ["Chance", "Contrast", "Island", "OtherMap", "Plateau", "Sentence", "Stability", "Trust"]
