"""What a network of dense layers is made of, and its random start.

    h_0 = x,   h_l = s_l(h_{l-1} W_l + b_l),   l = 1 ... L

All weights are one vector, so that an optimizer sees numbers and a model file sees one array: for
each layer W_l (n_in x n_out, by rows), then b_l. With ``tied`` weights the second half of the
layers mirrors the first: W_l = W_{L+1-l}^T, and only its b_l is stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import thin_svd

ACTIVATIONS = ("linear", "tanh", "relu", "elu", "sigmoid")


GAINS = {"relu": 3**0.5, "elu": 3**0.5, "sigmoid": 4.0}  # of first weights


class Layer(NamedTuple):
    """W (n_in, n_out) and b (n_out,), views of the vector of all weights, and the name of s."""

    W: np.ndarray
    b: np.ndarray
    activation: str


class Network(NamedTuple):
    """Sizes of the layers, the input among them, and the activation of each layer of weights."""

    sizes: tuple[int, ...]
    activations: tuple[str, ...]
    tied: bool = False

    @property
    def n_layers(self) -> int:
        """Number of layers of weights, L."""
        return len(self.sizes) - 1

    @property
    def n_weights(self) -> int:
        """Length of the vector of all weights."""
        return self.offsets()[-1][-1]

    @property
    def n_products(self) -> int:
        """Multiplications of a row on its way ahead."""
        return sum(a * b for a, b in itertools.pairwise(self.sizes))

    def owns_matrix(self, layer: int) -> bool:
        """Whether layer 0 ... L-1 stores its W; a tied one has that of its mirror image."""
        return not self.tied or 2 * layer < self.n_layers

    def offsets(self) -> list[tuple[int, int, int]]:
        """Of each layer: where W begins, where b begins, where the layer ends."""
        places, at = [], 0
        for layer, (n_in, n_out) in enumerate(itertools.pairwise(self.sizes)):
            middle = at + (n_in * n_out if self.owns_matrix(layer) else 0)
            places.append((at, middle, middle + n_out))
            at = middle + n_out
        return places

    def layers(self, weights: np.ndarray) -> list[Layer]:
        """Views of the vector; writing to them writes to it."""
        found: list[Layer] = []
        for layer, (begin, middle, end) in enumerate(self.offsets()):
            if self.owns_matrix(layer):
                W = weights[begin:middle].reshape(self.sizes[layer], self.sizes[layer + 1])
            else:
                W = found[self.n_layers - 1 - layer].W.T
            found.append(Layer(W, weights[middle:end], self.activations[layer]))
        return found

    def part(self, weights: np.ndarray, first: int, last: int) -> tuple[Network, np.ndarray]:
        """Layers ``first`` ... ``last - 1`` as a separate network, with their weights."""
        network = Network(self.sizes[first : last + 1], self.activations[first:last])
        places = self.offsets()
        if all(self.owns_matrix(layer) for layer in range(first, last)):
            return network, weights[places[first][0] : places[last - 1][2]]
        layers = self.layers(weights)[first:last]
        return network, np.concatenate([part.ravel() for W, b, _ in layers for part in (W, b)])

    def described(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Sizes, numbers of activations, and ``tied``, as kernels want them."""
        numbers = [ACTIVATIONS.index(name) for name in self.activations]
        return np.array(self.sizes, np.int64), np.array(numbers, np.int64), self.tied

    def decays(self) -> np.ndarray:
        """1 for each weight that a penalty shrinks, 0 for the offsets b."""
        shrunk = np.zeros(self.n_weights, dtype=bool)
        for begin, middle, _ in self.offsets():
            shrunk[begin:middle] = True
        return shrunk


