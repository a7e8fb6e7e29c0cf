"""Sammon's mapping: MASS's start, converged values, its gradient, duplicates."""

import numpy as np
import pytest
from scipy.optimize import minimize

from lowland import ClassicalMDS, Sammon

# METHODS' irregular quadruple: values of both forms computed by hand
X4 = np.array([[0, 0, 0], [1, 0, 0.2], [1.3, 1, 0], [0, 1.1, 2]])
Y4 = np.array([[0, 0], [1, 0.1], [1.2, 1], [0.1, 0.6]])


@pytest.mark.parametrize(("power", "expected"), [(1, 0.2424194852), (2, 1.1304234772)])
def test_stress_of_four_points(power, expected):
    model = Sammon(power=power, init=Y4, max_iter=0).fit(X4)
    assert model.stress_ == pytest.approx(expected, rel=1e-9)


def test_eurodist_starts_where_mass_starts_and_ends_lower(eurodist):
    _, D = eurodist
    start = ClassicalMDS(metric="precomputed").fit(D).embedding_
    model = Sammon(metric="precomputed", init=start).fit(D)
    assert model.loss_history_[0] == pytest.approx(0.0170457, abs=5e-8)
    assert model.stress_ <= 0.0093982
    assert (np.diff(model.loss_history_) <= 0).all()


def test_swiss_ends_no_higher_than_mass(swiss):
    assert Sammon().fit(swiss).stress_ <= 0.00383


@pytest.mark.parametrize("power", [1, 2])
def test_the_end_is_a_minimum_of_the_naive_stress(power, irregular, distances, naive_stress):
    D = distances(irregular(14, 5))
    model = Sammon(metric="precomputed", power=power, tol=1e-12, max_iter=3000).fit(D)
    scale = np.triu(D).sum() if power == 1 else 1.0
    naive = naive_stress(D, model.embedding_, power=power)
    assert model.stress_ == pytest.approx(naive / scale, rel=1e-10)
    polished = minimize(
        lambda y: naive_stress(D, y.reshape(-1, 2), power=power), model.embedding_.ravel()
    )
    assert naive <= polished.fun * (1 + 1e-6)


def test_a_plane_has_no_stress(irregular):
    assert Sammon().fit(irregular(40, 2)).stress_ < 1e-18


def test_equal_rows_are_left_out_of_each_other(irregular):
    X = np.vstack([irregular(20, 4), irregular(20, 4)[:4]])
    for power in (1, 2):
        model = Sammon(power=power, random_state=0).fit(X)
        np.testing.assert_allclose(model.embedding_[:4], model.embedding_[20:], atol=1e-9)
        assert np.isfinite(model.stress_)


def test_many_rows_in_single_precision_are_as_good(irregular):
    X = irregular(1100, 5)  # beyond 1000 rows distances are float32
    model = Sammon(random_state=0).fit(X)
    i, j = np.triu_indices(len(X), 1)
    delta, Y = np.linalg.norm(X[i] - X[j], axis=1), model.embedding_
    d = np.linalg.norm(Y[i] - Y[j], axis=1)
    assert model.stress_ == pytest.approx(((delta - d) ** 2 / delta).sum() / delta.sum(), rel=1e-5)
    few = Sammon(pairs="sparse", random_state=0).fit(X)
    d = np.linalg.norm(few.embedding_[i] - few.embedding_[j], axis=1)
    assert ((delta - d) ** 2 / delta).sum() / delta.sum() <= 1.1 * model.stress_
