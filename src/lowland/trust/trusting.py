"""``trust``: where a map of any tool can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._core.validation import check_matrix
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics import Comparison, gap_test, inner_gaps
from lowland.metrics._options import Options
from lowland.metrics.grouping._cloud import Cloud
from lowland.metrics.pointwise.home import homes
from lowland.metrics.pointwise.missing import NEIGHBORS, Neighborhoods
from lowland.trust.chance import chance_of_map
from lowland.trust.contrast import contrast_of
from lowland.trust.refitting import MakeMap, RefitRows, islands_of
from lowland.trust.result import Chance, Island, Stability, Trust
from lowland.trust.sentences import sentences_about
from lowland.trust.stability import stability_of_others, stability_of_refits

__all__ = ["FEWEST_ROWS", "trust"]

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
        sparse; it is a matrix of distances if the data are.
    others : list of arrays of shape (n, q), optional
        Other maps of the same rows, such as those of other seeds: they tell what is stable, in
        place of refits.
    metric : str or callable, default="euclidean"
        Distance between rows of X.
    metric_params : dict, optional
        Arguments of the metric.
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
    compared = Comparison(
        X, Y, metric=metric, metric_params=metric_params, sample=None, n_jobs=n_jobs
    )
    n = compared.n
    if n < FEWEST_ROWS:
        raise DataError(f"X has {n} rows; a map of fewer than {FEWEST_ROWS} cannot be judged.")
    if graph is not None:
        _use(compared, graph)
    Y = np.asarray(compared.map.table, dtype=np.float64)
    near = Neighborhoods.of(compared, None, NEIGHBORS, None, {})
    points = homes(near)
    island_of = islands_of(Y)
    cloud = Cloud(compared.data.X, options)
    known = {"metric": metric, "metric_params": metric_params, "n_jobs": n_jobs}
    linked = NeighborGraph(*near.in_data, n, "euclidean")
    gaps = gap_test(cloud, island_of, Y, graph=linked, random_state=seed, **known)
    inner = inner_gaps(cloud, island_of, random_state=seed, **known)
    contrast = contrast_of(cloud, Y, island_of, near)
    stability, chance, reasons = _refitted(
        RefitRows(compared.data.X, options), Y, island_of, make_map, _checked(others, Y), seed
    )
    by_island = {each.island: each for each in stability.islands} if stability else {}
    found = [
        Island(
            number,
            int((island_of == number).sum()),
            Y[island_of == number].mean(axis=0),
            inner.get(number),
            by_island.get(number),
        )
        for number in range(1, int(island_of.max(initial=0)) + 1)
    ]
    parts = (points, found, island_of, gaps, stability, chance, contrast)
    return Trust(Y, *parts, sentences_about(*parts), reasons, near.in_data.indices[:, : near.k])


def _refitted(
    source: RefitRows,
    Y: np.ndarray,
    island_of: np.ndarray,
    make_map: MakeMap | None,
    others: list[np.ndarray],
    seed: int,
) -> tuple[Stability | None, Chance | None, dict[str, str]]:
    """What needs other maps, and why a part is missing."""
    reasons: dict[str, str] = {}
    stability: Stability | None = None
    if others:
        stability = stability_of_others(Y, island_of, others, source.options.threads)
    if make_map is None:
        reasons |= (
            {"chance": NO_REFITS} if others else {"stability": NO_REFITS, "chance": NO_REFITS}
        )
        return stability, None, reasons
    if not callable(make_map):
        raise ParameterError(
            f"make_map={make_map!r} is not allowed; expected a function of rows and a seed."
        )
    if len(Y) < FEWEST_REFITTED:
        few = f"{len(Y)} rows are too few to make maps of parts of them"
        return stability, None, {"stability": few, "chance": few}
    with source.options.working() as monitor:
        refits, first = stability_of_refits(source, Y, island_of, make_map, seed, monitor)
        chance = None
        if source.no_null:
            reasons["chance"] = source.no_null
        else:
            chance = chance_of_map(source, refits.refits[0], first, make_map, seed, monitor)
    return stability or refits, chance, reasons


def _use(compared: Comparison, graph: NeighborGraph) -> None:
    """Let a comparison take over a graph, which may be approximate."""
    from lowland.metrics._graphs import check_graph

    check_graph(graph, compared.data.X, compared.data.metric, compared.data.params)
    if graph.indices.min(initial=0) >= 0:
        compared.data.know(graph)


def _checked(others: Sequence[Any] | None, Y: np.ndarray) -> list[np.ndarray]:
    found = []
    for number, other in enumerate(others or ()):
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