def first_weights(network: Network, rng: np.random.Generator) -> np.ndarray:
    """Uniform weights and offsets within 1 / sqrt(n_in), times a gain that the activation needs.

    They are those of LeCun et al. (1998), but smaller. The gain of sigmoid makes up for its slope
    of at most 1/4. That of relu and elu is smaller than in He et al. (2015), which was worse on
    digits; without any, four layers of relu do not learn.
    Offsets that are not 0 matter: without them units of tanh are alike and nearly linear for long.
    After 100 epochs on digits (64-32-2) the squared error is 0.035, with the weights of Glorot &
    Bengio (2010) and offsets 0 it is 0.037, and with rows of another scale 0.045 and 0.052.
    """
    weights = np.zeros(network.n_weights)
    for index, (W, b, activation) in enumerate(network.layers(weights)):
        bound = 1 / np.sqrt(len(W))
        if network.owns_matrix(index):
            gain = GAINS.get(activation, 1.0)
            W[...] = rng.uniform(-gain * bound, gain * bound, W.shape)
        b[...] = rng.uniform(-bound, bound, b.shape)
    return weights


def mirrored(encoder: Sequence[int]) -> tuple[int, ...]:
    """Sizes of encoder and decoder together: 784, 256, 2 becomes 784, 256, 2, 256, 784."""
    return (*encoder, *encoder[-2::-1])


# Forward and backward passes of a network, and what follows from them.
#
#     forward    h_l = s_l(h_{l-1} W_l + b_l), every layer kept
#     backward   d_L = dE/dh_L given;  g_l = d_l * s_l'(h_l);  dE/dW_l = h_{l-1}^T g_l;
#                dE/db_l = sum of the rows of g_l;  d_{l-1} = g_l W_l^T
#
# All slopes s' are known from the value h alone: tanh 1 - h^2, sigmoid h (1 - h), relu [h > 0],
# elu 1 or h + 1. A row's values depend neither on the other rows nor on the number of threads, and
# sums over rows have one order.


class Pass(NamedTuple):
    """The rows that went in, and the values (n, size) of each layer for them.

    ``kept`` are the same values, one layer after the other, as the kernel wrote them.
    """

    X: np.ndarray
    values: list[np.ndarray]
    kept: np.ndarray

    @property
    def output(self) -> np.ndarray:
        """Values of the last layer."""
        return self.values[-1]

    def first(self, n_layers: int) -> Pass:
        """The same pass through the first layers only."""
        values = self.values[:n_layers]
        return Pass(self.X, values, self.kept[: sum(h.size for h in values)])


class Slopes(NamedTuple):
    """dE/dweights, in the order of the weights, and dE/dX (n, n_in), or no rows of it."""

    weights: np.ndarray
    X: np.ndarray


