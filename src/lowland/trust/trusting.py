"""``trust``: where a map of any tool can be believed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._core.constraints import Integer, Null
from lowland._core.errors import DataError, LowlandError, ParameterError
from lowland._core.validation import check_matrix
from lowland._core.wording import shown
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics import Comparison, gap_test, inner_gaps
from lowland.metrics._options import Options
from lowland.metrics.grouping._cloud import Cloud
from lowland.trust._points import judged_points
from lowland.trust.chance import chance_of_map
from lowland.trust.contrast import contrast_of
from lowland.trust.refitting import MakeMap, RefitRows, islands_of
from lowland.trust.result import Chance, Island, Stability, Trust
from lowland.trust.sentences import sentences_about
from lowland.trust.stability import stability_of_others, stability_of_refits

FEWEST_ROWS = 10
FEWEST_REFITTED = 50  # rows; with fewer, parts of them say nothing
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
    the contrast of the islands. With it, three refits on parts of the rows tell what is stable, and
    a map of data without structure tells what is chance.

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

    No diagnostic sees everything. t-SNE depends on squared distances only up to a constant and a
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
    seed = _checked_seed(random_state)
    if not (Null() | Integer(FEWEST_ROWS)).allows(most_points):
        raise ParameterError(
            f"most_points={shown(most_points)} is not allowed; expected an integer >= "
            f"{FEWEST_ROWS}, or None."
        )
    if isinstance(X, NeighborGraph):
        raise DataError("X is a neighbor graph; trust needs the data, and takes a graph beside it.")
    compared = Comparison(
        X, Y, metric=metric, metric_params=metric_params, sample=None, n_jobs=n_jobs
    )
    n = compared.n
    if n < FEWEST_ROWS:
        raise DataError(f"X has {n} rows; a map of fewer than {FEWEST_ROWS} cannot be judged.")
    if graph is not None:
        _use(compared, graph)
    Y = np.asarray(compared.map.table, dtype=np.float64)
    island_of = islands_of(Y)
    judged = judged_points(compared, options, most_points, seed)
    cloud = Cloud(compared.data.X, options)
    known = {"metric": metric, "metric_params": metric_params, "n_jobs": n_jobs}
    linked = judged.island_pairs(Y, island_of)
    gaps = gap_test(cloud, island_of, pairs=linked, random_state=seed, **known)
    inner = inner_gaps(cloud, island_of, random_state=seed, **known)
    contrast = contrast_of(cloud, Y, island_of, judged.near)
    found = [
        Island(
            number,
            int((island_of == number).sum()),
            Y[island_of == number].mean(axis=0),
            inner.get(number),
            None,
        )
        for number in range(1, int(island_of.max(initial=0)) + 1)
    ]
    reasons = {"stability": NO_REFITS, "chance": NO_REFITS}
    parts = (judged.points, found, island_of, gaps, None, None, contrast)
    made = Trust(Y, *parts, sentences_about(*parts), reasons, judged.neighbors)
    if make_map is None and not others:
        return made
    return with_refits(
        made,
        compared.data.X,
        make_map,
        others,
        metric=metric,
        metric_params=metric_params,
        random_state=seed,
        n_jobs=n_jobs,
        verbose=verbose,
    )


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
    seed = _checked_seed(random_state)
    source = RefitRows(options.checked(X, "X"), options)
    Y, island_of = found.coordinates, found.island_of
    if source.X.shape[0] != len(Y):
        raise DataError(f"X has {source.X.shape[0]} rows, but the map has {len(Y)}.")
    reasons = dict(found.reasons)
    stability, chance = found.stability, found.chance
    if others:
        stability = stability_of_others(Y, island_of, _checked(others, Y), options.threads)
        del reasons["stability"]
    if make_map is not None:
        refits, chance, why = _refitted(source, Y, island_of, make_map, seed)
        stability = stability or refits
        for part in ("stability", "chance"):
            reasons.pop(part, None)
        missing = {"stability": stability, "chance": chance}
        reasons |= {part: why[part] for part, made in missing.items() if made is None}
    by_island = {each.island: each for each in stability.islands} if stability else {}
    islands = [each._replace(stability=by_island.get(each.number)) for each in found.islands]
    parts = (found.points, islands, island_of, found.gaps, stability, chance, found.contrast)
    return dataclasses.replace(
        found,
        islands=islands,
        stability=stability,
        chance=chance,
        sentences=sentences_about(*parts),
        reasons=reasons,
    )


def _refitted(
    source: RefitRows, Y: np.ndarray, island_of: np.ndarray, make_map: MakeMap, seed: int
) -> tuple[Stability | None, Chance | None, dict[str, str]]:
    """What needs refits, and why a part of it is missing."""
    if not callable(make_map):
        raise ParameterError(
            f"make_map={make_map!r} is not allowed; expected a function of rows and a seed."
        )
    if len(Y) < FEWEST_REFITTED:
        few = f"{len(Y)} rows are too few to make maps of parts of them"
        return None, None, {"stability": few, "chance": few}
    with source.options.working() as monitor:
        refits, first = stability_of_refits(source, Y, island_of, make_map, seed, monitor)
        no_null = source.no_null
        if not source.distances and source.X.shape[1] <= Y.shape[1]:
            no_null = "the data have no more columns than the map, which can keep any of them"
        if no_null:
            return refits, None, {"chance": no_null}
        try:
            chance = chance_of_map(source, refits.refits[0], first, make_map, seed, monitor)
        except LowlandError as error:  # what the method needs, such data may lack
            why = f"data without structure could not be mapped: {str(error).rstrip('.')}"
            return refits, None, {"chance": why}
    return refits, chance, {}


def _use(compared: Comparison, graph: NeighborGraph) -> None:
    """Let a comparison take over a graph, which may be approximate."""
    from lowland.metrics._graphs import check_graph

    check_graph(graph, compared.data.X, compared.data.metric, compared.data.params)
    if graph.indices.min(initial=0) >= 0:
        compared.data.know(graph)


def _checked(others: Sequence[Any] | None, Y: np.ndarray) -> list[np.ndarray]:
    if not isinstance(others, Sequence | np.ndarray | None) or isinstance(others, str):
        raise ParameterError(f"others={shown(others)} is not allowed; give a list of maps.")
    found = []
    for number, other in enumerate(() if others is None else others):
        name = f"others[{number}]"
        Z = check_matrix(other, owner="trust", argument=name)
        if len(Z) != len(Y):
            raise DataError(f"{name} has {len(Z)} rows, but Y has {len(Y)}; give maps of the same.")
        found.append(np.asarray(Z, dtype=np.float64))
    return found


def _checked_seed(random_state: Any) -> int:
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise ParameterError(
            f"random_state={random_state!r} is not allowed; expected an integer >= 0."
        )
    if random_state < 0:
        raise ParameterError(f"random_state={random_state} is not allowed; expected >= 0.")
    return int(random_state)
