"""Graphs without copies against loops over all edges."""

import numpy as np
import scipy.sparse

from lowland._engines.graphs.geodesics import without_copies
from lowland._engines.neighbors.duplicates import EqualRows, equal_in_graph


def test_each_group_has_the_shortest_edges_of_its_rows():
    rng = np.random.default_rng(0)
    A = np.where(rng.random((30, 30)) < 0.2, rng.gamma(2.0, size=(30, 30)), 0)
    A = np.triu(A, 1) + np.triu(A, 1).T
    group = rng.permutation(np.arange(30) % 12)
    first = np.array([np.flatnonzero(group == g)[0] for g in range(12)])
    expected = np.full((12, 12), np.inf)
    for i in range(30):
        for j in range(30):
            if A[i, j] > 0 and group[i] != group[j]:
                g, h = group[i], group[j]
                expected[g, h] = min(expected[g, h], A[i, j])
    found = without_copies(scipy.sparse.csr_matrix(A), EqualRows(first, group)).toarray()
    np.testing.assert_array_equal(np.where(found > 0, found, np.inf), expected)


def test_a_graph_without_copies_stays_as_it_is():
    graph = scipy.sparse.csr_matrix(np.array([[0, 1.5, 0], [1.5, 0, 2], [0, 2, 0]]))
    assert equal_in_graph(graph) is None
    assert without_copies(graph, None) is graph
    same = without_copies(graph, EqualRows(np.arange(3), np.arange(3)))
    np.testing.assert_array_equal(same.toarray(), graph.toarray())
