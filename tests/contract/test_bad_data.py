"""Bad and degenerate data, and too little memory: a finite map or a clear error."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from lowland import LDA
from lowland._base import registry
from lowland.errors import DataError, LowlandError, ParameterError
from support.cases import each
from support.methods import small


@each(
    ("bad", "message"),
    [(np.nan, "contains NaN: column 3, first in row 17"), (-np.inf, "contains infinity: column 3")],
)
def test_values_that_are_not_finite_are_refused_with_their_place(make, X, fitted, bad, message):
    if np.isnan(bad) and make().allows_nan:
        return
    X[17, 3] = bad
    with pytest.raises(DataError, match=message):
        make().fit(X)
    with pytest.raises(DataError, match="column 'd'"):
        make().fit(pd.DataFrame(X, columns=list("abcdef")))
    with pytest.raises(DataError, match=message):
        fitted.estimator.transform(X)


def test_missing_values_are_taken_where_that_is_declared(make, X):
    if not make().allows_nan:
        return
    few, many = X.copy(), X.copy()
    few[17, 3] = few[3, 0] = many[::3, 1] = many[1::4, 2] = many[5, 1:] = np.nan
    for gaps in (few, many):
        model = make().fit(gaps)
        assert np.isfinite(model.transform(gaps)).all()
        np.testing.assert_array_equal(model.transform(gaps[3:9]), model.transform(gaps)[3:9])
    frame = pd.DataFrame(few, columns=list("abcdef"))
    assert np.isfinite(make().fit(frame).transform(frame)).all()


def test_rows_and_columns_without_any_value_are_refused(make, X, fitted):
    if not make().allows_nan:
        return
    row, column = X.copy(), X.copy()
    row[17] = column[:, 3] = np.nan
    for act in (make().fit, fitted.estimator.transform):
        with pytest.raises(DataError, match="NaN only in row 17"):
            act(row)
    with pytest.raises(DataError, match="NaN only in column 3"):
        make().fit(column)
    with pytest.raises(DataError, match="NaN only in column 'd'"):
        make().fit(pd.DataFrame(column, columns=list("abcdef")))
    assert np.isfinite(fitted.estimator.transform(column)).all()


@each(
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


TWENTY = np.random.default_rng(3).gamma(2.0, size=(20, 3))
COMBINED = np.random.default_rng(4).standard_normal((3, 2))
# Whatever these data are, they can be drawn in two dimensions.
DEGENERATE = {
    "constant": np.zeros((20, 4)),
    "duplicates": np.repeat(np.eye(5), 4, axis=0),
    "constant column": np.column_stack([np.arange(20.0), np.ones(20), np.arange(20.0) ** 2]),
    "tiny": TWENTY * 1e-8,
    "huge": TWENTY * 1e8,
    "outlier": np.vstack([np.zeros((19, 3)), [[1e6, -1e6, 1e6]]]),
    "collinear float32": np.hstack([TWENTY, TWENTY @ COMBINED]).astype(np.float32),
}
# Data of one dimension only, or nearly, or of fewer rows than neighbors: a method may refuse them.
TOO_POOR = {
    "columns 1e9 apart": TWENTY * [1.0, 1e9, 1.0],
    "two rows": np.array([[0.0, 0, 0], [1, 2, 3]]),
    "tiny line": np.arange(40.0).reshape(20, 2) * 1e-8,
    "huge line": np.arange(40.0).reshape(20, 2) * 1e8,
}


def assert_finite_map(estimator, X):
    embedding = estimator.fit_transform(X)
    assert embedding.shape == (len(X), estimator.n_components)
    assert np.isfinite(embedding).all()
    assert np.isfinite(estimator.transform(X)).all()


@each("degenerate", DEGENERATE.values(), ids=list(DEGENERATE))
def test_degenerate_data_give_a_finite_map(method, make, degenerate):
    assert_finite_map(make(**small(method)), degenerate)


@each("data", [*DEGENERATE.values(), *TOO_POOR.values()], ids=[*DEGENERATE, *TOO_POOR])
def test_defaults_that_do_not_suit_the_data_are_refused_by_name_or_suit_them(make, data):
    try:
        assert_finite_map(make(), data)
    except LowlandError as error:
        named = [name for name in make().parameters() if f"{name}=" in str(error)]
        assert named or "rows" in str(error)  # noqa: PT017


LINEAR = [
    method
    for method in registry.all_methods()
    if "components_" in method.fitted_attributes
    and method.fitted_attributes["components_"].shape == ("n_components", "n_features")
]


@pytest.mark.parametrize("linear", LINEAR, ids=lambda cls: cls.__name__)
def test_one_large_column_does_not_hide_the_others(linear, X):
    """Two axes of a linear map are two, whatever the units of the columns are."""
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [1 / 3, 2 / 3]))
    estimator = linear(2, random_state=0).fit(X * [1, 1e9, 1, 1, 1, 1], y)
    assert np.linalg.matrix_rank(estimator.components_ * [1, 1e9, 1, 1, 1, 1]) == 2
    assert (estimator.transform(X * [1, 1e9, 1, 1, 1, 1]).std(axis=0) > 0).all()


@each("linear", [cls for cls in LINEAR if not cls.needs_target])
def test_collinear_columns_of_single_precision_have_no_axis_of_rounding_errors(linear, X):
    """Six columns and three combinations of them have six dimensions, for new rows too."""
    combined = np.random.default_rng(4).standard_normal((6, 3))
    wide = np.hstack([X, X @ combined]).astype(np.float32)
    new = np.hstack([X + 1, (X + 1) @ combined]).astype(np.float32)
    estimator = linear(7, random_state=0).fit(wide)
    for placed in (estimator.transform(wide), estimator.transform(new)):
        sizes = np.abs(placed).max(axis=0)
        assert sizes[6] <= 1e-4 * sizes[0]


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


def few_steps(method):
    """Whether a fit begins does not depend on how long it goes on."""
    return {"max_iter": 5} if "max_iter" in method.parameters() else {}


def test_too_little_memory_is_refused_before_it_is_taken(method, make, monkeypatch):
    """Estimates are right within a factor of about 3, so a tenth of one is never enough."""
    X = np.random.default_rng(0).standard_normal((400, 300))
    need = method.estimate(*X.shape).n_bytes
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", str(int(need / 10)))
    with pytest.raises(MemoryError, match=r"needs .* but the process may use .*; .{10,}"):
        make().fit(X)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", str(int(need * 10)))
    make(**few_steps(method)).fit(X)


# --- containers of other people ----------------------------------------------------------------


class Raising:
    """An array-like that fails in its own way."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


