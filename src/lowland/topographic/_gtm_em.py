"""Generative topographic mapping: the mixture, its E step and its M step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from lowland import _native

__all__ = ["Rows", "Sums", "e_step", "least_noise", "m_step", "penalty_of", "posteriors"]

LEAST_NOISE = 1e-8  # of the mean variance of a column: a node on each row has no likelihood


class Rows(NamedTuple):
    """The table, its column means, how many values are known and their squared deviations."""

    X: np.ndarray
    mean: np.ndarray
    missing: bool
    known: np.ndarray  # per column
    square: float

    @property
    def size(self) -> float:
        """The root mean squared deviation of a value; 1 for a constant table."""
        return float(np.sqrt(self.square / self.known.sum())) or 1.0


class Sums(NamedTuple):
    """What the E step leaves: sums (k, p) of rows by posteriors, masses, log-likelihood."""

    rows: np.ndarray
    masses: np.ndarray
    log_likelihood: float


def least_noise(table: Rows) -> float:
    return LEAST_NOISE * table.size**2


def log_density(logs: np.ndarray, known: np.ndarray | int, k: int, noise: float) -> np.ndarray:
    """log p(x) = log 1/k sum_k N(x; y_k, noise), from the logs of the kernels."""
    return logs - np.log(k) - 0.5 * known * np.log(2 * np.pi * noise)


def posteriors(
    X: np.ndarray, mean: np.ndarray, nodes: np.ndarray, noise: float, missing: bool, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """r_ik of all rows and nodes, and log sum_k exp(-d_ik / (2 noise)) of all rows."""
    logs, R = np.empty(len(X)), np.empty((len(X), len(nodes)))
    _native.gtm_posteriors(X, mean, nodes, 1 / noise, missing, logs, R, threads)
    return R, logs


def e_step(table: Rows, nodes: np.ndarray, noise: float, threads: int) -> Sums:
    X = table.X
    logs, sums = np.empty(len(X)), np.empty(nodes.shape)
    masses = np.empty((len(nodes), X.shape[1] if table.missing else 1))
    _native.gtm_sums(
        X, table.mean, nodes, 1 / noise, table.missing, logs, sums, masses, threads
    )
    total = np.sum(logs) - len(X) * np.log(len(nodes))
    known = float(table.known.sum())
    return Sums(sums, masses, float(total - 0.5 * known * np.log(2 * np.pi * noise)))


def m_step(
    table: Rows, Phi: np.ndarray, sums: Sums, penalties: np.ndarray, noise: float
) -> tuple[np.ndarray, float]:
    """(Phi^T G Phi + noise diag(penalties)) W = Phi^T R^T X, then the noise around the nodes."""
    W = np.empty((Phi.shape[1], sums.rows.shape[1]))
    ridge, right = np.diag(noise * penalties), Phi.T @ sums.rows
    if not table.missing:
        W[:] = _solved(Phi.T @ (sums.masses * Phi) + ridge, right)
    else:  # each column has the masses of the rows that know it
        for columns in _alike(table):
            g = sums.masses[:, columns[:1]]
            W[:, columns] = _solved(Phi.T @ (g * Phi) + ridge, right[:, columns])
    nodes = Phi @ W
    squares = table.square - 2 * np.sum(sums.rows * nodes) + np.sum(sums.masses * nodes**2)
    return W, max(float(squares / table.known.sum()), least_noise(table))


def _alike(table: Rows) -> list[np.ndarray]:
    """Columns with the same masses: the complete ones together, each other one alone."""
    complete = np.flatnonzero(table.known == len(table.X))
    alone = [np.array([j]) for j in np.flatnonzero(table.known < len(table.X))]
    return ([complete] if len(complete) else []) + alone


def _solved(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^-1 B of a positive definite matrix; the least solution where rounding makes it singular."""
    try:
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(A, check_finite=False), B)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(A, B, rcond=None)[0]


def penalty_of(W: np.ndarray, penalties: np.ndarray) -> float:
    """1/2 sum_m penalties_m |w_m|^2, what the prior of the weights takes from the likelihood."""
    return 0.5 * float(np.sum(penalties[:, None] * W**2))
