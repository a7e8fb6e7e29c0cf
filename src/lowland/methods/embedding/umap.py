"""Uniform manifold approximation and projection (McInnes, Healy & Melville 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland import _native
from lowland._base.base import Invertible
from lowland._base.constraints import Array, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.models.checks import Interval
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import is_sparse
from lowland._engines.embedding import placement
from lowland._engines.embedding.descent import descend
from lowland._engines.embedding.particle_mesh import ParticleMesh, grid_nodes
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph_cost, neighbor_query
from lowland.methods.embedding import _fuzzy_graph as fuzzy
from lowland.methods.embedding import _umap_descent as umap

# New rows in a map of UMAP, and points of the map back in the space of the data.
#
# A new row is placed at a minimum of its own J (see ``_umap_descent.py``) while the map is fixed:
# this is where a fitted row would be. Back, a point of the map becomes the mean of the rows at
# its nearest points, weighted by their memberships 1 / (1 + a u^b). The reference implementation
# goes on from there to a minimum of the cross entropy in the space of the data. On held-out rows
# that was not nearer to the truth, and between clusters, where all memberships are small, its
# repulsion carries rows out of the data.


BACK_BYTES = 1 << 26  # of rows of the data that a block of points of the map is the mean of
MANY_ROWS = 10_000  # above, fewer steps are the default
MESH_DIMENSIONS = 3  # in more of them pairs are drawn
DENSITY_EPOCHS = 200  # steps in addition, if there are densities


class UMAP(fuzzy.FuzzyMap, Invertible):
    """Minimize the fuzzy cross entropy of neighbor graphs; in the map 1 / (1 + a |y_i - y_j|^2b).

    Use it to look at clusters and at how they are connected, for maps of three and more dimensions,
    and as input of a clustering (with ``min_dist=0``). Clusters are denser, and gaps wider, than in
    a map of t-SNE. Distances between clusters, their sizes and their densities mean little
    (``density=2`` keeps densities). Cost per step: O(n k) for the attraction and O(n + area of the
    map) for the repulsion on a mesh; O(n k) memory.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map. Beyond 3 the repulsion is estimated from drawn pairs.
    min_dist : float, default=0.1
        Distance in the map up to which rows count as near. 0 packs clusters tightly.
    spread : float, default=1.0
        Scale of the distances in the map beyond ``min_dist``.
    n_epochs : int or None, default=None
        Number of steps. None takes 500 up to 10 000 rows, and 200 for more.
    learning_rate : float, default=1.0
        Step length, relative to the usual one.
    init : {"spectral", "pca", "random"} or array of shape (n, n_components), default="spectral"
        Initial layout. An array, such as an earlier map, is scaled if it is very large or small.
    repulsion_strength : float, default=1.0
        Factor on the repulsion.
    negative_sample_rate : float, default=5.0
        Weight of the repulsion: pairs that are drawn for each edge in the reference implementation.
    density : float, default=0.0
        Weight of local densities (densMAP), 0 for none. 2 is usual.
    a : float or None, default=None
        Parameter of the similarity in the map. None fits a and b to ``min_dist`` and ``spread``.
    b : float or None, default=None
        Parameter of the similarity in the map, half the power of its tail.

    Attributes
    ----------
    a_ : float
        The a of the similarity in the map.
    b_ : float
        The b of the similarity in the map.
    loss_history_ : ndarray of shape (n_looks,)
        Mean over the rows of their loss, every 50 steps and at the end.
    n_connected_components_ : int
        Number of groups of rows that no edge connects, isolated rows not counted.
    rad_orig_ : ndarray of shape (n_samples,) or None
        Logarithm of the mean squared distance of neighbors in the data. None without ``density``.
    rad_emb_ : ndarray of shape (n_samples,) or None
        The same in the map.

    Notes
    -----
    The reference implementation draws edges and pairs at random; here all rows take their expected
    step at once, divided by the degree of the row, with momentum and a gain per coordinate. The
    seed decides about the start and, above three dimensions, the drawn pairs; the result is the
    same, to the last bit, for any ``n_jobs``. The repulsion is smooth near 0 instead of cut, see
    ``_umap_descent.py``. New rows are placed also if they are farther than
    ``disconnection_distance``.

    ``transform`` places each new row by itself at the minimum of its own loss, from the mean of its
    neighbors, while the map is fixed. It uses neither target nor densities.
    ``inverse_transform`` gives the mean of the rows around a point of the map, weighted by their
    memberships.

    Parameters are called as in umap-learn. There, ``density=2`` is ``densmap=True``, and
    ``metric_params`` is ``metric_kwds``.

    References
    ----------
    McInnes, Healy & Melville (2018), UMAP, arXiv:1802.03426; Damrich & Hamprecht (2021), On UMAP's
    true loss function, NeurIPS 34; Narayan, Berger & Cho (2021), Nature Biotechnology 39 (densMAP).

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> UMAP(random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    min_dist: float = param(Real(0, closed="left"), default=0.1)
    spread: float = param(Real(1e-3, 1e6, closed="both"), default=1.0)
    n_epochs: int | None = param(Null() | Integer(0), default=None)
    learning_rate: float = param(Real(0, 1e6, closed="right"), default=1.0)
    init: Any = param(OneOf("spectral", "pca", "random") | Array(), default="spectral")
    repulsion_strength: float = param(Real(0, 1e6, closed="right"), default=1.0)
    negative_sample_rate: float = param(Real(0, 1e6, closed="right"), default=5.0)
    density: float = param(Real(0, 1e6, closed="both"), default=0.0)
    a: float | None = param(Null() | Real(1e-12, 1e6, closed="both"), default=None)
    b: float | None = param(Null() | Real(0.01, umap.STEEPEST, closed="both"), default=None)

    a_: float = fitted(meaning=Interval(1e-30, 1e12))
    b_: float = fitted(meaning=Interval(1e-30, umap.STEEPEST))
    n_iter_: int = fitted(type=int)
    loss_history_: np.ndarray = fitted("n_looks")
    n_connected_components_: int = fitted(type=int)
    rad_orig_: np.ndarray | None = fitted("n_samples", optional=True)
    rad_emb_: np.ndarray | None = fitted("n_samples", optional=True)

    card = Card(
        keeps="who is whose neighbor, and which groups of rows are connected",
        use="to look at clusters and the paths between them; before a clustering, in some five "
        "dimensions with min_dist 0",
        avoid="to judge distances between clusters, or their sizes and densities, which only "
        "density=2 keeps",
        cost="O(n) per step and O(n^2 p) for exact neighbors (O(n^1.5 p) beyond 200 000 rows), "
        "O(n) memory",
    )
    reference = "McInnes, Healy & Melville (2018)"
    reading = Reading(
        axes="The axes have no meaning. Only who is near whom can be read.",
        distances="Rows that are neighbors in the map are mostly neighbors in the data. Distances "
        "between groups mean little, beyond which groups touch.",
        gaps="Separate groups have few or no common neighbors. Attraction is strong, so that gaps "
        "are wider than in a map of t-SNE; a thin bridge may be one row.",
        sizes="Sizes and densities mean nothing unless densities were asked for: dense groups are "
        "spread and sparse ones packed until they look alike.",
        scale="The scale of the axes comes from min_dist and spread, not from the data.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        search = neighbor_graph_cost(n, p, 14)
        return Estimate(0.3 + search.seconds + 3e-5 * n, n * (16 * p + 1500))

    # --- fit ------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        self.a_, self.b_ = self._curve()
        rows, near = self._rows_and_graph(X, run)
        if run.shared is not None:
            run.shared.graph = near
        if self.disconnection_distance is not None:
            near = fuzzy.without_far(near, self.disconnection_distance)
        graph = self._graph(near, y, run)
        self.rad_orig_ = self.rad_emb_ = None
        Y = self._descended(graph, near, rows, run)
        Y = at_common_place(fuzzy.beside_the_map(Y, self.isolated_), equal_in_graph(near))
        self.embedding_ = Y.astype(np.promote_types(near.distances.dtype, np.float32))
        self.fitted_rows_ = None if rows is None else rows.copy()
        return self.embedding_.copy()

    def _curve(self) -> tuple[float, float]:
        if (self.a is None) != (self.b is None):
            raise ParameterError(f"UMAP: a={self.a} and b={self.b}: give both, or neither.")
        if self.a is not None and self.b is not None:
            return float(self.a), float(self.b)
        if self.min_dist > self.spread:
            raise ParameterError(
                f"UMAP: min_dist={float(self.min_dist):g} is more than "
                f"spread={float(self.spread):g}; take a "
                "smaller min_dist or a larger spread."
            )
        return umap.curve_parameters(float(self.spread), float(self.min_dist))

    def _descended(
        self, graph: fuzzy.FuzzyGraph, near: NeighborGraph, rows: Any, run: FitContext
    ) -> np.ndarray:
        """The map of the rows that have neighbors."""
        isolated, curve = self.isolated_, (self.a_, self.b_)
        n, kept = graph.n, np.flatnonzero(~isolated)
        steps = self._steps(n)
        radii = umap.data_radii(graph, fuzzy.known_squares(graph, near)) if self.density else None
        init = self.init
        if isolated.any():
            graph = fuzzy.graph_of_kept(graph, kept)
            rows = None if rows is None else rows[kept]
            init = init if isinstance(init, str) else np.asarray(init)[kept]
        Y, self.n_connected_components_ = umap.starting_layout(
            init, rows, graph, int(self.n_components), run
        )
        if not isolated.any():
            Y = at_common_place(Y, equal_in_graph(near))
        # edges that the reference implementation would never draw
        graph = graph.kept(graph.weights >= graph.weights.max() / max(steps, 1))
        P, seed = umap.row_normalized(graph), int(run.rng.integers(2**62))
        forces = umap.UmapForces(P, umap.umap_law(*curve), self._rate(), seed, run.threads)
        if radii is not None:
            forces.density = umap.DensityTerm(graph, radii[kept], self.density, *curve, run.threads)
            forces.density_from = umap.calm_start(steps)
        calm = radii is not None or Y.shape[1] > MESH_DIMENSIONS
        found = descend(
            forces,
            np.ascontiguousarray(Y),
            umap.umap_stages(steps, not isinstance(self.init, str), calm),
            learning_rate=float(self.learning_rate),
            tol=0.0,
            monitor=run.monitor,
        )
        self.loss_history_, self.n_iter_ = found.losses, found.n_iter
        if radii is not None:
            self.rad_orig_, self.rad_emb_ = radii, np.zeros(n)
            there = np.ascontiguousarray(found.Y[found.rows])
            self.rad_emb_[kept[found.rows]] = forces.density.radii(there)
        return found.Y

    def _steps(self, n: int) -> int:
        if self.n_epochs is not None:
            return int(self.n_epochs)
        return (500 if n <= MANY_ROWS else 200) + (DENSITY_EPOCHS if self.density else 0)

    def _rate(self) -> float:
        return float(self.negative_sample_rate) * float(self.repulsion_strength)

    # --- new rows -------------------------------------------------------------------------------

    def _places(self, near: NeighborGraph, run: FitContext) -> np.ndarray:
        curve, threads, k = (self.a_, self.b_), run.threads, near.n_neighbors
        law = run.prepared("law", (), curve, lambda: umap.umap_law(*curve))
        local = fuzzy.memberships(near, k + 1, self.local_connectivity, threads)
        p = local.weights / local.weights.sum(axis=1, keepdims=True)
        source = (self.embedding_,)
        Y, grid = run.prepared("field", source, curve, lambda: umap_field(*source, law, threads))
        total = 2 * len(Y) / self._rate()
        if grid is not None:
            return placement.settled_on_grid(Y, grid, near.indices, p, 0.0, total, threads, *curve)
        ids = np.ascontiguousarray(np.maximum(near.indices, 0), np.int32)
        p = np.ascontiguousarray(p, np.float32)

        def height(Z: np.ndarray, rows: np.ndarray) -> placement.Height:
            starts = np.arange(len(rows) + 1, dtype=np.int64) * k
            ends, weights = ids[rows].ravel(), p[rows].ravel()
            pull, push = np.empty_like(Z), np.empty_like(Z)
            sums, potential = np.empty((len(rows), 2)), np.empty(len(rows))
            _native.attract(starts, ends, weights, Z, Y, 0.0, pull, sums, threads, *curve)
            law.repel(Z, Y, push, threads, potential, same=False)
            return placement.Height(sums[:, 0] + potential / total, pull - push / total, sums[:, 1])

        start = np.einsum("ik,ikd->id", p, Y[ids].astype(np.float64))
        return placement.settled(np.ascontiguousarray(start, np.float32), height)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        X = self.fitted_rows_
        if X is None or is_sparse(X):
            raise ParameterError(
                "UMAP: inverse_transform needs the fitted rows, dense, but the model has "
                + ("sparse rows" if X is not None else "distances or a graph")
                + "; fit on dense rows."
            )
        k, places = (
            min(self.n_neighbors_ + 1, len(X)),
            np.ascontiguousarray(self.embedding_, Y.dtype),
        )
        near = neighbor_query(places, Y, k, threads=run.threads, monitor=run.monitor)
        phi = 1 / (1 + self.a_ * near.distances.astype(np.float64) ** (2 * self.b_))
        phi = np.maximum(phi, np.finfo(np.float64).tiny)
        shares = phi / phi.sum(axis=1, keepdims=True)
        found = np.empty((len(Y), X.shape[1]))
        for rows in row_blocks(len(Y), rows_within(8 * k * X.shape[1], BACK_BYTES)):
            around = X[near.indices[rows]].astype(np.float64)
            found[rows] = np.einsum("ik,ikp->ip", shares[rows], around)
        equal = near.distances[:, 0] == 0  # a point of the map is the row that it shows
        found[equal] = X[near.indices[equal, 0]]
        return found.astype(Y.dtype, copy=False)


def umap_field(Y: np.ndarray, law: umap.UmapLaw, threads: int) -> placement.MapField:
    """What new rows need to know of a map."""
    with np.errstate(over="ignore"):
        Y = np.ascontiguousarray(Y, np.float32)
    if not np.isfinite(Y).all():
        raise DataError("the map of the model has coordinates beyond float32; fit the model again.")
    kernel = law.radial()
    if Y.shape[1] > 3 or grid_nodes(Y, kernel, placement.MARGIN) > placement.GRID_LIMIT:
        return placement.MapField(Y, None)
    mesh = ParticleMesh(kernel, threads, "take fewer dimensions")
    return placement.MapField(Y, mesh.field(Y, margin=placement.MARGIN).without_charge())
