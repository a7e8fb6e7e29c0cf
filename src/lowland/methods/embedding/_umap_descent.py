"""The forces of UMAP: how neighbors attract and all rows repel each other in the map.

With u the squared distance of two points and phi = 1 / (1 + a u^b) their membership,

    attraction   A(u) = 2 a b u^(b-1) / (1 + a u^b)             potential 2 log(1 + a u^b) (*)
    repulsion    R(u) = 2 b / ((s + u) (1 + a u^b))

are the factors of y_i - y_j in the forces. Both come from the fuzzy cross entropy, whose repulsion
is infinite at u = 0. The reference implementation takes s = 0.001 and cuts each coordinate of a
force at 4. Here s = (b / 4)^2, so that the force itself is never longer than 4: it is smooth, and
a map may be turned. The potential K of the repulsion, dK/du = -R, has no closed form and is
tabulated.

(*) of which, as for all potentials here, the force is half the gradient.

Reference: McInnes, Healy & Melville (2018), UMAP, arXiv:1802.03426.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._engines.embedding import initial_layout
from lowland._engines.embedding.descent import EdgeOrder, Forces, Stage
from lowland._engines.embedding.particle_mesh import ParticleMesh, RadialKernel, grid_nodes
from lowland.methods.embedding._fuzzy_graph import FuzzyGraph

LONGEST = 4.0  # force between two points
STEEPEST = 3.0  # of b: the kernels compute powers of 1e12 in float32
PITCH = 0.6  # distance of grid nodes in units of sqrt(s): an error of the force below 1 %
FIRST, LAST, PER_OCTAVE = -32, 40, 32  # the table of K: powers of two of u
FINER = 32  # steps of the integration between two entries


def curve_parameters(spread: float, min_dist: float) -> tuple[float, float]:
    """The a and b for which 1 / (1 + a x^2b) is nearest to the wanted curve.

    That is 1 up to min_dist, and exp(-(x - min_dist) / spread) beyond. Least squares over 300
    distances up to 3 spreads, as in the reference implementation.
    """
    import scipy.optimize  # here: importing it takes longer than small maps take

    x = np.linspace(0, 3, 300)  # in units of the spread, for which a is a spread^2b
    target = np.where(x < min_dist / spread, 1.0, np.exp(-(x - min_dist / spread)))

    def curve(x: np.ndarray, a: float, b: float) -> np.ndarray:
        return 1 / (1 + a * x ** (2 * b))

    try:
        with np.errstate(all="ignore"):  # powers of 0 with exponents that are tried and left
            (a, b), _ = scipy.optimize.curve_fit(curve, x, target)
            a /= spread ** (2 * b)
    except RuntimeError:
        a = b = math.nan
    if not (a > 0 and 0 < b <= STEEPEST):
        raise ParameterError(
            f"min_dist={min_dist:g} with spread={spread:g} gives no curve 1 / (1 + a x^2b) with b "
            f"up to {STEEPEST:g}; take a smaller min_dist or a larger spread, or give a and b."
        )
    return float(a), float(b)


class UmapLaw(NamedTuple):
    """a, b, and the potential K of the repulsion at u = 2^(FIRST + e / PER_OCTAVE)."""

    a: float
    b: float
    heights: np.ndarray

    def repel(
        self,
        points: np.ndarray,
        Y: np.ndarray,
        forces: np.ndarray,
        threads: int,
        potential: np.ndarray | None = None,
        *,
        same: bool = True,
    ) -> None:
        """Sums over all pairs: R (z_i - y_j) into ``forces`` and K into ``potential``. O(m n d)."""
        _native.fuzzy_repel(points, Y, same, *self._kernel(), potential, forces, threads)

    def repel_drawn(
        self,
        Y: np.ndarray,
        seed: int,
        draws: int,
        forces: np.ndarray,
        threads: int,
        potential: np.ndarray | None = None,
    ) -> None:
        """As :meth:`repel` of Y itself, estimated from so many drawn points each. O(n draws d)."""
        _native.fuzzy_sample(Y, seed, draws, *self._kernel(), potential, forces, threads)

    def _kernel(self) -> tuple[Any, ...]:
        return self.a, self.b, softness(self.b), self.heights, FIRST, PER_OCTAVE

    def radial(self) -> RadialKernel:
        """K for the particle mesh."""
        logs, heights = _potential(self.a, self.b)

        def values(squares: np.ndarray) -> np.ndarray:
            places = np.log2(np.maximum(squares, 2.0**FIRST))
            return np.interp(places, logs, heights)

        return RadialKernel(values, lambda spans: PITCH * math.sqrt(softness(self.b)))


def softness(b: float) -> float:
    """The s with which r R(r^2) <= 2 b r / (s + r^2) <= b / sqrt(s) is at most LONGEST."""
    return (b / LONGEST) ** 2


def umap_law(a: float, b: float) -> UmapLaw:
    """The law with its table."""
    _, heights = _potential(a, b)
    return UmapLaw(float(a), float(b), heights[::FINER].astype(np.float32))


def _potential(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """K(u) = int_u^inf R(v) dv, at evenly spaced log2 u; by Simpson's rule in log v."""
    logs = np.linspace(FIRST, LAST, (LAST - FIRST) * PER_OCTAVE * FINER + 1)

    def density(logs: np.ndarray) -> np.ndarray:  # R v dlog2(v)
        v = 2.0**logs
        return 2 * b / ((softness(b) + v) * (1 + a * v**b)) * v * math.log(2)

    step = logs[1] - logs[0]
    ends, middles = density(logs), density(logs[:-1] + step / 2)
    parts = step / 6 * (ends[:-1] + 4 * middles + ends[1:])
    tail = 2 / a * 2.0 ** (-b * LAST)  # beyond, R is 2 b / (a v^(1+b))
    return logs, np.append(np.cumsum(parts[::-1])[::-1] + tail, tail)


