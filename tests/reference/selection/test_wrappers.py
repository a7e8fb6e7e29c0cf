"""Wrappers: naive searches, scikit-learn's own, and what must hold of any path."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import sem
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFE, RFECV, SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier

import lowland
from lowland.datasets import iris, wine

FOLDS = StratifiedKFold(3)
MODEL = LinearDiscriminantAnalysis()


def wine_columns(n=7):
    return wine().X[:, :n], wine().y


def score(columns, X, y, model=MODEL, cv=FOLDS):
    return cross_val_score(model, X[:, list(columns)], y, cv=cv).mean()


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_sequential_selection_is_scikit_learns(direction):
    X, y = wine_columns()
    ours = lowland.SequentialSelection(3, estimator=MODEL, direction=direction, cv=FOLDS).fit(X, y)
    theirs = SequentialFeatureSelector(
        MODEL, n_features_to_select=3, direction=direction, cv=FOLDS
    ).fit(X, y)
    np.testing.assert_array_equal(ours.get_support(), theirs.get_support())


def test_sequential_selection_of_numbers_is_scikit_learns(irregular):
    X = irregular(80, 6)
    y = X[:, 1] - 2 * X[:, 4] + 0.5 * np.random.default_rng(0).standard_normal(80)
    model, folds = LinearRegression(), KFold(4)
    ours = lowland.SequentialSelection(2, estimator=model, cv=folds).fit(X, y)
    theirs = SequentialFeatureSelector(model, n_features_to_select=2, cv=folds).fit(X, y)
    np.testing.assert_array_equal(ours.get_support(), theirs.get_support())


def test_every_forward_step_is_the_best_single_addition_and_sets_are_nested():
    X, y = wine_columns()
    path = lowland.SequentialSelection(5, estimator=MODEL, cv=FOLDS).fit(X, y).path_
    chosen = []
    for size, found, support in zip(path.sizes, path.scores, path.support, strict=True):
        rest = [j for j in range(7) if j not in chosen]
        best = max(score([*chosen, j], X, y) for j in rest)
        assert found == pytest.approx(best, abs=1e-12)
        assert set(chosen) < set(np.flatnonzero(support))
        chosen = np.flatnonzero(support).tolist()
        assert len(chosen) == size


def test_a_backward_step_is_the_best_single_removal():
    X, y = wine_columns(5)
    chosen = lowland.SequentialSelection(4, estimator=MODEL, cv=FOLDS, direction="backward").fit(
        X, y
    )
    best = max(score(columns, X, y) for columns in itertools.combinations(range(5), 4))
    assert chosen.path_.scores[0] == pytest.approx(best, abs=1e-12)
    assert chosen.ranking_[~chosen.support_].tolist() == [5]


def nested_trap(n=400):
    """Column 2 alone is best, columns 0 and 1 together are better than any pair with column 2."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    signal = X[:, 0] + X[:, 1]
    X[:, 2] = signal + 0.7 * rng.standard_normal(n)
    return X, signal + 0.01 * rng.standard_normal(n)


def test_floating_selection_leaves_a_trap_that_forward_selection_falls_into():
    X, y = nested_trap()
    model, folds = LinearRegression(), KFold(3)
    best = max(itertools.combinations(range(4), 2), key=lambda c: score(c, X, y, model, folds))
    assert best == (0, 1)
    forward = lowland.SequentialSelection(3, estimator=model, cv=folds).fit(X, y)
    floating = lowland.SequentialSelection(3, estimator=model, cv=folds, floating=True).fit(X, y)
    assert 2 in np.flatnonzero(forward.path_.support[1])
    assert tuple(np.flatnonzero(floating.path_.support[1])) == (0, 1)
    assert (floating.path_.scores >= forward.path_.scores - 1e-12).all()


def test_floating_sets_are_at_least_as_good_at_every_size():
    X, y = wine_columns()
    for direction in ("forward", "backward"):
        plain, floating = (
            lowland.SequentialSelection(
                3, estimator=MODEL, cv=FOLDS, direction=direction, floating=floating
            )
            .fit(X, y)
            .path_
            for floating in (False, True)
        )
        known = dict(zip(floating.sizes, floating.scores, strict=True))
        for size, value in zip(plain.sizes, plain.scores, strict=True):
            assert known[size] >= value - 1e-12


