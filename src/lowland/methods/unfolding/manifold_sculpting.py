"""Manifold sculpting (Gashler, Ventura & Martinez 2007)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._base.base import Reducer
from lowland._base.constraints import Array, Function, Integer, Null, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.models.checks import Ascending, Starts, above, index_of
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import dense_if_small, is_sparse
from lowland._engines.graphs.components import connected_components
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.linalg.eigen import rank_cutoff
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland._engines.linalg.procrustes import align
from lowland._engines.linalg.products import row_blocks, rows_within, times
from lowland._engines.neighbors.duplicates import EqualRows, equal_rows
from lowland._engines.neighbors.search import (
    neighbor_graph,
    neighbor_graph_cost,
    neighbor_query,
    query_fitted,
)
from lowland._engines.stress.classical_scaling import of_rows
from lowland.methods.unfolding._sculpting import (
    Relations,
    Sculpted,
    arranged,
    relations_of,
    sculpt,
    searched,
    settle,
)

AXES, AXES_PER_COMPONENT = 100, 6  # principal axes that are kept at most
PART = 1000  # rows that are sculpted first, if there are more
LARGEST = 1e300  # width of an error: a number, whatever a model file claims
FARTHEST = 1e30  # distance of a new row, in mean neighbor distances


class ManifoldSculpting(Reducer):
    """Scale extra axes away: eps_i = sum_j w_j [(d - d0)^2 / (2 dm)^2 + (theta - theta0)^2 / pi^2].

    Rows are turned to their principal axes. In each pass all axes but the first q shrink a little,
    and each point moves along the first q until the distances d to its neighbors j, and the angles
    theta at them to a neighbor on their far side, are again what they were; dm is the mean neighbor
    distance. Use it for bent and rolled sheets, with holes or boundaries of any shape, since no
    path across the sheet is needed, and where the places of some rows are known. Not for closed
    surfaces and clusters. It depends on the seed: compare several ``loss_``, or raise ``n_init``.
    Cost: O(n k (k p + q)) for each of some 600 passes of a run, on one thread.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbors. Two rows keep their distance if either is a neighbor of the other.
    scaling : float, default=0.98
        Factor of the extra axes in each pass, between 0 and 1. Nearer to 1 is slower, and follows
        strong curvature better.
    fixed : array of shape (n_samples, n_components) or None, default=None
        Known places of some rows, in the unit of the data, with NaN in the other rows. Known rows
        stay at their places, and the map is not centered.
    n_init : int, default=2
        Number of runs with other random numbers; that with the least ``loss_`` is kept. A run
        that ends with a mean error of 1e-4 or less is the last.
    max_iter : int, default=3000
        Maximum number of passes of all runs together. If the axes have not vanished by then, they
        are dropped as they are. 0 gives the principal components.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, in the unit of the data, centered and turned to its principal axes
        unless some rows are fixed.
    local_errors_ : ndarray of shape (n_samples,)
        Error eps of each row in the map, with weights 1.
    loss_ : float
        Mean local error of the map.
    loss_history_ : ndarray of shape (n_steps,)
        Mean local error at the start and after each pass of all runs, with the axes as far as they
        are left.
    scale_ : float
        Factor of the extra axes at the end; 0 unless ``max_iter`` came first.
    mean_neighbor_distance_ : float
        Mean distance of neighbors in the data.
    n_connected_components_ : int
        Connected components of the neighbor graph. Each is sculpted by itself. Their centers are
        where they are in the principal components, farther apart if the components have grown.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    components_ : ndarray of shape (n_axes, n_features)
        Principal axes that were kept, in rows.
    distinct_ : ndarray of shape (n_distinct,)
        Indices of the rows that make the map: the first of each group of equal rows.
    coordinates_ : ndarray of shape (n_distinct, n_axes)
        Those rows along the principal axes; new rows are compared with them.
    edge_starts_ : ndarray of shape (n_distinct + 1,)
        Where the neighbors of each distinct row begin in ``edge_ends_``.
    edge_ends_ : ndarray of shape (n_edges,)
        Neighbors, by their numbers among the distinct rows.

    Notes
    -----
    Distances between rows are not accepted: what is scaled are axes of the data space. For given
    distances, sculpt the coordinates of ``ClassicalMDS(30)``. Of wide data the first
    max(100, 6 q) principal axes are kept. Data in a q-plane have no axis to be scaled, and the map
    is their principal components.

    Each pass begins at a random row, which stays, and goes on breadth-first; a point is adjusted to
    neighbors that were adjusted before it. This order makes it sequential, and so the same for any
    ``n_jobs``. Deviations from the paper, each chosen by measurement: an angle counts only if it
    has become sharper, as in the authors' program. A point that moves changes angles that belong
    to others, as their corner or as the far neighbor. With the paper's errors, which leave
    these out, passes amplify small errors: from an exact map with a little noise they lead
    away. Here a point counts all terms that it has a part in, and a move is accepted only if their
    sum falls. Before it climbs, a point tries the place where its adjusted neighbors expect it, the
    mean of the straight continuations. Adjusted neighbors weigh 10^4 instead of 10 while the
    axes shrink, which carries a change across the whole sheet in one pass. When the axes have
    vanished, 150 passes keep that weight, and in 150 more it falls to 1. Passes of weight 1, in
    which the mean error cannot rise, end the fit. The best map on the way is kept. The paper
    scales by 0.99 or 0.999; with these passes 0.98 was as good.

    Beyond 1000 rows, 1000 random rows are sculpted first, which the callback sees; the others are
    placed like new rows, and all settle in passes of falling weight. With 5000 rows at once, s
    curves stayed crumpled. With ``fixed`` rows all are sculpted at once.

    A new row is placed where its own error is least, among descents from its barycentric place and
    from its nearest neighbors; the fitted rows stay.

    References
    ----------
    Gashler, Ventura & Martinez (2007), Iterative non-linear dimensionality reduction with manifold
    sculpting, NIPS 20; Gashler, Ventura & Martinez (2011), Manifold learning by graduated
    optimization, IEEE Trans. Systems, Man and Cybernetics B 41, 1458-1470.

    Examples
    --------
    >>> from lowland.datasets import s_curve
    >>> X = s_curve(300, random_state=0).X
    >>> ManifoldSculpting(random_state=0).fit_transform(X).shape
    (300, 2)
    """

    n_neighbors: int = param(Integer(1), default=10)
    scaling: float = param(Real(0, 1), default=0.98)
    fixed: Any = param(Null() | Array(), default=None)
    n_init: int = param(Integer(1), default=2)
    max_iter: int = param(Integer(0), default=3000)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    local_errors_: np.ndarray = fitted("n_samples")
    loss_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")
    scale_: float = fitted()
    mean_neighbor_distance_: float = fitted(meaning=above(0))
    n_iter_: int = fitted(type=int)
    n_connected_components_: int = fitted(type=int)
    mean_: np.ndarray = fitted("n_features")
    components_: np.ndarray = fitted("n_axes", "n_features")
    distinct_: np.ndarray = fitted(
        "n_distinct", type=int, meaning=(index_of("n_samples"), Ascending(strict=True))
    )
    coordinates_: np.ndarray = fitted("n_distinct", "n_axes")
    edge_starts_: np.ndarray = fitted("n_distinct + 1", type=int, meaning=Starts("n_edges"))
    edge_ends_: np.ndarray = fitted(
        "n_edges", type=int, may_be_empty=True, meaning=index_of("n_distinct")
    )

    card = Card(
        keeps="distances to neighbors, and straight lines through them",
        use="to flatten bent and rolled sheets, also with holes; where some places are known",
        avoid="for clusters, closed surfaces, and where the result must not depend on a seed",
        cost="O(n k^2 p) time once and O(n k q) in each of 600 passes or more, O(n (k + p)) memory",
    )
    reference = "Gashler, Ventura & Martinez (2007)"
    aliases = ("sculpting",)
    accepts_sparse = True
    reading = Reading(
        axes="The axes are near the first principal axes, bent as the sheet was flattened.",
        distances="Short distances are those of the data. Long ones are lengths along the "
        "flattened sheet, as far as the local errors are small.",
        gaps="A gap separates rows that are not neighbors, or it is a tear. Look at the local "
        "errors along it, and compare another seed.",
        sizes="The size of a group is its size along the sheet.",
        scale="The axes have the unit of the columns.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        d = min(n, p, AXES)
        setup = principal_axes_cost(n, p, d) + neighbor_graph_cost(n, d, 10)
        passes = 2.5e-3 * min(n, PART) + 1.3e-3 * max(0, n - PART)
        return Estimate(setup.seconds + 0.02 + passes, setup.n_bytes + n * (8 * d + 2000))

    def _check_training_rows(self, X: Any) -> Any:
        return dense_if_small(super()._check_training_rows(X))

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, q = X.shape[0], int(self.n_components)
        self._check_not_beyond_rows(n)
        C = self._turned(X, run)
        equal = equal_rows(C, run.threads) or EqualRows(np.arange(n), np.arange(n))
        self.distinct_ = equal.first
        self.coordinates_ = C = C[equal.first]
        places_, fixed = self._given_places(n, equal)
        graph = self._graph(C, run)
        self.n_connected_components_ = connected_components(graph)[0]
        self.edge_starts_ = graph.indptr.astype(np.int64)
        self.edge_ends_ = graph.indices.astype(np.int32)
        Y = np.ascontiguousarray(C[:, :q])
        if fixed.any():
            found = align(places_[fixed], Y[fixed], scaling=False)
            Y = np.einsum("ij,jk->ik", Y, found.rotation) + found.translation
            Y[fixed] = places_[fixed]
        losses, errors, self.scale_ = np.zeros(1), np.zeros(len(Y)), 0.0
        self.mean_neighbor_distance_ = float(graph.data.mean()) if graph.nnz else 1.0
        if graph.nnz and (fixed.any() or C[:, q:].any()):
            keep = relations_of(C, graph, q, run.threads)
            self.mean_neighbor_distance_ = float(keep.kept[0].mean())
            whole, start = len(C) <= PART or fixed.any(), Y
            Y, errors, losses, self.scale_ = (
                self._sculpted(keep, Y, fixed, run) if whole else self._in_two(keep, C, run)
            )
            if not fixed.any() and len(losses) > 1:
                Y = arranged(Y, start, keep.parts())
        self.n_iter_, self.loss_history_ = len(losses) - 1, losses
        self.local_errors_ = errors[equal.group]
        self.loss_ = float(self.local_errors_.mean())
        self.embedding_ = Y[equal.group].astype(self._dtype(X))
        return self.embedding_.copy()

    def _sculpted(
        self, keep: Relations, Y: np.ndarray, fixed: np.ndarray, run: FitContext
    ) -> Sculpted:
        limits = int(self.n_init), int(self.max_iter)
        return sculpt(keep, Y, fixed, float(self.scaling), *limits, run)

    def _in_two(self, keep: Relations, C: np.ndarray, run: FitContext) -> Sculpted:
        """A part of the rows is sculpted, the others are placed like new rows, and all settle."""
        q = int(self.n_components)
        some = np.sort(run.rng.choice(len(C), PART, replace=False))
        part, rest = C[some], np.setdiff1d(np.arange(len(C)), some)
        graph = self._graph(part, run)
        relations = relations_of(part, graph, q, run.threads)
        free = np.zeros(PART, bool)
        first = self._sculpted(relations, np.ascontiguousarray(part[:, :q]), free, run)
        k = min(int(self.n_neighbors), PART)
        near = neighbor_query(part, C[rest], k, threads=run.threads, monitor=run.monitor)
        Y, width = np.empty((len(C), q)), relations.width
        Y[some] = first.Y
        lists = relations.starts, relations.ends
        Y[rest] = searched(C[rest], near.indices, (part, first.Y, lists, width), run)
        passes = len(first.losses) - 1
        last = settle(keep, Y, passes, int(self.max_iter), run)
        losses = np.concatenate([first.losses, last.losses[1:]])
        return last._replace(losses=losses, scale=first.scale)

    def _turned(self, X: Any, run: FitContext) -> np.ndarray:
        """Coordinates along the principal axes, at least q; axes of mere rounding are 0."""
        (n, p), q = X.shape, int(self.n_components)
        d = max(q, min(n, p, max(AXES, AXES_PER_COMPONENT * q)))
        require_memory(
            8 * (2 * n * d + n * 30 * min(n, int(self.n_neighbors)) + d * p),
            task=f"ManifoldSculpting of {n} rows",
            alternative="fewer rows or fewer neighbors",
        )
        found = of_rows(X, d, run)
        cutoff = rank_cutoff(max(n, p), self._dtype(X)) * max(float(found.eigenvalues[0]), 0.0)
        real = found.eigenvalues > cutoff
        assert found.axes is not None
        self.mean_ = np.asarray(found.mean, np.float64)
        self.components_ = np.where(real[:, None], found.axes, 0.0)
        return self._along_axes(X, run)

    def _along_axes(self, X: Any, run: FitContext) -> np.ndarray:
        """Rows along the principal axes: the same bytes for sparse rows and for dense ones."""
        C = np.empty((X.shape[0], len(self.components_)))
        for rows in row_blocks(len(C), rows_within(8 * X.shape[1])):
            block = X[rows].toarray() if is_sparse(X) else X[rows]
            C[rows] = times(block, self.mean_, self.components_.T, run.threads)
        return C + 0.0

    def _graph(self, C: np.ndarray, run: FitContext) -> Any:
        """Distances of neighbors among distinct rows, in both directions."""
        k = min(int(self.n_neighbors), len(C) - 1)
        if k == 0:
            import scipy.sparse

            return scipy.sparse.csr_matrix((1, 1))
        shared: dict[str, Any] = {"threads": run.threads, "monitor": run.monitor}
        return symmetrize(neighbor_graph(C, k, rng=run.rng, **shared))

    def _given_places(self, n: int, equal: EqualRows) -> tuple[np.ndarray, np.ndarray]:
        """Given places of the distinct rows, and which rows have one."""
        q = int(self.n_components)
        if self.fixed is None:
            return np.zeros((len(equal.first), q)), np.zeros(len(equal.first), bool)
        given = np.array(self.fixed, dtype=np.float64)
        if given.shape != (n, q):
            raise DataError(
                f"ManifoldSculpting: fixed has shape {given.shape}, but the map is {n} rows x {q} "
                "columns; give NaN for rows whose places are not known."
            )
        known = ~np.isnan(given)
        if not (known.all(axis=1) == known.any(axis=1)).all() or np.isinf(given).any():
            row = int(
                np.argmax((known.all(axis=1) != known.any(axis=1)) | np.isinf(given).any(axis=1))
            )
            raise DataError(
                f"ManifoldSculpting: row {row} of fixed is {given[row].tolist()}; give a whole "
                "place, or NaN in all columns."
            )
        rows = np.flatnonzero(known[:, 0])
        of_group = np.full(len(equal.first), -1)
        of_group[equal.group[rows[::-1]]] = rows[::-1]  # the first of several equal rows
        return given[of_group], of_group >= 0

    # --- new rows -----------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        C, Z = self.coordinates_.astype(np.float64, copy=False), self._along_axes(X, run)
        Y = np.ascontiguousarray(self.embedding_[self.distinct_], np.float64)
        k = min(int(self.n_neighbors), len(C))
        near = query_fitted(
            C, Z, k, metric="euclidean", metric_params=None, run=run, approximate=False
        )
        if near.distances.max(initial=0.0) > FARTHEST * self.mean_neighbor_distance_:
            raise DataError(
                f"{type(self).__name__}: X has a new row at distance {near.distances.max():.0e} "
                "from the fitted rows, which is too far to compute its place; leave it out."
            )
        equal = near.distances[:, 0] == 0
        found = np.empty((len(Z), Y.shape[1]))
        found[equal] = Y[near.indices[equal, 0]]
        new = np.flatnonzero(~equal)
        if new.size:
            lists = self.edge_starts_.astype(np.int64), self.edge_ends_.astype(np.int32)
            there = C, Y, lists, min(2 * self.mean_neighbor_distance_, LARGEST)
            found[new] = searched(Z[new], near.indices[new], there, run)
        return found.astype(self._dtype(X))

    @staticmethod
    def _dtype(X: Any) -> Any:
        return np.float32 if X.dtype == np.float32 else np.float64
