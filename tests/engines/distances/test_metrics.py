"""The table of metrics: every name works in every engine, and its facts are true."""

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist

from lowland._base.errors import DataError, ParameterError
from lowland._engines.distances.distance_rows import CrossDistances, DistanceTiles, distance_rows
from lowland._engines.distances.metrics import (
    METRICS,
    canonical,
    check_metric,
    metrics_with,
    pair_distances,
    tree_exponent,
    unit_power,
)
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query

SCIPY = {"manhattan": "cityblock", "gower": "cityblock", "l1": "cityblock", "l2": "euclidean"}
OF_ROWS = [name for name in METRICS if name != "precomputed"]


@pytest.fixture
def table():
    """Values >= 0 with columns of 0 and 1 only for the boolean metric, and no row of zeros."""

    def make(metric, n=60, seed=0):
        rng = np.random.default_rng(seed)
        if metric == "jaccard":
            X = (rng.random((n, 7)) < 0.4).astype(float)
            X[:, 0] = 1.0
            return X
        if metric == "hamming":
            return rng.integers(0, 4, (n, 7)).astype(float)
        return rng.gamma(1.0, size=(n, 7))

    return make


def expected(A, B, metric):
    kind = bool if metric == "jaccard" else float
    return cdist(A.astype(kind), B.astype(kind), SCIPY.get(metric, metric))


@pytest.mark.parametrize("metric", OF_ROWS)
def test_every_engine_computes_the_distances_of_scipy(metric, table):
    X, Z = table(metric), table(metric, 9, seed=1)
    D, new = expected(X, X, metric), expected(Z, X, metric)
    everyone = np.arange(len(X))
    close = {"rtol": 1e-9, "atol": 1e-7}  # 1 - cos loses half of its digits
    np.testing.assert_allclose(distance_rows(X, metric, None, 1).of(everyone), D, **close)
    np.testing.assert_allclose(CrossDistances(X, metric, None, 1).of(Z), new, **close)
    tiles = DistanceTiles(X, metric)
    np.testing.assert_allclose(tiles.tile(everyone, slice(None)), D, **close)
    np.fill_diagonal(D, np.inf)
    graph, query = neighbor_graph(X, 5, metric=metric), neighbor_query(X, Z, 5, metric=metric)
    np.testing.assert_allclose(graph.distances, np.sort(D, axis=1)[:, :5], **close)
    np.testing.assert_allclose(query.distances, np.sort(new, axis=1)[:, :5], **close)
    assert graph.metric == query.metric == canonical(metric)


@pytest.mark.parametrize("metric", OF_ROWS)
def test_distances_grow_with_the_unit_as_the_table_says(metric, table):
    power = unit_power(canonical(metric))
    if power is None:
        return
    X = table(metric)
    np.testing.assert_allclose(
        pair_distances(8 * X, 8 * X, canonical(metric)),
        8.0**power * pair_distances(X, X, canonical(metric)),
        atol=1e-12,
    )


def test_a_tree_and_products_know_what_the_table_says():
    assert set(metrics_with("products")) == {"correlation", "cosine", "euclidean", "sqeuclidean"}
    assert tree_exponent("minkowski", {"p": 3}) == 3
    assert tree_exponent("cosine") is None
    assert tree_exponent(lambda a, b: 0.0) is None
    sparse = scipy.sparse.csr_array(np.eye(4))
    for name in METRICS:
        if canonical(name) in metrics_with("sparse"):
            check_metric(sparse, name, None)
        else:
            with pytest.raises(ParameterError, match="not available for sparse data"):
                check_metric(sparse, name, None)


def test_two_rows_of_zeros_are_at_distance_0():
    X = np.array([[0.0, 0], [0, 0], [1, 2]])
    for metric in ("braycurtis", "canberra"):
        assert neighbor_graph(X, 1, metric=metric).distances[0, 0] == 0
        assert np.isfinite(distance_rows(X, metric, None, 1).of(np.arange(3))).all()


def test_values_that_a_metric_is_not_defined_for_are_refused():
    X = np.array([[1.0, 2], [3, -1], [0, 1]])
    with pytest.raises(DataError, match=r"braycurtis.*needs values >= 0.*-1"):
        neighbor_graph(X, 1, metric="braycurtis")
    with pytest.raises(DataError, match=r"jaccard.*only 0 and 1"):
        neighbor_graph(X, 1, metric="jaccard")


def test_unknown_names_get_a_suggestion():
    for wrong in ("euclidian", "eucledian"):
        with pytest.raises(ParameterError, match="did you mean 'euclidean'"):
            canonical(wrong)
