"""The promises that every selector keeps; they run over the registry, like those of the maps."""

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
from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.params import entries, short
from lowland.errors import DataError, LowlandError, ParameterError
from lowland.selection._filter import Filter
from support.cases import each
from support.methods import every_selector
from support.states import assert_same_state, fitted_state

NAMES = list("abcdef")


@pytest.fixture(params=registry.all_selectors(), ids=registry.selector_names())
def selector(request):
    return request.param


supervised = pytest.mark.parametrize(
    "selector",
    [cls for cls in registry.all_selectors() if cls.needs_target],
    ids=lambda cls: cls.__name__,
)


@pytest.fixture
def make(selector):
    """An instance for small data, seeded."""

    def make(**params):
        quick = {"cv": 2} if "cv" in selector.parameters() else {}
        return selector(**{"n_features": 2, "random_state": 0, **quick, **params})

    return make


@pytest.fixture
def X():
    """Irregular and not negative, since counts are: skewed, correlated, different scales."""
    rng = np.random.default_rng(42)
    mixed = rng.standard_normal((90, 6)) @ rng.standard_normal((6, 6))
    table = mixed * [1, 3, 0.5, 1, 2, 1] + np.exp(mixed[:, :1])
    return table - table.min(axis=0)


@pytest.fixture
def y(X):
    """Three classes that depend on two columns."""
    about = X[:, 1] / X[:, 1].std() + X[:, 4] / X[:, 4].std()
    return np.digitize(about, np.quantile(about, [1 / 3, 2 / 3]))


@pytest.fixture(autouse=True)
def two_classes(request, selector):
    """Correlation has no more than two classes to offer."""
    if selector is lowland.CorrelationScore and "y" in request.fixturenames:
        request.getfixturevalue("y")[:] = request.getfixturevalue("y") > 0


# --- where selectors stand ----------------------------------------------------------------------


@every_selector
def test_a_selector_is_no_map(selector):
    assert not issubclass(selector, Reducer)
    assert selector not in registry.all_methods()
    name = registry.snake_case(selector.__name__)
    assert name not in registry.names()
    with pytest.raises(ParameterError, match="keeps columns instead of making a map"):
        registry.get(name)


@every_selector
def test_a_selector_is_found_by_its_name_and_in_the_package(selector):
    for spelling in (selector.__name__, registry.snake_case(selector.__name__)):
        assert registry.get_selector(spelling) is selector
    assert getattr(lowland, selector.__name__) is selector
    assert selector.__name__ in dir(lowland)


def test_a_beginning_or_an_alias_will_do_but_not_an_ambiguous_one():
    assert registry.get_selector("relief") is lowland.ReliefF
    assert registry.get_selector("chi2") is lowland.ChiSquare
    assert registry.get_selector("RFE") is lowland.RecursiveElimination
    for bad in ("m", "", "nonsense"):
        with pytest.raises(ParameterError, match="unknown selector"):
            registry.get_selector(bad)


# --- parameters and documentation ---------------------------------------------------------------


@every_selector
def test_init_only_stores_and_only_n_features_may_be_given_by_position(selector):
    marker = object()
    estimator = selector(**dict.fromkeys(selector.parameters(), marker))
    assert vars(estimator) == dict.fromkeys(selector.parameters(), marker)
    kinds = {p.name: p.kind for p in inspect.signature(selector).parameters.values()}
    assert list(kinds) == list(selector.parameters())
    assert kinds.pop("n_features") is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds.values()) == {inspect.Parameter.KEYWORD_ONLY}


@every_selector
def test_there_are_not_too_many_parameters(selector):
    assert len(selector.parameters()) <= 10


def test_a_bad_parameter_is_refused_at_fit_by_name_and_value(selector, X, y):
    selector().check_params()
    for name, field in selector.parameters().items():
        message = re.escape(f"{selector.__name__}: {name}=(1+7j) is not allowed; expected")
        with pytest.raises(ParameterError, match=message) as caught:
            selector(**{name: complex(1, 7)}).fit(X, y)
        assert field.metadata["constraint"].describe() in str(caught.value)


