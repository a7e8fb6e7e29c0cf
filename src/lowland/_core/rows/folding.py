"""The order in which results of tasks are merged: a tree of fixed fan-in over consecutive results.

Rounding depends on the order of a sum. A tree over the numbers of the tasks has one order, whoever
computes which part when; folding results as they arrive has as many as there are arrivals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

FAN_IN = 8


def merge_all(values: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """``merge`` from the first to the last."""
    return functools.reduce(merge, values)


class TreeFold:
    """The tree, fed with results in order; it holds one of them per level.

    A group of FAN_IN is merged from the first to the last, so it is merged as its members come.

    >>> tree = TreeFold(lambda a, b: f"({a}{b})")
    >>> for letter in "abcdefghij":
    ...     tree.add(letter)
    >>> tree.result()
    '((((((((ab)c)d)e)f)g)h)(ij))'
    """

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self.merge = merge
        self.levels: list[Any] = []  # what the unfinished group of each level has so far
        self.counts: list[int] = []  # how many members that are; 0: none

    def add(self, value: Any) -> None:
        """One more result, the next in order."""
        level = 0
        while self._put(level, value):
            value, self.levels[level], self.counts[level] = self.levels[level], None, 0
            level += 1

    def _put(self, level: int, value: Any) -> bool:
        """Add a member to the group of a level; whether the group is complete."""
        if level == len(self.counts):
            self.levels.append(None)
            self.counts.append(0)
        some = self.counts[level] > 0
        self.levels[level] = self.merge(self.levels[level], value) if some else value
        self.counts[level] += 1
        return self.counts[level] == FAN_IN

    def result(self) -> Any:
        """All results merged; each level's incomplete last group is merged into the next level."""
        for level in range(len(self.counts) - 1):
            if self.counts[level]:
                self._put(level + 1, self.levels[level])
        return self.levels[-1]
