"""Stress: how much distances in the map differ from distances in the data."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from lowland._core.errors import DataError
from lowland.metrics._comparison import Comparison, DistanceSums
from lowland.metrics._measured import Measured, linearized
from lowland.metrics._options import ComparisonKeywords
from lowland.metrics._rows import all_rows, spread, summable

# Below this share of the squared distances, a difference of sums has lost half of its digits.
CANCELLED = 1e-7


def raw_stress(X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]) -> Measured:
    """sum_{i<j} (delta_ij - d_ij)^2, delta in the data and d in the map.

    What metric multidimensional scaling minimizes. It depends on the units and on the scale of
    the map: compare it only between maps of the same data that aim at the same distances.

    Cost O(n^2 d) time, O(n d) memory; of a sample, the total is extrapolated to all pairs.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    **options
        See :class:`Comparison`.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(raw_stress(X, X[:, 2:]), 1)
    2184.4
    """
    compared = summable(X, Y, options)
    return linearized(
        lambda mean: mean[0] * compared.n / 2,
        compared.distance_sums().gap2[:, None],
        compared.n,
    )


def scale_normalized_stress(
    X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]
) -> Measured:
    """min_c sqrt( sum (delta_ij - c d_ij)^2 / sum delta_ij^2 ), at c = sum delta d / sum d^2.

    The stress of the map at its best scale, from 0 to 1. The usual "normalized" stress, without
    the minimum over c, changes when a map is merely drawn larger, and so ranks methods by the
    size of their output; this does not. A constant map has 1. Cost as :func:`raw_stress`.

    References
    ----------
    Smelser, Miller & Kobourov (2024), "Normalized stress" is not normalized: how to interpret
    stress correctly, BELIV.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(scale_normalized_stress(X, X[:, 2:]), 4), round(
    ...     scale_normalized_stress(X, 7 * X[:, 2:]), 4
    ... )
    (0.1115, 0.1115)
    """
    compared = summable(X, Y, options)
    sums, scale = _at_best_scale(compared)
    both = np.column_stack([sums.gap2, sums.delta2])
    if scale == 0.0:
        return Measured(1.0, 0.0, len(both))
    if not sums.gap2.any():
        return Measured(0.0, 0.0, len(both))
    # At the best scale the derivative with respect to it is zero: only the two sums vary.
    return linearized(lambda mean: np.sqrt(mean[0] / mean[1]), both, compared.n)


def sammon_stress(X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]) -> Measured:
    """(1 / sum delta_ij) sum (delta_ij - d_ij)^2 / delta_ij (Sammon 1969).

    The stress in which small distances count most. It depends on the scale of the map. Pairs of
    equal rows (delta = 0) are left out. Cost as :func:`raw_stress`.

    References
    ----------
    Sammon (1969), A nonlinear mapping for data structure analysis, IEEE Trans. Computers 18.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(sammon_stress(X, X[:, 2:]), 4)
    0.0446
    """
    compared = summable(X, Y, options)
    sums = compared.distance_sums()
    check_spread(sums)
    both = np.column_stack([sums.relative_gap2, sums.delta])
    return linearized(lambda mean: mean[0] / mean[1], both, compared.n)


def point_stress(X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]) -> np.ndarray:
    """sqrt( sum_j (delta_ij - c d_ij)^2 / sum_j delta_ij^2 ) of each row i, for coloring the map.

    c is the best scale for the map as a whole, that of :func:`scale_normalized_stress`. High where
    the distances from a point are wrong. All rows are measured unless ``sample`` says
    otherwise; rows that are not measured are NaN.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> point_stress(X, X[:, 2:])[:3].round(3)
    array([0.082, 0.1  , 0.086])
    """
    compared = all_rows(X, Y, options)
    sums, _ = _at_best_scale(compared)
    positive = np.where(sums.delta2 > 0, sums.delta2, 1.0)
    return spread(compared, np.sqrt(sums.gap2 / positive))


def check_spread(sums: DistanceSums) -> None:
    if not sums.delta2.any():
        raise DataError("X: all rows are equal; a measure of distances needs rows that differ.")


def _at_best_scale(compared: Comparison) -> tuple[DistanceSums, float]:
    """Sums at the scale that makes the stress least; 0 for a constant map."""
    sums = compared.distance_sums()
    check_spread(sums)
    d2 = sums.d2.sum()
    scale = float(sums.delta_d.sum() / d2) if d2 > 0 else 0.0
    gap2 = sums.delta2 - 2 * scale * sums.delta_d + scale**2 * sums.d2
    if gap2.sum() < CANCELLED * sums.delta2.sum():
        return compared.distance_sums(scale), scale
    return sums._replace(gap2=np.maximum(gap2, 0.0)), scale
