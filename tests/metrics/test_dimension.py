"""Intrinsic dimension on shapes of known dimension, and beside scikit-dimension."""

import numpy as np
import pytest
import scipy.sparse

from lowland import metrics
from lowland.datasets import helix, s_curve, sphere, swiss_roll, torus
from lowland.neighbors import knn_graph
from support.cases import each


def flat_torus(n, d, seed=0):
    """d circles at right angles: no edge, constant density."""
    angle = np.random.default_rng(seed).random((n, d)) * 2 * np.pi
    return np.hstack([np.cos(angle), np.sin(angle)])


def high_sphere(n, d, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d + 1))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


SHAPES = {
    "swiss roll": (2, lambda: swiss_roll(3000, random_state=0).X),
    "s curve": (2, lambda: s_curve(3000, random_state=0).X),
    "sphere": (2, lambda: sphere(3000, random_state=0).X),
    "torus": (2, lambda: torus(3000, random_state=0).X),
    "helix": (1, lambda: helix(3000, random_state=0).X),
    "4-sphere": (4, lambda: high_sphere(4000, 4)),
    "flat torus": (3, lambda: flat_torus(4000, 3)),
}


@each("method", ["twonn", "mle"])
@each("shape", SHAPES)
def test_known_dimensions_are_found(shape, method):
    d, make = SHAPES[shape]
    assert metrics.intrinsic_dimension(make(), method) == pytest.approx(d, rel=0.1)


@pytest.mark.parametrize("method", ["twonn", "mle"])
def test_intervals_cover_the_truth(method):
    """On tori in the plane of angles, where nothing biases the estimate."""
    covered = 0
    for seed in range(100):
        estimate = metrics.intrinsic_dimension(flat_torus(800, 2, seed), method, n_neighbors=8)
        low, high = estimate.interval
        covered += low <= 2 <= high
    assert covered >= 90


@pytest.mark.parametrize("discard", [0.0, 0.1, 0.5])
def test_twonn_is_the_likeliest_rate_of_censored_exponentials(discard, irregular):
    """The score equation d = kept / sum, checked as the maximum of the likelihood itself."""
    X = irregular(300, 3)
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(D, np.inf)
    near = np.sort(D, axis=1)[:, :2]
    x = np.sort(np.log(near[:, 1] / near[:, 0]))
    kept = 300 - int(np.ceil(discard * 300))

    def log_likelihood(d):
        return np.sum(np.log(d) - d * x[:kept]) - (300 - kept) * d * x[kept - 1]

    grid = np.linspace(0.5, 6, 20_001)
    best = grid[np.argmax([log_likelihood(d) for d in grid])]
    found = metrics.intrinsic_dimension(X, discard=discard)
    assert found == pytest.approx(best, abs=3e-4)


def test_mle_averages_inverse_estimates(irregular):
    X, k = irregular(200, 4), 7
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(D, np.inf)
    inverse = []
    for row in D:
        T = np.sort(row)[:k]
        inverse.append(np.mean([np.log(T[k - 1] / T[j]) for j in range(k - 1)]))
    found = metrics.intrinsic_dimension(X, "mle", n_neighbors=k)
    assert found == pytest.approx(1 / np.mean(inverse), rel=1e-10)


def test_participation_ratio(irregular):
    X = irregular(150, 6)
    values = np.linalg.eigvalsh(np.cov(X.T))
    expected = values.sum() ** 2 / (values**2).sum()
    found = metrics.intrinsic_dimension(X, "pca")
    assert found == pytest.approx(expected, rel=1e-10)
    assert found.interval[0] < found < found.interval[1]
    sparse = metrics.intrinsic_dimension(scipy.sparse.csr_array(X), "pca")
    assert sparse == pytest.approx(expected, rel=1e-10)
    assert sparse.interval == pytest.approx(found.interval, rel=1e-8)


