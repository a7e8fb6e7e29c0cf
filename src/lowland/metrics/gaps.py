"""Whether gaps between islands of a map are in the data, and whether an island holds two groups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import scipy.sparse

from lowland._base.constraints import Integer, Several, check_argument
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError, shown
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.validation import check_matrix
from lowland._engines.graphs.components import connected_components
from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.linalg.eigen import all_eigenpairs, smallest_eigenpairs
from lowland._engines.neighbors.duplicates import equal_rows
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query
from lowland.metrics._cloud import Cloud, checked_islands, linked_pairs, neighboring_pairs
from lowland.metrics._comparison import check_graph_rows
from lowland.metrics._options import Keywords, Options


def with_bridges(gaps: list[Gap]) -> list[Gap]:
    """The gaps, with other verdicts where a chain of islands connects the two better.

    The width of a chain is its smallest cut. The widest chain between two islands lies on the
    maximum spanning tree of the graph whose edges are cuts. A gap is as real as the widest chain
    around it allows.
    """
    chains, found = _widest_chains(gaps), []
    for gap in gaps:
        if gap.verdict == "real":
            path, width = chains[gap.one, gap.other]
            around = verdict_of(width)
            if len(path) > 2 and around != "real":
                verdict = "bridged" if around == "not in the data" else "unclear"
                gap = gap._replace(verdict=verdict, through=path[1:-1])
        found.append(gap)
    return found


def _widest_chains(gaps: list[Gap]) -> dict[tuple[int, int], tuple[tuple[int, ...], float]]:
    """For each two connected islands, the widest chain from one to the other, and its width.

    Kruskal's algorithm: a gap that joins two trees ends the chains between their islands.
    """
    tested = [gap for gap in gaps if not math.isnan(gap.cut)]
    islands = {island for gap in tested for island in (gap.one, gap.other)}
    tree_of: dict[int, tuple[int, ...]] = {island: (island,) for island in islands}
    chains: dict[tuple[int, int], tuple[tuple[int, ...], float]]
    chains = {(island, island): ((island,), math.inf) for island in islands}
    for gap in sorted(tested, key=lambda gap: (-gap.cut, gap.one, gap.other)):
        one, other = tree_of[gap.one], tree_of[gap.other]
        if gap.other in one:
            continue
        for a, b in itertools.product(one, other):
            path = chains[a, gap.one][0] + chains[gap.other, b][0]
            chains[a, b], chains[b, a] = (path, gap.cut), (path[::-1], gap.cut)
        tree_of |= dict.fromkeys(one + other, one + other)
    return chains


# Gaps along curves: where points lie on a line, wide gaps between neighbors occur by chance.


FAR = 24  # neighbors; the dimension is measured between a third of them and all
FEWEST_ON_CURVE = 12  # points of a side
CURVE = 1.5  # dimensions below this are those of a curve
WIDER = 2.0  # than the widest spacing inside of a side


def may_be_spacing(A: np.ndarray, B: np.ndarray, threads: int) -> bool:
    """Whether the gap between two sets of points on a curve is no wider than chance makes it.

    The widest of n spacings on a line is about ln n times the mean one, more than the reach of a
    few neighbors, so that no neighbor edge crosses it. It is hardly ever twice as wide as the next
    one. A gap along a curve is therefore compared with the widest spacing inside of the two sides,
    the longest edge of their minimum spanning trees. In more dimensions there is a way around.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    widest = 0.0
    for side in (A, B):
        if len(side) < FEWEST_ON_CURVE:
            return False
        k = min(FAR, len(side) // 4)
        graph = neighbor_graph(side, k, threads=threads)
        near, far = (graph.distances[:, m - 1].astype(np.float64) for m in (k // 3, k))
        growing = (near > 0) & (far > near)
        if not growing.any():
            return False
        dimension = np.median(np.log(k / (k // 3)) / np.log(far[growing] / near[growing]))
        if dimension >= CURVE:
            return False
        tree = minimum_spanning_tree(graph.to_csr())
        whole = tree.nnz == len(side) - 1  # a graph that falls apart has wider spacings
        widest = max(widest, float(tree.data.max(initial=0.0)) if whole else np.inf)
    between = neighbor_query(A, B, 1, threads=threads).distances.min()
    return float(between) < WIDER * widest


# Whether the gap between two islands of a map is in the data.


REAL, UNREAL = 0.3, 0.5  # cuts below and above
NEIGHBORS = 15
ROWS = 1000  # of both islands together
FEWEST = 100  # rows of the smaller island, if it has so many
FEWEST_POINTS = 5  # different ones, on either side
SHRINKAGE = 0.1  # of the covariance within islands, towards a multiple of I
AXES = 3  # principal axes along which an island is cut for comparison
MISPLACED = 0.8  # share of a point's neighbors on the other side
MOST_MISPLACED = 0.1  # share of such points of a side
MOST_PAIRS = 300  # the largest pairs of islands are tested


class Gap(NamedTuple):
    """The gap between two islands; ``one == other`` for a split within one island."""

    one: int
    other: int
    severed: float  # share of neighbor edges that cross the gap
    reference: float  # the same for a cut through one cloud of the same shape
    cut: float  # severed / reference
    verdict: str  # "real", "not in the data", "unclear" or "bridged"
    through: tuple[int, ...] = ()  # islands of a chain that connects the two better than the gap


def gap_test(
    X: Any,
    islands: Any,
    Y: Any = None,
    *,
    pairs: Any = None,
    graph: Any = None,
    n_neighbors: int = NEIGHBORS,
    **options: Unpack[Keywords],
) -> list[Gap]:
    """cut = severed / reference: the share of neighbor edges between two islands, and in one cloud.

    For islands A and B, severed is the number of edges of the k-neighbor graph of their rows that
    cross from one to the other, divided by 2 k min(n_A, n_B). The reference is the least of the
    same numbers for cuts where there is no gap:

    - a Gaussian with the covariance of A and B together, cut at the same share along
      w = S_W^-1 (m_B - m_A), where S_W is the covariance within the islands, shrunk by 10 %;
    - A alone and B alone, cut at the median along each of their first three principal axes.

    cut < 0.3: the gap is *real*. cut > 0.5: it is *not in the data*. Else it is *unclear*. Two
    islands with a real gap between them may be connected through others: if a chain of gaps that
    are not in the data leads from one to the other, they are *bridged*, and if the weakest gap of
    the best chain is unclear, so are they.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, d)
        The data; with ``metric="precomputed"`` an n x n matrix of distances.
    islands : array of n integers
        The island of each row, as :func:`lowland.metrics.islands` numbers them: 1, 2, ..., and 0
        for rows of no island.
    Y : array of shape (n, q), optional
        The map. If it is given, the islands that are neighbors in the map are tested, and those
        that neighbors in the data link most. By default all pairs are tested.
    pairs : list of (int, int), optional
        The pairs to test.
    graph : NeighborGraph, optional
        Neighbors of the rows of X, for finding islands that the data link.
    n_neighbors : int, default=15
        k; less for islands of fewer than 30 rows.
    **options
        ``metric``, ``random_state`` and others, see :class:`Comparison`.

    Returns
    -------
    list of Gap
        In the order of the islands; at most 300, those of the largest islands.

    Notes
    -----
    Up to 10 % of the points of an island may have 80 % or more of their neighbors in the other one:
    the map has misplaced these points, and their edges do not count. Along a curve wide gaps occur
    by chance: one that is not twice as wide as any inside of the islands is unclear.

    At most 1000 rows of a pair are taken, and equal rows count once. Cost per pair: four neighbor
    searches among 1000 rows or fewer, about 30 ms. Of data with more than 100 columns the 50
    leading principal components are taken.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 5))
    >>> X[400:] += 6                                   # two groups
    >>> halves = np.where(X[:400, 0] < 0, 1, 2)        # the first is cut in two
    >>> islands = np.concatenate([halves, np.full(200, 3)])
    >>> [(gap.one, gap.other, gap.verdict) for gap in gap_test(X, islands)]
    [(1, 2, 'not in the data'), (1, 3, 'real'), (2, 3, 'real')]
    """
    check_argument("n_neighbors", n_neighbors, Integer(1))
    how = Options(**options)
    cloud = X if isinstance(X, Cloud) else Cloud(X, how)
    codes = checked_islands(islands, cloud.n)
    members = [np.flatnonzero(codes == number) for number in range(codes.max(initial=0) + 1)]
    if graph is not None:
        check_graph_rows(graph, cloud.n)
    if pairs is not None:
        found = _checked_pairs(pairs, len(members) - 1)
    elif Y is None:  # some number may have no rows
        found = list(itertools.combinations(np.unique(codes[codes > 0]).tolist(), 2))
    else:  # neighbors in the map and in the data
        Y = np.asarray(check_matrix(Y, owner="gap_test", argument="Y"), dtype=np.float64)
        if len(Y) != len(codes):
            raise DataError(f"Y has {len(Y)} rows, but X has {len(codes)}; give a map of the same.")
        linked = [] if graph is None else linked_pairs(graph.indices[:, :NEIGHBORS], codes)
        found = sorted({*neighboring_pairs(Y, codes), *linked})
    found.sort(key=lambda pair: -min(len(members[number]) for number in pair))
    seed = int(how.rng.integers(2**31))
    gaps = []
    with limit_blas(1):
        for one, other in sorted(found[:MOST_PAIRS]):
            # The numbers of islands are not part of the seed: if a map is turned, islands of equal
            # size may change numbers, but not the verdict.
            rng = np.random.default_rng(seed)
            rows = sampled(members[one], members[other], rng)
            # together: coordinates that are made of distances hold for the rows asked for only
            both = cloud.of(np.concatenate(rows))
            A, B = both[: len(rows[0])], both[len(rows[0]) :]
            gaps.append(gap_between(one, other, A, B, n_neighbors, rng, how.threads))
    return with_bridges(gaps)


def verdict_of(cut: float) -> str:
    """The verdict on a gap by its cut; NaN gives none."""
    return "real" if cut < REAL else "not in the data" if cut > UNREAL else "unclear"


def gap_between(
    one: int,
    other: int,
    A: np.ndarray,
    B: np.ndarray,
    k: int,
    rng: np.random.Generator,
    threads: int,
    most: float = np.inf,
) -> Gap:
    """The test of two sets of points; ``most`` bounds the reference from above.

    Equal points of a set count once: where values were rounded, the copies of a point would have
    edges to one another only, and every value would be an island. A set of fewer than five
    different points cannot be tested. A gap along a curve that chance may have made is unclear.
    """
    A, B = distinct(A, threads), distinct(B, threads)
    least = min(len(A), len(B))
    if least < FEWEST_POINTS:
        return Gap(one, other, np.nan, np.nan, np.nan, "unclear")
    k = max(1, min(k, least // 2))
    both = np.concatenate([A, B])
    side = np.arange(len(both)) >= len(A)
    severed = crossing(both, side, k, threads) / (2 * k * least)
    references = [gaussian_cut(both, side, k, rng, threads)]
    for part in (A, B):
        references += median_cuts(part, max(1, min(k, len(part) // 2)), threads)
    # One edge at least: no cloud falls apart without a single one.
    reference = min(max(min(references), 1 / (2 * k * least)), most)
    verdict = verdict_of(severed / reference)
    if verdict == "real" and may_be_spacing(A, B, threads):
        verdict = "unclear"
    return Gap(one, other, severed, reference, severed / reference, verdict)


def distinct(X: np.ndarray, threads: int) -> np.ndarray:
    """The rows of X without copies, in their order."""
    if len(X) < 2:
        return X
    equal = equal_rows(X, threads)
    return X if equal is None else X[equal.first]


def sampled(
    A: np.ndarray, B: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """At most ROWS rows of both, in proportion, but FEWEST of the smaller if it has so many."""
    if len(A) + len(B) <= ROWS:
        return A, B
    if len(B) < len(A):
        return sampled(B, A, rng)[::-1]
    few = max(round(ROWS * len(A) / (len(A) + len(B))), min(FEWEST, len(A)))
    small = np.sort(rng.choice(A, few, replace=False))
    return small, np.sort(rng.choice(B, ROWS - few, replace=False))


def crossing(X: np.ndarray, side: np.ndarray, k: int, threads: int) -> int:
    """The number of neighbor edges that lead from one side to the other."""
    return crossed(neighbor_graph(X, min(k, len(X) - 1), threads=threads).indices, side)


def crossed(ids: np.ndarray, side: np.ndarray) -> int:
    """The number of edges between two sides; edges of single misplaced points do not count.

    A point is misplaced if at least 80 % of its neighbors lie on the other side. One in twenty such
    points would have as many edges across a real gap as a cloud has across a cut. Where more than
    10 % of a side are such points, they are not exceptions, and all edges count.
    """
    across = side[ids] != side[:, None]
    lost = across.mean(axis=1) >= MISPLACED
    for part in (side, ~side):
        if lost[part].sum() > MOST_MISPLACED * part.sum():
            lost &= ~part
    return int((across & ~lost[:, None] & ~lost[ids]).sum())


def gaussian_cut(
    X: np.ndarray, side: np.ndarray, k: int, rng: np.random.Generator, threads: int
) -> float:
    """Severed edges of a Gaussian with the covariance of X, cut where the two sides are."""
    n, p = X.shape
    least = min(int(side.sum()), int((~side).sum()))
    values, vectors = all_eigenpairs(np.cov(X.T).reshape(p, p))
    Z = (rng.standard_normal((n, p)) * np.sqrt(np.maximum(values, 0))) @ vectors.T
    along = Z @ _discriminant(X, side)
    cut = np.zeros(n, bool)
    cut[np.argsort(along, kind="stable")[int((~side).sum()) :]] = True
    return crossing(Z, cut, k, threads) / (2 * k * least)


def _discriminant(X: np.ndarray, side: np.ndarray) -> np.ndarray:
    """w = S_W^-1 (m_B - m_A), with S_W shrunk towards the mean variance."""
    p = X.shape[1]
    means = [X[~side].mean(axis=0), X[side].mean(axis=0)]
    within = X - np.where(side[:, None], means[1], means[0])
    S = within.T @ within / len(X)
    level = np.trace(S) / p
    if not level > 0:
        return means[1] - means[0]
    S = (1 - SHRINKAGE) * S + SHRINKAGE * level * np.eye(p)
    return np.linalg.solve(S, means[1] - means[0])


def median_cuts(X: np.ndarray, k: int, threads: int) -> list[float]:
    """Severed edges of one island, cut at the median along its principal axes."""
    n = len(X)
    if n < 4:
        return []
    ids = neighbor_graph(X, min(k, n - 1), threads=threads).indices
    centered = X - X.mean(axis=0)
    axes = all_eigenpairs(centered.T @ centered).vectors[:, :AXES]
    found = []
    for along in (centered @ axes).T:
        cut = np.zeros(n, bool)
        cut[np.argsort(along, kind="stable")[n // 2 :]] = True
        found.append(crossed(ids, cut) / (ids.shape[1] * n))
    return found


def _checked_pairs(pairs: Any, m: int) -> list[tuple[int, int]]:
    """Different pairs of islands from 1 to m, each in order."""
    if not isinstance(pairs, Sequence | np.ndarray) or isinstance(pairs, str):
        raise ParameterError(f"pairs={shown(pairs)} is not allowed; give a list of pairs.")
    for pair in pairs:
        several = Several(Integer(1, m)).allows(pair)
        if not several or len(pair) != 2 or pair[0] == pair[1]:
            raise ParameterError(
                f"pairs: {shown(pair)} is not allowed; expected two different islands from 1 to "
                f"{m}."
            )
    return sorted({(int(min(pair)), int(max(pair))) for pair in pairs})


# Whether one island of a map holds two groups that the data separate.


LEAST_SHARE = 0.1  # of the rows of an island, on the smaller side of a split
FEWEST_SPLIT = 40  # different rows of an island that is split
SPLIT_ROWS = 500  # of an island


def inner_gaps(
    X: Any, islands: Any, *, n_neighbors: int = NEIGHBORS, **options: Unpack[Keywords]
) -> dict[int, Gap]:
    """The test of :func:`gap_test` for the most likely split of each island.

    The neighbor graph of the rows of an island (at most 500) is split where the fewest edges are
    cut relative to the smaller side: along the second eigenvector of its normalized Laplacian, at
    the place of the least conductance that leaves 10 % of the rows on either side. A cut below
    0.3 is *real*: the island holds two groups, and the map has laid them over one another. Islands
    of fewer than 40 different rows are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 5))
    >>> X[300:] += 8
    >>> inner_gaps(X, np.ones(400, int))[1].verdict
    'real'
    """
    check_argument("n_neighbors", n_neighbors, Integer(1))
    how = Options(**options)
    cloud = X if isinstance(X, Cloud) else Cloud(X, how)
    codes = checked_islands(islands, cloud.n)
    seed = int(how.rng.integers(2**31))
    found = {}
    with limit_blas(1):
        for number in range(1, int(codes.max(initial=0)) + 1):
            rng = np.random.default_rng(seed)  # not of the number, see gap_test
            rows = np.flatnonzero(codes == number)
            rows = np.sort(rng.choice(rows, min(SPLIT_ROWS, len(rows)), replace=False))
            if len(rows) < FEWEST_SPLIT:
                continue
            points = distinct(cloud.of(rows), how.threads)
            if len(points) >= FEWEST_SPLIT:
                found[number] = split_gap(number, points, n_neighbors, rng, how.threads)
    return found


def split_gap(number: int, X: np.ndarray, k: int, rng: np.random.Generator, threads: int) -> Gap:
    """The test of the best split of one cloud.

    The best of all splits cuts fewer edges than a split at a given place. The reference is
    therefore at most what the best split of one of the two sides cuts: if the sides are clouds
    without a gap, these are as good.
    """
    side = best_split(X, k, threads, rng)
    A, B = X[~side], X[side]
    again = [_best_cut(part, k, threads, rng) for part in (A, B) if len(part) >= FEWEST_SPLIT // 2]
    return gap_between(number, number, A, B, k, rng, threads, most=max(again, default=np.inf))


def _best_cut(X: np.ndarray, k: int, threads: int, rng: np.random.Generator) -> float:
    side = best_split(X, k, threads, rng)
    least = min(int(side.sum()), int((~side).sum()))
    k = max(1, min(k, least // 2))
    return max(crossing(X, side, k, threads), 1) / (2 * k * least)


def best_split(X: np.ndarray, k: int, threads: int, rng: np.random.Generator) -> np.ndarray:
    """Two sides of a cloud, with the least conductance along the Fiedler vector."""
    n = len(X)
    k = max(1, min(k, n // 4))
    ids = neighbor_graph(X, k, threads=threads).indices
    ones = np.ones(n * k)
    W = scipy.sparse.csr_matrix((ones, ids.ravel(), np.arange(0, n * k + 1, k)), (n, n))
    W = (W + W.T).tocsr()
    n_parts, part = connected_components(W)
    if n_parts > 1:  # in the order of their sizes, so that a sweep does not cut any of them first
        along = np.argsort(np.argsort(-np.bincount(part), kind="stable"))[part].astype(float)
    else:
        L, degrees = laplacian(W, "symmetric")
        run = FitContext(rng, threads, Monitor())
        pairs = smallest_eigenpairs(L, 1, run, tol=1e-3, trivial=np.sqrt(degrees), norm=2.0)
        along = pairs.vectors[:, 0] / np.sqrt(degrees)
    return _sweep(W, along)


def _sweep(W: Any, along: np.ndarray) -> np.ndarray:
    """The threshold with the least conductance, cut / volume of the smaller side."""
    n = len(along)
    order = np.argsort(along, kind="stable")
    place = np.argsort(order)
    edges = W.tocoo()
    # An edge from place a to place b > a is cut by every threshold between the two.
    low = np.minimum(place[edges.row], place[edges.col])
    high = np.maximum(place[edges.row], place[edges.col])
    opened = np.bincount(low, edges.data, n) - np.bincount(high, edges.data, n)
    cut = np.cumsum(opened)[:-1]
    volume = np.cumsum(np.asarray(W.sum(axis=1)).ravel()[order])
    conductance = cut / np.minimum(volume[:-1], volume[-1] - volume[:-1])
    least = max(1, int(LEAST_SHARE * n))
    allowed = slice(least - 1, n - least)
    best = least - 1 + int(np.argmin(conductance[allowed]))
    side = np.zeros(n, bool)
    side[order[best + 1 :]] = True
    return side
