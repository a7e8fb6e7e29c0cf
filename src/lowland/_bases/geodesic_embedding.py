"""The base of maps made from distances along the neighbor graph, which they keep for new rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._bases.graph_embedding import GraphEmbedding
from lowland._core.context import FitContext
from lowland._core.meanings.contents import Starts, above, index_of, share
from lowland._core.params import fitted
from lowland._engines.graphs.new_rows import geodesics_of_new_rows

DOUBLE_ROWS = 2000  # up to this size, double precision costs little


class GeodesicEmbedding(GraphEmbedding):
    """A map of geodesic distances; ``_keep_edges`` remembers the graph that they run along.

    Attributes
    ----------
    edge_starts_ : ndarray of shape (n_kept + 1,)
        Where the edges of each row begin in ``edge_ends_`` and ``edge_lengths_``.
    edge_ends_ : ndarray of shape (n_edges,)
        Row at the end of each edge.
    edge_lengths_ : ndarray of shape (n_edges,)
        Length of each edge, divided by ``longest_edge_``.
    longest_edge_ : float
        Length of the longest edge.
    """

    edge_starts_: np.ndarray = fitted("n_kept + 1", type=int, meaning=Starts("n_edges"))
    edge_ends_: np.ndarray = fitted(
        "n_edges", type=int, may_be_empty=True, meaning=index_of("n_kept")
    )
    edge_lengths_: np.ndarray = fitted("n_edges", may_be_empty=True, meaning=share())
    longest_edge_: float = fitted(unit="d", meaning=above(0))

    def _keep_edges(self, graph: scipy.sparse.csr_matrix) -> None:
        """Remember the graph in units of its longest edge, so that squares do not overflow."""
        dtype = np.float64 if graph.shape[0] <= DOUBLE_ROWS else np.float32
        self.longest_edge_ = float(graph.data.max(initial=0.0)) or 1.0
        self.edge_starts_, self.edge_ends_ = graph.indptr, graph.indices
        self.edge_lengths_ = (graph.data / self.longest_edge_).astype(dtype)

    def _graph(self) -> scipy.sparse.csr_matrix:
        n = len(self.edge_starts_) - 1
        return scipy.sparse.csr_matrix(
            (self.edge_lengths_, self.edge_ends_, self.edge_starts_), shape=(n, n)
        )

    def _geodesics_of_new_rows(
        self, links: scipy.sparse.csr_matrix, rows: np.ndarray, run: FitContext
    ) -> np.ndarray:
        """Distances of new rows with edges ``links`` to some rows, in units of the longest edge."""
        return geodesics_of_new_rows(
            self._graph(), links, self.longest_edge_, rows, run, owner=type(self).__name__
        )