# densMAP: the local densities of the data in the map (Narayan, Berger & Cho 2021).
#
#     R_i = log(sum_j mu_ij d_ij^2 / sum_j mu_ij)              in the data, standardized
#     r_i = log(e + sum_j phi_ij u_ij / sum_j phi_ij)          in the map
#     objective: the fuzzy cross entropy - lambda M Corr(R, r),        M = sum_i deg_i / 2
#
# The correlation is smoothed by a variance that is added to that of r, as in the reference
# implementation. The expected step of the reference implementation is twice the gradient, since an
# edge moves both of its rows and is stored in both directions. Divided by 2 deg_i like the other
# forces, the force on row i is lambda M / deg_i dCorr/dy_i, computed exactly.


LEAST = 1e-8
SHIFT = 0.1  # added to the variance of r


def data_radii(graph: FuzzyGraph, squares: np.ndarray) -> np.ndarray:
    """The R_i, not standardized, for squared distances of the stored pairs of the graph."""
    sums = np.concatenate([[0.0], np.cumsum(graph.weights * squares, dtype=np.float64)])
    weighted = np.diff(sums[graph.indptr])
    degrees = graph.degrees()
    mean = np.divide(weighted, degrees, out=np.zeros_like(weighted), where=degrees > 0)
    return np.log(LEAST + np.maximum(mean, 0))


