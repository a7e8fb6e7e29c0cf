"""Distances of new rows to fitted ones: those of scipy for any layout, each row as if alone."""

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_distances

from lowland._engines.distances import distance_rows as engine
from lowland._engines.distances.distance_rows import CrossDistances


def irregular(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) * [1, 3, 0.1, 20][:p] + rng.exponential(size=(n, 1))


def table(points, queries, metric, params=None, threads=1):
    blocks = CrossDistances(points, metric, params, threads).blocks(queries)
    return np.vstack([D for _, D in blocks])


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "correlation", "minkowski"])
def test_distances_are_those_of_scipy_and_rows_do_not_meet(metric):
    X, new = irregular(30, 4), irregular(7, 4, seed=1)
    params = {"p": 3} if metric == "minkowski" else {}
    found = table(X, new, metric, params)
    np.testing.assert_allclose(found, cdist(new, X, metric, **params), atol=1e-12)
    alone = np.vstack([table(X, row[None], metric, params, threads=2) for row in new])
    np.testing.assert_array_equal(alone, found)


def test_rows_without_direction_are_far_from_all_that_have_one():
    X, new = irregular(6, 3), irregular(3, 3, seed=1)
    X[2] = new[1] = 0
    expected = cosine_distances(new, X)
    expected[1, 2] = 0
    np.testing.assert_allclose(table(X, new, "cosine"), expected, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "cityblock"])
def test_sparse_rows_become_dense_by_parts_only(metric, monkeypatch):
    X, new = irregular(40, 4), irregular(9, 4, seed=1)
    X[X < 0.5], new[new < 0.5] = 0, 0
    expected = table(X, new, metric)
    monkeypatch.setattr(engine, "TILE", 28)  # seven rows of points at a time
    largest = []
    original = engine._dense

    def dense(Z):
        largest.append(Z.shape[0])
        return original(Z)

    monkeypatch.setattr(engine, "_dense", dense)
    found = table(scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix(new), metric)
    np.testing.assert_array_equal(found, expected)
    assert max(largest) < 40
