"""Local multidimensional scaling with a constant repulsion (Chen & Buja 2009)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Array, Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.models.checks import Ascending, above, at_least, count, index_of
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._engines.graphs.components import ConnectedGraph, connect, connected_components
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.neighbors.duplicates import (
    EqualRows,
    at_common_place,
    equal_in_distances,
    equal_in_graph,
)
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, neighbor_graph_cost
from lowland._engines.stress import initial_map
from lowland._engines.stress.majorization import Majorized, majorize
from lowland.methods.curvilinear._base import CurvilinearReducer
from lowland.methods.curvilinear._local_stress import (
    LocalStress,
    NeighborOverlap,
    place_by_local_stress,
)

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
    distinct_rows_: np.ndarray = fitted(
        "n_distinct", type=int, meaning=(index_of("n_samples"), Ascending(strict=True))
    )
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
        "Long distances say only that rows are not neighbors: a repulsion spreads them.",
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
        graph, equal = self._distinct_neighbors(X, min(n - 1, max(*tried, OVERLAP)), run)
        first = np.arange(n) if equal is None else equal.first
        group = np.arange(n) if equal is None else equal.group
        self.distinct_rows_, start = first, None
        if not isinstance(self.init, str) or self.init != "geodesic":
            given = self._start(X, run, X if self._has_distances else None)
            start = at_common_place(given, equal)[first]
        if graph is None:
            self._keep_one_place(n, tried[0])
        else:
            overlap = NeighborOverlap(graph.indices[:, :OVERLAP], run.threads)
            self._search(self._only(X, first), start, graph, tried, Trail(group, overlap, run))
        self.embedding_ = self.embedding_.astype(X.dtype)
        self.fitted_rows_ = None if self._has_distances else X.copy()
        return self.embedding_.copy()

    def _distinct_neighbors(
        self, X: Any, k: int, run: FitContext
    ) -> tuple[NeighborGraph | None, EqualRows | None]:
        """The k nearest others of each of the different rows, and which rows are equal."""
        graph = self._neighbors(X, k, run)
        equal = equal_in_distances(X) if self._has_distances else equal_in_graph(graph)
        if equal is None:
            return graph, None
        n_distinct = len(equal.first)
        if n_distinct == 1:
            return None, equal
        return self._neighbors(self._only(X, equal.first), min(k, n_distinct - 1), run), equal

    def _only(self, X: Any, rows: np.ndarray) -> Any:
        if len(rows) == X.shape[0]:
            return X
        return np.ascontiguousarray(X[np.ix_(rows, rows)]) if self._has_distances else X[rows]

    def _neighbors(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        return neighbor_graph(
            X,
            k,
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        )

    def _edges(self, X: Any, graph: NeighborGraph, k: int, run: FitContext) -> ConnectedGraph:
        """N as a connected graph of distances."""
        nearest = NeighborGraph(
            graph.indices[:, :k], graph.distances[:, :k], graph.n_points, graph.metric
        )
        edges = symmetrize(nearest)
        n_components = connected_components(edges)[0] if self.on_disconnected == "raise" else 1
        if n_components > 1:
            raise DataError(
                f"{type(self).__name__}: the neighbor graph has {n_components} connected "
                "components, which would repel each other without end; take a larger "
                "n_neighbors, or set on_disconnected='bridge' to join them by their shortest edges."
            )
        return connect(
            edges,
            X,
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )

    def _search(
        self,
        X: Any,
        start: np.ndarray | None,
        graph: NeighborGraph,
        tried: list[int],
        trail: Trail,
    ) -> None:
        """The path for each number of neighbors, and the descent at the best place of them."""
        run, best, q = trail.run, None, int(self.n_components)
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
                self.n_connected_components_ = edges.n_components
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
        self.lc_ = trail.overlap(found.Y)
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
        rows = self.distinct_rows_
        Y, k = self.embedding_[rows], min(int(self.n_neighbors_), len(rows))
        return place_by_local_stress(D[:, rows], Y, k, self.repulsion_, run.threads)
