"""Equal rows: found once, searched once, handed out to all of them.

A thousand equal rows are a thousand-fold tie that no score can order. Where there are many, the
search runs on the distinct rows and its result is expanded, ties by row number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._engines.linalg import products

__all__ = ["Distinct", "distinct_rows", "expand"]


class Distinct(NamedTuple):
    """First row of every set of equal rows, ascending, and for each row the number of its set."""

    first: np.ndarray
    member_of: np.ndarray


def distinct_rows(X: np.ndarray, threads: int, *, all_sets: bool = False) -> Distinct | None:
    """The sets of equal rows, or None when few rows are repeated (none, if ``all_sets``)."""
    n, d = X.shape
    weights = np.random.default_rng(0).standard_normal((d, 1))
    # Equal rows have bit-equal products, whatever their neighbors; only those can be equal.
    mark = products.times(X, np.zeros(d), weights, threads)[:, 0]
    mark = mark + 0.0  # -0 and +0 are equal
    order = np.argsort(mark, kind="stable")
    same_mark = mark[order[1:]] == mark[order[:-1]]
    repeated = np.flatnonzero(same_mark)
    same = np.zeros(n - 1, bool)
    same[repeated] = (X[order[repeated]] == X[order[repeated + 1]]).all(axis=1)
    few = not same.any() if all_sets else same.sum() < n // 50 and not _long_run(same)
    if few:
        return None
    set_of = np.empty(n, np.int64)
    set_of[order] = np.concatenate([[0], np.cumsum(~same)])
    first = np.full(set_of.max() + 1, n)
    np.minimum.at(first, set_of, np.arange(n))
    rank = np.argsort(first, kind="stable")
    renumber = np.empty_like(rank)
    renumber[rank] = np.arange(len(rank))
    return Distinct(first[rank], renumber[set_of])


def _long_run(same: np.ndarray, longest: int = 6) -> bool:
    """Whether more than ``longest`` rows in a row are equal."""
    if len(same) < longest:
        return bool(same.any())
    return bool(np.convolve(same, np.ones(longest), "valid").max() >= longest)


def expand(
    distinct: Distinct, ids: np.ndarray, distances: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Neighbors of all rows from those of the distinct ones."""
    n = len(distinct.member_of)
    by_set = np.argsort(distinct.member_of, kind="stable")
    starts = np.searchsorted(distinct.member_of[by_set], np.arange(len(distinct.first) + 1))
    all_ids = np.empty((n, k), np.int32)
    all_distances = np.empty((n, k))
    for number in range(len(distinct.first)):
        members = by_set[starts[number] : starts[number + 1]]
        near, far = [members[: k + 1]], [np.zeros(min(len(members), k + 1))]
        for other, distance in zip(ids[number], distances[number], strict=True):
            theirs = by_set[starts[other] : starts[other + 1]][:k]
            near.append(theirs)
            far.append(np.full(len(theirs), distance))
        candidates, reach = np.concatenate(near), np.concatenate(far)
        order = np.lexsort((candidates, reach))[: k + 1]
        candidates, reach = candidates[order], reach[order]
        for row in members:
            others = np.flatnonzero(candidates != row)[:k]
            all_ids[row], all_distances[row] = candidates[others], reach[others]
    return all_ids, all_distances
