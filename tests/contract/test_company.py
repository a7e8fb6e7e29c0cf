"""Frames, pipelines, copies and model files."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import lowland
from lowland.errors import DataError
from support.methods import every_method
from support.states import assert_same_state, fitted_state


def test_frames_of_pandas_and_polars_give_their_names(make, X, fitted):
    names = list("abcdef")
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names, orient="row")):
        estimator = make()
        np.testing.assert_array_equal(estimator.fit_transform(frame), fitted.embedding)
        assert list(estimator.feature_names_in_) == names


def test_set_output_gives_frames_of_pandas_and_polars(make, X):
    prefix = type(make()).__name__.lower()
    names = [f"{prefix}{i}" for i in range(make().n_components)]
    frame = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(len(X)) + 100)
    for given in ("fit_transform", "transform"):
        estimator = make().set_output(transform="pandas")
        if given == "transform":
            estimator.fit(frame)
        result = getattr(estimator, given)(frame)
        assert list(result.columns) == names
        assert (result.index == frame.index).all()
    result = make().set_output(transform="polars").fit_transform(X)
    assert isinstance(result, pl.DataFrame)
    assert result.columns == names


def test_other_columns_than_the_fitted_ones_are_refused_by_name(make, X):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    estimator = make().fit(frame)
    with pytest.raises(DataError, match="must be in the same order"):
        estimator.transform(frame[list("bacdef")])
    with pytest.raises(DataError, match="unseen at fit time:\n- z"):
        estimator.transform(frame.rename(columns={"a": "z"}))


@pytest.mark.sampled
def test_it_works_in_a_pipeline_and_a_grid_search(make, X):
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [1 / 3, 2 / 3]))
    pipeline = make_pipeline(make(), KNeighborsClassifier(3))
    step = type(make()).__name__.lower()
    tried = {f"{step}__n_components": [1, make().n_components]}
    search = GridSearchCV(pipeline, tried, cv=2).fit(X, y)
    assert search.best_score_ > 0.45  # chance is a third
    assert search.predict(X).shape == (len(X),)


def test_clone_and_pickle_make_equal_copies(make, X):
    estimator = make(n_components=1).fit(X)
    assert clone(estimator).get_params() == estimator.get_params()
    assert not hasattr(clone(estimator), "n_features_in_")
    copy = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(copy.transform(X), estimator.transform(X))


@every_method
def test_notebooks_show_a_diagram(method):
    assert method.__name__ in method()._repr_html_()


def test_verbose_writes_progress_to_stderr_only(make, X, capsys):
    make(verbose=True).fit(X)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert type(make()).__name__ in captured.err
    make().fit(X)
    assert capsys.readouterr().err == ""


def test_a_saved_model_places_rows_exactly_as_before(make, X, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    estimator = make().fit(frame)
    estimator.save(tmp_path / "m.lowland")
    loaded = lowland.load(tmp_path / "m.lowland")
    assert type(loaded) is type(estimator)
    assert loaded.get_params() == estimator.get_params()
    assert_same_state(fitted_state(loaded), fitted_state(estimator))
    np.testing.assert_array_equal(loaded.transform(frame), estimator.transform(frame))


def test_equal_models_are_equal_files(make, X, tmp_path):
    for name in ("a", "b"):
        make().fit(X).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_generator_as_seed_is_not_saved(make, X, tmp_path):
    make(random_state=np.random.default_rng(0)).fit(X).save(tmp_path / "m.lowland")
    assert lowland.load(tmp_path / "m.lowland").random_state is None


@every_method
def test_an_unfitted_model_is_not_saved(method, tmp_path):
    with pytest.raises(NotFittedError):
        method().save(tmp_path / "m.lowland")
    assert not (tmp_path / "m.lowland").exists()
