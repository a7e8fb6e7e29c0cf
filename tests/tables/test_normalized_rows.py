"""Normalization of rows: counts per million, logarithms, unit length; for new rows, too."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from sklearn.preprocessing import normalize

import lowland
from lowland.errors import DataError, ParameterError
from lowland.preparation.preparation import Preparation
from lowland.workflow import make_map, place_rows
from support.cases import each

RNG = np.random.default_rng(6)
SIZES = RNG.uniform(1, 40, 120)[:, None]
COUNTS = RNG.poisson(SIZES * RNG.gamma(0.2, 0.3, (120, 60)))
COUNTS[:, 0] += 1
COUNTS[5] = 0
STEPS = {
    "cpm": lambda X: X / np.where(X.sum(axis=1) > 0, X.sum(axis=1), 1)[:, None] * 1e6,
    "log1p": np.log1p,
    "l2": normalize,
}


@each("steps", ["cpm", "log1p", "l2", "cpm,log1p", "cpm,log1p,l2", "l2,cpm"])
@each("kind", ["dense", "float32", "sparse"])
def test_each_step_is_its_definition_and_sparse_rows_stay_sparse(steps, kind):
    steps, expected = steps.split(","), COUNTS.astype(float)
    for step in steps:
        expected = STEPS[step](expected)
    X = {
        "dense": COUNTS.astype(float),
        "float32": COUNTS.astype(np.float32),
        "sparse": scipy.sparse.csr_matrix(COUNTS.astype(float)),
    }[kind]
    model = Preparation(normalize=steps).fit(X)
    found = model.transform(X)
    assert scipy.sparse.issparse(found) == (kind == "sparse")
    assert model.n_empty_ == 1
    assert model.reason_.startswith("the rows were normalized")
    values = found.toarray() if kind == "sparse" else found
    assert values.dtype == X.dtype
    np.testing.assert_allclose(values, expected, rtol=1e-5 if kind == "float32" else 1e-12)
    alone = [model.transform(X[i : i + 1]) for i in range(10)]
    alone = np.vstack([a.toarray() if kind == "sparse" else a for a in alone])
    np.testing.assert_array_equal(values[:10], alone)


def test_the_model_normalizes_new_rows():
    frame = pl.DataFrame(COUNTS, schema=[f"g{i}" for i in range(60)], orient="row")
    made = make_map(frame[:100], "pca", normalize="cpm,log1p", measure=False)
    said = "normalized each row: scaled to the sum 1e6 (counts per million), then log(1 + x)"
    assert any(said in line and "1 row of zeros stays as it is" in line for line in made.log)
    ready = STEPS["log1p"](STEPS["cpm"](COUNTS.astype(float)))
    expected = lowland.PCA(2).fit(ready[:100]).transform(ready[100:])
    np.testing.assert_allclose(place_rows(made.model, frame[100:]).coordinates, expected, atol=1e-6)


def test_negative_numbers_are_refused_by_name():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, -0.5, 2.0]})
    for step in ("cpm", "log1p"):
        with pytest.raises(DataError, match=rf"normalize: '{step}' is for counts, but column 'b'"):
            make_map(frame, "pca", normalize=step)
    assert make_map(frame, "pca", normalize="l2", measure=False).coordinates.shape == (3, 2)
    X = scipy.sparse.csr_matrix([[0, 1.0], [-2.0, 0]])
    with pytest.raises(DataError, match=r"column 0 has -2\.0 in row 1"):
        Preparation(normalize=["cpm"]).fit(X)
    model = Preparation(normalize=["log1p"]).fit(np.eye(3))
    with pytest.raises(DataError, match="column 1 has"):
        model.transform([[1.0, -2.0, 0.0]])


@each("given", ["cpmx", "none,l2", ["cpm", "x"]], ids=str)
def test_unknown_steps_are_refused(given):
    with pytest.raises(ParameterError, match=r"normalize: .* expected cpm, log1p, l2 or several"):
        make_map("iris", "pca", normalize=given)


def suggestion(X, **options) -> list[str]:
    return [n for n in make_map(X, "pca", measure=False, **options).log if "look like counts" in n]


def test_sparse_counts_get_a_suggestion():
    X = scipy.sparse.csr_matrix(COUNTS)
    [note] = suggestion(X)
    assert "normalize='cpm,log1p' makes rows comparable" in note
    assert suggestion(X, normalize="none") == []
    assert suggestion(X, normalize="l2") == []
    assert make_map(X, "pca", normalize="none", measure=False).model.n_features_in_ == 60


@each(
    "X",
    [
        COUNTS.astype(float),
        scipy.sparse.csr_matrix(COUNTS * 0.37),
        scipy.sparse.csr_matrix(-COUNTS),
        scipy.sparse.csr_matrix((COUNTS > 0).astype(float)),
        scipy.sparse.csr_matrix(np.where(RNG.random((120, 60)) < 0.3, 255.0, 0.0)),
        scipy.sparse.csr_matrix(RNG.poisson(0.5, (100, 400))),
        scipy.sparse.csr_matrix(COUNTS[:10]),
    ],
    ids=["dense", "fractions", "negative", "0 and 1", "pixels", "equal sums", "few rows"],
)
def test_other_data_get_none(X):
    assert suggestion(X) == []


def test_normalization_comes_after_filling_and_before_scaling():
    X = np.array([[1.0, np.nan, 3.0], [2.0, 2.0, 2.0], [0.0, 4.0, 1.0]])
    found = Preparation(missing="mean", normalize=["l2"], scale="standard").fit_transform(X)
    filled = normalize(np.where(np.isnan(X), 3.0, X))
    expected = (filled - filled.mean(axis=0)) / filled.std(axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-12)