class Lying:
    """It claims a shape, and gives a text."""

    shape = (20, 3)

    def __array__(self, dtype=None, copy=None):
        return "twenty rows"


class NoNumber:
    def __float__(self):
        raise KeyError("odd")


def with_cell(cell):
    table = TWENTY.astype(object)
    table[3, 2] = cell
    return table


MASKED = np.ma.masked_greater(TWENTY, 2.0)
LABELS = np.arange(20) % 3
REFUSED = {
    "masked": (MASKED, r"X is a masked array.*X\.filled\(np\.nan\)"),
    "masked rows in a list": (list(MASKED), r"X is a masked array"),
    "ragged": ([[1.0, 2.0], [3.0]] * 10, "its rows have different lengths"),
    "an array-like that raises": (Raising(), "no array today"),
    "an array-like that lies": (Lying(), "X cannot be read as an array"),
    "an integer beyond float64": (with_cell(10**400), "X, column 2, row 3: 1000"),
    "an object that is not a number": (with_cell(NoNumber()), "X, column 2, row 3: .*odd"),
    "an array in a cell": (with_cell(np.ones(3)), "X, column 2, row 3"),
    "None in a cell": (with_cell(None), "contains NaN: column 2, first in row 3"),
    "pandas' NA": (
        with_cell(pd.NA),
        r"contains NaN: column 2, first in row 3.* these missing values",
    ),
    "times": (np.zeros((20, 3), "M8[s]"), r"X holds times \(datetime64\[s\]\)"),
    "time differences": (np.ones((20, 3), "m8[s]"), r"X holds times"),
    "records": (np.zeros(20, dtype=[("a", float), ("b", float)]), "2D array"),
    "longdouble beyond float64": (
        TWENTY.astype(np.longdouble) * np.longdouble("1e400"),
        "contains infinity",
    ),
    "a generator": ((row for row in TWENTY), "2D array, got 0D"),
    "a dictionary": ({"a": [1, 2]}, "2D array, got 0D"),
    "a lazy frame": (pl.DataFrame(TWENTY).lazy(), r"lazy data frame; give X\.collect"),
    "a null": (pd.DataFrame({0: [1.0, None] * 10, 1: [1.0] * 20}), "contains NaN: column 0"),
}


@each(("bad", "message"), REFUSED.values(), ids=list(REFUSED))
def test_containers_that_are_no_tables_are_refused_in_our_words(method, make, bad, message):
    if method.allows_nan and "contains NaN" in message:
        return
    with pytest.raises(LowlandError, match=message):
        make(**small(method)).fit(bad, LABELS)


@pytest.fixture
def of_twenty(method, make):
    """A model of the twenty rows, which all cases of a test share."""
    return make(**small(method)).fit(TWENTY)


@each(("bad", "message"), REFUSED.values(), ids=list(REFUSED))
def test_so_they_are_as_new_rows_and_as_points(method, make, of_twenty, bad, message):
    estimator = of_twenty
    if not (method.allows_nan and "contains NaN" in message):
        with pytest.raises(LowlandError, match=message):
            estimator.transform(bad)
    if hasattr(estimator, "inverse_transform"):
        with pytest.raises(LowlandError, match=message):
            estimator.inverse_transform(bad)
    if method.accepts_distances:
        with pytest.raises(LowlandError):
            make(metric="precomputed", **small(method)).fit(bad, LABELS)


