"""Islands: clusters of a map as the eye sees them, which are hills of the density of its points."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError, shown
from lowland._base.threads import limit_blas
from lowland._base.validation import check_matrix
from lowland.metrics._cloud import checked_islands

# Cells along the longest axis, by dimension: finer than any hill of interest, but not slow.
CELLS = {1: 2048, 2: 384, 3: 72}
# The smoothing kernel of the median point covers this share of the points. Random tops and valleys
# are more frequent on a line than in a plane, so that a line needs a wider kernel.
SHARE = {1: 0.04, 2: 0.01, 3: 0.01}
FEWEST = 10  # points under the smoothing kernel and in a cluster, at least
DEPTH = 3.0  # depth of a valley between two clusters, in standard errors
SPARSE = 0.03  # points below this share of the height of their hill belong to no cluster


def islands(Y: np.ndarray) -> np.ndarray:
    """Basins of the density f(y) = sum_i K_s(y - y_i): 1, 2, ... by size, 0 for sparse points.

    From each cell of a grid, follow the highest neighboring cell until a hilltop; cells with the
    same top are one basin. Two basins are one hill if the valley between them is no deeper than
    counting noise: with v the number of points under the kernel,
    v_top - v_pass < 3 sqrt(v_top + v_pass). The width s of the kernel depends on the map: at the
    median point it covers 1 % of all points (4 % on a line).

    The clusters describe the picture, not the data: a method that splits a group gives several
    clusters for it. Cost O(n + cells), in one, two or three dimensions; deterministic.

    Examples
    --------
    >>> left, right = np.random.default_rng(0).normal(size=(2, 500, 2))
    >>> found = islands(np.vstack([left, right + [12, 0]]))
    >>> [int((found == cluster).sum() > 450) for cluster in (1, 2)], int(found.max())
    ([1, 1], 2)
    """
    Y = np.asarray(check_matrix(Y, owner="islands", argument="Y"), dtype=np.float64)
    n, d = Y.shape
    if d not in CELLS:
        raise DataError(f"islands are found in maps of 1, 2 or 3 dimensions, not {d}.")
    # The box of the map without far outliers, which would make the cells too large.
    low, high = np.quantile(Y, [0.001, 0.999], axis=0)
    margin = 0.1 * (high - low)
    low, high = np.maximum(low - margin, Y.min(axis=0)), np.minimum(high + margin, Y.max(axis=0))
    longest = float((high - low).max())
    if n < 2 * FEWEST or not longest > 0:
        return np.ones(n, dtype=np.int32)
    edge = longest / CELLS[d]
    shape = tuple(int(cells) for cells in np.floor((high - low) / edge) + 1)
    cells = np.floor((Y - low) / edge).astype(np.intp)
    inside = ((cells >= 0) & (cells < shape)).all(axis=1)
    place = np.ravel_multi_index(tuple(np.clip(cells, 0, np.array(shape) - 1).T), shape)
    counts = np.bincount(place[inside], minlength=int(np.prod(shape))).reshape(shape)

    width = _kernel_width(counts, place[inside], max(SHARE[d] * n, FEWEST))
    under_kernel = _smooth(counts, width) * (4 * np.pi * width**2) ** (d / 2)
    basin = _climb(under_kernel)
    top = _merge(under_kernel.ravel(), basin.reshape(shape))
    hill = top[basin[place]]
    height = under_kernel.ravel()
    hill[~inside | (height[place] < SPARSE * height[hill])] = -1
    return _by_size(hill, max(FEWEST, n // 500))


def _kernel_width(counts: np.ndarray, place: np.ndarray, wanted: float) -> float:
    """Standard deviation in cells: the kernel of the median point covers ``wanted`` points.

    Points are counted in boxes of 1, 2, 4, ... cells; the count is interpolated as a power law.
    """
    where = np.unravel_index(place, counts.shape)
    sides, medians = [1], [float(np.median(counts.ravel()[place]))]
    while medians[-1] < wanted and sides[-1] < max(counts.shape):
        for axis, size in enumerate(counts.shape):
            starts = np.arange(0, size, 2)
            counts = np.add.reduceat(counts, starts, axis=axis)
        sides.append(2 * sides[-1])
        boxes = tuple(axis // sides[-1] for axis in where)
        medians.append(float(np.median(counts[boxes])))
    side = np.exp(np.interp(np.log(wanted), np.log(medians), np.log(sides)))
    # A Gaussian covers as many points as a box whose side is sqrt(4 pi) standard deviations.
    return max(float(side) / np.sqrt(4 * np.pi), 1.0)


def _smooth(counts: np.ndarray, width: float) -> np.ndarray:
    """Gaussian filter cut off at 3 standard deviations; empty cells outside the grid.

    One product per axis with a banded matrix. Importing ``scipy.ndimage`` would take longer than
    the rest of a small report.
    """
    density = counts.astype(np.float64)
    reach = int(3.0 * width + 0.5)
    weights = np.exp(-0.5 * (np.arange(reach + 1) / width) ** 2)
    weights /= weights[0] + 2 * weights[1:].sum()
    with limit_blas(1):
        for axis, size in enumerate(counts.shape):
            offset = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
            kernel = np.where(offset <= reach, weights[np.minimum(offset, reach)], 0.0)
            density = np.moveaxis(np.tensordot(kernel, density, axes=(1, axis)), 0, axis)
    return density.astype(np.float32)


def _climb(density: np.ndarray) -> np.ndarray:
    """For each cell, the flat index of the hilltop that steepest ascent reaches."""
    padded = np.pad(density, 1, constant_values=-1.0)
    index = np.arange(density.size).reshape(density.shape)
    padded_index = np.pad(index, 1, constant_values=-1)
    best, target = density.copy(), index.copy()
    for offset in itertools.product((0, 1, 2), repeat=density.ndim):
        window = tuple(slice(o, o + size) for o, size in zip(offset, density.shape, strict=True))
        neighbor = padded[window]
        # Of equal heights the later cell is taken: a plateau has one top, and there is no cycle.
        higher = (neighbor > best) | ((neighbor == best) & (padded_index[window] > target))
        best[higher] = neighbor[higher]
        target[higher] = padded_index[window][higher]
    goal: np.ndarray = target.ravel()
    while True:
        further = goal[goal]
        if np.array_equal(further, goal):
            return goal
        goal = further


def _merge(height: np.ndarray, basin: np.ndarray) -> np.ndarray:
    """For each cell that is a top, the top of its hill once shallow valleys are removed."""
    passes = _passes(height, basin)
    top = np.arange(height.size)

    def root(cell: int) -> int:
        while top[cell] != cell:
            top[cell] = top[top[cell]]
            cell = top[cell]
        return cell

    for at_pass, one, other in passes:
        one, other = root(one), root(other)
        lower, higher = sorted((one, other), key=lambda cell: (height[cell], cell))
        if height[lower] - at_pass < DEPTH * np.sqrt(height[lower] + at_pass):
            top[lower] = higher
    tops = np.unique(basin)
    top[tops] = [root(cell) for cell in tops.tolist()]
    return top


def _passes(height: np.ndarray, basin: np.ndarray) -> list[tuple[float, int, int]]:
    """The highest pass between each two basins that touch, highest first."""
    height = height.reshape(basin.shape)
    found = []
    for axis in range(basin.ndim):
        here = tuple(slice(None, -1) if a == axis else slice(None) for a in range(basin.ndim))
        there = tuple(slice(1, None) if a == axis else slice(None) for a in range(basin.ndim))
        border = basin[here] != basin[there]
        pair = np.sort(np.stack([basin[here][border], basin[there][border]]), axis=0)
        found.append((np.minimum(height[here][border], height[there][border]), *pair))
    level, one, other = (np.concatenate(parts) for parts in zip(*found, strict=True))
    keep = level > 0  # a pass leads through cells that have a density
    level, one, other = level[keep], one[keep], other[keep]
    order = np.lexsort((other, one, -level))
    pairs = np.stack([one, other], axis=1)[order]
    _, first = np.unique(pairs, axis=0, return_index=True)
    return [(float(level[order[i]]), int(pairs[i, 0]), int(pairs[i, 1])) for i in np.sort(first)]


def _by_size(hill: np.ndarray, fewest: int) -> np.ndarray:
    """Clusters numbered by size; those with fewer points, and hill -1, are 0."""
    hills, member, sizes = np.unique(hill, return_inverse=True, return_counts=True)
    sizes[(hills < 0) | (sizes < fewest)] = 0
    order = np.argsort(-sizes, kind="stable")
    number = np.where(sizes > 0, np.argsort(order) + 1, 0).astype(np.int32)
    return number[member]


# Whether the islands of a map come again in other maps of the same rows.


STABLE, UNSTABLE = 0.75, 0.6  # Hennig's limits for the mean Jaccard index


class IslandStability(NamedTuple):
    """How well an island is found again: mean Jaccard index, and its 90 % interval."""

    island: int
    jaccard: float
    low: float
    high: float
    verdict: str  # "stable", "doubtful" or "unstable"


def island_stability(islands: Any, others: Sequence[Any]) -> list[IslandStability]:
    """J(I) = mean over other maps of max_B |I n B| / |I u B|, B being the islands of the other map.

    The islands of a map are looked for in other maps of the same rows, such as refits with other
    seeds on parts of the rows. Above 0.75 an island is *stable*, below 0.6 *unstable*, and
    *doubtful* between the two (Hennig 2007).

    Parameters
    ----------
    islands : array of n integers
        The island of each row: 1, 2, ..., and 0 for rows of no island.
    others : list of arrays of n integers
        The same for each of the other maps; -1 for rows that a map does not have.

    Returns
    -------
    list of IslandStability
        One for each island that the other maps have rows of. ``low`` to ``high`` is where the same
        number falls in 90 % of cases if other rows of the same kind are taken: it is made of the
        deviation between the maps and of the number of rows.

    Notes
    -----
    Maps that share rows resemble one another more than maps of new rows do. If two of m maps share
    a part f of their rows, deviations between them have the variance (1 - f) s^2 and their mean has
    s^2 (1 + (m - 1) f) / m, s^2 being the variance between maps of new rows; the interval has both.
    Maps that share all rows, such as those of other seeds, tell nothing of new rows: their interval
    is that of other seeds.

    References
    ----------
    Hennig (2007), Cluster-wise assessment of cluster stability, Comput. Statist. Data Anal. 52.

    Examples
    --------
    >>> islands = np.repeat([1, 2], 50)
    >>> other = np.where(np.arange(100) < 50, 2, 1)        # the same islands, other numbers
    >>> torn = np.repeat([1, 2, 3], [50, 25, 25])          # the second island fell apart
    >>> [(found.island, found.jaccard) for found in island_stability(islands, [other, torn])]
    [(1, 1.0), (2, 0.75)]
    """
    codes = checked_islands(islands)
    if not isinstance(others, Sequence | np.ndarray) or len(others) == 0:
        raise ParameterError(f"others={shown(others)} is not allowed; give a list of islands.")
    refits = [
        checked_islands(other, len(codes), f"others[{number}]", least=-1)
        for number, other in enumerate(others)
    ]
    found = []
    for island in range(1, int(codes.max(initial=0)) + 1):
        inside = codes == island
        present = [other for other in refits if (inside & (other >= 0)).any()]
        if present:
            known = np.array([_best_jaccard(inside, other) for other in present])
            shared = _shared_rows([inside & (other >= 0) for other in refits])
            found.append(_judged(island, known, int(inside.sum()), shared))
    return found


def _shared_rows(present: Sequence[np.ndarray]) -> float:
    """The mean part of an island's rows that two maps share; 0 if the maps share all rows."""
    pairs = [
        (one & other).sum() / max(one.sum(), other.sum(), 1)
        for one, other in itertools.combinations(present, 2)
    ]
    share = float(np.mean(pairs)) if pairs else 0.0
    return share if share < 1 else 0.0


