"""The stress of local MDS as an objective, with its majorizer.

    E(Y) = sum_N (delta - d)^2 - t sum_{not N} d
         = sum_N (delta - t/2 - d)^2 - t sum_all d + sum_N (t delta - t^2 / 4)

over pairs i < j, where N holds the listed pairs of neighbors. The second form needs no list of the
pairs that are not neighbors. -d_ij lies below its tangent plane, so that the quadratic of the
neighbors with the Laplacian V of their graph majorizes E: Y - V^+ slope never has a higher E. If
the graph is connected, E has a lower bound.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._engines.embedding.particle_mesh import DISTANCE, Field, ParticleMesh
from lowland._engines.graphs.laplacian import graph_multigrid
from lowland._engines.neighbors.search import given_neighbors, neighbor_query
from lowland._engines.stress.majorization import Evaluation
from lowland._engines.stress.objective import ListedPairs
from lowland._engines.stress.placement import lowest_places

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


def repulsion_strength(delta: np.ndarray, n: int, tau: float) -> float:
    """t = |N| / |N^c| * median_N(delta) * tau; 0 if all pairs are neighbors."""
    n_others = n * (n - 1) // 2 - len(delta)
    return tau * float(np.median(delta)) * len(delta) / n_others if n_others > 0 else 0.0


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
        self.solve = self.pairs.laplacian.solve
        if self.pairs.laplacian.factor is None and not self.pairs.laplacian.uniform:
            ones = scipy.sparse.csr_matrix(
                (np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape
            )
            self.solve = graph_multigrid(ones, rng, threads)

    def with_tau(self, tau: float) -> LocalStress:
        """The same objective with the t of another tau; the factors of V are kept."""
        delta = self.pairs.delta
        t = repulsion_strength(delta, self.pairs.n, tau)
        other = object.__new__(LocalStress)
        other.__dict__.update(self.__dict__)
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

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        return self.solve(slope)

    def guttman_step(self, Y: np.ndarray, here: Evaluation) -> np.ndarray:
        return self.solve(here.slope)


# New rows in a map of local MDS: each minimizes its own part of the stress.
#
#     s(z) = sum_{j in N(z)} (delta_j - |z - y_j|)^2 - t sum_{j not in N(z)} |z - y_j|
#
# N(z) are the k nearest fitted rows. The quadratic of k neighbors majorizes s, so that the step
# slope / k never raises it.


def place_by_local_stress(
    D: np.ndarray, Y: np.ndarray, k: int, t: float, threads: int
) -> np.ndarray:
    """Places (m, q) of rows with the distances D (m, n) to the fitted rows.

    A row at distance 0 from a fitted row gets its place.
    """
    Y = np.ascontiguousarray(Y, np.float64)
    same = D == 0
    equal = same.any(axis=1)
    Z = Y[same.argmax(axis=1)]
    new = np.flatnonzero(~equal)
    if new.size:
        Z[new] = _lowest(np.ascontiguousarray(D[new], np.float64), Y, k, t, threads)
    return Z


def _lowest(D: np.ndarray, Y: np.ndarray, k: int, t: float, threads: int) -> np.ndarray:
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
