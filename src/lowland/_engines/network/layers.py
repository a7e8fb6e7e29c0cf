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
        """Layers ``first`` ... ``last - 1`` as a network of their own, with their weights."""
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
