"""What a report measures about a map: the quality of the map, and of each of its points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland.metrics import Comparison, Quality, point_continuity, point_trust, quality
from lowland.neighbors import NeighborGraph

NEIGHBORHOOD = 10
FEWEST_ROWS = 4  # with fewer rows, every other row is a neighbor


class Measures(NamedTuple):
    """The quality table of a map (None if it was not measured), and values for each point."""

    table: Quality | None
    per_point: dict[str, np.ndarray]


NOT_MEASURED = Measures(None, {})


def measure_map(
    X: Any,
    Y: np.ndarray,
    *,
    labels: np.ndarray | None = None,
    metric: Any = "euclidean",
    pca_map: np.ndarray | None = None,
    graph: NeighborGraph | None = None,
    map_seconds: float | None = None,
    n_jobs: int | None = None,
) -> Measures:
    """Measure a map against its data; a map of very few rows is not measured.

    Parameters
    ----------
    X, Y : the data and the map
    labels : array of shape (n,), optional
        The class of each row.
    metric : str or callable, default="euclidean"
        Distance between rows of X; "precomputed" if X holds distances.
    pca_map : array of shape (n, q), optional
        The PCA map of X if it is known already.
    graph : NeighborGraph, optional
        The nearest neighbors of the rows of X if they are known already.
    map_seconds : float, optional
        Seconds that the map took or was estimated to take; measuring takes about half as long.
    n_jobs : int or None, default=None
        Threads.
    """
    if len(Y) < FEWEST_ROWS:
        return NOT_MEASURED
    both = Comparison(X, Y, metric=metric, n_jobs=n_jobs, graph=graph, map_seconds=map_seconds)
    table = quality(both, labels=labels, n_neighbors=NEIGHBORHOOD, pca=pca_map)
    k = table.n_neighbors
    per_point = {
        "trustworthiness": point_trust(both, None, k),
        "continuity": point_continuity(both, None, k),
    }
    return Measures(table, per_point)
