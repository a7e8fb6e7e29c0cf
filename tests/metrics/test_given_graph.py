"""A neighbor graph beside the data spares the search, and a wrong one is refused."""

import numpy as np
import pytest

from lowland import TSNE, metrics
from lowland.metrics import Comparison
from lowland.neighbors import NeighborGraph, knn_graph


@pytest.fixture
def both(irregular):
    return irregular(120, 6), irregular(120, 2)


@pytest.mark.parametrize("sample", [None, 40])
def test_the_numbers_are_the_same(both, sample):
    X, Y = both
    plain = metrics.quality(X, Y, sample=sample).to_dict()
    for k in (3, 10, 40):
        assert metrics.quality(X, Y, sample=sample, graph=knn_graph(X, k)).to_dict() == plain


def test_neighbors_are_not_searched_again(both, monkeypatch):
    X, Y = both
    compared = Comparison(X, Y, graph=knn_graph(X, 30))
    monkeypatch.setattr("lowland.metrics._views.neighbor_graph", None)
    assert compared.data_neighbors(30).shape == (120, 30)


def test_a_graph_of_other_data_is_refused(both):
    X, Y = both
    with pytest.raises(ValueError, match="graph: rows 0 and"):
        Comparison(X, Y, graph=knn_graph(X[:, :4], 10))
    with pytest.raises(ValueError, match="graph has 119 rows"):
        Comparison(X, Y, graph=knn_graph(X[1:], 10))
    with pytest.raises(ValueError, match="in the metric 'cosine'"):
        Comparison(X, Y, graph=knn_graph(X, 10, metric="cosine"))
    with pytest.raises(ValueError, match="graph=ndarray"):
        Comparison(X, Y, graph=np.zeros((120, 10)))
    with pytest.raises(ValueError, match="X is a neighbor graph already"):
        Comparison(knn_graph(X, 10), Y, graph=knn_graph(X, 10))


def test_an_approximate_graph_is_not_believed(both):
    X, Y = both
    exact = knn_graph(X, 10)
    wrong = NeighborGraph(exact.indices[:, ::-1], exact.distances, 120, recall_=0.9)
    assert metrics.trustworthiness(X, Y, graph=wrong) == metrics.trustworthiness(X, Y)


def test_a_fit_hands_out_the_graph_it_used(both):
    X, _ = both
    method = TSNE(perplexity=10, max_iter=20, random_state=0)
    with method.sharing() as shared:
        Y = method.fit_transform(X)
    assert shared.graph.n_neighbors == method.n_neighbors_
    assert np.array_equal(shared.graph.indices, knn_graph(X, method.n_neighbors_).indices)
    assert metrics.quality(X, Y, graph=shared.graph).to_dict() == metrics.quality(X, Y).to_dict()
    assert method._shared is None  # the model does not keep it
    assert np.array_equal(method.fit_transform(X), Y)
