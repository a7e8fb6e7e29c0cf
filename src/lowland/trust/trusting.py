"""``trust``: where a map of any tool can be believed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Function, Integer, Null, check_argument
from lowland._base.errors import DataError, LowlandError, ParameterError, shown
from lowland._base.memory import available_memory
from lowland._base.monitor import Monitor
from lowland._base.validation import check_matrix, is_sparse
from lowland._engines.distances.metrics import from_products
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics import Comparison, gap_test, inner_gaps, silhouette
from lowland.metrics._cloud import Cloud, linked_pairs, neighboring_pairs
from lowland.metrics._comparison import check_graph, of_all
from lowland.metrics._options import Options
from lowland.metrics._views import Work
from lowland.metrics.home import PointHome, homes
from lowland.metrics.missing import LISTED, NEIGHBORS, Neighborhoods
from lowland.trust import refitting
from lowland.trust.refitting import MakeMap, RefitPart, Refits, islands_of
from lowland.trust.result import Chance, Contrast, Island, OtherMap, Stability, Trust
from lowland.trust.sentences import sentences_about

# The points of a map that are judged: all, or a sample of them.


class JudgedPoints(NamedTuple):
    """Values of all points, the lists of those that were judged, and the neighbors of all."""

    rows: np.ndarray | None  # that were judged; None: all
    near: Neighborhoods  # among these
    points: PointHome
    neighbors: np.ndarray  # (n, k) in the data, -1 for a row that was not judged

    def island_pairs(self, Y: np.ndarray, island_of: np.ndarray) -> list[tuple[int, int]]:
        """Islands whose gap is tested: neighbors in the map, and those that the data link."""
        ids = self.near.in_data.indices[:, :NEIGHBORS]
        codes = island_of.astype(np.int64)
        linked = linked_pairs(ids, codes if self.rows is None else codes[self.rows])
        return sorted({*neighboring_pairs(Y, codes), *linked})


def judged_points(
    compared: Comparison, options: Options, most: int | None, seed: int
) -> JudgedPoints:
    """Judge all points, or a sample of ``most`` by its own neighbors."""
    n = compared.n
    if most is None or most >= n:
        near = Neighborhoods.of(compared, None, NEIGHBORS, None, {})
        # a copy: a view would keep the longer lists
        return JudgedPoints(None, near, homes(near), near.in_data.indices[:, : near.k].copy())
    rows = np.sort(np.random.default_rng([seed, 3]).choice(n, most, replace=False))
    part = options.part(compared.data.X, rows)
    some = Comparison(part, compared.map.table[rows], sample=None, **options.distances)
    near = Neighborhoods.of(some, None, NEIGHBORS, None, {})
    neighbors = of_all(rows[near.in_data.indices[:, : near.k]], rows, n, -1)
    return JudgedPoints(rows, near, homes(near).of_all(rows, n), neighbors)


# Whether islands are separated in the data, and whether large distances and sizes are kept.


ROWS = 1000  # of all islands together, between which distances are measured
EACH = 20  # rows of one island, at least
FEWEST_ISLANDS = 4  # for a correlation of the distances between their centers


def contrast_of(
    cloud: Cloud, Y: np.ndarray, island_of: np.ndarray, near: Neighborhoods
) -> Contrast:
    """Silhouette of the islands in the data, and correlations between data and map."""
    number = int(island_of.max(initial=0))
    separate = centers = np.nan
    if number >= 2:
        rows = _some_rows(island_of, number)
        codes, how = island_of[rows], cloud.options
        # All distances as they are. The coordinates of a cloud have few dimensions, and a constant
        # that is added to all squared distances takes as many as there are rows.
        part = how.part(cloud.X, rows)
        separate = float(silhouette(part, codes, sample=None, **how.distances))
        if number >= FEWEST_ISLANDS:
            X = cloud.of(rows)
            members = [codes == island for island in range(1, number + 1)]
            in_data = np.array([X[member].mean(axis=0) for member in members])
            in_map = np.array([Y[rows[member]].mean(axis=0) for member in members])
            centers = _correlation(_ranks(_distances(in_data)), _ranks(_distances(in_map)))
    return Contrast(separate, centers, _radii(near))


def _some_rows(island_of: np.ndarray, number: int) -> np.ndarray:
    """Rows of every island, in proportion to their sizes, but some of each."""
    rng = np.random.default_rng(0)
    sizes = np.bincount(island_of, minlength=number + 1)[1:]
    found = []
    for island, size in enumerate(sizes, start=1):
        wanted = max(EACH, round(ROWS * size / sizes.sum()))
        members = np.flatnonzero(island_of == island)
        found.append(rng.choice(members, min(wanted, size), replace=False))
    return np.sort(np.concatenate(found))


def _radii(near: Neighborhoods) -> float:
    """Correlation of the logarithms of the distances to the k-th neighbor, data and map."""
    radii = [side.distances[:, near.k - 1].astype(float) for side in (near.in_data, near.in_map)]
    known = (radii[0] > 0) & (radii[1] > 0)
    logs = [np.log(radius[known]) for radius in radii]
    return float("nan") if known.sum() < 3 else _correlation(*logs)


def _distances(points: np.ndarray) -> np.ndarray:
    """Distances of all pairs."""
    one, other = np.triu_indices(len(points), 1)
    return np.linalg.norm(points[one] - points[other], axis=1)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; ties get their mean rank."""
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[place]


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's correlation; NaN if there is none."""
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) > 0 and np.ptp(b) > 0 else float("nan")


