"""Gaussian process latent variable model (Lawrence 2004, 2005)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Array, Integer, OneOf
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate
from lowland._base.validation import as_dense
from lowland._engines.gaussian_processes import stochastic
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import Posterior, exact_posterior, log_likelihood
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_posterior
from lowland._engines.gaussian_processes.stochastic import minus_log_prior, training_cost
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.geodesics import shortest_paths
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes, principal_axes_cost
from lowland._engines.neighbors.search import neighbor_graph, query_fitted
from lowland._engines.network.quasi_newton import minimize
from lowland._engines.stress.initial_map import given_numbers, landmark_map
from lowland.methods.latent import _base as processes

INDUCING = 150  # as likely as exact inference at 2 000 rows, in half the time
EXACT_ROWS = 2000  # inference="auto" is exact up to so many
ALL_EXACT_ROWS, LEAST_EXACT = 500, 10  # steps: all are exact up to so many rows, and at least some


def _exact_steps(n: int, max_iter: int) -> int:
    """Steps cost n^3; so many of them cost no more than in proportion to n."""
    if n <= ALL_EXACT_ROWS:
        return max_iter
    return min(max_iter, max(LEAST_EXACT, int(max_iter * (ALL_EXACT_ROWS / n) ** 2)))


# GPLVM: the maximum of log p(Y | X) + log p(X) over places, parameters and inducing points.


# GPLVM: where the rows are before the first step.


NEIGHBORS = 10  # of the graph that "isomap" measures along
LANDMARKS = 1000  # of geodesic distances
FLAT = 1e-6  # an axis that varies less, relative to the first, is set to 0


def starting_places(init: Any, Y: np.ndarray, q: int, run: FitContext) -> np.ndarray:
    """Places (n, q), centered, of unit variance along the widest axis."""
    if not isinstance(init, str):
        n = len(Y)
        X = given_numbers(init, (n, q), f"the map is {n} rows x {q} columns")
        greatest = float(np.abs(X).max())
        return _unit(X / greatest if greatest > 0 else X)
    if init == "isomap" and len(Y) > 2:
        return _unit(_geodesic_places(Y, q, run))
    return _unit(_principal_places(Y, q, run))


def _unit(X: np.ndarray) -> np.ndarray:
    X = X - X.mean(axis=0)
    widths = np.sqrt(np.mean(X**2, axis=0))
    widest = float(widths.max())
    if not widest > 0:
        return np.zeros_like(X)
    return np.where(widths > FLAT * widest, X / widest, 0.0)


def _principal_places(Y: np.ndarray, q: int, run: FitContext) -> np.ndarray:
    found = leading_axes(Y, min(q, *Y.shape), run.threads, run.rng, run.monitor)
    X = np.zeros((len(Y), q))
    X[:, : len(found.axes)] = products.times(Y, found.mean, found.axes.T, run.threads)
    return X


def _geodesic_places(Y: np.ndarray, q: int, run: FitContext) -> np.ndarray:
    """Classical scaling of distances along the neighbor graph to landmarks, as Isomap does."""
    n, threads, monitor = len(Y), run.threads, run.monitor
    m = min(n, LANDMARKS)
    require_memory(
        24 * n * m, task=f"GPLVM: the start by Isomap of {n} rows", alternative="init='ppca'"
    )
    found = neighbor_graph(Y, min(NEIGHBORS, n - 1), threads=threads, rng=run.rng, monitor=monitor)
    graph = connect(symmetrize(found), Y, threads=threads, monitor=monitor).graph
    chosen = np.sort(run.rng.choice(n, m, replace=False))
    paths = shortest_paths(graph, chosen, threads=threads, monitor=monitor)
    return landmark_map(paths, chosen, min(q, m), run)


VARIANCE, LENGTH, WEIGHT, BIAS = (1e-3, 1e3), (1e-2, 1e3), (1e-6, 1e2), (1e-6, 1e2)
NOISE = (1e-5, 1e1)  # variance, relative to that of the columns
FIRST_BIAS = 0.1


class Start(NamedTuple):
    """Length scales and noise variance at the start; the step of places relative to logarithms."""

    length: float
    noise: float
    step: float


# A linear start is almost linear, and its places move sooner than lengths shrink: the map unfolds.
# From a map that is unrolled already, such a process would roll it up again.
FROM_LINEAR, FROM_MAP = Start(10.0, 0.5, 10.0), Start(1.0, 0.1, 1.0)


class State(NamedTuple):
    """Places, log parameters, log noise variance, and inducing points; these None if exact."""

    X: np.ndarray
    theta: np.ndarray
    log_noise: float
    Z: np.ndarray | None

    def posterior(self, covariance: Covariance, Y: np.ndarray, threads: int) -> Posterior:
        """Of the rows at these places."""
        process = (covariance, self.theta, self.log_noise, self.X)
        if self.Z is None:
            return exact_posterior(*process, Y, threads)
        return sparse_posterior(SparseProcess(*process, self.Z), Y, threads)


def in_length_scales(covariance: Covariance, state: State) -> tuple[State, np.ndarray]:
    """The same model with axes in units of their length scales, the most relevant axis first.

    Also the deviations of the prior along these axes, which were 1.
    """
    factors = covariance.factors(state.theta)
    order = np.argsort(-factors, kind="stable")
    factors = factors[order]
    theta = covariance.stretched(covariance.permuted(state.theta, order), factors)
    Z = None if state.Z is None else state.Z[:, order] * factors
    return State(state.X[:, order] * factors, theta, state.log_noise, Z), factors


class Trained(NamedTuple):
    """The last state, its log-likelihood per value, and the losses per value."""

    state: State
    mean_log_likelihood: float
    losses: np.ndarray


class Training(NamedTuple):
    """Standardized rows, and the step of their places relative to that of logarithms."""

    covariance: Covariance
    Y: np.ndarray
    tol: float
    step: float
    run: FitContext

    def exactly(self, start: State, max_iter: int, done: int = 0) -> Trained:
        """L-BFGS on X / step, the logarithms of the parameters and that of the noise variance."""
        (n, D), k, step = self.Y.shape, len(start.theta), self.step
        seen = self._with_fewer_columns()

        def state_of(vector: np.ndarray) -> State:
            X = step * vector[k + 1 :].reshape(start.X.shape)
            return State(X, vector[:k], float(vector[k]), None)

        def negative(vector: np.ndarray) -> tuple[float, np.ndarray]:
            X, theta, log_noise, _ = state_of(vector)
            process = (self.covariance, theta, log_noise)
            f = log_likelihood(*process, X, seen, D, self.run.threads)
            slope = np.concatenate([-f.theta, [-f.noise], step * (X - f.X).ravel()])
            return (minus_log_prior(X) - f.value) / (n * D), slope / (n * D)

        free = np.full(start.X.size, np.inf)
        least, most = self._bounds()
        found = minimize(
            negative,
            np.concatenate([start.theta, [start.log_noise], start.X.ravel() / step]),
            max_iter=max_iter,
            tol=self.tol,
            monitor=self.run.monitor,
            show=lambda vector: state_of(vector).X,
            bounds=(np.concatenate([least, -free]), np.concatenate([most, free])),
            done=done,
        )
        last = state_of(found.point)
        likelihood = minus_log_prior(last.X) / (n * D) - float(found.losses[-1])
        return Trained(last, likelihood, found.losses)

    def sparsely(self, start: State, max_iter: int, in_parts: bool) -> Trained:
        """The bound by inducing points in place of the likelihood, on all rows or growing parts."""
        X, theta, log_noise, Z = start
        found = stochastic.train(
            SparseProcess(self.covariance, theta, log_noise, X, Z),
            self._with_fewer_columns(),
            self.run,
            max_iter=max_iter,
            tol=self.tol,
            bounds=self._bounds(),
            step=self.step,
            in_parts=in_parts,
            n_columns=self.Y.shape[1],
        )
        _, theta, log_noise, X, Z = found.process
        state = State(X, theta, log_noise, Z)
        return Trained(state, found.bound / self.Y.size, found.losses)

    def _with_fewer_columns(self) -> np.ndarray:
        """A table with the same inner products of rows, and at most as many columns as rows."""
        if self.Y.shape[1] <= len(self.Y):
            return self.Y
        return np.ascontiguousarray(np.linalg.qr(self.Y.T, mode="r").T)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest logarithms of the parameters and of the noise variance."""
        ends = zip(VARIANCE, LENGTH, WEIGHT, BIAS, strict=True)
        vectors = [self.covariance.vector(*end) for end in ends]
        least, most = (np.append(v, np.log(s)) for v, s in zip(vectors, NOISE, strict=True))
        return least, most


