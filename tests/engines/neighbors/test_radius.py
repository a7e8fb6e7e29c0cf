"""Radius graphs against all distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland._base.errors import MemoryLimitError, ParameterError
from lowland._engines.distances import distance_rows
from lowland._engines.neighbors.radius import radius_graph
from support.graphs import canonical, clusters, to_dense


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "cosine"])
@pytest.mark.parametrize("d", [2, 30])
def test_radius_graphs_hold_every_pair_within_the_radius(metric, d, dtype, monkeypatch):
    monkeypatch.setattr(distance_rows, "TILE", 1000)  # several tiles
    X = np.repeat(clusters(70, d, 3)[0], 2, axis=0).astype(dtype)
    D = cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))
    np.fill_diagonal(D, np.nan)
    radius = np.nanquantile(D, 0.2)
    found = radius_graph(X, radius, metric, threads=2)
    assert canonical(found)
    assert found.dtype == dtype
    dense = to_dense(found)
    assert np.array_equal(dense, dense.T, equal_nan=True)
    sure = np.abs(D - radius) > 1e-6
    assert np.array_equal(~np.isnan(dense)[sure], (radius >= D)[sure])
    stored = ~np.isnan(dense)
    assert np.allclose(dense[stored], D[stored], rtol=1e-6, atol=1e-7)


def test_the_radius_itself_is_within_and_0_finds_the_copies():
    X = np.array([[0.0], [1], [2], [2]])
    assert radius_graph(X, 1).nnz == 2 * 4
    assert radius_graph(X, np.nextafter(1.0, 0)).nnz == 2
    assert np.array_equal(radius_graph(X, 0).toarray(), np.zeros((4, 4)))
    assert radius_graph(X, 0).nnz == 2
    assert radius_graph(X[:1], 5).nnz == 0
    D = np.abs(X - X.T)
    assert (radius_graph(D, 1, "precomputed") != radius_graph(X, 1)).nnz == 0


def test_a_radius_graph_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1MB")
    for d in (2, 30):
        X = np.random.default_rng(0).random((300, d))
        with pytest.raises(MemoryLimitError, match=r"edges within radius=100.*smaller radius"):
            radius_graph(X, 100.0)


@pytest.mark.parametrize("radius", [-1, np.nan, np.inf, "wide"])
def test_a_radius_that_is_none_is_named(radius):
    with pytest.raises(ParameterError, match="radius="):
        radius_graph(np.zeros((3, 2)), radius)


@pytest.mark.parametrize("params", [{"p": np.nan}, {"p": 3}, {"q": 1}, "p"])
def test_parameters_that_the_metric_does_not_have_are_refused(params):
    with pytest.raises(ParameterError, match="metric_params="):
        radius_graph(np.zeros((3, 2)), 1.0, metric_params=params)
