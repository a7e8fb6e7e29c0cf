"""Local multidimensional scaling with a constant repulsion (Chen & Buja 2009)."""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.constraints import Array, Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.models.checks import above, at_least, count, some_of
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._engines.embedding.particle_mesh import DISTANCE, Field, ParticleMesh
from lowland._engines.graphs.components import ConnectedGraph, connected_components
from lowland._engines.graphs.laplacian import graph_multigrid
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.neighbors.duplicates import (
    EqualRows,
    at_common_place,
    equal_in_distances,
    equal_in_graph,
)
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import given_neighbors, neighbor_graph_cost, neighbor_query
from lowland._engines.stress import initial_map
from lowland._engines.stress.majorization import Evaluation, Majorized, majorize
from lowland._engines.stress.objective import ListedPairs
from lowland._engines.stress.placement import lowest_places
from lowland.methods.curvilinear._base import CurvilinearReducer

# The sum of all distances of a map and its gradient, by the cheapest of three algorithms.
#
#     A(Y) = sum_{i<j} |y_i - y_j|        dA/dy_i = sum_j (y_i - y_j) / |y_i - y_j|
#
#     sorted     from the order of the points        O(n log n)        one dimension, exact
#     all pairs  by a compiled kernel                O(n^2 d)          any dimension, exact
#     mesh       a potential on a grid               O(n + g log g)    two or three dimensions
#
# The relative error (2-norm) of the gradient on the mesh is that of pairs within a few nodes:
# measured, 0.01 % on disks, rings and balls, 0.1 % (in three dimensions 2 %) on clusters a
# hundredth of the map wide, 2 % (9 %) on clusters a thousandth of it wide. A few points far from
# all others would make the grid coarse, so that their pairs are summed one by one.


MESH_ROWS = {2: 2500, 3: 7000}  # from here on the mesh is faster than all pairs
MARGIN = {2: 64, 3: 12}  # nodes beyond the map where new rows may be
FAR_POINTS = 128  # at most so many are summed one by one
FLOAT64_ROWS = 1000  # pairs of more rows are computed in float32, twice as fast


class DistanceSums:
    """A and its gradient for maps of n points in d dimensions; keeps the grid of the last map."""

    def __init__(self, n: int, d: int, threads: int) -> None:
        self.threads = threads
        self.mesh: ParticleMesh | None = None
        if d in MESH_ROWS and n > MESH_ROWS[d]:
            self.mesh = ParticleMesh(DISTANCE, threads, "fit fewer rows")
        self.dtype = np.float64 if n <= FLOAT64_ROWS else np.float32

    def __call__(self, Y: np.ndarray) -> tuple[float, np.ndarray]:
        if Y.shape[1] == 1:
            return _sorted(Y)
        if self.mesh is not None:
            return self._on_mesh(self.mesh, Y)
        sums, units = _directly(Y, Y, self.dtype, self.threads)
        return float(sums.sum()) / 2, units

    def _on_mesh(self, mesh: ParticleMesh, Y: np.ndarray) -> tuple[float, np.ndarray]:
        far = _far_points(Y)
        near = np.delete(Y, far, axis=0) if far.size else np.ascontiguousarray(Y)
        potential, forces = np.empty(len(near)), np.empty(near.shape)
        # one grid for all maps of about this size, or losses could not be compared
        mesh.field(near, turn=None).at(near, potential, forces, self.threads)
        total, units = float(potential.sum()) / 2, -2 * forces
        if far.size == 0:
            return total, units
        between = _directly(near, Y[far], self.dtype, self.threads)
        outer = _directly(Y[far], Y, self.dtype, self.threads)
        total += float(between[0].sum() + outer[0].sum()) / 2
        every, is_near = np.empty(Y.shape), np.ones(len(Y), bool)
        is_near[far] = False
        every[is_near], every[far] = units + between[1], outer[1]
        return total, every


