"""DD-HDS against its formula, its symmetry and the springs with random forces of the paper."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform

from lowland import DDHDS, datasets
from lowland._engines.local_stress.objective import AllPairs, LocalStress
from lowland.curvilinear.ddhds import weights
from lowland.metrics import continuity, trustworthiness
from reference.curvilinear.naive import (
    F_MAP,
    F_ROWS,
    ddhds_rule,
    ddhds_stress,
    ddhds_trial,
    irregular_rows,
    principal_start,
)
from support.cases import each


def law_of(D, reach, rounding=0.0):
    pairs = D[np.triu_indices(len(D), 1)]
    return weights(float(pairs.mean()), float(pairs.std()), reach)._replace(rounding=rounding)


def objective(D, law):
    return LocalStress(AllPairs(np.ascontiguousarray(D), 1), law, np.empty(0))


@each(("reach", "value"), [(0.3, 2.4258817933), (0.5, 2.9887421769)])
def test_the_objective_of_the_four_points(reach, value):
    D = squareform(pdist(F_ROWS))
    assert objective(D, law_of(D, reach))(F_MAP).stress == pytest.approx(value, abs=1e-9)
    assert ddhds_stress(D, F_MAP, reach) == pytest.approx(value, abs=1e-9)


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


def test_the_objective_is_the_same_with_the_spaces_exchanged():
    X = irregular_rows(40, 4)
    D, Y = cdist(X, X), irregular_rows(40, 2, seed=1)
    law = law_of(D, 0.4)
    one = objective(D, law)(Y).stress
    other = objective(cdist(Y, Y), law)(X).stress
    assert one == pytest.approx(other, rel=1e-12)


def test_a_larger_copy_has_a_larger_stress_by_the_same_factor():
    X = irregular_rows(50, 4)
    one, other = (DDHDS(random_state=0).fit(factor * X) for factor in (1, 8))
    np.testing.assert_allclose(other.embedding_, 8 * one.embedding_, rtol=1e-9, atol=1e-9)
    assert other.stress_ == pytest.approx(8 * one.stress_, rel=1e-9)


@each("reach", [0.2, 0.5, 0.9])
@each("q", [1, 2, 3])
def test_the_slope_is_half_the_gradient(reach, q):
    X = irregular_rows(25, 4, seed=2)
    D, Y = cdist(X, X), principal_start(X, q)
    loss = objective(D, law_of(D, reach, rounding=0.05))
    slope, h = loss(Y).slope, 1e-6
    for i, k in np.ndindex(Y.shape):
        ends = []
        for sign in (-1, 1):
            moved = Y.copy()
            moved[i, k] += sign * h
            ends.append(loss(moved).loss)
        assert (ends[1] - ends[0]) / (4 * h) == pytest.approx(slope[i, k], rel=1e-4, abs=1e-5)


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


def test_neighborhoods_are_better_than_at_the_start():
    X = datasets.digits().X[:400]
    Y, start = DDHDS(random_state=0).fit_transform(X), principal_start(X)
    assert trustworthiness(X, Y) > trustworthiness(X, start)
    assert continuity(X, Y) > continuity(X, start)  # the weights treat both spaces alike


@each("n", [2, 3, 4])
def test_few_rows_and_equal_rows(n):
    X = irregular_rows(n, 3)
    assert DDHDS(random_state=0).fit(X).transform(X[:1] + 0.1).shape == (1, 2)
    np.testing.assert_allclose(DDHDS().fit_transform(np.full((n, 3), 2.5)), 0, atol=1e-12)
    X = np.vstack([irregular_rows(20, 3)] * 2)
    Y = DDHDS(random_state=0).fit_transform(X)
    np.testing.assert_allclose(Y[:20], Y[20:], atol=1e-9 * np.abs(Y).max())


def test_memory_is_refused_with_a_sample_as_the_alternative(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1000000")
    with pytest.raises(MemoryError, match="fit a sample of the rows and transform the others"):
        DDHDS().fit(irregular_rows(800, 3))
