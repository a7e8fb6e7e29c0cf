"""Self-organizing map (Kohonen 1982)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from lowland._base.constraints import Array, Boolean, Function, Integer, Null, OneOf, Real, Several
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import count
from lowland._base.params import fitted, param
from lowland._base.rows.fitting import needs_memory
from lowland._base.rows.table import Rows
from lowland._base.targets import check_labels
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import dense_if_small, is_sparse
from lowland._engines.grids.lattice import Lattice, Net
from lowland._engines.grids.nearest_units import nearest_units
from lowland._engines.linalg.moments import survey
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland.methods.topographic import _som_training as training
from lowland.methods.topographic._base import TopographicReducer

SIDE = Integer(1, 100_000)  # units along an axis


class SOM(TopographicReducer):
    """m_j = sum_i h(c_i, j) x_i / sum_i h(c_i, j), c_i the unit nearest to x_i.

    A grid of units is laid through the data. Each unit m_j becomes the mean of the rows for which
    it, or a unit near it on the grid, is the nearest; h falls with the distance on the grid, and
    its radius shrinks. So units that are neighbors on the grid are alike. The map shows where on
    the grid each row belongs. Use it for an overview of large tables: which groups there are
    (``u_matrix_``), what they are like (``codebook_``), and how many rows they have (``hits_``).
    Do not use it to read distances: the grid is even, whatever the data. Cost: O(n m p) per epoch
    for m units.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the grid: 2, or 1 for a chain of units.
    sides : int, list of int or None, default=None
        Number of units along each axis. None takes about 5 sqrt(n) units in all, at most n and
        1 000, with sides as the two largest singular values. Rows on a line get a chain, equal
        rows one unit.
    grid : {"hexagon", "rectangle"}, default="hexagon"
        Each unit has six or four neighbors. A chain has two.
    toroidal : bool, default=False
        Close the grid: the left edge meets the right, and the bottom the top.
    neighborhood : {"gaussian", "bubble", "epanechnikov"}, default="gaussian"
        h at the distance d on the grid and the radius r: exp(-d^2 / 2 r^2), 1 for d <= r, or
        1 - d^2 / r^2 for d < r.
    rule : {"batch", "online"}, default="batch"
        "batch" uses all rows at once in each epoch, without random numbers. "online" is Kohonen's
        own rule: m_j += a h(c, j) (x - m_j), one row at a time in random order.
    radius : "auto", float or pair of float, default="auto"
        Radius of the neighborhood in steps of the grid, at the start and at the end, or a constant
        one. It falls by the same factor per epoch in the first 70 % of the epochs. "auto" is from
        half of the longer side to 0.7, times 2 for "bubble" and sqrt(6) for "epanechnikov". At a
        constant radius of 0 the batch rule is k-means.
    max_iter : int, default=25
        Maximum number of epochs. The batch rule ends before when nothing changes any more.
    learning_rate : float, default=0.5
        First rate a of the online rule, at most 1. It falls to 0 in equal steps.
    places : {"smooth", "units"}, default="smooth"
        Where rows are placed: among the units near the nearest one, or exactly at the nearest one.
        "smooth" weighs these units by how near they are to the row.
    init : {"pca", "random"} or array of shape (n_units, n_features), default="pca"
        First units: on the plane of the first principal axes, random rows, or given ones.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components) or None
        Places of the fitted rows on the grid, whose units are one step apart. None if the rows were
        read in chunks.
    codebook_ : ndarray of shape (n_units, n_features)
        The units m_j.
    unit_places_ : ndarray of shape (n_units, n_components)
        Places of the units in the map.
    unit_sides_ : ndarray of shape (n_components,)
        Number of units along each axis. Units are counted along the last axis first.
    hits_ : ndarray of shape (n_units,)
        Number of fitted rows whose nearest unit each one is.
    u_matrix_ : ndarray of shape (n_units,)
        Mean distance of each unit to its neighbors on the grid: large between groups.
    quantization_error_ : float
        Mean distance of the fitted rows to their nearest units.
    topographic_error_ : float
        Share of the fitted rows whose two nearest units are not neighbors on the grid. On a
        rectangular grid, neighbors across a corner count.
    loss_history_ : ndarray of shape (n_losses,)
        The quantization error at the start and after each epoch. It may rise, because the units
        also follow their neighbors.

    Notes
    -----
    NaN is a missing value: distances and means are over the known columns. Rows that are equally
    near to several units belong to the one with the lowest number. A unit that no row reaches
    stays where it is. Rows that are read in chunks take a pass for each epoch of the batch rule,
    and a callback gets a map of no rows.

    The online rule keeps the radius constant during an epoch; the paper does not state how it
    falls. A closed grid starts on circles in the planes of two principal axes each, because a
    plane would have to be bent first. A closed hexagonal grid needs an even number of units along
    the second axis.

    A smooth place is r_c + sum_j w_j (r_j - r_c) over the units j at most two steps from the
    nearest unit c, with w_j proportional to exp(-2 |x - m_j|^2 / s_c) and the mean squared distance
    s_c of c to its neighbors. On a closed grid j is less than half of an axis away. Compared with
    inverse distances, regularized barycentric weights, other widths and projections on tangent
    planes or on the triangles around c, which puts half of the rows or more on an edge, this had
    the highest trustworthiness of held-out rows, or was within 0.004 of it, on digits, iris, MNIST,
    a Swiss roll, rounded answers and heavy tails. The radius and its fall were chosen with the
    same data: an end of 0.5 instead of 0.7 lowers the quantization error by 6 to 19 % and
    multiplies the topographic error by 1.4 to 4, with about the same
    trustworthiness of held-out rows; an end of 1 does the contrary.

    ``inverse_transform`` interpolates the units linearly between the corners of a triangle of the
    grid. Places off the grid are moved to its border.

    References
    ----------
    Kohonen (1982), Self-organized formation of topologically correct feature maps, Biological
    Cybernetics 43, 59-69. Kohonen (2013), Essentials of the self-organizing map, Neural Networks
    37, 52-65 (batch rule).

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> som = SOM(sides=[8, 5])
    >>> som.fit_transform(iris().X).shape
    (150, 2)
    >>> som.label_units(iris().X, iris().y).labels.shape
    (40,)
    """

    sides: Any = param(Null() | SIDE | Several(SIDE), default=None)
    grid: Literal["hexagon", "rectangle"] = param(OneOf("hexagon", "rectangle"), default="hexagon")
    toroidal: bool = param(Boolean(), default=False)
    neighborhood: Literal["gaussian", "bubble", "epanechnikov"] = param(
        OneOf("gaussian", "bubble", "epanechnikov"), default="gaussian"
    )
    rule: Literal["batch", "online"] = param(OneOf("batch", "online"), default="batch")
    radius: Any = param(OneOf("auto") | Real(0, closed="left") | Several(Real(0)), default="auto")
    max_iter: int = param(Integer(0), default=25)
    learning_rate: float = param(Real(0, 1, closed="right"), default=0.5)
    places: Literal["smooth", "units"] = param(OneOf("smooth", "units"), default="smooth")
    init: Any = param(OneOf("pca", "random") | Array(), default="pca")
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray | None = fitted("n_samples", "n_components", optional=True)
    codebook_: np.ndarray = fitted("n_units", "n_features")
    unit_places_: np.ndarray = fitted("n_units", "n_components")
    unit_sides_: np.ndarray = fitted("n_components", type=int, meaning=count(1))
    hits_: np.ndarray = fitted("n_units", type=int, meaning=count(0, "n_samples"))
    u_matrix_: np.ndarray = fitted("n_units")
    quantization_error_: float = fitted()
    topographic_error_: float = fitted()
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    card = Card(
        keeps="neighborhoods: similar rows are near each other on an even grid of units",
        use="for an overview of large tables, and to describe groups by typical rows",
        avoid="to read distances or outliers, which an even grid does not show",
        cost="O(n m p) time per epoch for m units, O(m^2 + m p) memory",
    )
    reference = "Kohonen (1982)"
    fits_rows = True
    aliases = ("self_organizing_map", "kohonen")
    accepts_sparse = True
    allows_nan = True
    components_limit = "plane"
    reading = Reading(
        axes="The axes are those of the grid. They begin as principal axes and bend with the data.",
        distances="Rows that are near in the map are similar. Steps of the same length differ in "
        "what they mean; the U-matrix shows how much.",
        gaps="The units of a gap have few rows: the data are sparse there, or a group ends.",
        sizes="A group gets units in proportion to its rows, about, so a dense group looks large.",
        scale="One step of the grid is 1; the axes have no unit.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 25 epochs."""
        m = training.number_of_units(n)
        products = 2e-11 * n * m * (p + 8) + 6e-11 * m * m * p
        epoch = Estimate(products + 1e-9 * n * p + 1e-8 * m * m, 0)
        held = 24 * m * m + 48 * m * p + 100 * n
        return Estimate(0.01, held) + principal_axes_cost(n, p, 2) + 25 * epoch

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the sides give the number of the units."""
        sides, m = self._lattice().sides, len(self.codebook_)
        if math.prod(sides) != m:
            return f"'unit_sides_' {sides} do not make {m} units"
        return super().inconsistency()

    def net(self) -> Net:
        """See :meth:`TopographicReducer.net`: the units."""
        self._require_fitted()
        return Net(self.codebook_, self._lattice().edges())

    def _torus_sides(self) -> np.ndarray | None:
        return self._lattice().periods() if self.toroidal else None

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        X = dense_if_small(X)
        table = training.InMemory(X, _has_missing(X), run.threads)
        nearest = self._fit_table(table, run)
        self.embedding_ = self._places(X, self.codebook_, nearest, run.threads)
        return self.embedding_.copy()

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        """By the batch rule: a pass for the start, one per epoch, and one for the errors."""
        if self.rule != "batch":
            raise needs_memory("SOM", f"rule={self.rule!r}", "set rule='batch', or ")
        needed = self._needs_plane()
        found = survey(rows, "SOM", scatter=needed, n_jobs=self.n_jobs, monitor=run.monitor)
        rows = self._with_room(rows, found.greatest)
        self._fit_table(training.InChunks(rows, found, self.n_jobs, run.monitor), run)
        self.embedding_ = None

    def _needs_plane(self) -> bool:
        return self.sides is None or isinstance(self.init, str)

    def _fit_table(self, table: training.Table, run: FitContext) -> Any:
        """Set the fitted attributes except the map; returns nearest units of rows in memory."""
        n, p = table.shape
        q = self._check_components(n, p)
        # the order of the rows must not depend on how many random numbers the axes need
        rng = np.random.default_rng(run.rng.integers(2**63))
        plane: Any = None
        if self._needs_plane():
            with run.monitor.phase("principal axes"):
                plane = table.plane(4 if self.toroidal else 2, run)
        even = bool(self.toroidal) and self.grid == "hexagon" and q == 2
        if self.sides is None:
            sides = training.sides_of_grid(n, plane, q, self.grid, even)
        else:
            sides = training.given_sides(self.sides, q, even)
        self.unit_sides_ = np.array(sides, np.int64)
        lattice = self._lattice()
        m = lattice.n_units
        task = f"SOM with {m} units of {p} columns"
        require_memory(24 * m * m + 48 * m * p, task=task, alternative="smaller sides")
        self.unit_places_ = lattice.places()
        if not isinstance(self.init, str):
            start = training.given_units(self.init, lattice, p)
        elif self.init == "random":
            start = training.random_rows(table, m, plane.mean, rng)
        else:
            start = training.units_on_plane(lattice, plane)
        self.codebook_, losses = self._trained(table, start, rng, run)
        self.loss_history_ = np.array(losses)
        self.quantization_error_, self.n_iter_ = losses[-1], len(losses) - 1
        self.u_matrix_ = training.neighbor_distances(self.codebook_, lattice)
        with run.monitor.phase("places"):
            counts = table.counts(self.codebook_, lattice)
        self.hits_ = counts.hits
        self.topographic_error_ = float(1 - counts.in_order / counts.hits.sum())
        return counts.nearest

    def _lattice(self) -> Lattice:
        sides = tuple(int(side) for side in self.unit_sides_)
        kind = self.grid if len(sides) == 2 else "rectangle"
        return Lattice(kind, sides, (bool(self.toroidal),) * len(sides))

    def _trained(
        self, table: training.Table, start: np.ndarray, rng: np.random.Generator, run: FitContext
    ) -> tuple[np.ndarray, list[float]]:
        """The codebook, and the mean distance of rows to their units at the start and per epoch."""
        lattice, kind, most = self._lattice(), self.neighborhood, int(self.max_iter)

        def report(epoch: int, codebook: np.ndarray, loss: float) -> bool:
            def places() -> np.ndarray:
                if isinstance(table, training.InMemory):
                    return self._placed_by(table.X, codebook, run)
                return np.empty((0, len(lattice.sides)))

            return run.monitor.iteration(epoch, places, loss, most)

        radii = training.radii(self.radius, kind, lattice)
        task = training.Task(table, lattice, kind, radii, most, run.threads, report)
        if self.rule == "batch":
            return training.batch(task, start)
        return training.online(task, start, float(self.learning_rate), rng)

    # --- rows to the map and back -------------------------------------------------------------

    def _places(
        self, X: Any, codebook: np.ndarray, nearest: np.ndarray, threads: int
    ) -> np.ndarray:
        lattice = self._lattice()
        if self.places == "units":
            return lattice.places()[nearest].astype(X.dtype)
        return training.smooth_places(X, codebook, lattice, nearest, threads).astype(X.dtype)

    def _nearest(self, X: Any, codebook: np.ndarray, run: FitContext) -> np.ndarray:
        return nearest_units(X, codebook, run.threads, 1, _has_missing(X))[:, 0]

    def _placed_by(self, X: Any, codebook: np.ndarray, run: FitContext) -> np.ndarray:
        return self._places(X, codebook, self._nearest(X, codebook, run), run.threads)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._placed_by(dense_if_small(X), self.codebook_, run)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        corners = self._lattice().around(Y)
        X = np.zeros((len(Y), self.codebook_.shape[1]))
        for units, weights in zip(corners.units.T, corners.weights.T, strict=True):
            X += weights[:, None] * self.codebook_[units]
        return X.astype(Y.dtype)

    def predict(self, X: Any) -> np.ndarray:
        """Number of the nearest unit of each row, an index into ``codebook_``."""
        checked = self._check_new_rows(X)
        with self._running() as run:
            return self._nearest(dense_if_small(checked), self.codebook_, run).astype(np.int64)

    def label_units(self, X: Any, y: Any) -> training.UnitLabels:
        """The most frequent label among the rows of X of each unit, and its share of them.

        A unit without rows has the label None and the share 0. Nothing is stored.
        """
        nearest = self.predict(X)
        known = check_labels(y, len(nearest), owner="SOM")
        return training.majority(nearest, known.classes, known.codes, len(self.codebook_))


def _has_missing(X: Any) -> bool:
    return not is_sparse(X) and bool(np.isnan(X).any())
