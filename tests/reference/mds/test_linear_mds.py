"""LinearMDS: its gradient, its bounds by PCA and by maps that are not linear, its inverse."""

import numpy as np
import pytest
from scipy.optimize import minimize

from lowland import PCA, LinearMDS, Sammon


def naive(X, W, power, distances):
    D, d = distances(X), distances(X @ W)
    i, j = np.triu_indices(len(X), 1)
    scale = D[i, j].sum() if power == 1 else 1.0
    return ((D - d)[i, j] ** 2 / D[i, j] ** power).sum() / scale


@pytest.mark.parametrize("power", [0, 1, 2])
def test_stress_and_minimum_are_the_naive_ones(power, irregular, distances):
    X = irregular(30, 5)
    model = LinearMDS(power=power, tol=1e-13, max_iter=3000).fit(X)
    W = model.components_.T
    assert model.stress_ == pytest.approx(naive(X, W, power, distances), rel=1e-9)
    polished = minimize(lambda w: naive(X, w.reshape(5, 2), power, distances), W.ravel())
    assert model.stress_ <= polished.fun * (1 + 1e-6)


@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_slope_is_half_the_gradient(power, irregular, distances):
    from lowland._base.monitor import Monitor
    from lowland._engines.linalg.principal_axes import orthonormal_basis
    from lowland._engines.stress.objective import AllPairs
    from lowland.methods.mds.linear_mds import LinearStress

    X = irregular(20, 4)
    rng = np.random.default_rng(0)
    basis = orthonormal_basis(X, 1, Monitor())
    np.testing.assert_allclose(basis.U.T @ basis.U, np.eye(4), atol=1e-9)
    objective = LinearStress(AllPairs(distances(X), None, power, 1), basis.U, 1)
    A, V = rng.standard_normal((2, 4, 2))
    step = 1e-6
    change = (objective(A + step * V).loss - objective(A - step * V).loss) / (2 * step)
    assert 2 * np.vdot(objective(A).slope, V) == pytest.approx(change, rel=1e-6)
    np.testing.assert_allclose((X - basis.mean) @ basis.weights(A), objective.points(A), atol=1e-9)


def test_it_lies_between_pca_and_the_free_map(irregular, distances):
    X = irregular(60, 6)
    model = LinearMDS().fit(X)
    pca = naive(X, PCA(2).fit(X).components_.T, 1, distances)
    assert model.loss_history_[0] == pytest.approx(pca, rel=1e-9)
    assert Sammon().fit(X).stress_ <= model.stress_ < 0.9 * pca
    assert (np.diff(model.loss_history_) <= 0).all()


def test_all_columns_keep_all_distances(irregular):
    X = irregular(40, 3)
    assert LinearMDS(3).fit(X).stress_ < 1e-20


def test_the_axes_are_turned_so_that_coordinates_are_uncorrelated(irregular):
    X = irregular(50, 6)
    model = LinearMDS().fit(X)
    cross = model.embedding_.T @ model.embedding_
    assert cross[0, 0] > cross[1, 1]
    assert abs(cross[0, 1]) < 1e-9 * cross[0, 0]
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turned = LinearMDS(init=PCA(2).fit(X).components_.T @ turn).fit(X)
    assert turned.stress_ == pytest.approx(model.stress_, rel=1e-5)
    np.testing.assert_allclose(turned.components_, model.components_, atol=1e-3)


def test_wide_and_constant_columns(irregular):
    wide = irregular(12, 30)
    assert np.isfinite(LinearMDS().fit_transform(wide)).all()
    flat = np.hstack([irregular(30, 3), np.ones((30, 2))])
    model = LinearMDS().fit(flat)
    np.testing.assert_allclose(model.components_[:, 3:], 0, atol=1e-9)


def test_sparse_pairs_come_close(irregular):
    X = irregular(600, 6)
    dense = LinearMDS(power=0).fit(X)
    few = LinearMDS(power=0, pairs="sparse", random_state=0).fit(X)
    assert few.stress_ == pytest.approx(dense.stress_, rel=0.1)


def test_a_column_in_large_units_does_not_hide_the_others(irregular):
    """The metric divides by the units, so the map must be the one of the plain columns."""
    X = irregular(40, 4)
    units = np.array([1.0, 1e9, 1.0, 1e-6])

    def metric(a, b):
        return float(np.sqrt((((a - b) / units) ** 2).sum()))

    options = {"tol": 1e-12, "max_iter": 2000}
    plain = LinearMDS(**options).fit(X)
    for init in (plain.components_.T / units[:, None], "pca"):
        model = LinearMDS(metric=metric, init=init, **options).fit(X * units)
        assert model.stress_ == pytest.approx(plain.stress_, rel=1e-6)