def _best_jaccard(inside: np.ndarray, other: np.ndarray) -> float:
    """The largest Jaccard index of one island with any of another map that has rows of it."""
    present = other >= 0
    sizes = np.bincount(other[present])
    common = np.bincount(other[inside & present], minlength=len(sizes))
    index = common / (sizes + common.sum() - common)
    return float(index[1:].max(initial=0.0))  # 0 stands for points outside of all islands


def _judged(island: int, values: np.ndarray, rows: int, shared: float) -> IslandStability:
    """The mean, and the 90 % prediction interval of the mean of as many other values."""
    from scipy.special import stdtrit

    m, mean = len(values), float(values.mean())
    variance = float(values.var(ddof=1)) / (1 - shared) if m > 1 else 0.0
    # Counting error of one index. One row more in and one more out, because an index of 1 in all
    # maps does not mean that no row ever changes.
    share = (rows * mean + 1) / (rows + 2)
    variance += share * (1 - share) / rows
    # Two means, this one and the other; Student's 95 % quantile for few values.
    spread = 2 * variance * (1 + (m - 1) * shared) / m
    reach = float(stdtrit(max(m - 1, 1), 0.95)) * float(np.sqrt(spread))
    low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    verdict = "stable" if mean > STABLE else "unstable" if mean < UNSTABLE else "doubtful"
    return IslandStability(island, mean, low, high, verdict)
