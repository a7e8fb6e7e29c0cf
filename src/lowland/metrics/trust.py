"""Trustworthiness and continuity (Venna & Kaski 2001), of the map and of each point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from lowland.metrics._comparison import Comparison
from lowland.metrics._measured import Measured, from_rows
from lowland.metrics._options import ComparisonKeywords, check_neighbors
from lowland.metrics._rows import all_rows, spread


def trustworthiness(
    X: Any,
    Y: Any = None,
    n_neighbors: int | Sequence[int] = 10,
    **options: Unpack[ComparisonKeywords],
) -> Measured | list[Measured]:
    """T(k) = 1 - 2 / (n k (2n - 3k - 1)) sum_i sum_{j in map's k nearest of i} max(0, r_ij - k).

    Whether a point's neighbors *in the map* are its neighbors in the data. r_ij is the rank of j
    among the neighbors of i in the data; a false neighbor costs the more the higher its rank is. 1
    is best; a random map has about 0.5. Large distances have no influence.

    Cost O(n^2 d) time and O(n (d + k)) memory: only the ranks of false neighbors are counted.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    n_neighbors : int or list of int, default=10
        Size k of the neighborhood, below n / 2.
    **options
        ``metric``, ``sample`` and others, see :class:`Comparison`.

    Returns
    -------
    Measured, or a list of them for a list of sizes
        A float that also has ``standard_error`` and ``sample_size``.

    Notes
    -----
    Equal to ``sklearn.manifold.trustworthiness`` where no two distances are equal; ties are ordered
    by row number here, and arbitrarily there.

    References
    ----------
    Venna & Kaski (2001), Neighborhood preservation in nonlinear projection methods, ICANN.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(trustworthiness(X, X[:, 2:], 5), 4)
    0.9202
    """
    compared = Comparison.of(X, Y, **options)
    sizes = _sizes(n_neighbors, compared.n)
    return _means(compared, compared.data_ranks(max(sizes)), sizes, n_neighbors)


def continuity(
    X: Any,
    Y: Any = None,
    n_neighbors: int | Sequence[int] = 10,
    **options: Unpack[ComparisonKeywords],
) -> Measured | list[Measured]:
    """C(k) = 1 - 2 / (n k (2n - 3k - 1)) sum_i sum_{j in data's k nearest of i} max(0, r'_ij - k).

    Whether a point's neighbors *in the data* are still near it in the map. r'_ij is the rank of j
    among the neighbors of i in the map. The counterpart of :func:`trustworthiness`, with the
    same parameters and cost; X may be a neighbor graph.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(continuity(X, X[:, 2:], 5), 4)
    0.9534
    """
    compared = Comparison.of(X, Y, **options)
    sizes = _sizes(n_neighbors, compared.n)
    return _means(compared, compared.map_ranks(max(sizes)), sizes, n_neighbors)


def point_trust(
    X: Any, Y: Any = None, n_neighbors: int = 10, **options: Unpack[ComparisonKeywords]
) -> np.ndarray:
    """Each point's share in :func:`trustworthiness`, for coloring the map; their mean is T(k).

    Low where the neighbors of a point in the map are false. All rows are measured unless ``sample``
    says otherwise; rows that are not measured are NaN.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> point_trust(X, X[:, 2:], 5)[:3].round(3)
    array([0.856, 0.851, 0.907])
    """
    compared = all_rows(X, Y, options)
    (k,) = _sizes([n_neighbors], compared.n)
    return spread(compared, point_scores(compared.data_ranks(k), k, compared.n))


def point_continuity(
    X: Any, Y: Any = None, n_neighbors: int = 10, **options: Unpack[ComparisonKeywords]
) -> np.ndarray:
    """Each point's share in :func:`continuity`, for coloring the map; their mean is C(k).

    Low where a point was separated from its neighbors. As :func:`point_trust` otherwise.
    """
    compared = all_rows(X, Y, options)
    (k,) = _sizes([n_neighbors], compared.n)
    return spread(compared, point_scores(compared.map_ranks(k), k, compared.n))


def _sizes(n_neighbors: Any, n: int) -> list[int]:
    return check_neighbors(n_neighbors, (n - 1) // 2, n, ", because it must be below n / 2")


def point_scores(ranks: np.ndarray, k: int, n: int) -> np.ndarray:
    """1 - (what the k ranks of a row exceed k) / (the most they could)."""
    excess = np.maximum(ranks[:, :k].astype(np.int64) - k, 0).sum(axis=1)
    return 1 - excess * (2 / (k * (2 * n - 3 * k - 1)))


def _means(
    compared: Comparison, ranks: np.ndarray, sizes: list[int], n_neighbors: Any
) -> Measured | list[Measured]:
    found = [from_rows(point_scores(ranks, k, compared.n), compared.n) for k in sizes]
    return found[0] if np.ndim(n_neighbors) == 0 else found
