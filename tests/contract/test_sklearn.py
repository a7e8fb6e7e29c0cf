"""scikit-learn's own checks, strictly, for every method."""

from __future__ import annotations

import warnings

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from lowland._core import registry


def all_checks():
    with warnings.catch_warnings():
        # We follow the protocol without inheriting: importing scikit-learn costs over a second.
        warnings.filterwarnings("ignore", message=".*does not inherit from `sklearn.base")
        for method in registry.all_methods():
            small = {"perplexity": 2.0} if "perplexity" in method.parameters() else {}
            if isinstance(method().get_params().get("n_neighbors"), int):
                # the checks come with ten rows and fewer; a quadratic form needs six neighbors
                small["n_neighbors"] = 6 if method.__name__ == "HessianLLE" else 3
            for estimator, check in estimator_checks_generator(method(**small)):
                yield pytest.param(estimator, check, id=f"{method.__name__}-{check.func.__name__}")


@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
def test_scikit_learns_check_passes(estimator, check):
    check(estimator)
