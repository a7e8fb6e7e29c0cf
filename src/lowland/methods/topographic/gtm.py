"""Generative topographic mapping (Bishop, Svensen & Williams 1998)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.linalg

from lowland import _native
from lowland._base.constraints import Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.monitor import Monitor
from lowland._base.params import fitted, param
from lowland._base.rows.chunks import Block, chunk_rows
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.grids import lattice
from lowland._engines.linalg import products
from lowland._engines.linalg.moments import Survey, known_moments, survey
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland.methods.topographic._base import TopographicReducer

NODES = {1: 100, 2: 20, 3: 9}  # "auto": nodes per axis, by the number of axes
MOST_CENTERS = {1: 20, 2: 10, 3: 5}
ROWS_PER_CENTER = 10
SUM_BYTES = 64e6  # of the kernel, or four times the sums


# Generative topographic mapping: the E step and the M step of the mixture of its nodes.
#
#     p(x) = 1/K sum_k N(x; y_k, noise),   y_k = W^T phi(z_k)
#
# With missing values each Gaussian is that of the known columns. Rows and nodes are centered here.


# Regular grids in the latent square, and the basis functions on it: Gaussians, z and 1.


FREE = 1e-6  # the plane's share of the penalty: not 0, so that there is one best plane


def spacing(side: int) -> float:
    """The distance of neighbors on a grid of ``side`` points from -1 to 1; 2 for a single point."""
    return 2 / max(1, side - 1)


def grid(side: int, q: int) -> np.ndarray:
    """All points (side^q, q) of a regular grid in [-1, 1]^q; a single point is the middle."""
    axis = np.linspace(-1, 1, side) if side > 1 else np.zeros(1)
    return np.stack(np.meshgrid(*[axis] * q, indexing="ij"), axis=-1).reshape(-1, q)


class Basis(NamedTuple):
    """exp(-|z - c|^2 / (2 width^2)) at each center c, the q coordinates of z, and 1."""

    centers: np.ndarray
    width: float

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """The values (n, n_centers + q + 1); no row depends on the others."""
        square = np.zeros((len(Z), len(self.centers)))
        for z, c in zip(Z.T, self.centers.T, strict=True):
            square += ((z[:, None] - c) / self.width) ** 2
        return np.hstack([np.exp(-0.5 * square), Z, np.ones((len(Z), 1))])

    def penalties(self, alpha: float) -> np.ndarray:
        """alpha for the weights of Gaussians; those of the plane are almost free."""
        m, q = self.centers.shape
        return alpha * np.concatenate([np.ones(m), np.full(q + 1, FREE)])


LEAST_NOISE = 1e-8  # of the mean variance: a node on every row would have any likelihood
SINGULAR = 1e-13  # squared pivots below this share of the largest one are rounding


class Table(NamedTuple):
    """Number of rows; means, counts and squared deviations of the values that are known."""

    n_rows: int
    mean: np.ndarray
    known: np.ndarray  # values of each column
    square: float

    @property
    def missing(self) -> bool:
        return bool(self.known.min() < self.n_rows)

    @property
    def n_known(self) -> int:
        return int(self.known.sum())

    @property
    def size(self) -> float:
        """The root mean squared deviation of a value from its column's mean; 1 if all are equal."""
        return float(np.sqrt(self.square / self.n_known)) or 1.0

    @property
    def least_noise(self) -> float:
        return LEAST_NOISE * self.size**2


class Sums(NamedTuple):
    """What an E step leaves: sums of rows (K, p) and of ones by posteriors, and log p(X).

    The sums of ones have a column for each of X if values are missing, else one for all.
    """

    rows: np.ndarray
    masses: np.ndarray
    log_likelihood: float


