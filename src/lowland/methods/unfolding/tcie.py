"""Topologically constrained isometric embedding (Rosman, Bronstein, Bronstein & Kimmel 2010)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from lowland._base.constraints import Function, Integer, Null, OneOf, Real, Several
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import Ascending, index_of
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate
from lowland._engines.graphs.geodesics import shortest_paths, shortest_paths_cost, without_copies
from lowland._engines.graphs.weights import row_numbers
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.duplicates import EqualRows, equal_in_graph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland._engines.stress import initial_map
from lowland._engines.stress.classical_scaling import classical_scaling_cost
from lowland._engines.stress.majorization import Majorized, majorization_cost, majorize
from lowland._engines.stress.placement import equal_points, place_by_stress
from lowland.methods._bases.graphs import DOUBLE_ROWS, GeodesicEmbedding
from lowland.methods.unfolding._consistent_pairs import (
    Surface,
    boundary_rows,
    connected_neighbors,
    kept_stress,
    nearest_pairs,
    place_by_few,
)

ALL_ROWS, LANDMARKS = 5000, 2500  # "auto" takes all rows up to here, and of more rows so many
NEW_ROWS = 512  # rows that are placed at a time
FEW_KNOWN = 64  # distances of a row, up to which its place is found by Newton's method
# the global shape is uncertain if less than FEW_PAIRS of all pairs are kept, and if these are less
# than FEW_FAR for each edge of the graph, or if almost all rows are on the boundary
FEW_PAIRS, FEW_FAR, ALMOST_ALL = 0.1, 1.02, 0.9


class TCIE(GeodesicEmbedding):
    """min sum w_ij (delta_ij - |y_i - y_j|)^2, w_ij = 0 where the boundary may have bent a path.

    Isomap without its error at holes and bays. There, the shortest path along the surface runs
    around the boundary and is longer than the line that a flat map needs. The rows on the boundary
    are found first; pairs whose path may touch it get no weight, and the others make the map. Use
    it for bent sheets that have holes or are not convex. Not for clusters or many-dimensional
    data, where all rows are on the boundary. Cost: O(m n k) for the distances along the graph of
    m landmarks, all rows up to 5000, and O(kept pairs) per step.

    Parameters
    ----------
    criterion : {"distance", "path", "all"}, default="distance"
        Which pairs are kept. "distance": pairs nearer to each other than the sum of their
        distances to the boundary. "path": pairs with a shortest path that has no boundary row
        strictly inside. "all": all pairs, which is Isomap with the stress of distances.
    boundary : "auto" or list of int, default="auto"
        Numbers of the rows on the boundary, if they are known. "auto" finds them.
    boundary_neighbors : int or None, default=None
        Number K of neighbors by which the boundary is found. None takes 8 (n_components + 1), and
        at most a quarter of the rows.
    boundary_threshold : float, default=0.6
        Where the boundary begins; smaller values find more rows. A row is on the boundary if the
        mean of the unit vectors to its K nearest rows is longer than this share of its length at a
        straight edge, which is 2/pi for two axes.
    landmarks : int, "auto" or None, default="auto"
        Number of random rows whose pairs make the map. The other rows are placed like new rows.
        None takes all rows. "auto" takes all up to 5000 rows, and 2500 of more.
    max_iter : int, default=300
        Maximum number of steps. 0 keeps the start, which is the map of Isomap.
    tol : float, default=1e-6
        The fit stops when a step lowers the loss by less than this share of it.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, in the unit of the distances; the landmarks are centered.
    boundary_ : ndarray of shape (n_boundary,)
        Indices of the boundary rows among the rows of the map.
    landmarks_ : ndarray of shape (n_landmarks,)
        Indices of the rows whose pairs made the map, among the rows of the map. Of equal rows it
        has one.
    share_kept_ : float
        Share of the pairs of landmarks that are kept.
    stress_ : float
        Sum of (delta - d)^2 over the kept pairs.
    loss_history_ : ndarray of shape (n_steps,)
        Stress at the start and after each step; it never increases.

    Notes
    -----
    The paper tests for the boundary in coordinates of local tangent planes: it counts neighbors on
    either side of the directions to each of them. Here the mean of the unit vectors to the
    neighbors decides, whose length follows from distances along the graph alone; on sheets with
    holes it gave lower errors than the paper's test. Neighbors are always kept, so that the map
    hangs together: the edges of the graph, and with landmarks the 2 ``n_neighbors`` nearest ones.
    Of the criteria of the paper "distance" is stricter and had the lower error. On a sheet of 3 x 1
    with a hole of 1.4 x 0.6 around a cylinder (400 rows, 10 neighbors) the error relative to the
    size of the sheet is 0.03; "path" has 0.09, "all" 0.15, Isomap 0.21. HessianLLE, which needs no
    boundary, has 0.01; with noise of 0.05 it has 0.35, TCIE 0.12. Smaller thresholds keep fewer and
    shorter distances, which are more exact, but make a map of noisy rows uncertain; 0.6 was chosen
    by errors on such sheets. Steps are accelerated by L-BFGS instead of vector extrapolation. A new
    row is linked with its nearest rows; it is placed by the stress of its consistent distances to
    the landmarks and of those to its ``n_neighbors`` nearest.

    References
    ----------
    Rosman, Bronstein, Bronstein & Kimmel (2010), Nonlinear dimensionality reduction by
    topologically constrained isometric embedding, International Journal of Computer Vision 89,
    56-68, doi:10.1007/s11263-010-0322-1.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> sheet = swiss_roll(400, hole=True, random_state=0)
    >>> TCIE(n_neighbors=8, random_state=0).fit_transform(sheet.X).shape
    (400, 2)
    """

    criterion: str = param(OneOf("distance", "path", "all"), default="distance")
    boundary: Any = param(OneOf("auto") | Several(Integer(0)), default="auto")
    boundary_neighbors: int | None = param(Null() | Integer(2, 1000), default=None)
    boundary_threshold: float = param(Real(0, closed="left"), default=0.6)
    landmarks: Any = param(Null() | OneOf("auto") | Integer(2), default="auto")
    max_iter: int = param(Integer(0), default=300)
    tol: float = param(Real(0, closed="left"), default=1e-6)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    boundary_: np.ndarray = fitted(
        "n_boundary",
        type=int,
        may_be_empty=True,
        meaning=(index_of("n_kept"), Ascending(strict=True)),
    )
    landmarks_: np.ndarray = fitted(
        "n_landmarks", type=int, meaning=(index_of("n_kept"), Ascending(strict=True))
    )
    share_kept_: float = fitted()
    stress_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")
    n_iter_: int = fitted(type=int)

    card = Card(
        keeps="distances along the surface that the rows lie on, where no boundary is in the way",
        use="to unroll a bent sheet that has holes or is not convex",
        avoid="for clusters and closed surfaces; for small or many-dimensional data, where all "
        "rows are on the boundary",
        cost="O(n^2 k) time and n^2 numbers up to 5000 rows, O(n) beyond",
    )
    reference = "Rosman, Bronstein, Bronstein & Kimmel (2010)"
    aliases = ("topologically_constrained_isometric_embedding",)
    reading = GeodesicEmbedding.reading._replace(
        distances="Distances in the map are distances along the surface that the rows lie on. "
        "Across a hole, they are those of the flat surface without the hole.",
        sizes="The size of a group is its size along the surface.",
        scale="The axes have the unit of the distances in the data.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        m, size = (n if n <= ALL_ROWS else LANDMARKS), (8 if n <= DOUBLE_ROWS else 4)
        paths = shortest_paths_cost(m, n, 10, size) + Estimate(3e-5 * n, 0)
        stress = classical_scaling_cost(m, 2) + majorization_cost(m, 2, 100, n_pairs=m * m // 20)
        place = Estimate((n - m) * m * 1.5e-7, 3e7 if n > m else 0)
        held = neighbor_graph_cost(n, p, 10) + paths + stress.holding(size * m * (n + 3 * m))
        return (held + place.holding(size * m * n)).holding(16 * n * p)

    # --- fit ----------------------------------------------------------------------------------

    def _embed(self, graph: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        n = graph.shape[0]
        q = self._check_axes(n, n)
        self._keep_edges(graph, double=n <= DOUBLE_ROWS)
        equal = equal_in_graph(self._graph())
        distinct = without_copies(self._graph(), equal)
        self.boundary_ = self._boundary(distinct, equal, n, run)
        self.landmarks_ = chosen = self._choose_landmarks(n, equal, run)
        D = self._geodesics(chosen, run)
        keep = self._surface().of_rows(D, chosen, run)
        among, kept = D, keep
        if len(chosen) < n:  # in C order, other than by D[:, chosen]
            among, kept = D.take(chosen, axis=1), keep.take(chosen, axis=1)
        # neighbors always count: in the graph, or among the landmarks
        every = len(chosen) == distinct.shape[0]
        near = distinct if every else connected_neighbors(among, 2 * int(self.n_neighbors), run)
        kept[row_numbers(near), near.indices] = True
        found, unit = self._descend(among, kept, near.nnz // 2 if every else 0, q, run)
        length = unit * self.longest_edge_
        self.loss_history_, self.n_iter_ = found.losses * length**2, found.n_iter
        self.stress_ = float(self.loss_history_[-1])
        Y = np.empty((n, q))
        Y[chosen] = (found.Y - found.Y.mean(axis=0)) * unit
        self._place_others(Y, D, keep, run)
        return Y * self.longest_edge_

    def _boundary(
        self, distinct: Any, equal: EqualRows | None, n: int, run: FitContext
    ) -> np.ndarray:
        """Boundary rows, as given or as found in the graph of distinct rows."""
        if self.criterion == "all":
            return np.empty(0, np.int64)
        if not isinstance(self.boundary, str):
            return np.flatnonzero(self._given_boundary(n))
        k = None if self.boundary_neighbors is None else int(self.boundary_neighbors)
        threshold = float(self.boundary_threshold)
        found = boundary_rows(distinct, int(self.n_components), k, threshold, run)
        return np.flatnonzero(found if equal is None else found[equal.group])

    def _given_boundary(self, n_kept: int) -> np.ndarray:
        given, n = np.asarray(self.boundary, np.int64), n_kept + self.excluded_.size
        if given.max() >= n:
            raise ParameterError(
                f"TCIE: boundary has row {given.max()}, but the rows are numbered 0 to {n - 1}."
            )
        return np.isin(self._kept(n), given)

    def _choose_landmarks(self, n: int, equal: EqualRows | None, run: FitContext) -> np.ndarray:
        distinct = np.arange(n) if equal is None else equal.first
        m = self.landmarks
        if m == "auto":
            m = LANDMARKS if len(distinct) > ALL_ROWS else None
        if m is None:
            return distinct
        if m > n:
            raise ParameterError(
                f"TCIE: landmarks={m} is more than the {n} rows of the map; ask for at most {n}, "
                "or for all with landmarks=None."
            )
        if m >= len(distinct):
            return distinct
        return np.sort(run.rng.choice(distinct, int(m), replace=False))

    def _surface(self) -> Surface:
        return Surface(self._graph(), self.boundary_, self.criterion, type(self).__name__)

    def _geodesics(self, sources: np.ndarray, run: FitContext) -> np.ndarray:
        """Distances from the sources to all rows, in units of the longest edge."""
        graph, m = self._graph(), len(sources)
        require_memory(
            m * (graph.shape[0] + 3 * m) * graph.dtype.itemsize,
            task=f"TCIE with {m} of {graph.shape[0]} rows as landmarks",
            alternative="set landmarks to fewer rows",
        )
        shared: dict[str, Any] = {"threads": run.threads, "monitor": run.monitor}
        return shortest_paths(graph, sources, dtype=graph.dtype, **shared)

    def _descend(
        self, D: np.ndarray, keep: np.ndarray, n_edges: int, q: int, run: FitContext
    ) -> tuple[Majorized, float]:
        """The map of the landmarks and its unit: from Isomap's by weighted majorization."""
        n = len(D)
        unit = float(np.sqrt(np.einsum("ij,ij->", D, D, dtype=np.float64) / (n * n))) or 1.0
        length = unit * self.longest_edge_
        with limit_blas(1):  # sums over all points must not depend on the number of threads
            objective, n_pairs = kept_stress(D, keep, unit, run)
            self.share_kept_ = n_pairs / (n * (n - 1) / 2) if n > 1 else 1.0
            self._warn_of_few(n_pairs, n_edges)
            start = initial_map.classical_start(D, q, run) / unit
            if self.max_iter > 0 and objective(start).loss > 1e-12 * objective.scale:
                start = initial_map.separated(start, run.rng)
            found = majorize(
                objective,
                start,
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                monitor=run.monitor,
                shown=lambda Y: Y * length,
                told=lambda loss: loss * length**2,
            )
        return found, unit

    def _warn_of_few(self, n_pairs: int, n_edges: int) -> None:
        n = len(self.edge_starts_) - 1
        few = n_pairs < FEW_FAR * n_edges or self.boundary_.size > ALMOST_ALL * n
        if few and self.share_kept_ < FEW_PAIRS:
            warnings.warn(
                f"{self.boundary_.size} of {n} rows are on the boundary, and "
                f"{self.share_kept_:.1%} of the pairs are kept, few of them other than neighbors, "
                "so that the global shape is uncertain; set boundary_threshold higher, or "
                "criterion='path'.",
                stacklevel=9,
            )

    # --- other rows ---------------------------------------------------------------------------

    def _place_others(
        self, Y: np.ndarray, D: np.ndarray, keep: np.ndarray, run: FitContext
    ) -> None:
        """Fill the rows of Y that are no landmarks; D and ``keep`` are (n_landmarks, n)."""
        others = np.setdiff1d(np.arange(len(Y)), self.landmarks_)
        if not others.size:
            return
        with run.monitor.phase("placing rows", total=len(others)) as phase:
            for part in row_blocks(len(others), NEW_ROWS):
                rows = others[part]
                Y[rows] = self._by_stress(D[:, rows].T, keep[:, rows].T, Y[self.landmarks_], run)
                phase.advance(len(rows))

    def _by_stress(
        self, D: np.ndarray, keep: np.ndarray, Y: np.ndarray, run: FitContext
    ) -> np.ndarray:
        """Places of rows with distances D to landmarks at Y; the nearest ones always count."""
        D = np.ascontiguousarray(D, np.float64)
        delta = np.where(keep | nearest_pairs(D, int(self.n_neighbors)), D, np.nan)
        equal = equal_points(D, delta, Y, 0, run.threads)
        few = (np.count_nonzero(~np.isnan(delta), axis=1) <= FEW_KNOWN) & (equal < 0)
        few &= Y.shape[1] > 1  # on a line there is a minimum between any two points
        Z = np.empty((len(D), Y.shape[1]))
        Z[~few] = place_by_stress(delta[~few], Y, 0, equal[~few], run.threads)
        if few.any():
            Z[few] = place_by_few(delta[few], Y, FEW_KNOWN)
        return Z

    def _links(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        return super()._links(X, run).to_csr()

    def _place(self, links: Any, run: FitContext) -> np.ndarray:
        kept = self._kept(len(self.embedding_))
        unit, surface = self.longest_edge_, self._surface()
        Y = self.embedding_[kept[self.landmarks_]].astype(np.float64) / unit
        Z = np.empty((links.shape[0], Y.shape[1]))
        for rows in row_blocks(len(Z), NEW_ROWS):
            D = self._geodesics_of_new_rows(links[rows], self.landmarks_, run)
            keep = surface.of_new_rows(D, links[rows], self.landmarks_, unit, run)
            Z[rows] = self._by_stress(D, keep, Y, run)
        return Z * unit
