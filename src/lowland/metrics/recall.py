"""The share of neighbors that a map keeps: recall, and recall corrected for chance (LCMC)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from lowland.metrics._comparison import Comparison
from lowland.metrics._measured import Measured, from_rows
from lowland.metrics._options import ComparisonKeywords, check_neighbors


def neighbor_recall(
    X: Any,
    Y: Any = None,
    n_neighbors: int | Sequence[int] = 10,
    **options: Unpack[ComparisonKeywords],
) -> Measured | list[Measured]:
    """Q(k) = 1 / (n k) sum_i |data's k nearest of i, also among the map's k nearest|.

    The simplest measure, and a strict one: a neighbor that became the (k+1)-st counts as lost.
    1 is best, a random map has k / (n - 1). X may be a neighbor graph.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    n_neighbors : int or list of int, default=10
        Size k of the neighborhood, at most n - 1.
    **options
        See :class:`Comparison`.

    Returns
    -------
    Measured, or a list of them for a list of sizes

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(neighbor_recall(X, X[:, 2:]), 4)
    0.4713
    """
    return _recalls(Comparison.of(X, Y, **options), n_neighbors, corrected=False)


def lcmc(
    X: Any,
    Y: Any = None,
    n_neighbors: int | Sequence[int] = 10,
    **options: Unpack[ComparisonKeywords],
) -> Measured | list[Measured]:
    """LCMC(k) = Q(k) - k / (n - 1): the recall less what chance would give (Chen & Buja 2009).

    The local continuity meta-criterion. Its largest value over k tells at which scale a map is
    most faithful. Parameters as in :func:`neighbor_recall`.

    References
    ----------
    Chen & Buja (2009), Local multidimensional scaling for nonlinear dimension reduction, graph
    drawing, and proximity analysis, J. American Statistical Association 104.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> [round(value, 3) for value in lcmc(X, X[:, 2:], [5, 50, 149])]
    [0.313, 0.577, 0.0]
    """
    return _recalls(Comparison.of(X, Y, **options), n_neighbors, corrected=True)


def _recalls(compared: Comparison, n_neighbors: Any, corrected: bool) -> Measured | list[Measured]:
    n = compared.n
    sizes = check_neighbors(n_neighbors, n - 1, n)
    overlaps = compared.overlaps(max(sizes))
    found = [
        from_rows(overlaps[:, k - 1] / k - (k / (n - 1) if corrected else 0.0), n) for k in sizes
    ]
    return found[0] if np.ndim(n_neighbors) == 0 else found
