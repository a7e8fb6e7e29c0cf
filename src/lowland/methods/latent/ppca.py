"""Probabilistic principal component analysis (Tipping & Bishop 1999)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.base import Invertible
from lowland._base.constraints import Integer, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import all_finite, as_dense, column_label, is_sparse
from lowland._engines.linalg import principal_axes, products
from lowland._engines.linalg.eigen import all_eigenpairs, fix_signs, thin_svd
from lowland._engines.linalg.moments import (
    known_moments,
    moments,
    moments_of_chunks,
    sums_of_columns,
)
from lowland._engines.linalg.products import row_blocks, rows_within, times_cost

# Probabilistic PCA with missing values: EM with expanded parameters, extrapolated.
#
#     x = mean + W z + e,   z ~ N(0, I),   e ~ N(0, noise I)
#
# A step of EM regresses each column on the posterior places of the rows that know it. Meanwhile the
# places may have any mean and covariance, which mean and W take up afterwards: parameter expansion
# (Liu, Rubin & Wu 1998). Anderson's extrapolation (Walker & Ni 2011) combines the last steps to one
# that goes further, and is taken only if the likelihood does not fall.


LEAST_NOISE = 1e-8  # of the mean variance: the likelihood of rows in a plane has no bound
MEMORY = 10  # steps that are combined
SINGULAR = 1e-8  # shares of the largest singular value that count as zero
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


class Fit(NamedTuple):
    """The model, the size of a value, their number, and minus log p per value of that size."""

    model: Gaussian
    size: float
    n_known: int
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
    found = principal_axes.leading_axes(
        filled, q, run.threads, np.random.default_rng(0), run.monitor
    )
    rest = found.total_variance - float(found.variances.sum())
    noise = max(rest / max(1, p - q), table.least_noise)
    weights = np.maximum(found.variances - noise, LEAST_WEIGHT * found.variances)
    W = found.axes.T * np.sqrt(np.maximum(weights, table.least_noise))
    return Gaussian(table.mean, np.ascontiguousarray(W), noise)


def maximized(table: Table, q: int, max_iter: int, tol: float, run: FitContext) -> Fit:
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
    return Fit(model, table.size, table.n_known, np.array(losses))


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


def closed_form(X: Any, q: int, run: FitContext) -> Fit:
    """W = U_q (L_q - s^2 I)^(1/2), and s^2 the mean of the other eigenvalues of the covariance."""
    n, p = X.shape
    require_memory(
        int(principal_axes.principal_axes_cost(n, p, q).n_bytes),
        task=f"PPCA with {q} axes for {n} rows and {p} columns",
        alternative="fewer axes, or fewer columns",
    )
    return of_axes(_axes(X, q, run), q)


def of_chunks(rows: Rows, q: int, run: FitContext) -> Fit:
    """The same of a table in chunks: one pass, or some ten for more than 3000 columns."""
    if rows.shape[1] <= principal_axes.COVARIANCE_COLUMNS:
        sums = moments_of_chunks(rows, "PPCA", run.threads, run.monitor)
        return of_axes(principal_axes.by_covariance(sums, q, scaled=False), q)
    columns = sums_of_columns(rows, run.monitor)
    run = run._replace(rng=np.random.default_rng(0))
    return of_axes(principal_axes.by_krylov_in_chunks(rows, columns, q, False, run), q)


def of_axes(found: principal_axes.PrincipalAxes, q: int) -> Fit:
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
    return Fit(Gaussian(found.mean, W, noise), size, n * p, np.array([loss]))


def _left_out(columns: np.ndarray, values: np.ndarray, axes: np.ndarray) -> float:
    """The variance that is on no axis, column by column: a large one must not hide the others."""
    rest = columns - np.einsum("k,kj->j", values, axes**2)
    return float(np.sum(rest[rest > ROUNDING * columns]))


def _axes(X: Any, q: int, run: FitContext) -> principal_axes.PrincipalAxes:
    """By the covariance, the inner products of the rows, or neither, whichever is small."""
    n, p = X.shape
    if p <= principal_axes.COVARIANCE_COLUMNS:
        return principal_axes.by_covariance(moments(X, run.threads, run.monitor), q, scaled=False)
    if n <= principal_axes.GRAM_ROWS and not is_sparse(X):
        return principal_axes.by_gram(X, q, False, run.threads)
    return principal_axes.by_krylov(X, q, False, run._replace(rng=np.random.default_rng(0)))


class PPCA(Invertible):
    """x = mean + W z + e, z ~ N(0, I), e ~ N(0, s^2 I): principal components with a likelihood.

    PCA as a model of the data: rows are points of a plane plus noise that is equal in all
    directions. It takes missing values (NaN) as they are: a row is placed by the values that are
    known, ``impute`` estimates the others, and ``score_samples`` measures how well a row fits. Use
    it for tables with gaps, up to ratings that are mostly gaps. Do not use it when columns have
    different units (scale them first, because the noise is the same in all), or when values are
    missing because of what they are. Cost: that of PCA without gaps; with them O(n p q) and O(q^2)
    per missing value for each of some 10 to 50 steps.

    Parameters
    ----------
    max_iter : int, default=200
        Maximum number of steps of EM. Tables without gaps need none.
    tol : float, default=0.00000001
        The fit ends when two steps lower the loss, in nats per value of the table, by less.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components) or None
        Places of the fitted rows; None after a fit to a table that is read in chunks.
    components_ : ndarray of shape (n_components, n_features)
        Principal axes in rows, of unit length, in the order of their variance.
    mean_ : ndarray of shape (n_features,)
        Means of the columns in the model. They are not the means of the known values, if these are
        another sample than the missing ones.
    explained_variance_ : ndarray of shape (n_components,)
        Variance l_k of the model along each axis, its noise included, largest first, with divisor
        n.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each axis in the total variance of the model, largest first.
    noise_variance_ : float
        Variance s^2 of the noise: the mean variance of the p - q directions left out.
    size_ : float
        Root mean squared deviation of a value from the mean of its column.
    n_known_ : int
        Number of values of the fitted table that are not missing.
    mean_log_likelihood_ : float
        Log-likelihood per value of the table in units of ``size_``.
    loss_history_ : ndarray of shape (n_losses,)
        Minus the log-likelihood per value, in units of ``size_``, at the start and after each step.
        It never rises. The closed form of tables without gaps counts as one step.

    Notes
    -----
    The map of a row is y = diag(w) E[z | known values] along the axes, where W = U diag(w) and
    w_k^2 = l_k - s^2. So it has the units of the columns, and ``inverse_transform`` is mean + U y,
    the expected row. For a row without gaps y_k is the coordinate on axis k, as in PCA, times
    (l_k - s^2) / l_k. The fewer values are known, the nearer to 0 a row is placed: what is not
    known is expected to be average.

    Without gaps the maximum of the likelihood has a closed form: the axes are those of PCA,
    with the eigenvalues l_k of the covariance (divisor n), and s^2 is the mean of the others. With
    gaps, EM maximizes the likelihood of the known values over W, mean and s^2. Its expectations are
    exact, for each row those of its known columns. Deviations from the paper: the mean is maximized
    in the same step as W; places may have any mean and covariance within a step (parameter
    expansion, Liu, Rubin & Wu 1998); steps are extrapolated (Anderson 1965), where that does not
    lower the likelihood. On digits with a tenth missing and 10 axes this takes 7 steps to 1e-8 nats
    per value, where EM takes 71; with 60 % missing 17 instead of several hundred.

    The noise variance is at least 1e-8 of the mean variance of a column, without gaps of the least
    one: the likelihood of rows in a plane has no bound. If there are as many axes as columns,
    nothing but this is left to it. A row should have several times as many known values as there
    are axes: with fewer, the likelihood prefers planes that fit the known values without noise, and
    what is imputed is worse than means.

    References
    ----------
    Tipping & Bishop (1999), Probabilistic principal component analysis, J. Royal Statistical
    Society B 61, 611-622. Liu, Rubin & Wu (1998), Parameter expansion to accelerate EM, Biometrika
    85, 755-770. Anderson (1965), Iterative procedures for nonlinear integral equations, J. ACM 12,
    547-560; Walker & Ni (2011), SIAM J. Numerical Analysis 49, 1715-1735.

    Examples
    --------
    >>> import numpy as np
    >>> from lowland.datasets import iris
    >>> X = iris().X.copy()
    >>> X[::5, 2] = np.nan
    >>> plane = PPCA(2).fit(X)
    >>> errors = plane.impute(X)[::5, 2] - iris().X[::5, 2]
    >>> bool(errors.std() < 0.3 * iris().X[:, 2].std())
    True
    """

    max_iter: int = param(Integer(0), default=200)
    tol: float = param(Real(0, closed="left"), default=1e-8)

    embedding_: np.ndarray | None = fitted("n_samples", "n_components", optional=True)
    components_: np.ndarray = fitted("n_components", "n_features")
    mean_: np.ndarray = fitted("n_features")
    explained_variance_: np.ndarray = fitted("n_components", meaning=above(0))
    explained_variance_ratio_: np.ndarray = fitted("n_components")
    noise_variance_: float = fitted(meaning=above(0))
    size_: float = fitted(meaning=above(0))
    n_known_: int = fitted(type=int)
    mean_log_likelihood_: float = fitted()
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    card = Card(
        keeps="the largest share of the variance that a plane can keep, from known values only",
        use="for tables with gaps, to fill them, and to measure how well a new row fits",
        avoid="when columns have different units, when structure is curved",
        cost="that of PCA without gaps; with gaps O(n p q) time per step, O(n p + p q^2) memory",
    )
    reference = "Tipping & Bishop (1999)"
    aliases = ("probabilistic_pca",)
    accepts_sparse = True
    allows_nan = True
    fits_rows = True
    components_limit = "rank"
    reading = Reading(
        axes="Each axis is a weighted sum of the columns, so a position along an axis has a "
        "meaning.",
        distances="Rows that are far apart in the map are far apart in the data. Rows that "
        "coincide in the map may differ in the directions that are not shown, and rows of which "
        "little is known are drawn to the middle.",
        gaps="A gap in the map is a gap in the data along these axes.",
        sizes="The spread of a group is its spread in the data along these axes, without the "
        "noise.",
        scale="The axes have the units of the columns.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: of a table without gaps."""
        return (
            Estimate(0.005, 0) + principal_axes.principal_axes_cost(n, p, 2) + times_cost(n, p, 2)
        )

    # --- fit ------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        q = self._check_components(*X.shape)
        if is_sparse(X) or all_finite(X, run.threads):
            self._keep(closed_form(X, q, run))
            self.n_iter_ = 1
        else:
            self._require_room(X.shape[1], q)
            with limit_blas(1):  # the map must not depend on the number of threads
                found = maximized(Table.of(X), q, int(self.max_iter), float(self.tol), run)
            self._keep(found)
            self.n_iter_ = len(found.losses) - 1
        self.embedding_ = self._transform(X, run)
        return self.embedding_.copy()

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        q = self._check_components(*rows.shape)
        rows = rows.map(Whole(getattr(self, "feature_names_in_", None)))
        self._keep(of_chunks(rows, q, run))
        self.embedding_, self.n_iter_ = None, 1

    def _require_room(self, p: int, q: int) -> None:
        require_memory(
            8 * p * (3 * (q + 1) ** 2 + 40 * (q + 1)),
            task=f"PPCA with {q} axes for {p} columns with missing values",
            alternative="fewer axes",
        )

    def _keep(self, fit: Fit) -> None:
        """The fitted attributes, with W = U diag(w) R turned to its principal axes U."""
        model, self.size_, self.n_known_, self.loss_history_ = fit
        p, q = model.W.shape
        turned = thin_svd(model.W)
        self.mean_, self.noise_variance_ = model.mean, model.noise
        self.components_ = np.ascontiguousarray(fix_signs(turned.left).T)
        self.explained_variance_ = turned.lengths**2 + model.noise
        total = float(self.explained_variance_.sum()) + (p - q) * model.noise
        self.explained_variance_ratio_ = self.explained_variance_ / total
        self.mean_log_likelihood_ = -float(fit.losses[-1])

    # --- the model ------------------------------------------------------------------------------

    def _weights(self) -> np.ndarray:
        """The lengths w of the columns of W."""
        return np.sqrt(np.maximum(self.explained_variance_ - self.noise_variance_, 0))

    def _model(self) -> Gaussian:
        W = self.components_.T * self._weights()
        return Gaussian(self.mean_, np.ascontiguousarray(W), float(self.noise_variance_))

    @property
    def log_likelihood_(self) -> float:
        """log p of the known values of the fitted table, the sum over its rows."""
        self._require_fitted()
        return self.n_known_ * float(self.mean_log_likelihood_ - np.log(self.size_))

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(x) of each row, over its known values."""
        rows = self._check_new_rows(X)
        logs = np.empty(rows.shape[0])
        model = self._model()
        with self._running() as run:
            for at in row_blocks(len(logs), rows_within(16 * rows.shape[1])):
                block = as_dense(rows[at], type(self).__name__)
                logs[at] = model.posteriors(block, run.threads)[1]
        return np.where(np.isnan(logs), -np.inf, logs)  # of rows far from a narrow model

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log p(x) over the rows."""
        return float(np.mean(self.score_samples(X)))

    def impute(self, X: Any, *, return_std: bool = False) -> Any:
        """X with ``inverse_transform(transform(X))`` in place of NaN; known values are kept.

        These are the expected values, given the known values of the row. With ``return_std`` their
        standard deviations are returned as well, the noise included; those of known values are 0.
        """
        rows = as_dense(self._check_new_rows(X), type(self).__name__)
        gaps = np.isnan(rows)
        with self._running() as run:
            Y = self._placed(rows, run, self._transform)
            filled = np.where(gaps, self._placed(Y, run, self._inverse_transform), rows)
            return (filled, self._deviations(rows, gaps, run)) if return_std else filled

    def _deviations(self, X: np.ndarray, gaps: np.ndarray, run: FitContext) -> np.ndarray:
        """sqrt(w_j^T C_i w_j + s^2) where x_ij is missing, with C_i the covariance of z_i."""
        model = self._model()
        found, q = np.zeros(X.shape), model.W.shape[1]
        a, b = np.tril_indices(q)
        twice = np.where(a == b, 1.0, 2.0)
        outer = np.ascontiguousarray((model.W[:, a] * model.W[:, b] * twice).T)
        for at in row_blocks(len(X), rows_within(8 * (X.shape[1] + len(a)))):
            C = model.posteriors(X[at], run.threads, covariances=True)[2]
            variances = products.times(C, np.zeros(len(a)), outer, run.threads) + model.noise
            found[at] = np.where(gaps[at], np.sqrt(variances), 0.0)
        return found.astype(X.dtype)

    # --- rows to the map and back ---------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        if is_sparse(X) or all_finite(X, run.threads):
            return self._whole_rows(X, run)
        Y = np.empty((len(X), int(self.n_components)), dtype=X.dtype)
        model, w = self._model(), self._weights()
        for at in row_blocks(len(X), rows_within(16 * X.shape[1])):
            block = X[at]
            gaps = np.isnan(block).any(axis=1)
            places = np.empty((len(block), len(w)), dtype=X.dtype)
            places[~gaps] = self._whole_rows(block[~gaps], run)
            places[gaps] = w * model.posteriors(block[gaps], run.threads)[0]
            Y[at] = places
        return Y

    def _whole_rows(self, X: Any, run: FitContext) -> np.ndarray:
        """Principal coordinates times (l - s^2) / l."""
        shrunk = self._weights() ** 2 / self.explained_variance_
        return products.times(X, self.mean_, self.components_.T * shrunk, run.threads)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        zero = np.zeros(len(self.components_))
        return products.times(Y, zero, self.components_, run.threads) + self.mean_.astype(Y.dtype)


class Whole:
    """The step that refuses rows with gaps, whose likelihood has no closed form."""

    def __init__(self, names: np.ndarray | None) -> None:
        self.names = names

    def __call__(self, X: Any) -> Any:
        if not is_sparse(X) and not all_finite(X):
            column = int(np.isnan(X).any(axis=0).argmax())
            raise DataError(
                f"PPCA: {column_label(self.names, column)} has missing values, and a fit to gaps "
                "needs all rows in memory; fit a sample, rows.sample(10_000), or fill the gaps."
            )
        return X
