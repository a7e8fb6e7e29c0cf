"""Training of a back-constrained model: parameters of g and of the process are one vector.

    L(A, theta, s^2, Z) = log p(Y | X = g(Y; A)), or its bound by inducing points Z

The likelihood stays the same if an axis of the map and its length scale are multiplied by the same
number. Therefore the axes are brought to the units of their length scales afterwards, and sorted by
their relevance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import log_likelihood
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_bound
from lowland._engines.kernels.kernel_operators import Kernel, kernel_matrix
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.network.layers import Network, apply, backward, first_weights, forward
from lowland._engines.network.quasi_newton import minimize

# The functions g that place rows: x = g(y; A), with slopes by A.
#
#     kernel    g(y) = sum_j a_j k(y, c_j),  k(y, c) = exp(-|y - c|^2 / (2 w^2)),  c_j centers
#     linear    g(y) = sum_j a_j y_j
#     network   g(y) = W_2^T tanh(W_1^T y + b_1) + b_2
#
# The first two are linear in A. They are learned as g(y) = B^T T^T k(y), where T makes the
# functions T^T k orthonormal: the norm of B is then that of g in the space of the kernel, and a
# descent changes smooth functions first.


RIDGE = 1e-3  # of the least squares fit to the start, relative to the mean square of a function
NO_FUNCTION = 1e-10  # share of the largest eigenvalue
START_STEPS = 200  # of the network's least squares fit to the start


class Constraint(Protocol):
    """g on the rows that it is learned from, as a function of its parameters, one vector."""

    def start(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        """Parameters of the least squares fit to places X."""

    def places(self, parameters: np.ndarray) -> np.ndarray:
        """g of all rows, (n, q)."""

    def slope(self, parameters: np.ndarray, by_X: np.ndarray) -> np.ndarray:
        """The slope by the parameters of a function of the places, whose slope is given."""

    def scaled(self, parameters: np.ndarray, order: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """A, for axes in another order, each divided by its scale, as one vector."""


class LinearBasis(NamedTuple):
    """X = F B; A = T B. F (n, r) are the values of the functions for the rows, T (m, r)."""

    F: np.ndarray
    T: np.ndarray
    q: int

    def start(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        with limit_blas(1):
            FF = self.F.T @ self.F
            FF.flat[:: len(FF) + 1] += RIDGE * (np.trace(FF) / max(1, len(FF)) or 1.0)
            return np.linalg.solve(FF, self.F.T @ X).ravel()

    def places(self, parameters: np.ndarray) -> np.ndarray:
        return self.F @ parameters.reshape(-1, self.q)

    def slope(self, parameters: np.ndarray, by_X: np.ndarray) -> np.ndarray:
        return (self.F.T @ by_X).ravel()

    def scaled(self, parameters: np.ndarray, order: np.ndarray, scale: np.ndarray) -> np.ndarray:
        with limit_blas(1):
            return (self.T @ (parameters.reshape(-1, self.q)[:, order] / scale)).ravel()


def kernel_places(
    S: np.ndarray, centers: np.ndarray, width: float, A: np.ndarray, threads: int
) -> np.ndarray:
    """sum_j a_j k(y, c_j) of each row y of S, independent of the other rows."""
    return kernel_matrix(centers, _rbf(width), threads).rows_times(S, A)


def kernel_basis(
    S: np.ndarray, centers: np.ndarray, width: float, q: int, threads: int
) -> LinearBasis:
    """T = U L^-1/2 from k(C, C) = U L U^T, without functions that rounding alone has made."""
    operator = kernel_matrix(centers, _rbf(width), threads)
    values, U = all_eigenpairs(operator.matrix())
    kept = values > NO_FUNCTION * values[0]
    T = U[:, kept] / np.sqrt(values[kept])
    return LinearBasis(products.times(operator.rows(S), np.zeros(len(centers)), T, threads), T, q)


def linear_basis(S: np.ndarray, q: int, threads: int) -> LinearBasis:
    """T = U L^-1/2 from S^T S / n = U L U^T: principal components of unit variance."""
    scatter = products.transpose_times(S, np.zeros(S.shape[1]), S, threads)
    values, U = all_eigenpairs(scatter / len(S))
    kept = values > NO_FUNCTION * values[0] if values[0] > 0 else np.zeros(len(values), dtype=bool)
    T = U[:, kept] / np.sqrt(values[kept])
    return LinearBasis(products.times(S, np.zeros(len(T)), T, threads), T, q)


def _rbf(width: float) -> Kernel:
    with np.errstate(over="ignore", divide="ignore"):  # widths of a hostile model file
        return Kernel("rbf", gamma=float(0.5 / np.square(np.float64(width))))


def network_of(p: int, hidden: int, q: int) -> Network:
    """The layers of g."""
    return Network((p, hidden, q), ("tanh", "linear"))


class Perceptron(NamedTuple):
    """A network with one hidden layer on the rows S."""

    network: Network
    S: np.ndarray
    threads: int

    def start(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        def error(weights: np.ndarray) -> tuple[float, np.ndarray]:
            passed = forward(self.network, weights, self.S, self.threads)
            rest = passed.output - X
            slope = 2 / rest.size * rest
            slopes = backward(
                self.network, weights, passed, slope, self.threads, with_x=False
            ).weights
            return float(np.mean(rest**2)), slopes

        silent = Monitor()
        first = first_weights(self.network, run.rng)
        return minimize(error, first, max_iter=START_STEPS, tol=1e-7, monitor=silent).point

    def places(self, parameters: np.ndarray) -> np.ndarray:
        return apply(self.network, parameters, self.S, self.threads)

    def slope(self, parameters: np.ndarray, by_X: np.ndarray) -> np.ndarray:
        passed = forward(self.network, parameters, self.S, self.threads)
        return backward(self.network, parameters, passed, by_X, self.threads, with_x=False).weights

    def scaled(self, parameters: np.ndarray, order: np.ndarray, scale: np.ndarray) -> np.ndarray:
        weights = parameters.copy()
        last = self.network.layers(weights)[-1]
        last.W[...], last.b[...] = last.W[:, order] / scale, last.b[order] / scale
        return weights


# The least and the largest values for columns of mean variance 1: of s^2, and of the variance,
# length scales, weights and bias of the covariance. Without them the variance of data without noise
# grows until the uncertainty is rounding.
NOISES = (1e-5, 10.0)
LEAST, MOST = (1e-3, 1e-3, 1e-6, 1e-6), (1e2, 1e3, 1e6, 1e2)
FIRST_BIAS = 0.1
FAILED = 1e10  # loss per value where the covariance has no Cholesky factor


class Parameters(NamedTuple):
    """Of g, of the covariance (logarithms), log s^2, and inducing points, none if exact."""

    g: np.ndarray
    theta: np.ndarray
    log_noise: float
    Z: np.ndarray

    def packed(self) -> np.ndarray:
        """All of them as one vector."""
        return np.concatenate([self.g, self.theta, [self.log_noise], self.Z.ravel()])


class Problem(NamedTuple):
    """Rows Y (n, r) whose products are those of a table of ``n_columns``, and m inducing points."""

    constraint: Constraint
    covariance: Covariance
    Y: np.ndarray
    n_columns: int
    n_inducing: int
    threads: int = 1

    def unpacked(self, vector: np.ndarray) -> Parameters:
        """The inverse of :meth:`Parameters.packed`."""
        k, m, q = self.covariance.n_parameters, self.n_inducing, self.covariance.q
        at = len(vector) - m * q
        g, theta = vector[: at - 1 - k], vector[at - 1 - k : at - 1]
        return Parameters(g, theta, float(vector[at - 1]), vector[at:].reshape(m, q))

    def loss(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """-L per value of the table, and its slope."""
        now = self.unpacked(vector)
        X, process = self.constraint.places(now.g), (self.covariance, now.theta, now.log_noise)
        by_Z = now.Z
        try:
            if self.n_inducing:
                at = SparseProcess(*process, X, now.Z)
                L = sparse_bound(at, self.Y, self.n_columns, self.threads)
                by_Z = L.Z
            else:
                L = log_likelihood(*process, X, self.Y, self.n_columns, self.threads)
        except np.linalg.LinAlgError:
            return FAILED, np.zeros_like(vector)
        slope = Parameters(self.constraint.slope(now.g, L.X), L.theta, L.noise, by_Z).packed()
        if not (np.isfinite(L.value) and np.isfinite(slope).all()):
            return FAILED, np.zeros_like(vector)
        n_values = len(self.Y) * self.n_columns
        return -L.value / n_values, -slope / n_values

    def bounds(self, n_g: int) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest values of all parameters."""
        free, vector = np.full(n_g, np.inf), self.covariance.vector
        inducing = np.full(self.n_inducing * self.covariance.q, np.inf)
        least = [-free, vector(*LEAST), [np.log(NOISES[0])], -inducing]
        most = [free, vector(*MOST), [np.log(NOISES[1])], inducing]
        return np.concatenate(least), np.concatenate(most)


