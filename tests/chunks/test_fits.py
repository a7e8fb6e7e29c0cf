"""Every method and selector that fits tables in chunks does so as in memory; the others say so."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from lowland._base import registry
from lowland.errors import DataError, ParameterError
from support.cases import each
from support.rows import labeled_rows, suited, target_for
from support.states import assert_same_state, fitted_state

N = 161
CLASSES = [*registry.all_methods(), *registry.all_selectors()]
FITTING = [cls for cls in CLASSES if cls.fits_rows]
OTHERS = [cls for cls in CLASSES if not cls.fits_rows]
SUPERVISED = [cls for cls in FITTING if cls.needs_target]

every_fitting = each("method", FITTING, ids=lambda cls: cls.__name__)

# Of float64 the promise of the documentation. The kernels of float32 rows round differences of
# rows to 6e-8, before anything is summed; axes are a multiple of that apart.
CLOSE = {np.float64: 1e-6, np.float32: 1e-5}


HOOKS = {"_fit_rows", "_score_sums"}  # of a method that can be fitted to chunks
GENERIC = {"Estimator", "Filter"}


@each("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_who_can_be_fitted_to_chunks_says_so(cls):
    can = any(HOOKS & set(vars(base)) for base in cls.__mro__ if base.__name__ not in GENERIC)
    assert cls.fits_rows == can


def plain(seed: int = 0) -> np.ndarray:
    """Skewed, correlated, not negative, with clear axes and a constant column."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(N, 6)) * [5.0, 3.0, 2.0, 1.4, 1.0, 0.0]
    X[:, 1] += 0.5 * X[:, 0]
    X[:, 5] = 3.7
    return X


