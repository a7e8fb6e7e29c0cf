"""The co-ranking matrix, and the R_NX curve that is read from it (Lee & Verleysen)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._core.errors import DataError
from lowland._core.memory import require_memory
from lowland._engines.distances.distance_rows import blocks_of
from lowland.metrics._comparison import Comparison, positions
from lowland.metrics._measured import Measured, from_rows
from lowland.metrics._options import ComparisonKeywords, check_neighbors


class RnxCurve(NamedTuple):
    """R_NX for every size K of the neighborhood: three arrays of n - 2, and the rows measured."""

    n_neighbors: np.ndarray
    values: np.ndarray
    standard_errors: np.ndarray
    sample_size: int


def coranking_matrix(
    X: Any, Y: Any = None, n_neighbors: int | None = None, **options: Unpack[ComparisonKeywords]
) -> np.ndarray:
    """Q[k-1, l-1] = number of pairs (i, j) with rank k in the data and rank l in the map.

    The joint histogram of ranks. A perfect map fills the diagonal; pairs below it are too near in
    the map (intrusions), pairs above it too far (extrusions). All rank-based measures are sums over
    this matrix.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    n_neighbors : int or None, default=None
        Only the corner of the first n_neighbors ranks, which needs no sorting; None is all n - 1,
        a matrix of about n x n, refused when it does not fit in memory.
    **options
        See :class:`Comparison`; of a sample, the pairs of its rows with all others are counted.

    Returns
    -------
    ndarray of int64
        (n - 1, n - 1), or the corner.

    References
    ----------
    Lee & Verleysen (2009), Quality assessment of dimensionality reduction: rank-based criteria,
    Neurocomputing 72.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> coranking_matrix(line, line[[0, 1, 3, 2]])
    array([[2, 1, 1],
           [1, 0, 3],
           [1, 3, 0]])
    """
    compared = Comparison.of(X, Y, **options)
    n = compared.n
    if n_neighbors is not None:
        (k,) = check_neighbors([n_neighbors], n - 1, n)
        return _corner(compared, k)
    require_memory(
        3 * 8 * (n - 1) ** 2,
        task=f"the co-ranking matrix of {n} rows",
        alternative="ask for its corner, n_neighbors=100",
    )
    counts = np.zeros(n * n, np.int64)
    for data, (map_,) in _rank_blocks([compared]):
        counts += np.bincount((data.astype(np.int64) * n + map_).ravel(), minlength=n * n)
    return counts.reshape(n, n)[1:, 1:]


def rnx_curve(X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]) -> RnxCurve:
    """R_NX(K) = ((n - 1) Q_NX(K) - K) / (n - 1 - K), K = 1 .. n - 2.

    Q_NX(K) is the :func:`neighbor_recall` for K neighbors; R_NX rescales it so that 0 is a random
    map and 1 a perfect one at every K. The curve shows a map at all scales: nearest neighbors at
    the left end, the large-scale layout at the right end.

    Cost: all ranks of the measured rows, a sort of n distances for each of them, in blocks.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> rnx_curve(X, X[:, 2:]).values[[0, 9, 99]].round(3)
    array([0.134, 0.433, 0.943])
    """
    compared = _sortable(Comparison.of(X, Y, **options))
    n, m = _check_rows(compared.n), len(compared.rows)
    sums, squares = np.zeros(n - 2), np.zeros(n - 2)
    K = np.arange(1, n - 1)
    for (worse,) in _worse_ranks([compared]):
        for row in worse:
            share = np.cumsum(np.bincount(row, minlength=n))[1 : n - 1] / K
            sums += share
            squares += share**2
    mean = sums / m
    spread = np.sqrt(np.maximum(squares / m - mean**2, 0.0) * m / max(m - 1, 1))
    chance = n - 1 - K
    errors = spread * np.sqrt((1 - m / n) / m) * (n - 1) / chance
    return RnxCurve(K, ((n - 1) * mean - K) / chance, errors, m)


def rnx_auc(X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]) -> Measured:
    """(sum_K R_NX(K) / K) / (sum_K 1 / K), K = 1 .. n - 2: the curve's area over a log scale of K.

    One number for all scales, in which small neighborhoods count most (Lee et al. 2015). 1 is
    best, a random map has about 0. Cost as :func:`rnx_curve`.

    References
    ----------
    Lee, Peluffo-Ordóñez & Verleysen (2015), Multi-scale similarities in stochastic neighbour
    embedding, Neurocomputing 169.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(rnx_auc(X, X[:, 2:]), 4)
    0.4765
    """
    return rnx_aucs([Comparison.of(X, Y, **options)])[0]


def _sortable(compared: Comparison) -> Comparison:
    """As many of the measured rows as all ranks are affordable for."""
    return compared.fewer(compared.work.ranks())


def rnx_aucs(comparisons: list[Comparison]) -> list[Measured]:
    """:func:`rnx_auc` of several maps of the same data, whose ranks are computed once."""
    comparisons = _same_rows(comparisons)
    n = _check_rows(comparisons[0].n)
    K = np.arange(1.0, n - 1)
    # A pair is common to both neighborhoods from its worse rank on, and R_NX is linear in the
    # common pairs: each pair adds the weights of all K from its worse rank to the end.
    weights = (n - 1) / (n - 1 - K) / K**2
    gain = np.zeros(n)
    gain[1 : n - 1] = np.cumsum(weights[::-1])[::-1]
    chance = np.sum(1 / (n - 1 - K))
    values: list[list[np.ndarray]] = [[] for _ in comparisons]
    for worse in _worse_ranks(comparisons):
        for found, ranks in zip(values, worse, strict=True):
            found.append(gain[ranks].sum(axis=1))
    return [from_rows((np.concatenate(found) - chance) / np.sum(1 / K), n) for found in values]


def _same_rows(comparisons: list[Comparison]) -> list[Comparison]:
    first = _sortable(comparisons[0])
    return [first, *(first.with_map(compared.map.table) for compared in comparisons[1:])]


def _check_rows(n: int) -> int:
    if n < 4:
        raise DataError(f"R_NX needs at least 4 rows (n_samples={n}); give more rows.")
    return n


def _rank_blocks(comparisons: list[Comparison]) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Ranks of all rows, in the data and in each map, for blocks of the measured ones."""
    first = comparisons[0]
    with (
        first.options.working() as monitor,
        monitor.phase("ranks", total=len(first.rows)) as phase,
    ):
        for block in blocks_of(first.rows, first.n * len(comparisons)):  # all are held at once
            maps = [compared.map.all_ranks(block) for compared in comparisons]
            yield first.data.all_ranks(block), maps
            phase.advance(len(block))


def _worse_ranks(comparisons: list[Comparison]) -> Iterator[list[np.ndarray]]:
    """The worse of the two ranks of all other rows; the row itself counts as rank n - 1."""
    for data, maps in _rank_blocks(comparisons):
        worse = [np.maximum(data, ranks, out=ranks) for ranks in maps]
        for ranks in worse:
            ranks[data == 0] = comparisons[0].n - 1  # where the curve has ended
        yield worse


def _corner(compared: Comparison, k: int) -> np.ndarray:
    """The first k ranks, from neighbor lists alone."""
    rank_in_data = np.tile(np.arange(k), (len(compared.rows), 1))
    rank_in_map = positions(compared.data_neighbors(k), compared.map_neighbors(k))
    both = rank_in_map < k
    counts = np.bincount(rank_in_data[both] * k + rank_in_map[both], minlength=k * k)
    return counts.reshape(k, k)
