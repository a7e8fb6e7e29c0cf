"""Squared geodesic distances as a matrix that multiplies, kept or made for each product."""

import numpy as np
import pytest

from lowland._base.monitor import Monitor
from lowland._engines.graphs.geodesics import shortest_paths
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.neighbors.search import neighbor_graph
from lowland.methods.spectral.isomap import GeodesicSquares, residual_variance
from support.cases import each


@each("dtype", [np.float32, np.float64])
@each("limit", ["1GB", "3MB"])
@each("n", [3, 240, 605, 1000])
def test_products_and_sums_are_those_of_the_matrix(irregular, monkeypatch, dtype, limit, n):
    X = irregular(n, 3)
    graph = symmetrize(neighbor_graph(X, min(12, n - 1)))
    D = shortest_paths(graph)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", limit)
    sample = np.array([0, n // 2])
    squares = GeodesicSquares(graph, dtype, sample, 2, Monitor())
    assert squares.kept == (limit == "1GB" or n <= 240 or (n == 605 and dtype == np.float32))
    V = np.random.default_rng(0).standard_normal((n, 5))
    eps = float(np.finfo(dtype).eps)
    bound = 20 * eps * np.sqrt(n) * (D**2).max()
    np.testing.assert_allclose(squares.times(V), D**2 @ V, atol=bound)
    np.testing.assert_allclose(squares.times(V), D**2 @ V, atol=bound)  # and once more
    np.testing.assert_allclose(squares.row_sums, (D**2).sum(axis=1), rtol=200 * eps)
    assert squares.sum_of_squares == pytest.approx((D**4).sum(), rel=200 * eps)
    np.testing.assert_allclose(squares.sampled, D[sample], rtol=100 * eps)


def test_residual_variance_of_constant_sides():
    Y = np.arange(5.0)[:, None]
    D = np.abs(Y - Y.T)
    np.testing.assert_allclose(residual_variance(D, Y, Y), [0], atol=1e-12)
    np.testing.assert_array_equal(residual_variance(D, 0 * Y, 0 * Y), [1])
    np.testing.assert_array_equal(residual_variance(0 * D, 0 * Y, 0 * Y), [0])
