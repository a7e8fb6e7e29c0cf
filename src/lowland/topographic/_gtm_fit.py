"""Generative topographic mapping: the start, and EM over rows in memory or read leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from lowland._core.context import FitContext
from lowland._core.monitor import Monitor
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.threads import limit_blas, resolve_n_jobs
from lowland._core.validation import as_dense
from lowland._engines.grids.principal_plane import (
    PrincipalPlane,
    plane_of_leaves,
    principal_plane,
)
from lowland._engines.linalg.moments import known_moments
from lowland._engines.linalg.streamed_moments import Survey
from lowland.topographic._gtm_basis import Basis, spacing
from lowland.topographic._gtm_em import (
    Mixture,
    Sums,
    Table,
    added,
    e_step,
    m_step,
    penalty_of,
    posterior_sums,
)


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


class InLeaves:
    """Rows that are read leaf by leaf: a pass for each call."""

    def __init__(self, rows: Rows, found: Survey, n_jobs: int | None, monitor: Monitor) -> None:
        self.rows, self.found, self.n_jobs, self.monitor = rows, found, n_jobs, monitor
        self.table = Table(found.n_rows, found.mean, found.known, float(found.squares.sum()))

    def plane(self, n_axes: int, run: FitContext) -> PrincipalPlane:
        return plane_of_leaves(self.rows, self.found, n_axes, self.n_jobs, run)

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
