"""Fill values, levels and scales, learned once and applied to new rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import RobustScaler, StandardScaler

import lowland
from lowland._base.chain import Chain
from lowland.errors import DataError, ModelFileError
from lowland.preparation._chunks import Columns
from lowland.preparation.preparation import Preparation
from support.cases import each

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 5)) * [1, 10, 100, 1e-3, 0] + [0, 5, -3, 1, 7]


def test_standard_is_that_of_scikit_learn():
    got = Preparation(scale="standard").fit(X).transform(X)
    np.testing.assert_allclose(got, StandardScaler().fit_transform(X), atol=1e-9)


def test_robust_is_that_of_scikit_learn_in_units_of_a_normal_law():
    varying = X[:, :4]
    got = Preparation(scale="robust").fit(varying).transform(varying)
    expected = RobustScaler(unit_variance=True).fit_transform(varying)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_robust_falls_back_where_half_of_a_column_is_one_value():
    counts = np.zeros((100, 1))
    counts[:10] = np.arange(10)[:, None]
    got = Preparation(scale="robust").fit(counts).transform(counts)
    np.testing.assert_allclose(got, counts / counts.std())


def test_a_constant_column_becomes_zero_and_nothing_is_nan():
    got = Preparation(scale="standard").fit(X).transform(X)
    assert np.isfinite(got).all()
    assert not got[:, 4].any()


def test_new_rows_do_not_influence_each_other():
    ready = Preparation(scale="standard").fit(X)
    np.testing.assert_array_equal(ready.transform(X[7:8])[0], ready.transform(X)[7])


def test_the_input_is_left_alone():
    before = X.copy()
    Preparation(scale="robust").fit_transform(X)
    holes = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    kept = holes.copy()
    Preparation(missing="median").fit_transform(holes)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(holes, kept)


def test_float32_stays_float32():
    assert Preparation(scale="standard").fit_transform(X.astype(np.float32)).dtype == np.float32


def test_sparse_rows_are_divided_but_not_centered():
    S = scipy.sparse.random_array((50, 6), density=0.3, format="csr", rng=RNG)
    got = Preparation(scale="standard").fit_transform(S)
    assert scipy.sparse.issparse(got)
    np.testing.assert_allclose(got.toarray(), S.toarray() / S.toarray().std(axis=0), rtol=1e-12)
    assert Preparation().fit(S).chosen_ == "none"


@each(
    ("columns", "names", "kind", "reason"),
    [
        (X[:, [0, 0]] * [1, 3], list("ab"), "none", "agree within a factor"),
        (X[:, :3], list("abc"), "standard", "units seem to differ"),
        (X[:, :3], None, "none", "no names"),
        (np.ones((9, 2)), list("ab"), "none", "every column is constant"),
        (
            np.minimum(RNG.poisson(1.0, (300, 20)) * np.geomspace(1, 1e3, 20), 1e9),
            [f"p{i}" for i in range(20)],
            "none",
            "of one kind: nearly all start at 0",
        ),
    ],
)
def test_units_are_told_by_deviations_names_and_floors(columns, names, kind, reason):
    chosen = Columns(columns).choose(names)
    assert chosen.kind == kind
    assert reason in chosen.reason


@each(("missing", "fill"), [("median", [3.0, 4.0]), ("mean", [6.0, 5.0])])
def test_missing_values_are_filled_from_the_fitted_rows(missing, fill):
    holes = np.array([[1.0, np.nan], [3.0, 4.0], [np.nan, 11.0], [14.0, 0.0]])
    ready = Preparation(scale="none", missing=missing).fit(holes)
    assert ready.n_filled_ == 2
    np.testing.assert_array_equal(ready.fill_, fill)
    np.testing.assert_array_equal(ready.transform(np.array([[np.nan, np.nan]])), [fill])
    new = np.array([[np.nan, 7.0], [100.0, np.nan]])
    np.testing.assert_array_equal(ready.transform(new), [[fill[0], 7.0], [100.0, fill[1]]])


def test_missing_values_without_a_plan_are_refused():
    holes = np.array([[1.0, np.nan], [3.0, 4.0]])
    with pytest.raises(DataError, match=r"missing values in 1 columns: 'column 1'"):
        Preparation().fit(holes)
    ready = Preparation().fit(np.array([[1.0, 2.0], [3.0, 4.0]]))
    with pytest.raises(DataError, match="'column 1'; the model was fitted with missing='refuse'"):
        ready.transform(holes)


def test_a_plan_holds_for_new_rows_also_if_the_fitted_rows_had_no_gaps():
    ready = Preparation(scale="none", missing="mean").fit(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(ready.transform([[np.nan, 7.0]]), [[2.0, 7.0]])


def test_a_column_without_any_value_is_refused():
    empty = np.array([[1.0, np.nan], [3.0, np.nan]])
    with pytest.raises(DataError, match="all values are missing in 'column 1'"):
        Preparation(missing="mean").fit(empty)


def test_other_columns_than_the_fitted_ones_are_refused():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})
    ready = Preparation().fit(frame)
    with pytest.raises(DataError):
        ready.transform(frame.rename({"b": "c"}))
    with pytest.raises(DataError):
        Preparation().fit(X).transform(X[:, :3])


def test_levels_of_text_are_columns_of_zero_and_one():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "t": ["u", None, "v"]})
    ready = Preparation(scale="none").fit(frame)
    assert ready.column_names_out() == ["a", "t=missing", "t=u", "t=v"]
    np.testing.assert_array_equal(
        ready.transform(frame), [[1, 0, 1, 0], [2, 1, 0, 0], [3, 0, 0, 1]]
    )
    new = pl.DataFrame({"a": [9.0], "t": ["w"]})
    with pytest.warns(UserWarning, match="column 't' has values that were not in the fitted table"):
        np.testing.assert_array_equal(ready.transform(new), [[9, 0, 0, 0]])


@pytest.fixture
def chain():
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 2], "t": ["u", "v"] * 100})
    ready = Preparation(scale="standard").fit(frame)
    rows = ready.transform(frame)
    return frame, Chain([ready, lowland.PCA(2).fit(rows)])


def test_a_chain_does_one_step_after_the_other(chain):
    frame, model = chain
    first, last = model.steps
    np.testing.assert_array_equal(model.transform(frame), last.transform(first.transform(frame)))
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == ["a", "b", "t"]
    assert model.last is last
    model.set_params(n_jobs=1)
    assert last.n_jobs == 1
    assert "PCA" in repr(model)


def test_a_chain_is_saved_and_read_safely(chain, tmp_path):
    frame, model = chain
    model.save(tmp_path / "m.lowland")
    again = lowland.load(tmp_path / "m.lowland")
    assert isinstance(again, Chain)
    np.testing.assert_array_equal(again.transform(frame), model.transform(frame))
    again.save(tmp_path / "n.lowland")
    assert (tmp_path / "m.lowland").read_bytes() == (tmp_path / "n.lowland").read_bytes()


@each(
    "state",
    [
        {},
        {"steps": []},
        {"steps": 3},
        {"steps": [{"class": "PCA"}]},
        {"steps": [{"class": "PCA", "params": [], "state": {}}]},
        {"steps": [{"class": "Nothing", "params": {}, "state": {}}]},
        {"steps": [{"class": "PCA", "params": {}, "state": {}}]},
        {"steps": [{"class": "Chain", "params": {}, "state": {}}]},
    ],
)
def test_a_tampered_chain_is_refused(state, tmp_path):
    from lowland._base.models.codec import write_model

    write_model(tmp_path / "m.lowland", "Chain", {}, state)
    with pytest.raises(ModelFileError, match=r"m\.lowland"):
        lowland.load(tmp_path / "m.lowland")


def test_a_chain_needs_a_step():
    with pytest.raises(ValueError, match="at least one fitted estimator"):
        Chain([])


# --- containers of other people -----------------------------------------------------------------


def test_tables_of_any_container_are_prepared_alike():
    X = np.random.default_rng(0).gamma(2.0, size=(20, 3))
    expected = Preparation(scale="standard").fit_transform(X)
    for given in (X.tolist(), pd.DataFrame(X), np.asfortranarray(X), X.astype(np.longdouble)):
        np.testing.assert_array_equal(Preparation(scale="standard").fit_transform(given), expected)
    named = pd.DataFrame(X, columns=list("abc"))
    ready = Preparation(scale="standard").fit(named)
    np.testing.assert_array_equal(ready.transform(named), expected)
    assert ready.column_names_out() == list("abc")


NO_TABLES = {
    "masked": (np.ma.masked_greater(np.eye(4), 0.5), r"masked array.*filled\(np\.nan\)"),
    "ragged": ([[1.0, 2.0], [3.0]], "different lengths"),
    "infinity": (np.array([[1.0, np.inf], [2.0, np.nan]]), "contains infinity: column 1"),
    "text": (pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}), "column 'a', row 0: 'x'"),
    "None": (None, "2D array"),
    "complex": (np.eye(3) * 1j, "Complex data"),
    "no rows": (np.zeros((0, 3)), "0 sample"),
}


@each(("bad", "message"), NO_TABLES.values(), ids=list(NO_TABLES))
def test_what_is_not_a_table_is_refused(bad, message):
    with pytest.raises(DataError, match=message):
        Preparation(missing="mean").fit(bad)
    if message != "0 sample":
        with pytest.raises(DataError):
            Preparation(missing="mean").fit(np.eye(3)).transform(bad)


def test_preparation_before_fit_says_so():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        Preparation().transform(np.eye(3))


def test_dense_rows_after_a_fit_on_sparse_ones_are_not_centered():
    X = np.array([[0.0, 2.0], [1.0, 0.0], [3.0, 4.0]])
    ready = Preparation(scale="standard").fit(scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(ready.transform(X), X / ready.spread_)


def test_an_array_in_place_of_text_columns_is_refused():
    ready = Preparation().fit(pl.DataFrame({"a": [1.0, 2.0], "kind": ["x", "y"]}))
    warned = pytest.warns(UserWarning, match="valid feature names")
    with warned, pytest.raises(DataError, match="text column 'kind'"):
        ready.transform(np.ones((2, 2)))


@each("kind", [np.asarray, scipy.sparse.csr_array])
def test_empty_rows_are_counted_and_stay_empty(kind):
    X = np.array([[0, 2.0, 0], [0, 0, 0], [1, 1, 0], [3, 0, 0]])
    preparation = Preparation(normalize=["l2"], scale="none")
    found = preparation.fit_transform(kind(X))
    assert preparation.n_empty_ == 1
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    expected = np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)
    np.testing.assert_allclose(found.toarray() if kind is not np.asarray else found, expected)
