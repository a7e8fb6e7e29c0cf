"""Steps of t-SNE on all rows, from a map of placed rows."""

from __future__ import annotations

import numpy as np
import pytest

from lowland import PCA, TSNE
from lowland._base.rows.arrays import array_rows
from lowland._base.rows.engines import using
from lowland.chunks.graph import knn_graph
from lowland.chunks.refining import refined
from lowland.errors import DataError, MemoryLimitError, ParameterError
from lowland.neighbors import knn_query
from support.cases import each
from support.row_engines import Backward

N = 1500


@pytest.fixture(scope="module")
def X():
    """Clusters in 5 dimensions, of which a map cannot show all neighbors."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((8, 5)) * 4
    return (centers[rng.integers(8, size=N)] + rng.standard_normal((N, 5))).astype(np.float32)


@pytest.fixture(scope="module")
def model(X):
    return TSNE(perplexity=10, max_iter=150, early_exaggeration_iter=50, random_state=0).fit(
        X[:300]
    )


@pytest.fixture(scope="module")
def placed(X, model):
    return model.transform(array_rows(X, task_rows=400)).to_numpy()


@pytest.fixture(scope="module")
def found(X, model, placed):
    return refined(model, array_rows(X, task_rows=400), placed, 50, k=9, n_jobs=1)


def kept_neighbors(X, Y, k=9):
    """Share of the nearest neighbors in the data that are the nearest in the map."""
    there = knn_query(X, X, k + 1).indices[:, 1:]
    here = knn_query(Y.astype(np.float64), Y.astype(np.float64), k + 1).indices[:, 1:]
    return (there[:, :, None] == here[:, None]).any(axis=2).mean()


def divergence(graph, Y, perplexity):
    """KL(P || Q) over all pairs, by its definition."""
    n = len(graph)
    squares = graph.distances.astype(np.float64) ** 2
    low, high = np.zeros(n), np.full(n, 1e6)
    for _ in range(100):
        beta = (low + high) / 2
        p = np.exp(-beta[:, None] * (squares - squares[:, :1]))
        p /= p.sum(axis=1, keepdims=True)
        wide = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1) > np.log(perplexity)
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
    C = np.zeros((n, n))
    np.put_along_axis(C, graph.indices, p, 1)
    P = (C + C.T) / (2 * n)
    K = 1 / (1 + ((Y[:, None].astype(np.float64) - Y[None]) ** 2).sum(axis=2))
    np.fill_diagonal(K, 0)
    some = P > 0
    return (P[some] * np.log(P[some] / (K / K.sum())[some])).sum()


def test_steps_lower_the_divergence_and_find_neighbors(X, placed, found):
    assert found.Y.shape == placed.shape
    assert found.Y.dtype == placed.dtype
    assert found.n_iter == 50
    assert found.kl_after < found.kl_before
    assert kept_neighbors(X, found.Y) > kept_neighbors(X, placed) + 0.02


def test_divergences_are_those_of_the_definition(X, model, placed, found):
    graph = knn_graph(array_rows(X), 9)
    assert found.kl_before == pytest.approx(divergence(graph, placed, 6), rel=0.02)  # as the mesh
    assert found.kl_after == pytest.approx(divergence(graph, found.Y, 6), rel=0.02)
    assert found.recall == graph.recall_


def test_no_steps_only_measure(X, model, placed, found):
    here = refined(model, array_rows(X), placed, 0, k=9)
    np.testing.assert_allclose(here.Y, placed - placed.mean(axis=0), atol=1e-4)
    assert here.kl_before == here.kl_after
    assert here.kl_before == pytest.approx(found.kl_before, rel=1e-3)


def test_bytes_depend_on_rows_and_map_only(X, model, placed, found):
    again = refined(model, array_rows(X, task_rows=400), placed, 50, k=9, n_jobs=2)
    assert again.Y.tobytes() == found.Y.tobytes()
    assert again.kl_after == found.kl_after
    with using(Backward()):
        other = refined(model, array_rows(X, task_rows=400), placed, 50, k=9)
    assert other.Y.tobytes() == found.Y.tobytes()


def test_a_map_of_many_rows_is_arranged_in_memory_and_comes_back_in_order():
    """Above 5000 rows the descent reorders its points."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((6, 3)) * 20, 1000, axis=0) + rng.standard_normal((6000, 3))
    X = X[rng.permutation(6000)]
    pca = PCA(2).fit_transform(X)
    model = TSNE(max_iter=1).fit(X[:200])
    here = refined(model, array_rows(X), pca, 101, k=6)
    assert kept_neighbors(X, here.Y, 6) > kept_neighbors(X, pca, 6) + 0.1


def test_equal_rows_share_a_place(X, model):
    table = X.copy()
    table[100:130] = table[50]
    Y = np.random.default_rng(0).standard_normal((N, 2)) * 10
    here = refined(model, array_rows(table), Y, 10, k=9)
    assert (here.Y[100:130] == here.Y[50]).all()
    assert here.Y.dtype == np.float64


def test_missing_neighbors_are_passed_over(X, model, placed):
    graph = knn_graph(array_rows(X), 9)
    ids, distances = graph.indices.copy(), graph.distances.copy()
    ids[::7, 4:], distances[::7, 4:] = -1, np.inf
    some = type(graph)(ids, distances, N)
    here = refined(model, array_rows(X), placed, 20, graph=some)
    assert np.isfinite(here.Y).all()
    assert here.kl_after < here.kl_before


@each(
    ("change", "error", "message"),
    [
        ({"estimator": PCA()}, ParameterError, "is not a t-SNE model"),
        ({"rows": np.ones((5, 5))}, ParameterError, "rows is not a table of rows"),
        ({"rows": array_rows(np.ones((N, 4)))}, DataError, "rows have 4 columns"),
        ({"Y": np.ones((5, 2))}, DataError, r"init has shape \(5, 2\)"),
        ({"Y": np.full((N, 2), np.nan)}, DataError, "NaN"),
        ({"steps": -1}, ParameterError, "steps=-1"),
        ({"steps": 2**62}, ParameterError, "steps="),
        ({"k": 0}, ParameterError, "n_neighbors=0"),
        ({"graph": 3}, ParameterError, "graph=3 is not a NeighborGraph"),
        ({"n_jobs": 0}, ParameterError, "n_jobs=0"),
    ],
)
def test_nonsense_is_refused(X, model, placed, change, error, message):
    given = {"estimator": model, "rows": array_rows(X), "Y": placed, "steps": 5, **change}
    with pytest.raises(error, match=message):
        refined(**given)


def test_too_little_memory_is_told_first(X, model, placed, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100kB")
    with pytest.raises(
        MemoryLimitError, match=r"the refinement of a map of 1500 rows .* smaller k"
    ):
        refined(model, array_rows(X), placed)


def test_a_graph_that_is_known_is_used(X, model, placed, found):
    rows = array_rows(X, task_rows=400)
    here = refined(model, rows, placed, 50, graph=knn_graph(rows, 9))
    assert here.Y.tobytes() == found.Y.tobytes()
