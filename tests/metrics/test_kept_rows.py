"""Kept rows of distances give what finding them again gives, to the bit."""

import numpy as np
import pytest

from lowland._base.monitor import Monitor
from lowland._engines.distances.distance_rows import distance_rows
from lowland._engines.distances.neighbor_ranks import full_ranks, partner_ranks
from lowland.datasets import digits
from lowland.metrics._views import KeptRows


@pytest.fixture
def both():
    X = digits().X[:400].copy()
    X[7] = X[3]  # a tie
    source = distance_rows(X, "euclidean", None, 1)
    rows = np.array([3, 0, 7, 250, 399])
    return source, rows, KeptRows(source, rows, 1)


def test_distances_and_ranks_are_those_of_the_source(both):
    source, rows, kept = both
    for some in (rows, rows[::-1][:2]):
        np.testing.assert_array_equal(kept.of(some), source.of(some))
        np.testing.assert_array_equal(kept.of(some, 100), source.of(some)[:, 100:])
        np.testing.assert_array_equal(full_ranks(kept, some, 1), full_ranks(source, some, 1))


def test_what_is_handed_out_is_a_copy(both):
    source, rows, kept = both
    kept.of(rows)[:] = -1
    kept.ranks_of(rows)[:] = -1
    np.testing.assert_array_equal(kept.of(rows), source.of(rows))
    assert kept.ranks_of(rows).min() == 0


def test_neighbors_come_nearest_first_without_the_row_itself(both):
    source, rows, kept = both
    indices, distances = kept.nearest(rows, 6)
    D = source.of(rows)
    for row, found, far in zip(rows, indices, distances, strict=True):
        order = [j for j in np.lexsort((np.arange(400), D[list(rows).index(row)])) if j != row]
        assert found.tolist() == order[:6]
        np.testing.assert_array_equal(far, D[list(rows).index(row)][found])


def test_ranks_of_partners(both):
    source, rows, kept = both
    partners = np.array([1, 2, 9, 3, 300, 7, 8, 11])
    starts = np.array([0, 2, 3, 5, 6, 8])
    found = [partner_ranks(s, rows, starts, partners, 1, Monitor()) for s in (source, kept)]
    np.testing.assert_array_equal(*found)
