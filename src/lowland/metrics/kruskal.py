"""Kruskal's stress-1: how far distances in the map are from any monotone function of the data's."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from lowland._core.errors import DataError, check_name
from lowland._core.units import exponent_for, in_unit, largest
from lowland._engines.linalg.magnitude import near_one
from lowland._engines.stress.monotone_regression import TIES, monotone_fit
from lowland.metrics._comparison import Comparison, Pairs
from lowland.metrics._measured import Measured, from_pairs
from lowland.metrics._options import ComparisonKeywords

DISPARITIES = (*TIES, "metric")


def kruskal_stress1(
    X: Any, Y: Any = None, *, disparities: str = "primary", **options: Unpack[ComparisonKeywords]
) -> Measured:
    """sqrt( sum (d_ij - dhat_ij)^2 / sum d_ij^2 ), dhat the best monotone function of delta_ij.

    delta is a distance in the data and d one in the map. Only the order of the data's distances
    matters: 0 when the map keeps it. Kruskal's own scale: 20 % poor, 10 % fair, 5 % good, 2.5 %
    excellent. A map that has collapsed into a few points may have little stress too.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    disparities : {"primary", "secondary", "index", "metric"}, default="primary"
        What happens to pairs that tie in the data: "primary" lets their dhat differ, "secondary"
        keeps it equal, "index" takes them in the order of the rows (as MASS::isoMDS does).
        "metric": dhat is the data's distance itself, no monotone function.
    **options
        See :class:`Comparison`. All pairs are needed at once, so that by default those of at most
        2 000 rows are taken; ``sample=None`` takes all if they fit in memory.

    References
    ----------
    Kruskal (1964), Multidimensional scaling by optimizing goodness of fit to a nonmetric
    hypothesis, Psychometrika 29.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(kruskal_stress1(X, X[:, 2:]), 4)
    0.0871
    """
    check_name("disparities", disparities, DISPARITIES)
    compared = Comparison.of(X, Y, **options)
    pairs = compared.pairs()
    if not pairs.d.any():
        raise DataError("Y: all points of the map are equal; stress-1 divides by their distances.")
    with compared.options.working():
        d, fit = _in_one_unit(pairs, disparities)
        if disparities != "metric":
            fit = monotone_fit(pairs.delta, d, disparities, compared.options.threads)
        gap = d - fit
        stress2 = float((gap @ gap) / (d @ d))
    stress = stress2**0.5
    if stress == 0.0 or len(pairs.rows) == compared.n:
        return Measured(stress, 0.0, len(pairs.rows))
    # Fits are best, so that to first order only the two sums vary, not the function itself.
    d2 = d**2
    influence = pairs.per_row(gap**2 - stress2 * d2) / d2.mean() / (2 * stress)
    return from_pairs(stress, influence, compared.n)


def _in_one_unit(pairs: Pairs, disparities: str) -> tuple[np.ndarray, np.ndarray]:
    """Distances of the map, and of the data, in a unit in which squares do not overflow."""
    if disparities != "metric":  # only the order of the data's distances matters
        return near_one(pairs.d), pairs.delta
    e = exponent_for(max(largest(pairs.d), largest(pairs.delta)))
    d = in_unit(pairs.d, e)
    if not d @ d > 0:
        raise DataError(
            f"disparities='metric': the largest distance of Y is {largest(pairs.d):g} and that of "
            f"X is {largest(pairs.delta):g}, too far apart for one unit; multiply Y by "
            f"{largest(pairs.delta) / largest(pairs.d):.0e}."
        )
    return d, in_unit(pairs.delta, e)
