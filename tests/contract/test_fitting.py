"""What fit and fit_transform promise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from lowland.errors import DataError, ParameterError
from support.cases import each
from support.states import assert_same_state, fitted_state


def test_fit_returns_the_estimator_and_equals_fit_transform(make, X, fitted):
    first, (second, embedding) = make(), fitted
    assert first.fit(X) is first
    assert embedding.shape == (len(X), first.n_components)
    assert np.isfinite(embedding).all()
    assert_same_state(fitted_state(first), fitted_state(second))


def test_fit_leaves_exactly_the_declared_attributes_in_their_declared_shapes(fitted, X):
    estimator = fitted.estimator
    assert set(fitted_state(estimator)) == {*estimator.fitted_attributes, "n_features_in_"}
    sizes = {"n_features": X.shape[1], "n_components": estimator.n_components, "n_samples": len(X)}
    for name, declared in estimator.fitted_attributes.items():
        value = getattr(estimator, name)
        if value is None:
            assert declared.optional, name
            continue
        for size, actual in zip(declared.shape or (), np.shape(value), strict=True):
            assert actual == sizes.setdefault(size, actual), name


def test_refitting_forgets_the_first_data(make, X, fitted):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    refitted = make().fit(frame[["a", "b", "c", "d"]]).fit(X)
    assert_same_state(fitted_state(refitted), fitted_state(fitted.estimator))


def test_a_failed_fit_does_not_pass_for_a_fitted_model(make, X, fitted):
    estimator = fitted.estimator
    with pytest.raises(ParameterError):
        estimator.set_params(n_components=0).fit(X)
    broken = make()
    with pytest.raises(DataError):
        broken.fit(np.full((5, 3), np.nan))
    with pytest.raises(NotFittedError):
        broken.transform(X)


def test_input_parameters_and_global_random_state_are_left_alone(make, X):
    X.setflags(write=False)
    before, params = X.copy(), make().get_params()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    estimator = make()
    estimator.fit_transform(X)
    estimator.transform(X)
    np.testing.assert_array_equal(X, before)
    assert estimator.get_params() == params
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@each("dtype", [np.float32, np.float64])
def test_the_float_type_is_kept(make, X, dtype):
    X = X.astype(dtype)
    estimator = make()
    assert estimator.fit_transform(X).dtype == dtype
    assert estimator.transform(X).dtype == dtype


def test_integers_and_booleans_are_numbers(make, X):
    integers = np.round(X).astype(int)
    np.testing.assert_array_equal(
        make().fit_transform(integers), make().fit_transform(integers.astype(float))
    )
    assert np.isfinite(make().fit_transform(X.mean(axis=0) < X)).all()


@each("order", ["F", "strided", "list"])
def test_memory_layout_does_not_matter(make, X, fitted, order):
    other = {"F": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=1)[:, ::2], "list": X}
    given = X.tolist() if order == "list" else other[order]
    np.testing.assert_array_equal(make().fit_transform(given), fitted.embedding)


def test_the_same_seed_gives_the_same_map(make, X, fitted):
    assert make().fit_transform(X).tobytes() == fitted.embedding.tobytes()
