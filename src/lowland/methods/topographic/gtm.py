"""Generative topographic mapping (Bishop, Svensen & Williams 1998)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from lowland._base.constraints import Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.rows.chunks import chunk_rows
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.grids.lattice import Lattice, Net
from lowland._engines.linalg import products
from lowland._engines.linalg.moments import survey
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland.methods.topographic._base import TopographicReducer
from lowland.methods.topographic._gtm_em import (
    Basis,
    InChunks,
    InMemory,
    Mixture,
    Sheet,
    Source,
    grid,
    maximized,
    spacing,
    started,
)

NODES = {1: 100, 2: 20, 3: 9}  # "auto": nodes per axis, by the number of axes
MOST_CENTERS = {1: 20, 2: 10, 3: 5}
ROWS_PER_CENTER = 10
SUM_BYTES = 64e6  # of the kernel, or four times the sums


class GTM(TopographicReducer):
    """p(x) = 1/K sum_k N(x; y(z_k), noise), y(z) = sum_m w_m phi_m(z), fitted by EM.

    A smooth sheet y(z) is bent through the data, and each row is a point of it plus noise. The map
    is where on the sheet a row probably comes from: its posterior mean or mode in the square
    [-1, 1]^q. It is the probabilistic sibling of the self-organizing map: it has a likelihood,
    which tells how well new rows fit, takes missing values, and goes back from the map to rows. Use
    it for up to some hundred columns. Do not use it to unroll surfaces: it starts from the plane of
    the principal axes and folds where the sheet cannot follow. Cost: O(n p K) per step.

    Parameters
    ----------
    n_components : int, default=2
        Dimension q of the sheet: 1, 2 or 3.
    n_nodes : int or "auto", default="auto"
        Number of points z_k per axis of the map, at which the sheet is compared with the rows.
        "auto" is 100, 20 or 9 in 1, 2 or 3 dimensions.
    n_basis : int or "auto", default="auto"
        Number of Gaussian basis functions per axis: more give a more flexible sheet. "auto" gives
        about one for 10 rows, from 2 to 20, 10 or 5 per axis.
    width : float, default=1.0
        Standard deviation of the basis functions, in distances of neighboring ones; 0.1 to 10.
    alpha : float, default=1.0
        Penalty on the weights of the Gaussians, in units of the mean variance of the columns. A
        large one gives a plane.
    place : {"mean", "mode"}, default="mean"
        Where a row is in the map: the mean of its posterior, or its largest value.
    refinement : int, default=3
        The posterior that places a row is computed on a grid so many times finer than that of the
        nodes, at most 10. 1 is the paper's; many rows then fall on nodes.
    max_iter : int, default=200
        Maximum number of EM steps. 0 gives the start, the plane of the principal axes.
    tol : float, default=0.00003
        The fit ends when a step lowers the loss, in nats per value of the table, by less.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components) or None
        Places of the fitted rows. None if they were read in chunks.
    mean_ : ndarray of shape (n_features,)
        Means of the columns, over known values.
    nodes_ : ndarray of shape (n_nodes, n_components)
        The points z_k of the map; the last coordinate changes fastest.
    basis_centers_ : ndarray of shape (n_centers, n_components)
        Centers of the Gaussian basis functions in the map.
    basis_width_ : float
        Their standard deviation, in units of the map.
    weights_ : ndarray of shape (n_functions, n_features)
        Weights of the Gaussians, of the coordinates of z and of 1: y(z) = mean + weights^T phi(z).
    noise_ : float
        Standard deviation 1 / sqrt(beta) of the noise, in every column the same.
    size_ : float
        Root mean squared deviation of a value from the mean of its column.
    n_known_ : int
        Number of values of the fitted table that are not missing.
    mean_log_likelihood_ : float
        Log-likelihood per value of the table in units of ``size_``.
    loss_history_ : ndarray of shape (n_losses,)
        Minus the penalized log-likelihood per value, in units of ``size_``, at the start and after
        each step. It never rises.

    Notes
    -----
    As in the paper: nodes and basis functions on regular grids, the start in the plane of the
    principal axes, the first noise variance (the larger of the variance on axis q + 1 and the
    squared half distance of nodes) and both steps of EM. Deviations: beside the Gaussians and 1 the
    basis has the coordinates of z, and these and 1 bear only a millionth of the penalty, so that a
    stiff sheet is a plane, not a point. alpha is relative to the variance of the data. The noise
    variance is at least 1e-8 of the mean variance, since the likelihood of a sheet through all rows
    has no bound. Rows are placed on a finer grid than that of the fit: on digits half of the rows
    would fall on a node.

    Missing values are exact: with noise that is independent in each column, the posterior is that
    of the known columns, and each column has its own equations in the M step. Rows that are read
    in chunks take a pass for each step, and a callback gets a map of no rows.

    The defaults were chosen by the log-likelihood of held-out rows of oil flow, digits, iris, a
    rounded survey, a swiss roll and MNIST, and by the map of oil flow: with one basis function for
    10 rows, at most 10 x 10, a width of 1 is better than 2. alpha = 1 is a compromise: on the
    survey and the roll larger values were better. 30 x 30 nodes are better by 0.01 to 0.05 nats per
    value at 2.5 times the time. Starts with more noise gave the same. In the map of oil flow (1 000
    rows) 7 rows have a nearest neighbor of another class, in that of PCA 162.

    References
    ----------
    Bishop, Svensen & Williams (1998), GTM: The generative topographic mapping, Neural Computation
    10, 215-234.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> gtm = GTM()
    >>> gtm.fit_transform(iris().X).shape
    (150, 2)
    >>> gtm.inverse_transform([[0.0, 0.5]]).shape
    (1, 4)
    """

    n_nodes: int | str = param(Integer(1) | OneOf("auto"), default="auto")
    n_basis: int | str = param(Integer(1) | OneOf("auto"), default="auto")
    width: float = param(Real(0.1, 10, closed="both"), default=1.0)
    alpha: float = param(Real(0, 1e12, closed="both"), default=1.0)
    place: Literal["mean", "mode"] = param(OneOf("mean", "mode"), default="mean")
    refinement: int = param(Integer(1, 10), default=3)
    max_iter: int = param(Integer(0), default=200)
    tol: float = param(Real(0, closed="left"), default=3e-5)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray | None = fitted("n_samples", "n_components", optional=True)
    mean_: np.ndarray = fitted("n_features")
    nodes_: np.ndarray = fitted("n_latent", "n_components")
    basis_centers_: np.ndarray = fitted("n_centers", "n_components")
    basis_width_: float = fitted(meaning=above(0))
    weights_: np.ndarray = fitted("n_functions", "n_features")
    noise_: float = fitted(meaning=above(0))
    size_: float = fitted(meaning=above(0))
    n_known_: int = fitted(type=int)
    mean_log_likelihood_: float = fitted()
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    card = Card(
        keeps="neighborhoods on a smooth sheet through the data; a likelihood tells how it fits",
        use="for clouds and clusters of up to some hundred columns, missing values, and an inverse",
        avoid="to unroll surfaces, or for distances: the sheet is stretched between groups",
        cost="O(n p K) time per step for K nodes, O(n p + K p) memory",
    )
    reference = "Bishop, Svensen & Williams (1998)"
    fits_rows = True
    aliases = ("generative_topographic_mapping",)
    accepts_sparse = True
    allows_nan = True
    components_limit = "rank"
    reading = Reading(
        axes="The axes are coordinates on a bent sheet, which began as the plane of the principal "
        "axes.",
        distances="Rows that are near in the map are near the same piece of the sheet. Distances "
        "are not those of the data, because the sheet is stretched, here more and there less.",
        gaps="A gap is a part of the sheet that spans a region without rows; how wide it is drawn "
        "says little.",
        sizes="Sizes of groups follow the number of rows more than their spread.",
        scale="The map is the square from -1 to 1.",
    )

    @classmethod
    def most_components(cls, n: int, p: int, n_classes: int = 0) -> int:
        """See :meth:`Reducer.most_components`: a grid of more axes has too many nodes."""
        return min(super().most_components(n, p, n_classes), max(NODES))

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 80 EM steps, and the places on the finer grid."""
        K, fine = 400, 58 * 58
        step = Estimate(n * K * (5e-11 * p + 5e-10) + 1e-3, max(SUM_BYTES, 32 * K * p) + 8 * n)
        places = Estimate(n * fine * (5e-11 * p + 5e-10), 8 * fine * (p + 103) + 3.4e7)
        start = principal_axes_cost(n, p, 3)
        return Estimate(0.01, 0) + start + 80 * step + places.holding(16 * n)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: a weight for each basis function."""
        wanted = len(self.basis_centers_) + int(self.n_components) + 1
        if len(self.weights_) != wanted:
            return f"{len(self.weights_)} 'weights_' of {wanted} basis functions"
        side = round(len(self.nodes_) ** (1 / int(self.n_components)))
        if len(self.nodes_) != side ** int(self.n_components) or not len(self.nodes_):
            return f"{len(self.nodes_)} 'nodes_', which is no grid"
        return super().inconsistency()

    def net(self) -> Net:
        """See :meth:`TopographicReducer.net`: the images of the nodes."""
        self._require_fitted()
        q = int(self.n_components)
        side = round(len(self.nodes_) ** (1 / q))
        edges = Lattice("rectangle", (side,) * q, (False,) * q).edges()
        return Net(self.inverse_transform(self.nodes_), edges)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        self._check_components(*X.shape)
        X = as_dense(X, type(self).__name__)
        self._require_room(X.shape, len(X), X.itemsize)
        with limit_blas(1):  # the map must not depend on the number of threads
            source = InMemory(X, run.threads)
            self._fit_source(source, lambda: self._transform(source.X, run), run)
        Y = self.embedding_ = self._transform(X, run)
        return Y.copy()

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        """A pass for the start, and one for each step."""
        q = self._check_components(*rows.shape)
        self._require_room(rows.shape, min(len(rows), chunk_rows(rows.shape[1])), 8)

        shared: dict[str, Any] = {"n_jobs": self.n_jobs, "monitor": run.monitor}
        with limit_blas(1):
            found = survey(rows, "GTM", scatter=True, **shared)
            rows = self._with_room(rows, found.greatest)
            source = InChunks(rows, found, self.n_jobs, run.monitor)
            self._fit_source(source, lambda: np.empty((0, q)), run)
        self.embedding_ = None

    def _fit_source(
        self, source: Source, places: Callable[[], np.ndarray], run: FitContext
    ) -> None:
        """Set the fitted attributes except the map."""
        table, q = source.table, int(self.n_components)
        side, m = self._sides(table.n_rows)
        self.mean_, self.size_, self.n_known_ = table.mean, table.size, table.n_known
        self.nodes_, self.basis_centers_ = grid(side, q), grid(m, q)
        self.basis_width_ = float(self.width) * spacing(m)
        most = int(self.max_iter)

        def report(step: int, sheet: Sheet, loss: float) -> bool:
            self.weights_, self.noise_ = sheet
            return run.monitor.iteration(step, places, loss, total=most)

        start = started(table, source.plane(q + 1, run), self.nodes_, len(self.basis_centers_))
        found = maximized(
            source,
            start,
            self._basis(),
            self.nodes_,
            float(self.alpha),
            max_iter=most,
            tol=self.tol,
            report=report,
        )
        self.weights_, self.noise_ = found.sheet
        self.loss_history_, self.n_iter_ = np.array(found.losses), len(found.losses) - 1
        self.mean_log_likelihood_ = found.mean_log_likelihood

    def _check_components(self, n: int, p: int, n_classes: int = 0) -> int:
        if self.n_components > max(NODES):
            raise ParameterError(
                f"GTM: n_components={self.n_components}, but the grid of the nodes has at most "
                f"{max(NODES)} axes; ask for at most {self.most_components(n, p)}."
            )
        return super()._check_components(n, p, n_classes)

    def _sides(self, n: int) -> tuple[int, int]:
        """Nodes and basis functions per axis."""
        side, m, q = self.n_nodes, self.n_basis, int(self.n_components)
        if isinstance(side, str):
            side = NODES[q]
        if isinstance(m, str):
            m = min(max(2, round((n / ROWS_PER_CENTER) ** (1 / q))), MOST_CENTERS[q])
        return int(side), int(m)

    def _require_room(self, shape: tuple[int, int], held: int, item_bytes: int) -> None:
        """Refuse what does not fit in memory beside the ``held`` rows of a table."""
        (n, p), q = shape, int(self.n_components)
        K, M = (side**q for side in self._sides(n))
        fine = K * int(self.refinement) ** q
        sums = max(SUM_BYTES, 32 * K * p) + 24 * K * (p + M) + 24 * M * (M + p)
        require_memory(
            int(max(sums + held * p * item_bytes, 16 * fine * (p + M))) + 32 * held,
            task=f"GTM with {K} nodes and {M} basis functions for {p} columns",
            alternative="fewer nodes, or a smaller refinement",
        )

    # --- the model ------------------------------------------------------------------------------

    def _basis(self) -> Basis:
        return Basis(self.basis_centers_, self.basis_width_)

    def _mixture(self, Phi: np.ndarray) -> Mixture:
        return Sheet(self.weights_, self.noise_).mixture(self.mean_, Phi)

    @property
    def log_likelihood_(self) -> float:
        """log p of the fitted table, the sum over its rows, without the penalty."""
        self._require_fitted()
        return self.n_known_ * float(self.mean_log_likelihood_ - np.log(self.size_))

    def _posteriors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of checked rows at the nodes."""
        mixture = self._mixture(self._basis()(self.nodes_))
        with self._running() as run:
            R, logs = mixture.posteriors(X, run.threads)
        return R, logs

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(x) of each row, over its known values."""
        rows = as_dense(self._check_new_rows(X), type(self).__name__)
        blocks = row_blocks(len(rows), rows_within(8 * len(self.nodes_)))
        return np.concatenate([self._posteriors(rows[block])[1] for block in blocks])

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log p(x) over the rows."""
        return float(np.mean(self.score_samples(X)))

    def responsibilities(self, X: Any) -> np.ndarray:
        """p(z_k | x) of each row (n, n_nodes), at ``nodes_``."""
        rows = as_dense(self._check_new_rows(X), type(self).__name__)
        require_memory(
            8 * len(rows) * len(self.nodes_),
            task=f"GTM: posteriors of {len(rows)} rows at {len(self.nodes_)} nodes",
            alternative="some rows at a time",
        )
        return self._posteriors(rows)[0]

    # --- rows to the map and back ---------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X, q = as_dense(X, type(self).__name__), int(self.n_components)
        finer = (round(len(self.nodes_) ** (1 / q)) - 1) * int(self.refinement) + 1
        require_memory(
            16 * finer**q * (len(self.mean_) + len(self.weights_)),
            task=f"GTM: places on a grid of {finer**q} points",
            alternative="a smaller refinement",
        )
        Z = grid(finer, q)
        mixture = self._mixture(self._basis()(Z))
        Y = np.empty((len(X), q), dtype=X.dtype)
        for rows in row_blocks(len(X), rows_within(8 * len(Z))):
            R = mixture.posteriors(X[rows], run.threads)[0]
            if self.place == "mode":
                best = Z[np.argmax(R, axis=1)]
                Y[rows] = np.where(np.isnan(R[:, :1]), np.nan, best)
            else:
                Y[rows] = products.times(R, np.zeros(len(Z)), Z, run.threads)
        return Y

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        X, basis = np.empty((len(Y), len(self.mean_)), dtype=Y.dtype), self._basis()
        shift = np.zeros(len(self.weights_))
        for rows in row_blocks(len(Y), rows_within(24 * len(self.weights_))):
            values = basis(Y[rows].astype(np.float64))
            X[rows] = products.times(values, shift, self.weights_, run.threads) + self.mean_
        return X
