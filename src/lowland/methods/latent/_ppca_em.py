"""Probabilistic PCA with missing values: EM with expanded parameters, extrapolated.

    x = mean + W z + e,   z ~ N(0, I),   e ~ N(0, noise I)

A step of EM regresses each column on the posterior places of the rows that know it. Meanwhile the
places may have any mean and covariance, which mean and W take up afterwards: parameter expansion
(Liu, Rubin & Wu 1998). Anderson's extrapolation (Walker & Ni 2011) combines the last steps to one
that goes further, and is taken only if the likelihood does not fall.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.rows.table import Rows
from lowland._base.validation import is_sparse
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.linalg.moments import (
    known_moments,
    moments,
    moments_of_chunks,
    sums_of_columns,
)
from lowland._engines.linalg.principal_axes import (
    COVARIANCE_COLUMNS,
    GRAM_ROWS,
    PrincipalAxes,
    by_covariance,
    by_gram,
    by_krylov,
    by_krylov_in_chunks,
    leading_axes,
    principal_axes_cost,
)
from lowland._engines.linalg.products import row_blocks, rows_within

LEAST_NOISE = 1e-8  # of the mean variance: the likelihood of rows in a plane has no bound
MEMORY = 10  # steps that are combined
SINGULAR = 1e-8  # shares of the largest singular value that are no direction of their own
START_VALUES = 2**23  # the start is from so many values at most
START_ROWS = 1000
LEAST_WEIGHT = 0.01  # of the variance on an axis at the start: axes of weight 0 would stay so


class Table(NamedTuple):
    """Rows, NaN where unknown, with the numbers and means of the known values of each column."""

    X: np.ndarray
    known: np.ndarray
    mean: np.ndarray
    size: float  # root mean squared deviation of a value from its column's mean; 1 if all are equal

    @classmethod
    def of(cls, X: np.ndarray) -> Table:
        X = np.ascontiguousarray(X)
        known, mean, squares = known_moments(X)
        size = float(np.sqrt(squares.sum() / known.sum())) or 1.0
        return cls(X, known, mean, size)

    @property
    def n_known(self) -> int:
        return int(self.known.sum())

    @property
    def least_noise(self) -> float:
        return LEAST_NOISE * self.size**2

    def loss(self, log_likelihood: float) -> float:
        """Minus the log-likelihood per value, of the table in units of ``size``."""
        return -log_likelihood / self.n_known - float(np.log(self.size))


class Gaussian(NamedTuple):
    """x ~ N(mean, W W^T + noise I), W of shape (p, q)."""

    mean: np.ndarray
    W: np.ndarray
    noise: float

    def posteriors(
        self, X: np.ndarray, threads: int, *, covariances: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """E[z | x], log p(x) and Cov[z | x] as triangles (if asked for) of known values."""
        n, q = len(X), self.W.shape[1]
        Z, logs = np.empty((n, q)), np.empty(n)
        C = np.empty((n, q * (q + 1) // 2 if covariances else 0))
        _native.ppca_posteriors(
            np.ascontiguousarray(X), self.mean, self.W, self.noise, Z, logs, C, threads
        )
        return Z, logs, C


class Sums(NamedTuple):
    """What an E step leaves, with u = (z, 1): see ``_native/latent/ppca.h``."""

    log_likelihood: float
    squares: np.ndarray
    products: np.ndarray
    grams: np.ndarray
    total: np.ndarray


class Maximum(NamedTuple):
    """The model that EM ends with, and the losses of all steps."""

    model: Gaussian
    losses: np.ndarray


def e_step(table: Table, model: Gaussian, threads: int) -> Sums:
    """Posteriors of all rows, summed up at once."""
    (n, p), q = table.X.shape, model.W.shape[1]
    n_moments = (q + 1) * (q + 2) // 2
    logs, squares, products = np.empty(n), np.empty(p), np.empty((p, q + 1))
    grams, total = np.empty((p, n_moments)), np.empty(n_moments)
    rare = (2 * table.known < n).astype(np.uint8)
    _native.ppca_sums(
        table.X, model.mean, model.W, model.noise, rare, logs, squares, products, grams, total,
        threads,
    )  # fmt: skip
    return Sums(float(np.sum(logs)), squares, products, grams, total)


def m_step(table: Table, model: Gaussian, sums: Sums) -> Gaussian:
    """The regressions x_j = v_j . u and their noise; then the moments of z become 0 and I."""
    (n, p), q = table.X.shape, model.W.shape[1]
    V, error = np.empty((p, q + 1)), 0.0
    for columns in row_blocks(p, rows_within(8 * (q + 1) ** 2)):
        A, b = _square(sums.grams[columns], q + 1), sums.products[columns]
        v = V[columns] = _solved(A, b)
        error += float(np.sum(sums.squares[columns]) - 2 * np.sum(v * b))
        error += float(np.sum(v * np.einsum("jab,jb->ja", A, v)))
    moments = _square(sums.total[None], q + 1)[0] / n
    center = moments[:q, q]
    values, axes = all_eigenpairs(moments[:q, :q] - np.outer(center, center))
    root = (axes * np.sqrt(np.maximum(values, 0))) @ axes.T
    noise = max(error / table.n_known, table.least_noise)
    return Gaussian(model.mean + V[:, q] + V[:, :q] @ center, V[:, :q] @ root, noise)


def _square(triangles: np.ndarray, k: int) -> np.ndarray:
    """Symmetric matrices (m, k, k) from their lower triangles."""
    A = np.empty((len(triangles), k, k))
    a, b = np.tril_indices(k)
    A[:, a, b] = A[:, b, a] = triangles
    return A


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A_j^-1 b_j of positive definite matrices, scaled to a unit diagonal."""
    unit = 1 / np.sqrt(np.einsum("jaa->ja", A))
    scaled = A * unit[:, :, None] * unit[:, None, :]
    try:
        return np.linalg.solve(scaled, (b * unit)[:, :, None])[:, :, 0] * unit
    except np.linalg.LinAlgError:  # columns with fewer known values than axes, without noise
        inverse = np.linalg.pinv(scaled, hermitian=True)
        return np.einsum("jab,jb->ja", inverse, b * unit) * unit


