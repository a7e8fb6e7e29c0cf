"""Nonlinear PCA: the code layer with its angles, and the two losses that train a network.

    E = mean over m of sum_known (x_ij - Phi_j(z_i; m))^2 / N + decay sum W^2 + ridge sum z^2 / N

Phi(z; m) is the decoder with the components after the m-th set to 0. A hierarchical network has
m = 1 ... q, any other only m = q. N is the number of known values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._engines.network.layers import Network
from lowland._engines.network.passes import backward, forward

TINY = 1e-30  # squared length of a pair that has no direction


class Code(NamedTuple):
    """The units between map and decoder: a pair (cos, sin) for each of the first components.

    ``n_components`` components, the first ``circular`` of which are angles.
    """

    n_components: int
    circular: int
    hierarchical: bool

    @property
    def width(self) -> int:
        """Number of units."""
        return self.n_components + self.circular

    def units_of(self, component: int) -> slice:
        """Which units belong to a component."""
        if component < self.circular:
            return slice(2 * component, 2 * component + 2)
        return slice(component + self.circular, component + self.circular + 1)

    def stages(self) -> list[int]:
        """The numbers m of components of the sub-networks."""
        q = self.n_components
        return list(range(1, q + 1)) if self.hierarchical else [q]

    def mask(self, m: int) -> np.ndarray:
        """1 for the units of the first m components, 0 for the others."""
        return (np.arange(self.width) < m + min(m, self.circular)).astype(float)

    def of_places(self, Z: np.ndarray) -> np.ndarray:
        """Units (n, width) of places (n, q)."""
        c = self.circular
        units = np.empty((len(Z), self.width))
        units[:, 0 : 2 * c : 2], units[:, 1 : 2 * c : 2] = np.cos(Z[:, :c]), np.sin(Z[:, :c])
        units[:, 2 * c :] = Z[:, c:]
        return units

    def slope_of_places(self, units: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """dE/dZ from dE/dunits."""
        c = self.circular
        down = np.empty((len(units), self.n_components))
        cos, sin = units[:, 0 : 2 * c : 2], units[:, 1 : 2 * c : 2]
        down[:, :c] = cos * slope[:, 1 : 2 * c : 2] - sin * slope[:, 0 : 2 * c : 2]
        down[:, c:] = slope[:, 2 * c :]
        return down

    def of_outputs(self, A: np.ndarray) -> np.ndarray:
        """Units of outputs (n, width) of an encoder: pairs are divided by their length."""
        units, c = A.copy(), self.circular
        pairs = A[:, : 2 * c].reshape(len(A), c, 2)
        lengths = np.sqrt(np.sum(pairs**2, axis=2, keepdims=True) + TINY)
        units[:, : 2 * c] = (pairs / lengths).reshape(len(A), 2 * c)
        return units

    def slope_of_outputs(self, A: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """dE/dA from dE/dunits."""
        down, c, k = slope.copy(), self.circular, 2 * self.circular
        pairs, given = (values[:, :k].reshape(len(A), c, 2) for values in (A, slope))
        squares = np.sum(pairs**2, axis=2, keepdims=True) + TINY
        along = np.sum(pairs * given, axis=2, keepdims=True) / squares
        down[:, :k] = ((given - along * pairs) / np.sqrt(squares)).reshape(len(A), k)
        return down

    def places_of(self, units: np.ndarray) -> np.ndarray:
        """Places (n, q) of units, or of the outputs of an encoder."""
        c = self.circular
        Z = np.empty((len(units), self.n_components))
        Z[:, :c] = np.arctan2(units[:, 1 : 2 * c : 2], units[:, 0 : 2 * c : 2])
        Z[:, c:] = units[:, 2 * c :]
        return Z


class Rows(NamedTuple):
    """Standardized rows in float64, 0 where a value is unknown; None: all are known."""

    X: np.ndarray
    known: np.ndarray | None

    @property
    def n_known(self) -> int:
        return self.X.size if self.known is None else int(self.known.sum())

    def error(self, output: np.ndarray) -> np.ndarray:
        """What the network adds to the known values."""
        error = output - self.X
        return error if self.known is None else error * self.known


class _Decoding(NamedTuple):
    """Loss, dE/dweights and dE/dunits of a decoder, without penalties."""

    loss: float
    weights: np.ndarray
    units: np.ndarray


def _decoding(
    decoder: Network, weights: np.ndarray, code: Code, units: np.ndarray, rows: Rows, threads: int
) -> _Decoding:
    """The mean over the sub-networks of their mean squared errors, and its slopes."""
    stages = code.stages()
    share = 1.0 / (rows.n_known * len(stages))
    loss, slopes, down = 0.0, np.zeros_like(weights), np.zeros_like(units)
    for m in stages:
        mask = code.mask(m)
        passed = forward(decoder, weights, units * mask, threads)
        error = rows.error(passed.output)
        loss += share * float(np.sum(np.square(error)))
        back = backward(decoder, weights, passed, 2 * share * error, threads)
        slopes += back.weights
        down += back.X * mask
    return _Decoding(loss, slopes, down)


class InverseLoss(NamedTuple):
    """E of the weights of a decoder and the places of the rows, which are one vector."""

    decoder: Network
    code: Code
    rows: Rows
    weight_decay: float
    ridge: float
    threads: int

    def joined(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.concatenate([weights, Z.ravel()])

    def parts(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and places."""
        k = self.decoder.n_weights
        return point[:k], point[k:].reshape(-1, self.code.n_components)

    def places(self, point: np.ndarray) -> np.ndarray:
        return self.parts(point)[1]

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        weights, Z = self.parts(point)
        units = self.code.of_places(Z)
        found = _decoding(self.decoder, weights, self.code, units, self.rows, self.threads)
        decays = self.weight_decay * self.decoder.decays()
        straight = Z.copy()
        straight[:, : self.code.circular] = 0  # an angle has no size
        ridge = self.ridge / self.rows.n_known
        loss = found.loss + float(np.sum(decays * weights**2) + ridge * np.sum(straight**2))
        slope = self.joined(
            found.weights + 2 * decays * weights,
            self.code.slope_of_places(units, found.units) + 2 * ridge * straight,
        )
        return loss, slope


class BottleneckLoss(NamedTuple):
    """E of the weights of an encoder and a decoder, which are one vector; z is what is encoded."""

    encoder: Network
    decoder: Network
    code: Code
    rows: Rows
    weight_decay: float
    ridge: float
    threads: int

    def parts(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the encoder and of the decoder."""
        k = self.encoder.n_weights
        return point[:k], point[k:]

    def places(self, point: np.ndarray) -> np.ndarray:
        outputs = forward(self.encoder, self.parts(point)[0], self.rows.X, self.threads).output
        return self.code.places_of(outputs)

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        into, out = self.parts(point)
        passed = forward(self.encoder, into, self.rows.X, self.threads)
        units = self.code.of_outputs(passed.output)
        found = _decoding(self.decoder, out, self.code, units, self.rows, self.threads)
        straight = passed.output.copy()
        straight[:, : 2 * self.code.circular] = 0
        ridge = self.ridge / self.rows.n_known
        down = self.code.slope_of_outputs(passed.output, found.units) + 2 * ridge * straight
        back = backward(self.encoder, into, passed, down, self.threads, with_x=False)
        decays = self.weight_decay * np.concatenate([self.encoder.decays(), self.decoder.decays()])
        loss = found.loss + float(np.sum(decays * point**2) + ridge * np.sum(straight**2))
        return loss, np.concatenate([back.weights, found.weights]) + 2 * decays * point
