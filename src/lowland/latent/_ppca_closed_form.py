"""Probabilistic PCA of a table without gaps: the maximum of the likelihood (Tipping & Bishop)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.memory import require_memory
from lowland._core.rows.table import Rows
from lowland._core.validation import is_sparse
from lowland._engines.linalg.moments import moments
from lowland._engines.linalg.principal_axes import (
    COVARIANCE_COLUMNS,
    GRAM_ROWS,
    PrincipalAxes,
    by_covariance,
    by_gram,
    by_krylov,
    principal_axes_cost,
)
from lowland._engines.linalg.row_axes import (
    by_krylov_in_leaves,
    moments_of_leaves,
    sums_of_columns,
)
from lowland.latent._ppca_em import LEAST_NOISE, Gaussian

ROUNDING = 1e-13  # of a column's variance: less than this is left by rounding


class ClosedForm(NamedTuple):
    """The model, the size of a value, their number, and minus log p per value of that size."""

    model: Gaussian
    size: float
    n_known: int
    loss: float


def closed_form(X: Any, q: int, run: FitContext) -> ClosedForm:
    """W = U_q (L_q - s^2 I)^(1/2), and s^2 the mean of the other eigenvalues of the covariance."""
    n, p = X.shape
    require_memory(
        int(principal_axes_cost(n, p, q).n_bytes),
        task=f"PPCA with {q} axes for {n} rows and {p} columns",
        alternative="fewer axes, or fewer columns",
    )
    return of_axes(_axes(X, q, run), q)


def of_leaves(rows: Rows, q: int, run: FitContext) -> ClosedForm:
    """The same of a table in leaves: one pass, or some ten for more than 3000 columns."""
    if rows.shape[1] <= COVARIANCE_COLUMNS:
        sums = moments_of_leaves(rows, "PPCA", run.threads, run.monitor)
        return of_axes(by_covariance(sums, q, scaled=False), q)
    columns = sums_of_columns(rows, run.monitor)
    rng = np.random.default_rng(0)
    return of_axes(by_krylov_in_leaves(rows, columns, q, False, run.threads, rng, run.monitor), q)


def of_axes(found: PrincipalAxes, q: int) -> ClosedForm:
    """The model with these q axes."""
    n, p = found.n_rows, len(found.mean)
    values = found.variances * ((n - 1) / n)  # the likelihood wants divisor n
    columns = found.column_variances * ((n - 1) / n)
    size = float(np.sqrt(columns.sum() / p)) or 1.0
    rest = _left_out(columns, values, found.axes)
    least = LEAST_NOISE * float(np.min(columns[columns > 0], initial=size**2))
    noise = max(rest / (p - q) if q < p else 0.0, least)
    modeled = np.maximum(values, noise)
    W = np.ascontiguousarray(found.axes.T * np.sqrt(modeled - noise))
    # -2 log p of a row = p log(2 pi) + log |C| + tr(C^-1 S), in units of the size
    volume = float(np.sum(np.log(modeled / size**2))) + (p - q) * float(np.log(noise / size**2))
    spread = float(np.sum(values / modeled)) + rest / noise
    loss = 0.5 * (float(np.log(2 * np.pi)) + (volume + spread) / p)
    return ClosedForm(Gaussian(found.mean, W, noise), size, n * p, loss)


def _left_out(columns: np.ndarray, values: np.ndarray, axes: np.ndarray) -> float:
    """The variance that is on no axis, column by column: a large one must not hide the others."""
    rest = columns - np.einsum("k,kj->j", values, axes**2)
    return float(np.sum(rest[rest > ROUNDING * columns]))


def _axes(X: Any, q: int, run: FitContext) -> PrincipalAxes:
    """By the covariance, the inner products of the rows, or neither, whichever is small."""
    n, p = X.shape
    if p <= COVARIANCE_COLUMNS:
        return by_covariance(moments(X, run.threads, run.monitor), q, scaled=False)
    if n <= GRAM_ROWS and not is_sparse(X):
        return by_gram(X, q, False, run.threads)
    return by_krylov(X, q, False, run.threads, np.random.default_rng(0), run.monitor)
