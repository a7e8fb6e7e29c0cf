"""The functions g that place rows: x = g(y; A), with slopes by A.

    kernel    g(y) = sum_j a_j k(y, c_j),  k(y, c) = exp(-|y - c|^2 / (2 w^2)),  c_j centers
    linear    g(y) = sum_j a_j y_j
    network   g(y) = W_2^T tanh(W_1^T y + b_1) + b_2

The first two are linear in A. They are learned as g(y) = B^T T^T k(y), where T makes the functions
T^T k orthonormal: the norm of B is then that of g in the space of the kernel, and a descent changes
smooth functions first.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from lowland._core.context import FitContext
from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._engines.kernels.kernel_operators import Kernel, kernel_matrix
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.network.layers import Network, first_weights
from lowland._engines.network.passes import apply, backward, forward
from lowland._engines.network.quasi_newton import minimize

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
