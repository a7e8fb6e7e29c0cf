"""Work on one prepared table that several steps of a run use and that is done once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland.methods.linear.pca import PCA
from lowland.neighbors import NeighborGraph
from lowland.tables.preparing import Prepared


class Seen(NamedTuple):
    """The rows as a method got them, and the neighbors that it found among them, if any."""

    X: Any
    graph: NeighborGraph | None
    metric: Any


class SharedWork:
    """The principal components and the neighbor graph of a prepared table.

    The scores of a PCA are sorted by variance, so that their first q columns are the PCA map of
    the table in q dimensions. The reduction before a neighbor method therefore also gives the PCA
    baseline of the quality table, and several methods of one run share one reduction.

    A neighbor method computes the nearest neighbors of the rows. If it was fitted on the prepared
    table itself, the measures of neighborhoods use the same graph. ``seen`` has the rows and the
    neighbors of the last method, by which its map is judged.
    """

    def __init__(self, prepared: Prepared, seed: int, n_jobs: int | None) -> None:
        self.prepared, self.seed, self.n_jobs = prepared, seed, n_jobs
        self._reduced: dict[int, tuple[np.ndarray, PCA]] = {}
        self._scores: np.ndarray | None = None
        self.graph: NeighborGraph | None = None  # of the prepared table, if a method computed it
        self._all_seen: list[Seen] = []

    def reduced(self, n_columns: int) -> tuple[np.ndarray, PCA]:
        """The scores of the rows on the first principal axes, and the fitted PCA."""
        if n_columns not in self._reduced:
            pca = PCA(n_columns, random_state=self.seed, n_jobs=self.n_jobs)
            scores = np.asarray(pca.fit_transform(self.prepared.X))
            self._reduced[n_columns] = scores, pca
            self._keep(scores)
        return self._reduced[n_columns]

    def learn_from(
        self, estimator: Any, X: Any, Y: np.ndarray, graph: NeighborGraph | None
    ) -> None:
        """Keep the graph of the whole table, and its PCA map unless the axes were rescaled."""
        metric = self.prepared.metric
        self._all_seen.append(Seen(X, graph, getattr(estimator, "metric", metric)))
        if X is self.prepared.X and getattr(estimator, "metric", None) == "euclidean":
            self.graph = self.graph or graph
        plain = type(estimator) is PCA and not (estimator.whiten or estimator.scale)
        if plain and X is self.prepared.X:
            self._keep(np.asarray(Y))

    @property
    def seen(self) -> Seen:
        """What the last method got."""
        return self._all_seen[-1]

    def common(self) -> Seen:
        """What several methods are compared by: the fewest columns that one of them got.

        With the longest neighbor lists that a method found in these columns.
        """
        X = min((seen.X for seen in self._all_seen), key=lambda X: X.shape[1])
        metric = self.prepared.metric
        graphs = [seen.graph for seen in self._all_seen if seen.X is X and seen.metric == metric]
        known = [graph for graph in graphs if graph is not None]
        longest = max(known, key=lambda graph: graph.n_neighbors, default=None)
        return Seen(X, longest, metric)

    def pca_map(self, n_components: int) -> np.ndarray | None:
        """The PCA map of the table; None if no step of the run has computed it."""
        if self._scores is None or self._scores.shape[1] < n_components:
            return None
        return self._scores[:, :n_components]

    def _keep(self, scores: np.ndarray) -> None:
        if self._scores is None or scores.shape[1] > self._scores.shape[1]:
            self._scores = scores
