"""Whether the islands of a map come again in other maps of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError, ParameterError

__all__ = ["IslandStability", "island_stability"]

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
        One for each island that the other maps have rows of. ``low`` to ``high`` is where the mean
        of as many other maps falls in 90 % of cases: it is made of the deviation between the maps
        and of the number of rows.

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
    codes = np.asarray(islands)
    if len(others) == 0:
        raise ParameterError("others=[] is empty; give the islands of at least one other map.")
    refits = [np.asarray(other) for other in others]
    for number, other in enumerate([codes, *refits]):
        name = "islands" if number == 0 else f"others[{number - 1}]"
        if other.ndim != 1 or len(other) != len(codes) or other.dtype.kind not in "iub":
            raise DataError(
                f"{name} has shape {other.shape} and type {other.dtype}; give one integer for each "
                f"of {codes.shape[0] if codes.ndim else 0} rows."
            )
    found = []
    for island in range(1, int(codes.max(initial=0)) + 1):
        inside = codes == island
        values = [_best_jaccard(inside, other) for other in refits]
        values = [value for value in values if value is not None]
        if values:
            found.append(_judged(island, np.array(values), int(inside.sum())))
    return found


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


def _judged(island: int, values: np.ndarray, rows: int) -> IslandStability:
    """The mean, and the 90 % prediction interval of the mean of as many other values."""
    m, mean = len(values), float(values.mean())
    variance = float(values.var(ddof=1)) if m > 1 else 0.0
    # Counting error of one index, and Student's 95 % quantile for few values.
    variance += mean * (1 - mean) / rows
    reach = _student(m - 1) * float(np.sqrt(2 * variance / m))
    low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    verdict = "stable" if mean > STABLE else "unstable" if mean < UNSTABLE else "doubtful"
    return IslandStability(island, mean, low, high, verdict)


def _student(freedom: int) -> float:
    """The 95 % quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(max(freedom, 1), 0.95))