@every_selector
def test_everything_is_documented(selector):
    text = inspect.getdoc(selector)
    for section in ("Parameters\n---", "Attributes\n---", "References\n---", "Examples\n---"):
        assert section in text, section
    own = set(selector.parameters()) - {"random_state", "n_jobs", "verbose"}
    for name in own | set(selector.fitted_attributes):
        assert re.search(rf"\b{name}\b", text), name
    assert re.search(r"\b(18|19|20)\d\d\b", selector.reference)
    assert len(selector.summary()) <= 100


def test_every_parameter_and_attribute_is_documented_once_and_truly(selector):
    for name, field in selector.parameters().items():
        entry = selector.documentation(name)
        assert 5 < len(short(entry)) <= 120, name
        assert entry.text.endswith("."), name
        written = re.search(r"default=(.+)$", entry.kind)
        assert written is not None, name
        assert eval(written[1]) == field.default, name
    for section, names in (
        ("Parameters", selector.parameters()),
        ("Attributes", selector.fitted_attributes),
    ):
        shown = entries(selector.__doc__, section)
        assert set(names) <= set(shown)
        for name in names:
            assert len(re.findall(rf"^{name} : ", selector.__doc__, re.MULTILINE)) == 1, name


def test_aliases_mean_one_selector(selector):
    for alias in selector.aliases:
        assert registry.get_selector(alias) is selector
        assert registry.get_selector(alias.upper()) is selector
        assert alias not in registry.selector_names()


# --- fitting ------------------------------------------------------------------------------------


def test_what_fit_leaves_agrees_with_itself(make, X, y):
    first, second = make(), make()
    assert first.fit(X, y) is first
    np.testing.assert_array_equal(second.fit_transform(X, y), first.transform(X))
    assert_same_state(fitted_state(first), fitted_state(second))
    assert set(fitted_state(first)) == {*first.fitted_attributes, "n_features_in_"}
    assert sorted(first.ranking_) == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(first.support_, first.ranking_ <= 2)
    np.testing.assert_array_equal(first.get_support(indices=True), np.flatnonzero(first.support_))
    assert np.isfinite(first.scores_).all()


def test_transform_is_a_bare_selection(make, X, y):
    estimator = make().fit(X, y)
    for given in (
        X,
        X.astype(np.float32),
        np.round(X).astype(np.int16),
        X > 1,
        np.asfortranarray(X),
    ):
        kept = estimator.transform(given)
        assert kept.dtype == given.dtype
        np.testing.assert_array_equal(kept, given[:, estimator.support_])
        assert not np.shares_memory(kept, given)


@each("k", [1, 3, 6, 0.5, 0.01])
def test_as_many_columns_are_kept_as_asked_for(make, X, y, k):
    expected = k if isinstance(k, int) else max(1, int(6 * k))
    assert make(n_features=k).fit(X, y).get_support().sum() == expected


def test_more_columns_than_there_are_is_an_error(make, X, y):
    with pytest.raises(ParameterError, match="n_features=7 is more than the 6 columns"):
        make(n_features=7).fit(X, y)


def test_left_to_itself_a_method_keeps_something(make, X, y):
    assert 1 <= make(n_features=None).fit(X, y).get_support().sum() <= 6


def test_a_constant_column_ranks_last_and_has_a_number_as_score(selector, make, X, y):
    X = np.column_stack([np.full(90, 7.0), X, np.zeros(90)])
    estimator = make().fit(X, y)
    assert set(estimator.ranking_[[0, 7]]) == {7, 8}
    assert np.isfinite(estimator.scores_).all()
    if issubclass(selector, Filter):
        assert set(estimator.scores_[[0, 7]]) == {selector.constant_score}
    everything = make(n_features=8).fit(X, y)
    assert everything.get_support().all()
    assert set(everything.ranking_[[0, 7]]) == {7, 8}


def test_constant_columns_change_nothing_for_the_others(make, X, y):
    alone, wider = make().fit(X, y), make().fit(np.column_stack([X, np.full(90, 3.0)]), y)
    np.testing.assert_array_equal(wider.ranking_[:6], alone.ranking_)


