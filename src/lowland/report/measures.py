"""What a report measures about a map: the quality of the map, and of each of its points."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland.metrics import Comparison, Quality, point_continuity, point_trust, quality
from lowland.neighbors import NeighborGraph

__all__ = ["FEWEST_ROWS", "NEIGHBORHOOD", "NOT_MEASURED", "Measures", "measure_map"]

NEIGHBORHOOD = 10
FEWEST_ROWS = 4  # with fewer rows, every other row is a neighbor
ALL_ROWS = 20_000  # up to this number, all rows are measured
NUMBERS_MEASURED = 1e10  # rows of the sample times all numbers of a larger table


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
    n_jobs: int | None = None,
) -> Measures:
    """Measure a map against its data; a map that cannot be measured gives a warning.

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
    n_jobs : int or None, default=None
        Threads.
    """
    if len(Y) < FEWEST_ROWS:
        return NOT_MEASURED
    try:
        sample = _rows_measured(X)
        both = Comparison(X, Y, metric=metric, n_jobs=n_jobs, sample=sample)
        table = quality(both, labels=labels, n_neighbors=NEIGHBORHOOD)
    except DataError as error:  # the map itself is still of use
        warnings.warn(f"the map was not measured: {error}", stacklevel=2)
        return NOT_MEASURED
    k = table.n_neighbors
    per_point = {
        "trustworthiness": point_trust(both, None, k),
        "continuity": point_continuity(both, None, k),
    }
    return Measures(table, per_point)


def _rows_measured(X: Any) -> int | None:
    """All rows (None), or as many as can be measured in a few seconds."""
    n, p = X.shape
    if hasattr(X, "nnz"):  # a stored number costs far more than one of an array
        p = 50 * X.nnz / n
    if n <= ALL_ROWS and n * n * p <= 4 * NUMBERS_MEASURED:
        return None
    return int(min(1000, max(NUMBERS_MEASURED / (n * p), 150)))
