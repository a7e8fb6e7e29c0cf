"""Autoencoder against PCA, finite differences, its own definition, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowland import PCA, datasets
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.network.adam import Plan
from lowland._engines.network.layers import apply, first_weights
from lowland.errors import DataError, MemoryLimitError, ParameterError
from lowland.methods.neural._autoencoder_training import (
    Objective,
    corruption,
    descend,
    epochs,
    hidden_units,
    network_of,
    oriented,
    untied,
)
from lowland.methods.neural.autoencoder import Autoencoder
from lowland.metrics import trustworthiness
from support.cases import each
from support.oracles.neural_network import FUNCTIONS


def irregular(n: int, p: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, p)) @ rng.standard_normal((p, p)) / p
    return X * np.linspace(0.5, 3, p) + np.exp(X[:, :1] / 2)


def curve(n: int, seed: int = 0, noise: float = 0.02) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, (n, 1))
    clean = np.hstack([np.sin(k * t + k) for k in np.linspace(0.5, 3, 8)])
    return clean + noise * rng.standard_normal(clean.shape)


def context(seed: int = 0) -> FitContext:
    return FitContext(np.random.default_rng(seed), 1, Monitor())


def standardized(model: Any, X: np.ndarray) -> np.ndarray:
    return (X - model.mean_) / model.scale_


# --- the linear network is PCA ------------------------------------------------------------------

LINEAR = {"activation": "linear", "weight_decay": 0.0, "validation": 0.0, "standardize": False}


@each("hidden", ["auto", [9]])
def test_a_linear_network_ends_at_the_eigenvalues_that_pca_discards(hidden):
    X = irregular(200, 7)
    pca = PCA().fit(X)
    model = Autoencoder(2, hidden=hidden, solver="lbfgs", max_iter=2000, random_state=1, **LINEAR)
    Y = model.fit_transform(X)
    lost = np.sum((X - model.inverse_transform(Y)) ** 2) / (len(X) - 1)
    discarded = pca.explained_variance_[2:].sum()
    assert discarded * (1 - 1e-10) <= lost <= discarded * (1 + 1e-4)
    share = pca.explained_variance_ratio_[:2].sum()
    assert model.explained_share_ == pytest.approx(share, abs=1e-4)
    # Baldi & Hornik: the plane is that of the principal axes; ours are also the axes themselves
    scores = PCA(2, whiten=True).fit_transform(X) * np.sqrt(len(X) / (len(X) - 1))
    np.testing.assert_allclose(Y, scores, atol=0.02)
    plane = np.linalg.qr((model.inverse_transform(np.eye(2)) - model.mean_).T)[0]
    cosines = np.linalg.svd(plane.T @ pca.components_[:2].T)[1]
    assert cosines.min() > 1 - 1e-3


def test_a_wide_table_is_no_exception():
    """It is trained in the space of its rows, where columns are few."""
    X = irregular(25, 80)
    X[:, 3] = 7.0
    model = Autoencoder(2, solver="lbfgs", max_iter=2000, random_state=1, **LINEAR)
    back = model.inverse_transform(model.fit_transform(X))
    discarded = PCA().fit(X).explained_variance_[2:].sum()
    assert np.sum((X - back) ** 2) / 24 == pytest.approx(discarded, rel=1e-4)
    assert model.loss_history_[-1] * X.size == pytest.approx(
        np.sum((X - back) ** 2) / model.scale_[0] ** 2, rel=1e-6
    )
    np.testing.assert_array_equal(back[:, 3], 7.0)
    other = np.where(np.arange(80) == 3, -1.0, X)
    np.testing.assert_array_equal(model.transform(other), model.embedding_)


def test_so_does_adam_up_to_its_steps():
    X = irregular(300, 5)
    steps = {"solver": "adam", "max_iter": 200, "batch_size": 50, "learning_rate": 0.03}
    model = Autoencoder(2, random_state=0, **steps, **LINEAR)
    lost = np.sum((X - model.inverse_transform(model.fit_transform(X))) ** 2) / (len(X) - 1)
    assert lost < PCA().fit(X).explained_variance_[2:].sum() * 1.01


# --- the loss -------------------------------------------------------------------------------------


def naive_loss(network, weights, seen, wanted, plan) -> float:
    """E, layer by layer and row by row."""
    loss = 0.0
    layers = network.layers(weights)
    for x, target in zip(seen, wanted, strict=True):
        h = x
        for number, (W, b, name) in enumerate(layers, 1):
            h = FUNCTIONS[name](h @ W + b)
            if number == plan.code:
                loss += plan.sparsity * np.mean(np.abs(h)) / len(seen)
        loss += np.mean((target - h) ** 2) / len(seen)
    own = layers[: len(layers) // 2] if network.tied else layers
    return loss + plan.weight_decay * sum(np.sum(W**2) for W, _, _ in own)


@each("tied", [False, True])
@each("sparsity", [0.0, 0.3])
@each("activation", ["tanh", "elu"])
def test_the_loss_with_its_penalties_and_its_slopes(tied, sparsity, activation):
    X = irregular(23, 4)
    network = network_of(4, [5, 3], 2, activation, tied)
    plan = Plan(1, 5, 0.1, weight_decay=0.02, sparsity=sparsity, code=3)
    seen = corruption(0.3)(X, np.arange(len(X)), np.random.default_rng(0))
    objective = Objective(network, seen, X, plan, 1)
    w = first_weights(network, np.random.default_rng(2)) + 0.05
    loss, slopes = objective(w)
    assert loss == pytest.approx(naive_loss(network, w, seen, X, plan), rel=1e-12)
    for direction in np.random.default_rng(4).standard_normal((8, len(w))):
        step = 1e-6 * direction
        difference = (objective(w + step)[0] - objective(w - step)[0]) / 2e-6
        assert slopes @ direction == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_blocks_of_rows_add_up(monkeypatch):
    X, network = irregular(50, 4), network_of(4, [5], 2, "tanh", False)
    w = first_weights(network, np.random.default_rng(0))
    objective = Objective(network, X, X, Plan(1, 5, 0.1, sparsity=0.1, code=2), 1)
    loss, slopes = objective(w)
    monkeypatch.setattr("lowland.methods.neural._autoencoder_training.BLOCK", 7)
    in_blocks, slopes_in_blocks = objective(w)
    assert in_blocks == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(slopes_in_blocks, slopes, rtol=1e-9, atol=1e-12)


# --- the code -------------------------------------------------------------------------------------


@each("sparse", [False, True])
def test_a_defined_code_changes_no_reconstruction(sparse):
    X = irregular(60, 5)
    network = network_of(5, [6], 3, "tanh", True)
    halves = untied(network, first_weights(network, np.random.default_rng(3)) + 0.1)
    plain = network_of(5, [6], 3, "tanh", False)
    both = np.concatenate(halves)
    code = apply(*plain.part(both, 0, 2), X, 1)
    after = np.concatenate(oriented(network, halves, X, code, sparse, context()))
    np.testing.assert_allclose(apply(plain, after, X, 1), apply(plain, both, X, 1), rtol=1e-9)
    Y = apply(*plain.part(after, 0, 2), X, 1)
    B = (X - X.mean(axis=0)).T @ Y / len(X) if not sparse else X.T @ Y / len(X)
    assert (np.diff(np.sum(B**2, axis=0)) < 0).all()
    assert (B[np.argmax(np.abs(B), axis=0), range(3)] > 0).all()
    if sparse:  # the same axes in another unit: each new one is a multiple of an old one
        np.testing.assert_allclose(np.mean(Y**2, axis=0), 1, rtol=1e-9)
        sizes = np.outer(np.linalg.norm(Y, axis=0), np.linalg.norm(code, axis=0))
        cosines = np.abs(Y.T @ code) / sizes
        np.testing.assert_array_equal(np.sort(cosines.argmax(axis=1)), range(3))
        np.testing.assert_allclose(cosines.max(axis=1), 1, rtol=1e-9)
    else:
        np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-10)
        np.testing.assert_allclose(Y.T @ Y / len(Y), np.eye(3), atol=1e-9)
        np.testing.assert_allclose(B.T @ B, np.diag(np.diag(B.T @ B)), atol=1e-9)


@each("solver", ["adam", "lbfgs"])
def test_the_map_has_mean_0_and_variance_1(solver):
    Y = Autoencoder(2, solver=solver, max_iter=10, random_state=0).fit_transform(irregular(80, 5))
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.cov(Y.T, ddof=0), np.eye(2), atol=1e-5)


def test_slopes_of_the_encoder_are_those_of_the_map():
    X = irregular(60, 5)
    model = Autoencoder(2, max_iter=20, random_state=0).fit(X)
    slopes = model.encoder_slopes(X[:4])
    for k in range(5):
        step = 1e-5 * (np.arange(5) == k)
        difference = (model.transform(X[:4] + step) - model.transform(X[:4] - step)) / 2e-5
        np.testing.assert_allclose(slopes[:, :, k], difference, rtol=1e-4, atol=1e-7)


# --- errors, outliers, noise ----------------------------------------------------------------------


@each("solver", ["adam", "lbfgs"])
def test_errors_shares_and_histories_belong_together(solver):
    X = irregular(100, 5)
    model = Autoencoder(2, solver=solver, max_iter=40, random_state=0).fit(X)
    Z = standardized(model, X)
    back = standardized(model, model.inverse_transform(model.transform(X)))
    errors = np.mean((Z - back) ** 2, axis=1)
    np.testing.assert_allclose(model.reconstruction_errors_, errors, rtol=1e-8)
    np.testing.assert_allclose(model.reconstruction_error(X), errors, rtol=1e-8)
    assert model.explained_share_ == pytest.approx(1 - errors.mean() / np.mean(Z**2))
    assert len(model.loss_history_) == model.n_iter_ + 1 == len(model.held_out_loss_)
    assert model.best_iter_ == np.argmin(model.held_out_loss_)
    held = np.random.default_rng(0).permutation(100)[:10]  # as the seed says
    assert errors[held].mean() == pytest.approx(model.held_out_loss_.min(), rel=1e-4)


def test_the_target_of_corrupted_rows_is_the_rows():
    X, network = irregular(40, 4), network_of(4, [5], 2, "tanh", False)
    w = first_weights(network, np.random.default_rng(0))
    seen = corruption(0.3)(X, np.arange(len(X)), np.random.default_rng(5))
    assert 0.15 < np.mean(seen == 0) < 0.45
    plan = Plan(0, 5, 0.1, code=2, corrupt=corruption(0.3))
    found = descend(network, w, X, plan, context(5), held_out=None, show=lambda w: w)
    assert found.losses[0] == pytest.approx(np.mean((apply(network, w, seen, 1) - X) ** 2))


def test_a_curve_needs_one_number_where_pca_needs_several():
    X, new = curve(400), curve(200, seed=1)
    model, pca = Autoencoder(1, random_state=0).fit(X), PCA(1).fit(X)
    back, flat = (m.inverse_transform(m.transform(new)) for m in (model, pca))
    # the noise has a variance of 0.0004; a curve through it can keep one of eight directions
    assert np.mean((back - new) ** 2) < 2 * 0.0004 < 0.1 * np.mean((flat - new) ** 2)


def test_digits_are_better_than_those_of_a_small_network():
    X = datasets.digits().X
    model = Autoencoder(random_state=0)
    Y = model.fit_transform(X)
    # 64-32-2 with tanh, 100 epochs of another implementation's Adam: 0.0358 and 0.927
    assert np.mean((model.inverse_transform(Y) - X) ** 2) / 16**2 < 0.0358
    assert trustworthiness(X, Y) > 0.927


# --- sizes and scales -----------------------------------------------------------------------------


def test_sizes_of_hidden_layers_follow_the_table():
    assert hidden_units(70_000, 784) == [256, 64]
    assert hidden_units(1797, 64) == [64, 32]
    assert hidden_units(150, 4) == [32, 16]  # wider than the rows
    assert hidden_units(20, 4) == [5, 4]
    assert hidden_units(20, 4, 7) == [7, 7]  # not narrower than the code
    sizes = [hidden_units(n, 50)[0] for n in range(2, 400)]
    assert np.max(np.abs(np.diff(sizes))) <= 1
    lengths = [epochs(n) for n in np.geomspace(2, 10**7, 200).astype(int)]
    assert (lengths[0], lengths[-1]) == (500, 10)
    assert max(np.diff(lengths)) <= 0


def test_rare_values_do_not_rule_and_the_inverse_is_exact():
    X = irregular(2000, 5)
    X[:, 4] = 0
    X[7, 4] = 3.0
    model = Autoencoder(2, max_iter=2, random_state=0).fit(X)
    assert np.abs(standardized(model, X)).max() <= 5 * (1 + 1e-12)
    assert np.abs(standardized(model, X)[7, 4]) == pytest.approx(5)
    np.testing.assert_allclose(model.scale_[:3], X[:, :3].std(axis=0, ddof=1), rtol=0.5)
    Z = standardized(model, X)
    np.testing.assert_allclose(model._in_units_of_rows(Z), X, rtol=1e-12, atol=1e-12)


@each("solver", ["adam", "lbfgs"])
@each("tied", [False, True])
def test_a_constant_column_has_no_influence_and_comes_back(solver, tied):
    X = irregular(60, 5)
    X[:, 2] = 1e6
    model = Autoencoder(2, solver=solver, tied=tied, max_iter=10, random_state=0).fit(X)
    other = X.copy()
    other[:, 2] = -3
    np.testing.assert_array_equal(model.transform(other), model.transform(X))
    assert (model.inverse_transform(model.embedding_)[:, 2] == 1e6).all()


@each("solver", ["adam", "lbfgs"])
@each("X", [irregular(4, 5), np.ones((9, 3)), np.repeat(irregular(3, 4), 20, axis=0)])
def test_few_rows_copies_and_constants_give_finite_maps(solver, X):
    model = Autoencoder(1, hidden=[40, 30], solver=solver, max_iter=20, random_state=0)
    Y = model.fit_transform(X)
    assert np.isfinite(Y).all()
    assert np.isfinite(model.inverse_transform(Y)).all()
    assert np.isfinite(model.explained_share_)


# --- training that goes wrong, or is stopped ------------------------------------------------------


def test_an_exploding_learning_rate_is_named():
    with pytest.raises(DataError, match=r"Autoencoder: training diverged.*learning_rate=1000"):
        Autoencoder(2, solver="adam", learning_rate=1000.0, random_state=0).fit(irregular(200, 5))


@each("solver", ["adam", "lbfgs"])
def test_stopped_training_keeps_the_best_weights(solver):
    X = irregular(200, 5)
    maps = []

    def stop_at_12(step: int, Y: np.ndarray, loss: float) -> bool:
        maps.append(Y.copy())
        return step == 12

    rates = {"learning_rate": 0.05}  # the loss goes up and down
    model = Autoencoder(2, solver=solver, callback=stop_at_12, random_state=0, **rates).fit(X)
    assert model.n_iter_ == 12
    held = np.random.default_rng(0).permutation(200)[:20]
    kept = model.reconstruction_errors_[held].mean()
    assert kept == pytest.approx(model.held_out_loss_.min(), rel=1e-4)
    best = maps[model.best_iter_ - 1]
    np.testing.assert_allclose(model.embedding_, best, atol=1e-4)


def test_patience_ends_a_training_that_overfits():
    X = np.random.default_rng(0).standard_normal((60, 5))
    model = Autoencoder(2, patience=5, weight_decay=0.0, solver="lbfgs", random_state=0).fit(X)
    assert model.n_iter_ == model.best_iter_ + 5


@each(
    "params",
    [{"n_components": 2**31}, {"n_components": 10**6}],
)
def test_sizes_far_beyond_the_data_are_refused(params):
    with pytest.raises(ParameterError, match="ask for at most"):
        Autoencoder(**params).fit(irregular(30, 4))


def test_networks_beyond_the_memory_are_refused(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1GB")
    with pytest.raises(MemoryLimitError, match="fewer hidden units"):
        Autoencoder(hidden=[100_000, 100_000]).fit(irregular(30, 4))


def test_steps_far_beyond_need_cost_nothing():
    X = irregular(30, 4)
    for solver in ("adam", "lbfgs"):
        huge = {"max_iter": 2**62, "batch_size": 2**62, "patience": 2**62}
        stop = {"callback": lambda step, Y, loss: step == 2}
        assert Autoencoder(solver=solver, **huge, **stop).fit(X).n_iter_ == 2
