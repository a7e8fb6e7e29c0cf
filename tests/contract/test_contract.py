"""The promises that every method keeps."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import lowland
from lowland.errors import DataError, LowlandError, ParameterError


def fitted_state(estimator):
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


def assert_same_state(first, second):
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


# --- parameters ---------------------------------------------------------------------------------


def test_init_only_stores_its_parameters(method):
    marker = object()
    estimator = method(**dict.fromkeys(method.parameters(), marker))
    assert vars(estimator) == dict.fromkeys(method.parameters(), marker)


def test_signature_shows_every_parameter_with_its_default(method):
    shown = inspect.signature(method).parameters
    assert list(shown) == list(method.parameters())
    for name, field in method.parameters().items():
        assert shown[name].default is field.default


def test_only_n_components_may_be_given_by_position(method):
    kinds = {p.name: p.kind for p in inspect.signature(method).parameters.values()}
    assert kinds.pop("n_components") is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds.values()) == {inspect.Parameter.KEYWORD_ONLY}


def test_there_are_not_too_many_parameters(method):
    own = set(method.parameters()) - {"random_state", "n_jobs", "verbose", "callback"}
    assert len(own) <= 15


def test_defaults_satisfy_their_own_constraints(method):
    method().check_params()


def test_a_bad_parameter_is_refused_at_fit_by_name_and_value(method, X):
    for name, field in method.parameters().items():
        nonsense = complex(1, 7)
        estimator = method().set_params(**{name: nonsense})
        message = re.escape(f"{method.__name__}: {name}=(1+7j) is not allowed; expected")
        with pytest.raises(ParameterError, match=message) as caught:
            estimator.fit(X)
        assert field.metadata["constraint"].describe() in str(caught.value)


def test_an_unknown_parameter_is_refused_with_the_nearest_name(method):
    with pytest.raises(ParameterError, match=r"did you mean 'n_components'\?"):
        method().set_params(n_component=2)


def test_get_params_gives_back_what_set_params_took(make):
    estimator = make(n_components=3)
    other = make().set_params(**estimator.get_params())
    assert other.get_params() == estimator.get_params()


def test_repr_shows_only_what_differs_from_the_default(method):
    assert repr(method()) == f"{method.__name__}()"
    assert repr(method(random_state=7)) == f"{method.__name__}(random_state=7)"


def test_every_parameter_and_attribute_is_documented(method):
    for name in (*method.parameters(), *method.fitted_attributes):
        assert method.documentation(name).text, name


def test_the_docstring_has_its_sections_and_names_the_paper(method):
    text = inspect.getdoc(method)
    for section in ("Parameters\n---", "Attributes\n---", "References\n---", "Examples\n---"):
        assert section in text, section
    assert re.search(r"\b(18|19|20)\d\d\b", method.reference)
    assert len(method.summary()) <= 100


# --- fitting ------------------------------------------------------------------------------------


def test_the_card_says_what_to_know_before_choosing(method):
    for text in method.card:
        assert 10 < len(text) < 220
        assert not text.endswith(".")  # it goes into tables


def test_estimates_grow_with_the_data(method):
    small, large = method.estimate(1000, 20), method.estimate(4000, 40)
    assert 0 < small.seconds < large.seconds
    assert 0 < small.n_bytes < large.n_bytes


def test_fit_returns_the_estimator_and_equals_fit_transform(make, X):
    first, second = make(), make()
    assert first.fit(X) is first
    embedding = second.fit_transform(X)
    assert embedding.shape == (len(X), 2)
    assert np.isfinite(embedding).all()
    assert_same_state(fitted_state(first), fitted_state(second))


def test_fit_leaves_exactly_the_declared_attributes_in_their_declared_shapes(make, X):
    estimator = make().fit(X)
    assert set(fitted_state(estimator)) == {*estimator.fitted_attributes, "n_features_in_"}
    sizes = {"n_features": X.shape[1], "n_components": 2, "n_samples": len(X)}
    for name, declared in estimator.fitted_attributes.items():
        value = getattr(estimator, name)
        if value is None:
            assert declared.optional, name
            continue
        for size, actual in zip(declared.shape or (), np.shape(value), strict=True):
            assert actual == sizes.setdefault(size, actual), name


def test_refitting_forgets_the_first_data(make, X):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    refitted = make().fit(frame[["a", "b", "c", "d"]]).fit(X)
    assert_same_state(fitted_state(refitted), fitted_state(make().fit(X)))


def test_a_failed_fit_does_not_pass_for_a_fitted_model(make, X):
    estimator = make().fit(X)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
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


@pytest.mark.parametrize("order", ["F", "strided", "list"])
def test_memory_layout_does_not_matter(make, X, order):
    other = {"F": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=1)[:, ::2], "list": X}
    given = X.tolist() if order == "list" else other[order]
    np.testing.assert_array_equal(make().fit_transform(given), make().fit_transform(X))


def test_the_number_of_threads_does_not_change_a_byte(make, X):
    wide = np.hstack([X] * 4) + np.arange(24) * X[:, :1]
    one, two = make(n_jobs=1), make(n_jobs=2)
    assert one.fit_transform(wide).tobytes() == two.fit_transform(wide).tobytes()
    assert_same_state(fitted_state(one), fitted_state(two))
    assert one.transform(wide).tobytes() == two.transform(wide).tobytes()


def test_the_same_seed_gives_the_same_map(make, X):
    assert make().fit_transform(X).tobytes() == make().fit_transform(X).tobytes()


# --- new rows -----------------------------------------------------------------------------------


def test_fitted_rows_land_on_their_own_places(make, X):
    estimator = make()
    embedding = estimator.fit_transform(X)
    scale = np.abs(embedding).max()
    np.testing.assert_allclose(estimator.transform(X), embedding, atol=1e-5 * scale)


def test_a_row_alone_lands_where_it_lands_in_company(make, X):
    estimator = make().fit(X[:60])
    together = estimator.transform(X)
    alone = np.vstack([estimator.transform(row[None, :]) for row in X])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(estimator.transform(X[::-1]), together[::-1])


def test_transform_changes_nothing(make, X):
    estimator = make().fit(X)
    before = pickle.dumps(vars(estimator))
    estimator.transform(X * 2 + 1)
    assert pickle.dumps(vars(estimator)) == before


def test_transform_before_fit_says_so(make, X):
    with pytest.raises(NotFittedError, match="not fitted yet; call 'fit' first"):
        make().transform(X)


def test_the_wrong_number_of_columns_is_refused(make, X):
    with pytest.raises(DataError, match=r"X has 5 features, but .* is expecting 6 features"):
        make().fit(X).transform(X[:, :5])


def test_inverse_transform_exists_only_where_it_is_real(make, X):
    estimator = make().fit(X)
    if hasattr(estimator, "inverse_transform"):
        back = estimator.inverse_transform(estimator.transform(X))
        assert back.shape == X.shape
        assert np.isfinite(back).all()
        with pytest.raises(DataError, match=r"has 3 columns, but the map .* has 2 dimensions"):
            estimator.inverse_transform(np.zeros((4, 3)))


# --- bad and degenerate data --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "message"),
    [(np.nan, "contains NaN: column 3, first in row 17"), (-np.inf, "contains infinity: column 3")],
)
def test_values_that_are_not_finite_are_refused_with_their_place(make, X, bad, message):
    X[17, 3] = bad
    with pytest.raises(DataError, match=message):
        make().fit(X)
    with pytest.raises(DataError, match="column 'd'"):
        make().fit(pd.DataFrame(X, columns=list("abcdef")))
    with pytest.raises(DataError, match=message):
        make().fit(np.delete(X, 17, axis=0)).transform(X)


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros(5),
        np.zeros((2, 3, 4)),
        np.zeros((4, 2), dtype=complex),
        [["a", "b"], ["c", "d"]],
        [[{}, 1], [2, 3]],
        np.zeros((1, 4)),
    ],
    ids=["no rows", "no columns", "1-D", "3-D", "complex", "text", "objects", "one row"],
)
def test_what_is_not_a_table_of_numbers_is_refused_in_our_words(make, bad):
    with pytest.raises(LowlandError) as caught:
        make().fit(bad)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "degenerate",
    [
        np.zeros((20, 4)),
        np.repeat(np.eye(5), 4, axis=0),
        np.column_stack([np.arange(20.0), np.ones(20), np.arange(20.0) ** 2]),
        np.arange(40.0).reshape(20, 2) * 1e-8,
        np.arange(40.0).reshape(20, 2) * 1e8,
        np.array([[0.0, 0, 0], [1, 2, 3]]),
        np.vstack([np.zeros((19, 3)), [[1e6, -1e6, 1e6]]]),
    ],
    ids=["constant", "duplicates", "constant column", "tiny", "huge", "two rows", "outlier"],
)
def test_degenerate_data_give_a_finite_map_or_a_clear_error(make, degenerate):
    estimator = make()
    try:
        embedding = estimator.fit_transform(degenerate)
    except LowlandError as error:
        assert len(str(error)) > 20  # noqa: PT017
        return
    assert embedding.shape == (len(degenerate), 2)
    assert np.isfinite(embedding).all()
    assert np.isfinite(estimator.transform(degenerate)).all()


def test_sparse_data_work_like_dense_or_are_refused_by_name(make, X):
    X[np.median(X) > X] = 0
    given = sparse.csr_matrix(X)
    if make().accepts_sparse:
        dense, estimator = make().fit(X), make().fit(given)
        expected = dense.transform(X)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(estimator.transform(given), expected, atol=1e-6 * scale)
    else:
        with pytest.raises(LowlandError, match="Sparse data was passed as X"):
            make().fit(given)


# --- frames, pipelines, copies ------------------------------------------------------------------


def test_frames_of_pandas_and_polars_give_their_names(make, X):
    names = list("abcdef")
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names, orient="row")):
        estimator = make()
        np.testing.assert_array_equal(estimator.fit_transform(frame), make().fit_transform(X))
        assert list(estimator.feature_names_in_) == names


def test_set_output_gives_frames_of_pandas_and_polars(make, X):
    prefix = type(make()).__name__.lower()
    frame = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(len(X)) + 100)
    for given in ("fit_transform", "transform"):
        estimator = make().set_output(transform="pandas")
        if given == "transform":
            estimator.fit(frame)
        result = getattr(estimator, given)(frame)
        assert list(result.columns) == [f"{prefix}0", f"{prefix}1"]
        assert (result.index == frame.index).all()
    result = make().set_output(transform="polars").fit_transform(X)
    assert isinstance(result, pl.DataFrame)
    assert result.columns == [f"{prefix}0", f"{prefix}1"]


def test_other_columns_than_the_fitted_ones_are_refused_by_name(make, X):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    estimator = make().fit(frame)
    with pytest.raises(DataError, match="must be in the same order"):
        estimator.transform(frame[list("bacdef")])
    with pytest.raises(DataError, match="unseen at fit time:\n- z"):
        estimator.transform(frame.rename(columns={"a": "z"}))


def test_it_works_in_a_pipeline_and_a_grid_search(make, X):
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [1 / 3, 2 / 3]))
    pipeline = make_pipeline(make(), KNeighborsClassifier(3))
    step = type(make()).__name__.lower()
    search = GridSearchCV(pipeline, {f"{step}__n_components": [1, 2]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.45  # chance is a third
    assert search.predict(X).shape == (len(X),)


def test_clone_and_pickle_make_equal_copies(make, X):
    estimator = make(n_components=1).fit(X)
    assert clone(estimator).get_params() == estimator.get_params()
    assert not hasattr(clone(estimator), "n_features_in_")
    copy = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(copy.transform(X), estimator.transform(X))


def test_notebooks_show_a_diagram(make):
    assert type(make()).__name__ in make()._repr_html_()


def test_verbose_writes_progress_to_stderr_only(make, X, capsys):
    make(verbose=True).fit(X)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert type(make()).__name__ in captured.err
    make().fit(X)
    assert capsys.readouterr().err == ""


# --- model files --------------------------------------------------------------------------------


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


def test_an_unfitted_model_is_not_saved(make, tmp_path):
    with pytest.raises(NotFittedError):
        make().save(tmp_path / "m.lowland")
    assert not (tmp_path / "m.lowland").exists()


# --- memory -------------------------------------------------------------------------------------


def test_too_little_memory_is_said_before_it_is_taken(make, monkeypatch):
    """With next to nothing allowed, a method either needs next to nothing or refuses clearly."""
    X = np.random.default_rng(0).standard_normal((400, 300))
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100 KB")
    try:
        make().fit(X)
    except MemoryError as error:
        assert re.search(r"needs .* but the process may use 100 kB; .*", str(error))  # noqa: PT017