def started(table: Table, q: int, run: FitContext) -> Gaussian:
    """PCA of some rows, evenly spaced, with the means of the columns in place of gaps."""
    n, p = table.X.shape
    count = min(n, max(START_ROWS, 4 * q, START_VALUES // p))
    rows = table.X[np.linspace(0, n - 1, count).astype(np.intp)]
    filled = np.where(np.isnan(rows), table.mean, rows)
    found = leading_axes(filled, q, run.threads, np.random.default_rng(0), run.monitor)
    rest = found.total_variance - float(found.variances.sum())
    noise = max(rest / max(1, p - q), table.least_noise)
    weights = np.maximum(found.variances - noise, LEAST_WEIGHT * found.variances)
    W = found.axes.T * np.sqrt(np.maximum(weights, table.least_noise))
    return Gaussian(table.mean, np.ascontiguousarray(W), noise)


def maximized(table: Table, q: int, max_iter: int, tol: float, run: FitContext) -> Maximum:
    """EM until two steps lower the loss by less than ``tol``; the loss never rises."""
    model = started(table, q, run)
    sums = e_step(table, model, run.threads)
    losses, past = [table.loss(sums.log_likelihood)], Extrapolation(table)
    for step in range(1, max_iter + 1):
        after = m_step(table, model, sums)
        further = past.combined(model, after)
        tried = after if further is None else further
        tried_sums = e_step(table, tried, run.threads)
        if further is not None and not tried_sums.log_likelihood >= sums.log_likelihood:
            past.forget()
            tried, tried_sums = after, e_step(table, after, run.threads)
        loss = table.loss(tried_sums.log_likelihood)
        if not loss <= losses[-1]:  # by rounding only
            break
        model, sums = tried, tried_sums
        losses.append(loss)
        stop = run.monitor.iteration(step, model.W, loss, total=max_iter)
        if stop or (step > 1 and losses[-3] - loss < tol):
            break
    return Maximum(model, np.array(losses))


class Extrapolation:
    """Anderson's: of the affine combinations of the last steps the one that would move least."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.ends: list[np.ndarray] = []
        self.moves: list[np.ndarray] = []

    def combined(self, before: Gaussian, after: Gaussian) -> Gaussian | None:
        """The combination with this step; None if it is the first."""
        end = self._flat(after)
        self.ends.append(end)
        self.moves.append(end - self._flat(before))
        if len(self.ends) > MEMORY + 1:
            del self.ends[0], self.moves[0]
        if len(self.ends) == 1:
            return None
        differences = np.diff(self.moves, axis=0).T
        share = np.linalg.lstsq(differences, self.moves[-1], rcond=SINGULAR)[0]
        return self._model(end - np.einsum("sk,s->k", np.diff(self.ends, axis=0), share))

    def forget(self) -> None:
        """All steps but the last."""
        del self.ends[:-1], self.moves[:-1]

    def _flat(self, model: Gaussian) -> np.ndarray:
        """Parameters in units of the data; the noise counts as much as all columns."""
        mean, W, noise = model
        size, weight = self.table.size, np.sqrt(len(mean))
        rest = [(mean - self.table.mean) / size, [weight * np.log(noise / size**2)]]
        return np.concatenate([(W / size).ravel(), *rest])

    def _model(self, flat: np.ndarray) -> Gaussian:
        p, size = len(self.table.mean), self.table.size
        W = flat[: -p - 1].reshape(p, -1) * size
        with np.errstate(over="ignore"):
            noise = size**2 * float(np.exp(flat[-1] / np.sqrt(p)))
        return Gaussian(
            self.table.mean + flat[-p - 1 : -1] * size, W, max(noise, self.table.least_noise)
        )


# Probabilistic PCA of a table without gaps: the maximum of the likelihood (Tipping & Bishop).


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


def of_chunks(rows: Rows, q: int, run: FitContext) -> ClosedForm:
    """The same of a table in chunks: one pass, or some ten for more than 3000 columns."""
    if rows.shape[1] <= COVARIANCE_COLUMNS:
        sums = moments_of_chunks(rows, "PPCA", run.threads, run.monitor)
        return of_axes(by_covariance(sums, q, scaled=False), q)
    columns = sums_of_columns(rows, run.monitor)
    run = run._replace(rng=np.random.default_rng(0))
    return of_axes(by_krylov_in_chunks(rows, columns, q, False, run), q)


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
    return by_krylov(X, q, False, run._replace(rng=np.random.default_rng(0)))