@each("p", [4, 40])
def test_the_interval_of_the_participation_ratio_is_a_jackknife(p):
    n = 20  # as many as there are groups: each row is left out once
    X = np.random.default_rng(0).gamma(1.0, size=(n, p)) * np.arange(1, p + 1) ** -0.5

    def ratio(rows):
        K = (rows - rows.mean(axis=0)) @ (rows - rows.mean(axis=0)).T
        return np.trace(K) ** 2 / (K**2).sum()

    found = metrics.intrinsic_dimension(X, "pca")
    others = np.array([ratio(np.delete(X, i, axis=0)) for i in range(n)])
    reach = 1.96 * np.sqrt((n - 1) / n * ((others - others.mean()) ** 2).sum())
    assert found == pytest.approx(ratio(X), rel=1e-9)
    assert found.interval == pytest.approx((found - reach, found + reach), rel=1e-9)


def test_wide_data_go_through_the_inner_products_of_rows(monkeypatch, irregular):
    X = irregular(20, 60)
    by_columns = metrics.intrinsic_dimension(X, "pca")
    monkeypatch.setattr("lowland.metrics.dimension.WIDE", 30)
    by_rows = metrics.intrinsic_dimension(X, "pca")
    assert by_rows == pytest.approx(by_columns, rel=1e-10)
    assert by_rows.interval == pytest.approx(by_columns.interval, rel=1e-8)


def test_equal_axes_share_the_variance_equally():
    X = np.vstack([np.eye(8), -np.eye(8)])
    assert metrics.intrinsic_dimension(X, "pca") == pytest.approx(8)


@pytest.mark.parametrize(("method", "peer"), [("twonn", "TwoNN"), ("mle", "MLE")])
@pytest.mark.parametrize("shape", ["swiss roll", "4-sphere", "flat torus"])
def test_beside_scikit_dimension(shape, method, peer):
    skdim = pytest.importorskip("skdim", reason="compares with scikit-dimension")
    X = SHAPES[shape][1]()
    theirs = getattr(skdim.id, peer)().fit(X).dimension_
    assert metrics.intrinsic_dimension(X, method) == pytest.approx(theirs, rel=0.05)


@pytest.mark.parametrize("method", ["twonn", "mle"])
def test_copies_of_rows_do_not_matter(method, irregular):
    X = irregular(300, 3)
    expected = metrics.intrinsic_dimension(X, method)
    assert metrics.intrinsic_dimension(np.vstack([X, X[:100], X]), method) == expected


def test_distances_and_graphs_serve_as_well(irregular, metric_distances):
    X = irregular(200, 3)
    expected = metrics.intrinsic_dimension(X)
    D = metric_distances(X, "euclidean")
    assert metrics.intrinsic_dimension(D, metric="precomputed") == pytest.approx(expected)
    assert metrics.intrinsic_dimension(knn_graph(X, 5)) == pytest.approx(expected)
    assert metrics.intrinsic_dimension(scipy.sparse.csr_array(X)) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["twonn", "mle", "pca"])
def test_data_without_a_dimension_are_refused(method):
    with pytest.raises(ValueError, match=r"equal|different rows"):
        metrics.intrinsic_dimension(np.ones((50, 3)), method)


def test_wrong_parameters_are_named(irregular):
    X = irregular(30, 3)
    with pytest.raises(ValueError, match="unknown method 'twon'; did you mean 'twonn'"):
        metrics.intrinsic_dimension(X, "twon")
    with pytest.raises(ValueError, match="discard=1"):
        metrics.intrinsic_dimension(X, discard=1)
    with pytest.raises(ValueError, match="n_neighbors=1"):
        metrics.intrinsic_dimension(X, "mle", n_neighbors=1)
    with pytest.raises(ValueError, match="20 neighbors need at least 21"):
        metrics.intrinsic_dimension(X[:15], "mle")
    with pytest.raises(ValueError, match="method='pca' needs the data"):
        metrics.intrinsic_dimension(knn_graph(X, 3), "pca")
