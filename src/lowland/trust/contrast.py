"""Whether islands are separate in the data, and whether large distances and sizes are kept."""

from __future__ import annotations

import numpy as np

from lowland._engines.linalg.magnitude import near_one
from lowland.metrics import silhouette
from lowland.metrics.grouping._cloud import Cloud
from lowland.metrics.pointwise.missing import Neighborhoods
from lowland.trust.result import Contrast

ROWS = 1000  # of all islands together, between which distances are measured
EACH = 20  # rows of one island, at least
FEWEST_ISLANDS = 4  # for a correlation of the distances between their centers


def contrast_of(
    cloud: Cloud, Y: np.ndarray, island_of: np.ndarray, near: Neighborhoods
) -> Contrast:
    """Silhouette of the islands in the data, and correlations between data and map."""
    number = int(island_of.max(initial=0))
    separate = centers = np.nan
    if number >= 2:
        rows = _some_rows(island_of, number)
        codes, how = island_of[rows], cloud.options
        # All distances as they are. The coordinates of a cloud have few dimensions, and a constant
        # that is added to all squared distances takes as many as there are rows.
        part = cloud.X[np.ix_(rows, rows)] if how.metric == "precomputed" else cloud.X[rows]
        known = {"metric": how.metric, "metric_params": how.metric_params, "n_jobs": how.threads}
        separate = float(silhouette(part, codes, sample=None, **known))
        if number >= FEWEST_ISLANDS:
            X = cloud.of(rows)
            members = [codes == island for island in range(1, number + 1)]
            in_data = np.array([X[member].mean(axis=0) for member in members])
            in_map = np.array([Y[rows[member]].mean(axis=0) for member in members])
            centers = _rank_correlation(_distances(in_data), _distances(in_map))
    return Contrast(separate, centers, _radii(near))


def _some_rows(island_of: np.ndarray, number: int) -> np.ndarray:
    """Rows of every island, in proportion to their sizes, but some of each."""
    rng = np.random.default_rng(0)
    sizes = np.bincount(island_of, minlength=number + 1)[1:]
    found = []
    for island, size in enumerate(sizes, start=1):
        wanted = max(EACH, round(ROWS * size / sizes.sum()))
        members = np.flatnonzero(island_of == island)
        found.append(rng.choice(members, min(wanted, size), replace=False))
    return np.sort(np.concatenate(found))


def _radii(near: Neighborhoods) -> float:
    """Correlation of the logarithms of the distances to the k-th neighbor, data and map."""
    radii = [side.distances[:, near.k - 1].astype(float) for side in (near.in_data, near.in_map)]
    known = (radii[0] > 0) & (radii[1] > 0)
    logs = [np.log(radius[known]) for radius in radii]
    if known.sum() < 3 or not all(np.ptp(log) > 0 for log in logs):
        return float("nan")
    return float(np.corrcoef(*logs)[0, 1])


def _distances(points: np.ndarray) -> np.ndarray:
    """Distances of all pairs, in a unit in which squares do not overflow."""
    points = near_one(points)
    one, other = np.triu_indices(len(points), 1)
    return np.linalg.norm(points[one] - points[other], axis=1)


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's correlation; ties get their mean rank."""
    ranks = []
    for values in (a, b):
        _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(sizes) - (sizes - 1) / 2)[place])
    if not all(np.ptp(rank) > 0 for rank in ranks):
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
