"""The piecewise-linear surface of an elastic grid: rows are projected on it, places lie on it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.threads import limit_blas
from lowland._engines.grids.lattice import Lattice, PrincipalPlane, principal_plane, sides_for
from lowland._engines.grids.nearest_units import nearest_units, unit_sums
from lowland._engines.linalg.skyline import SkylineCholesky, plan_skyline

# The grid of an elastic map: how many nodes along each axis, and where they start.
#
# Axes along which the data do not vary have one node and no part in the grid.


CLOSED = {"ring": 1, "cylinder": 1}  # how many of the first axes are closed
AXES = {"hexagon": 2, "ring": 1, "cylinder": 2}  # a rectangle has any number
EXTENT = 1.75  # deviations: half the width of a uniform distribution is 1.73
USUAL_NODES = {1: 50, 2: 400, 3: 1000}
MOST_NODES = 100_000
BYTES_PER_NODE = 3000  # of matrices, factors and simplices
FEWEST = 3  # nodes around a closed axis
NO_VARIANCE = 1e-7  # of the largest deviation; less is rounding


class Start(NamedTuple):
    """Nodes along each axis, their first points less the mean of X, and what PCA explains."""

    shape: tuple[int, ...]
    nodes: np.ndarray
    mean: np.ndarray
    variance: float  # mean squared distance of the rows from their mean
    plane_ratio: float  # share of it in the principal plane with as many axes


def lattice_of(grid: str, shape: tuple[int, ...]) -> Lattice:
    """The lattice of the axes that have more than one node."""
    active = [axis for axis, side in enumerate(shape) if side > 1]
    sides = tuple(shape[axis] for axis in active)
    closed = tuple(axis < CLOSED.get(grid, 0) for axis in active)
    kind = "hexagon" if grid == "hexagon" and len(active) == 2 else "rectangle"
    return Lattice(kind, sides, closed)  # type: ignore[arg-type]


def start(X: np.ndarray, grid: str, n_nodes: Any, q: int, run: FitContext) -> Start:
    """A grid on the plane of the first principal axes, or around an ellipse in it."""
    if AXES.get(grid, q) != q:
        raise ParameterError(
            f"ElasticMap: grid={grid!r} is for n_components={AXES[grid]}, not {q}; choose that, or "
            "grid='rectangle'."
        )
    n, p = X.shape
    plane = principal_plane(X, min(q + CLOSED.get(grid, 0), n, p), run)
    variance = plane.total_variance * (1 - 1 / n)
    explained = float(np.sum(plane.deviations[:q] ** 2))
    ratio = min(1.0, explained / plane.total_variance) if plane.total_variance > 0 else 1.0
    axes = _axes(plane, grid, q)
    shape = _shape(grid, n_nodes, axes.spreads)
    total = math.prod(shape)
    if total > MOST_NODES:
        raise ParameterError(
            f"ElasticMap: n_nodes={n_nodes!r} makes a grid of {total} nodes; ask for at most "
            f"{MOST_NODES}."
        )
    band = 2 * total // max(shape)  # of the matrix of each step
    require_memory(
        total * (48 * p + 16 * band + BYTES_PER_NODE),
        task=f"ElasticMap with {total} nodes",
        alternative="fewer nodes (n_nodes)",
    )
    nodes = np.zeros((total, p))
    lattice = lattice_of(grid, shape)
    if lattice.sides:
        nodes = _points(
            lattice, [a for a, side in zip(axes.curves, shape, strict=True) if side > 1]
        )
    return Start(shape, nodes, plane.mean, variance, ratio)


class _Axes(NamedTuple):
    """Of each axis its length, and two vectors: of its half length, or of an ellipse."""

    spreads: list[float]
    curves: list[np.ndarray]


def _axes(plane: PrincipalPlane, grid: str, q: int) -> _Axes:
    deviations = np.zeros(q + 2)
    deviations[: len(plane.deviations)] = plane.deviations
    deviations[deviations <= NO_VARIANCE * deviations.max()] = 0
    vectors = np.zeros((q + 2, plane.axes.shape[1]))
    vectors[: len(plane.axes)] = plane.axes
    vectors *= deviations[:, None]
    order = list(range(q + 2))
    if grid == "cylinder" and deviations[1] ** 2 < deviations[2] * deviations[0]:
        order = [1, 2, 0, 3]  # the last two are more alike: the cylinder is longer than wide
    spreads, curves = [], []
    for axis in range(q):
        if axis < CLOSED.get(grid, 0):
            pair = vectors[order[:2]] * np.sqrt(2)
            spreads.append(2 * np.pi * float(np.sqrt(np.mean(np.sum(pair**2, axis=1)))))
            curves.append(pair)
        else:
            at = order[axis + CLOSED.get(grid, 0)]
            spreads.append(2 * EXTENT * float(deviations[at]))
            curves.append(EXTENT * vectors[at][None])
    return _Axes(spreads, curves)


def _shape(grid: str, n_nodes: Any, spreads: list[float]) -> tuple[int, ...]:
    q, varies = len(spreads), np.array(spreads) > 0
    least = [FEWEST if axis < CLOSED.get(grid, 0) else 2 for axis in range(q)]
    if isinstance(n_nodes, str):
        n_nodes = USUAL_NODES[int(varies.sum())] if varies.any() else 1
    if np.ndim(n_nodes) > 0:
        if len(n_nodes) != q:
            raise ParameterError(
                f"ElasticMap: n_nodes has {len(n_nodes)} entries, but n_components={q}; give one "
                "number for each axis, or one for all nodes together."
            )
        sides = [int(side) for side in n_nodes]
    else:
        kind = "hexagon" if grid == "hexagon" and varies.all() else "rectangle"
        found = iter(
            sides_for(int(n_nodes), np.array(spreads)[varies], kind) if varies.any() else ()
        )
        sides = [next(found) if moves else 1 for moves in varies]
    return tuple(
        max(side, low) if moves else 1
        for side, low, moves in zip(sides, least, varies, strict=True)
    )


def _points(lattice: Lattice, curves: list[np.ndarray]) -> np.ndarray:
    """Sums over the axes: along a straight one from -1 to 1, around a closed one an ellipse."""
    places, periods = lattice.places(), lattice.periods()
    ends = places.max(axis=0)
    total = np.zeros((len(places), curves[0].shape[1]))
    for along, period, end, curve in zip(places.T, periods, ends, curves, strict=True):
        if period:
            angles = 2 * np.pi * along / period
            total += np.outer(np.cos(angles), curve[0]) + np.outer(np.sin(angles), curve[1])
        else:
            total += np.outer(2 * along / end - 1, curve[0])
    return total


SEAM = 1e-12  # of a closed axis: rounding does not part places that lie on its seam
NEAR = 4  # rows are projected on the simplices at so many nearest nodes


class Projected(NamedTuple):
    """Places (n, q) in steps of the grid from its center, and squared distances (n,)."""

    places: np.ndarray
    squares: np.ndarray


def extended(lattice: Lattice, layers: int) -> Lattice:
    """The lattice with so many more nodes at both ends of its open axes.

    Rows of a hexagonal one come in pairs, because every second one is shifted.
    """
    more = [0 if closed else 2 * layers for closed in lattice.closed]
    if lattice.kind == "hexagon":
        more[1] = 4 * -(-layers // 2)
    sides = tuple(side + m for side, m in zip(lattice.sides, more, strict=True))
    return lattice._replace(sides=sides)


def extrapolated(lattice: Lattice, nodes: np.ndarray, wide: Lattice) -> np.ndarray:
    """Nodes of the wide lattice: those outside continue the lines of the grid, 2 w_b - w_c.

    Layer by layer; where several lines meet, as on a hexagonal grid, their mean is taken.
    """
    offset = (np.array(wide.sides) - lattice.sides) // 2
    inside = np.ravel_multi_index(tuple((lattice.positions() + offset).T), wide.sides)
    surface, known = np.zeros((wide.n_units, nodes.shape[1])), np.zeros(wide.n_units, bool)
    surface[inside], known[inside] = nodes, True
    ribs = wide.ribs()
    ends, middles, starts = np.concatenate([ribs, ribs[:, ::-1]]).T
    while not known.all():
        usable = ~known[ends] & known[middles] & known[starts]
        reached, b, c = ends[usable], middles[usable], starts[usable]
        np.add.at(surface, reached, 2 * surface[b] - surface[c])
        counts = np.bincount(reached, minlength=wide.n_units)
        surface[counts > 1] /= counts[counts > 1, None]
        known |= counts > 0
    return surface


def step_lengths(lattice: Lattice, nodes: np.ndarray) -> np.ndarray:
    """The mean length of the edges along each axis; of all edges of a hexagonal grid."""
    edges, q = lattice.edges(), len(lattice.sides)
    lengths = np.sqrt(np.sum((nodes[edges[:, 0]] - nodes[edges[:, 1]]) ** 2, axis=1))
    if lattice.kind == "hexagon":
        return np.full(q, lengths.mean())
    at = lattice.positions()
    along = at[edges[:, 0]] != at[edges[:, 1]]
    return np.array([lengths[along[:, axis]].mean() for axis in range(q)])


def _center(lattice: Lattice) -> np.ndarray:
    return np.where(lattice.closed, lattice.periods(), lattice.places().max(axis=0)) / 2


def _corner_places(lattice: Lattice, simplices: np.ndarray) -> np.ndarray:
    """Places (s, q + 1, q) of the corners; those beyond the seam of a closed axis lie behind it."""
    corners = lattice.places()[simplices]
    steps = corners - corners[:, :1]
    periods = lattice.periods()
    wrapped = np.where(periods > 0, periods, 1.0)
    steps -= np.where(periods > 0, periods * np.round(steps / wrapped), 0.0)
    return corners[:, :1] + steps


def project(X: np.ndarray, nodes: np.ndarray, lattice: Lattice, threads: int) -> Projected:
    """The nearest points of the simplices at the nearest nodes of each row."""
    n, simplices = len(X), np.ascontiguousarray(lattice.simplices())
    order = np.argsort(simplices.ravel(), kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(simplices.ravel(), minlength=len(nodes))))
    near = nearest_units(X, nodes, threads, min(NEAR, len(nodes)))
    near = np.maximum(near, 0)  # rows whose distances overflow have none; their places are NaN
    found, squares = np.zeros(n, np.int64), np.empty(n)
    weights = np.full((n, simplices.shape[1]), np.nan)
    _native.project_on_surface(
        np.ascontiguousarray(X),
        np.ascontiguousarray(near, np.int64),
        np.ascontiguousarray(nodes, np.float64),
        simplices,
        starts.astype(np.int64),
        order // simplices.shape[1],
        found,
        weights,
        squares,
        threads,
    )
    places = np.einsum("ij,ijk->ik", weights, _corner_places(lattice, simplices)[found])
    periods = lattice.periods()
    for axis in np.flatnonzero(periods):
        along = places[:, axis] % periods[axis]
        places[:, axis] = np.where(along < periods[axis] * (1 - SEAM), along, 0.0)
    return Projected(places - _center(lattice), squares)


def places_at(lattice: Lattice) -> np.ndarray:
    """Places (n_units, q) of the nodes, in steps from the center."""
    return lattice.places() - _center(lattice)


def points_at(places: np.ndarray, nodes: np.ndarray, lattice: Lattice) -> np.ndarray:
    """Points of the surface at places; those beyond its border are moved to the border."""
    center = _center(lattice)
    far = 2 * (center + 1)
    inside = np.where(lattice.closed, places, np.clip(places, -far, far))
    units, weights = lattice.around(inside + center)
    found = np.zeros((len(places), nodes.shape[1]))
    for unit, weight in zip(units.T, weights.T, strict=True):
        found += weight[:, None] * nodes[unit]
    return found


# The energy of an elastic grid, and its minimum by splitting (Gorban & Zinovyev 2005).
#
#     U = 1/n sum_i |x_i - w_c(i)|^2 + l sum_edges |w_a - w_b|^2 + m sum_ribs |w_a - 2 w_b + w_c|^2
#
# The ribs of a rectangular grid are those of the paper, along its axes, and the twist of each cell,
# 2 |w_a - w_b - w_c + w_d|^2: else a grid that is twisted to a saddle would not be bent.
#
# One step: each row is hosted by its nearest node c(i); then W minimizes U for these hosts,
#
#     (diag(n_j / n) + l E + m R) W = S / n,     S_j = the sum of the rows that node j hosts.
#
# Neither half raises U.


STIFFEST = 1e8  # a coefficient beyond it would drown the rows in rounding
PROXIMITY = 1e-10  # of a node's mean weight: keeps nodes without rows and edges where they are
ROUNDING = 1e-14
TWIST = (np.sqrt(2), -np.sqrt(2), -np.sqrt(2), np.sqrt(2))  # f_uu^2 + 2 f_uv^2 + f_vv^2
HEXAGON = (1 / np.sqrt(3), 2 / 3)  # see `coefficients`


class Coefficients(NamedTuple):
    """The factors l of the edges and m of the ribs in U."""

    edges: float
    ribs: float


def coefficients(lattice: Lattice, stretching: float, bending: float) -> Coefficients:
    """l = stretching s^(2 - q), m = bending s^(4 - q) for s = (number of nodes)^(1/q).

    A closed axis goes forth and back: half of its nodes count. So U tends to |grad f|^2 and
    |f''|^2 integrated over a square of unit sides as the grid becomes finer. A hexagonal grid has a
    third direction and wider steps; its factors give the same energies of f = u and f = u^2.
    """
    q = len(lattice.sides)
    s = (lattice.n_units / 2 ** sum(lattice.closed)) ** (1 / q)
    shares = HEXAGON if lattice.kind == "hexagon" else (1.0, 1.0)
    with np.errstate(over="ignore"):
        l, m = stretching * s ** (2 - q) * shares[0], bending * s ** (4 - q) * shares[1]  # noqa: E741
    return Coefficients(min(l, STIFFEST), min(m, STIFFEST))


def differences(
    chains: np.ndarray, factors: tuple[float, ...], n_nodes: int
) -> scipy.sparse.csr_matrix:
    """One row for each edge or rib: its nodes times the factors."""
    rows = np.repeat(np.arange(len(chains)), len(factors))
    values = np.tile(np.array(factors), len(chains))
    shape = (len(chains), n_nodes)
    return scipy.sparse.csr_matrix((values, (rows, chains.ravel())), shape=shape)


class Hosts(NamedTuple):
    """The node of each row (n,), and of each node the share and the mean sum of its rows."""

    nearest: np.ndarray
    shares: np.ndarray  # n_j / n
    sums: np.ndarray  # S_j / n, of rows less the mean


class Softened(NamedTuple):
    """Nodes less the mean, their hosts, the energies at the start and after each step."""

    nodes: np.ndarray
    hosts: Hosts
    losses: list[float]


class ElasticGrid:
    """The energy of a grid among the rows of X, whose mean and variance are known."""

    def __init__(
        self, X: np.ndarray, mean: np.ndarray, variance: float, lattice: Lattice, threads: int
    ) -> None:
        self.X, self.mean, self.variance, self.threads = X, mean, variance, threads
        self.lattice = lattice
        self.edges = differences(lattice.edges(), (1.0, -1.0), lattice.n_units)
        ribs = differences(lattice.ribs(), (1.0, -2.0, 1.0), lattice.n_units)
        twists = differences(lattice.squares(), TWIST, lattice.n_units)
        self.ribs = scipy.sparse.vstack([ribs, twists]).tocsr()
        self.E = (self.edges.T @ self.edges).tocsr()
        self.R = (self.ribs.T @ self.ribs).tocsr()
        diagonal = scipy.sparse.identity(lattice.n_units, format="csr")
        self.plan = plan_skyline((abs(self.E) + abs(self.R) + diagonal).tocsr())

    def hosts(self, W: np.ndarray) -> Hosts:
        """The first half of a step: the nearest node of each row."""
        n = len(self.X)
        nearest = nearest_units(self.X, W + self.mean, self.threads)[:, 0]
        counts, sums = unit_sums(self.X, nearest, len(W))
        return Hosts(nearest, counts / n, (sums - counts[:, None] * self.mean) / n)

    def relax(self, W: np.ndarray, hosts: Hosts, soft: Coefficients) -> np.ndarray:
        """The second half: W + d, where d solves the equations for what is left of them at W.

        A slight pull to W makes the matrix definite where rows do not; it does not raise U either.
        """
        A = soft.edges * self.E + soft.ribs * self.R + scipy.sparse.diags(hosts.shares)
        A = A.tocsr()
        pull = PROXIMITY / len(W) + ROUNDING * float(A.diagonal().max())
        with limit_blas(1):
            factors = SkylineCholesky(A, self.plan, pull, self.threads)
            return W + factors.solve(hosts.sums - A @ W)

    def energy(self, W: np.ndarray, hosts: Hosts, soft: Coefficients) -> np.ndarray:
        """The three terms of U: approximation, stretching, bending."""
        pulls = np.sum(hosts.shares[:, None] * W**2) - 2 * np.sum(hosts.sums * W)
        stretched, bent = np.sum((self.edges @ W) ** 2), np.sum((self.ribs @ W) ** 2)
        near = max(0.0, self.variance + float(pulls))
        return np.array([near, soft.edges * stretched, soft.ribs * bent])

    def soften(
        self, W: np.ndarray, epochs: list[Coefficients], max_iter: int, tol: float, run: FitContext
    ) -> Softened:
        """Steps with each of the coefficients, stiff ones first."""
        hosts, losses = self.hosts(W), [0.0]
        losses[0] = float(self.energy(W, hosts, epochs[0]).sum())
        places = self.lattice.places()
        for epoch, soft in enumerate(epochs):
            left = max_iter + 1 - len(losses)
            before = float(self.energy(W, hosts, soft).sum())
            for _ in range(-(-left // (len(epochs) - epoch))):
                W, last = self.relax(W, hosts, soft), hosts
                hosts = self.hosts(W)
                after = float(self.energy(W, hosts, soft).sum())
                losses.append(after)
                shown = places[hosts.nearest]
                if run.monitor.iteration(len(losses) - 1, shown, after, total=max_iter):
                    return Softened(W, hosts, losses)
                same = np.array_equal(hosts.nearest, last.nearest)
                if same or before - after <= tol * before:
                    break
                before = after
        return Softened(W, hosts, losses)
