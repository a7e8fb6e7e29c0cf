"""Likelihood, bound and posterior of Gaussian processes: differences, matrices, GPy's values."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from lowland._engines.gaussian_processes.covariance import KINDS, Covariance
from lowland._engines.gaussian_processes.exact import exact_posterior, log_likelihood
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_bound, sparse_posterior
from support.cases import each
from support.oracles.latent_gplvm import covariance_of

# A table and places by formula, for the values that GPy 1.15.0 (numpy 2.3.5) gave
i, j = np.arange(8.0)[:, None], np.arange(3.0)[None]
Y = np.sin(1 + i * (j + 1)) + 0.1 * i * j - 0.7
X = np.column_stack([np.cos(0.9 * np.arange(8.0)), np.arange(8.0) / 4 - 1])
Z = X[[0, 2, 5]] + 0.1
LOG_NOISE = float(np.log(0.15))
GPY = {
    "rbf": -27.467210268183834,
    "matern32": -27.507366331824187,
    "matern52": -27.35194828479197,
    "linear": -33.80896129750565,
    "rbf+linear": -30.09004870653104,
}
GPY_SPARSE = -64.08333193442391
GPY_MEANS = [[-0.14342778, -0.82833206, -0.20375203], [-0.01267618, 0.29268131, 0.42069924]]
GPY_VARIANCES = [0.08817373, 1.24400549]


def covariance_and_parameters(kind, **options):
    covariance = Covariance(kind, 2, **options)
    many = {"lengths": [0.8, 1.7], "weights": [0.5, 1.5]} if covariance.ard else {"lengths": 0.9}
    return covariance, covariance.vector(1.3, bias=0.4, **many)


def slope(f, x, h=1e-5):
    """Central differences of f by each element of x."""
    found = np.zeros(x.size)
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = h
        step = step.reshape(x.shape)
        found[k] = (f(x + step) - f(x - step)) / (2 * h)
    return found.reshape(x.shape)


@each("kind", KINDS)
def test_the_likelihood_is_that_of_gpy(kind):
    found = log_likelihood(*covariance_and_parameters(kind), LOG_NOISE, X, Y)
    assert found.value == pytest.approx(GPY[kind], rel=1e-7)  # GPy adds jitter of 1e-8


def test_the_bound_is_that_of_gpy():
    found = sparse_bound(SparseProcess(*covariance_and_parameters("rbf"), LOG_NOISE, X, Z), Y)
    assert found.value == pytest.approx(GPY_SPARSE, rel=2e-5)  # other jitter


def test_the_posterior_is_that_of_gpy():
    posterior = exact_posterior(*covariance_and_parameters("rbf"), LOG_NOISE, X, Y)
    at = np.array([[0.3, -0.2], [2.0, 2.0]])
    np.testing.assert_allclose(posterior.mean(at, 1), GPY_MEANS, atol=1e-7)
    np.testing.assert_allclose(posterior.variance(at, 1), GPY_VARIANCES, atol=1e-7)


@each("kind", KINDS)
def test_covariance_and_likelihood_are_those_of_the_formulas(kind):
    covariance, theta = covariance_and_parameters(kind)
    k = covariance_of(kind, True, 2, theta)
    np.testing.assert_allclose(covariance.matrix(theta, X, Z), k(X, Z), rtol=1e-13)
    np.testing.assert_allclose(covariance.diagonal(theta, X), np.diag(k(X, X)), rtol=1e-13)
    K = k(X, X) + 0.15 * np.eye(len(X))
    by_columns = sum(multivariate_normal(cov=K).logpdf(y) for y in Y.T)
    found = log_likelihood(covariance, theta, LOG_NOISE, X, Y)
    assert found.value == pytest.approx(by_columns, rel=1e-12)


@each("kind", KINDS)
@each("ard", [True, False])
def test_slopes_are_differences_exact_and_sparse(kind, ard):
    covariance, theta = covariance_and_parameters(kind, ard=ard, bias=ard)
    some = Z if ard else Z[:2]  # three points are too many for a linear covariance of two axes
    close = {"rtol": 1e-5, "atol": 1e-5}

    def exact(theta=theta, log_noise=LOG_NOISE, X=X):
        return log_likelihood(covariance, theta, log_noise, X, Y)

    def sparse(theta=theta, log_noise=LOG_NOISE, X=X, Z=some):
        return sparse_bound(SparseProcess(covariance, theta, log_noise, X, Z), Y)

    def check(f):
        found, noise = f(), np.array(LOG_NOISE)
        np.testing.assert_allclose(found.theta, slope(lambda t: f(theta=t).value, theta), **close)
        np.testing.assert_allclose(found.X, slope(lambda x: f(X=x).value, X), **close)
        by_noise = slope(lambda s: f(log_noise=float(s)).value, noise)
        np.testing.assert_allclose(found.noise, by_noise, **close)

    check(exact)
    check(sparse)
    np.testing.assert_allclose(sparse().Z, slope(lambda z: sparse(Z=z).value, some), **close)


@each("kind", KINDS)
def test_the_bound_is_below_the_likelihood_and_equal_with_all_rows_inducing(kind):
    covariance, theta = covariance_and_parameters(kind)
    exact = log_likelihood(covariance, theta, LOG_NOISE, X, Y).value
    seen = SparseProcess(covariance, theta, LOG_NOISE, X, X)
    bounds = [sparse_bound(seen._replace(Z=X[:m]), Y).value for m in (1, 3, 5, 8)]
    assert all(a <= b + 1e-9 for a, b in zip(bounds, [*bounds[1:], exact], strict=True))
    assert bounds[-1] == pytest.approx(exact, abs=1e-3)  # but for the jitter
    all_rows = sparse_posterior(seen, Y)
    posterior = exact_posterior(covariance, theta, LOG_NOISE, X, Y)
    np.testing.assert_allclose(all_rows.mean(Z, 1), posterior.mean(Z, 1), atol=1e-4)
    np.testing.assert_allclose(all_rows.variance(Z, 1), posterior.variance(Z, 1), atol=1e-4)


def test_only_inner_products_of_rows_matter():
    covariance, theta = covariance_and_parameters("rbf")
    wide = np.hstack([Y, Y[::-1] ** 2, np.cos(Y)])
    square = np.linalg.qr(wide.T, mode="r").T
    exact = (covariance, theta, LOG_NOISE, X)
    for f, of in ((log_likelihood, exact), (sparse_bound, (SparseProcess(*exact, Z),))):
        a = f(*of, wide)
        b = f(*of, square, wide.shape[1])
        assert a.value == pytest.approx(b.value, rel=1e-11)
        np.testing.assert_allclose(a.X, b.X, rtol=1e-9, atol=1e-9)


def test_with_a_linear_covariance_the_closed_form_is_stationary():
    """X = U_q (L - s^2 I)^(1/2), S = Y Y^T / D, s^2 the mean of the other eigenvalues."""
    rng = np.random.default_rng(0)
    n, q, D = 12, 2, 40
    table = rng.standard_normal((n, 3)) @ rng.standard_normal((3, D)) + rng.gamma(2.0, size=(n, D))
    values, U = np.linalg.eigh(table @ table.T / D)
    s2 = values[:-q].mean()
    best = U[:, -q:] * np.sqrt(values[-q:] - s2)
    covariance = Covariance("linear", q, bias=False)
    found = log_likelihood(covariance, covariance.vector(), float(np.log(s2)), best, table)
    assert np.abs(found.X).max() < 1e-9
    assert abs(found.noise) < 1e-9
    assert np.abs(found.theta).max() < 1e-9
    for step in rng.standard_normal((20, n, q)):
        moved = best + 0.05 * step
        other = log_likelihood(covariance, covariance.vector(), float(np.log(s2)), moved, table)
        assert other.value < found.value