class GPLVM(processes.GaussianProcessReducer):
    """max over X of log p(Y | X) + log p(X), p(Y | X) = prod_j N(y_j; 0, k(X, X) + noise I).

    Each column y_j of the table is a draw of one Gaussian process of the unknown places X of the
    rows, plus noise; the places are those under which the table is most probable. With a linear
    covariance they are the principal components; the smooth ones bend the sheet. The map has a
    likelihood, a smooth way back to rows, and states where it is uncertain. Use it for some hundred
    to some thousand rows of noisy, smoothly varying data. Do not use it for distances: only rows
    that are near in the map are known to be similar. Cost: O(n^3) per step, or O(n m^2 + n m p)
    with m inducing points.

    Parameters
    ----------
    init : {"ppca", "isomap"} or array of shape (n, n_components), default="ppca"
        Where the rows start: principal components, Isomap, or given places. Isomap is classical
        scaling of distances along the graph of 10 neighbors. Of given places only the shape
        matters, not the scale.
    inference : {"auto", "exact", "sparse", "stochastic"}, default="auto"
        How the likelihood is computed: exactly, by a bound, or by a bound on parts of the rows. The
        lower bound has inducing points; random parts of the rows grow to the whole table. "auto"
        is exact up to 2 000 rows and stochastic beyond.
    n_inducing : int, default=150
        Number of inducing points. More are a finer sheet. Exact inference of more than 500 rows
        uses them in its first steps.
    max_iter : int, default=200
        Maximum number of steps. 0 gives the start.
    tol : float, default=0.0000001
        The fit ends when a step lowers the loss by less than this share of it. The loss is in nats
        per value of the table, and counts as 1 if it is less.

    Attributes
    ----------
    fitted_rows_ : ndarray of shape (n_samples, n_features)
        The rows of the fit, which keep their places.
    prior_deviations_ : ndarray of shape (n_components,)
        Standard deviation of the prior of the places, in length scales, in the order of the axes.

    Notes
    -----
    As in the paper: standard normal prior of the places, start at the principal components,
    places and parameters optimized together. Deviations: L-BFGS instead of scaled conjugate
    gradients. One number, not one per column, scales the table. The prior cannot tell the scale of
    the places, since shorter lengths give the same likelihood; they shrink slowly as a fit goes on.

    In units of the table's variance, parameters are bounded: noise variance 1e-5 to 10, variance
    1e-3 to 1e3, weights and bias 1e-6 to 100; length scales from 0.01 to 1 000.

    From principal components, the first process is almost linear: places of unit variance, lengths
    of 10, and half of the variance as noise; and places take ten times longer steps than the
    logarithms of the parameters, so that the map unfolds before the lengths shrink. On 500 rows of
    digits this gave a trustworthiness of .97 and on 500 of oil flow of .99, against .94 and .96
    from lengths of 3 with equal steps. From Isomap or given places, which may be unrolled already,
    lengths are 1, a tenth of the variance is noise, and all steps are equal: so 600 rows of a swiss
    roll and of an s curve stay flat (a quadratic function of the map explains .95 and 1.00 of the
    true coordinates; from an almost linear process .49 and .81). Principal components tear them.
    Use Isomap for bent sheets; on digits, iris, a circle, a survey and clusters principal
    components were better, or as good.

    Of more than 500 rows, (500 / n)^2 of the steps are exact, at least 10, after others on the
    bound with inducing points. On 600 rows, half of the steps on the bound gave per value -.793 on
    digits and .495 on oil flow, exact steps only -.791 and .405.

    Afterwards the axes are brought to the units of their length scales, the most relevant first:
    then the covariance of two rows depends on their distance in the map alone. This raised the
    trustworthiness on iris from .91 to .98 and on wine from .93 to .95.

    A new row goes where the density of row and place is highest, as far as eight starts and Newton
    steps from the best three find it. Rows of the fit keep their places; searched like new ones,
    nine of ten land within 0.02 of these, and up to one in twenty elsewhere. With more than 500
    inputs there are fewer starts. Standardized values beyond 1e8 are taken as 1e8.

    In the map of oil flow (1 000 rows) 2 rows have a nearest neighbor of another class, in that of
    PCA 162, of GTM 7, of t-SNE 2; of 2 000 held-out rows 15 (GTM 27).

    References
    ----------
    Lawrence (2005), Probabilistic non-linear principal component analysis with Gaussian process
    latent variable models, Journal of Machine Learning Research 6, 1783-1816. Titsias (2009),
    Variational learning of inducing variables in sparse Gaussian processes, AISTATS.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> gplvm = GPLVM(random_state=0)
    >>> gplvm.fit_transform(iris().X).shape
    (150, 2)
    >>> rows, deviation = gplvm.inverse_transform([[0.0, 0.5]], return_std=True)
    >>> rows.shape, deviation.shape
    ((1, 4), (1,))
    """

    n_inducing: int = param(Integer(1, processes.MOST_INDUCING), default=INDUCING)
    init: Any = param(OneOf("ppca", "isomap") | Array(), default="ppca")

    fitted_rows_: np.ndarray = fitted("n_samples", "n_features")
    prior_deviations_: np.ndarray = fitted("n_components", meaning=above(0))

    card = Card(
        keeps="rows that differ are apart in the map, on a smooth sheet with a likelihood",
        use="for a few hundred rows to some thousands: a smooth inverse with its uncertainty",
        avoid="for distances, or to see every neighborhood: near rows may be torn apart",
        cost="O(n^3) time per step up to 2 000 rows, then O(n m^2) with m inducing points",
    )
    reference = "Lawrence (2005)"
    aliases = ("gaussian_process_latent_variable_model",)
    reading = processes.GaussianProcessReducer.reading._replace(
        axes="The axes are the unknown coordinates of a smooth function that makes the rows; they "
        "began as the principal axes."
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 200 steps."""
        seen, held = min(n, p), Estimate(0.05, 16 * n * p)
        start = principal_axes_cost(n, p, 2)
        if n > EXACT_ROWS:
            return held + start + training_cost(n, seen, 2, INDUCING, 200).holding(24 * n * p)
        n_exact = _exact_steps(n, 200)
        step = 3.2e-11 * n**3 + 1.2e-8 * n * n + 1e-10 * n * n * seen + 5e-4
        exact = n_exact * Estimate(step, 8 * n * n)
        step = n * INDUCING * (3e-8 + 4e-10 * seen) + 2e-3
        sparse = (200 - n_exact) * Estimate(step, 16 * INDUCING * n)
        return held + start + sparse + exact

    # --- fit ------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, p = X.shape
        q = self._check_components(n, p)
        inference = self.inference
        if inference == "auto":
            inference = "exact" if n <= EXACT_ROWS else "stochastic"
        self._require_room(n, p, inference)
        X = as_dense(X, type(self).__name__)
        self._learn_scale(X)
        Y = self._standardized(X)
        with limit_blas(1):  # the map must not depend on the number of threads
            start = starting_places(self.init, Y, q, run)
            found = self._trained(start, Y, inference, run)
            state, self.prior_deviations_ = in_length_scales(self._covariance(), found.state)
            posterior = state.posterior(self._covariance(), Y, run.threads)
        self.embedding_, self.fitted_rows_ = state.X.astype(X.dtype), X.copy()
        self.inducing_points_ = state.Z
        self.mean_log_likelihood_ = found.mean_log_likelihood
        self.loss_history_, self.n_iter_ = found.losses, len(found.losses) - 1
        self._keep(posterior, self.prior_deviations_**2)
        return self.embedding_.copy()

    def _require_room(self, n: int, p: int, inference: str) -> None:
        m = min(n, int(self.n_inducing))
        each = n if inference == "exact" else 3 * m
        require_memory(
            8 * (10 * n * each + 3 * n * p + 50 * n * int(self.n_components) + m * m),
            task=f"GPLVM with {inference} inference for {n} rows and {p} columns",
            alternative="inference='sparse'" if inference == "exact" else "fewer inducing points",
        )

    def _trained(self, X: np.ndarray, Y: np.ndarray, inference: str, run: FitContext) -> Trained:
        """Beyond some rows, exact steps come last: they cost n^3 each, and the others n."""
        covariance, n, max_iter = self._covariance(), len(X), int(self.max_iter)
        linear = isinstance(self.init, str) and self.init == "ppca"
        first = FROM_LINEAR if linear else FROM_MAP
        task = Training(covariance, Y, float(self.tol), first.step, run)
        theta = covariance.vector(1.0, first.length, 1.0 / covariance.q, FIRST_BIAS)
        start = State(X, theta, float(np.log(first.noise)), None)
        n_exact = _exact_steps(n, max_iter) if inference == "exact" else 0
        if inference == "exact" and n_exact == max_iter:
            return task.exactly(start, max_iter)
        inducing = np.sort(run.rng.choice(n, self._count_inducing(n), replace=False))
        start, in_parts = start._replace(Z=X[inducing]), inference == "stochastic"
        found = task.sparsely(start, max_iter - n_exact, in_parts)
        if inference != "exact":
            return found
        done = len(found.losses) - 1
        last = task.exactly(found.state._replace(Z=None), n_exact, done)
        return last._replace(losses=np.concatenate([found.losses, last.losses[1:]]))

    # --- new rows -------------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X = as_dense(X, type(self).__name__)
        Z = np.empty((len(X), int(self.n_components)), dtype=X.dtype)
        near = query_fitted(self.fitted_rows_, X, 1, run=run, approximate=False)
        known = near.distances[:, 0] == 0  # a row of the fit keeps its place
        Z[known] = self.embedding_[near.indices[known, 0]]
        Z[~known] = self._placed_rows(X[~known], run).X
        return Z

    def _placed_rows(self, X: np.ndarray, run: FitContext) -> processes.Placed:
        process = processes.Process(self._posterior(), self.prior_deviations_)
        anchors = self.embedding_.astype(np.float64)
        return processes.placed_rows(process, anchors, self._standardized(X), run.threads)

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(row | place) of each row at its place in the map, without the prior."""
        rows = as_dense(self._check_new_rows(X), type(self).__name__)
        with self._running() as run:
            found = self._placed_rows(rows, run).log_densities
        return found - rows.shape[1] * np.log(self.scale_)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples` over the rows."""
        return float(np.mean(self.score_samples(X)))
