"""Hubs: rows that are neighbors of very many rows (Radovanović et al. 2010)."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._core.monitor import Monitor
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph
from lowland.metrics._options import Keywords, Options, check_neighbors


class Hubness(NamedTuple):
    """How unequally rows are chosen as neighbors."""

    skewness: float
    antihub_share: float
    top_share: float
    occurrences: np.ndarray


def hubness(X: Any, n_neighbors: int = 10, **options: Unpack[Keywords]) -> Hubness:
    """Skewness of N_k(j) = number of rows that have j among their k nearest.

    In many dimensions a few rows near the center are neighbors of very many rows (hubs), and many
    rows are neighbors of none (antihubs). Neighbor-based maps pull hubs to the center and place
    antihubs poorly. The skewness is about 0 without hubs; above 1 there are strong ones. It grows
    with the intrinsic dimension.

    Parameters
    ----------
    X : array, data frame, CSR matrix, distances (``metric="precomputed"``) or NeighborGraph
    n_neighbors : int, default=10
    **options
        See :class:`Comparison`. All rows are always counted; a sample would hide hubs.

    Returns
    -------
    Hubness
        ``skewness``; ``antihub_share``, the share of rows that are a neighbor of no row;
        ``top_share``, the share of all neighborhood places that the top 1 % of rows hold; and
        ``occurrences``, N_k of every row, for coloring a map.

    References
    ----------
    Radovanović, Nanopoulos & Ivanović (2010), Hubs in space: popular nearest neighbors in
    high-dimensional data, J. Machine Learning Research 11.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> round(hubness(rng.random((1000, 2))).skewness, 2)
    -0.1
    >>> round(hubness(rng.normal(size=(1000, 100))).skewness, 2)
    3.3
    """
    options["sample"] = None
    settings = Options(**options)
    X = settings.checked(X, "X")
    n = len(X) if isinstance(X, NeighborGraph) else X.shape[0]
    (k,) = check_neighbors([n_neighbors], n - 1, n)
    with settings.working() as monitor:
        near = _neighbors(X, k, settings, monitor)
    counts = np.bincount(near.ravel(), minlength=n)
    gap = counts - counts.mean()
    deviation = np.sqrt(np.mean(gap**2))
    skewness = float(np.mean(gap**3) / deviation**3) if deviation > 0 else 0.0
    top = np.sort(counts)[-max(1, n // 100) :].sum() / counts.sum()
    return Hubness(skewness, float((counts == 0).mean()), float(top), counts)


def _neighbors(X: Any, k: int, settings: Options, monitor: Monitor) -> np.ndarray:
    """Neighbors of all rows, approximate above 200 000 rows, where a few errors hide no hub."""
    if isinstance(X, NeighborGraph):
        return settings.view_from(X, None).nearest(k, monitor).indices
    return neighbor_graph(
        X,
        k,
        metric=settings.metric,
        metric_params=settings.metric_params,
        threads=settings.threads,
        rng=settings.rng,
        monitor=monitor,
    ).indices
