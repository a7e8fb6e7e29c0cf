"""How many points are judged: all, or as many as a share of the map's time and the memory allow."""

from __future__ import annotations

import math
from typing import Any

from lowland._core.memory import available_memory
from lowland._core.validation import is_sparse
from lowland._engines.distances.metrics import from_products
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics._cost import Work
from lowland.metrics.pointwise.missing import LISTED

SHARE = 0.25  # of the map's time
LEAST_SECONDS = 2.0  # of one core; nobody minds them
LIKE_TSNE = 3e-4  # seconds per row of a map about whose making nothing is known
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
    # A method that found so many neighbors took longer than what is left to do.
    known = graph is not None and graph.n_neighbors >= min(LISTED, max(1, (n - 1) // 4))
    paid = n if known else _searched(X, metric, budget, p)
    affordable = max(FEWEST, min(paid, available_memory() // 2 // POINT_BYTES))
    return None if affordable >= n else affordable


def _searched(X: Any, metric: Any, budget: float, p: int) -> int:
    """The number m of points with POINT m + pair m^2 = budget, rounded to thousands."""
    fast = not is_sparse(X) and from_products(metric)
    pair = PAIR + WIDE_PAIR * p if fast else Work.of(X, metric).pair
    m = (math.sqrt(POINT**2 + 4 * pair * budget) - POINT) / (2 * pair)
    return int(m) if m < 1000 else int(m) // 1000 * 1000
