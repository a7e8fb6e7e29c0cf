"""Weights of edges: the formula, the default width, and extreme distances."""

import numpy as np
import pytest
import scipy.sparse

from lowland._core.errors import ParameterError
from lowland._engines.graphs.weights import (
    heat_weights,
    median_length,
    root_mean_square,
    weighted_graph,
)

LENGTHS = np.array([0.0, 1.0, 2.0, 4.0])


@pytest.fixture
def graph():
    return scipy.sparse.csr_matrix((LENGTHS, ([0, 0, 1, 2], [1, 2, 2, 0])), shape=(3, 3))


def test_heat_weights_are_their_formula_and_keep_the_edges(graph):
    W, width = weighted_graph(graph, "heat", width=np.sqrt(3.0))
    assert width == np.sqrt(3.0)
    assert np.array_equal(W.indices, graph.indices)
    assert np.array_equal(W.indptr, graph.indptr)
    np.testing.assert_allclose(W.data, np.exp(-(LENGTHS**2) / 3), rtol=1e-14)


def test_the_default_width_is_the_median_edge_without_copies(graph):
    assert weighted_graph(graph).width == 2.0
    assert median_length(np.zeros(3)) == root_mean_square(np.zeros(3)) == 1.0
    assert root_mean_square(np.array([3.0, 4.0])) == pytest.approx(np.sqrt(12.5))


def test_binary_weights_are_1_also_for_copies(graph):
    W, width = weighted_graph(graph, "binary")
    assert width is None
    assert np.array_equal(W.data, np.ones(4))


def test_a_far_edge_keeps_the_least_weight_and_nothing_overflows():
    assert heat_weights([1e6], 1.0)[0] == 1e-9
    assert heat_weights([1e6], 1.0, least=0.0)[0] == 0
    assert heat_weights([0.0, 1e-100], 0.0, least=0.0).tolist() == [1, 0]
    for unit in (1e-300, 1e300):
        edges = unit * np.array([1.0, 2, 3])
        width = median_length(edges)
        np.testing.assert_allclose(heat_weights(edges, width), np.exp([-0.25, -1, -2.25]))
        assert root_mean_square(edges) == pytest.approx(unit * np.sqrt(14 / 3))


def test_unknown_weights_are_named(graph):
    with pytest.raises(ParameterError, match="did you mean 'heat'"):
        weighted_graph(graph, "heatt")
