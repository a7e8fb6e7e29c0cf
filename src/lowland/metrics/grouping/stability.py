"""Whether the islands of a map come again in other maps of the same rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import ParameterError
from lowland._core.wording import shown
from lowland.metrics.grouping._checks import checked_islands

STABLE, UNSTABLE = 0.75, 0.6  # Hennig's limits for the mean Jaccard index


class IslandStability(NamedTuple):
    """How well an island comes again: mean Jaccard index, and its 90 % interval."""

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
        raise ParameterError(
            f"others={shown(others)} is not allowed; give the islands of at least one other map, "
            "in a list."
        )
    refits = [
        checked_islands(other, len(codes), f"others[{number}]", least=-1)
        for number, other in enumerate(others)
    ]
    found = []
    for island in range(1, int(codes.max(initial=0)) + 1):
        inside = codes == island
        values = [_best_jaccard(inside, other) for other in refits]
        if any(value is not None for value in values):
            known = np.array([value for value in values if value is not None])
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


def _best_jaccard(inside: np.ndarray, other: np.ndarray) -> float | None:
    """The largest Jaccard index of one island with any of another map; None without its rows."""
    present = other >= 0
    size = int((inside & present).sum())
    if not size:
        return None
    sizes = np.bincount(other[present])
    common = np.bincount(other[inside & present], minlength=len(sizes))
    index = common / (sizes + size - common)
    return float(index[1:].max(initial=0.0))  # 0 is no island


def _judged(island: int, values: np.ndarray, rows: int, shared: float) -> IslandStability:
    """The mean, and the 90 % prediction interval of the mean of as many other values."""
    m, mean = len(values), float(values.mean())
    variance = float(values.var(ddof=1)) / (1 - shared) if m > 1 else 0.0
    # Counting error of one index. One row more in and one more out, because an index of 1 in all
    # maps does not mean that no row ever changes.
    share = (rows * mean + 1) / (rows + 2)
    variance += share * (1 - share) / rows
    # Two means, this one and the other; Student's 95 % quantile for few values.
    spread = 2 * variance * (1 + (m - 1) * shared) / m
    reach = _student(m - 1) * float(np.sqrt(spread))
    low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    verdict = "stable" if mean > STABLE else "unstable" if mean < UNSTABLE else "doubtful"
    return IslandStability(island, mean, low, high, verdict)


def _student(freedom: int) -> float:
    """The 95 % quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(max(freedom, 1), 0.95))