def test_the_search_stops_when_nothing_improves():
    X, y = wine_columns(13)
    forward = lowland.SequentialSelection(estimator=MODEL, cv=FOLDS).fit(X, y)
    k = int(forward.support_.sum())
    assert 1 <= k < 13
    chosen = np.flatnonzero(forward.support_).tolist()
    reached = score(chosen, X, y)
    assert all(score([*chosen, j], X, y) <= reached for j in range(13) if j not in chosen)
    assert (np.diff(forward.path_.scores) > 0).all()
    strict = lowland.SequentialSelection(estimator=MODEL, cv=FOLDS, tol=0.05).fit(X, y)
    assert strict.support_.sum() < k
    backward = lowland.SequentialSelection(estimator=MODEL, cv=FOLDS, direction="backward").fit(
        X, y
    )
    assert backward.support_.sum() < 13
    kept = np.flatnonzero(backward.support_).tolist()
    reached = score(kept, X, y)
    assert all(score([c for c in kept if c != j], X, y) < reached for j in kept)


def test_all_columns_asked_for_are_all_columns_given():
    X, y = wine_columns(4)
    for cls in (lowland.SequentialSelection, lowland.RecursiveElimination):
        assert cls(4, estimator=MODEL, cv=FOLDS).fit(X, y).get_support().all()


@pytest.mark.parametrize("step", [1, 3, 0.3])
def test_elimination_is_scikit_learns(step):
    X, y = wine().X / wine().X.std(axis=0), wine().y
    model = LogisticRegression(max_iter=2000)
    ours = lowland.RecursiveElimination(4, estimator=model, step=step, cv=FOLDS).fit(X, y)
    theirs = RFE(model, n_features_to_select=4, step=step).fit(X, y)
    np.testing.assert_array_equal(ours.get_support(), theirs.support_)
    order = np.argsort(ours.ranking_)
    assert (np.diff(theirs.ranking_[order]) >= 0).all()


def test_the_number_of_columns_and_the_path_are_scikit_learns():
    X, y = wine().X / wine().X.std(axis=0), wine().y
    model = Ridge()  # numbers: the class as a number
    folds = KFold(4, shuffle=True, random_state=1)
    y = y + 0.25 * X[:, 3]
    ours = lowland.RecursiveElimination(estimator=model, cv=folds).fit(X, y)
    theirs = RFECV(model, cv=folds).fit(X, y)
    np.testing.assert_allclose(ours.path_.scores, theirs.cv_results_["mean_test_score"], rtol=1e-9)
    np.testing.assert_array_equal(ours.path_.sizes, np.arange(1, 14))
    np.testing.assert_array_equal(ours.get_support(), theirs.support_)