READ = {
    "lists": TWENTY.tolist(),
    "tuples": tuple(map(tuple, TWENTY)),
    "Fortran order": np.asfortranarray(TWENTY),
    "negative strides": np.ascontiguousarray(TWENTY[::-1, ::-1])[::-1, ::-1],
    "other byte order": TWENTY.astype(TWENTY.dtype.newbyteorder()),
    "longdouble": TWENTY.astype(np.longdouble),
    "objects": TWENTY.astype(object),
    "decimal text": TWENTY.astype(str),
    "a masked array without masked values": np.ma.masked_array(TWENTY),
    "extension types": pd.DataFrame(TWENTY).astype("Float64"),
    "columns of several levels": pd.DataFrame(
        TWENTY, columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")])
    ),
    "a sparse frame": pd.DataFrame(TWENTY).astype(pd.SparseDtype(float)),
    "equal names": pd.DataFrame(TWENTY, columns=["a", "a", "b"]),
    "a memory view": memoryview(TWENTY.copy()),
}


@pytest.fixture
def ordinary(method, make):
    """The map of the twenty rows as an array."""
    return make(**small(method)).fit_transform(TWENTY)


@pytest.mark.sampled
@each("given", READ.values(), ids=list(READ))
def test_containers_of_the_same_numbers_give_the_same_map(method, make, ordinary, given):
    np.testing.assert_array_equal(make(**small(method)).fit_transform(given), ordinary)


def test_read_only_rows_are_enough(method, make):
    X = TWENTY.copy()
    X.flags.writeable = False
    estimator = make(**small(method))
    estimator.fit_transform(X)
    estimator.transform(X)
    np.testing.assert_array_equal(X, TWENTY)


# --- targets of other people -------------------------------------------------------------------

CLASSES = np.arange(20) % 2
TARGETS = {
    "masked": (np.ma.masked_equal(CLASSES, 1), r"y is a masked array.*y\.filled\(np\.nan\)"),
    "ragged": ([[1], [1, 2]] * 10, "different lengths"),
    "records": (np.zeros(20, dtype=[("a", int)]), "y holds records"),
    "times that are none": (np.array(["2020-01-01", "NaT"] * 10, "M8[D]"), "NaT in row 1"),
    "tuples": (np.array([(1, 2), 3] * 10, dtype=object), "y holds a tuple in row 0"),
    "raises": (Raising(), "no array today"),
    "infinity": (np.where(CLASSES, np.inf, 0.0), "contains infinity in row 1"),
    "mixed": (np.array(["a", 1] * 10, dtype=object), "cannot be put in order"),
}
SUPERVISED = [
    owner
    for owner in [*registry.all_methods(), *registry.all_selectors()]
    if owner.needs_target or getattr(owner, "target_kind", None)
]


@each(("y", "message"), TARGETS.values(), ids=list(TARGETS))
@each("owner", SUPERVISED)
def test_targets_that_are_no_labels_are_refused_in_our_words(owner, y, message):
    with pytest.raises(LowlandError) as caught:
        owner().fit(TWENTY, y)
    if owner is LDA:  # others may want numbers
        assert re.search(message, str(caught.value))


def test_scores_of_a_classifier_refuse_weights_that_are_none():
    model = LDA().fit(TWENTY, CLASSES)
    assert model.score(TWENTY, CLASSES, np.ones(20) * 1e308) == model.score(TWENTY, CLASSES)
    for bad in (np.zeros(20), -np.ones(20), np.full(20, np.nan), np.ones(3), ["a"] * 20):
        with pytest.raises(LowlandError):
            model.score(TWENTY, CLASSES, bad)
    assert model.score(TWENTY, CLASSES.astype(str)) == 0.0
    with pytest.raises(LowlandError, match="masked"):
        model.score(TWENTY, np.ma.masked_equal(CLASSES, 1))
    with pytest.raises(LowlandError, match="classes"):
        LDA().partial_fit(TWENTY, CLASSES, classes=Raising())


# --- numbers far beyond the data ---------------------------------------------------------------


@each("n", [21, 200, 10**6, 2**31, 2**63 - 1, 2**63, 10**30, 10**5000], ids=lambda n: len(bin(n)))
def test_more_dimensions_than_rows_are_refused_with_the_bound(method, make, n):
    with pytest.raises(ParameterError, match=r"n_components=.*(at most \d+|below 2\^63)"):
        make(n_components=n, **small(method)).fit(TWENTY)


@each("n_jobs", [1025, 10**6, 2**31, 2**62, 2**63, 10**30])
def test_more_threads_than_there_can_be_are_refused_by_name(method, make, n_jobs):
    with pytest.raises(ParameterError, match="n_jobs="):
        make(n_jobs=n_jobs, **small(method)).fit(TWENTY)
