"""Patches across bridges."""

import numpy as np

from lowland._engines.graphs.components import Edges
from lowland._engines.patches.patch_weights import across_bridges


def test_ends_of_bridges_see_both_sides():
    neighbors = np.array([[(5 * (i // 5)) + (i + s) % 5 for s in range(1, 5)] for i in range(10)])
    joined = across_bridges(neighbors, Edges(np.array([0]), np.array([7]), np.array([1.0])))
    assert joined.shape == neighbors.shape
    assert sorted(joined[0]) == [1, 2, 7, 8]  # its own two nearest, the other end and its nearest
    assert sorted(joined[7]) == [0, 1, 8, 9]
    untouched = [i for i in range(10) if i not in (0, 7)]
    assert np.array_equal(joined[untouched], neighbors[untouched])


def test_a_hub_of_many_bridges_keeps_the_length_of_its_list():
    k, n = 4, 60
    neighbors = np.array([[(5 * (i // 5)) + (i + s) % 5 for s in range(1, 5)] for i in range(n)])
    ends = np.arange(5, n, 5)
    hub = across_bridges(neighbors, Edges(np.zeros(len(ends), int), ends, np.ones(len(ends))))
    assert hub.shape == (n, k)
    assert all(len(set(row)) == k and i not in row for i, row in enumerate(hub.tolist()))
    assert all(0 in hub[end] for end in ends)