def test_selection_sits_inside_the_folds():
    """Pure noise: a selection that had seen the test rows would promise far more than chance."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 300)), np.arange(60) % 2
    model = LogisticRegression()
    path = lowland.RecursiveElimination(estimator=model, step=15, random_state=0).fit(X, y).path_
    assert path.scores.max() < 0.7
    whole = np.flatnonzero(path.support[1])  # chosen on all rows, then tested on the same
    assert score(whole, X, y, model) > 0.8


def test_importances_of_forests_do_as_well():
    forest = RandomForestClassifier(20, random_state=0)
    chosen = lowland.RecursiveElimination(2, estimator=forest, cv=2).fit(iris().X, iris().y)
    assert chosen.get_support(indices=True).tolist() == [2, 3]


def test_a_model_that_weighs_no_columns_is_refused():
    chosen = lowland.RecursiveElimination(2, estimator=KNeighborsClassifier())
    with pytest.raises(ValueError, match="KNeighborsClassifier has neither coef_ nor"):
        chosen.fit(iris().X, iris().y)


def test_parameters_of_the_model_can_be_searched():
    search = GridSearchCV(
        lowland.SequentialSelection(1, estimator=KNeighborsClassifier(), cv=2, random_state=0),
        {"estimator__n_neighbors": [1, 5]},
        scoring=lambda selector, X, y: -selector.get_params()["estimator__n_neighbors"],
        cv=2,
    ).fit(iris().X, iris().y)
    assert search.best_params_ == {"estimator__n_neighbors": 1}
    with pytest.raises(ValueError, match="estimator is None, so it has no parameter 'alpha'"):
        lowland.SequentialSelection().set_params(estimator__alpha=1)
    with pytest.raises(ValueError, match="unknown parameter"):
        lowland.SequentialSelection().set_params(nonsense=1)


def test_a_path_numbers_the_columns_of_the_table():
    X, y = wine_columns(4)
    padded = np.insert(X, [0, 2], 7.0, axis=1)  # columns 0 and 3 are constant
    for method in (lowland.SequentialSelection, lowland.RecursiveElimination):
        plain, found = (method(2, estimator=MODEL, cv=FOLDS).fit(Z, y) for Z in (X, padded))
        np.testing.assert_array_equal(found.path_.support[:, [1, 2, 4, 5]], plain.path_.support)
        assert not found.path_.support[:, [0, 3]].any()
        np.testing.assert_array_equal(found.ranking_[[1, 2, 4, 5]], plain.ranking_)


def test_the_errors_of_a_path_are_those_of_a_mean():
    X, y = wine_columns(5)
    for selector in (
        lowland.SequentialSelection(2, estimator=MODEL, cv=FOLDS),
        lowland.RecursiveElimination(2, estimator=MODEL, cv=FOLDS),
    ):
        path = selector.fit(X, y).path_
        assert path.errors.shape == path.scores.shape
        if isinstance(selector, lowland.SequentialSelection):
            for error, support in zip(path.errors, path.support, strict=True):
                scores = cross_val_score(MODEL, X[:, support], y, cv=FOLDS)
                assert error == pytest.approx(sem(scores), abs=1e-12)
        # all columns are in the largest set of an elimination, whatever the fold
        else:
            assert path.errors[-1] == pytest.approx(sem(cross_val_score(MODEL, X, y, cv=FOLDS)))
    one = lowland.SequentialSelection(1, estimator=MODEL, cv=ShuffleSplit(1, random_state=0))
    assert one.fit(X, y).path_errors_.tolist() == [0.0]


def test_scoring_is_what_is_maximized():
    X, y = wine_columns(5)
    chosen = lowland.SequentialSelection(1, estimator=MODEL, cv=FOLDS, scoring="f1_macro").fit(X, y)
    best = max(
        cross_val_score(MODEL, X[:, [j]], y, cv=FOLDS, scoring="f1_macro").mean() for j in range(5)
    )
    assert chosen.path_.scores[0] == pytest.approx(best, abs=1e-12)


def test_a_model_file_keeps_the_result_and_not_the_model(tmp_path):
    chosen = lowland.SequentialSelection(2, estimator=MODEL, cv=FOLDS).fit(iris().X, iris().y)
    chosen.save(tmp_path / "m.lowland")
    loaded = lowland.load(tmp_path / "m.lowland")
    assert loaded.estimator is None
    np.testing.assert_array_equal(loaded.transform(iris().X), chosen.transform(iris().X))
    np.testing.assert_array_equal(loaded.path_.scores, chosen.path_.scores)


def test_a_class_of_one_row_is_named():
    y = iris().y.copy()
    y[0] = 9
    with pytest.raises(ValueError, match="class 9 has a single row"):
        lowland.SequentialSelection(1).fit(iris().X, y)


def test_folds_are_shuffled_so_that_sorted_rows_do_no_harm(irregular):
    X = irregular(90, 4)
    y = 3 * X[:, 2] + X[:, 0]
    order = np.argsort(y)
    chosen = lowland.SequentialSelection(1, random_state=0).fit(X[order], y[order])
    assert chosen.get_support(indices=True).tolist() == [2]
    assert chosen.path_.scores[0] > 0.8