def test_data_of_nothing_but_constants_are_ranked_or_refused(make, y):
    try:
        estimator = make().fit(np.ones((90, 4)), y)
    except LowlandError as error:
        assert len(str(error)) > 20  # noqa: PT017
        return
    assert np.isfinite(estimator.scores_).all()
    np.testing.assert_array_equal(estimator.ranking_, [1, 2, 3, 4])


@supervised
def test_a_column_that_separates_perfectly_is_the_best(selector, make, X, y):
    X[:, 3] = 500.0 * y  # chi-square depends on the unit
    estimator = make(n_features=1).fit(X, y)
    assert estimator.ranking_[3] == 1
    assert np.isfinite(estimator.scores_).all()


def test_refitting_forgets_and_input_is_left_alone(make, X, y):
    X.setflags(write=False)
    before, labels = X.copy(), y.copy()
    frame = pd.DataFrame(X[:, :4], columns=NAMES[:4])
    refitted = make().fit(frame, y).fit(X, y)
    assert_same_state(fitted_state(refitted), fitted_state(make().fit(X, y)))
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(y, labels)


def test_the_number_of_threads_does_not_change_a_byte(make, X, y):
    wide = np.hstack([X, X[:, ::-1] ** 2 + X])
    one, two = make(n_jobs=1).fit(wide, y), make(n_jobs=2).fit(wide, y)
    assert_same_state(fitted_state(one), fitted_state(two))


def test_float32_ranks_like_float64(make, X, y):
    narrow = X.astype(np.float32)
    a, b = make().fit(narrow, y), make().fit(narrow.astype(np.float64), y)
    np.testing.assert_array_equal(a.support_, b.support_)
    np.testing.assert_allclose(a.scores_, b.scores_, rtol=2e-3, atol=1e-5)


@supervised
def test_text_is_as_good_a_class_as_a_number(selector, make, X, y):
    words = np.array(["red", "green", "blue"])[2 - y]  # sorted like the numbers
    np.testing.assert_array_equal(make().fit(X, words).ranking_, make().fit(X, y).ranking_)


# --- bad data -----------------------------------------------------------------------------------


def test_values_that_are_not_finite_are_refused_with_their_place(make, X, y):
    estimator = make().fit(X, y)
    X[17, 3] = np.nan
    with pytest.raises(DataError, match="column 3, first in row 17"):
        make().fit(X, y)
    with pytest.raises(DataError, match="column 3, first in row 17"):
        estimator.transform(X)


def test_a_missing_or_useless_target_is_refused(selector, make, X, y):
    if not selector.needs_target:
        np.testing.assert_array_equal(make().fit(X).ranking_, make().fit(X, y).ranking_)
        return
    for bad, message in (
        (None, "requires y to be passed"),
        (y[:-1], "inconsistent numbers of samples"),
        (np.where(np.arange(90) == 5, np.nan, y), "NaN"),
        (["only"] * 90, "only one class"),
    ):
        with pytest.raises(DataError, match=message):
            make().fit(X, bad)


def test_the_wrong_columns_are_refused(make, X, y):
    frame = pd.DataFrame(X, columns=NAMES)
    estimator = make().fit(frame, y)
    with pytest.raises(DataError, match="must be in the same order"):
        estimator.transform(frame[NAMES[::-1]])
    with pytest.raises(DataError, match="X has 5 features"):
        make().fit(X, y).transform(X[:, :5])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().transform(X)


def test_sparse_data_stay_sparse_or_are_refused_by_name(selector, make, X, y):
    X[np.median(X) > X] = 0
    given = sparse.csr_matrix(X)
    if not selector.accepts_sparse:
        with pytest.raises(LowlandError, match="Sparse data was passed as X"):
            make().fit(given, y)
        return
    dense, estimator = make().fit(X, y), make().fit(given, y)
    kept = estimator.transform(given.astype(np.float32))
    assert sparse.issparse(kept)
    assert kept.dtype == np.float32
    np.testing.assert_array_equal(kept.toarray(), X[:, estimator.support_].astype(np.float32))
    if "estimator" not in selector.parameters():  # the default model does not center sparse columns
        np.testing.assert_array_equal(estimator.ranking_, dense.ranking_)


# --- frames, pipelines, copies ------------------------------------------------------------------


