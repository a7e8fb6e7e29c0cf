"""DD-HDS against its formula, its symmetry and the springs with random forces of the paper."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform

from lowland import DDHDS
from lowland._engines.local_stress.objective import AllPairs, LocalStress
from lowland.methods.curvilinear.ddhds import weights
from reference.curvilinear.naive import ddhds_rule, ddhds_stress, ddhds_trial, principal_start
from reference.plain import FOUR_PLACES, FOUR_ROWS, slope_of
from support.bent_rows import rows as irregular_rows
from support.cases import each


def law_of(D, reach, rounding=0.0):
    pairs = D[np.triu_indices(len(D), 1)]
    return weights(float(pairs.mean()), float(pairs.std()), reach)._replace(rounding=rounding)


def objective(D, law):
    return LocalStress(AllPairs(np.ascontiguousarray(D), 1), law, np.empty(0))


@each(("reach", "value"), [(0.3, 2.4258817933), (0.5, 2.9887421769)])
def test_the_objective_of_the_four_points(reach, value):
    D = squareform(pdist(FOUR_ROWS))
    assert objective(D, law_of(D, reach))(FOUR_PLACES).stress == pytest.approx(value, abs=1e-9)
    assert ddhds_stress(D, FOUR_PLACES, reach) == pytest.approx(value, abs=1e-9)


@each("reach", [0.1, 0.5, 1.0])
def test_the_stated_stress_and_weights_are_those_of_the_paper(reach):
    X = irregular_rows(70, 5)
    model = DDHDS(reach=reach, random_state=0).fit(X)
    D = cdist(X, X)
    assert model.stress_ == pytest.approx(ddhds_stress(D, model.embedding_, reach), rel=1e-9)
    law = law_of(D, reach)
    assert model.weight_center_ == pytest.approx(law.center)
    assert model.weight_width_ == pytest.approx(law.width)
    # the loss rounds |gap| off by a thousandth of the deviation at each pair
    slack = 1e-3 * pdist(X).std() * len(pdist(X))
    assert 0 <= model.stress_ - model.loss_history_[-1] < slack


def test_weights_at_the_mean_distance_are_those_of_the_paper():
    """1 - Phi((1 - l) / l): .1587 for l = .5, .456 for .9."""
    D = cdist(*[irregular_rows(30, 4)] * 2)
    mean = D[np.triu_indices(30, 1)].mean()
    for reach, weight in ((0.5, 0.1587), (0.9, 0.456)):
        flat = np.array([[0.0, mean], [mean, 0.0]])
        far = np.array([[0.0], [5 * mean]])
        found = objective(flat, law_of(D, reach))(far).stress / (4 * mean)
        assert found == pytest.approx(weight, abs=5e-4)


@each("reach", [0.2, 0.5, 0.9])
@each("q", [1, 2, 3])
def test_the_slope_is_half_the_gradient(reach, q):
    X = irregular_rows(25, 4, seed=2)
    D, Y = cdist(X, X), principal_start(X, q)
    loss = objective(D, law_of(D, reach, rounding=0.05))
    half = slope_of(lambda Y: loss(Y).loss, Y) / 2
    assert half == pytest.approx(loss(Y).slope, rel=1e-4, abs=1e-5)


def test_flat_data_are_kept_as_they_are():
    X = np.random.default_rng(0).random((60, 2)) @ np.array([[1.0, 0.5, 0, 2], [0, 1, -1, 0.3]])
    model = DDHDS(random_state=0).fit(X)
    np.testing.assert_allclose(pdist(model.embedding_), pdist(X), atol=1e-6)


@each("reach", [0.3, 0.5, 0.9])
def test_it_ends_below_springs_with_random_forces(reach):
    rng = np.random.default_rng(0)
    sphere = rng.standard_normal((80, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    for X in (sphere, irregular_rows(80, 6)):
        D = cdist(X, X)
        paper = ddhds_rule(D, principal_start(X), reach, steps=400)
        model = DDHDS(reach=reach, random_state=0).fit(X)
        assert model.stress_ <= ddhds_stress(D, paper, reach)


@each("reach", [0.3, 0.5, 0.9])
def test_the_trial_of_the_sphere(reach):
    """L-BFGS from PCA on 80 points, on average over samples: where it is torn is up to chance."""
    ratios = []
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((80, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        D = cdist(X, X)
        trial = ddhds_stress(D, ddhds_trial(D, principal_start(X), reach), reach)
        ratios.append(DDHDS(reach=reach, random_state=0).fit(X).stress_ / trial)
    # the same minimum has the same stress but for the rounding of the gaps, 1e-3 of a deviation
    assert np.mean(np.log(ratios)) < 1e-3


@each("n", [2, 3, 4])
def test_few_rows_and_equal_rows(n):
    X = irregular_rows(n, 3)
    assert DDHDS(random_state=0).fit(X).transform(X[:1] + 0.1).shape == (1, 2)
    np.testing.assert_allclose(DDHDS().fit_transform(np.full((n, 3), 2.5)), 0, atol=1e-12)
    X = np.vstack([irregular_rows(20, 3)] * 2)
    Y = DDHDS(random_state=0).fit_transform(X)
    np.testing.assert_allclose(Y[:20], Y[20:], atol=1e-9 * np.abs(Y).max())
