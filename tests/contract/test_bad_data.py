"""Bad and degenerate data, and too little memory: a finite map or a clear error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from lowland._core import registry
from lowland.errors import DataError, LowlandError
from support.cases import each
from support.methods import small


@each(
    ("bad", "message"),
    [(np.nan, "contains NaN: column 3, first in row 17"), (-np.inf, "contains infinity: column 3")],
)
def test_values_that_are_not_finite_are_refused_with_their_place(make, X, fitted, bad, message):
    X[17, 3] = bad
    with pytest.raises(DataError, match=message):
        make().fit(X)
    with pytest.raises(DataError, match="column 'd'"):
        make().fit(pd.DataFrame(X, columns=list("abcdef")))
    with pytest.raises(DataError, match=message):
        fitted.estimator.transform(X)


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
    assert embedding.shape == (len(X), 2)
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


def test_too_little_memory_is_refused_before_it_is_taken(method, make, monkeypatch):
    """Estimates are right within a factor of about 3, so a tenth of one is never enough."""
    X = np.random.default_rng(0).standard_normal((400, 300))
    need = method.estimate(*X.shape).n_bytes
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", str(int(need / 10)))
    with pytest.raises(MemoryError, match=r"needs .* but the process may use .*; .{10,}"):
        make().fit(X)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", str(int(need * 10)))
    make().fit(X)
