"""The co-ranking matrix, and the R_NX curve that is read from it (Lee & Verleysen)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._engines.distances.distance_rows import blocks_of
from lowland.metrics._comparison import Comparison, all_rows, positions, spread
from lowland.metrics._measured import Measured, from_rows
from lowland.metrics._options import MapKeywords, check_neighbors


class RnxCurve(NamedTuple):
    """R_NX for every size K of the neighborhood: three arrays of n - 2, and the rows measured."""

    n_neighbors: np.ndarray
    values: np.ndarray
    standard_errors: np.ndarray
    sample_size: int


def coranking_matrix(
    X: Any, Y: Any = None, n_neighbors: int | None = None, **options: Unpack[MapKeywords]
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
    if n_neighbors is not None:  # the corner, from neighbor lists alone
        (k,) = check_neighbors([n_neighbors], n - 1, n)
        rank_in_data = np.tile(np.arange(k), (len(compared.rows), 1))
        rank_in_map = positions(compared.data_neighbors(k), compared.map_neighbors(k))
        both = rank_in_map < k
        counts = np.bincount(rank_in_data[both] * k + rank_in_map[both], minlength=k * k)
        return counts.reshape(k, k)
    require_memory(
        3 * 8 * (n - 1) ** 2,
        task=f"the co-ranking matrix of {n} rows",
        alternative="ask for its corner, n_neighbors=100",
    )
    counts = np.zeros(n * n, np.int64)
    for data, (map_,) in _rank_blocks([compared]):
        counts += np.bincount((data.astype(np.int64) * n + map_).ravel(), minlength=n * n)
    return counts.reshape(n, n)[1:, 1:]


def rnx_curve(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> RnxCurve:
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
    n, m = compared.n, len(compared.rows)
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


def rnx_auc(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> Measured:
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
    if compared.n < 4:
        raise DataError(f"R_NX needs at least 4 rows (n_samples={compared.n}); give more rows.")
    return compared.fewer(compared.work.ranks())


def rnx_aucs(comparisons: list[Comparison]) -> list[Measured]:
    """:func:`rnx_auc` of several maps of the same data, whose ranks are computed once."""
    first = _sortable(comparisons[0])
    comparisons = [first, *(first.with_map(compared.map.table) for compared in comparisons[1:])]
    n = first.n
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


def _rank_blocks(comparisons: list[Comparison]) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Ranks of all rows, in the data and in each map, for blocks of the measured ones."""
    first = comparisons[0]
    with first.options.working() as monitor, monitor.phase("ranks", total=len(first.rows)) as phase:
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


# Mean relative rank errors (Lee & Verleysen 2007).


class RankErrors(NamedTuple):
    """Errors among the map's neighbors (false ones cost) and the data's (missing ones cost)."""

    false: Measured
    missing: Measured


def mean_relative_rank_errors(
    X: Any, Y: Any = None, n_neighbors: int | Sequence[int] = 10, **options: Unpack[MapKeywords]
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
    sizes = _sizes(n_neighbors, n)
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


# The share of neighbors that a map keeps: recall, and recall corrected for chance (LCMC).


def neighbor_recall(
    X: Any, Y: Any = None, n_neighbors: int | Sequence[int] = 10, **options: Unpack[MapKeywords]
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
    X: Any, Y: Any = None, n_neighbors: int | Sequence[int] = 10, **options: Unpack[MapKeywords]
) -> Measured | list[Measured]:
    """LCMC(k) = Q(k) - k / (n - 1): the recall less what chance would give (Chen & Buja 2009).

    The local continuity meta-criterion. Its largest value over k shows at which scale a map is
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


# Trustworthiness and continuity (Venna & Kaski 2001), of the map and of each point.


def trustworthiness(
    X: Any, Y: Any = None, n_neighbors: int | Sequence[int] = 10, **options: Unpack[MapKeywords]
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
    return _means(compared, compared.data_ranks, n_neighbors)


def continuity(
    X: Any, Y: Any = None, n_neighbors: int | Sequence[int] = 10, **options: Unpack[MapKeywords]
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
    return _means(compared, compared.map_ranks, n_neighbors)


def point_trust(
    X: Any, Y: Any = None, n_neighbors: int = 10, **options: Unpack[MapKeywords]
) -> np.ndarray:
    """Each point's share in :func:`trustworthiness`, for coloring the map; their mean is T(k).

    Low where the neighbors of a point in the map are false. All rows are measured unless ``sample``
    limits them; rows that are not measured are NaN.

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
    X: Any, Y: Any = None, n_neighbors: int = 10, **options: Unpack[MapKeywords]
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


def _means(compared: Comparison, ranks_of: Any, n_neighbors: Any) -> Measured | list[Measured]:
    sizes = _sizes(n_neighbors, compared.n)
    ranks = ranks_of(max(sizes))
    found = [from_rows(point_scores(ranks, k, compared.n), compared.n) for k in sizes]
    return found[0] if np.ndim(n_neighbors) == 0 else found
