"""Hubs and the concentration of distances."""

import numpy as np
import pytest
from scipy.stats import skew

from lowland import metrics
from lowland.neighbors import knn_graph


def test_hubness_is_the_skewness_of_neighbor_counts(pair, oracle):
    k = min(5, pair.n - 1)
    r = oracle.ranks(pair.D)
    counts = ((r >= 1) & (r <= k)).sum(axis=0)
    found = metrics.hubness(pair.X, k)
    assert np.array_equal(found.occurrences, counts)
    if np.ptp(counts):
        assert found.skewness == pytest.approx(skew(counts), rel=1e-10)
    assert found.antihub_share == pytest.approx((counts == 0).mean())


def test_a_graph_is_enough_for_hubs(irregular):
    X = irregular(100, 5)
    found = metrics.hubness(knn_graph(X, 10), 10)
    assert np.array_equal(found.occurrences, metrics.hubness(X, 10).occurrences)


def test_everybody_equally_chosen_has_no_skewness():
    ring = np.linspace(0, 2 * np.pi, 41)[:-1]
    X = np.column_stack([np.cos(ring), np.sin(ring)])
    D = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    D = np.minimum(D, 40 - D).astype(float)
    assert metrics.hubness(D, 2, metric="precomputed").skewness == 0.0
    assert abs(metrics.hubness(X, 2).skewness) < 0.5


def test_concentration_is_what_it_says(irregular):
    X, k = irregular(120, 5), 7
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    others = [np.delete(row, i) for i, row in enumerate(D)]
    found = metrics.distance_concentration(X, k)
    assert found.relative_contrast == pytest.approx(np.mean([o.mean() / o.min() for o in others]))
    assert found.relative_spread == pytest.approx(np.mean([o.std() / o.mean() for o in others]))
    assert found.neighborhood_share == pytest.approx(
        np.mean([np.sort(o)[k - 1] / o.mean() for o in others])
    )
    d = metrics.intrinsic_dimension(X)
    assert found.edge_length == pytest.approx((k / 119) ** (1 / d))


def test_copies_do_not_make_the_contrast_infinite(irregular):
    X = np.vstack([irregular(60, 4)] * 2)
    assert np.isfinite(metrics.distance_concentration(X).relative_contrast)
    with pytest.raises(ValueError, match="all rows are equal"):
        metrics.distance_concentration(np.ones((20, 2)))
