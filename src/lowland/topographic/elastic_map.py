"""Elastic maps: principal manifolds by a grid of springs (Gorban & Zinovyev 2005)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from lowland._core.base import Invertible
from lowland._core.card import Card, Estimate
from lowland._core.constraints import Function, Integer, Null, OneOf, Real, Several
from lowland._core.context import FitContext
from lowland._core.meanings.contents import Interval, at_least, count, share
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._core.threads import limit_blas
from lowland._core.traits import Reading
from lowland._core.units import unit_powers
from lowland._core.validation import as_dense
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland.topographic._elastic_energy import Coefficients, ElasticGrid, Softened, coefficients
from lowland.topographic._elastic_grid import CLOSED, FEWEST, Start, lattice_of, start
from lowland.topographic._elastic_surface import (
    extended,
    extrapolated,
    places_at,
    points_at,
    project,
    step_lengths,
)

__all__ = ["ElasticMap"]

MOST_AXES = 3


class ElasticMap(Invertible):
    """min 1/n sum |x_i - w_c(i)|^2 + l sum_edges |w_a - w_b|^2 + m sum_ribs |w_a - 2 w_b + w_c|^2.

    A grid of nodes w is laid through the data. Rows pull at their nearest nodes; springs along the
    edges and ribs keep the grid smooth. It starts on the principal plane, stiff, and is softened
    step by step. The map is where the nearest point of the surface between the nodes lies in the
    grid.

    Parameters
    ----------
    n_components : int, default=2
        Number of axes of the grid, 1 to 3.
    """

    grid: Literal["rectangle", "hexagon", "ring", "cylinder"] = param(
        OneOf("rectangle", "hexagon", "ring", "cylinder"), default="rectangle"
    )
    n_nodes: Any = param(OneOf("auto") | Integer(2) | Several(Integer(2)), default="auto")
    stretching: float = param(Real(0, closed="left"), default=1e-3)
    bending: float = param(Real(0, closed="left"), default=1e-4)
    n_epochs: int = param(Integer(1), default=5)
    initial_stiffness: float = param(Real(1, closed="left"), default=1000.0)
    extrapolate: int = param(Integer(0, 100), default=4)
    max_iter: int = param(Integer(1), default=200)
    tol: float = param(Real(0, closed="left"), default=1e-3)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components", unit="d")
    shape_: np.ndarray = fitted("n_components", type=int, meaning=count(1))
    nodes_: np.ndarray = fitted("n_nodes", "n_features", unit="x")
    node_places_: np.ndarray = fitted("n_nodes", "n_components", unit="d")
    hits_: np.ndarray = fitted("n_nodes", type=int, meaning=count(0, "n_samples"))
    surface_: np.ndarray = fitted("n_surface", "n_features", unit="x")
    step_lengths_: np.ndarray = fitted("n_components", unit="d", meaning=at_least(0))
    energy_: np.ndarray = fitted("3", unit="d^2", meaning=at_least(0))
    surface_variance_ratio_: float = fitted(meaning=Interval(None, 1 + 1e-6))
    plane_variance_ratio_: float = fitted(meaning=share())
    loss_history_: np.ndarray = fitted("n_losses", unit="d^2")
    n_iter_: int = fitted(type=int, meaning=count())

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
        """See :meth:`Reducer.estimate`."""
        axes = principal_axes_cost(n, p, 2)
        return Estimate(0.1, 0) + axes + 40 * Estimate(3e-10 * n * 400 * p, 8 * n)

    @classmethod
    def most_components(cls, n: int, p: int, n_classes: int = 0) -> int:
        """See :meth:`Reducer.most_components`: a grid has at most three axes."""
        return min(super().most_components(n, p, n_classes), MOST_AXES)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the nodes are those of a grid of this shape."""
        shape = [int(side) for side in self.shape_]
        if any(side == 2 for side in shape[: CLOSED.get(self.grid, 0)]):
            return f"'shape_' {shape}, but a closed axis has at least {FEWEST} nodes"
        if int(np.prod([float(side) for side in shape])) != len(self.nodes_):
            return f"{len(self.nodes_)} 'nodes_', but 'shape_' is {shape}"
        if len(self.surface_) != (self._lattice(wide=True).n_units if max(shape) > 1 else 1):
            return f"{len(self.surface_)} nodes in 'surface_', but 'shape_' is {shape}"
        return super().inconsistency()

    def _unit_powers(self, X: Any) -> dict[str, int] | None:
        return unit_powers(1)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        q = self._check_components(*X.shape)
        X = np.ascontiguousarray(as_dense(X, type(self).__name__))
        with limit_blas(1):
            first = start(X, self.grid, self.n_nodes, q, run)
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

    def _bend(self, X: np.ndarray, first: Start, run: FitContext) -> None:
        lattice, wide = self._lattice(), self._lattice(wide=True)
        grid = ElasticGrid(X, first.mean, first.variance, lattice, run.threads)
        epochs = self._epochs()
        found = grid.soften(first.nodes, epochs, int(self.max_iter), float(self.tol), run)
        self._keep(found, first, grid.energy(found.nodes, found.hosts, epochs[-1]))
        self.surface_ = extrapolated(lattice, found.nodes, wide) + first.mean
        self.step_lengths_ = self._padded(step_lengths(lattice, found.nodes)[None])[0]
        self.node_places_ = self._padded(places_at(lattice)) * self.step_lengths_
        self.loss_history_, self.n_iter_ = np.array(found.losses), len(found.losses) - 1

    def _epochs(self) -> list[Coefficients]:
        """Both coefficients fall by equal factors from the first epoch to the last."""
        softening = np.geomspace(float(self.initial_stiffness), 1.0, int(self.n_epochs))
        softening[-1] = 1.0
        lattice = self._lattice()
        with np.errstate(over="ignore"):
            l, m = softening * float(self.stretching), softening * float(self.bending)
        return [coefficients(lattice, float(a), float(b)) for a, b in zip(l, m, strict=True)]

    def _keep(self, found: Softened, first: Start, energy: np.ndarray) -> None:
        self.nodes_ = found.nodes + first.mean
        self.hits_ = np.bincount(found.hosts.nearest, minlength=len(found.nodes))
        self.energy_ = energy

    def _keep_point(self, X: np.ndarray, first: Start) -> None:
        """Rows that are all equal: one node, and nothing to optimize."""
        self.nodes_ = self.surface_ = first.mean[None].astype(np.float64)
        self.node_places_, self.step_lengths_ = np.zeros((1, len(self.shape_))), np.zeros(len(self.shape_))
        self.hits_, self.energy_ = np.array([len(X)]), np.array([first.variance, 0.0, 0.0])
        self.loss_history_, self.n_iter_ = np.array([first.variance]), 0

    # --- rows to the surface and back -----------------------------------------------------------

    def _lattice(self, wide: bool = False) -> Any:
        lattice = lattice_of(self.grid, tuple(int(side) for side in self.shape_))
        return extended(lattice, int(self.extrapolate)) if wide else lattice

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
        found = project(X, self.surface_, self._lattice(wide=True), run.threads)
        return (self._padded(found.places) * self.step_lengths_).astype(X.dtype), found.squares

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X = np.ascontiguousarray(as_dense(X, type(self).__name__))
        return self._projected(X, run)[0]

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        if len(self.surface_) == 1:
            return np.repeat(self.surface_, len(Y), axis=0).astype(Y.dtype)
        lengths = np.where(self.step_lengths_ > 0, self.step_lengths_, np.inf)
        steps = (Y.astype(np.float64) / lengths)[:, self.shape_ > 1]
        return points_at(steps, self.surface_, self._lattice(wide=True)).astype(Y.dtype)
