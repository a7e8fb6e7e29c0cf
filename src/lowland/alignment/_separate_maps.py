"""Maps of single tables, to be turned onto each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.spectrum import graph_spectrum
from lowland._engines.graphs.weights import local_graph
from lowland._engines.linalg.principal_axes import leading_axes
from lowland._engines.linalg.products import times
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph


class OwnMap(NamedTuple):
    """The map of the kept rows of a table, with what its method needs for new rows."""

    Y: np.ndarray
    kept: np.ndarray
    n_components: int
    eigenvalues: np.ndarray
    scales: np.ndarray


def eigenmap(
    graph: Any, X: Any, q: int, policy: Any, metric: str, owner: str, run: FitContext
) -> OwnMap:
    """Laplacian eigenmap of one table, each axis with unit variance."""
    connected = connect(graph, X, policy, metric=metric, threads=run.threads, monitor=run.monitor)
    n = connected.kept.size
    if q >= n:
        raise ParameterError(
            f"{owner}: n_components={q} is more than a connected graph of {n} rows allows; ask for "
            f"at most {n - 1}."
        )
    W, scales = local_graph(connected.graph)
    modes, degrees = graph_spectrum(W, q, run)
    Y = modes.vectors * np.sqrt(degrees.sum() / degrees)[:, None]
    Y = at_common_place(Y, equal_in_graph(connected.graph))
    return OwnMap(Y, connected.kept, connected.n_components, 1 - modes.values, scales)


def principal_map(X: Any, q: int, run: FitContext) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, principal axes in columns (zeros beyond the rank), and the scores of the rows."""
    n, p = X.shape
    found = leading_axes(X, min(q, n, p), run.threads, run.rng, run.monitor)
    V = np.zeros((p, q))
    V[:, : len(found.axes)] = found.axes.T
    return found.mean, V, times(X, found.mean, V, run.threads).astype(np.float64)
