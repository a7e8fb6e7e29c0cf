"""Checks of a neighbor graph that is given together with the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._engines.distances.distance_rows import distance_rows
from lowland._engines.neighbors.graph import NeighborGraph, refuse_own_neighbors

CHECKED_ROWS = 8
ROUNDING = 1e-3  # relative; distances found in float32 differ by far less, other data by more


def check_graph(graph: Any, X: Any, metric: Any, metric_params: dict[str, Any] | None) -> bool:
    """Whether the graph can stand for the neighbors of X; an error if it belongs to other data.

    Approximate graphs and rows with missing neighbors cannot. The distances of a few rows are
    computed again, which finds a graph of other columns, rows or units.
    """
    if not isinstance(graph, NeighborGraph):
        raise ParameterError(
            f"graph={type(graph).__name__} is not allowed; expected a NeighborGraph or None."
        )
    if isinstance(X, NeighborGraph):
        raise ParameterError("graph: X is a neighbor graph already; leave one of them out.")
    n = X.shape[0]
    if len(graph) != n or graph.n_points != n:
        raise DataError(
            f"graph has {len(graph)} rows and their neighbors among {graph.n_points}, but X has "
            f"{n} rows; give a graph of the rows of X."
        )
    refuse_own_neighbors(graph, "graph")
    if graph.recall_ is not None or graph.indices.min(initial=0) < 0:
        return False
    name = metric if isinstance(metric, str) else "callable"
    if graph.metric != name:
        raise DataError(
            f"graph has distances in the metric {graph.metric!r}, but X is measured in {name!r}; "
            "give a graph in the same metric."
        )
    _check_distances(graph, X, metric, metric_params)
    return True


def _check_distances(
    graph: NeighborGraph, X: Any, metric: Any, metric_params: dict[str, Any] | None
) -> None:
    for row in np.unique(np.linspace(0, len(graph) - 1, CHECKED_ROWS).astype(int)):
        last = int(graph.indices[row, -1])
        pair = [int(row), last]
        some = X[np.ix_(pair, pair)] if metric == "precomputed" else X[pair]
        true = float(distance_rows(some, metric, metric_params, 1).of(np.array([0]))[0, 1])
        given = float(graph.distances[row, -1])
        if abs(true - given) > ROUNDING * max(true, given):
            raise DataError(
                f"graph: rows {row} and {last} are at distance {given:.6g}, but at {true:.6g} in "
                "X; give a graph of the same columns as X, or none."
            )
