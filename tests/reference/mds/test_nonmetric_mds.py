"""Non-metric scaling: MASS, smile, scikit-learn, ties, monotone transforms, known pictures."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from lowland import ClassicalMDS, NonmetricMDS
from lowland._engines.stress.objective import mid_ranks
from lowland.errors import DataError
from support.cases import each


@pytest.mark.parametrize(
    ("ties", "percent"), [("index", 7.505733), ("primary", 7.439208), ("secondary", 7.549911)]
)
def test_eurodist_starts_at_the_known_stress_and_falls(ties, percent, eurodist):
    _, D = eurodist
    start = ClassicalMDS(metric="precomputed").fit(D).embedding_
    model = NonmetricMDS(metric="precomputed", ties=ties, init=start).fit(D)
    assert 100 * model.loss_history_[0] == pytest.approx(percent, abs=5e-7)
    assert (np.diff(model.loss_history_) <= 0).all()
    assert model.stress_ < 0.06


def test_swiss_reaches_the_best_known_stress(swiss):
    # smile's IsotonicMDSTest prints 0.023190; MASS::isoMDS stops at 0.02338839
    assert NonmetricMDS().fit(swiss).stress_ <= 0.0231905


def test_stress_is_that_of_an_isotonic_regression(irregular, distances):
    X = irregular(25, 5)
    model = NonmetricMDS(ties="index").fit(X)
    i, j = np.triu_indices(25, 1)
    delta, d = distances(X)[i, j], distances(model.embedding_)[i, j]
    order = np.argsort(delta, kind="stable")
    fit = isotonic_regression(d[order]).x
    stress = np.sqrt(((d[order] - fit) ** 2).sum() / (d**2).sum())
    assert model.stress_ == pytest.approx(stress, rel=1e-9)
    assert (d**2).mean() == pytest.approx(1.0)
    np.testing.assert_allclose(model.dissimilarities_, delta[order])
    np.testing.assert_allclose(model.distances_, d[order])
    np.testing.assert_allclose(model.disparities_, fit, atol=1e-9)


def test_the_gradient_is_that_of_stress(irregular, distances):
    """A small step along the negative gradient lowers the stress as the gradient predicts."""
    from lowland._engines.stress.objective import (
        Disparities,
        IntervalCone,
        ListedPairs,
        MonotoneCone,
    )

    rng = np.random.default_rng(0)
    i, j = np.triu_indices(12, 1)
    delta = distances(irregular(12, 4))[i, j]
    order = np.argsort(delta)
    i, j, delta = i[order], j[order], delta[order]
    w = rng.gamma(2.0, size=len(delta))
    for weights in (None, w):
        for cone in (MonotoneCone(delta, "primary", weights), IntervalCone(delta, weights)):
            objective = Disparities(ListedPairs(12, i, j, delta, weights, 1), cone)
            Y, V = rng.standard_normal((2, 12, 2))
            step = 1e-6
            slope = (objective(Y + step * V).loss - objective(Y - step * V).loss) / (2 * step)
            assert 2 * np.vdot(objective(Y).slope, V) == pytest.approx(slope, rel=1e-5)


@each("ties", ["primary", "secondary"])
@each("rising", [np.square, np.log1p, lambda D: np.expm1(D / 2)])
def test_a_rising_function_of_the_dissimilarities_changes_nothing(
    rising, ties, irregular, distances
):
    D = np.round(distances(irregular(30, 4)), 1)  # with ties
    plain = NonmetricMDS(metric="precomputed", ties=ties, random_state=0).fit(D)
    curved = NonmetricMDS(metric="precomputed", ties=ties, random_state=0).fit(rising(D))
    np.testing.assert_allclose(curved.embedding_, plain.embedding_, atol=1e-9)


def test_ties_are_split_by_primary_and_kept_by_secondary(irregular, distances):
    D = np.ceil(distances(irregular(25, 4)))
    np.fill_diagonal(D, 0)
    primary = NonmetricMDS(metric="precomputed").fit(D)
    secondary = NonmetricMDS(metric="precomputed", ties="secondary").fit(D)
    for level in np.unique(D[D > 0]):
        same = secondary.dissimilarities_ == level
        assert np.ptp(secondary.disparities_[same]) == 0
    assert primary.stress_ < secondary.stress_


def test_tied_dissimilarities_start_with_their_mean_rank():
    values = np.sort(np.random.default_rng(0).integers(0, 6, 40)).astype(float)
    np.testing.assert_array_equal(mid_ranks(values), rankdata(values))


def test_zero_is_a_value_and_not_an_unknown():
    line = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    lowest = np.maximum(line - 1, 0)  # neighbors at 0, and yet not in one place
    model = NonmetricMDS(metric="precomputed", random_state=0).fit(lowest)
    assert len(model.dissimilarities_) == 15
    assert model.stress_ < 1e-3
    unknown = np.where(lowest == 0, np.nan, lowest)
    np.fill_diagonal(unknown, 0)
    assert len(NonmetricMDS(metric="precomputed").fit(unknown).dissimilarities_) == 10


def test_it_is_no_worse_than_scikit_learns(irregular, distances):
    from sklearn.manifold import smacof

    D = distances(irregular(40, 6))
    start = np.random.default_rng(0).standard_normal((40, 2))
    ours = NonmetricMDS(metric="precomputed", init=start, max_iter=1000).fit(D)
    _, theirs = smacof(
        D,
        metric=False,
        n_components=2,
        init=start,
        n_init=1,
        max_iter=1000,
        eps=1e-9,
        normalized_stress=True,
    )
    assert ours.stress_ <= theirs


def test_awkward_dissimilarities():
    for D in (1 - np.eye(6), np.zeros((4, 4)), np.array([[0, 2.0], [2, 0]])):
        model = NonmetricMDS(metric="precomputed", random_state=0).fit(D)
        assert np.isfinite(model.embedding_).all()
        assert model.stress_ == pytest.approx(0, abs=1e-6)
    with pytest.raises(DataError, match="no distance of row 1 is known"):
        NonmetricMDS(metric="precomputed").fit(
            [[0, np.nan, 1], [np.nan, 0, np.nan], [1, np.nan, 0]]
        )
