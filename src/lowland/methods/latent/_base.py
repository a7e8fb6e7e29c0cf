"""The base of Gaussian process latent variable models: the process, its posterior, the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from lowland._base.base import Invertible
from lowland._base.constraints import Boolean, Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.models.checks import above, at_least
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Reading
from lowland._base.validation import all_finite
from lowland._engines.gaussian_processes.covariance import KINDS, Covariance
from lowland._engines.gaussian_processes.exact import Posterior
from lowland._engines.gaussian_processes.places import place_rows
from lowland._engines.linalg import products
from lowland._engines.linalg.moments import column_moments
from lowland._engines.linalg.principal_axes import leading_axes
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.network.layers import RowSpace, row_space
from lowland._engines.network.quasi_newton import minimize

# Where rows belong in the map of a Gaussian process, each row by itself.
#
#     max over x of  log N(y; mean(x), (var(x) + noise) I) + log N(x; 0, diag(d^2))
#
# Each row descends from several places: fitted ones, or beyond them, where its density is highest.
# The descent is that of :mod:`lowland._engines.gaussian_processes.places`.


N_STARTS, FIRST_STEPS, N_FINISHED = 8, 6, 3  # those lowest after the first steps go on
START_INPUTS = 4000  # starts times inputs: of many inputs there are fewer starts, at least 2
APART = 0.3  # starts of one row are so many deviations of the map, or a length scale, apart
MOST_ANCHORS = 500  # fitted places among which the starts of a row are chosen
OUTSIDE = (1.25, 2.0, 4.0)  # some of them are also tried so many times farther from the center
N_OUTSIDE = 100
MOST_STEPS = 200
FARTHEST = 1e8  # standardized values beyond this are set to it: their squares hide all others
BLOCK_BYTES = 2**26


class Process(NamedTuple):
    """A posterior, and the standard deviations d (q,) of the prior of places."""

    posterior: Posterior
    deviations: np.ndarray


class Placed(NamedTuple):
    """Places (n, q), and log p(y | x) of each standardized row there (n,)."""

    X: np.ndarray
    log_densities: np.ndarray


def placed_rows(process: Process, anchors: np.ndarray, Y: np.ndarray, threads: int) -> Placed:
    """Places of standardized rows Y (n, D); ``anchors`` (a, q) are places of fitted rows."""
    Y, posterior = np.clip(Y, -FARTHEST, FARTHEST), process.posterior
    D = Y.shape[1]
    anchors = _with_places_outside(anchors)
    images = posterior.mean(anchors, threads)
    spread = posterior.variance(anchors, threads) + posterior.noise
    X, energy = np.empty((len(Y), posterior.covariance.q)), np.empty(len(Y))
    per_row = 8 * (3 * len(anchors) + 2 * N_STARTS * D)
    with np.errstate(all="ignore"):
        for at in row_blocks(len(Y), rows_within(per_row, BLOCK_BYTES)):
            starts = _starts(process, anchors, images, spread, Y[at], threads)
            X[at], energy[at] = _lowest(process, anchors[starts], Y[at], threads)
        prior = 0.5 * np.sum((X / process.deviations) ** 2, axis=1)
    return Placed(X, prior - energy - 0.5 * D * np.log(2 * np.pi))


def _with_places_outside(anchors: np.ndarray) -> np.ndarray:
    """Some anchors, and places around the map: rows unlike all others belong where s^2 is large."""
    some = anchors[:: -(-len(anchors) // MOST_ANCHORS)]
    few, center = anchors[:: -(-len(anchors) // N_OUTSIDE)], anchors.mean(axis=0)
    return np.concatenate([some, *(center + times * (few - center) for times in OUTSIDE)])


def _starts(
    process: Process,
    anchors: np.ndarray,
    images: np.ndarray,
    spread: np.ndarray,
    Y: np.ndarray,
    threads: int,
) -> np.ndarray:
    """Numbers of anchors (s, n), far from each other.

    In turn that where the density is highest and that whose image is nearest to the row: with
    little noise, the density at a fitted place is low for every other row, however near it is.
    """
    D = Y.shape[1]
    E = products.times(np.ascontiguousarray(Y), np.zeros(D), -2 * images.T, threads)
    E += np.sum(images**2, axis=1)
    E += np.einsum("ij,ij->i", Y, Y)[:, None]
    squares = E.copy()
    E /= 2 * spread
    E += 0.5 * D * np.log(spread) + 0.5 * np.sum((anchors / process.deviations) ** 2, axis=1)
    posterior = process.posterior
    lengths = posterior.covariance.parameters(posterior.theta)[1]
    scaled = anchors / np.maximum(np.minimum(lengths, APART * anchors.std(axis=0)), 1e-300)
    found = []
    for number in range(min(N_STARTS, max(2, START_INPUTS // len(posterior.inputs)))):
        lowest = np.argmin(squares if number % 2 else E, axis=1)
        found.append(lowest)
        gaps = np.zeros(E.shape)
        for coordinate in scaled.T:
            gaps += (coordinate[lowest][:, None] - coordinate) ** 2
        for heights in (E, squares):
            heights[gaps < 1] = np.inf  # once all are, the first anchor is tried again
    return np.array(found)


def _lowest(
    process: Process, starts: np.ndarray, Y: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest minimum below those starts (s, n, q) that are the lowest after a few steps."""
    X, energy = _descended(process, starts, Y, FIRST_STEPS, threads)
    finished = max(1, N_FINISHED * len(starts) // N_STARTS)
    order = np.argsort(energy, axis=0, kind="stable")[:finished]
    chosen = np.take_along_axis(X, order[:, :, None], axis=0)
    X, energy = _descended(process, chosen, Y, MOST_STEPS, threads)
    best, each = np.argmin(energy, axis=0), np.arange(len(Y))
    return X[best, each], energy[best, each]


def _descended(
    process: Process, starts: np.ndarray, Y: np.ndarray, n_steps: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """From each start (s, n, q) of each row: the places reached, and minus the log density."""
    n_starts, n, q = starts.shape
    found = place_rows(
        process.posterior,
        np.tile(Y, (n_starts, 1)),
        starts.reshape(-1, q),
        n_steps=n_steps,
        threads=threads,
        criterion="likelihood",
        deviations=process.deviations,
    )
    return found.X.reshape(starts.shape), found.energy.reshape(n_starts, n)


# Training: all unknowns are one vector, and L-BFGS minimizes the loss per value of the table.


MOST_INDUCING = 2000
MOST_NOISE, LEAST_NOISE = 0.5, 0.01  # s^2 at the start
FAILED = 1e10  # loss per value where the covariance has no Cholesky factor


def principal_start(Y: np.ndarray, q: int, run: FitContext) -> tuple[np.ndarray, float]:
    """Principal components, and the share of the variance that they leave as the first s^2."""
    found = leading_axes(Y, q, run.threads, run.rng, run.monitor)
    share = float(found.variances.sum() / found.total_variance) if found.total_variance > 0 else 0.0
    X = products.times(Y, found.mean, found.axes.T, run.threads)
    return X, float(np.clip(1 - share, LEAST_NOISE, MOST_NOISE))


def loss_per_value(problem: Any, vector: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the bound of a problem per value of its table, and its slope."""
    try:
        value, slopes = problem.bound(problem.unpacked(vector))
    except np.linalg.LinAlgError:
        return FAILED, np.zeros_like(vector)
    slope, n_values = slopes.packed(), len(problem.Y) * problem.n_columns
    if not (np.isfinite(value) and np.isfinite(slope).all()):
        return FAILED, np.zeros_like(vector)
    return -value / n_values, -slope / n_values


class Learned(NamedTuple):
    """The numbers of the rows that are trained on, and standardized rows with their products."""

    chosen: Any
    space: RowSpace
    Y: np.ndarray


class GaussianProcessReducer(Invertible):
    """A method sees the columns of a table as draws of one Gaussian process of the map.

    Parameters
    ----------
    kernel : {"rbf", "matern32", "matern52", "linear", "rbf+linear"}, default="rbf"
        Covariance of the process: smooth, rougher, linear, or a sum. Each axis has a length scale
        of its own.
    bias : bool, default=True
        Whether the covariance has a constant, so that columns may have a common shift.
    inference : {"auto", "exact", "sparse", "stochastic"}, default="auto"
        How the likelihood is computed: exactly, by a bound, or by a bound on parts of the rows. The
        lower bound has inducing points. "auto" decides by the number of rows.
    n_inducing : int, default=50
        Number of inducing points.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Places of the fitted rows.
    mean_ : ndarray of shape (n_features,)
        Means of the columns.
    scale_ : float
        What centered values are divided by: the root of the mean variance of the columns.
    log_parameters_ : ndarray of shape (n_parameters,)
        Logarithms of the parameters of the covariance: variance, length scales, weights of a linear
        part, bias.
    noise_ : float
        Standard deviation of the noise, in every column the same.
    relevance_ : ndarray of shape (n_components,)
        How much the process depends on each axis, relative to the largest, in the order of the
        axes: squared spread of the map in length scales.
    inducing_points_ : ndarray of shape (n_inducing, n_components), or None
        Places of the inducing points; None for exact inference.
    weights_ : ndarray of shape (n_inputs, n_features)
        Weights of the posterior mean, in units of ``scale_``.
    precision_ : ndarray of shape (n_inputs, n_inputs)
        What the posterior variance subtracts from the prior variance.
    mean_log_likelihood_ : float
        Log-likelihood, or its bound, per value of the table in units of ``scale_``.
    loss_history_ : ndarray of shape (n_losses,)
        Minus the objective per value, at the start and after each step.
    """

    kernel: Literal["rbf", "matern32", "matern52", "linear", "rbf+linear"] = param(
        OneOf(*KINDS), default="rbf"
    )
    bias: bool = param(Boolean(), default=True)
    inference: Literal["auto", "exact", "sparse", "stochastic"] = param(
        OneOf("auto", "exact", "sparse", "stochastic"), default="auto"
    )
    n_inducing: int = param(Integer(1, MOST_INDUCING), default=50)
    max_iter: int = param(Integer(0), default=200)
    tol: float = param(Real(0, closed="left"), default=1e-7)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    mean_: np.ndarray = fitted("n_features")
    scale_: float = fitted(meaning=above(0))
    log_parameters_: np.ndarray = fitted("n_parameters")
    noise_: float = fitted(meaning=above(0))
    relevance_: np.ndarray = fitted("n_components", meaning=at_least(0))
    inducing_points_: np.ndarray | None = fitted("n_inducing", "n_components", optional=True)
    weights_: np.ndarray = fitted("n_inputs", "n_features")
    precision_: np.ndarray = fitted("n_inputs", "n_inputs")
    mean_log_likelihood_: float = fitted()
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="The first axis is the one that rows depend on most; axes without relevance are 0.",
        distances="Rows that are near in the map are similar. Similar rows may be far apart, "
        "because the function may come back to where it was.",
        gaps="A gap is a region where the function is uncertain; its width in the map has little "
        "meaning.",
        sizes="Sizes of groups follow how much their rows differ.",
        scale="One unit is one length scale: so far apart, rows have a correlation of about half.",
    )

    @property
    def log_likelihood_(self) -> float:
        """log p of the fitted table given the map, or its lower bound, without the prior."""
        self._require_fitted()
        n_values = len(self.embedding_) * int(self.n_features_in_)
        return n_values * float(self.mean_log_likelihood_ - np.log(self.scale_))

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: parameters and weights fit covariance and inputs."""
        wanted, found = self._covariance().n_parameters, len(self.log_parameters_)
        if found != wanted:
            return f"{found} 'log_parameters_' of {wanted}"
        n_inputs = len(self._inputs())
        if len(self.weights_) != n_inputs:
            return f"{len(self.weights_)} 'weights_' of {n_inputs} places"
        return super().inconsistency()

    def _learn_scale(self, X: np.ndarray) -> None:
        """Set mean and scale from dense rows."""
        self.mean_, squares = column_moments(X)
        self.scale_ = float(np.sqrt(np.mean(squares) / len(X))) or 1.0

    def _standardized(self, X: np.ndarray) -> np.ndarray:
        """In float64."""
        return np.ascontiguousarray((X - self.mean_) / self.scale_, dtype=np.float64)

    def _learned(self, X: np.ndarray, m: int, run: FitContext) -> Learned:
        """m random rows of X, standardized with the mean and the scale of all."""
        self._learn_scale(X)
        chosen = run.some_rows(len(X), m)
        S = self._standardized(X[chosen])
        space = row_space(S)
        return Learned(chosen, space, space.unscaled(S, run.threads))

    def _count_inducing(self, n: int) -> int:
        """Inducing points for n rows; more than a linear process has axes are combinations."""
        m = min(n, int(self.n_inducing))
        return min(m, int(self.n_components) + int(self.bias)) if self.kernel == "linear" else m

    def _trained(
        self, problem: Any, first: Any, show: Callable[[Any], np.ndarray], run: FitContext
    ) -> Any:
        """The unknowns with the lowest loss from the ``first`` ones, in the standard form.

        ``show(unknowns)`` makes the map that a callback gets.
        """
        with limit_blas(1):
            found = minimize(
                problem.loss,
                first.packed(),
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                monitor=run.monitor,
                show=lambda vector: show(problem.standard(problem.unpacked(vector))),
                bounds=problem.bounds(first),
            )
            self.loss_history_, self.n_iter_ = found.losses, found.n_iter
            self.mean_log_likelihood_ = -float(found.losses[-1])
            return problem.standard(problem.unpacked(found.point))

    def _covariance(self) -> Covariance:
        return Covariance(self.kernel, int(self.n_components), bias=bool(self.bias))

    def _inputs(self) -> np.ndarray:
        """The places that the posterior is a function of."""
        return self.embedding_ if self.inducing_points_ is None else self.inducing_points_

    def _posterior(self) -> Posterior:
        """Of standardized rows."""
        with np.errstate(over="ignore"):  # numbers of a hostile model file
            noise = float(np.square(np.float64(self.noise_) / self.scale_))
        inputs = np.ascontiguousarray(self._inputs(), dtype=np.float64)
        process = self._covariance(), self.log_parameters_, inputs
        return Posterior(*process, self.weights_, self.precision_, noise)

    def _keep(self, posterior: Posterior, relevance: np.ndarray) -> None:
        """Set the attributes of the process from its posterior."""
        self.log_parameters_ = posterior.theta
        self.noise_ = float(np.sqrt(posterior.noise)) * self.scale_
        self.weights_, self.precision_ = posterior.weights, posterior.precision
        self.relevance_ = relevance / (relevance.max() or 1.0)

    def inverse_transform(self, X: Any, return_std: bool = False) -> Any:
        """Rows for points X of the map: the posterior mean.

        With ``return_std`` also the standard deviation of a new row there, noise included: one
        number for each point, since all columns share it.
        """
        rows = super().inverse_transform(X)
        return (rows, self.uncertainty(X)) if return_std else rows

    def uncertainty(self, X: Any) -> np.ndarray:
        """Standard deviation of a new row at points X of the map, in the units of the table."""
        Y = np.ascontiguousarray(self._check_points(X), dtype=np.float64)
        posterior = self._posterior()
        with self._running() as run, np.errstate(over="ignore", invalid="ignore"):
            variance = posterior.variance(Y, run.threads)
            deviation = self.scale_ * np.sqrt(variance + posterior.noise)
        if not all_finite(deviation):
            raise DataError(
                f"{type(self).__name__}: the standard deviation at some point of the map is beyond "
                "what float64 can hold; leave out extreme points, or fit the model again."
            )
        return deviation

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        mean = self._posterior().mean(np.ascontiguousarray(Y, dtype=np.float64), run.threads)
        return (mean * self.scale_ + self.mean_).astype(Y.dtype, copy=False)