# The map beside one of data without structure.


QUANTILE = 0.95  # of the null: what keeps more is more than chance


def chance_of_map(
    source: Refits, first: OtherMap, first_map: np.ndarray, monitor: Monitor
) -> Chance:
    """A refit of some rows and a map of as many rows without structure, made the same way."""
    rows, part = first.rows, RefitPart(first.rows, is_null=True)
    with monitor.phase("chance", total=1) as phase:
        null = source.null_of(rows, np.random.default_rng([source.seed, 2]))
        null_map = source.map_of(null, part, 4, first_map.shape[1])
        phase.advance(1)
    kept, null_kept = _kept(source, source.of(rows), first_map), _kept(source, null, null_map)
    limit = float(np.quantile(null_kept, QUANTILE))
    return Chance(
        float(kept.mean()),
        float(null_kept.mean()),
        int(islands_of(first_map).max()),
        int(islands_of(null_map).max()),
        float((kept > limit).mean()),
        # No row of the null belongs to a row of the data: it is scaled, but turning has no meaning.
        refitting.turned("without structure", rows, null_map, first.coordinates),
    )


def _kept(source: Refits, X: object, Y: np.ndarray) -> np.ndarray:
    """The share of each row's data neighbors that are its neighbors in the map."""
    compared = Comparison(X, Y, sample=None, **source.options.distances)
    k = min(NEIGHBORS, max(1, (compared.n - 1) // 4))
    return compared.overlaps(k)[:, -1] / k


# How many points are judged: all, or as many as a share of the map's time and the memory allow.


SHARE = 0.25  # of the map's time
LEAST_SECONDS = 2.0  # of one core, which are always allowed
LIKE_TSNE = 3e-4  # seconds per row, for a map of an unknown method
FEWEST = 500  # points, whatever they cost
POINT = 6e-5  # seconds: neighbors in the map, home, missing neighbors and strangers
PAIR, WIDE_PAIR = 2e-9, 3e-11  # seconds of a search: for any pair, and for each column
POINT_BYTES = LISTED * 12 * 2 * 2  # two lists, and as much while they are made


def affordable_rows(
    X: Any,
    metric: Any = "euclidean",
    graph: NeighborGraph | None = None,
    map_seconds: float | None = None,
) -> int | None:
    """How many points can be judged within a quarter of the map's time; None: all.

    Two seconds of one core are always spent, which is enough for 17 000 points of 50 columns. A
    graph with 75 neighbors spares the search in the data, whose cost grows with the square of the
    number of points.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, d)
    metric : str or callable, default="euclidean"
    graph : NeighborGraph, optional
        The neighbors in the data, if they are known.
    map_seconds : float, optional
        Seconds of one core that the map takes, by an estimate; None: as a t-SNE map.

    Examples
    --------
    >>> import numpy as np
    >>> affordable_rows(np.zeros((5000, 10)), map_seconds=1)
    >>> affordable_rows(np.zeros((500_000, 10)), map_seconds=1)
    19000
    """
    n, p = X.shape
    budget = max(LEAST_SECONDS, SHARE * (LIKE_TSNE * n if map_seconds is None else map_seconds))
    affordable = min(n, available_memory() // 2 // POINT_BYTES)
    # A method that found so many neighbors took longer than what is left to do.
    if graph is None or graph.n_neighbors < min(LISTED, max(1, (n - 1) // 4)):
        fast = not is_sparse(X) and from_products(metric)
        pair = PAIR + WIDE_PAIR * p if fast else Work.of(X, metric).pair
        # the number m of points with POINT m + pair m^2 = budget, rounded to thousands
        m = int((math.sqrt(POINT**2 + 4 * pair * budget) - POINT) / (2 * pair))
        affordable = min(affordable, m if m < 1000 else m // 1000 * 1000)
    return None if max(FEWEST, affordable) >= n else max(FEWEST, affordable)


FEWEST_ROWS = 10
FEWEST_REFITTED = 50  # rows; refits of fewer are not informative
NO_REFITS = "refits need a function that makes the map again (make_map)"


def trust(
    X: Any,
    Y: Any,
    graph: NeighborGraph | None = None,
    make_map: MakeMap | None = None,
    others: Sequence[Any] | None = None,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    most_points: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Trust:
    """Where a map can be believed: misplaced points, gaps that are not in the data, chance.

    The map may be made by any tool. Without ``make_map`` everything is measured that needs no
    refit: missing neighbors, strangers and home of each point (:func:`lowland.metrics.point_home`),
    the gaps between islands (:func:`lowland.metrics.gap_test`), islands that hold two groups, and
    the contrast of the islands. With it, three refits on subsamples show what is stable, and a map
    of structureless data shows what is chance.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n, d)
        The data as the map was made of; with ``metric="precomputed"`` an n x n matrix of distances.
    Y : array of shape (n, q)
        The map.
    graph : NeighborGraph, optional
        The nearest neighbors of the rows of X, if they are known: at least 75 spare a search.
    make_map : callable, optional
        ``make_map(X, seed)`` makes a map of other rows in the same way. X has as many columns as
        the data, or their 50 leading principal components if the data have more columns or are
        sparse; it is a matrix of distances if the data are. A function of three arguments also
        gets a :class:`RefitPart`: the numbers of the rows, and whether X is without structure.
    others : list of arrays of shape (n, q), optional
        Other maps of the same rows, such as those of other seeds: they tell what is stable, in
        place of refits.
    metric : str or callable, default="euclidean"
        Distance between rows of X.
    metric_params : dict, optional
        Arguments of the metric.
    most_points : int or None, default=None
        Of more points, a random sample is judged, by its neighbors within the sample; the others
        have NaN and the kind -1. Islands and gaps are those of all points. None: all are judged.
    random_state : int, default=0
        Seed of samples and of refits.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    Trust
        ``points``, ``islands``, ``gaps``, ``stability``, ``chance``, ``contrast``, and one sentence
        for each question in ``sentences``.

    Notes
    -----
    Cost without refits: the neighbors in the data and in the map, and about 50 ms per island. A
    refit takes 3/4 of few rows, 1/6 of many, at most 10 000; there are four with the null.
    :func:`with_refits` adds them to what is known already.

    No diagnostic finds everything. t-SNE depends on squared distances only up to a constant and a
    scale: data with hardly any cluster structure can have the same map, which only ``contrast``
    shows. How far an outlier lies from the rest is not visible in most maps.

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import iris
    >>> from lowland.trust import trust
    >>> X = iris().X
    >>> found = trust(X, PCA(2).fit_transform(X))
    >>> found
    Trust(150 points, 2 islands, no refits)
    >>> [(gap.one, gap.other, gap.verdict) for gap in found.gaps]
    [(1, 2, 'real')]
    >>> found.sentences[1].text
    'The gap between the two islands is in the data.'
    """
    options = Options(metric, metric_params, None, random_state, n_jobs, verbose)
    check_argument("random_state", random_state, Integer(0))
    check_argument("most_points", most_points, Integer(FEWEST_ROWS) | Null())
    if isinstance(X, NeighborGraph):
        raise DataError(
            "X is a neighbor graph; trust needs the data, and takes a graph only in addition."
        )
    compared = Comparison(X, Y, sample=None, **options.distances)
    if compared.n < FEWEST_ROWS:
        raise DataError(
            f"X has {compared.n} rows; a map of fewer than {FEWEST_ROWS} cannot be judged."
        )
    if graph is not None:  # it may be approximate
        check_graph(graph, compared.data.X, metric, metric_params)
        if graph.indices.min(initial=0) >= 0:
            compared.data.take_neighbors(graph)
    Y = np.asarray(compared.map.table, dtype=np.float64)
    known, island_of = {**options.distances, "random_state": random_state}, islands_of(Y)
    judged = judged_points(compared, options, most_points, random_state)
    cloud = Cloud(compared.data.X, options)
    gaps = gap_test(cloud, island_of, pairs=judged.island_pairs(Y, island_of), **known)
    inner = inner_gaps(cloud, island_of, **known)
    contrast = contrast_of(cloud, Y, island_of, judged.near)
    islands = []
    for number in range(1, int(island_of.max(initial=0)) + 1):
        member = island_of == number
        center = Y[member].mean(axis=0)
        islands.append(Island(number, int(member.sum()), center, inner.get(number), None))
    reasons = {"stability": NO_REFITS, "chance": NO_REFITS}
    parts = (judged.points, islands, island_of, gaps, None, None, contrast)
    found = Trust(Y, *parts, [], reasons, judged.neighbors)
    if make_map is None and not others:
        return dataclasses.replace(found, sentences=sentences_about(found))
    return with_refits(found, compared.data.X, make_map, others, verbose=verbose, **known)


def with_refits(
    found: Trust,
    X: Any,
    make_map: MakeMap | None = None,
    others: Sequence[Any] | None = None,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Trust:
    """What :func:`trust` has found, with stability and chance from refits or from other maps.

    Parameters
    ----------
    found : Trust
        Of the same map.
    X, make_map, others, metric, metric_params, random_state, n_jobs, verbose
        As in :func:`trust`.

    Returns
    -------
    Trust

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> found = trust(X, PCA(2).fit_transform(X))
    >>> again = with_refits(found, X, lambda X, seed: PCA(2).fit_transform(X))
    >>> found.stability is None, len(again.stability.refits), again.reasons
    (True, 3, {})
    """
    options = Options(metric, metric_params, None, random_state, n_jobs, verbose)
    check_argument("random_state", random_state, Integer(0))
    source = Refits(options.checked(X, "X"), options, make_map, random_state)
    Y = found.coordinates
    if source.X.shape[0] != len(Y):
        raise DataError(f"X has {source.X.shape[0]} rows, but the map has {len(Y)}.")
    reasons, stability, chance = dict(found.reasons), found.stability, found.chance
    if others:
        stability = refitting.stability_of_others(found, _checked(others, Y), options.threads)
        reasons.pop("stability", None)
    if make_map is not None:
        refits, chance, why = _refitted(source, found)
        stability = stability or refits
        made = {"stability": stability, "chance": chance}
        reasons = {part: why[part] for part in made if made[part] is None}
    by_island = {each.island: each for each in stability.islands} if stability else {}
    islands = [each._replace(stability=by_island.get(each.number)) for each in found.islands]
    parts = {"stability": stability, "chance": chance, "reasons": reasons}
    found = dataclasses.replace(found, islands=islands, **parts)
    return dataclasses.replace(found, sentences=sentences_about(found))


def _refitted(
    source: Refits, found: Trust
) -> tuple[Stability | None, Chance | None, dict[str, str]]:
    """What needs refits, and why a part of it is missing."""
    check_argument("make_map", source.make_map, Function())
    n, columns = found.coordinates.shape
    if n < FEWEST_REFITTED:
        few = f"{n} rows are too few to make maps of parts of them"
        return None, None, {"stability": few, "chance": few}
    with source.options.working() as monitor:
        refits, first = refitting.stability_of_refits(source, found, monitor)
        no_null = source.no_null
        if not source.distances and source.X.shape[1] <= columns:
            no_null = "the data have no more columns than the map, which can keep any of them"
        if no_null:
            return refits, None, {"chance": no_null}
        try:
            chance = chance_of_map(source, refits.refits[0], first, monitor)
        except LowlandError as error:  # what the method needs, such data may lack
            why = f"data without structure could not be mapped: {str(error).rstrip('.')}"
            return refits, None, {"chance": why}
    return refits, chance, {}


def _checked(others: Any, Y: np.ndarray) -> list[np.ndarray]:
    if not isinstance(others, Sequence | np.ndarray) or isinstance(others, str):
        raise ParameterError(f"others={shown(others)} is not allowed; give a list of maps.")
    found = []
    for number, other in enumerate(others):
        name = f"others[{number}]"
        Z = check_matrix(other, owner="trust", argument=name)
        if len(Z) != len(Y):
            raise DataError(f"{name} has {len(Z)} rows, but Y has {len(Y)}; give maps of the same.")
        found.append(np.asarray(Z, dtype=np.float64))
    return found
