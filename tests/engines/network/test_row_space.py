"""Networks of wide tables in the space of their rows."""

import numpy as np
import pytest

from lowland._engines.network.layers import Network, apply, first_weights, row_space
from support.cases import each


def wide(n=9, p=40, rank=None):
    rng = np.random.default_rng(0)
    X = (
        rng.standard_normal((n, p))
        if rank is None
        else rng.standard_normal((n, rank)) @ (rng.standard_normal((rank, p)))
    )
    X[:, 5] = 0.0
    return X


@each("rank", [None, 3])
def test_coordinates_keep_the_rows_and_their_size(rank):
    X = wide(rank=rank)
    space = row_space(X)
    Y = space.coordinates(X, 1)
    assert Y.shape == (9, 9 if rank is None else rank)
    np.testing.assert_allclose(Y @ space.axes / space.size, X, atol=1e-12)
    assert np.mean(Y**2) == pytest.approx(np.mean(X**2))
    np.testing.assert_allclose(space.axes @ space.axes.T, np.eye(Y.shape[1]), atol=1e-12)
    assert (space.axes[:, 5] == 0).all()


@each("tied", [False, True])
def test_a_widened_network_does_with_rows_what_it_did_with_coordinates(tied):
    X = wide()
    space = row_space(X)
    Y, r = space.coordinates(X, 1), len(space.axes)
    network = Network((r, 6, 2, 6, r), ("tanh", "linear", "tanh", "linear"), tied)
    weights = first_weights(network, np.random.default_rng(1))
    output = apply(network, weights, Y, 1)
    whole = Network((40, 6, 2, 6, 40), network.activations)
    found = apply(whole, space.widened(network, weights, inputs=True, outputs=True), X, 1)
    np.testing.assert_allclose(space.coordinates(found, 1), output, atol=1e-12)
    # what is rebuilt lies in the space of the rows, and the error per value is the same
    np.testing.assert_allclose(found @ space.axes.T @ space.axes, found, atol=1e-12)
    assert np.mean((found - X) ** 2) == pytest.approx(np.mean((output - Y) ** 2))


@each("X", [np.ones((10, 19)), np.zeros((3, 10))], ids=["not wide", "zeros"])
def test_tables_that_are_not_wide_and_tables_of_zeros_are_taken_as_they_are(X):
    space, weights = row_space(X), np.arange(5.0)
    assert space.axes is None
    network = Network((X.shape[1], 2), ("linear",))
    for kept, given in (
        (space.coordinates(X, 1), X),
        (space.unscaled(X, 1), X),
        (space.restored(X), X),
        (space.widened(network, weights, inputs=True), weights),
    ):
        np.testing.assert_array_equal(kept, given)
