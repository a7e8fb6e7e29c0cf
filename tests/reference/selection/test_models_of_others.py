"""Wrappers with models, scores and folds that fail: one error that names the parameter."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import lowland
from lowland.errors import ParameterError
from support.cases import each


class Model(ClassifierMixin, BaseEstimator):
    """A classifier that works; others below fail in one way each."""

    def fit(self, X, y):
        self.classes_, self.coef_ = np.unique(y), np.ones((1, X.shape[1]))
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class RaisesInFit(Model):
    def fit(self, X, y):
        raise RuntimeError("no fit today")


class RaisesInPredict(Model):
    def predict(self, X):
        raise KeyError("no prediction today")


class ScoresNaN(Model):
    def score(self, X, y):
        return np.nan


class FitsNothing(Model):
    def fit(self, X, y):
        return None


class WeighsNaN(Model):
    def fit(self, X, y):
        super().fit(X, y)
        self.coef_ = np.full((1, X.shape[1]), np.nan)
        return self


class WeighsTooMuch(Model):
    def fit(self, X, y):
        super().fit(X, y)
        self.coef_ = np.ones((1, 99))
        return self


class Folds:
    def __init__(self, *folds):
        self.folds = folds

    def split(self, X, y=None, groups=None):
        return iter(self.folds)

    def get_n_splits(self, *arguments):
        return len(self.folds)


def of_nothing(model, X, y):
    return None


def divided_by_zero(model, X, y):
    return 1 / 0


WRAPPERS = [lowland.RecursiveElimination, lowland.SequentialSelection]
FAILING = [
    ({"estimator": RaisesInFit()}, r"estimator=RaisesInFit\(\) failed: RuntimeError: no fit today"),
    ({"estimator": RaisesInPredict()}, "failed: KeyError"),
    ({"estimator": ScoresNaN()}, "scoring: the score of a set of .* columns is nan"),
    ({"estimator": FitsNothing()}, "estimator|scoring"),
    ({"estimator": 5}, "estimator=5 is not allowed"),
    ({"estimator": Model}, "estimator=.* is not allowed"),
    ({"scoring": "nonsense"}, "scoring='nonsense' failed"),
    ({"scoring": of_nothing}, "scoring=.* failed: TypeError"),
    ({"scoring": divided_by_zero}, "scoring=.* failed: ZeroDivisionError"),
    ({"cv": Folds(([0, 1, 999], [2]))}, "cv=.* failed: IndexError"),
    ({"cv": Folds(("ab", "cd"))}, "cv=.* failed: IndexError"),
    ({"cv": Folds()}, "gives no folds"),
    ({"cv": Folds(([0, 1, 2], []))}, "a fold without rows"),
    ({"cv": 1}, "cv=1 is not allowed"),
    ({"cv": 10**30}, "cv=10*.* is not allowed; .* below 2\\^63"),
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
@each(("params", "message"), FAILING)
def test_models_scores_and_folds_that_fail_are_named(wrapper, params, message):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    with pytest.raises(ParameterError, match=message):
        wrapper(2, **{"cv": 2, "random_state": 0, **params}).fit(X, y)


@each("model", [WeighsNaN(), WeighsTooMuch()])
def test_weights_that_are_none_are_refused(model):
    X, y = np.random.default_rng(0).standard_normal((30, 4)), np.arange(30) % 2
    with pytest.raises(ParameterError, match="the weights of estimator="):
        lowland.RecursiveElimination(2, estimator=model, cv=2).fit(X, y)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_labels_of_any_type_are_classes_for_the_default_model(wrapper):
    X = np.random.default_rng(0).standard_normal((30, 4))
    ordinary = wrapper(2, cv=2, random_state=0).fit(X, np.arange(30) % 2).ranking_
    for labels in ([b"a", b"b"], [2**70, 2**71], [0.0, 1e300]):
        found = wrapper(2, cv=2, random_state=0).fit(X, labels * 15).ranking_
        np.testing.assert_array_equal(found, ordinary)
