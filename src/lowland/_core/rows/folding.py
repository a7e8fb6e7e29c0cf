"""The order in which results of tasks are merged: a tree of fixed fan-in over consecutive results.

Rounding depends on the order of a sum. A tree over the numbers of the tasks has one order, whoever
computes which part when; folding results as they arrive has as many as there are arrivals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["FAN_IN", "TreeFold", "merge_all"]

FAN_IN = 8


def merge_all(values: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """``merge`` from the first to the last."""
    return functools.reduce(merge, values)


class TreeFold:
    """The tree, fed with results in order; it holds at most FAN_IN of them per level.

    >>> tree = TreeFold(lambda a, b: f"({a}{b})")
    >>> for letter in "abcdefghij":
    ...     tree.add(letter)
    >>> tree.result()
    '((((((((ab)c)d)e)f)g)h)(ij))'
    """

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self.merge = merge
        self.levels: list[list[Any]] = [[]]

    def add(self, value: Any) -> None:
        """One more result, the next in order."""
        for level in range(len(self.levels) + 1):
            if level == len(self.levels):
                self.levels.append([])
            self.levels[level].append(value)
            if len(self.levels[level]) < FAN_IN:
                return
            value = merge_all(self.levels[level], self.merge)
            self.levels[level] = []

    def result(self) -> Any:
        """All results merged; each level's incomplete last group is merged into the next level."""
        for level, values in enumerate(self.levels[:-1]):
            if values:
                self.levels[level + 1].append(merge_all(values, self.merge))
                self.levels[level] = []
        return merge_all(self.levels[-1], self.merge)
