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

from lowland import _native

Quadruple = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
TINY = 1e-150  # a distance of 0: where matern32 has no second derivative it gets a large one
LEAST_SHARE = 1e-6  # of the largest relevance
KINDS = ("rbf", "matern32", "matern52", "linear", "rbf+linear")


class Slopes(NamedTuple):
    """Derivatives by the logarithms of the parameters, by the rows of X and by those of Z."""

    theta: np.ndarray
    X: np.ndarray
    Z: np.ndarray


class Expansion(NamedTuple):
    """k(x_i, z_j) (n, m), its slopes (q, n, m), and what its second derivatives are made of.

    d2k / dx_a dx_c = curve away_a away_c, plus straight / l_a^2 if a = c; away = (x - z) / l^2.
    """

    K: np.ndarray
    slopes: np.ndarray
    away: np.ndarray
    straight: np.ndarray
    curve: np.ndarray
    lengths: np.ndarray

    def bend(self, G: np.ndarray, a: int, c: int) -> np.ndarray:
        """sum_j G_ij d2k_ij / dx_a dx_c of each row."""
        total = np.einsum("ij,ij,ij->i", G * self.curve, self.away[a], self.away[c])
        if a == c:
            total += np.einsum("ij,ij->i", G, self.straight) / self.lengths[a] ** 2
        return total


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
        return np.log(np.concatenate(parts, dtype=np.float64))

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

    def factors(self, theta: np.ndarray) -> np.ndarray:
        """sqrt(relevance): places times these have distances in units of the length scales.

        An axis without relevance shrinks to a thousandth, so that there is a way back.
        """
        relevance = self.relevance(theta)
        return np.sqrt(np.maximum(relevance, max(LEAST_SHARE * float(relevance.max()), TINY)))

    def stretched(self, theta: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """The same covariance for places whose axes are multiplied by these factors."""
        v, lengths, weights, b = self.parameters(theta)
        return self.vector(v or 1.0, lengths * factors, weights / factors**2, b or 1.0)

    def permuted(self, theta: np.ndarray, order: np.ndarray) -> np.ndarray:
        """The same covariance for places whose axes are in another order."""
        v, lengths, weights, b = self.parameters(theta)
        return self.vector(v or 1.0, lengths[order], weights[order], b or 1.0)

    def matrix(
        self, theta: np.ndarray, X: np.ndarray, Z: np.ndarray, threads: int = 1
    ) -> np.ndarray:
        """k(x_i, z_j), of shape (n, m); a row of it depends on its own place only."""
        K, none = np.empty((len(X), len(Z))), np.empty((0, 0))
        self._fill(theta, X, Z, K, none, threads)
        return K

    def expanded(
        self, theta: np.ndarray, X: np.ndarray, Z: np.ndarray, threads: int = 1
    ) -> Expansion:
        """k(x_i, z_j), with its first and second derivatives by the coordinates of x_i."""
        K, radial = np.empty((2, len(X), len(Z)))
        self._fill(theta, X, Z, K, radial, threads)
        _, lengths, weights, _ = self.parameters(theta)
        away = np.empty((self.q, *K.shape))
        for gap, x, z, length in zip(away, X.T, Z.T, lengths, strict=True):
            np.subtract.outer(x / length**2, z / length**2, out=gap)
        straight = 2 * radial  # 0 where there is no stationary part
        slopes = straight * away
        if self.linear:
            slopes += (weights * Z).T[:, None, :]
        return Expansion(K, slopes, away, straight, self._curve(radial, away, lengths), lengths)

    def _curve(self, radial: np.ndarray, away: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """4 v f'', by the differential equation of f: f'' = -f' times a known function of r."""
        if self.stationary is None or self.stationary == "rbf":
            return -2 * radial
        squares = np.zeros(radial.shape)
        for gap, length in zip(away, lengths, strict=True):
            squares += (gap * length) ** 2
        if self.stationary == "matern32":
            return -6 * radial / np.maximum(np.sqrt(3 * squares), TINY)
        return -10 * radial / (1 + np.sqrt(5 * squares))

    def _fill(
        self,
        theta: np.ndarray,
        X: np.ndarray,
        Z: np.ndarray,
        K: np.ndarray,
        radial: np.ndarray,
        threads: int,
        *,
        upper: bool = False,
    ) -> None:
        v, _, _, b = self.parameters(theta)
        if K.size:
            parts = self._parts(theta, X, Z)
            _native.covariance_matrix(*parts, self._shape(), v, b, K, radial, upper, threads)

    def diagonal(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """k(x_i, x_i), of shape (n,)."""
        v, _, weights, b = self.parameters(theta)
        return v + b + (X**2) @ weights

    def slopes(
        self, theta: np.ndarray, X: np.ndarray, Z: np.ndarray, G: np.ndarray, threads: int = 1
    ) -> Slopes:
        """Of sum_ij G_ij k(x_i, z_j)."""
        parts = self._parts(theta, X, Z)
        rows = np.empty((len(X), 2 + 2 * parts[0].shape[1] + parts[2].shape[1]))
        columns = np.empty((len(Z), parts[0].shape[1] + parts[2].shape[1]))
        G = np.ascontiguousarray(G)
        _native.covariance_slopes(*parts, self._shape(), G, rows, columns, False, threads)
        return Slopes(*self._slopes_by_row(theta, X, rows), self._slopes_by_column(theta, columns))

    def symmetric_slopes(
        self, theta: np.ndarray, X: np.ndarray, G: np.ndarray, threads: int = 1
    ) -> Slopes:
        """Of sum_ij G_ij k(x_i, x_j) for a symmetric G, of which only the upper triangle is read.

        The slope by Z is empty.
        """
        parts = self._parts(theta, X, X)
        rows = np.empty((len(X), 2 + 2 * parts[0].shape[1] + parts[2].shape[1]))
        columns = np.empty((len(X), parts[0].shape[1] + parts[2].shape[1]))
        _native.covariance_slopes(*parts, self._shape(), G, rows, columns, True, threads)
        by_theta, by_X = self._slopes_by_row(theta, X, rows)
        return Slopes(by_theta, by_X + self._slopes_by_column(theta, columns), X[:0])

    def upper_matrix(self, theta: np.ndarray, X: np.ndarray, threads: int = 1) -> np.ndarray:
        """k(x_i, x_j) for i <= j; what is below the diagonal means nothing."""
        K, none = np.empty((len(X), len(X))), np.empty((0, 0))
        self._fill(theta, X, X, K, none, threads, upper=True)
        return K

    def _slopes_by_column(self, theta: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Slopes by Z, from the kernel's sums over the rows of X."""
        v, lengths, _, _ = self.parameters(theta)
        by_Z = np.zeros((len(columns), self.q))
        if self.stationary:
            by_Z -= 2 * v / lengths * columns[:, : self.q]
        if self.linear:
            by_Z += columns[:, -self.q :]
        return by_Z

    def _slopes_by_row(
        self, theta: np.ndarray, X: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Slopes by log parameters and by X, from the kernel's sums over the partners of a row."""
        (v, lengths, weights, b), q = self.parameters(theta), self.q
        totals, by_X = rows.sum(axis=0), np.zeros_like(X)
        by_theta: list[np.ndarray | list[float]] = []
        if self.stationary:
            by_X += 2 * v / lengths * rows[:, 2 : 2 + q]
            squares = totals[2 + q : 2 + 2 * q]
            by_theta += [[v * totals[0]], self._shared(-2 * v * squares)]
        if self.linear:
            by_X += weights * rows[:, -q:]
            by_theta += [self._shared((X * rows[:, -q:]).sum(axis=0) * weights)]
        if self.bias:
            by_theta += [[b * totals[1]]]
        return np.concatenate(by_theta), by_X

    def _parts(self, theta: np.ndarray, X: np.ndarray, Z: np.ndarray) -> Quadruple:
        """u, v, a and b of the kernels: k = b + v f(|u - v|^2) + a . b."""
        _, lengths, weights, _ = self.parameters(theta)
        places = [P / lengths if self.stationary else np.empty((len(P), 0)) for P in (X, Z)]
        factors = (X * weights, Z) if self.linear else (X[:, :0], Z[:, :0])
        u, v, a, b = (np.ascontiguousarray(part, np.float64) for part in (*places, *factors))
        return u, v, a, b

    def _shape(self) -> str:
        return self.stationary or "none"

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
