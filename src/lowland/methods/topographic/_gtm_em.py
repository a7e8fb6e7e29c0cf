"""Generative topographic mapping: the E step and the M step of the mixture of its nodes.

    p(x) = 1/K sum_k N(x; y_k, noise),   y_k = W^T phi(z_k)

With missing values each Gaussian is that of the known columns. Rows and nodes are centered here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.validation import as_dense
from lowland._engines.grids.lattice import PrincipalPlane, plane_of_chunks, principal_plane
from lowland._engines.linalg.moments import Survey, known_moments

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
    together = (
        [(whole, masses[:, whole[0]] if table.missing else masses[:, 0])] if len(whole) else []
    )
    return together + [(alone[j : j + 1], masses[:, alone[j]]) for j in range(len(alone))]


def _solved(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^-1 B of a positive definite matrix; the least solution if it is singular to rounding."""
    try:
        factor = scipy.linalg.cho_factor(A, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(A, B, rcond=SINGULAR)[0]
    pivots = np.diag(factor[0]) ** 2
    if pivots.min() < SINGULAR * pivots.max():
        return np.linalg.lstsq(A, B, rcond=SINGULAR)[0]
    return scipy.linalg.cho_solve(factor, B, check_finite=False)


def penalty_of(W: np.ndarray, penalties: np.ndarray) -> float:
    """1/2 sum_m penalties_m |w_m|^2: what the prior of the weights takes from the likelihood."""
    return 0.5 * float(np.sum(penalties[:, None] * W**2))


# Generative topographic mapping: the start, and EM over rows in memory or read in chunks.


class Source(Protocol):
    """Rows that a sheet is bent through."""

    @property
    def table(self) -> Table:
        """What is known of all rows."""
        ...

    def plane(self, n_axes: int, run: FitContext) -> PrincipalPlane:
        """The plane of the first principal axes."""
        ...

    def sums(self, mixture: Mixture) -> Sums:
        """:func:`posterior_sums` of all rows."""
        ...


class InMemory:
    """Dense rows."""

    def __init__(self, X: np.ndarray, threads: int) -> None:
        self.X, self.threads = np.ascontiguousarray(X), threads
        known, mean, squares = known_moments(self.X)
        self.table = Table(len(X), mean, known, float(squares.sum()))

    def plane(self, n_axes: int, run: FitContext) -> PrincipalPlane:
        return principal_plane(self.X, n_axes, run)

    def sums(self, mixture: Mixture) -> Sums:
        return posterior_sums(self.X, mixture, self.table.missing, self.threads)


class InChunks:
    """Rows that are read in chunks: a pass for each call."""

    def __init__(self, rows: Rows, found: Survey, n_jobs: int | None, monitor: Monitor) -> None:
        self.rows, self.found, self.n_jobs, self.monitor = rows, found, n_jobs, monitor
        known, mean, squares = found.columns[:3]
        self.table = Table(found.n_rows, mean, known, float(squares.sum()))

    def plane(self, n_axes: int, run: FitContext) -> PrincipalPlane:
        return plane_of_chunks(self.rows, self.found, n_axes, self.n_jobs, run)

    def sums(self, mixture: Mixture) -> Sums:
        f = BlockSums(mixture, self.table.missing, self.n_jobs)
        total: Sums = self.rows.total(f, added, self.monitor, "step")
        return total


class BlockSums:
    """:func:`posterior_sums` of one block."""

    def __init__(self, mixture: Mixture, missing: bool, n_jobs: int | None) -> None:
        self.mixture, self.missing, self.n_jobs = mixture, missing, n_jobs

    def __call__(self, block: Block) -> Sums:
        X: Any = as_dense(block.X, "GTM")
        return posterior_sums(X, self.mixture, self.missing, resolve_n_jobs(self.n_jobs))


class Sheet(NamedTuple):
    """Weights of the basis functions, and the standard deviation of the noise."""

    weights: np.ndarray
    noise: float

    def mixture(self, mean: np.ndarray, Phi: np.ndarray) -> Mixture:
        """The Gaussians at the points whose basis functions are Phi."""
        with limit_blas(1), np.errstate(over="ignore"):  # the noise of a hostile file may overflow
            return Mixture(mean, Phi @ self.weights, float(np.square(np.float64(self.noise))))


class Fit(NamedTuple):
    """The best sheet, the loss at the start and after each step, and the likelihood per value."""

    sheet: Sheet
    losses: list[float]
    mean_log_likelihood: float


def started(table: Table, plane: PrincipalPlane, nodes: np.ndarray, n_centers: int) -> Sheet:
    """The plane of the principal axes, and noise that fills the gaps between nodes."""
    p, q = len(table.mean), nodes.shape[1]
    across = float(np.sqrt(np.mean(nodes[:, 0] ** 2))) or 1.0
    weights = np.zeros((n_centers + q + 1, p))
    slopes = plane.deviations[:q, None] / across
    weights[-q - 1 : -1] = slopes * plane.axes[:q]
    side = round(len(nodes) ** (1 / q))
    half, rest = 0.5 * spacing(side) * float(slopes.min()), float(plane.deviations[q])
    return Sheet(weights, max(rest, half, float(np.sqrt(table.least_noise))))


def maximized(
    source: Source,
    sheet: Sheet,
    basis: Basis,
    nodes: np.ndarray,
    alpha: float,
    *,
    max_iter: int,
    tol: float,
    report: Callable[[int, Sheet, float], bool],
) -> Fit:
    """EM: posteriors of the nodes, then weights and noise, until the loss stays.

    ``report(step, sheet, loss)`` is True to stop.
    """
    table, Phi = source.table, basis(nodes)
    penalties = basis.penalties(alpha / table.size**2)
    scale = np.log(table.size)

    def evaluated(sheet: Sheet) -> tuple[Sums, float]:
        mixture = sheet.mixture(table.mean, Phi)
        sums = e_step(table, mixture, source.sums(mixture))
        return sums, penalty_of(sheet.weights, penalties) / table.n_known - per_value(sums)

    def per_value(sums: Sums) -> float:
        return sums.log_likelihood / table.n_known + scale

    sums, loss = evaluated(sheet)
    losses = [loss]
    for step in range(1, max_iter + 1):
        before = sheet, sums
        weights, noise = m_step(table, Phi, sums, penalties, sheet.noise**2)
        sheet = Sheet(weights, float(np.sqrt(noise)))
        sums, loss = evaluated(sheet)
        if not loss <= losses[-1]:  # by rounding only
            sheet, sums = before
            break
        losses.append(loss)
        if report(step, sheet, loss) or losses[-2] - loss < tol:
            break
    return Fit(sheet, losses, per_value(sums))
