"""Weights of edges: the formula, the default width, and extreme distances."""

import numpy as np
import pytest
import scipy.sparse

from lowland._base.errors import ParameterError
from lowland._engines.graphs.weights import (
    heat_weights,
    local_graph,
    local_scales,
    local_weights,
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


def test_local_scales_are_half_the_last_common_neighbor():
    D = np.array([[0, 1, 3, 0], [1, 0, 2, 7], [3, 2, 0, 5], [0, 7, 5, 0.0]])
    W, scales = local_graph(scipy.sparse.csr_matrix(D))
    assert scales.tolist() == [1.5, 1.0, 1.5, 3.5]  # the second shortest: row 0 has two edges
    W = W.toarray()
    assert W[0, 1] == W[1, 0] == pytest.approx(np.exp(-1 / 1.5))
    assert W[1, 3] == np.exp(-4.0)  # exp(-14) without the bound
    assert np.array_equal(W > 0, D > 0)


def test_copies_have_the_scale_of_their_shortest_real_edge():
    ends = [0, 0, 1, 1, 1, 2, 2, 3, 3], [1, 2, 0, 2, 3, 0, 1, 0, 1]
    graph = scipy.sparse.csr_matrix(([0.0, 0, 0, 0, 5, 0, 4, 3, 6], ends), shape=(4, 4))
    # two edges count: those of row 1 are 0, and row 0 has no other, which leaves the median
    assert local_scales(graph).tolist() == [2.5, 2.5, 2.0, 3.0]
    copies = scipy.sparse.csr_matrix((np.zeros(9), ends), shape=(4, 4))
    assert local_scales(copies).tolist() == [0.5] * 4


def test_local_weights_of_extreme_distances_are_weights():
    for unit in (5e-324, 1e-310, 1e-200, 1e300):
        w = local_weights([0.0, unit, 2 * unit], unit, unit)
        np.testing.assert_allclose(w, [1, np.exp(-1), np.exp(-4)])
    assert local_weights(1e300, 1e-300, 1e300) == np.exp(-4.0)


def test_unknown_weights_are_named(graph):
    with pytest.raises(ParameterError, match="did you mean 'heat'"):
        weighted_graph(graph, "heatt")
