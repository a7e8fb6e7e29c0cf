"""Data without structure: spectrum and tails are kept, everything else is gone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from lowland.errors import DataError, ParameterError
from lowland.trust import component_scores, null_rows
from support.cases import each


def bent(n: int = 400, p: int = 8, dtype: type = np.float64) -> np.ndarray:
    """Rows on a noisy curve, whose components depend on one another though uncorrelated."""
    rng = np.random.default_rng(3)
    t = rng.uniform(-2, 2, n)
    X = rng.normal(scale=0.05, size=(n, p))
    X[:, 0] += 3 * t
    X[:, 1] += t**2
    X[:, 2] += np.sin(3 * t)
    return (X @ rng.normal(size=(p, p)) + 7).astype(dtype)


def test_scores_keep_the_distances_and_are_uncorrelated():
    X = bent()
    scores = component_scores(X)
    given, found = (np.linalg.norm(A[:, None] - A[None], axis=2) for A in (X, scores))
    np.testing.assert_allclose(found, given, rtol=1e-9, atol=1e-9)
    covariance = np.cov(scores.T)
    assert np.all(np.diff(np.diag(covariance)) < 0)
    np.fill_diagonal(covariance, 0)
    assert np.abs(covariance).max() < 1e-10


@each("dtype", [np.float32, np.float64])
def test_the_null_has_the_variances_and_the_lengths_of_the_scores(dtype):
    X = bent(4000, dtype=dtype)
    scores, null = component_scores(X), null_rows(X, np.random.default_rng(0))
    assert null.dtype == dtype
    deviation = scores.std(axis=0, dtype=np.float64)
    lengths = [np.sort(np.linalg.norm(A / deviation, axis=1)) for A in (scores, null)]
    np.testing.assert_allclose(*lengths, rtol=1e-4 if dtype == np.float32 else 1e-9)
    # the deviation of 4000 numbers, 5 standard errors of a Gaussian one
    np.testing.assert_allclose(null.std(axis=0), deviation, rtol=5 / np.sqrt(2 * 4000))


def test_the_null_of_clusters_has_none():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(3, 6)) * 8
    X = centers[np.arange(900) % 3] + rng.normal(size=(900, 6))
    along = [A[:, 0] for A in (component_scores(X), null_rows(X, rng))]

    def valley(values: np.ndarray) -> float:
        """The lowest count between two hills of a histogram, relative to the lower hill."""
        counts = np.histogram(values, 12)[0][1:-1]
        return min(
            counts[i] / max(1, min(counts[:i].max(), counts[i + 1 :].max()))
            for i in range(1, len(counts) - 1)
        )

    assert valley(along[0]) < 0.1 < 0.5 < valley(along[1])


def test_dependence_between_components_is_gone():
    """The second component of a bent curve is a function of the first: t and t^2."""
    X = bent(2000)
    scores, null = component_scores(X), null_rows(X, np.random.default_rng(0))

    def curve(S: np.ndarray) -> float:
        return abs(np.corrcoef(S[:, 0] ** 2, S[:, 1])[0, 1])

    assert curve(scores) > 0.5
    # of 2000 independent pairs, 4 standard errors
    assert curve(null) < 4 / np.sqrt(2000)
    off = np.corrcoef(null.T) - np.eye(null.shape[1])
    assert np.abs(off).max() < 4.5 / np.sqrt(2000)


def test_wide_tables_have_at_most_fifty_components_and_flat_ones_lose_none():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(120, 300))
    assert component_scores(wide).shape == (120, 50)
    assert component_scores(wide, most=5).shape == (120, 5)
    assert component_scores(wide[:20]).shape == (20, 19)
    flat = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 9))
    assert component_scores(flat).shape == (60, 2)
    assert component_scores(np.ones((5, 3))).shape == (5, 1)


def test_sparse_rows_have_the_scores_of_the_dense_ones():
    dense = np.random.default_rng(0).poisson(0.3, size=(150, 40)).astype(float)
    scores = component_scores(scipy.sparse.csr_matrix(dense), most=5)
    np.testing.assert_allclose(scores, component_scores(dense, most=5), atol=1e-6)


@each("unit", [2.0**-200, 2.0**200])
def test_extreme_units_change_no_digit(unit):
    X = bent(100)
    assert np.array_equal(component_scores(X * unit), component_scores(X) * unit)


def test_threads_do_not_change_a_byte():
    for X in (bent(700, 60), scipy.sparse.csr_matrix(bent(200, 30))):
        component_scores(X, 2)  # what is imported on first use is there
        assert np.array_equal(component_scores(X, 1), component_scores(X, 2))
        one, two = (null_rows(X, np.random.default_rng(4), threads) for threads in (1, 2))
        assert np.array_equal(one, two)


def test_too_few_rows_and_components_are_refused():
    with pytest.raises(DataError, match="1 row"):
        component_scores(np.ones((1, 4)))
    with pytest.raises(ParameterError, match="most=0"):
        component_scores(np.ones((4, 4)), most=0)
