"""GPLVM: the maximum of log p(Y | X) + log p(X) over places, parameters and inducing points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._engines.gaussian_processes import stochastic
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import Posterior, exact_posterior, log_likelihood
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_posterior
from lowland._engines.gaussian_processes.stochastic import minus_log_prior
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.geodesics import shortest_paths
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes
from lowland._engines.neighbors.search import neighbor_graph
from lowland._engines.network.quasi_newton import minimize
from lowland._engines.stress.initial_map import given_numbers, landmark_map

# GPLVM: where the rows are before the first step.


NEIGHBORS = 10  # of the graph that "isomap" measures along
LANDMARKS = 1000  # of geodesic distances
FLAT = 1e-6  # an axis that varies less, beside the first, is set to 0


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
NOISE = (1e-5, 1e1)  # variance, beside that of the columns
FIRST_BIAS = 0.1


class Start(NamedTuple):
    """Length scales and noise variance at the start, and the step of places beside logarithms."""

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
    n_iter: int


def first_state(covariance: Covariance, start: Start, X: np.ndarray, Z: np.ndarray | None) -> State:
    """The process at the start."""
    theta = covariance.vector(1.0, start.length, 1.0 / covariance.q, FIRST_BIAS)
    return State(X, theta, float(np.log(start.noise)), Z)


def train_exactly(
    covariance: Covariance,
    start: State,
    Y: np.ndarray,
    run: FitContext,
    *,
    max_iter: int,
    tol: float,
    step: float,
    done: int = 0,
) -> Trained:
    """L-BFGS on X / step, the logarithms of the parameters and that of the noise variance."""
    (n, D), seen, k = Y.shape, _with_fewer_columns(Y), len(start.theta)

    def parts(vector: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        return vector[:k], float(vector[k]), step * vector[k + 1 :].reshape(start.X.shape)

    def negative(vector: np.ndarray) -> tuple[float, np.ndarray]:
        theta, log_noise, X = parts(vector)
        f = log_likelihood(covariance, theta, log_noise, X, seen, D, run.threads)
        slope = np.concatenate([-f.theta, [-f.noise], step * (X - f.X).ravel()])
        return (minus_log_prior(X) - f.value) / (n * D), slope / (n * D)

    least, most = _bounds(covariance)
    free = np.full(start.X.size, np.inf)
    found = minimize(
        negative,
        np.concatenate([start.theta, [start.log_noise], start.X.ravel() / step]),
        max_iter=max_iter,
        tol=tol,
        monitor=run.monitor,
        show=lambda vector: parts(vector)[2],
        bounds=(np.concatenate([least, -free]), np.concatenate([most, free])),
        done=done,
    )
    theta, log_noise, X = parts(found.point)
    likelihood = minus_log_prior(X) / (n * D) - float(found.losses[-1])
    return Trained(State(X, theta, log_noise, None), likelihood, found.losses, found.n_iter)


def train_sparsely(
    covariance: Covariance,
    start: State,
    Y: np.ndarray,
    run: FitContext,
    *,
    max_iter: int,
    tol: float,
    step: float,
    in_parts: bool,
) -> Trained:
    """The bound by inducing points in place of the likelihood, on all rows or on growing parts."""
    found = stochastic.train(
        SparseProcess(covariance, start.theta, start.log_noise, start.X, start.Z),
        _with_fewer_columns(Y),
        run,
        max_iter=max_iter,
        tol=tol,
        bounds=_bounds(covariance),
        step=step,
        in_parts=in_parts,
        n_columns=Y.shape[1],
    )
    _, theta, log_noise, X, Z = found.process
    state = State(X, theta, log_noise, Z)
    return Trained(state, found.bound / Y.size, found.losses, found.n_iter)


def _with_fewer_columns(Y: np.ndarray) -> np.ndarray:
    """A table with the same inner products of rows, and at most as many columns as rows."""
    if Y.shape[1] <= len(Y):
        return Y
    return np.ascontiguousarray(np.linalg.qr(Y.T, mode="r").T)


def _bounds(covariance: Covariance) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest values of the logarithms of the parameters and of the noise variance."""
    least, most = (
        np.append(
            covariance.vector(VARIANCE[side], LENGTH[side], WEIGHT[side], BIAS[side]),
            np.log(NOISE[side]),
        )
        for side in (0, 1)
    )
    return least, most
