"""Mean relative rank errors (Lee & Verleysen 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland.metrics._comparison import Comparison
from lowland.metrics._measured import Measured, from_rows
from lowland.metrics._options import ComparisonKeywords, check_neighbors


class RankErrors(NamedTuple):
    """Errors among the map's neighbors (false ones cost) and the data's (missing ones cost)."""

    false: Measured
    missing: Measured


def mean_relative_rank_errors(
    X: Any,
    Y: Any = None,
    n_neighbors: int | Sequence[int] = 10,
    **options: Unpack[ComparisonKeywords],
) -> RankErrors | list[RankErrors]:
    """1 / (n H_k) sum_i sum_j |r_ij - r'_ij| / s_ij,  H_k = sum_{l=1..k} |n - 2l + 1| / l.

    How far ranks moved, relative to the rank, so that the nearest matter most; unlike
    :func:`trustworthiness` it also counts changes of order within the neighborhood. r_ij is the
    rank in the data, r'_ij in the map. ``false``: j runs over the map's k nearest and s is r';
    ``missing``: over the data's k nearest, and s is r. 0 is best; 1 is about the worst.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    n_neighbors : int or list of int, default=10
        Size k of the neighborhood, below n / 2.
    **options
        See :class:`Comparison`.

    Returns
    -------
    RankErrors, or a list of them for a list of sizes

    References
    ----------
    Lee & Verleysen (2009), Quality assessment of dimensionality reduction: rank-based criteria,
    Neurocomputing 72.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> errors = mean_relative_rank_errors(X, X[:, 2:])
    >>> round(errors.false, 4), round(errors.missing, 4)
    (0.092, 0.0557)
    """
    compared = Comparison.of(X, Y, **options)
    n = compared.n
    sizes = check_neighbors(n_neighbors, (n - 1) // 2, n, ", because it must be below n / 2")
    most = max(sizes)
    false, missing = _moves(compared.data_ranks(most)), _moves(compared.map_ranks(most))
    found = [RankErrors(_mean(false, k, n), _mean(missing, k, n)) for k in sizes]
    return found[0] if np.ndim(n_neighbors) == 0 else found


def _moves(ranks: np.ndarray) -> np.ndarray:
    """|rank elsewhere - own rank| / own rank, summed over the first neighbors; (m, k)."""
    own = np.arange(1, ranks.shape[1] + 1)
    return np.cumsum(np.abs(ranks - own) / own, axis=1)


def _mean(moves: np.ndarray, k: int, n: int) -> Measured:
    step = np.arange(1, k + 1)
    return from_rows(moves[:, k - 1] / np.sum(np.abs(n - 2 * step + 1) / step), n)