class Mixture(NamedTuple):
    """Equal Gaussians at the nodes (K, p), which are relative to the mean."""

    mean: np.ndarray
    nodes: np.ndarray
    noise: float  # variance of a column

    def posteriors(self, X: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """r_ik = p(z_k | x_i), and log p(x_i); no row depends on the others."""
        known = np.sum(~np.isnan(X), axis=1)
        logs, R = np.empty(len(X)), np.empty((len(X), len(self.nodes)))
        holes = known < X.shape[1]
        if holes.all() or not holes.any():
            self._fill(X, logs, R, bool(holes.any()), threads)
        else:  # rounding must not depend on whether other rows have missing values
            for rows in (np.flatnonzero(holes), np.flatnonzero(~holes)):
                some_logs, some = np.empty(len(rows)), np.empty((len(rows), len(self.nodes)))
                self._fill(X[rows], some_logs, some, bool(holes[rows[0]]), threads)
                logs[rows], R[rows] = some_logs, some
        return R, logs - np.log(len(self.nodes)) - 0.5 * known * np.log(2 * np.pi * self.noise)

    @property
    def beta(self) -> float:
        """The precision; that of a variance that underflows is large."""
        return 1 / max(self.noise, float(np.finfo(np.float64).tiny))

    def _fill(
        self, X: np.ndarray, logs: np.ndarray, R: np.ndarray, missing: bool, threads: int
    ) -> None:
        X = np.ascontiguousarray(X)
        _native.gtm_posteriors(X, self.mean, self.nodes, self.beta, missing, logs, R, threads)


def posterior_sums(X: np.ndarray, mixture: Mixture, missing: bool, threads: int) -> Sums:
    """Posteriors of a block of rows, summed up at once; log p without its constants."""
    X, nodes = np.ascontiguousarray(X), mixture.nodes
    logs, sums = np.empty(len(X)), np.empty(nodes.shape)
    masses = np.empty((len(nodes), X.shape[1] if missing else 1))
    beta = mixture.beta
    _native.gtm_sums(X, mixture.mean, nodes, beta, missing, logs, sums, masses, threads)
    return Sums(sums, masses, float(np.sum(logs)))


def added(a: Sums, b: Sums) -> Sums:
    """The sums over both sets of rows."""
    return Sums(a.rows + b.rows, a.masses + b.masses, a.log_likelihood + b.log_likelihood)


def e_step(table: Table, mixture: Mixture, sums: Sums) -> Sums:
    """The sums over all rows, with log p of the table."""
    total = sums.log_likelihood - table.n_rows * np.log(len(mixture.nodes))
    constant = 0.5 * table.n_known * np.log(2 * np.pi / mixture.beta)
    return sums._replace(log_likelihood=float(total - constant))


def m_step(
    table: Table, Phi: np.ndarray, sums: Sums, penalties: np.ndarray, noise: float
) -> tuple[np.ndarray, float]:
    """The weights, then the noise, that maximize the expected penalized log-likelihood.

    (Phi^T G Phi + noise diag(penalties)) W = Phi^T R^T X, where G are the masses of the nodes. With
    missing values every column has masses, and so an equation, of its own.
    """
    W = np.empty((Phi.shape[1], sums.rows.shape[1]))
    ridge, right = np.diag(noise * penalties), Phi.T @ sums.rows
    for columns, g in _equations(table, sums.masses):
        W[:, columns] = _solved(Phi.T @ (g[:, None] * Phi) + ridge, right[:, columns])
    nodes = Phi @ W
    square = table.square - 2 * np.sum(sums.rows * nodes) + np.sum(sums.masses * nodes**2)
    return W, max(float(square / table.n_known), table.least_noise)


def _equations(table: Table, masses: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Columns with the same masses: the complete ones together, each other one alone."""
    whole = np.flatnonzero(table.known == table.n_rows)
    alone = np.flatnonzero(table.known < table.n_rows)
    found = [(alone[j : j + 1], masses[:, alone[j]]) for j in range(len(alone))]
    if len(whole):
        found.insert(0, (whole, masses[:, whole[0] if table.missing else 0]))
    return found


def _solved(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^-1 B of a positive definite matrix; the least solution if it is singular to rounding."""
    with contextlib.suppress(np.linalg.LinAlgError):
        factor = scipy.linalg.cho_factor(A, lower=True, check_finite=False)
        pivots = np.diag(factor[0]) ** 2
        if pivots.min() >= SINGULAR * pivots.max():
            return scipy.linalg.cho_solve(factor, B, check_finite=False)
    return np.linalg.lstsq(A, B, rcond=SINGULAR)[0]


# Generative topographic mapping: the start, and EM over rows in memory or read in chunks.


class InMemory:
    """Dense rows that a sheet is bent through."""

    def __init__(self, X: np.ndarray, threads: int) -> None:
        self.X, self.threads = np.ascontiguousarray(X), threads
        known, mean, squares = known_moments(self.X)
        self.table = Table(len(X), mean, known, float(squares.sum()))

    def plane(self, n_axes: int, run: FitContext) -> lattice.PrincipalPlane:
        return lattice.principal_plane(self.X, n_axes, run)

    def sums(self, mixture: Mixture) -> Sums:
        return posterior_sums(self.X, mixture, self.table.missing, self.threads)


class InChunks:
    """Rows that are read in chunks: a pass for each call."""

    def __init__(self, rows: Rows, found: Survey, n_jobs: int | None, monitor: Monitor) -> None:
        self.rows, self.found, self.n_jobs, self.monitor = rows, found, n_jobs, monitor
        known, mean, squares = found.columns[:3]
        self.table = Table(found.n_rows, mean, known, float(squares.sum()))

    def plane(self, n_axes: int, run: FitContext) -> lattice.PrincipalPlane:
        return lattice.plane_of_chunks(self.rows, self.found, n_axes, self.n_jobs, run)

    def sums(self, mixture: Mixture) -> Sums:
        f = functools.partial(block_sums, mixture, self.table.missing, self.n_jobs)
        return self.rows.total(f, added, self.monitor, "step")


Source = InMemory | InChunks


def block_sums(mixture: Mixture, missing: bool, n_jobs: int | None, block: Block) -> Sums:
    """:func:`posterior_sums` of one block."""
    return posterior_sums(as_dense(block.X, "GTM"), mixture, missing, resolve_n_jobs(n_jobs))


class Sheet(NamedTuple):
    """Weights of the basis functions, and the standard deviation of the noise."""

    weights: np.ndarray
    noise: float

    def mixture(self, mean: np.ndarray, Phi: np.ndarray) -> Mixture:
        """The Gaussians at the points whose basis functions are Phi."""
        with limit_blas(1), np.errstate(over="ignore"):  # the noise of a hostile file may overflow
            return Mixture(mean, Phi @ self.weights, float(np.square(np.float64(self.noise))))


def started(
    table: Table, plane: lattice.PrincipalPlane, nodes: np.ndarray, n_centers: int
) -> Sheet:
    """The plane of the principal axes, and noise that fills the gaps between nodes."""
    p, q = len(table.mean), nodes.shape[1]
    across = float(np.sqrt(np.mean(nodes[:, 0] ** 2))) or 1.0
    weights = np.zeros((n_centers + q + 1, p))
    slopes = plane.deviations[:q, None] / across
    weights[-q - 1 : -1] = slopes * plane.axes[:q]
    side = round(len(nodes) ** (1 / q))
    half, rest = 0.5 * spacing(side) * float(slopes.min()), float(plane.deviations[q])
    return Sheet(weights, max(rest, half, float(np.sqrt(table.least_noise))))


class GTM(TopographicReducer):
    """p(x) = 1/K sum_k N(x; y(z_k), noise), y(z) = sum_m w_m phi_m(z), fitted by EM.

    A smooth sheet y(z) is bent through the data, and each row is a point of it plus noise. The map
    is where on the sheet a row probably comes from: its posterior mean or mode in the square
    [-1, 1]^q. It is the probabilistic sibling of the self-organizing map: it has a likelihood,
    which measures how well new rows fit, takes missing values, and goes back from the map to rows.
    Use it for up to some hundred columns. Do not use it to unroll surfaces: it starts from the
    plane of the principal axes and folds where the sheet cannot follow. Cost: O(n p K) per step.

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
    weights_: np.ndarray = fitted("n_functions", "n_features")  # of Gaussians, coordinates and 1
    noise_: float = fitted(meaning=above(0))
    size_: float = fitted(meaning=above(0))
    n_known_: int = fitted(type=int)
    mean_log_likelihood_: float = fitted()
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    size_rules = {"n_functions": "n_centers + n_components + 1"}

    card = Card(
        keeps="neighborhoods on a smooth sheet through the data; a likelihood measures how well it "
        "fits",
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
        gaps="A gap is a part of the sheet that spans a region without rows; its width in the map "
        "has little meaning.",
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
        """See :meth:`Declared.inconsistency`: the nodes are those of a grid."""
        side = round(len(self.nodes_) ** (1 / int(self.n_components)))
        if len(self.nodes_) != side ** int(self.n_components) or not len(self.nodes_):
            return f"{len(self.nodes_)} 'nodes_', which is not a grid"
        return super().inconsistency()

    def net(self) -> lattice.Net:
        """See :meth:`TopographicReducer.net`: the images of the nodes."""
        self._require_fitted()
        q = int(self.n_components)
        side = round(len(self.nodes_) ** (1 / q))
        edges = lattice.Lattice("rectangle", (side,) * q, (False,) * q).edges()
        return lattice.Net(self.inverse_transform(self.nodes_), edges)

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
        with limit_blas(1):
            found = survey(rows, "GTM", scatter=True, n_jobs=self.n_jobs, monitor=run.monitor)
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
        Phi = self._basis()(self.nodes_)
        penalties = self._basis().penalties(float(self.alpha) / table.size**2)

        def evaluated(sheet: Sheet) -> tuple[Sums, float, float]:
            """Posteriors, the loss, and the log-likelihood per value."""
            mixture = sheet.mixture(table.mean, Phi)
            sums = e_step(table, mixture, source.sums(mixture))
            likelihood = sums.log_likelihood / table.n_known + np.log(table.size)
            # what the prior of the weights takes from the likelihood
            penalty = 0.5 * float(np.sum(penalties[:, None] * sheet.weights**2))
            return sums, penalty / table.n_known - likelihood, likelihood

        sheet = started(table, source.plane(q + 1, run), self.nodes_, len(self.basis_centers_))
        sums, loss, likelihood = evaluated(sheet)
        losses = [loss]
        for step in range(1, int(self.max_iter) + 1):
            W, noise = m_step(table, Phi, sums, penalties, sheet.noise**2)
            tried = Sheet(W, float(np.sqrt(noise)))
            new_sums, loss, new_likelihood = evaluated(tried)
            if not loss <= losses[-1]:  # by rounding only
                break
            sheet, sums, likelihood = tried, new_sums, new_likelihood
            losses.append(loss)
            self.weights_, self.noise_ = sheet  # for the map that a callback gets
            stop = run.monitor.iteration(step, places, loss, total=int(self.max_iter))
            if stop or losses[-2] - loss < self.tol:
                break
        self.weights_, self.noise_ = sheet
        self.loss_history_, self.n_iter_ = np.array(losses), len(losses) - 1
        self.mean_log_likelihood_ = likelihood

    def _sides(self, n: int) -> tuple[int, int]:
        """Nodes and basis functions per axis."""
        side, m, q = self.n_nodes, self.n_basis, int(self.n_components)
        if isinstance(side, str):
            side = NODES[q]
        if isinstance(m, str):
            m = min(max(2, round((n / ROWS_PER_CENTER) ** (1 / q))), MOST_CENTERS[q])
        return int(side), int(m)

    def _require_room(self, shape: tuple[int, int], held: int, item_bytes: int) -> None:
        """Refuse work that does not fit in memory together with the ``held`` rows of a table."""
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

    def _mixture(self, Z: np.ndarray) -> Mixture:
        """The Gaussians at the images of points Z of the map."""
        return Sheet(self.weights_, self.noise_).mixture(self.mean_, self._basis()(Z))

    @property
    def log_likelihood_(self) -> float:
        """log p of the fitted table, the sum over its rows, without the penalty."""
        self._require_fitted()
        return self.n_known_ * float(self.mean_log_likelihood_ - np.log(self.size_))

    def _posteriors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of checked rows at the nodes."""
        with self._running() as run:
            return self._mixture(self.nodes_).posteriors(X, run.threads)

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
        mixture = self._mixture(Z)
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
