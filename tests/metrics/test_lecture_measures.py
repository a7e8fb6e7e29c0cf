"""Measures for lectures: chance and elbow, curves of selectors, cost of the opening angle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland import PCA, AnovaF, SequentialSelection
from lowland._base.errors import DataError, ParameterError
from lowland.datasets import breast_cancer, iris, wine
from lowland.metrics import barnes_hut_cost, chance_shares, elbow, selection_curve
from support.cases import each

rng = np.random.default_rng(0)


def test_parallel_analysis_is_that_of_random_tables():
    X = rng.normal(size=(60, 5)) * [5, 1, 1, 2, 0.5]
    drawn = []
    for _ in range(2000):
        random = rng.normal(size=X.shape) * X.std(axis=0, ddof=1)
        variances = np.linalg.eigvalsh(np.cov(random.T))[::-1]
        drawn.append(variances / X.var(axis=0, ddof=1).sum())
    expected = np.quantile(drawn, 0.95, axis=0)
    found = chance_shares(X, n_draws=2000)
    np.testing.assert_allclose(found, expected, rtol=0.05)
    # in equal units the largest column no longer makes the first component
    assert chance_shares(X, scale=True)[0] < 0.5 < found[0]
    np.testing.assert_allclose(chance_shares(X * 1e60), chance_shares(X), rtol=1e-12)


def test_it_agrees_with_the_rule_of_pca():
    X = wine().X
    own = PCA(scale=True).fit(X).explained_variance_ratio_
    above = int((own > chance_shares(X, scale=True)).sum())
    assert above == PCA("parallel", scale=True, random_state=0).fit(X).n_components_


def test_the_broken_stick_has_the_expected_lengths_of_its_pieces():
    p = 4
    cuts = np.sort(rng.random((100_000, p - 1)), axis=1)
    ends = np.column_stack([np.zeros(len(cuts)), cuts, np.ones(len(cuts))])
    pieces = np.sort(np.diff(ends), axis=1)[:, ::-1].mean(axis=0)
    found = chance_shares(rng.normal(size=(20, p)), "broken_stick")
    np.testing.assert_allclose(found, pieces, atol=3e-3)
    assert found.sum() == pytest.approx(1)


@each(
    ("values", "expected"),
    [
        ([10, 5, 1, 0.9, 0.8], 3),
        ([10, 1, 0.9, 0.8], 2),
        ([1, 2, 2.9, 3, 3.1], 3),  # of a curve that rises
        ([4, 3, 2, 1], 1),  # a straight line has none
        ([4, 4, 4], 1),
        ([7], 1),
        ([7, 2], 1),
    ],
)
def test_the_elbow_is_where_a_curve_bends_most(values, expected):
    assert elbow(values) == expected


@each(
    ("call", "error", "message"),
    [
        (lambda: chance_shares(np.ones((5, 2))), DataError, "all rows are equal"),
        (lambda: chance_shares(np.eye(3), "stick"), ParameterError, "rule='stick'"),
        (lambda: chance_shares(np.eye(3), n_draws=0), ParameterError, "n_draws=0"),
        (lambda: elbow([]), DataError, "at least one"),
        (lambda: elbow([1, np.nan]), DataError, "NaN"),
        (lambda: selection_curve(AnovaF(), np.eye(4), [1, 0, 1]), DataError, "4"),
        (lambda: selection_curve(AnovaF(), np.eye(4), [1, 0, 1, 0]), DataError, "2 rows, fewer"),
        (
            lambda: selection_curve(AnovaF(), iris().X, iris().y, sizes=[5]),
            ParameterError,
            "from 1 to 4",
        ),
        (
            lambda: selection_curve(AnovaF(), iris().X, iris().y, cv=1),
            ParameterError,
            "cv=1",
        ),
        (lambda: barnes_hut_cost(np.eye(4)), DataError, "up to 3 dimensions"),
        (lambda: barnes_hut_cost(np.eye(2), [2.0]), ParameterError, r"number in \[0, 1\]"),
        (lambda: barnes_hut_cost(np.eye(2), []), ParameterError, r"number in \[0, 1\]"),
        (lambda: barnes_hut_cost(np.eye(2), n_repeats=0), ParameterError, "n_repeats=0"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_curve_of_a_filter_is_that_of_its_columns_on_held_out_rows():
    from sklearn.model_selection import StratifiedKFold
    from sklearn.neighbors import KNeighborsClassifier

    data, model = wine(), KNeighborsClassifier(3)
    X = data.X / data.X.std(axis=0)
    curve = selection_curve(AnovaF(), X, data.y, sizes=[3, 1], estimator=model, cv=4)
    assert curve.sizes.tolist() == [1, 3]
    scores = []
    for train, test in StratifiedKFold(4, shuffle=True, random_state=0).split(X, data.y):
        order = np.argsort(AnovaF().fit(X[train], data.y[train]).ranking_)
        for size in (1, 3):
            model.fit(X[train][:, order[:size]], data.y[train])
            scores.append(model.score(X[test][:, order[:size]], data.y[test]))
    by_fold = np.reshape(scores, (4, 2))
    np.testing.assert_allclose(curve.scores, by_fold.mean(axis=0))
    np.testing.assert_allclose(curve.errors, by_fold.std(axis=0, ddof=1) / 2)


def test_columns_of_noise_are_not_praised_although_many_were_tried():
    from sklearn.naive_bayes import GaussianNB

    y, tried, held_out = np.arange(40) % 2, [], []
    for _ in range(8):
        X = rng.normal(size=(40, 12))
        wrapper = SequentialSelection(3, estimator=GaussianNB(), cv=2, random_state=0)
        tried.append(wrapper.fit(X, y).path_.scores.max())
        curve = selection_curve(wrapper, X, y, sizes=[3], estimator=GaussianNB(), cv=3)
        held_out.append(curve.scores[0])
    # 320 rows of noise: half of the guesses are right, give or take three standard errors
    error = 3 * 0.5 / np.sqrt(320)
    assert np.mean(tried) > 0.5 + error  # on the rows that it was chosen by
    assert abs(np.mean(held_out) - 0.5) < error


def test_a_wrapper_is_measured_with_the_sets_that_it_found():
    from sklearn.naive_bayes import GaussianNB

    data, model = breast_cancer(), GaussianNB()
    X, y = data.X[:, :6], data.y
    wrapper = SequentialSelection(estimator=model, cv=2, random_state=0)
    curve = selection_curve(wrapper, X, y, sizes=[2], estimator=model, cv=2)
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    scores = []
    for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
        found = clone(wrapper).set_params(n_features=2).fit(X[train], y[train])
        columns = found.get_support(indices=True)
        scores.append(model.fit(X[train][:, columns], y[train]).score(X[test][:, columns], y[test]))
    assert curve.scores[0] == pytest.approx(np.mean(scores))


def test_the_error_of_an_angle_is_that_of_its_forces():
    Y = rng.normal(size=(300, 2)) * [20, 5]
    W = 1 / (1 + cdist(Y, Y, "sqeuclidean")) ** 2
    exact = (W[:, :, None] * (Y[:, None] - Y[None])).sum(axis=1)
    cost = barnes_hut_cost(Y, [0, 0.3, 1.0], n_repeats=1, n_jobs=1)
    assert cost.errors[0] < 1e-12
    assert 1e-6 < cost.errors[1] < cost.errors[2] < 0.2
    assert (cost.seconds > 0).all()
    assert cost.exact_seconds > 0
    from lowland._engines.embedding.repulsion import choose_repulsion

    potential, forces = np.empty(300), np.empty_like(Y)
    tree = choose_repulsion("barnes_hut", 300, 2, 1.0, 1.0, 1, owner="test")
    tree(Y, potential, forces)
    expected = np.linalg.norm(forces - exact) / np.linalg.norm(exact)
    assert cost.errors[2] == pytest.approx(expected, rel=1e-6)