class DensityTerm:
    """The force of -lambda M Corr(R, r) on each row, divided by deg_i.

    Parameters
    ----------
    graph : FuzzyGraph
        The mu_ij.
    R : ndarray of shape (n,)
        Radii in the data.
    strength : float
        lambda.
    a, b : float
        Of the memberships in the map.
    """

    def __init__(
        self, graph: FuzzyGraph, R: np.ndarray, strength: float, a: float, b: float, threads: int
    ) -> None:
        self.edges, self.a, self.b, self.threads = graph, a, b, threads
        self.R = (R - R.mean()) / max(float(R.std()), LEAST)
        degrees = graph.degrees()
        scale = strength * degrees.sum() / 2
        self.per_row = np.divide(scale, degrees, out=np.zeros(graph.n), where=degrees > 0)
        self._sums = np.empty((graph.n, 2))

    def radii(self, Y: np.ndarray) -> np.ndarray:
        """The r_i at the map Y."""
        e = self.edges
        _native.map_radii(
            e.indptr, e.indices, e.weights, Y, self.a, self.b, self._sums, self.threads
        )
        total, weighted = self._sums[:, 0], self._sums[:, 1]
        mean = np.divide(weighted, total, out=np.zeros(len(Y)), where=total > 0)
        return np.log(LEAST + mean)

    def arrange(self, order: np.ndarray, edges: FuzzyGraph) -> None:
        """Follow a new order of the points, whose edges are given; their weights are not used."""
        self.edges, self.R, self.per_row = edges, self.R[order], self.per_row[order]

    def add_to(self, gradient: np.ndarray, Y: np.ndarray) -> None:
        """Subtract the force from ``gradient`` (n, d), in place."""
        r = self.radii(Y)
        n, spread = len(r), float(np.sqrt(r.var() + SHIFT))
        centered = r - r.mean()
        # dCorr/dr_i, then by the chain rule through the logarithm
        slopes = (self.R - (self.R @ centered) / n * centered / spread**2) / (n * spread)
        slopes -= slopes.mean()
        slopes /= np.exp(r)
        force, e = np.empty_like(Y), self.edges
        _native.radius_forces(
            e.indptr, e.indices, e.weights, Y, self.a, self.b, self._sums, -slopes, force,
            self.threads,
        )  # fmt: skip
        gradient -= force * self.per_row[:, None].astype(Y.dtype)


# Where the descent of UMAP begins: eigenvectors of the fuzzy graph, about ten units wide.
#
# If the graph has several components, each gets the layout of its own eigenvectors, and they are
# put where the principal components of their rows are; without rows, on a circle.


SPAN = 10.0  # of a start
NARROW, WIDE = 1.0, 100.0  # spans of a given start that are left as they are
NOISE = 1e-4
FEW_ROWS = 50  # smaller components start as a cloud: the descent finds their layout at once


def starting_layout(
    init: Any, rows: Any, graph: FuzzyGraph, d: int, run: FitContext
) -> tuple[np.ndarray, int]:
    """The start (n, d), float32, and the number of components of the graph.

    ``rows`` are rows of features, or None if there are none.
    """
    from lowland._engines.graphs.components import connected_components  # imports scipy

    W = graph.to_csr()
    n_components, labels = connected_components(W)
    if not isinstance(init, str):
        Y = initial_layout.given_layout(init, graph.n, d)
        span = float(np.ptp(Y, axis=0).max())
        if not NARROW <= span <= WIDE:
            Y = _spanned(Y)
    elif init == "random":
        Y = SPAN * (run.rng.random((graph.n, d)) - 0.5)
    elif init == "pca" and rows is not None:
        Y = _spanned(initial_layout.principal_layout(rows, d, run))
    elif n_components == 1:
        Y = initial_layout.spectral_layout(W, d, run)
        Y = SPAN * Y / np.maximum(np.ptp(Y, axis=0), 1e-30)
    else:
        Y = _by_components(W, labels, rows, d, run)
    Y = Y - Y.mean(axis=0)
    return (Y + NOISE * run.rng.standard_normal(Y.shape)).astype(np.float32), n_components


def _spanned(Y: np.ndarray) -> np.ndarray:
    """Y with a largest span of ``SPAN``."""
    return Y * (SPAN / max(float(np.ptp(Y, axis=0).max()), 1e-300))


