"""Manifold alignment (Ham, Lee & Saul 2005; Wang & Mahadevan 2008, 2009)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Integer, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.meanings.contents import Ascending, above, count, index_of
from lowland._core.params import fitted, param
from lowland._core.traits import Reading
from lowland._engines.distances.metrics import METRICS
from lowland._engines.graphs.nystrom import nystrom_divisors, weighted_sum
from lowland._engines.graphs.spectrum import graph_spectrum
from lowland._engines.graphs.weights import half_length, local_weights
from lowland._engines.neighbors.duplicates import at_common_place
from lowland._engines.neighbors.search import neighbor_graph_cost, neighbor_query
from lowland.alignment._base import SeveralTables
from lowland.alignment._joint_graph import connect_tables, joint_graph, neighbor_graphs
from lowland.alignment._matches import check_correspondence, check_one_to_one, matches_of, set_of
from lowland.alignment._stored_rows import StoredRows

__all__ = ["ManifoldAlignment"]

HARD_WEIGHT = 10.0  # of merged matches, in the degrees
USABLE = tuple(name for name in METRICS if name not in ("gower", "minkowski", "precomputed"))


class ManifoldAlignment(SeveralTables):
    """One map of several tables in which matched rows meet: L y = lambda D y of the joint graph.

    Parameters
    ----------
    mu : float or "hard", default=10.0
        Weight of the correspondences between two tables, relative to that of the edges within one.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues.

    References
    ----------
    Ham, Lee & Saul (2005).

    Examples
    --------
    >>> from lowland.datasets import digits
    >>> X = digits().X
    >>> known = np.arange(0, 1797, 5)
    >>> model = ManifoldAlignment(2, random_state=0)
    >>> maps = model.fit_transform([X[:, :32], X[:, 32:]], correspondence=np.c_[known, known])
    >>> [Y.shape for Y in maps]
    [(1797, 2), (1797, 2)]
    """

    method: Literal["laplacian", "procrustes"] = param(
        OneOf("laplacian", "procrustes"), default="laplacian"
    )
    level: Literal["instance", "feature", "given"] = param(
        OneOf("instance", "feature", "given"), default="instance"
    )
    n_neighbors: int = param(Integer(1), default=10)
    mu: float | str = param(Real(0) | OneOf("hard"), default=10.0)
    metric: str = param(OneOf(*USABLE), default="euclidean")
    on_disconnected: str = param(OneOf("bridge", "largest", "raise"), default="bridge")
    ridge: float = param(Real(0, closed="left"), default=1e-3)

    eigenvalues_: np.ndarray | None = fitted("n_components", optional=True)
    n_connected_components_: int = fitted(type=int, meaning=count(1))
    excluded_: np.ndarray = fitted(
        "n_excluded",
        type=int,
        may_be_empty=True,
        meaning=(index_of("n_samples"), Ascending(strict=True)),
    )
    scales_: np.ndarray | None = fitted("n_kept", optional=True, meaning=above(0))
    dense_rows_: np.ndarray | None = fitted("n_values", optional=True, may_be_empty=True)
    sparse_rows_: Any = fitted("n_kept", "n_features", optional=True, sparse=True)
    sparse_sets_: np.ndarray = fitted("n_sets", type=bool)
    extensions_: np.ndarray | None = fitted("n_sets", "n_components", "n_components", optional=True)
    centers_: np.ndarray = fitted("n_sets", "n_components")

    card = Card(
        keeps="who is a neighbor of whom within each table, and which rows are one object",
        use="for two or more tables of the same kind of objects, some of them matched",
        avoid="for a single table",
        cost="that of a Laplacian eigenmap of all rows",
    )
    reference = "Ham, Lee & Saul (2005); Wang & Mahadevan (2008, 2009)"
    reading = Reading(
        axes="The axes have no meaning of their own beyond their order.",
        distances="Rows of one table are near if they are neighbors; rows of different tables are "
        "near if objects that are matched lie between them.",
        gaps="Groups with few edges between them are pulled apart. The width of a gap has no "
        "meaning.",
        sizes="Sizes and densities are set by the method, not by the data.",
        scale="Each axis has unit variance, weighted by the degrees of the rows.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: n rows and p columns are those of all tables together."""
        search = neighbor_graph_cost(n, p, 10)
        return Estimate(search.seconds + 5e-5 * n, 8 * n * (p + 400))

    def _has_unit(self) -> bool:
        return self.level != "given"

    def _fit_tables(
        self, Xs: list[Any], correspondence: Any, coordinates: Any, run: FitContext
    ) -> np.ndarray:
        name, starts = type(self).__name__, self.row_starts_
        q = self._check_axes(int(starts[-1]))
        matches = matches_of(check_correspondence(correspondence, starts, name), starts)
        hard = self.mu == "hard"
        node = check_one_to_one(matches, starts, name) if hard else np.arange(starts[-1])
        graphs = neighbor_graphs(Xs, int(self.n_neighbors), self.metric, name, run)
        connected = connect_tables(
            graphs, Xs, matches, np.empty(0, int), self.on_disconnected, self.metric, run
        )
        self.n_connected_components_ = connected.n_components
        joint = joint_graph(
            connected, matches, node, starts, HARD_WEIGHT if hard else float(self.mu)
        )
        modes, degrees = graph_spectrum(joint.W, q, run)
        Y = modes.vectors * np.sqrt(degrees.sum() / degrees)[:, None]
        Y = at_common_place(Y, joint.equal)[joint.node]
        self.eigenvalues_ = 1 - modes.values
        self.extensions_ = np.array(
            [np.diag(1 / nystrom_divisors(self.eigenvalues_))] * self.n_sets_
        )
        self.centers_ = np.zeros((self.n_sets_, q))
        self.scales_ = joint.scales
        self._keep_rows(Xs, connected.kept)
        return self._with_excluded(Y, Xs, connected.kept, run)

    def _check_axes(self, most: int) -> int:
        q = int(self.n_components)
        if q >= most:
            raise ParameterError(
                f"{type(self).__name__}: n_components={q} is more than the {most} rows of all "
                f"tables allow; ask for at most {most - 1}."
            )
        return q

    def _keep_rows(self, Xs: list[Any], kept: np.ndarray) -> None:
        self.excluded_ = np.setdiff1d(np.arange(self.row_starts_[-1]), kept)
        tables = set_of(kept, self.row_starts_)
        own = [X[kept[tables == d] - self.row_starts_[d]] for d, X in enumerate(Xs)]
        stored = StoredRows.of(own, self.column_starts_)
        self.dense_rows_, self.sparse_rows_ = stored.values, stored.blocks
        self.sparse_sets_ = stored.sparse

    def _with_excluded(
        self, Y: np.ndarray, Xs: list[Any], kept: np.ndarray, run: FitContext
    ) -> np.ndarray:
        """The map of all rows; the excluded rows are placed like new rows."""
        whole = np.empty((int(self.row_starts_[-1]), Y.shape[1]))
        whole[kept] = Y
        self.embedding_ = whole
        tables = set_of(self.excluded_, self.row_starts_)
        for d in np.unique(tables):
            rows = self.excluded_[tables == d]
            whole[rows] = self._place(Xs[d][rows - self.row_starts_[d]], int(d), run)
        return whole

    def _place(self, X: Any, d: int, run: FitContext) -> np.ndarray:
        stored = self._stored()
        rows = slice(*stored.row_starts[d : d + 2])
        kept = np.setdiff1d(np.arange(self.row_starts_[-1]), self.excluded_)[rows]
        links = neighbor_query(
            stored.table(d),
            X,
            min(int(self.n_neighbors), kept.size),
            metric=self.metric,
            threads=run.threads,
            monitor=run.monitor,
        )
        own = half_length(links.distances.max(axis=1, keepdims=True))
        w = local_weights(links.distances, own, self.scales_[rows][links.indices])
        p = w / w.sum(axis=1, keepdims=True)
        places = self.embedding_[kept].astype(np.float64)
        center = self.centers_[d]
        mean = weighted_sum(p, links.indices, places) - center
        Z = np.einsum("nq,qr->nr", mean, self.extensions_[d]) + center
        equal = links.distances[:, 0] == 0
        Z[equal] = places[links.indices[equal, 0]]
        return Z

    def _stored(self) -> StoredRows:
        outside = np.bincount(set_of(self.excluded_, self.row_starts_), minlength=self.n_sets_)
        starts = np.cumsum([0, *(np.diff(self.row_starts_) - outside)])
        return StoredRows(
            self.dense_rows_, self.sparse_rows_, self.sparse_sets_, starts, self.column_starts_
        )
