"""SNE and symmetric SNE: known values, a naive minimizer, real data, hard data."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import rel_entr
from sklearn.neighbors import KNeighborsClassifier

from lowland import PCA, SNE, SymmetricSNE
from lowland._engines.embedding.affinity import (
    conditional_affinities,
    dense_conditional,
    dense_joint,
)
from lowland.datasets import digits
from lowland.errors import ParameterError
from lowland.neighbors import knn_graph
from reference.chance import not_below_in_pairs
from support.cases import each

FOUR_ROWS = np.array([(0, 0, 0), (1, 0, 0.2), (1.3, 1, 0), (0, 1.1, 2)])
FOUR_PLACES = np.array([(0, 0), (1, 0.1), (1.2, 1), (0.1, 0.6)])

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


@both
def test_a_map_can_be_continued(method):
    X = digits().X[:200]
    first = method(random_state=0, max_iter=30, tol=0).fit(X)
    second = method(init=first.embedding_, max_iter=100, tol=0).fit(X)
    assert second.loss_history_[0] == pytest.approx(first.kl_divergence_, rel=1e-5)
    assert second.kl_divergence_ < first.kl_divergence_


@both
def test_fitted_rows_have_their_places_and_new_ones_come_alone(method):
    X = np.vstack([digits().X[:150], digits().X[:30], np.repeat(digits().X[:1], 40, axis=0)])
    model = method(random_state=0, max_iter=60, n_jobs=1).fit(X)
    before = model.embedding_.copy()
    np.testing.assert_array_equal(model.transform(X), before)
    np.testing.assert_array_equal(before[:30], before[150:180])
    new = digits().X[500:520]
    alone = np.vstack([model.transform(row[None]) for row in new])
    assert model.transform(new).tobytes() == alone.tobytes()
    np.testing.assert_array_equal(model.embedding_, before)


@both
def test_new_rows_lower_the_divergence_of_their_method_most(method):
    """J = sum p r^2 + log phi where each row has its own q, else + phi / (Z / n)."""
    X, new = digits().X[:150], digits().X[300:306]
    model = method(perplexity=15, random_state=0).fit(X)
    Y = model.embedding_
    off = ~np.eye(150, dtype=bool)
    mean = np.exp(-cdist(Y, Y, "sqeuclidean"))[off].sum() / 150
    distances = np.sort(cdist(new, X), axis=1)[:, :149]  # as many as a fitted row has
    near = np.argsort(cdist(new, X), axis=1)[:, :149]
    P = conditional_affinities(distances, 15).weights
    for z, p, ids in zip(model.transform(new), P, near, strict=True):

        def J(z, p=p, ids=ids):
            squares = ((z - Y) ** 2).sum(axis=1)
            phi = np.exp(-squares).sum()
            return p @ squares[ids] + (np.log(phi) if method is SNE else phi / mean)

        best = minimize(J, z)
        assert J(z) <= best.fun + 1e-4 * abs(best.fun)
        assert np.linalg.norm(z - best.x) < 2e-3 * np.ptp(Y)


@both
def test_threads_do_not_change_a_byte(method):
    X = digits().X[:700]
    one, two = (method(random_state=0, max_iter=40, n_jobs=n).fit(X) for n in (1, 2))
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.loss_history_.tobytes() == two.loss_history_.tobytes()


@pytest.mark.slow
@both
@each("n", range(2, 11))
def test_few_rows_have_a_map(method, n, irregular):
    X = irregular(n, 3)
    for perplexity in {1, 1.5, n - 1}:
        if perplexity > n - 1:
            continue
        for n_components in (1, 2, min(n, 5)):
            model = method(n_components, perplexity=perplexity, random_state=0).fit(X)
            assert np.isfinite(model.embedding_).all()
            assert model.kl_divergence_ > -1e-5 * n
            assert np.isfinite(model.transform(X + 0.1)).all()


@both
@each("kind", ["constant", "duplicates", "outliers", "design", "tiny", "huge"])
def test_hard_data_have_a_finite_map(method, kind, irregular):
    X = irregular(64, 4)
    if kind == "constant":
        X[:] = 3
    elif kind == "duplicates":
        X = np.repeat(X[:16], 4, axis=0)
    elif kind == "outliers":
        X[:2] = [[1e8, 0, 0, 0], [0, -1e6, 0, 0]]
    elif kind == "design":  # equal in the leading axes
        levels = np.meshgrid(*[[0.0, 1.0]] * 6, indexing="ij")
        X = np.stack(levels, axis=-1).reshape(-1, 6) * [32, 16, 8, 4, 2, 1]
    elif kind in ("tiny", "huge"):
        X = np.ldexp(X, {"tiny": -27, "huge": 27}[kind])  # without rounding
    model = method(perplexity=5, random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.loss_history_).all()
    if kind == "design":  # the nearest may share a place, but not whole corners of the design
        free = method(perplexity=5, random_state=0, init="random").fit(X)
        assert model.kl_divergence_ < 1.5 * free.kl_divergence_
    else:
        assert len(np.unique(model.embedding_, axis=0)) == len(np.unique(X, axis=0))
    if kind in ("tiny", "huge"):
        plain = method(perplexity=5, random_state=0).fit(irregular(64, 4))
        assert model.embedding_.tobytes() == plain.embedding_.tobytes()


@both
def test_too_large_a_perplexity_is_refused_with_the_largest(method, irregular):
    with pytest.raises(ParameterError, match=r"perplexity=30 is too large for 20 rows.* = 19"):
        method().fit(irregular(20, 3))