class SumsToPoints:
    """sum_j |z - y_j| and its gradient at any points z, for the points Y of a fixed map.

    On a grid if there are many points; beyond its margin, and from far points, by all pairs.
    """

    def __init__(self, Y: np.ndarray, threads: int) -> None:
        self.Y, self.threads = Y, threads
        self.field: Field | None = None
        d = Y.shape[1]
        if d in MESH_ROWS and len(Y) > MESH_ROWS[d]:
            far = _far_points(Y)
            self.far, near = Y[far], np.delete(Y, far, axis=0)
            mesh = ParticleMesh(DISTANCE, threads, "fit fewer rows")
            self.field = mesh.field(near, margin=MARGIN[d]).without_charge()

    def __call__(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        Z = np.ascontiguousarray(Z)
        if self.field is None:
            return _directly(Z, self.Y, np.float64, self.threads)
        field = self.field
        place = (Z - field.low) / field.pitch
        inside = ((place >= 3) & (place <= np.array(field.values.shape) - 4)).all(axis=1)
        sums, units = np.empty(len(Z)), np.empty(Z.shape)
        within = Z[inside]
        potential, forces = np.empty(len(within)), np.empty(within.shape)
        field.at(within, potential, forces, self.threads)
        others = _directly(within, self.far, np.float64, self.threads)
        sums[inside], units[inside] = potential + others[0], others[1] - 2 * forces
        beyond = _directly(Z[~inside], self.Y, np.float64, self.threads)
        sums[~inside], units[~inside] = beyond
        return sums, units


def _directly(
    Z: np.ndarray, Y: np.ndarray, dtype: type, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over all pairs of a point of Z and a point of Y."""
    sums, units = np.empty(len(Z)), np.empty(Z.shape)
    z, y = (np.ascontiguousarray(P, dtype) for P in (Z, Y))
    _native.unit_sums(z, y, sums, units, threads)
    return sums, units


def _far_points(Y: np.ndarray) -> np.ndarray:
    """The outermost points, if the map without them is less than half as wide; else none."""
    widths = np.abs(Y - np.median(Y, axis=0)).max(axis=1)
    outer = np.argpartition(widths, -FAR_POINTS)[-FAR_POINTS:]
    rest = widths[outer[0]]  # the least of them
    return np.sort(outer) if 2 * rest < widths[outer].max() else np.empty(0, np.int64)


def _sorted(Y: np.ndarray) -> tuple[float, np.ndarray]:
    """In one dimension the gradient is the number of points below minus the number above."""
    y = Y[:, 0]
    ordered = np.sort(y)
    below, above = np.searchsorted(ordered, y), len(y) - np.searchsorted(ordered, y, "right")
    units = (below - above).astype(np.float64)
    return float(np.einsum("i,i->", units, y)), units[:, None]  # A is homogeneous


# The stress of local MDS as an objective, with its majorizer.
#
#     E(Y) = sum_N (delta - d)^2 - t sum_{not N} d
#          = sum_N (delta - t/2 - d)^2 - t sum_all d + sum_N (t delta - t^2 / 4)
#
# over pairs i < j, where N holds the listed pairs of neighbors. The second form needs no list of
# the pairs that are not neighbors. -d_ij lies below its tangent plane, so that the quadratic of
# the neighbors with the Laplacian V of their graph majorizes E: Y - V^+ slope never has a higher
# E. If the graph is connected, E has a lower bound.


class LocalStress:
    """E over the edges of a symmetric, connected graph of distances (CSR), for one t at a time.

    Attributes
    ----------
    pairs : ListedPairs
        N, each pair once, with the distances of the data.
    strength : float
        t; set it by :meth:`with_tau`.
    """

    floor = -np.inf  # E may be negative

    def __init__(
        self, graph: scipy.sparse.csr_matrix, d: int, rng: np.random.Generator, threads: int
    ) -> None:
        n = graph.shape[0]
        edges = scipy.sparse.triu(graph, 1, format="coo")
        delta = edges.data.astype(np.float64)
        self.pairs = ListedPairs(n, edges.row, edges.col, delta, None, threads)
        self.sums = DistanceSums(n, d, threads)
        self.strength, self.targets, self.constant = 0.0, delta, 0.0
        self.precondition = self.pairs.laplacian.solve
        if self.pairs.laplacian.factor is None and not self.pairs.laplacian.uniform:
            ones = scipy.sparse.csr_matrix(
                (np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape
            )
            self.precondition = graph_multigrid(ones, rng, threads)

    def with_tau(self, tau: float) -> LocalStress:
        """The same objective with the t of another tau; the factors of V are kept."""
        delta, n, t = self.pairs.delta, self.pairs.n, 0.0
        n_others = n * (n - 1) // 2 - len(delta)
        if n_others > 0:  # t = |N| / |N^c| * median_N(delta) * tau
            t = tau * float(np.median(delta)) * len(delta) / n_others
        other = copy.copy(self)
        other.strength, other.targets = t, delta - t / 2
        other.constant = float((t * delta - t**2 / 4).sum())
        return other

    def __call__(self, Y: np.ndarray) -> Evaluation:
        stress, slope = self.pairs.per_point(Y, self.targets)
        loss = float(stress.sum()) / 2
        if self.strength > 0:
            total, units = self.sums(Y)
            loss += self.constant - self.strength * total
            slope -= (self.strength / 2) * units
        return Evaluation(loss, slope)

    def guttman_step(self, Y: np.ndarray, here: Evaluation) -> np.ndarray:
        return self.precondition(here.slope)


# New rows in a map of local MDS: each minimizes its own part of the stress.
#
#     s(z) = sum_{j in N(z)} (delta_j - |z - y_j|)^2 - t sum_{j not in N(z)} |z - y_j|
#
# N(z) are the k nearest fitted rows. The quadratic of k neighbors majorizes s, so that the step
# slope / k never raises it.


def lowest_near(D: np.ndarray, Y: np.ndarray, k: int, t: float, threads: int) -> np.ndarray:
    """Places (m, q) of rows with the distances D (m, n), all above 0, to the points Y."""
    found = given_neighbors(D, k)
    near, delta = found.indices, found.distances
    sums_to_points = SumsToPoints(Y, threads)

    def height(Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along = Z[:, None, :] - Y[near[rows]]  # (m, k, q)
        d = np.sqrt(np.einsum("ikd,ikd->ik", along, along))
        gap = delta[rows] - d
        sums, units = sums_to_points(Z)
        value = np.einsum("ik,ik->i", gap, gap) - t * (sums - np.einsum("ik->i", d))
        pull = np.where(d > 0, (gap - t / 2) / np.where(d > 0, d, 1.0), 0.0)
        slope = -np.einsum("ik,ikd->id", pull, along) - (t / 2) * units
        return value, slope / k

    # neighbors in a line do not tell the side of it
    middle = np.einsum("ikd->id", Y[near]) / k
    reach = np.einsum("ik->i", delta) / k
    around = [middle + reach[:, None] * direction for direction in _directions(Y.shape[1])]
    return lowest_places(D, Y, height, threads, around)


def _directions(q: int) -> list[np.ndarray]:
    """Unit vectors along the axes and, up to three, the diagonals between them."""
    if q > 3:
        return [sign * axis for axis in np.eye(q) for sign in (1, -1)]
    steps = [np.array(step) for step in itertools.product((-1.0, 0.0, 1.0), repeat=q) if any(step)]
    return [step / np.sqrt((step**2).sum()) for step in steps]


# The LC meta-criterion (Chen & Buja 2009): the overlap of neighborhoods in data and map.
#
#     M_K = 1/(n K) sum_i |N_K(i) in the data  and  N_K(i) in the map|,    adjusted: M_K - K / (n
# - 1)
#
# K / (n - 1) is the expectation for a random map.


SAMPLE = 2000  # rows that the mean is taken over: its standard error is below 0.7 %


class NeighborOverlap:
    """The adjusted M_K of maps, from the lists (n, K) of neighbors in the data.

    The neighbors in the map are searched among all points, for evenly spread rows if there are
    many.
    """

    def __init__(self, lists: np.ndarray, threads: int) -> None:
        n, self.size = lists.shape
        self.rows = np.arange(n) if n <= SAMPLE else np.linspace(0, n - 1, SAMPLE).astype(np.int64)
        self.lists, self.threads = lists[self.rows], threads
        self.by_chance = self.size / (n - 1)

    def __call__(self, Y: np.ndarray) -> float:
        Y = np.ascontiguousarray(Y)
        found = neighbor_query(Y, Y[self.rows], self.size + 1, threads=self.threads).indices
        own = found == self.rows[:, None]
        own[:, -1] |= ~own.any(axis=1)  # more equal places than neighbors: the row was not listed
        near = found[~own].reshape(len(found), self.size)
        shared = (near[:, :, None] == self.lists[:, None, :]).any(axis=2)
        return float(shared.mean()) - self.by_chance


TRIED_NEIGHBORS = (6, 8, 10, 15)  # with n_neighbors="auto"
OVERLAP = 10  # K of the criterion
LAST_TAU = 1e-4  # of tau="auto"; the path begins at 1, and tau is about halved at each of its steps
MOST_STEPS = 30  # of the path, where tau is below 1e-9
PATIENCE = 3  # steps of the path without a better criterion, after which it ends
ROUGH = 3e-4  # tolerance along the path; a map that is stretched too well does not come back


class Stage(NamedTuple):
    """A map on the path, its objective, and the LC criterion."""

    tau: float
    objective: LocalStress
    found: Majorized
    criterion: float


@dataclass
class Trail:
    """What all descents of a fit share: the group of each row, the criterion, the steps so far."""

    group: np.ndarray
    overlap: NeighborOverlap
    run: FitContext
    n_steps: int = 0
    losses: list[np.ndarray] = field(default_factory=list)

    def map_of(self, Y: np.ndarray) -> np.ndarray:
        """The map of all rows, centered, from the places of the different ones."""
        every = Y[self.group]
        return every - every.mean(axis=0)


class LocalMDS(CurvilinearReducer):
    """min sum_N (delta_ij - d_ij)^2 - t sum_{not N} d_ij: neighbors keep distances, others repel.

    N are the pairs of which one is among the ``n_neighbors`` nearest of the other, and
    t = |N| / |N^c| * median_N(delta) * tau. Only short distances are fitted; a constant repulsion
    spreads the rest, so that curved surfaces unroll. Use it for sheets and other surfaces that are
    known by their short distances, of any number of rows: no matrix of distances is needed. Data
    of many dimensions need a strong repulsion, which stretches the map: read neighborhoods in it,
    not distances. Cost: O(n^2 p) for the neighbors, then O(n k) for each of some 100 to 500 steps.

    Parameters
    ----------
    n_neighbors : int or "auto", default=10
        Number of neighbors of each row whose distances are kept. "auto" tries 6, 8, 10 and 15 and
        keeps the number with the best criterion ``lc_``.
    tau : float or "auto", default="auto"
        Strength of the repulsion, at most 1000. Too little leaves the map crumpled, too much
        stretches it to lines and clumps. "auto" keeps, of the values 1, 1/2, 1/4 ... that the
        descent passes, the one with the best criterion ``lc_``.
    init : {"geodesic", "classical", "random"} or array, default="geodesic"
        The start: landmark scaling of distances along the graph, classical, random, or given.
        Classical scaling is PCA for Euclidean rows. A given start has shape (n, n_components).
    max_iter : int, default=300
        Maximum number of steps at each value of tau. 0 keeps the start.
    tol : float, default=1e-5
        The descent ends when a step lowers the objective by less than this share of its size.
    on_disconnected : {"bridge", "raise"}, default="bridge"
        Join the components of the neighbor graph by their shortest edges, or raise an error.
        Without an edge between them, components would repel each other without end.

    Attributes
    ----------
    stress_ : float
        The objective at the map; it may be negative.
    loss_history_ : ndarray of shape (n_steps,)
        The objective at the start and after each step, for each step with its own t: it never
        increases as long as tau and the number of neighbors stay the same.
    stress_per_point_ : ndarray of shape (n_samples,)
        Relative stress over the neighbors of each row, sqrt(sum_N (delta - d)^2 / sum_N delta^2).
    tau_ : float
        Strength of the repulsion that was used.
    repulsion_ : float
        t, the force between two rows that are not neighbors.
    n_neighbors_ : int
        Number of neighbors that was used.
    lc_ : float
        Mean overlap of the 10 nearest neighbors in data and map, minus that of a random map: the
        adjusted local continuity criterion, at most 1. For many rows it is measured on 2 000.
    tau_path_ : ndarray of shape (n_taus,)
        Values of tau that the descent passed.
    lc_path_ : ndarray of shape (n_taus,)
        Criterion of the rough map at each of them.
    distinct_rows_ : ndarray of shape (n_distinct,)
        Row numbers of the fitted rows, of equal ones the first.
    n_connected_components_ : int
        Number of components of the neighbor graph before they were joined.

    Notes
    -----
    Equal rows are one point: neighbors are counted among different rows, and equal rows share a
    place. Pairs that are added to join components belong to N. A bridge between n_a and n_b rows is
    stretched by n_a n_b t / 2, so that large components end far apart unless tau is small.

    As in the paper, the descent begins at tau = 1 and continues with smaller values from the map
    of the one before; tau is about halved each time. Along this path the descent is rough (to
    steps that lower the objective by 0.03 %): converged maps of a strong repulsion are thin lines,
    which lose the order across. Only the last map is made exact. From a classical start and
    tau = 0.06 instead of 1, a swiss roll of 5 000 rows ended at a criterion of 0.86 instead of
    0.94; one of 30 000 rows came out twisted at 0.83, and at 0.96 from the geodesic start. With
    tau="auto" the path ends after three values that are not better, or at 0.0001.

    The descent is L-BFGS on the whole objective. Its preconditioner is the Laplacian of N, the
    matrix of the majorizer, factored up to 1 500 rows and a multigrid cycle beyond. The sum of all
    distances is computed on a grid from 2 500 rows (in three dimensions 7 000); its relative error
    is about 0.01 % for evenly spread maps, and 2 % where clusters are a thousandth of the map wide.

    References
    ----------
    Chen & Buja (2009), Local multidimensional scaling for nonlinear dimension reduction, graph
    drawing, and proximity analysis, JASA 104(485), doi:10.1198/jasa.2009.0111.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> roll = swiss_roll(500, random_state=0)
    >>> LocalMDS(random_state=0).fit_transform(roll.X).shape
    (500, 2)
    """

    n_neighbors: Any = param(Integer(1) | OneOf("auto"), default=10)
    tau: Any = param(Real(0, 1000, closed="right") | OneOf("auto"), default="auto")
    max_iter: int = param(Integer(0), default=300)
    tol: float = param(Real(0, closed="left"), default=1e-5)
    init: Any = param(OneOf("geodesic", "classical", "random") | Array(), default="geodesic")
    on_disconnected: str = param(OneOf("bridge", "raise"), default="bridge")

    tau_: float = fitted(meaning=above(0))
    repulsion_: float = fitted(meaning=at_least(0))
    n_neighbors_: int = fitted(type=int, meaning=count(1))
    lc_: float = fitted()
    tau_path_: np.ndarray = fitted("n_taus")
    lc_path_: np.ndarray = fitted("n_taus")
    distinct_rows_: np.ndarray = fitted("n_distinct", type=int, meaning=some_of("n_samples"))
    n_connected_components_: int = fitted(type=int)

    card = Card(
        keeps="distances of neighbors; all others are only spread out",
        use="to unroll sheets and other curved surfaces, also of many rows",
        avoid="if long distances must be read",
        cost="O(n^2 p) for neighbors, O(n k) per step; O(n k) memory",
    )
    reference = "Chen & Buja (2009)"
    aliases = ("chen_buja",)
    reading = CurvilinearReducer.reading._replace(
        distances="Distances of neighbors are those of the data, as far as the stress is small. "
        "Long distances show only that rows are not neighbors: a repulsion spreads them.",
        gaps="A gap separates rows that are not neighbors. Its width depends on the strength of "
        "the repulsion.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: neighbors, and about 250 steps."""
        search = neighbor_graph_cost(n, p, 10)
        return search + Estimate(0.1 + 250 * (2e-3 + 6e-7 * n), 1200 * n).holding(8 * n * p)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n = X.shape[0]
        tried = [k for k in TRIED_NEIGHBORS if k < n] or [n - 1]
        tried = tried if self.n_neighbors == "auto" else [min(int(self.n_neighbors), n - 1)]
        require_memory(
            self.estimate(*X.shape).n_bytes // 3 + 100 * n * max(tried),
            task=f"LocalMDS of {n} rows",
            alternative="fit fewer rows, and place the others by transform",
        )
        k = min(n - 1, max(*tried, OVERLAP))
        graph = self._nearest_others(X, k, run)
        equal = equal_in_distances(X) if self._has_distances else equal_in_graph(graph)
        first, group = equal or EqualRows(np.arange(n), np.arange(n))
        A, self.distinct_rows_, start = self._part_of(X, first), first, None
        if 1 < len(first) < n:
            graph = self._nearest_others(A, min(k, len(first) - 1), run)
        if not isinstance(self.init, str) or self.init != "geodesic":
            given = self._start(X, run, X if self._has_distances else None)
            start = at_common_place(given, equal)[first]
        if len(first) == 1:
            self._keep_one_place(n, tried[0])
        else:
            overlap = NeighborOverlap(graph.indices[:, :OVERLAP], run.threads)
            self._search(A, start, graph, tried, Trail(group, overlap, run))
        self.embedding_ = self.embedding_.astype(X.dtype)
        self.fitted_rows_ = None if self._has_distances else X.copy()
        return self.embedding_.copy()

    def _edges(self, X: Any, graph: NeighborGraph, k: int, run: FitContext) -> ConnectedGraph:
        """N as a connected graph of distances."""
        near, lengths = graph.indices[:, :k], graph.distances[:, :k]
        edges = symmetrize(NeighborGraph(near, lengths, graph.n_points, graph.metric))
        n_components = connected_components(edges)[0] if self.on_disconnected == "raise" else 1
        if n_components > 1:
            raise DataError(
                f"LocalMDS: the neighbor graph has {n_components} connected components, which "
                "would repel each other without end; take a larger n_neighbors, or set "
                "on_disconnected='bridge' to join them by their shortest edges."
            )
        return self._connect(edges, X, run, self.metric)

    def _search(
        self, X: Any, start: np.ndarray | None, graph: NeighborGraph, tried: list[int], trail: Trail
    ) -> None:
        """The path for each number of neighbors, and the descent at the best place of them."""
        run, q, best, n_parts = trail.run, int(self.n_components), None, 1
        for k in tried:
            edges = self._edges(X, graph, min(k, graph.n_neighbors), run)
            objective = LocalStress(edges.graph, q, run.rng, run.threads)
            Y = initial_map.landmark_start(edges.graph, q, run) if start is None else start
            if self.max_iter > 0:
                Y = initial_map.separated(Y, run.rng)
            stages = self._path(objective, Y, trail)
            criteria = np.array([stage.criterion for stage in stages])
            last = int(criteria.argmax()) if self.tau == "auto" else len(stages) - 1
            if best is None or criteria[last] > best.criterion:
                best, self.n_neighbors_ = stages[last], k
                self.tau_path_ = np.array([stage.tau for stage in stages])
                self.lc_path_ = criteria
                n_parts = edges.n_components
            if run.monitor.stopped:
                break
        assert best is not None
        found = best.found
        if self.max_iter > 0 and self.tol < ROUGH and not run.monitor.stopped:
            found = self._descent(best.objective, found.Y, float(self.tol), trail)
        self.embedding_ = trail.map_of(found.Y)
        self.stress_, self.n_iter_ = float(found.losses[-1]), trail.n_steps
        self.loss_history_ = np.concatenate(trail.losses)
        self.tau_, self.repulsion_ = best.tau, best.objective.strength
        self.lc_, self.n_connected_components_ = trail.overlap(found.Y), n_parts
        self.stress_per_point_ = best.objective.pairs.relative_per_point(found.Y)[trail.group]

    def _path(self, objective: LocalStress, Y: np.ndarray, trail: Trail) -> list[Stage]:
        """Rough maps for falling tau, each from the one before."""
        stages: list[Stage] = []
        for tau in self._taus():
            local = objective.with_tau(tau)
            found = self._descent(local, Y, max(ROUGH, float(self.tol)), trail)
            Y = found.Y
            stages.append(Stage(tau, local, found, trail.overlap(Y)))
            later = [stage.criterion for stage in stages[-PATIENCE:]]
            earlier = [stage.criterion for stage in stages[:-PATIENCE]]
            falls = self.tau == "auto" and earlier and max(later) < max(earlier)
            if falls or trail.run.monitor.stopped:
                break
        return stages

    def _taus(self) -> list[float]:
        """From 1 down to the one that is wanted, or to the last that is tried."""
        wanted = LAST_TAU if self.tau == "auto" else float(self.tau)
        n_steps = min(max(0, math.ceil(-math.log2(wanted))), MOST_STEPS)
        if self.max_iter == 0 or n_steps == 0:
            return [1.0 if self.tau == "auto" else wanted]
        return [wanted ** (step / n_steps) for step in range(n_steps + 1)]

    def _descent(
        self, objective: LocalStress, Y: np.ndarray, tol: float, trail: Trail
    ) -> Majorized:
        found = majorize(
            objective,
            Y,
            max_iter=trail.n_steps + int(self.max_iter),
            tol=tol,
            monitor=trail.run.monitor,
            shown=trail.map_of,
            steps_before=trail.n_steps,
        )
        trail.n_steps += found.n_iter
        trail.losses.append(found.losses[1 if trail.losses else 0 :])
        return found

    def _keep_one_place(self, n: int, k: int) -> None:
        """All rows are equal."""
        self.embedding_ = np.zeros((n, int(self.n_components)))
        self.stress_per_point_, self.loss_history_ = np.zeros(n), np.zeros(1)
        self.stress_, self.n_iter_, self.repulsion_, self.lc_ = 0.0, 0, 0.0, 0.0
        self.tau_ = 1.0 if self.tau == "auto" else float(self.tau)
        self.tau_path_, self.lc_path_ = np.array([self.tau_]), np.zeros(1)
        self.n_neighbors_, self.n_connected_components_ = k, 1

    # --- new rows -----------------------------------------------------------------------------

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        """A row at distance 0 from a fitted row gets its place."""
        rows = self.distinct_rows_
        D, Y = D[:, rows], np.ascontiguousarray(self.embedding_[rows], np.float64)
        Z, new = Y[D.argmin(axis=1)], D.min(axis=1) > 0
        if new.any():
            k, t = min(int(self.n_neighbors_), len(rows)), self.repulsion_
            Z[new] = lowest_near(np.ascontiguousarray(D[new], np.float64), Y, k, t, run.threads)
        return Z