def forward(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> Pass:
    """Values of all layers; X and weights have the same type, float32 or float64."""
    return _forward(network, weights, X, 1, threads)


def _forward(
    network: Network, weights: np.ndarray, X: np.ndarray, first: int, threads: int
) -> Pass:
    """Keeps the layers from number ``first``, 1 ... L, on."""
    X, n = np.ascontiguousarray(X), len(X)
    widths = network.sizes[first:]
    kept = np.empty(n * sum(widths), dtype=X.dtype)
    _native.network_forward(*network.described(), weights, X, first, kept, threads)
    ends = np.cumsum([n * width for width in widths])
    parts = np.split(kept, ends[:-1])
    values = [part.reshape(n, width) for part, width in zip(parts, widths, strict=True)]
    return Pass(X, values, kept)


def backward(
    network: Network,
    weights: np.ndarray,
    passed: Pass,
    slope: np.ndarray,
    threads: int,
    *,
    with_x: bool = True,
) -> Slopes:
    """dE/dweights and, unless it is not wanted, dE/dX from ``slope`` = dE/doutput (n, n_out)."""
    gradient, slope_x = np.empty_like(weights), np.empty_like(passed.X if with_x else passed.X[:0])
    slope = np.ascontiguousarray(slope, dtype=weights.dtype)
    _native.network_backward(
        *network.described(), weights, passed.X, passed.kept, slope, gradient, slope_x, threads
    )
    return Slopes(gradient, slope_x)


def apply(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> np.ndarray:
    """The output alone, in the type of X; the weights are converted to it."""
    weights = np.ascontiguousarray(weights, dtype=X.dtype)
    return _forward(network, weights, X, network.n_layers, threads).output


def slope_at(h: np.ndarray, activation: str) -> np.ndarray | float:
    """s'(x) as a function of the value h = s(x)."""
    if activation == "tanh":
        return 1 - h * h
    if activation == "relu":
        return (h > 0).astype(h.dtype)
    if activation == "elu":
        return np.where(h > 0, 1, h + 1).astype(h.dtype)
    if activation == "sigmoid":
        return h * (1 - h)
    return 1.0


def jacobian(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> np.ndarray:
    """d output_j / d x_k of each row, (n, n_out, n_in), by one backward pass per output."""
    weights = np.ascontiguousarray(weights, dtype=X.dtype)
    passed = forward(network, weights, X, threads)
    n_out = network.sizes[-1]
    slopes = np.empty((len(X), n_out, network.sizes[0]), dtype=X.dtype)
    for j in range(n_out):
        unit = np.zeros((len(X), n_out), dtype=X.dtype)
        unit[:, j] = 1
        slopes[:, j] = backward(network, weights, passed, unit, threads).X
    return slopes


# Networks of tables with many more columns than rows, trained on fewer columns.
#
# n rows lie in a space of at most n dimensions. Let A (r x p) hold an orthonormal basis of it in
# its rows. A layer that sees these rows sees X A^T only, and outputs outside of the space only add
# to a squared error. So a network is trained on s X A^T, and its outer layers are multiplied by A
# afterwards, at r / p of the cost. s = sqrt(r / p) gives these values the size that X has, and
# errors per value are the same; penalties are on the weights in these units.


WIDE = 2  # so many times more columns than rows
NO_LENGTH = 1e-12  # share of the largest singular value


class RowSpace(NamedTuple):
    """The basis A (r, p), and the factor s of coordinates in it; None and 1: rows as they are."""

    axes: np.ndarray | None = None
    size: float = 1.0

    def coordinates(self, X: np.ndarray, threads: int) -> np.ndarray:
        """s X A^T in the type of X."""
        if self.axes is None:
            return X
        return products.times(X, np.zeros(X.shape[1]), self.size * self.axes.T, threads)

    def unscaled(self, X: np.ndarray, threads: int) -> np.ndarray:
        """X A^T, rows with the inner products of those of X."""
        return X if self.axes is None else self.coordinates(X, threads) / self.size

    def restored(self, V: np.ndarray) -> np.ndarray:
        """V A: vectors in the columns of the table, from vectors of :meth:`unscaled` rows."""
        if self.axes is None:
            return V
        with limit_blas(1):
            return V @ self.axes

    def widened(
        self, network: Network, weights: np.ndarray, *, inputs: bool = False, outputs: bool = False
    ) -> np.ndarray:
        """Weights for all columns, of a network whose inputs, outputs or both are coordinates."""
        if self.axes is None:
            return weights
        into, back = self.size * self.axes.T, self.axes / self.size
        layers = [(W, b) for W, b, _ in network.layers(weights)]
        with limit_blas(1):
            if inputs:
                layers[0] = into @ layers[0][0], layers[0][1]
            if outputs:
                layers[-1] = layers[-1][0] @ back, layers[-1][1] @ back
        return np.concatenate([part.ravel() for layer in layers for part in layer])


def seen_columns(n: int, p: int) -> int:
    """The number of columns that a network of n rows is trained on."""
    return n if p >= WIDE * n else p


def row_space_cost(n: int, p: int) -> Estimate:
    """Of :func:`row_space` and coordinates in it."""
    return Estimate(2e-10 * n * n * p, 32.0 * n * p) if p >= WIDE * n else Estimate(0.0, 0.0)


def row_space(X: np.ndarray) -> RowSpace:
    """That of a wide table; rows are taken as they are if it is not wide, or all values are 0.

    A column of zeros is exactly 0 in the axes.
    """
    n, p = X.shape
    if seen_columns(n, p) == p:
        return RowSpace()
    with limit_blas(1):
        found = thin_svd(X.astype(np.float64, copy=False))
    if not found.lengths[0] > 0:
        return RowSpace()
    axes = found.right[found.lengths > NO_LENGTH * found.lengths[0]]
    return RowSpace(np.where(X.any(axis=0), axes, 0.0), float(np.sqrt(len(axes) / p)))
