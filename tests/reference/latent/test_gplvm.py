"""GPLVM against PCA, naive formulas of its process, and searches from many starts."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm

from lowland import PCA
from lowland._engines.gaussian_processes import stochastic
from lowland.datasets import digits, iris, s_curve
from lowland.errors import DataError
from lowland.methods.latent import gplvm
from lowland.methods.latent._base import Process, placed_rows
from lowland.methods.latent.gplvm import GPLVM
from reference.chance import not_below_in_pairs
from reference.plain import slope_of
from support.cases import each
from support.oracles.basics import HeldOut
from support.oracles.latent_gplvm import process_mean, process_variance


def bent(n, seed=0):
    """A noisy sheet in five columns."""
    rng = np.random.default_rng(seed)
    t, h = rng.uniform(-2, 2, n), rng.uniform(-1, 1, n)
    sheet = np.column_stack([np.sin(t), np.cos(t) * h, h, t, np.exp(t / 3)])
    return sheet + 0.05 * rng.standard_normal(sheet.shape)


def task_of(model, X, new):
    return HeldOut(model, model.get_params(), X, None, model.embedding_, new)


@each("inference", ["exact", "sparse"])
def test_a_linear_covariance_gives_principal_components(inference):
    """Up to a rotation and a scale per axis."""
    X = bent(40)
    model = GPLVM(kernel="linear", bias=False, inference=inference, tol=1e-12, max_iter=2000)
    Z = model.fit(X).embedding_
    scores = PCA(2).fit_transform(X)
    found = np.linalg.lstsq(scores, Z, rcond=None)[0]
    assert np.abs(Z - scores @ found).max() < 1e-3 * np.abs(Z).max()
    # the noise is what the axes leave: the mean of the other eigenvalues of X X^T / D
    values = np.linalg.eigvalsh(np.cov(X.T, ddof=0))[::-1] * len(X) / X.shape[1]
    assert model.noise_**2 == pytest.approx(values[2:].sum() / (len(X) - 2), rel=0.02)


def test_the_loss_never_rises_and_is_the_posterior_density():
    X = bent(60)
    for kw in ({}, {"inference": "sparse", "n_inducing": 10}):
        model = GPLVM(max_iter=40, random_state=0, **kw).fit(X)
        assert np.all(np.diff(model.loss_history_) <= 0)
        prior = -norm.logpdf(model.embedding_ / model.prior_deviations_).sum()
        in_units = model.log_likelihood_ + X.size * np.log(model.scale_)
        assert model.loss_history_[-1] == pytest.approx((prior - in_units) / X.size, rel=1e-9)


@each("inference", ["exact", "sparse"])
def test_the_slope_of_the_loss_is_its_difference(inference, monkeypatch):
    module = gplvm if inference == "exact" else stochastic
    descend, seen = module.minimize, []

    def watched(loss, start, **options):
        seen.append((loss, start))
        return descend(loss, start, **options)

    monkeypatch.setattr(module, "minimize", watched)
    GPLVM(max_iter=1, inference=inference, n_inducing=4, random_state=0).fit(bent(9))
    loss, start = seen[0]
    point = start + 0.1 * np.random.default_rng(0).standard_normal(start.shape)
    differences = slope_of(lambda at: loss(at)[0], point, 1e-5)
    np.testing.assert_allclose(loss(point)[1], differences, rtol=1e-4, atol=1e-6)


def test_the_first_steps_of_many_rows_are_on_the_bound(monkeypatch):
    from lowland.methods.latent import gplvm

    monkeypatch.setattr(gplvm, "ALL_EXACT_ROWS", 20)
    X = bent(60)
    model = GPLVM(max_iter=30, n_inducing=15, random_state=0).fit(X)
    assert np.all(np.diff(model.loss_history_) <= 0)
    assert len(model.loss_history_) == model.n_iter_ + 1 == 31
    assert model.inducing_points_ is None
    bound = GPLVM(max_iter=20, n_inducing=15, inference="sparse", random_state=0).fit(X)
    np.testing.assert_array_equal(model.loss_history_[:21], bound.loss_history_)


def test_a_wide_table_is_fitted_as_its_inner_products():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((60, 5)))[0]
    X, turned = bent(30), bent(30) @ basis.T
    a = GPLVM(max_iter=15, kernel="rbf").fit(turned)
    assert a.weights_.shape == (30, 60)
    back = a.inverse_transform(a.embedding_)
    assert np.sqrt(np.mean((back - turned) ** 2)) < 0.5 * turned.std()
    b = GPLVM(max_iter=15, kernel="rbf").fit(np.hstack([X, np.zeros((30, 55))]))
    assert a.log_likelihood_ == pytest.approx(b.log_likelihood_, rel=1e-6)


@each("kw", [{}, {"inference": "sparse", "n_inducing": 12}, {"kernel": "matern52"}])
def test_rows_back_and_their_deviations_are_those_of_the_process(kw):
    X = bent(50)
    model = GPLVM(max_iter=40, random_state=0, **kw).fit(X)
    places = np.vstack([model.embedding_[:5] + 0.1, [[3.0, -2.0], [0.0, 0.0]]])
    rows, deviations = model.inverse_transform(places, return_std=True)
    task = task_of(model, X, X)
    np.testing.assert_allclose(rows, process_mean(task, places), atol=1e-6)
    np.testing.assert_allclose(deviations**2, process_variance(task, places), rtol=1e-5)
    far = model.uncertainty([[50.0, 50.0]])  # the prior: variance and bias
    theta = np.exp(model.log_parameters_)
    expected = model.scale_**2 * (theta[0] + theta[-1]) + model.noise_**2
    if not kw:
        assert far[0] ** 2 <= expected * (1 + 1e-9)
        assert far[0] > deviations[:5].max()


def test_the_score_is_the_density_at_the_place():
    X, new = bent(50), bent(6, seed=1)
    model = GPLVM(max_iter=40, random_state=0).fit(X)
    Z = model.transform(new)
    rows, deviations = model.inverse_transform(Z, return_std=True)
    logs = -0.5 * ((new - rows) / deviations[:, None]) ** 2 - np.log(deviations)[:, None]
    expected = (logs - 0.5 * np.log(2 * np.pi)).sum(axis=1)
    np.testing.assert_allclose(model.score_samples(new), expected, rtol=1e-9)
    assert model.score(new + 100) < model.score(new)


def test_fitted_rows_searched_like_new_ones_land_near_their_places():
    X = bent(80)
    model = GPLVM(random_state=0).fit(X)
    rows = (X - model.mean_) / model.scale_
    process = Process(model._posterior(), model.prior_deviations_)
    found = placed_rows(process, model.embedding_, rows, 1).X
    shift = np.sqrt(np.sum((found - model.embedding_) ** 2, axis=1))
    assert np.median(shift) < 0.05 * model.embedding_.std()
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_extreme_new_rows_have_places_and_do_not_disturb_others():
    X = bent(40)
    model = GPLVM(max_iter=20, random_state=0).fit(X)
    new = np.vstack([X[:3] + 0.01, np.full((1, 5), 1e70), np.full((1, 5), -1e30)])
    together = model.transform(new)
    assert np.isfinite(together).all()
    np.testing.assert_array_equal(together[:3], model.transform(new[:3]))


def test_given_places_are_the_start_whatever_their_scale():
    X = bent(30)
    init = PCA(2).fit_transform(X)
    a = GPLVM(init=init, max_iter=5).fit(X)
    b = GPLVM(init=2.0**40 * init, max_iter=5).fit(X)
    np.testing.assert_array_equal(a.embedding_, b.embedding_)
    model = GPLVM(init=init, max_iter=0).fit(X)
    start = model.embedding_ / model.prior_deviations_
    np.testing.assert_allclose(start, init / init.std(axis=0).max(), atol=1e-12)
    with pytest.raises(DataError, match="30 rows x 2 columns"):
        GPLVM(init=init[:5]).fit(X)


def test_an_axis_that_is_not_needed_has_little_relevance():
    t = np.random.default_rng(0).uniform(-2, 2, 70)
    curve = np.column_stack([np.sin(t), np.cos(t), t])
    curve += 0.02 * np.random.default_rng(1).standard_normal(curve.shape)
    model = GPLVM(1, random_state=0).fit(curve)
    assert (
        abs(
            np.corrcoef(np.argsort(np.argsort(t)), np.argsort(np.argsort(model.embedding_[:, 0])))[
                0, 1
            ]
        )
        > 0.99
    )
    assert GPLVM(2, random_state=0).fit(curve).relevance_.max() == 1


def test_the_map_of_digits_separates_classes_better_than_pca():
    data = digits()
    X, y = data.X[:300] / 16, data.y[:300]

    def right(Z):
        D = cdist(Z, Z)
        np.fill_diagonal(D, np.inf)
        return y[D.argmin(axis=1)] == y

    model = GPLVM(max_iter=100).fit(X)
    # by more than chance
    assert not not_below_in_pairs(right(PCA(2).fit_transform(X)), right(model.embedding_))
    assert model.log_likelihood_ > 10467  # GPy 1.15.0 after 100 steps, rbf and bias


def test_copies_and_constant_columns():
    X = np.repeat(iris().X[::10], 2, axis=0)
    X = np.hstack([X, np.full((len(X), 1), 7.0)])
    model = GPLVM(max_iter=30).fit(X)
    Z = model.embedding_
    np.testing.assert_allclose(Z[::2], Z[1::2], atol=1e-6)
    np.testing.assert_allclose(model.inverse_transform(Z)[:, -1], 7.0, atol=1e-9)
    flat = GPLVM(max_iter=5).fit(np.full((6, 3), 2.0))
    np.testing.assert_array_equal(flat.embedding_, 0)


@each("kernel", ["rbf", "matern32", "linear", "rbf+linear"])
def test_the_map_is_in_units_of_the_length_scales(kernel):
    X = bent(60) * [1, 3, 1, 2, 1]
    model = GPLVM(kernel=kernel, max_iter=30, random_state=0).fit(X)
    relevance = model._covariance().relevance(model.log_parameters_)
    np.testing.assert_allclose(relevance, 1, rtol=1e-9)
    assert (np.diff(model.relevance_) <= 0).all()
    np.testing.assert_allclose(
        model.relevance_, (model.prior_deviations_ / model.prior_deviations_[0]) ** 2, rtol=1e-12
    )


def test_an_unrolled_start_stays_unrolled():
    data = s_curve(250, random_state=0)
    truth = data.truth - data.truth.mean(axis=0)

    def explained(init, max_iter):
        """The share of the true coordinates that a quadratic function of the map explains."""
        Y = GPLVM(init=init, max_iter=max_iter, random_state=0).fit_transform(data.X)
        terms = np.column_stack([Y, Y**2, Y[:, 0] * Y[:, 1], np.ones(len(Y))])
        rest = truth - terms @ np.linalg.lstsq(terms, truth, rcond=None)[0]
        return 1 - np.sum(rest**2) / np.sum(truth**2)

    assert explained("isomap", 60) > explained("isomap", 0) - 0.01 > explained("ppca", 60)
