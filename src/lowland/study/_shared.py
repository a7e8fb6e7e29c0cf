"""Work on one prepared table that several steps of a run use and that is done once."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland.linear.pca import PCA
from lowland.neighbors import NeighborGraph
from lowland.study.preparing import Prepared

__all__ = ["SharedWork"]


class SharedWork:
    """The principal components and the neighbor graph of a prepared table.

    The scores of a PCA are sorted by variance, so that their first q columns are the PCA map of
    the table in q dimensions. The reduction before a neighbor method therefore also gives the PCA
    baseline of the quality table, and several methods of one run share one reduction.

    A neighbor method computes the nearest neighbors of the rows. If it was fitted on the prepared
    table itself, the measures of neighborhoods use the same graph.
    """

    def __init__(self, prepared: Prepared, seed: int, n_jobs: int | None) -> None:
        self.prepared, self.seed, self.n_jobs = prepared, seed, n_jobs
        self._reduced: dict[int, tuple[np.ndarray, PCA]] = {}
        self._scores: np.ndarray | None = None
        self.graph: NeighborGraph | None = None  # of the prepared table, if a method computed it

    def listen_to(self, estimator: Any, X: Any) -> None:
        """Keep the neighbor graph that the next fit of a method computes of the table itself."""
        metric = getattr(estimator, "metric", None)
        if self.graph is None and X is self.prepared.X and metric == "euclidean":
            estimator._graph_listener = self._keep_graph

    def _keep_graph(self, graph: NeighborGraph) -> None:
        self.graph = graph

    def reduced(self, n_columns: int) -> tuple[np.ndarray, PCA]:
        """The scores of the rows on the first principal axes, and the fitted PCA."""
        if n_columns not in self._reduced:
            pca = PCA(n_columns, random_state=self.seed, n_jobs=self.n_jobs)
            scores = np.asarray(pca.fit_transform(self.prepared.X))
            self._reduced[n_columns] = scores, pca
            self._keep(scores)
        return self._reduced[n_columns]

    def learn_from(self, estimator: Any, X: Any, Y: np.ndarray) -> None:
        """Keep the map of a fitted PCA of the whole table, unless its axes were rescaled."""
        plain = type(estimator) is PCA and not (estimator.whiten or estimator.scale)
        if plain and X is self.prepared.X:
            self._keep(np.asarray(Y))

    def pca_map(self, n_components: int) -> np.ndarray | None:
        """The PCA map of the table; None if no step of the run has computed it."""
        if self._scores is None or self._scores.shape[1] < n_components:
            return None
        return self._scores[:, :n_components]

    def _keep(self, scores: np.ndarray) -> None:
        if self._scores is None or scores.shape[1] > self._scores.shape[1]:
            self._scores = scores
