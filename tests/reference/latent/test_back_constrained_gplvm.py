"""Back-constrained GPLVM against finite differences, closed forms and the definition of g."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland import PCA, BackConstrainedGPLVM
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import log_likelihood
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_bound
from lowland.datasets import digits
from lowland.methods.latent import back_constrained_gplvm
from lowland.methods.latent.back_constrained_gplvm import (
    Parameters,
    Perceptron,
    Problem,
    kernel_basis,
    linear_basis,
    network_of,
)
from reference.chance import not_below_in_pairs
from reference.plain import slope_of
from support.cases import each

MAPPINGS = ("kernel", "network", "linear")


def bent_rows(n: int, p: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Z = rng.gamma(2.0, size=(n, 2))
    shape = np.column_stack([np.sin(Z), Z, Z[:, :1] * Z[:, 1:], np.exp(-Z)])
    return shape @ rng.standard_normal((shape.shape[1], p)) + 0.05 * rng.standard_normal((n, p)) + 4


def standardized(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / np.sqrt(np.mean(X.var(axis=0)))


def constraint_of(mapping: str, S: np.ndarray, q: int):
    if mapping == "kernel":
        return kernel_basis(S, S[::3], 2.0, q, 1)
    if mapping == "linear":
        return linear_basis(S, q, 1)
    return Perceptron(network_of(S.shape[1], 4, q), S, 1)


@each("mapping", MAPPINGS)
@each("kind", ["rbf", "rbf+linear", "matern52"])
@each("n_inducing", [0, 5])
def test_slopes_are_finite_differences(mapping, kind, n_inducing):
    S, q = standardized(bent_rows(14)), 2
    constraint = constraint_of(mapping, S, q)
    problem = Problem(constraint, Covariance(kind, q), S, S.shape[1], n_inducing)
    rng = np.random.default_rng(3)
    g = constraint.start(S[:, :q], FitContext(rng, 1, Monitor()))
    theta = 0.3 * rng.standard_normal(problem.covariance.n_parameters)
    at = Parameters(g, theta, -1.5, rng.standard_normal((n_inducing, q))).packed()
    slope = problem.loss(at)[1]
    differences = slope_of(lambda at: problem.loss(at)[0], at, 1e-5)
    # errors: step^2 times third derivatives, and rounding 1e-16 / step
    np.testing.assert_allclose(slope, differences, atol=1e-7 * max(1, np.abs(slope).max()))


@each("mapping", MAPPINGS)
@each("inference", ["exact", "sparse"])
def test_places_are_g_of_the_rows_at_every_step(mapping, inference):
    X, maps = bent_rows(50), {}
    given = {"mapping": mapping, "inference": inference, "n_inducing": 8, "random_state": 0}

    def keep(step, Y, loss):
        maps[step] = Y.copy()

    BackConstrainedGPLVM(2, max_iter=6, callback=keep, **given).fit(X)
    assert len(maps) == 6
    for step, Y in maps.items():
        model = BackConstrainedGPLVM(2, max_iter=step, **given).fit(X)
        np.testing.assert_array_equal(model.transform(X), Y)
        np.testing.assert_array_equal(model.embedding_, Y)


@each("kind", ["rbf", "linear", "rbf+linear"])
@each("inference", ["exact", "sparse"])
def test_the_likelihood_is_that_of_the_fitted_map(kind, inference):
    X = bent_rows(50, seed=1) * [1, 2, 1, 1, 3]
    model = BackConstrainedGPLVM(
        3, kernel=kind, inference=inference, n_inducing=9, max_iter=25, random_state=0
    ).fit(X)
    noise = 2 * np.log(model.noise_ / model.scale_)
    process = (Covariance(kind, 3), model.log_parameters_, noise, model.embedding_)
    if inference == "exact":
        value = log_likelihood(*process, standardized(X)).value
    else:
        seen = SparseProcess(*process, model.inducing_points_)
        value = sparse_bound(seen, standardized(X)).value
    assert value / X.size == pytest.approx(model.mean_log_likelihood_, abs=1e-7)
    assert model.log_likelihood_ == pytest.approx(value - X.size * np.log(model.scale_), rel=1e-6)
    assert model.mean_log_likelihood_ == -model.loss_history_[-1]
    assert (np.diff(model.loss_history_) <= 0).all()
    np.testing.assert_allclose(Covariance(kind, 3).relevance(process[1]), 1, rtol=1e-9)
    spread = model.embedding_.var(axis=0)
    np.testing.assert_allclose(model.relevance_, spread / spread[0], rtol=1e-9)
    assert (np.diff(model.relevance_) <= 0).all()


def test_linear_processes_of_a_linear_map_reach_the_closed_form():
    """X = U (L - s^2)^1/2 with S = Y Y^T / D: principal components, linear in the rows."""
    X, q = bent_rows(30, 6, seed=2), 2
    S = standardized(X)
    n, D = S.shape
    values = np.linalg.eigvalsh(S @ S.T / D)[::-1]
    noise = values[q:].sum() / (n - q)
    log_det = np.log(values[:q]).sum() + (n - q) * np.log(noise)
    best = -0.5 * D * (n * np.log(2 * np.pi) + log_det + n)
    model = BackConstrainedGPLVM(
        q, mapping="linear", kernel="linear", bias=False, tol=0.0, max_iter=2000, random_state=0
    ).fit(X)
    reached = model.mean_log_likelihood_ * S.size
    assert best - 1e-6 * abs(best) < reached < best + 1e-9 * abs(best)
    assert (model.noise_ / model.scale_) ** 2 == pytest.approx(noise, rel=1e-3)
    scores = PCA(q).fit_transform(X)
    for axis, score in zip(model.embedding_.T, scores.T, strict=True):
        assert abs(np.corrcoef(axis, score)[0, 1]) > 1 - 1e-4


def test_the_width_is_in_units_of_the_median_distance():
    X = bent_rows(30)
    wide = BackConstrainedGPLVM(2, width=2.0, max_iter=1, random_state=0).fit(X)
    pairs = cdist(X, X)[np.triu_indices(30, 1)]
    assert wide.width_ == pytest.approx(2 * np.median(pairs), rel=1e-9)


@each("mapping", MAPPINGS)
def test_wide_tables_have_the_likelihood_of_all_columns(mapping):
    rng = np.random.default_rng(1)
    X = bent_rows(20) @ rng.standard_normal((5, 90)) + 0.1 * rng.standard_normal((20, 90))
    model = BackConstrainedGPLVM(2, mapping=mapping, max_iter=15, random_state=0).fit(X)
    S, noise = standardized(X), 2 * np.log(model.noise_ / model.scale_)
    process = (Covariance("rbf", 2), model.log_parameters_, noise, model.transform(X))
    value = log_likelihood(*process, S).value / S.size
    assert value == pytest.approx(model.mean_log_likelihood_, abs=1e-7)
    rest = np.mean((model.inverse_transform(model.embedding_) - X) ** 2)
    assert rest < np.mean(X.var(axis=0))


def test_large_tables_are_learned_from_some_rows(monkeypatch):
    monkeypatch.setattr(back_constrained_gplvm, "LEARNED_ROWS", 40)
    monkeypatch.setattr(back_constrained_gplvm, "MOST_CENTERS", 30)
    X, shapes = bent_rows(400), []
    model = BackConstrainedGPLVM(
        2, max_iter=5, random_state=0, callback=lambda i, Y, loss: shapes.append(Y.shape)
    ).fit(X)
    assert model.centers_.shape == (30, 5)
    assert (cdist(model.centers_, X).min(axis=1) == 0).all()
    assert set(shapes) == {(400, 2)}
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_held_out_digits_are_among_their_like():
    X, y = digits().X, digits().y
    order = np.random.default_rng(0).permutation(len(X))
    some, rest = order[:700], order[700:]
    model = BackConstrainedGPLVM(2, max_iter=60, random_state=0).fit(X[some])
    right = {}
    for name, method in (("gplvm", model), ("pca", PCA(2).fit(X[some]))):
        nearest = cdist(method.transform(X[rest]), method.transform(X[some])).argmin(axis=1)
        right[name] = y[some][nearest] == y[rest]
    assert not not_below_in_pairs(right["pca"], right["gplvm"])  # by more than chance


def test_uncertainty_grows_away_from_the_rows():
    model = BackConstrainedGPLVM(2, max_iter=40, random_state=0).fit(bent_rows(60))
    rows, std = model.inverse_transform([[0.0, 0.0], [50.0, 50.0]], return_std=True)
    assert rows.shape == (2, 5)
    at_rows = model.uncertainty(model.embedding_)
    assert (at_rows >= model.noise_ * (1 - 1e-9)).all()
    assert std[1] > 2 * np.median(at_rows)
