"""Elastic maps: principal manifolds by a grid of springs (Gorban & Zinovyev 2005)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from lowland._base.constraints import Function, Integer, Null, OneOf, Real, Several
from lowland._base.context import FitContext
from lowland._base.models.checks import at_least, count
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.grids.lattice import Net
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland.methods.topographic import _elastic_surface as surfaces
from lowland.methods.topographic._base import TopographicReducer

MOST_AXES = 3
SPRINGS = {1: (1e-4, 1e-6), 2: (1e-3, 1e-4)}  # stretching and bending by the number of axes


class ElasticMap(TopographicReducer):
    """U = 1/n sum |x_i - w_c(i)|^2 + l sum_edges |w_a - w_b|^2 + m sum_ribs |w_a - 2 w_b + w_c|^2.

    A grid of nodes w is laid through the data: rows pull at their nearest nodes c(i), and springs
    along edges and ribs keep the grid smooth. It starts on the principal plane and is stiff; then
    it is softened, and bends toward the rows. The map is where the nearest point of the surface
    between the nodes lies in the grid; ``inverse_transform`` is that point. Use it to see data near
    a bent curve or sheet, and to compare with PCA: ``surface_variance_ratio_`` shows how much more
    of the variance the bent surface explains than the plane. Do not use it for rolled-up surfaces,
    through which the plane cuts. Cost: O(n m p) per step for m nodes.

    Parameters
    ----------
    n_components : int, default=2
        Number q of axes of the grid, 1 to 3.
    grid : {"rectangle", "hexagon", "ring", "cylinder"}, default="rectangle"
        Kind of the grid. "rectangle" is a chain, a rectangular or a cubic grid of 1 to 3 axes;
        "hexagon" has two axes and six neighbors per node; "ring" is a closed chain; "cylinder" has
        two axes, the first of which is closed. Coordinates along a closed axis end where they
        begin.
    n_nodes : int, list of int or "auto", default="auto"
        Number of all nodes, or a list: the number along each axis. The sides of the grid are
        otherwise as the deviations along the principal axes, at most 8 : 1. "auto" is 50, 400
        and 1 000 nodes for 1, 2 and 3 axes. An axis along which the data do not vary has one node,
        and zeros in the map.
    stretching : float or "auto", default="auto"
        Weight of the stretched edges. l = stretching s^(2 - q), where s^q is the number of nodes
        (half of it with a closed axis, which goes forth and back). "auto" is 0.0001 for one axis,
        which is longer than the side of a sheet, and 0.001 for more.
    bending : float or "auto", default="auto"
        Weight of the bent ribs. m = bending s^(4 - q). A large value gives the plane of PCA, and 0
        for both gives k-means. "auto" is 0.000001 for one axis and 0.0001 for more.
    n_epochs : int, default=5
        Number of epochs. From one to the next both coefficients fall by the same factor.
    initial_stiffness : float, default=1000
        How many times stiffer the grid is in the first epoch than in the last one. Not used with
        one epoch.
    extrapolate : int, default=4
        Number of layers of nodes, up to 20, that continue the grid beyond its border. Rows beyond
        them are placed on their border.
    max_iter : int, default=200
        Maximum number of steps, for all epochs together.
    tol : float, default=0.001
        An epoch ends when the energy falls by less than this share of itself per step.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Places of the rows on the surface: steps from the center of the grid, times the lengths of
        the steps.
    shape_ : ndarray of shape (n_components,)
        Number of nodes along each axis.
    nodes_ : ndarray of shape (n_nodes, n_features)
        Nodes of the grid; their numbers count along the last axis first.
    node_places_ : ndarray of shape (n_nodes, n_components)
        Places of the nodes in the map.
    hits_ : ndarray of shape (n_nodes,)
        Number of rows whose nearest node each one is.
    surface_ : ndarray of shape (n_surface, n_features)
        Nodes of the surface that rows are projected on: the grid and its extrapolated border.
    step_lengths_ : ndarray of shape (n_components,)
        Mean length of the edges, in the order of the axes; of all edges of a hexagonal grid.
    energy_ : ndarray of shape (3,)
        The terms of U at the end: approximation, stretching, bending.
    surface_variance_ratio_ : float
        Share of the variance that the surface explains: 1 - mean |x - its projection|^2 / variance.
    plane_variance_ratio_ : float
        The same of the plane of PCA with as many axes.
    loss_history_ : ndarray of shape (n_losses,)
        U at the start and after each step, with the coefficients at that time.

    Notes
    -----
    The powers of s make stretching and bending integrals of |grad f|^2 and |f''|^2 over a unit
    square, so that the parameters mean the same for any number of nodes. The ribs of a rectangular
    grid run along its axes and do not feel a twist f = uv; with them alone, a very stiff grid is a
    saddle. So the twist of each cell is added, 2 |w_a - w_b - w_c + w_d|^2. With it the mean
    continuity of seven tables rose from 0.934 to 0.950 (at bending = stretching = 1e-4). A
    hexagonal grid has ribs in three directions and needs none; its l and m are multiplied by
    1/sqrt(3) and 2/3 for equal energies.

    Each step assigns rows to their nearest nodes and solves one sparse system; neither raises U. A
    pull of 1e-10 to the last place keeps nodes without rows and springs. Coefficients beyond 1e8
    act like 1e8. A ring starts as an ellipse in the principal plane, a cylinder around the two of
    the first three axes that are most alike.

    Rows are projected on the simplices (segments, triangles, tetrahedra) at their 4 nearest nodes,
    and then downhill along the surface. Of a folded surface this may miss the nearest fold. The
    grid is continued linearly beyond its border: without that half of the digits lie on the border
    of the map.

    Stretching, bending and the softening were chosen by the variance that is explained, and
    neighbors that are kept, of held-out rows (iris, digits, oil flow, a swiss roll, an S-curve, a
    sphere, normal rows).

    References
    ----------
    Gorban & Zinovyev (2005), Elastic principal graphs and manifolds and their practical
    applications, Computing 75, 359-379.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> bent = ElasticMap()
    >>> bent.fit_transform(iris().X).shape
    (150, 2)
    >>> bent.surface_variance_ratio_ > bent.plane_variance_ratio_
    True
    """

    grid: Literal["rectangle", "hexagon", "ring", "cylinder"] = param(
        OneOf("rectangle", "hexagon", "ring", "cylinder"), default="rectangle"
    )
    n_nodes: Any = param(OneOf("auto") | Integer(2) | Several(Integer(2)), default="auto")
    stretching: Any = param(OneOf("auto") | Real(0, closed="left"), default="auto")
    bending: Any = param(OneOf("auto") | Real(0, closed="left"), default="auto")
    n_epochs: int = param(Integer(1, 1000), default=5)
    initial_stiffness: float = param(Real(1, closed="left"), default=1000.0)
    extrapolate: int = param(Integer(0, 20), default=4)
    max_iter: int = param(Integer(1), default=200)
    tol: float = param(Real(0, closed="left"), default=1e-3)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    shape_: np.ndarray = fitted("n_components", type=int, meaning=count(1))
    nodes_: np.ndarray = fitted("n_nodes", "n_features")
    node_places_: np.ndarray = fitted("n_nodes", "n_components")
    hits_: np.ndarray = fitted("n_nodes", type=int, meaning=count(0, "n_samples"))
    surface_: np.ndarray = fitted("n_surface", "n_features")
    step_lengths_: np.ndarray = fitted("n_components", meaning=at_least(0))
    energy_: np.ndarray = fitted("3")
    surface_variance_ratio_: float = fitted()
    plane_variance_ratio_: float = fitted()
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    card = Card(
        keeps="which rows are near, along a smooth surface through the data",
        use="to see the shape of data that lie near a bent curve, sheet or solid",
        avoid="for rolled-up surfaces, through which a start on the plane cuts",
        cost="O(n m p) time per step for m nodes, O(n + m p) memory",
    )
    reference = "Gorban & Zinovyev (2005)"
    aliases = ("elmap", "principal_manifold")
    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="The axes run along the grid, which started on the principal axes and was bent.",
        distances="Rows that are near in the map are near on the surface. Distances along the grid "
        "are those of the data on average; where the grid is stretched, they are larger.",
        gaps="A gap in the map is a gap in the data, unless the grid is stretched there.",
        sizes="Sizes are those of the data where the grid is evenly stretched.",
        scale="The axes have the unit of the columns.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: some 28 steps of 400 nodes."""
        pair = 4e-11 * (p + 15) if p <= 1000 else 1.2e-10 * p
        steps = Estimate(28 * n * 400 * pair, 150 * n + 40_000 * p)
        return Estimate(0.1, 0) + principal_axes_cost(n, p, 2) + steps

    @classmethod
    def most_components(cls, n: int, p: int, n_classes: int = 0) -> int:
        """See :meth:`Reducer.most_components`: a grid has at most three axes."""
        return min(super().most_components(n, p, n_classes), MOST_AXES)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the nodes are those of a grid of this shape."""
        shape = [int(side) for side in self.shape_]
        if any(side == 2 for side in shape[: surfaces.CLOSED.get(self.grid, 0)]):
            return f"'shape_' {shape}, but a closed axis has at least {surfaces.FEWEST} nodes"
        if int(np.prod([float(side) for side in shape])) != len(self.nodes_):
            return f"{len(self.nodes_)} 'nodes_', but 'shape_' is {shape}"
        if len(self.surface_) != (self._lattice(wide=True).n_units if max(shape) > 1 else 1):
            return f"{len(self.surface_)} nodes in 'surface_', but 'shape_' is {shape}"
        return super().inconsistency()

    def net(self) -> Net:
        """See :meth:`TopographicReducer.net`: the nodes, without those beyond the border."""
        self._require_fitted()
        return Net(self.nodes_, self._lattice().edges())

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        q = self._check_components(*X.shape)
        X = np.ascontiguousarray(as_dense(X, type(self).__name__))
        with limit_blas(1):
            first = surfaces.start(X, self.grid, self.n_nodes, q, run)
        self.shape_ = np.array(first.shape)
        if len(first.nodes) > 1:
            self._bend(X, first, run)
        else:
            self._keep_point(X, first)
        self.plane_variance_ratio_ = first.plane_ratio
        with run.monitor.phase("projecting rows"):
            self.embedding_, squares = self._projected(X, run)
        left = float(np.mean(squares)) / first.variance if first.variance > 0 else 0.0
        self.surface_variance_ratio_ = 1 - left
        return self.embedding_.copy()

    def _bend(self, X: np.ndarray, first: surfaces.Start, run: FitContext) -> None:
        lattice, wide = self._lattice(), self._lattice(wide=True)
        grid = surfaces.ElasticGrid(X, first.mean, first.variance, lattice, run.threads)
        usual, given = SPRINGS[min(2, len(self.shape_))], (self.stretching, self.bending)
        springs = [
            auto if isinstance(value, str) else float(value)
            for value, auto in zip(given, usual, strict=True)
        ]
        softening = np.geomspace(float(self.initial_stiffness), 1.0, int(self.n_epochs))
        softening[-1] = 1.0
        with np.errstate(over="ignore"):
            pairs = np.outer(softening, springs).tolist()
            epochs = [surfaces.coefficients(lattice, *pair) for pair in pairs]
        found = grid.soften(first.nodes, epochs, int(self.max_iter), float(self.tol), run)
        self.nodes_ = found.nodes + first.mean
        self.surface_ = surfaces.extrapolated(lattice, found.nodes, wide) + first.mean
        self.hits_ = np.bincount(found.nearest, minlength=len(found.nodes))
        self.energy_ = found.energy
        self.step_lengths_ = self._padded(surfaces.step_lengths(lattice, found.nodes)[None])[0]
        self.node_places_ = self._padded(surfaces.places_at(lattice)) * self.step_lengths_
        self.loss_history_, self.n_iter_ = np.array(found.losses), len(found.losses) - 1

    def _keep_point(self, X: np.ndarray, first: surfaces.Start) -> None:
        """Rows that are all equal: one node, and nothing to optimize."""
        self.nodes_ = self.surface_ = first.mean[None].astype(np.float64)
        q = len(self.shape_)
        self.node_places_, self.step_lengths_ = np.zeros((1, q)), np.zeros(q)
        self.hits_, self.energy_ = np.array([len(X)]), np.array([first.variance, 0.0, 0.0])
        self.loss_history_, self.n_iter_ = np.array([first.variance]), 0

    # --- rows to the surface and back -----------------------------------------------------------

    def _lattice(self, wide: bool = False) -> Any:
        lattice = surfaces.lattice_of(self.grid, tuple(int(side) for side in self.shape_))
        return surfaces.extended(lattice, int(self.extrapolate)) if wide else lattice

    def _padded(self, along: np.ndarray) -> np.ndarray:
        """Columns of the axes of the lattice, and zeros for axes with one node."""
        full = np.zeros((len(along), len(self.shape_)))
        full[:, self.shape_ > 1] = along
        return full

    def _projected(self, X: np.ndarray, run: FitContext) -> tuple[np.ndarray, np.ndarray]:
        """Places in the unit of the data, and squared distances from the surface."""
        if len(self.surface_) == 1:
            gaps = X - self.surface_
            return np.zeros((len(X), len(self.shape_)), X.dtype), np.sum(gaps**2, axis=1)
        lattice = self._lattice(wide=True)
        places, squares = surfaces.project(X, self.surface_, lattice, run.threads)
        return (self._padded(places) * self.step_lengths_).astype(X.dtype), squares

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X = np.ascontiguousarray(as_dense(X, type(self).__name__))
        return self._projected(X, run)[0]

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        if len(self.surface_) == 1:
            return np.repeat(self.surface_, len(Y), axis=0).astype(Y.dtype)
        lengths = np.where(self.step_lengths_ > 0, self.step_lengths_, np.inf)
        steps = (Y.astype(np.float64) / lengths)[:, self.shape_ > 1]
        return surfaces.points_at(steps, self.surface_, self._lattice(wide=True)).astype(Y.dtype)
