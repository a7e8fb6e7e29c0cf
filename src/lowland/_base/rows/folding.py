"""The order in which results of tasks are merged: a tree of fixed fan-in over consecutive results.

Rounding depends on the order of a sum. A tree over the numbers of the tasks has one order,
whichever worker computes which part when; folding results as they arrive has as many as there are
arrivals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lowland._base.errors import DataError

FAN_IN = 8


def merge_all(values: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """``merge`` from the first to the last."""
    return functools.reduce(merge, values)


class TreeFold:
    """The tree, fed with results in order.

    Each level holds a group of up to FAN_IN. It is merged from the first to the last as its members
    come, so that a level holds one result. ``merge_group`` merges a whole group instead, such as by
    one task where results are futures.

    >>> tree = TreeFold(lambda a, b: f"({a}{b})")
    >>> for letter in "abcdefghij":
    ...     tree.add(letter)
    >>> tree.result()
    '((((((((ab)c)d)e)f)g)h)(ij))'
    """

    def __init__(
        self,
        merge: Callable[[Any, Any], Any],
        merge_group: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        self.merge, self.merge_group = merge, merge_group
        self.groups: list[list[Any]] = []  # the unfinished group of each level
        self.counts: list[int] = []  # how many members it has so far

    def add(self, value: Any) -> None:
        """One more result, the next in order."""
        level = 0
        while self._put(level, value):
            value, self.groups[level], self.counts[level] = self._merged(level), [], 0
            level += 1

    def _put(self, level: int, value: Any) -> bool:
        """Add a member to the group of a level; whether the group is complete."""
        if level == len(self.counts):
            self.groups.append([])
            self.counts.append(0)
        group = self.groups[level]
        if group and self.merge_group is None:
            group[0] = self.merge(group[0], value)
        else:
            group.append(value)
        self.counts[level] += 1
        return self.counts[level] == FAN_IN

    def _merged(self, level: int) -> Any:
        group = self.groups[level]
        return group[0] if len(group) == 1 else self.merge_group(group)  # type: ignore[misc]

    def result(self) -> Any:
        """All results merged; each level's incomplete last group is merged into the next level."""
        if not self.counts:
            raise DataError("there are no rows.")
        for level in range(len(self.counts) - 1):
            if self.counts[level]:
                self._put(level + 1, self._merged(level))
        return self._merged(len(self.counts) - 1)


# Samples of rows that depend on the seed and on the numbers of the rows only.
#
# Each row has a key, a mixed counter (Steele, Lea & Flood 2014, SplitMix64); a sample of n rows has
# the n smallest keys. So a sample can be drawn before anything is read, from any part of the table
# alone, and a smaller sample of the same seed is part of a larger one.


STEP = 1 << 22  # keys at a time
GOLDEN = 0x9E3779B97F4A7C15


def row_keys(start: int, stop: int, seed: int) -> np.ndarray:
    """The keys of the rows from ``start`` to ``stop`` - 1."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        offset = _mixed(np.array([seed], np.uint64) + np.uint64(GOLDEN))
        counters = np.arange(start, stop, dtype=np.uint64) * np.uint64(GOLDEN) + offset
        return _mixed(counters)


def _mixed(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def sampled_rows(n_rows: int, n: int, seed: int) -> np.ndarray:
    """The numbers of the n rows with the smallest keys, ascending; all rows if there are fewer."""
    if n >= n_rows:
        return np.arange(n_rows, dtype=np.int64)
    kept_keys, kept = np.empty(0, np.uint64), np.empty(0, np.int64)
    bound = np.iinfo(np.uint64).max
    for start in range(0, n_rows, STEP):
        stop = min(n_rows, start + STEP)
        keys = row_keys(start, stop, seed)
        near = np.flatnonzero(keys <= bound)
        kept_keys = np.concatenate([kept_keys, keys[near]])
        kept = np.concatenate([kept, near + start])
        if len(kept) > n:  # keys of different rows differ: the mixing is a bijection
            least = np.argpartition(kept_keys, n - 1)[:n]
            kept_keys, kept = kept_keys[least], kept[least]
            bound = kept_keys.max()
    return np.sort(kept)
