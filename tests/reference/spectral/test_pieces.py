"""Rows that are left out of a graph in pieces, wherever they stand among the others."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland import LLE, LTSA, DiffusionMaps, HessianLLE, Isomap, LaplacianEigenmaps, ModifiedLLE
from support.cases import each

LARGE, SMALL = 60, 25


@pytest.fixture
def pieces(irregular):
    """Rows of two pieces, a mask of the larger one, and new rows; the first row is left out."""
    X = irregular(LARGE + SMALL, 3)
    X[LARGE:] += 50
    order = np.random.default_rng(1).permutation(LARGE + SMALL)
    order = np.concatenate([[LARGE], order[order != LARGE]])
    return X[order], order < LARGE, irregular(LARGE + 8, 3)[LARGE:]


@each("metric", ["euclidean", "precomputed"])
@each("method", [Isomap, LaplacianEigenmaps, DiffusionMaps, LLE, ModifiedLLE, HessianLLE, LTSA])
def test_the_map_is_that_of_the_largest_piece_alone(method, metric, pieces):
    X, inside, new = pieces
    assert not inside[0]
    if metric == "precomputed":
        fitted, alone_rows = cdist(X, X), cdist(X[inside], X[inside])
        placed, alone_new = cdist(new, X), cdist(new, X[inside])
    else:
        fitted, alone_rows, placed, alone_new = X, X[inside], new, new
    given = {"n_neighbors": 8, "metric": metric, "random_state": 0}
    largest = method(2, on_disconnected="largest", **given).fit(fitted)
    alone = method(2, on_disconnected="raise", **given).fit(alone_rows)
    size = np.abs(alone.embedding_).max()
    assert largest.n_connected_components_ == 2
    np.testing.assert_array_equal(largest.excluded_, np.flatnonzero(~inside))
    close = {"rtol": 0, "atol": 1e-6 * size}
    np.testing.assert_allclose(largest.embedding_[inside], alone.embedding_, **close)
    np.testing.assert_allclose(largest.transform(placed), alone.transform(alone_new), **close)
    back = alone.transform(fitted[~inside][:, inside] if metric == "precomputed" else X[~inside])
    np.testing.assert_allclose(largest.embedding_[~inside], back, rtol=1e-5, atol=1e-6 * size)