def _by_components(W: Any, labels: np.ndarray, rows: Any, d: int, run: FitContext) -> np.ndarray:
    """Each component around its center, as large as its share of the rows."""
    n, sizes = len(labels), np.bincount(labels)
    if rows is not None:
        places = _spanned(initial_layout.principal_layout(rows, d, run))
        sums = [np.bincount(labels, places[:, k]) for k in range(d)]
        centers = np.stack(sums, axis=1) / sizes[:, None]
    else:
        turns = 2 * np.pi * np.arange(len(sizes)) / len(sizes)
        centers = np.zeros((len(sizes), d))
        centers[:, 0] = SPAN / 2 * np.cos(turns)
        if d > 1:
            centers[:, 1] = SPAN / 2 * np.sin(turns)
    Y = centers[labels]
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    for inside in members:
        width = SPAN * (len(inside) / n) ** 0.5
        if len(inside) < max(FEW_ROWS, d + 3):
            Y[inside] += 0.1 * width * run.rng.standard_normal((len(inside), d))
            continue
        own = initial_layout.spectral_layout(W[inside][:, inside], d, run)
        own -= own.mean(axis=0)
        Y[inside] += width * own / max(float(np.ptp(own, axis=0).max()), 1e-300)
    return Y


# The stages of UMAP's descent: how strong the attraction is, and how long the steps are.


# Shares of the steps with an exaggerated attraction: the factor, the momentum, and the step length.
# As in t-SNE, exaggeration first lets clusters find each other; the loss ends lower.
STAGES = ((0.2, 4.0, 0.8, 0.1), (0.1, 2.0, 0.8, 0.2), (0.7, 1.0, 0.9, 0.2))
# Two forces need a calm end of the descent, with short steps that fall to 0. That of the densities
# is stiff in dense clusters: with the momentum of the other steps these swing and grow. That of
# drawn pairs is noisy: rows would stay as far from their places as a step is long.
CALM_SHARE, CALM_MOMENTUM, CALM_RATE, CALM_PARTS = 0.3, 0.5, 0.1, 10


def calm_start(steps: int) -> int:
    """The first step of the calm end, from which on densities count."""
    return round((1 - CALM_SHARE) * steps)


def umap_stages(steps: int, given: bool, calm: bool) -> list[Stage]:
    """The stages of so many steps; from a given map without exaggeration, which would undo it."""
    plain = calm_start(steps) if calm else steps
    first, second = (0, 0) if given else (round(share * steps) for share, *_ in STAGES[:2])
    counts = (first, second, plain - first - second)
    stages = [
        Stage(count, factor, momentum, False, rate)
        for count, (_, factor, momentum, rate) in zip(counts, STAGES, strict=True)
    ]
    parts = CALM_PARTS if calm else 0
    ends = [plain + round((part + 1) / parts * (steps - plain)) for part in range(parts)]
    for part, (start, end) in enumerate(zip([plain, *ends], ends, strict=False)):
        rate = CALM_RATE * (1 - part / parts)
        stages.append(Stage(end - start, 1.0, CALM_MOMENTUM, False, rate))
    return stages


# The objective of UMAP for all rows at once, and its forces.
#
# The reference implementation draws edges and pairs. Its expected step moves row i by
#
#     2 sum_j mu_ij A(u_ij) (y_j - y_i) + (m deg_i / n) sum_j R(u_ij) (y_i - y_j)
#
# with deg_i = sum_j mu_ij and m the ``negative_sample_rate`` (Damrich & Hamprecht 2021). Divided by
# 2 deg_i, every row has the same scale, and rows of many edges cannot jump:
#
#     force_i = -1/2 d J_i / d y_i,
#     J_i = 2 sum_j p_ij log(1 + a u_ij^b) + m g / 2n sum_j K(u_ij),      p_ij = mu_ij / deg_i.
#
# g is the ``repulsion_strength``. A map is final when each row is at a minimum of its J_i while the
# others stay where they are, which is also where a new row is placed. The loss is the mean of J_i.
#
# Reference: Damrich & Hamprecht (2021), On UMAP's true loss function, NeurIPS 34.


# Nanoseconds, measured with two threads: a pair of points in up to three dimensions, how many times
# as long it takes in more, a node of the padded grid by the dimension of the map, a point on it.
PAIR, MANY, NODE, POINT = 0.7, 4.4, {1: 2.0, 2: 2.0, 3: 4.2}, 30.0
EXACT = {True: 1e9, False: 2e6}  # up to here all pairs, where a mesh is possible and where not
MOST_NODES = 2**25
DRAWS = 4  # drawn rows per negative sample of the reference implementation: less noise per step


