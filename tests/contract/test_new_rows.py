"""What transform and inverse_transform promise."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import NotFittedError

from lowland import load
from lowland._engines.neighbors.search import NeighborIndex
from lowland.errors import DataError
from support.cases import each
from support.methods import every_method


def test_fitted_rows_land_on_their_own_places(fitted, X):
    estimator, embedding = fitted
    scale = np.abs(embedding).max()
    np.testing.assert_allclose(estimator.transform(X), embedding, atol=1e-5 * scale)


def test_a_row_alone_lands_where_it_lands_in_company(make, X):
    estimator = make().fit(X[:60])
    together = estimator.transform(X)
    alone = np.vstack([estimator.transform(row[None, :]) for row in X])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(estimator.transform(X[::-1]), together[::-1])


def test_rows_of_distances_land_where_each_lands_alone(make, X):
    if not make().accepts_distances:
        return
    estimator = make(metric="precomputed").fit(cdist(X[:60], X[:60]))
    D = cdist(X[60:], X[:60])
    together = estimator.transform(D)
    alone = np.vstack([estimator.transform(row[None, :]) for row in D])
    np.testing.assert_array_equal(together, alone)


def test_the_order_of_the_memory_changes_no_byte(make, X):
    estimator = make().fit(X)
    expected = estimator.transform(X * 1.01)
    assert estimator.transform(np.asfortranarray(X * 1.01)).tobytes() == expected.tobytes()
    if make().accepts_distances:
        D = cdist(X, X)
        estimator = make(metric="precomputed").fit(D)
        expected = estimator.transform(D * 1.01)
        assert estimator.transform(np.asfortranarray(D * 1.01)).tobytes() == expected.tobytes()


def test_transform_changes_nothing(fitted, X):
    estimator = fitted.estimator
    before = pickle.dumps(vars(estimator))
    estimator.transform(X * 2 + 1)
    assert pickle.dumps(vars(estimator)) == before


def test_an_index_of_the_fitted_rows_is_made_once(fitted, X, tmp_path, monkeypatch):
    made = []
    make = NeighborIndex.__init__

    def counted(*args, **options):
        made.append(1)
        make(*args, **options)

    monkeypatch.setattr(NeighborIndex, "__init__", counted)
    fitted.estimator.save(tmp_path / "model.lowland")
    loaded = load(tmp_path / "model.lowland")
    for estimator in (fitted.estimator, loaded):
        places = estimator.transform(X[:3] * 1.01)
        made.clear()
        np.testing.assert_array_equal(estimator.transform(X[1:2] * 1.01), places[1:2])
        assert not made


@every_method
def test_transform_before_fit_says_so(method, X):
    with pytest.raises(NotFittedError, match="not fitted yet; call 'fit' first"):
        method().transform(X)


def test_the_wrong_number_of_columns_is_refused(fitted, X):
    with pytest.raises(DataError, match=r"X has 5 features, but .* is expecting 6 features"):
        fitted.estimator.transform(X[:, :5])


def test_inverse_transform_exists_only_where_it_is_real(fitted, X):
    estimator = fitted.estimator
    if hasattr(estimator, "inverse_transform"):
        back = estimator.inverse_transform(estimator.transform(X))
        assert back.shape == X.shape
        assert np.isfinite(back).all()
        with pytest.raises(DataError, match=r"has 3 columns, but the map .* has [12] dimensions"):
            estimator.inverse_transform(np.zeros((4, 3)))


PLACES_ROWS = (
    "transform",
    "inverse_transform",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
)


@each("dtype", [np.float64, np.float32])
def test_every_answer_about_a_row_is_the_same_alone_and_in_company(make, X, dtype):
    """To the last bit, in any order and memory layout."""
    X = X.astype(dtype)
    estimator = make().fit(X)
    new = X[:31] * dtype(1.013)
    for name in PLACES_ROWS:
        answer = getattr(estimator, name, None)
        if answer is None:
            continue
        rows = estimator.transform(new) if name == "inverse_transform" else new
        together = answer(rows)
        alone = np.concatenate([answer(rows[i : i + 1]) for i in range(0, 31, 3)])
        assert alone.tobytes() == np.ascontiguousarray(together[::3]).tobytes(), name
        assert np.array_equal(answer(rows[::-1]), together[::-1]), name
        assert np.array_equal(answer(np.asfortranarray(rows)), together), name
