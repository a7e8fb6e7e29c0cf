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
    """The tree, fed with results in order; it holds one partial sum per level.

    >>> tree = TreeFold(lambda a, b: f"({a}{b})")
    >>> for letter in "abcdefghij":
    ...     tree.add(letter)
    >>> tree.result()
    '((((((((ab)c)d)e)f)g)h)(ij))'
    """

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self.merge = merge
        self.counts = [0]  # values in each level's incomplete group
        self.groups: list[Any] = [None]  # these values, merged from the first to the last

    def add(self, value: Any) -> None:
        """One more result, the next in order."""
        for level in range(len(self.counts) + 1):
            if level == len(self.counts):
                self.counts.append(0)
                self.groups.append(None)
            self._put(level, value)
            if self.counts[level] < FAN_IN:
                return
            value = self.groups[level]
            self.counts[level], self.groups[level] = 0, None

    def result(self) -> Any:
        """All results merged; each level's incomplete last group is merged into the next level."""
        for level in range(len(self.counts) - 1):
            if self.counts[level]:
                self._put(level + 1, self.groups[level])
                self.counts[level], self.groups[level] = 0, None
        return self.groups[-1]

    def _put(self, level: int, value: Any) -> None:
        held = self.counts[level]
        self.groups[level] = value if held == 0 else self.merge(self.groups[level], value)
        self.counts[level] = held + 1
