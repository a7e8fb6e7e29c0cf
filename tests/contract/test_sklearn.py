"""scikit-learn's own checks, strictly, for every method, every selector and the neighbor graph."""

from __future__ import annotations

import warnings

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from lowland._core import registry
from lowland.neighbors import KNNTransformer
from support.cases import Cases
from support.methods import small


def run_all_checks(estimator):
    """Every check is a case: a failure names the checks that failed."""
    cases = Cases()
    with warnings.catch_warnings():
        # We follow the protocol without inheriting: importing scikit-learn costs over a second.
        warnings.filterwarnings("ignore", message=".*does not inherit from `sklearn.base")
        checks = list(estimator_checks_generator(estimator))
    assert len(checks) > 30
    for prepared, check in checks:
        cases.run(check.func.__name__, lambda: check(prepared))  # noqa: B023
    cases.finish()


@pytest.mark.parametrize("cls", registry.all_methods(), ids=registry.names())
def test_a_method_passes_scikit_learns_checks(cls):
    # the checks come with ten rows and fewer; a quadratic form needs six neighbors
    neighbors = 6 if cls.__name__ == "HessianLLE" else 3
    few = {"max_iter": 100} if cls.family() == "unfolding" else {}
    few |= {"max_iter": 6} if cls.__name__ == "PrincipalCurve" else {}
    few |= {"max_iter": 20} if cls.__name__ in ("Autoencoder", "GPLVM") else {}
    few |= {"max_iter": 30, "n_init": 1} if cls.__name__ == "NonlinearPCA" else {}
    few |= {"max_iter": 20} if cls.__name__ in ("BackConstrainedGPLVM", "BayesianGPLVM") else {}
    run_all_checks(cls(**small(cls, neighbors=neighbors, perplexity=2.0), **few))


@pytest.mark.parametrize("cls", registry.all_selectors(), ids=registry.selector_names())
def test_a_selector_passes_scikit_learns_checks(cls):
    wrapper = "estimator" in cls.parameters()
    quick = {"n_features": 1, "cv": 2, "estimator": RidgeClassifier()} if wrapper else {}
    run_all_checks(cls(**quick))


def test_the_neighbor_graph_passes_scikit_learns_checks():
    run_all_checks(KNNTransformer())
    run_all_checks(KNNTransformer(2, mode="connectivity"))