def row_normalized(graph: FuzzyGraph) -> FuzzyGraph:
    """p_ij = mu_ij / deg_i."""
    degrees = graph.degrees()
    scale = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    weights = graph.weights * np.repeat(scale, np.diff(graph.indptr)).astype(np.float32)
    return graph._replace(weights=weights)


class UmapForces:
    """Forces at a map. The arrays it returns are overwritten by the next call.

    Parameters
    ----------
    P : FuzzyGraph
        The p_ij.
    law : UmapLaw
    rate : float
        m g.
    seed : int
        Of the draws in more than three dimensions.
    threads : int
        The result does not depend on it.
    """

    def __init__(self, P: FuzzyGraph, law: UmapLaw, rate: float, seed: int, threads: int) -> None:
        self.P, self.law, self.rate, self.seed, self.threads = P, law, rate, seed, threads
        self.kernel = law.radial()
        self._mesh = ParticleMesh(self.kernel, threads, "take fewer dimensions or rows")
        self._sums, self._potential = np.empty((P.n, 2)), np.empty(P.n)
        self._buffers: tuple[np.ndarray, np.ndarray] | None = None
        self._turn = 0
        self._order = EdgeOrder(threads)
        self.density: DensityTerm | None = None  # densMAP, from the step density_from on
        self.density_from = 0

    @property
    def total(self) -> float:
        """What the summed repulsion is divided by: 2 n / m g."""
        return 2 * self.P.n / max(self.rate, 1e-30)

    def __call__(self, Y: np.ndarray, with_loss: bool = False) -> Forces:
        """Pull and push at the map Y (float32); the gradient of J_i / 2 is pull - push / total."""
        if self._buffers is None or self._buffers[0].shape != Y.shape:
            self._buffers = np.empty_like(Y), np.empty_like(Y)
        pull, push = self._buffers
        P, sums = self.P, self._sums if with_loss else None
        _native.attract(
            P.indptr, P.indices, P.weights, Y, Y, 0.0, pull, sums, self.threads,
            self.law.a, self.law.b,
        )  # fmt: skip
        if self.density is not None and self._turn >= self.density_from:
            self.density.add_to(pull, Y)
        self._turn += 1
        self.repel(Y, push, self._turn, with_loss)
        loss = None
        if with_loss:
            loss = float(self._sums[:, 0].mean()) + float(self._potential.mean()) / self.total
        return Forces(pull, push, self.total, loss)

    def repel(self, Y: np.ndarray, push: np.ndarray, turn: int, with_potential: bool) -> None:
        """The summed repulsion by the cheapest of three ways."""
        n, d = Y.shape
        potential = self._potential if with_potential else None
        flat = d <= 3
        pairs = PAIR * n * n * (1 if flat else MANY)
        mesh = math.inf
        if flat and pairs > 1e5:
            nodes = grid_nodes(Y, self.kernel)
            mesh = NODE[d] * nodes + POINT * n if nodes <= MOST_NODES else math.inf
        if mesh < pairs:
            self._mesh.field(Y, turn=turn).at(Y, self._potential, push, self.threads)
        elif pairs < EXACT[flat] or n < 2:
            self.law.repel(Y, Y, push, self.threads, potential)
        else:
            draws = max(1, round(DRAWS * max(1.0, self.rate)))
            seed = self.seed + turn
            self.law.repel_drawn(Y, seed, draws, push, self.threads, potential)

    def loss(self, Y: np.ndarray) -> float:
        """The mean of J_i."""
        loss = self(Y, with_loss=True).loss
        assert loss is not None
        return loss

    def arrange(self, Y: np.ndarray) -> np.ndarray:
        """Reorder the points so that neighbors in the map are near in memory; returns the order."""
        order, *edges = self._order.follow(Y, *self.P)
        self.P = FuzzyGraph(*edges)
        if self.density is not None:
            self.density.arrange(order, self.P)
        return order
