"""Chains of islands that the data connect, although two of them lie far apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def with_bridges(gaps: list[Any], verdict_of: Callable[[float], str]) -> list[Any]:
    """The gaps, with other verdicts where a chain of islands connects the two better.

    The width of a chain is its smallest cut. The widest chain between two islands lies on the
    maximum spanning tree of the graph whose edges are cuts. A gap is as real as the widest chain
    around it allows.
    """
    tree = _spanning_tree(gaps)
    found = []
    for gap in gaps:
        if gap.verdict != "real":
            found.append(gap)
            continue
        path, width = _path(tree, gap.one, gap.other)
        around = verdict_of(width)
        if len(path) > 2 and around != "real":
            verdict = "bridged" if around == "not in the data" else "unclear"
            gap = gap._replace(verdict=verdict, through=tuple(path[1:-1]))
        found.append(gap)
    return found


def _spanning_tree(gaps: list[Any]) -> dict[int, dict[int, float]]:
    """Islands and the cuts to their neighbors in the maximum spanning forest (Kruskal)."""
    root: dict[int, int] = {}
    tree: dict[int, dict[int, float]] = {}

    def find(island: int) -> int:
        while root.setdefault(island, island) != island:
            root[island] = root[root[island]]
            island = root[island]
        return island

    tested = [gap for gap in gaps if not math.isnan(gap.cut)]
    for gap in sorted(tested, key=lambda gap: (-gap.cut, gap.one, gap.other)):
        one, other = find(gap.one), find(gap.other)
        if one != other:
            root[one] = other
            tree.setdefault(gap.one, {})[gap.other] = gap.cut
            tree.setdefault(gap.other, {})[gap.one] = gap.cut
    return tree


def _path(tree: dict[int, dict[int, float]], start: int, goal: int) -> tuple[list[int], float]:
    """The way through a tree, and its smallest cut."""
    before = {start: start}
    waiting = [start]
    while waiting and goal not in before:
        here = waiting.pop()
        for there in tree[here]:
            if there not in before:
                before[there] = here
                waiting.append(there)
    path, width = [goal], float("inf")
    while path[-1] != start:
        here = path[-1]
        path.append(before[here])
        width = min(width, tree[here][before[here]])
    return path[::-1], width