class Trained(NamedTuple):
    """A of g as one vector, log parameters, log s^2, inducing points, and how the loss fell."""

    A: np.ndarray
    theta: np.ndarray
    log_noise: float
    Z: np.ndarray
    losses: np.ndarray
    n_iter: int


def train(
    problem: Problem,
    X: np.ndarray,
    noise: float,
    run: FitContext,
    *,
    max_iter: int,
    tol: float,
    show: Callable[[np.ndarray], np.ndarray],
) -> Trained:
    """Maximize L from the g nearest to the places X; ``noise`` is the first s^2.

    ``show(A)`` makes the map that a callback gets.
    """
    constraint, covariance = problem.constraint, problem.covariance
    with limit_blas(1):
        g = constraint.start(X, run)
        chosen = np.sort(run.rng.choice(len(X), problem.n_inducing, replace=False))
        theta = covariance.vector(bias=FIRST_BIAS)
        first = Parameters(g, theta, float(np.log(noise)), constraint.places(g)[chosen])
        found = minimize(
            problem.loss,
            first.packed(),
            max_iter=max_iter,
            tol=tol,
            monitor=run.monitor,
            show=lambda vector: show(_standard(problem, problem.unpacked(vector)).g),
            bounds=problem.bounds(len(g)),
        )
        best = _standard(problem, problem.unpacked(found.point))
    return Trained(*best, found.losses, found.n_iter)


def _standard(problem: Problem, found: Parameters) -> Parameters:
    """The same model in units of its length scales, the most relevant axis first; A in place of B.

    Relevance is that of axes of equal variance.
    """
    covariance = problem.covariance
    spread = problem.constraint.places(found.g).std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    factors = covariance.factors(covariance.stretched(found.theta, 1 / spread))
    order = np.argsort(-factors, kind="stable")
    scale = (spread / factors)[order]
    return Parameters(
        problem.constraint.scaled(found.g, order, scale),
        covariance.stretched(covariance.permuted(found.theta, order), 1 / scale),
        found.log_noise,
        found.Z[:, order] / scale,
    )
