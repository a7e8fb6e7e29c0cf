"""scikit-learn's own checks for every selector, strictly."""

from __future__ import annotations

import warnings

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from lowland._core import registry


def small(selector):
    """Cheap parameters; scikit-learn's data have few rows."""
    if "estimator" in selector.parameters():
        return selector(n_features=1, cv=2, estimator=RidgeClassifier())
    return selector()


def all_checks():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not inherit from `sklearn.base")
        for selector in registry.all_selectors():
            for estimator, check in estimator_checks_generator(small(selector)):
                yield pytest.param(
                    estimator, check, id=f"{selector.__name__}-{check.func.__name__}"
                )


@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
def test_scikit_learns_check_passes(estimator, check):
    check(estimator)
