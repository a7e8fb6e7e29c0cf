"""Diffeomorphic map against its objective written out, its theorems and curves that are known."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from lowland import PCA, DiffeomorphicMap
from lowland.errors import ParameterError
from lowland.methods.unfolding.diffeomorphic_map import (
    Flow,
    FlowEnergy,
    backward,
    choose_centers,
    forward,
    norms,
    penalties_to,
    width_for,
)
from reference.plain import slope_of
from support.bent_rows import rows
from support.cases import each

ANGLES = np.linspace(0, 1.5 * np.pi, 14)
CIRCLE = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])  # three quarters of it
# The objective at the penalties of a trial that was made without this code: 14 points, width 0.8,
# 8 time steps, L-BFGS on all weights, sums instead of means over the rows.
TRIAL = {1.0: (1.833, 5e-4), 0.1: (0.423, 5e-4), 0.02: (0.117, 5e-4), 0.005: (0.0357, 5e-5)}


def bent_sheet(n, seed=0):
    """Two thirds of a cylinder, and the coordinates on it."""
    rng = np.random.default_rng(seed)
    t, y = 4 / 3 * np.pi * rng.random(n), 3 * rng.random(n)
    return np.column_stack([np.cos(t), y, np.sin(t)]), np.column_stack([t, y])


def unexplained(Y, truth):
    """The share of the variance of the truth that is not a linear function of the map."""
    design = np.column_stack([Y, np.ones(len(Y))])
    off = truth - design @ np.linalg.lstsq(design, truth, rcond=None)[0]
    return max(off.var(axis=0) / truth.var(axis=0))


def naive_energy(X, chosen, q, weights, penalty):
    """E, pair by pair: the objective, the norms of the fields and where the rows arrive."""
    places, total, h = [x.copy() for x in X], 0.0, 1 / len(weights)
    lengths = []
    for a in weights:
        centers = [places[j].copy() for j in chosen]
        norm = 0.0
        for i, c in enumerate(centers):
            for j, other in enumerate(centers):
                norm += np.exp(-sum((c - other) ** 2) / 2) * sum(a[i] * a[j])
        total += h * norm
        lengths.append(np.sqrt(norm))
        for x in places:
            x += h * sum(
                np.exp(-sum((x - c) ** 2) / 2) * w for c, w in zip(centers, a, strict=True)
            )
    off = sum(sum(x[q:] ** 2) for x in places) / len(X)
    return off + penalty * total, np.array(lengths), np.array(places)


def problem(seed=0, n=11, d=3, times=3):
    rng = np.random.default_rng(seed)
    X, chosen = rows(n, d, seed), np.sort(rng.choice(n, 6, replace=False))
    X = (X - X.mean(axis=0)) / X.std()
    return X, chosen, 0.4 * rng.standard_normal((times, len(chosen), d))


# --- the objective ----------------------------------------------------------------------------


@each("seed", range(3))
@each("q", [1, 2])
def test_objective_norms_and_paths_are_those_of_plain_loops(seed, q):
    X, chosen, weights = problem(seed)
    energy = FlowEnergy(X, chosen, q, 1)
    expected, lengths, places = naive_energy(X, chosen, q, weights, 0.3)
    found = energy(weights, 0.3)
    np.testing.assert_allclose(found.objective, expected, rtol=1e-12)
    np.testing.assert_allclose(norms(found.flow, 1), lengths, rtol=1e-12)
    np.testing.assert_allclose(found.Z, places, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(forward(X, found.flow, 1), found.Z)


@each("seed", range(3))
@each("penalty", [0.0, 0.3, 10.0])
@each("everyone", [False, True])
def test_the_adjoint_gradient_is_that_of_finite_differences(seed, penalty, everyone):
    X, chosen, weights = problem(seed)
    if everyone:
        chosen = np.arange(len(X))
        weights = np.random.default_rng(seed).standard_normal((3, len(X), 3)) / 4
    energy = FlowEnergy(X, chosen, 1, 1)
    slope = slope_of(lambda weights: energy(weights, penalty).objective, weights)
    gradient = energy(weights, penalty).gradient
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-7 * (1 + penalty))


def test_the_descent_is_as_good_as_that_of_scipy_from_the_same_start():
    X = rows(40, 3)
    model = DiffeomorphicMap(1, penalty=0.01, random_state=0, tol=1e-7, max_iter=2000).fit(X)
    Z = (X - model.mean_) @ model.axes_.T / model.width_
    unit = model.width_**2 / np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))
    chosen = [int(np.argmin(np.sum((Z - c) ** 2, axis=1))) for c in _flow(model).centers[0]]
    energy, shape = FlowEnergy(Z, np.array(chosen), 1, 1), model.weights_.shape

    def value(a):
        found = energy(a.reshape(shape), 0.01)
        return unit * found.objective, unit * found.gradient.ravel()

    start = 1e-3 * np.random.default_rng(0).standard_normal(model.weights_.size)
    best = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000})
    assert model.objective_ <= best.fun * 1.001


def _flow(model):
    return Flow(model.center_paths_ / model.width_, model.weights_ / model.width_)


# --- the three quarters of a circle ------------------------------------------------------------


@each("penalty", list(TRIAL))
def test_the_circle_has_the_known_objectives(penalty):
    model = DiffeomorphicMap(1, width=0.8, n_steps=8, penalty=penalty / 14, random_state=0)
    model.set_params(tol=1e-7, max_iter=3000).fit(CIRCLE)
    total = np.sum((CIRCLE - CIRCLE.mean(axis=0)) ** 2)
    expected, rounding = TRIAL[penalty]
    assert model.objective_ * total <= expected + rounding
    assert model.objective_ * total >= 0.98 * expected  # the trial may not have converged


@each("params", [{}, {"width": 0.8, "n_steps": 8, "penalty": 0.005 / 14}])
@each("seed", range(4))
def test_the_circle_becomes_its_arc_length(params, seed):
    z = DiffeomorphicMap(1, random_state=seed, **params).fit_transform(CIRCLE)[:, 0]
    assert abs(np.corrcoef(z, ANGLES)[0, 1]) > 0.995
    assert abs(spearmanr(z, ANGLES)[0]) == 1
    plain = PCA(1).fit_transform(CIRCLE)[:, 0]
    assert abs(np.corrcoef(plain, ANGLES)[0, 1]) < 0.94


# --- what the flow promises --------------------------------------------------------------------


@pytest.mark.slow
@each("X", [rows(60), bent_sheet(80)[0], CIRCLE, rows(12, 30, 3)])
@each("q", [1, 2])
def test_a_large_penalty_gives_the_scores_of_pca(X, q):
    plain = PCA(q).fit_transform(X)
    for penalty in (1e6, 1e12, 1e300):
        found = DiffeomorphicMap(q, penalty=penalty, random_state=0).fit_transform(X)
        # the axes off the plane move by 1 / penalty, those in it by its square
        np.testing.assert_allclose(found, plain, atol=1e-5 * np.abs(plain).max())


@each("X", [rows(40), bent_sheet(50)[0], CIRCLE])
@each("penalty", [1e-1, 1e-3, 1e-5])
def test_forward_and_backward_returns_to_the_start(X, penalty):
    model = DiffeomorphicMap(1, penalty=penalty, random_state=0, tol=1e-3).fit(X)
    flow, rng = _flow(model), np.random.default_rng(1)
    Z = (X - model.mean_) @ model.axes_.T / model.width_
    Z = np.vstack([Z, Z + 0.5 * rng.standard_normal(Z.shape), 5 * Z])
    slack = 1e-12 * model.distortion_bound_**0.5 * np.abs(Z).max()
    np.testing.assert_allclose(backward(forward(Z, flow, 1), flow, 1), Z, atol=slack)
    np.testing.assert_allclose(forward(backward(Z, flow, 1), flow, 1), Z, atol=slack)


@each("X", [rows(40), bent_sheet(50)[0], CIRCLE, np.round(rows(40, 3), 0)])
@each("penalty", [1e-1, 1e-4])
@each("n_steps", [2, 10])
def test_no_distance_changes_by_more_than_the_bound(X, penalty, n_steps):
    model = DiffeomorphicMap(1, penalty=penalty, n_steps=n_steps, random_state=0, tol=1e-3).fit(X)
    flow, rng = _flow(model), np.random.default_rng(2)
    assert (model.field_norms_ <= 0.9 * len(model.field_norms_)).all()  # no step can fold
    Z = (X - model.mean_) @ model.axes_.T / model.width_
    close = Z + 1e-4 * rng.standard_normal(Z.shape)
    Z = np.vstack([Z, close, Z[rng.permutation(len(Z))] + rng.standard_normal(Z.shape)])
    before, after = pdist(Z), pdist(forward(Z, flow, 1))
    apart = before > 1e-9
    ratio = after[apart] / before[apart]
    assert ratio.max() <= model.distortion_bound_ * (1 + 1e-9)
    assert ratio.min() >= (1 - 1e-9) / model.distortion_bound_
    continuous = np.exp(model.field_norms_.mean())  # exp of the integral of |f_t| / s
    assert continuous <= model.distortion_bound_
    if penalty == 0.1:
        assert ratio.max() > 1.01  # something moves


@each("X", [rows(60), bent_sheet(80)[0], CIRCLE])
@each("max_iter", [0, 1, 3, 300])
def test_the_objective_is_never_above_that_of_pca(X, max_iter):
    model = DiffeomorphicMap(1, max_iter=max_iter, random_state=0).fit(X)
    variances = np.sort(np.linalg.eigvalsh(np.cov(X.T)))[::-1]
    rest = variances[1:].sum() / variances.sum()
    assert model.residual_variance_ <= model.objective_ * (1 + 1e-9) <= rest * (1 + 2e-9)
    assert max_iter < 300 or model.objective_ < rest / 2
    assert model.n_iter_ <= max_iter
    assert len(model.loss_history_) == model.n_iter_ + 1


def test_a_bent_sheet_is_flattened_and_new_rows_flow_along():
    X, truth = bent_sheet(300)
    model = DiffeomorphicMap(random_state=0).fit(X[:200])
    new = model.transform(X[200:])
    plain = PCA(2).fit(X[:200]).transform(X[200:])
    assert unexplained(model.embedding_, truth[:200]) < 0.02
    assert unexplained(new, truth[200:]) < min(0.02, unexplained(plain, truth[200:]) / 2)
    back = model.inverse_transform(new)
    radius = np.hypot(back[:, 0], back[:, 2])
    assert np.sqrt(np.mean((radius - 1) ** 2)) < 0.1  # on the cylinder again


def test_what_is_left_off_the_plane_is_told():
    X = rows(80, 6)
    model = DiffeomorphicMap(2, random_state=0).fit(X)
    Z = forward((X - model.mean_) @ model.axes_.T / model.width_, _flow(model), 1) * model.width_
    left = np.sum(Z[:, 2:] ** 2) / np.sum((X - X.mean(axis=0)) ** 2)
    np.testing.assert_allclose(model.residual_variance_, left, rtol=1e-9)
    np.testing.assert_allclose(model.embedding_, Z[:, :2], atol=1e-9 * np.abs(Z).max())


# --- centers, width, penalties -----------------------------------------------------------------


def test_centers_span_the_kernel_functions_of_all_rows():
    X = np.vstack([rows(50, 2), rows(50, 2)])  # each row twice
    X = X / X.std()
    chosen = choose_centers(X, 100)
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 2)
    C = K[np.ix_(chosen, chosen)]
    rest = 1 - np.sum(K[:, chosen] * np.linalg.solve(C, K[chosen]).T, axis=1)
    assert rest.max() < 1e-3
    assert len(np.unique(X[chosen], axis=0)) == len(chosen) <= 50
    assert len(choose_centers(X, 7)) == 7


def test_the_width_follows_the_neighbors_within_bounds():
    X = rows(200, 3)
    X -= X.mean(axis=0)
    size = np.sqrt(np.mean(np.sum(X**2, axis=1)))
    far = np.sort(np.sqrt(np.sum((X[:, None] - X) ** 2, axis=2)), axis=1)[:, 10]
    expected = np.clip(1.3 * np.median(far), 0.5 * size, size)
    np.testing.assert_allclose(width_for(X, size), expected, rtol=1e-12)
    assert width_for(np.repeat(X, 30, axis=0), size) == pytest.approx(0.5 * size)


def test_penalties_go_from_stiff_to_soft():
    assert penalties_to(5.0) == [5.0]
    np.testing.assert_allclose(penalties_to(3e-4), [0.1, 0.01, 0.001, 3e-4])
    assert len(penalties_to(5e-324)) == 9
    for last in (1e-9, 2e-4, 0.05, 0.2, 1e300):
        path = penalties_to(last)
        assert path[-1] == last
        assert (np.diff(path) < 0).all()


# --- bad input ----------------------------------------------------------------------------------


@each("X", [np.ones((9, 3)), np.full((5, 1), 1e8), np.zeros((40, 7))])
def test_constant_rows_are_one_point(X):
    model = DiffeomorphicMap(1, random_state=0).fit(X)
    np.testing.assert_array_equal(model.embedding_, 0)
    np.testing.assert_allclose(model.inverse_transform([[0.0]]), X[:1])
    assert (model.distortion_bound_, model.residual_variance_) == (1, 0)


@each("X", [rows(40, 3), rows(5, 12), np.column_stack([rows(40, 2), np.ones(40), np.ones(40)])])
def test_nothing_to_flatten_is_pca_that_goes_back_exactly(X):
    q = min(X.shape[0] - 1, X.shape[1])
    model = DiffeomorphicMap(q, random_state=0).fit(X)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(PCA(q).fit_transform(X)), atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), X, atol=1e-9)
    assert model.distortion_bound_ == 1


def test_constant_columns_change_nothing():
    X = rows(50, 3)
    more = np.column_stack([X[:, :2], np.full(50, 7.0), X[:, 2:]])
    a, b = (DiffeomorphicMap(random_state=0, max_iter=40).fit_transform(Z) for Z in (X, more))
    np.testing.assert_allclose(a, b, atol=1e-6 * np.abs(a).max())


def test_equal_rows_share_a_place_and_copies_change_little():
    X = rows(40, 3)
    model = DiffeomorphicMap(random_state=0).fit(np.vstack([X, X, X[:5]]))
    np.testing.assert_array_equal(model.embedding_[:40], model.embedding_[40:80])
    assert model.weights_.shape[1] <= 40


def test_wide_rows_move_in_the_axes_they_span():
    X = rows(25, 90, 1)
    model = DiffeomorphicMap(random_state=0).fit(X)
    assert model.axes_.shape == (24, 90)
    np.testing.assert_allclose(model.axes_ @ model.axes_.T, np.eye(24), atol=1e-10)
    back = model.inverse_transform(model.embedding_)
    off = np.sum((back - X) ** 2) / np.sum((X - X.mean(axis=0)) ** 2)
    assert off < 1.2 * (1 - PCA(2).fit(X).explained_variance_ratio_.sum())


@each("width", [1e-30, 1e-300, 1e30])
def test_a_width_that_does_not_fit_the_data_is_refused(width):
    with pytest.raises(ParameterError, match=r"width=1e.* not comparable .* size"):
        DiffeomorphicMap(width=width).fit(rows(20, 3))


@pytest.mark.slow
def test_of_many_rows_some_are_learned_from_and_all_flow(monkeypatch):
    X, truth = bent_sheet(400)
    every = DiffeomorphicMap(random_state=0).fit(X)
    monkeypatch.setattr("lowland.methods.unfolding.diffeomorphic_map.LEARNED_ROWS", 200)
    some = DiffeomorphicMap(random_state=0).fit(X)
    np.testing.assert_array_equal(some.transform(X), some.embedding_)
    assert not np.array_equal(some.embedding_, every.embedding_)
    assert some.residual_variance_ < 0.2 * (1 - PCA(2).fit(X).explained_variance_ratio_.sum())
    assert unexplained(some.embedding_, truth) < 1.5 * unexplained(every.embedding_, truth) + 0.01
