"""The neighbor graph, who is near whom and how far: what methods, metrics and users share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["NeighborGraph"]


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The k nearest neighbors of every row, nearest first, ties by index, never the row itself.

    Attributes
    ----------
    indices : ndarray of shape (n, k), int32 or int64
        Numbers of the neighbors among the fitted rows.
    distances : ndarray of shape (n, k)
        True distances, in the float type of the data.
    n_points : int
        Number of fitted rows, which ``indices`` refer to (n itself, but for a query).
    metric : str
        The metric's name.
    recall_ : float or None
        Measured share of true neighbors that were found; None when the search was exact.
    recall_sample_ : int
        Number of rows that the recall was measured on.
    """

    indices: np.ndarray
    distances: np.ndarray
    n_points: int
    metric: str = "euclidean"
    recall_: float | None = None
    recall_sample_: int = 0

    @property
    def n_neighbors(self) -> int:
        return self.indices.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and fitted rows: the shape of the matrix of distances it stands for."""
        return self.indices.shape[0], self.n_points

    def __len__(self) -> int:
        return self.indices.shape[0]

    def __repr__(self) -> str:
        recall = "exact" if self.recall_ is None else f"recall {self.recall_:.3f}"
        return f"NeighborGraph({len(self)} rows x {self.n_neighbors} neighbors, {recall})"

    def in_distances(self) -> NeighborGraph:
        """The same graph with squared distances taken back to distances."""
        if self.metric != "sqeuclidean":
            return self
        return replace(self, distances=np.sqrt(self.distances), metric="euclidean")

    def to_csr(self) -> Any:
        """Directed n x n_points CSR matrix of distances; zero distances are stored entries.

        Missing neighbors (index -1) are left out.
        """
        import scipy.sparse

        there = self.indices >= 0
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return scipy.sparse.csr_matrix(
            (self.distances[there], self.indices[there], starts), shape=self.shape
        )
