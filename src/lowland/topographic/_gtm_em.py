"""Generative topographic mapping: the E step and the M step of the mixture of its nodes.

    p(x) = 1/K sum_k N(x; y_k, noise),   y_k = W^T phi(z_k)

With missing values each Gaussian is that of the known columns. Rows and nodes are centered here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from lowland import _native

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
