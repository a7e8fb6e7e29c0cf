"""SNE and symmetric SNE: known values, a naive minimizer, real data, hard data."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import rel_entr
from sklearn.neighbors import KNeighborsClassifier

from lowland import PCA, SNE, SymmetricSNE
from lowland._engines.embedding.affinity import dense_conditional
from lowland.datasets import digits
from lowland.neighbors import knn_graph
from reference.chance import not_below_in_pairs
from reference.plain import FOUR_PLACES, FOUR_ROWS
from support.graphs import dense_joint

both = pytest.mark.parametrize("method", [SNE, SymmetricSNE])


def probabilities(method, X, perplexity):
    return (dense_conditional if method is SNE else dense_joint)(cdist(X, X), perplexity)


def cost(method, P, Y):
    """The divergence and its gradient, straight from the papers."""
    K = np.exp(-cdist(Y, Y, "sqeuclidean"))
    np.fill_diagonal(K, 0)
    Q = K / (K.sum(axis=1, keepdims=True) if method is SNE else K.sum())
    off = ~np.eye(len(Y), dtype=bool)
    excess = P - Q
    pull = 2 * (excess + excess.T) if method is SNE else 4 * excess
    gradient = (pull[:, :, None] * (Y[:, None] - Y)).sum(axis=1)
    return rel_entr(P[off], Q[off]).sum(), gradient


@pytest.mark.parametrize(("method", "value"), [(SNE, 1.5537496763), (SymmetricSNE, 0.2631766343)])
def test_the_divergence_of_four_points_is_as_known(method, value):
    model = method(perplexity=2, init=FOUR_PLACES, max_iter=0).fit(FOUR_ROWS)
    assert model.kl_divergence_ == pytest.approx(value, abs=2e-6)
    P = probabilities(method, FOUR_ROWS, 2)
    assert cost(method, P, FOUR_PLACES)[0] == pytest.approx(value, abs=1e-6)


@both
def test_no_other_minimizer_goes_deeper(method, irregular):
    X = irregular(80, 5)
    P = probabilities(method, X, 12)
    ours = method(perplexity=12, random_state=0, tol=0).fit(X)
    loss, gradient = cost(method, P, ours.embedding_)
    assert ours.kl_divergence_ == pytest.approx(loss, rel=1e-4)

    def flat(y):
        value, slope = cost(method, P, y.reshape(80, 2))
        return value, slope.ravel()

    start = method(perplexity=12, random_state=0, max_iter=0).fit(X)
    size = np.abs(cost(method, P, start.embedding_ * 1e4)[1]).max()
    assert np.abs(gradient).max() < 1e-3 * size  # stationary
    further = minimize(flat, ours.embedding_.ravel(), jac=True, method="L-BFGS-B")
    assert further.fun > loss * (1 - 1e-3)
    afresh = minimize(flat, 1e4 * start.embedding_.ravel(), jac=True, method="L-BFGS-B")
    assert loss < 1.05 * afresh.fun  # local minima differ


@both
def test_the_divergence_falls_and_settles(method):
    model = method(random_state=0).fit(digits().X[:300])
    assert (np.diff(model.loss_history_) < 1e-3 * model.loss_history_[-1]).all()
    assert model.n_iter_ < 750
    assert model.n_neighbors_ == 299  # all pairs


@both
def test_digits_stay_with_their_like(method):
    order = np.random.default_rng(0).permutation(1797)
    X, y = digits().X[order], digits().y[order]
    model = method(random_state=0).fit(X[:600])

    def same(Y, Z=None, truth=y[:600]):
        """For each row (each new row Z), the share of its 10 nearest in Y that are of its class."""
        near = KNeighborsClassifier(10).fit(Y, y[:600]).kneighbors(Z, return_distance=False)
        return (y[:600][near] == truth[:, None]).mean(axis=1)

    fitted = same(model.embedding_)
    # crowded, but by more than chance better than the plane that it starts from
    assert not not_below_in_pairs(same(PCA(2).fit_transform(X[:600])), fitted)
    placed = same(model.embedding_, model.transform(X[600:900]), y[600:900])
    error = np.hypot(placed.std() / np.sqrt(300), fitted.std() / np.sqrt(600))
    assert placed.mean() > fitted.mean() - 3 * error


@both
def test_an_outlier_has_neighbors_too(method, irregular):
    """In SNE every row is its own distribution: an outlier is held as firmly as any row."""
    X = irregular(60, 4)
    X[0] += 1e3
    model = method(perplexity=8, random_state=0).fit(X)
    Y = model.embedding_
    assert np.isfinite(Y).all()
    K = np.exp(-cdist(Y, Y, "sqeuclidean")[0])
    if method is SNE:
        P = dense_conditional(cdist(X, X), 8)[0]
        Q = np.where(np.arange(60) > 0, K, 0) / K[1:].sum()
        row = rel_entr(P[1:], Q[1:]).sum()
        assert row < 3 * model.kl_divergence_ / 60


@both
def test_other_kinds_of_input_give_the_same_map(method):
    X = digits().X[:150]
    init = 1e-2 * np.random.default_rng(0).standard_normal((150, 2))
    params = {"init": init, "max_iter": 40, "tol": 0}
    expected = method(**params).fit(X)
    scale = np.abs(expected.embedding_).max()
    for given in (
        method(metric="precomputed", **params).fit(cdist(X, X)),
        method(**params).fit(knn_graph(X, 149)),
        method(**params).fit(knn_graph(X, 149, metric="sqeuclidean")),
        method(metric="sqeuclidean", **params).fit(X),
    ):
        np.testing.assert_allclose(given.embedding_, expected.embedding_, atol=1e-2 * scale)
        assert given.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-3)
    fewer = method(n_neighbors=90, **params).fit(X)
    assert fewer.n_neighbors_ == 90
    assert fewer.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=0.2)
