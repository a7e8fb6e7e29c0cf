"""Which islands are neighbors: in the map, and in the data."""

from __future__ import annotations

import numpy as np

from lowland._engines.linalg.magnitude import near_one

POINTS = 4000  # of all islands together, between which distances are measured
MOST_POINTS = 200  # of one island
LINKS = 3  # islands that are linked most to one
LEAST_LINK = 0.02  # share of the edges of the smaller island


def neighboring_pairs(Y: np.ndarray, codes: np.ndarray) -> list[tuple[int, int]]:
    """Islands A, B with no third C that lies between: d(A, B)^2 <= d(A, C)^2 + d(B, C)^2.

    d is the smallest distance between points of two islands (of a sample). This is the Gabriel
    graph of the islands; it holds for maps of any dimension.
    """
    m = int(codes.max(initial=0))
    if m < 2:
        return []
    each = max(4, min(MOST_POINTS, POINTS // m))
    rng = np.random.default_rng(0)
    Y, samples = near_one(Y), []
    for number in range(1, m + 1):
        rows = np.flatnonzero(codes == number)
        samples.append(Y[np.sort(rng.choice(rows, min(each, len(rows)), replace=False))])
    D2 = np.zeros((m, m))
    for one in range(m):
        for other in range(one + 1, m):
            apart = samples[one][:, None] - samples[other][None]
            D2[one, other] = D2[other, one] = (apart**2).sum(axis=2).min(initial=np.inf)
    found = []
    for one in range(m):
        for other in range(one + 1, m):
            around = D2[one] + D2[other]
            around[[one, other]] = np.inf
            if D2[one, other] <= around.min(initial=np.inf):
                found.append((one + 1, other + 1))
    return found


def linked_pairs(ids: np.ndarray, codes: np.ndarray) -> list[tuple[int, int]]:
    """For each island, the others to which most of its neighbor edges in the data lead."""
    m = int(codes.max(initial=0))
    known = ids >= 0
    start = np.repeat(codes, ids.shape[1]).reshape(ids.shape)
    end = codes[np.where(known, ids, 0)]
    crossing = known & (start != end) & (start > 0) & (end > 0)
    edges = np.bincount(start[crossing] * (m + 1) + end[crossing], minlength=(m + 1) ** 2)
    edges = edges.reshape(m + 1, m + 1)
    edges = edges + edges.T
    sizes = np.bincount(codes, minlength=m + 1)
    links = edges / np.maximum(2 * ids.shape[1] * np.minimum(sizes[:, None], sizes), 1)
    found = set()
    for one in range(1, m + 1):
        for other in np.argsort(-links[one], kind="stable")[:LINKS].tolist():
            if links[one, other] >= LEAST_LINK:
                found.add((min(one, other), max(one, other)))
    return sorted(found)
