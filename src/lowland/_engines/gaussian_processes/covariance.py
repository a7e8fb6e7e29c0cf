"""Covariance functions of Gaussian processes, and slopes of any sum of their values.

    stationary:  v f(r^2),  r^2 = sum_k (x_k - z_k)^2 / l_k^2
                 rbf: exp(-r^2 / 2);  matern32: (1 + a) exp(-a), a = sqrt(3) r;
                 matern52: (1 + a + a^2 / 3) exp(-a), a = sqrt(5) r
    linear:      sum_k w_k x_k z_k
    bias:        b

A covariance is one of the first two or their sum, with or without a bias. All its parameters are
positive; the optimizer sees the vector of their logarithms: v, l_1 ... l_q, w_1 ... w_q, b, of
which those are left out that the covariance does not have. Without ``ard`` (automatic relevance
determination) all axes share one l and one w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["KINDS", "Covariance", "Slopes"]

KINDS = ("rbf", "matern32", "matern52", "linear", "rbf+linear")


class Slopes(NamedTuple):
    """Derivatives by the logarithms of the parameters, by the rows of X and by those of Z."""

    theta: np.ndarray
    X: np.ndarray
    Z: np.ndarray


class Covariance(NamedTuple):
    """The kind (of :data:`KINDS`), the number of axes, whether each has its own scale, a bias."""

    kind: str
    q: int
    ard: bool = True
    bias: bool = True

    @property
    def stationary(self) -> str | None:
        """The kind of the stationary part; None if there is none."""
        part = self.kind.removesuffix("linear").removesuffix("+")
        return part or None

    @property
    def linear(self) -> bool:
        """Whether there is a linear part."""
        return self.kind.endswith("linear")

    @property
    def n_scales(self) -> int:
        """The number of lengths l, and of weights w."""
        return self.q if self.ard else 1

    @property
    def n_parameters(self) -> int:
        """The length of the vector of logarithms."""
        stationary = 1 + self.n_scales if self.stationary else 0
        return stationary + (self.n_scales if self.linear else 0) + int(self.bias)

    def vector(
        self,
        variance: float = 1.0,
        lengths: float | np.ndarray = 1.0,
        weights: float | np.ndarray = 1.0,
        bias: float = 1.0,
    ) -> np.ndarray:
        """The logarithms of these parameters in their order; those it does not have are ignored."""
        parts = []
        if self.stationary:
            parts += [np.atleast_1d(variance), np.broadcast_to(lengths, self.n_scales)]
        if self.linear:
            parts += [np.broadcast_to(weights, self.n_scales)]
        if self.bias:
            parts += [np.atleast_1d(bias)]
        return np.log(np.concatenate(parts).astype(np.float64))

    def parameters(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
        """v, l (q,), w (q,) and b; 0, or lengths of 1, for parts that it does not have."""
        values, at = np.exp(theta), 0
        v, lengths, weights, b = 0.0, np.ones(self.q), np.zeros(self.q), 0.0
        if self.stationary:
            v, lengths = float(values[0]), np.broadcast_to(values[1 : 1 + self.n_scales], self.q)
            at = 1 + self.n_scales
        if self.linear:
            weights = np.broadcast_to(values[at : at + self.n_scales], self.q)
        if self.bias:
            b = float(values[-1])
        return v, lengths, weights, b

    def relevance(self, theta: np.ndarray) -> np.ndarray:
        """How much the covariance depends on each axis: 1 / l_k^2 + w_k / v, v = 1 if it is 0."""
        v, lengths, weights, _ = self.parameters(theta)
        stationary = 1 / lengths**2 if self.stationary else np.zeros(self.q)
        return stationary + weights / (v or 1.0)

    def matrix(self, theta: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """k(x_i, z_j), of shape (n, m)."""
        v, lengths, weights, b = self.parameters(theta)
        K = np.full((len(X), len(Z)), b)
        if self.stationary:
            K += v * _values(self.stationary, _squares(X / lengths, Z / lengths))[0]
        if self.linear:
            K += (X * weights) @ Z.T
        return K

    def diagonal(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """k(x_i, x_i), of shape (n,)."""
        v, _, weights, b = self.parameters(theta)
        return v + b + (X**2) @ weights

    def slopes(self, theta: np.ndarray, X: np.ndarray, Z: np.ndarray, G: np.ndarray) -> Slopes:
        """Of sum_ij G_ij k(x_i, z_j). With Z = X, the slope by X is the sum of both slopes."""
        v, lengths, weights, b = self.parameters(theta)
        by_theta: list[np.ndarray | list[float]] = []
        by_X, by_Z = np.zeros_like(X), np.zeros_like(Z)
        if self.stationary:
            f, df = _values(self.stationary, _squares(X / lengths, Z / lengths))
            H = v * G * df
            rows, columns = H.sum(axis=1), H.sum(axis=0)
            HZ, HX = H @ Z, H.T @ X
            by_X += 2 * (X * rows[:, None] - HZ) / lengths**2
            by_Z += 2 * (Z * columns[:, None] - HX) / lengths**2
            squares = rows @ X**2 - 2 * (X * HZ).sum(axis=0) + columns @ Z**2
            by_theta += [[v * np.sum(G * f)], self._shared(-2 * squares / lengths**2)]
        if self.linear:
            GZ = G @ Z
            by_X += GZ * weights
            by_Z += (G.T @ X) * weights
            by_theta += [self._shared((X * GZ).sum(axis=0) * weights)]
        if self.bias:
            by_theta += [[b * G.sum()]]
        return Slopes(np.concatenate(by_theta), by_X, by_Z)

    def diagonal_slopes(self, theta: np.ndarray, X: np.ndarray, g: np.ndarray) -> Slopes:
        """Of sum_i g_i k(x_i, x_i); the slope by Z is empty."""
        v, _, weights, b = self.parameters(theta)
        by_theta: list[np.ndarray | list[float]] = []
        if self.stationary:
            by_theta += [[v * g.sum()], np.zeros(self.n_scales)]
        if self.linear:
            by_theta += [self._shared((g @ X**2) * weights)]
        if self.bias:
            by_theta += [[b * g.sum()]]
        return Slopes(np.concatenate(by_theta), 2 * g[:, None] * X * weights, np.empty((0, self.q)))

    def _shared(self, slopes: np.ndarray) -> np.ndarray:
        return slopes if self.ard else np.array([slopes.sum()])


def _squares(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Squared distances, axis by axis, so that near points keep their digits."""
    D = np.zeros((len(X), len(Z)))
    for x, z in zip(X.T, Z.T, strict=True):
        D += np.subtract.outer(x, z) ** 2
    return D


def _values(kind: str, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f(r^2) and its derivative by r^2."""
    if kind == "rbf":
        f = np.exp(-0.5 * D)
        return f, -0.5 * f
    a = np.sqrt((3 if kind == "matern32" else 5) * D)
    e = np.exp(-a)
    if kind == "matern32":
        return (1 + a) * e, -1.5 * e
    return (1 + a + a**2 / 3) * e, -5 / 6 * (1 + a) * e
