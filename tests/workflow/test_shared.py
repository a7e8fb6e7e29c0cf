"""What the steps of a run share is computed once, and is what each would compute itself."""

from __future__ import annotations

import numpy as np
import pytest

import lowland
from lowland.neighbors import knn_graph
from lowland.tables.options import TableOptions
from lowland.workflow._stages import Stages
from lowland.workflow.fitting import NO_TARGET, FitPlan, fit_method
from lowland.workflow.options import RunOptions, RunSettings
from lowland.workflow.run import MemoryRows, prepare_run


def shared_work(n, p):
    X = np.random.default_rng(0).standard_normal((n, p)) * np.linspace(3, 1, p)
    rows = MemoryRows(X, RunOptions(TableOptions(), RunSettings()))
    prepare_run(rows, Stages())
    return X, rows


def fitted(shared, cls, **parameters):
    return fit_method(shared, FitPlan(cls, parameters, NO_TARGET, RunSettings()), Stages())


def test_the_scores_of_the_reduction_are_the_pca_map():
    X, shared = shared_work(90, 70)
    assert shared.pca_map(2) is None
    fitted(shared, lowland.TSNE, max_iter=5, perplexity=5)
    np.testing.assert_allclose(
        shared.pca_map(2), lowland.PCA(2).fit_transform(X), rtol=1e-7, atol=1e-9
    )
    assert shared.pca_map(51) is None
    assert shared.graph is None  # that of the scores is not one of the table


@pytest.mark.parametrize("parameters", [{}, {"whiten": True}, {"scale": True}])
def test_a_pca_of_the_table_is_its_pca_map_unless_it_is_rescaled(parameters):
    _, shared = shared_work(40, 5)
    made = fitted(shared, lowland.PCA, **parameters)
    if parameters:
        assert shared.pca_map(2) is None
    else:
        np.testing.assert_array_equal(shared.pca_map(2), made.Y)


def test_the_neighbor_graph_of_the_table_is_kept():
    X, shared = shared_work(60, 5)
    made = fitted(shared, lowland.TSNE, max_iter=5, perplexity=5)
    expected = knn_graph(X, shared.graph.n_neighbors)
    np.testing.assert_array_equal(shared.graph.indices, expected.indices)
    assert "_graph_listener" not in vars(made.estimator)
    np.testing.assert_array_equal(made.Y, lowland.TSNE(
        max_iter=5, perplexity=5, random_state=0).fit_transform(X))  # fmt: skip


def test_a_graph_by_another_metric_is_not_kept():
    _, shared = shared_work(60, 5)
    fitted(shared, lowland.TSNE, max_iter=5, perplexity=5, metric="cosine")
    assert shared.graph is None
    made = fitted(shared, lowland.Isomap)
    assert "_graph_listener" not in vars(made.estimator)
