"""Every method places rows of chunks with the bytes of memory, whatever the chunks and names."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from lowland import VarianceScore
from lowland._base import registry
from lowland._base.rows.table import Rows
from support.cases import each
from support.methods import dimensions, few_steps, small
from support.rows import labeled_rows, suited, target_for

N, NEW = 45, 11
NAMES = ["a", "b", "c", "d"]
CLASSES = [*registry.all_methods(), *registry.all_selectors()]
every_class = each("cls", CLASSES, ids=lambda cls: cls.__name__)


def table(n: int, seed: int) -> np.ndarray:
    """Bent, skewed and not negative."""
    rng = np.random.default_rng(seed)
    t = rng.gamma(3.0, size=(n, 2))
    noise = 0.1 * rng.random((n, 4))
    return np.hstack([t, t[:, :1] ** 2, np.sqrt(t[:, :1] * t[:, 1:])]) + noise


def quick(cls) -> dict:
    """Parameters for a fit in some milliseconds; a map that is not converged will do."""
    known, found = cls.parameters(), {"random_state": 0}
    if "n_components" not in known:
        return {**found, "n_features": 2, **({"cv": 2} if "cv" in known else {})}
    found |= {"n_components": dimensions(cls), **small(cls), **few_steps(cls)}
    if "max_iter" in known:
        found["max_iter"] = 5
    return found


@functools.cache
def _pickled(cls, *, named: bool) -> bytes:
    """A model that learned from named float64 columns, or from float32 columns without names."""
    X = table(N, 0)
    X = pl.DataFrame(X, schema=NAMES) if named else X.astype(np.float32)
    return pickle.dumps(cls(**quick(cls)).fit(X, target_for(cls, N)))


def model(cls, *, named: bool):
    return pickle.loads(_pickled(cls, named=named))


@every_class
@each("task_rows", [1, 4])
def test_places_of_named_rows(cls, task_rows):
    fitted = model(cls, named=True)
    new = pl.DataFrame(table(NEW, 1), schema=NAMES)
    expected = np.asarray(fitted.transform(new))
    placed = fitted.transform(labeled_rows(new, task_rows=task_rows))
    assert isinstance(placed, Rows)
    assert placed.shape == expected.shape
    assert list(placed.names) == list(fitted.get_feature_names_out())
    assert placed.to_numpy().tobytes() == expected.tobytes()


@every_class
def test_places_of_float32_rows_without_names(cls):
    fitted = model(cls, named=False)
    new = table(NEW, 2).astype(np.float32)
    placed = fitted.transform(labeled_rows(new, task_rows=5)).to_numpy()
    expected = fitted.transform(new)
    assert placed.dtype == expected.dtype
    assert placed.tobytes() == expected.tobytes()


@every_class
def test_places_that_are_computed_elsewhere(cls):
    """What a worker gets is pickled, and blocks are arrays whatever container a user chose."""
    fitted = model(cls, named=True)
    new = pl.DataFrame(table(NEW, 3), schema=NAMES)
    expected = np.asarray(fitted.transform(new))
    for container in ("pandas", "polars"):
        placed = fitted.set_output(transform=container).transform(labeled_rows(new, task_rows=6))
        there = pickle.loads(pickle.dumps(placed))
        assert there.to_numpy().tobytes() == expected.tobytes()


@each("cls", [cls for cls in CLASSES if cls.fits_rows], ids=lambda cls: cls.__name__)
def test_fit_transform_places_the_fitted_rows(cls):
    X, y = table(N, 0), target_for(cls, N)
    rows, label = labeled_rows(X, y, task_rows=8), None if y is None else "kind"
    placed = cls(**suited(cls, N)).fit_transform(rows, label).to_numpy()
    fitted = cls(**suited(cls, N)).fit(rows, label)
    assert placed.tobytes() == fitted.transform(X).tobytes()


def test_a_model_that_is_not_fitted_says_so():
    from sklearn.exceptions import NotFittedError

    for cls in CLASSES:
        with pytest.raises(NotFittedError, match="not fitted"):
            cls().transform(labeled_rows(table(NEW, 0)))


def test_sparse_blocks_and_double_names():
    """Kept columns of sparse rows stay sparse; a data frame could not have one name twice."""
    fitted = VarianceScore(2).fit(pd.DataFrame(table(N, 0), columns=["a"] * 4))
    X = table(NEW, 1)
    rows = labeled_rows(pd.DataFrame(X, columns=["a"] * 4), task_rows=4)
    placed = fitted.set_output(transform="polars").transform(rows)
    assert np.array_equal(placed.to_numpy(), X[:, fitted.get_support()])
    fitted = VarianceScore(2).fit(table(N, 0))
    placed = fitted.transform(labeled_rows(scipy.sparse.csr_matrix(X), task_rows=4))
    blocks = [block.X for block in placed.blocks()]
    assert all(scipy.sparse.issparse(block) for block in blocks)
    assert np.array_equal(scipy.sparse.vstack(blocks).toarray(), fitted.transform(X))