def tables() -> dict[str, np.ndarray]:
    X = plain()
    tails = np.abs(np.random.default_rng(1).standard_t(2.0, X.shape)) * [9, 5, 3, 2, 1, 1]
    return {
        "plain": X,
        "copies": np.repeat(X[: N // 7], 7, axis=0),
        "offset": X + 1e6,
        "tails": tails,
        "integers": np.floor(X),
    }


TABLES = tables()


def fits(method, X, task_rows=37, **params):
    """The method fitted in memory, and to chunks."""
    params = {**suited(method, X.shape[0]), **params}
    y = target_for(method, X.shape[0])
    there = method(**params).fit(X, y)
    rows = labeled_rows(X, y, task_rows)
    here = method(**params).fit(rows, None if y is None else "kind")
    return there, here


def distance(expected, found) -> float:
    """The largest difference, relative to the largest value."""
    expected, found = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    assert expected.shape == found.shape
    return float(np.abs(expected - found).max(initial=0) / (np.abs(expected).max(initial=0) or 1.0))


def flipped(expected, found, axis):
    """``found`` with the sign of each component as in ``expected``, where both are axes."""
    products = np.moveaxis(expected * found, axis, 0).reshape(expected.shape[axis], -1).sum(axis=1)
    shape = [1] * expected.ndim
    shape[axis] = -1
    return found * np.where(products < 0, -1.0, 1.0).reshape(shape)


def assert_alike(there, here, tol):
    for name, declared in there.fitted_attributes.items():
        expected, found = getattr(there, name), getattr(here, name)
        if found is None or expected is None:
            of_rows = declared.shape is not None and "n_samples" in declared.shape
            assert declared.optional, name
            assert expected is None or of_rows, f"{name} is missing"
        elif scipy.sparse.issparse(expected):
            assert distance(expected.toarray(), found.toarray()) <= tol, name
        elif np.asarray(expected).dtype.kind == "f":
            if declared.shape is not None and "n_components" in declared.shape and np.ndim(found):
                found = flipped(expected, found, declared.shape.index("n_components"))
            assert distance(expected, found) <= tol, name
        else:
            assert np.array_equal(found, expected), name


def assert_same_places(there, here, X, tol):
    expected, found = there.transform(X), here.transform(X)
    if scipy.sparse.issparse(expected):
        expected, found = expected.toarray(), found.toarray()
    assert distance(expected, flipped(expected, found, 1)) <= tol


@every_fitting
@each("dtype", [np.float64, np.float32])
@each("table", list(TABLES))
def test_fits_of_chunks_are_fits_in_memory(method, dtype, table):
    X = TABLES[table].astype(dtype)
    there, here = fits(method, X)
    assert_alike(there, here, CLOSE[dtype])
    assert_same_places(there, here, (plain(5) + X.mean(axis=0)).astype(dtype), CLOSE[dtype])


@each("method", [cls for cls in FITTING if cls.accepts_sparse], ids=lambda cls: cls.__name__)
def test_sparse_chunks_are_fitted_as_in_memory(method):
    X = plain()
    X[np.random.default_rng(2).random(X.shape) < 0.6] = 0.0
    X[:, 5] = 3.7
    X = scipy.sparse.csr_matrix(X)
    there, here = fits(method, X)
    assert_alike(there, here, 1e-6)
    assert_same_places(there, here, X[:20], 1e-6)


@every_fitting
def test_the_number_of_threads_changes_no_byte(method):
    X = np.vstack([plain(seed) for seed in range(13)])
    one, two = (fits(method, X, 500, n_jobs=jobs)[1] for jobs in (1, 2))
    assert_same_state(fitted_state(one), fitted_state(two))
    assert one.transform(X).tobytes() == two.transform(X).tobytes()


@every_fitting
def test_rows_of_other_columns_are_refused(method):
    X, y = plain(), target_for(method, N)
    names = list("abcdef")
    params, label = suited(method, N), None if y is None else "kind"
    named = method(**params).fit(labeled_rows(pl.DataFrame(X, schema=names), y), label)
    assert named.feature_names_in_.tolist() == names
    fewer = pl.DataFrame(X[:, :5], schema=names[:5])
    with pytest.raises(DataError, match="yet now missing:\n- f"):
        named.transform(labeled_rows(fewer))
    with pytest.raises(DataError, match="5 features"):
        method(**params).fit(labeled_rows(X, y), label).transform(labeled_rows(X[:, :5]))


@every_fitting
def test_chunks_with_bad_values_are_named(method):
    if method.allows_nan:
        pytest.skip("NaN is a missing value")
    for bad, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        X, y = plain(), target_for(method, N)
        X[80, 3] = bad
        with pytest.raises(DataError, match=rf"X, rows 74 to 110: .*{word}.*column 3"):
            method(**suited(method, N)).fit(labeled_rows(X, y), None if y is None else "kind")


@every_fitting
def test_too_few_rows_are_refused(method):
    y = target_for(method, 1)
    with pytest.raises((DataError, ParameterError), match="minimum of"):
        method().fit(labeled_rows(plain()[:1], y), None if y is None else "kind")


@each("method", SUPERVISED, ids=lambda cls: cls.__name__)
def test_a_target_is_the_name_of_a_column_that_goes_along(method):
    rows = labeled_rows(plain(), target_for(method, N))
    with pytest.raises(ParameterError, match=r"y=None is not allowed.*kind"):
        method().fit(rows)
    with pytest.raises(ParameterError, match="name of one of the columns carried along: kind"):
        method().fit(rows, target_for(method, N))
    with pytest.raises(DataError, match=r"y: .*'knd'.*'kind'"):
        method().fit(rows, "knd")
    assert_same_state(
        fitted_state(method().fit(rows, "kind")),
        fitted_state(method().fit(rows.with_target("kind"))),
    )


@each("method", [cls for cls in SUPERVISED if cls.__name__ != "CorrelationScore"])
def test_one_class_is_not_enough(method):
    rows = labeled_rows(plain(), np.full(N, "oak", dtype=object))
    with pytest.raises(DataError, match="two classes"):
        method().fit(rows, "kind")


@each("method", OTHERS, ids=lambda cls: cls.__name__)
def test_a_method_that_needs_all_rows_names_a_sample(method):
    name = method.__name__
    with pytest.raises(ParameterError, match=rf"{name}\(\)\.fit\(rows\.sample\(10_000\)\)"):
        method().fit(labeled_rows(plain(), target_for(method, N)), "kind")
