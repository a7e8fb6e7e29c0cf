"""What methods share that compare rows by a metric: the metric, searches, a connected graph.

Nothing here imports scipy: that takes longer than small maps take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.constraints import Function, Mapping, Null, OneOf
from lowland._base.context import FitContext
from lowland._base.params import Declared, param
from lowland._base.validation import as_dense, is_sparse
from lowland._engines.distances.metrics import METRICS
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, query_fitted

if TYPE_CHECKING:
    from lowland._engines.graphs.components import ConnectedGraph


class ByMetric(Declared):
    """Rows that are compared by a metric, or distances in place of rows: a part of several bases.

    ``metric="sqeuclidean"`` gives squared distances; lengths of edges are never squared.
    """

    metric: Any = param(OneOf(*METRICS) | Function(), default="euclidean")
    metric_params: dict[str, Any] | None = param(Null() | Mapping(), default=None)

    @property
    def _has_distances(self) -> bool:
        """Whether X holds distances instead of rows."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @property
    def _graph_metric(self) -> Any:
        """The metric of the edges of a graph."""
        return "euclidean" if self.metric == "sqeuclidean" else self.metric

    def _part_of(self, X: Any, rows: np.ndarray) -> Any:
        """Some rows of X, or the distances among them."""
        if len(rows) == X.shape[0]:
            return X
        return np.ascontiguousarray(X[np.ix_(rows, rows)]) if self._has_distances else X[rows]

    def _nearest_others(self, X: Any, k: int, run: FitContext, metric: Any = None) -> NeighborGraph:
        """The k nearest other rows of every row of X."""
        return neighbor_graph(
            X,
            k,
            metric=metric or self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        )

    def _nearest_of(
        self, rows: Any, X: Any, k: int, run: FitContext, metric: Any = None
    ) -> NeighborGraph:
        """The k nearest of the fitted ``rows`` for every new row of X."""
        if is_sparse(X) and not is_sparse(rows):
            X = as_dense(X, type(self).__name__)
        metric, params = metric or self.metric, self.metric_params
        return query_fitted(rows, X, k, metric=metric, metric_params=params, run=run)

    def _connect(self, graph: Any, X: Any, run: FitContext, metric: Any = None) -> ConnectedGraph:
        """The graph of the rows X, connected as ``on_disconnected`` says."""
        from lowland._engines.graphs.components import connect  # imports scipy

        connected = connect(
            graph,
            X,
            self.on_disconnected,  # type: ignore[attr-defined]
            metric=metric or self._graph_metric,
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )
        self.n_connected_components_ = connected.n_components
        return connected

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self._has_distances
        return tags
