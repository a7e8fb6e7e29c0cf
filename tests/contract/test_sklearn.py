"""scikit-learn's own checks, strictly, for every method, every selector and the neighbor graph."""

from __future__ import annotations

import warnings

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from lowland._base import registry
from lowland.neighbors import KNNTransformer
from support.cases import Cases
from support.methods import QUICKEST, sampled, small

# What a method may get wrong by itself; the other checks are about what its base class does.
OWN = {
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_parameters_default_constructible",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_set_params",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_dtype_object",
    "check_complex_data",
    "check_transformer_preserve_dtypes",
}


def run_checks(estimator, only=None):
    """Every check is a case: a failure names the checks that failed."""
    cases = Cases()
    with warnings.catch_warnings():
        # We follow the protocol without inheriting: importing scikit-learn costs over a second.
        warnings.filterwarnings("ignore", message=".*does not inherit from `sklearn.base")
        checks = list(estimator_checks_generator(estimator))
    assert len(checks) > 30
    names = {check.func.__name__ for _, check in checks}
    assert not only or len(only & names) > 8
    for prepared, check in checks:
        if only is None or check.func.__name__ in only:
            cases.run(check.func.__name__, lambda: check(prepared))  # noqa: B023
    cases.finish()


def quick(cls):
    """An instance that is fitted in milliseconds."""
    # the checks come with ten rows and fewer; a quadratic form needs six neighbors
    neighbors = 6 if cls.__name__ == "HessianLLE" else 3
    few = {"max_iter": 100} if cls.family() == "unfolding" else {}
    few |= {"max_iter": 6} if cls.__name__ == "PrincipalCurve" else {}
    few |= {"max_iter": 20} if cls.__name__ in ("Autoencoder", "GPLVM") else {}
    few |= {"max_iter": 30, "n_init": 1} if cls.__name__ == "NonlinearPCA" else {}
    few |= {"max_iter": 20} if cls.__name__ in ("BackConstrainedGPLVM", "BayesianGPLVM") else {}
    return cls(**small(cls, neighbors=neighbors, perplexity=2.0), **few)


@pytest.mark.parametrize("cls", sampled(registry.all_methods()))
def test_a_method_passes_scikit_learns_checks(cls):
    run_checks(quick(cls))


@pytest.mark.parametrize("cls", registry.all_methods(), ids=registry.names())
def test_a_method_passes_the_checks_of_what_it_declares(cls):
    if cls not in QUICKEST:  # these have passed all of them
        run_checks(quick(cls), only=OWN)


@pytest.mark.parametrize("cls", registry.all_selectors(), ids=registry.selector_names())
def test_a_selector_passes_scikit_learns_checks(cls):
    wrapper = "estimator" in cls.parameters()
    few = {"n_features": 1, "cv": 2, "estimator": RidgeClassifier()} if wrapper else {}
    run_checks(cls(**few))


def test_the_neighbor_graph_passes_scikit_learns_checks():
    run_checks(KNNTransformer())
    run_checks(KNNTransformer(2, mode="connectivity"))
