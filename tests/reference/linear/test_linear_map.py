"""The base of linear maps, tested with methods that define nothing but their axes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from lowland.errors import DataError
from lowland.methods.linear._moments import LinearMap


class LocalityPreservingProjections(LinearMap):
    """X^T L X w = lambda X^T D X w, smallest first (He & Niyogi 2003), with heat weights."""

    def _fit(self, X, y, run):
        mean = X.mean(axis=0)
        W = np.exp(-cdist(X, X, "sqeuclidean"))
        degrees = W.sum(axis=1)
        centered = X - mean
        L = np.diag(degrees) - W
        _, axes = eigh(centered.T @ L @ centered, centered.T * degrees @ centered)
        self._keep_map(axes[:, : self.n_components].T, mean)


class FirstColumns(LinearMap):
    """The first columns, centered, times a factor."""

    factor = 1.0

    def _fit(self, X, y, run):
        axes = self.factor * np.eye(self.n_components, X.shape[1])
        self._keep_map(axes, X.mean(axis=0))


@pytest.fixture
def table(irregular):
    return irregular(60, 4)


def test_a_linear_method_needs_no_more_than_its_axes(table):
    model = LocalityPreservingProjections(2)
    Z = model.fit_transform(table)
    np.testing.assert_allclose(Z, (table - table.mean(axis=0)) @ model.components_.T, rtol=1e-10)
    np.testing.assert_array_equal(model.transform(table[3:4])[0], Z[3])
    assert model.n_components_ == 2
    assert not hasattr(model, "partial_fit")
    assert not hasattr(model, "scatter_")


def test_orthonormal_axes_have_an_inverse(table):
    model = FirstColumns(4).fit(table)
    np.testing.assert_allclose(model.inverse_transform(model.transform(table)), table, atol=1e-12)


def test_results_that_overflow_are_refused(table):
    model = FirstColumns(2)
    model.factor = 1e250
    model.fit(table)
    with pytest.raises(DataError, match=r"largest value of X is 1e\+70.*float64 can hold"):
        model.transform(np.full((1, 4), 1e70))
    with pytest.raises(DataError, match=r"float32 can hold; divide X by .* or give it as float64"):
        model.inverse_transform(np.full((1, 2), 3e38, np.float32))
