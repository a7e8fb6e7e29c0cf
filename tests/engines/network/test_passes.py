"""Slopes of a network by its inputs."""

import numpy as np

from lowland._engines.network.layers import (
    ACTIVATIONS,
    Network,
    apply,
    backward,
    first_weights,
    forward,
    jacobian,
    slope_at,
)
from support.cases import each


def task(n=6):
    rng = np.random.default_rng(0)
    network = Network((3, 7, 2), ("tanh", "linear"))
    return network, first_weights(network, rng), rng.standard_normal((n, 3))


def test_the_jacobian_is_that_of_finite_differences():
    network, weights, X = task()
    found, step = jacobian(network, weights, X, 1), 1e-6
    for k in range(3):
        e = step * np.eye(3)[k]
        rise = apply(network, weights, X + e, 1) - apply(network, weights, X - e, 1)
        np.testing.assert_allclose(found[:, :, k], rise / (2 * step), rtol=1e-7, atol=1e-9)


def test_slopes_of_the_sum_of_outputs_sum_the_jacobian():
    network, weights, X = task()
    slopes = backward(network, weights, forward(network, weights, X, 1), np.ones((6, 2)), 1)
    np.testing.assert_allclose(slopes.X, jacobian(network, weights, X, 1).sum(axis=1), rtol=1e-12)


@each("activation", [*ACTIVATIONS])
def test_slopes_of_activations_are_finite_differences(activation):
    network, x = Network((1, 1), (activation,)), np.array([[-3.0], [-0.4], [0.3], [2.0]])
    identity = np.array([1.0, 0.0])
    rise = apply(network, identity, x + 1e-6, 1) - apply(network, identity, x - 1e-6, 1)
    found = slope_at(apply(network, identity, x, 1), activation)
    np.testing.assert_allclose(np.broadcast_to(found, x.shape), rise / 2e-6, rtol=1e-7, atol=1e-8)


def test_any_layout_of_rows_is_taken(dense_layout):
    network, weights, X = task(9)
    found = apply(network, weights, dense_layout(X), 1)
    np.testing.assert_array_equal(found, apply(network, weights, X, 1))


def test_the_output_has_the_type_of_the_rows():
    network, weights, X = task()
    single = apply(network, weights, X.astype(np.float32), 1)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, apply(network, weights, X, 1), rtol=1e-5, atol=1e-6)


def test_no_rows_have_no_values():
    network, weights, X = task()
    assert apply(network, weights, X[:0], 1).shape == (0, 2)
