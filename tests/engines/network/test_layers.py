"""Layers of a network as views of one vector."""

import numpy as np

from lowland._engines.network.layers import Network, apply, first_weights, mirrored
from support.cases import each

NETWORK = Network((4, 3, 2, 3, 4), ("tanh", "linear", "elu", "linear"))


def test_views_cover_the_vector_once_and_in_order():
    weights = np.arange(float(NETWORK.n_weights))
    parts = [part.ravel() for W, b, _ in NETWORK.layers(weights) for part in (W, b)]
    np.testing.assert_array_equal(np.concatenate(parts), weights)
    NETWORK.layers(weights)[1].b[...] = -1
    assert (weights == -1).sum() == 2


def test_tied_layers_share_their_matrices():
    tied = NETWORK._replace(tied=True)
    weights = np.arange(float(tied.n_weights))
    layers = tied.layers(weights)
    for k in range(2):
        np.testing.assert_array_equal(layers[3 - k].W, layers[k].W.T)
        assert np.shares_memory(layers[3 - k].W, layers[k].W)
    assert tied.n_weights == NETWORK.n_weights - 4 * 3 - 3 * 2


@each("tied", [False, True])
def test_the_parts_of_a_network_in_turn_are_the_network(tied):
    rng = np.random.default_rng(0)
    network = NETWORK._replace(tied=tied)
    weights, X = first_weights(network, rng), rng.standard_normal((5, 4))
    code = apply(*network.part(weights, 0, 2), X, 1)
    np.testing.assert_array_equal(
        apply(*network.part(weights, 2, 4), code, 1), apply(network, weights, X, 1)
    )


@each("activation", ["tanh", "relu"])
def test_signals_neither_vanish_nor_explode_at_the_start(activation):
    rng = np.random.default_rng(0)
    network = Network((200, 200, 200), (activation, activation))
    rows = rng.standard_normal((50, 200))
    size = np.sqrt(np.mean(apply(network, first_weights(network, rng), rows, 1) ** 2))
    assert 0.1 < size < 3


def test_only_matrices_decay_and_halves_mirror():
    weights = NETWORK.decays().astype(float)
    for W, b, _ in NETWORK.layers(weights):
        assert W.all()
        assert not b.any()
    assert mirrored([784, 256, 2]) == (784, 256, 2, 256, 784)