def test_columns_keep_their_names(make, X, y):
    for frame in (pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES, orient="row")):
        estimator = make().fit(frame, y)
        kept = [name for name, inside in zip(NAMES, estimator.support_, strict=True) if inside]
        assert list(estimator.get_feature_names_out()) == kept
        assert list(estimator.get_feature_names_out(NAMES)) == kept
        with pytest.raises(DataError, match="not equal to feature_names_in_"):
            estimator.get_feature_names_out(NAMES[::-1])
    bare = make().fit(X, y)
    assert list(bare.get_feature_names_out()) == [f"x{i}" for i in bare.get_support(indices=True)]
    with pytest.raises(DataError, match="should have length equal"):
        bare.get_feature_names_out(["a"])


def test_a_name_that_occurs_twice_is_refused_where_the_frame_does_not_allow_it(X, y):
    frame = pd.DataFrame(X, columns=["c"] * X.shape[1])
    estimator = lowland.VarianceScore(n_features=2).set_output(transform="polars").fit(frame)
    with pytest.raises(ParameterError, match="the name 'c' occurs twice"):
        estimator.transform(frame)
    assert list(estimator.set_output(transform="pandas").transform(frame)) == ["c", "c"]


def test_frames_come_back_as_frames_with_types_if_asked_for(make, X, y):
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(90) + 100)
    frame = frame.astype({"a": np.float32, "c": np.float32})
    kept = make().set_output(transform="pandas").fit(frame, y).transform(frame)
    pd.testing.assert_frame_equal(kept, frame[list(kept.columns)])
    table = pl.DataFrame(X, schema=NAMES, orient="row")
    again = make().set_output(transform="polars").fit_transform(table, y)
    assert again.equals(table.select(again.columns))
    array = make().set_output(transform="pandas").fit_transform(X, y)
    assert all(name.startswith("x") for name in array.columns)


def test_it_works_in_a_pipeline_and_a_grid_search(selector, make, X, y):
    pipeline = make_pipeline(make(), KNeighborsClassifier(3))
    step = selector.__name__.lower()
    search = GridSearchCV(pipeline, {f"{step}__n_features": [1, 3]}, cv=2).fit(X, y)
    assert search.predict(X).shape == (90,)
    assert search.best_params_[f"{step}__n_features"] in (1, 3)


def test_clone_and_pickle_make_equal_copies(make, X, y):
    estimator = make(n_features=3).fit(X, y)
    assert clone(estimator).get_params() == estimator.get_params()
    assert not hasattr(clone(estimator), "n_features_in_")
    copy = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(copy.transform(X), estimator.transform(X))


def test_a_saved_selector_selects_as_before(make, X, y, tmp_path):
    frame = pd.DataFrame(X, columns=NAMES)
    estimator = make().fit(frame, y)
    for name in ("a", "b"):
        estimator.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    loaded = lowland.load(tmp_path / "a")
    assert type(loaded) is type(estimator)
    assert loaded.get_params() == estimator.get_params()
    assert_same_state(fitted_state(loaded), fitted_state(estimator))
    np.testing.assert_array_equal(loaded.transform(frame), estimator.transform(frame))


def test_verbose_writes_progress_to_stderr_only(selector, make, X, y, capsys):
    make(verbose=True).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert selector.__name__ in captured.err
    make().fit(X, y)
    assert capsys.readouterr().err == ""


# --- answers about a row --------------------------------------------------------------------------


@each("dtype", [np.float64, np.float32])
def test_every_answer_about_a_row_is_the_same_alone_and_in_company(make, X, y, dtype):
    estimator = make().fit(X.astype(dtype), y)
    kept = estimator.transform(X.astype(dtype) * dtype(1.013))
    for i in range(0, 90, 7):
        alone = estimator.transform(X[i : i + 1].astype(dtype) * dtype(1.013))
        assert alone.tobytes() == kept[i : i + 1].tobytes()
    if not hasattr(estimator, "inverse_transform"):
        return
    back = estimator.inverse_transform(kept)
    for i in range(0, 90, 7):
        assert estimator.inverse_transform(kept[i : i + 1]).tobytes() == back[i : i + 1].tobytes()
    assert np.array_equal(estimator.inverse_transform(np.asfortranarray(kept)), back)
