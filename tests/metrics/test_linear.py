"""Explained variance and reconstruction error of the best affine reading of a map."""

import numpy as np
import pytest
import scipy.sparse

from lowland import PCA, metrics


def test_they_are_a_regression_of_the_data_on_the_map(irregular):
    X, Y = irregular(90, 6), irregular(90, 2, seed=1)
    design = np.column_stack([Y, np.ones(90)])
    left = X - design @ np.linalg.lstsq(design, X, rcond=None)[0]
    total = ((X - X.mean(axis=0)) ** 2).sum()
    assert metrics.reconstruction_error(X, Y) == pytest.approx((left**2).sum() / 90, rel=1e-10)
    assert metrics.explained_variance(X, Y) == pytest.approx(1 - (left**2).sum() / total)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_a_pca_map_explains_what_its_axes_do(kind, irregular):
    X = irregular(100, 7)
    pca = PCA(3)
    Y = pca.fit_transform(X)
    explained = metrics.explained_variance(kind(X), Y)
    assert explained == pytest.approx(pca.explained_variance_ratio_.sum(), rel=1e-10)
    assert metrics.explained_variance(kind(X), Y @ np.diag([1, 20, 300]) + 4) == pytest.approx(
        explained
    )


def test_limits(irregular):
    X = irregular(50, 4)
    assert metrics.explained_variance(X, X) == pytest.approx(1)
    assert metrics.reconstruction_error(X, X) == pytest.approx(0, abs=1e-12)
    assert metrics.explained_variance(X, np.ones((50, 2))) == 0.0
    twice = np.hstack([X[:, :1], X[:, :1]])  # dependent columns count once
    assert metrics.explained_variance(X, twice) == pytest.approx(
        metrics.explained_variance(X, X[:, :1])
    )
    with pytest.raises(ValueError, match="all rows are equal"):
        metrics.explained_variance(np.ones((50, 2)), X)
    with pytest.raises(ValueError, match="needs the data, not their distances"):
        metrics.explained_variance(np.zeros((50, 50)), X, metric="precomputed")
