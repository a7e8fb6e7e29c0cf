"""Moments against numpy, and the algebra that makes batches and one fit the same."""

import numpy as np
import pytest
import scipy.sparse

from lowland._base.monitor import Monitor
from lowland._engines.linalg.moments import Moments, column_moments, known_moments, merge, moments
from support.cases import each

CHUNK = 512  # rows that the kernel sums together


def naive_moments(X):
    X = np.asarray(X, dtype=np.longdouble)
    centered = X - X.mean(axis=0)
    return X.mean(axis=0).astype(float), (centered.T @ centered).astype(float)


def assert_moments(found, X, rtol, about_zero=False):
    """Right to rtol of the columns' spread; of their distance from zero where that is summed."""
    mean, scatter = naive_moments(X)
    size = np.sqrt((np.asarray(X, float) ** 2).sum(axis=0) if about_zero else np.diag(scatter))
    assert found.n_rows == len(X)
    assert np.allclose(found.mean, mean, rtol=rtol, atol=0)
    # Relative to the Cauchy-Schwarz bound of each element: covariances may be near zero.
    assert (np.abs(found.scatter - scatter) <= rtol * np.outer(size, size)).all()
    assert np.array_equal(found.scatter, found.scatter.T)


@each("n", [2, 50, CHUNK, CHUNK + 1, 3 * CHUNK - 5])
def test_moments_are_those_of_numpy(irregular, layout, n):
    X = irregular(n, 13)
    given = layout(X)
    found = moments(given, 2, Monitor())
    # n eps, with a margin; sparse sums are X^T X - n m m^T
    assert_moments(found, X, rtol=1e-12, about_zero=scipy.sparse.issparse(given))


def test_a_single_row_has_no_scatter(layout):
    X = np.array([[1.5, -2.0, 0.1]])
    found = moments(layout(X), 1, Monitor())
    assert found.n_rows == 1
    assert np.array_equal(found.mean, X[0])
    # The sparse form subtracts n m m^T, so that rounding of size eps m^2 may stay.
    assert np.abs(found.scatter).max() <= 1e-15


@each(("dtype", "mean", "rtol"), [(np.float32, 1e3, 2e-6), (np.float64, 1e6, 1e-9)])
def test_a_large_mean_costs_no_digits(irregular, dense_layout, dtype, mean, rtol):
    X = (irregular(2 * CHUNK + 100, 9) + mean).astype(dtype)
    assert_moments(moments(dense_layout(X), 2, Monitor()), X, rtol=rtol)


def test_the_mean_rounded_to_single_precision_is_no_source_of_error(irregular):
    # At 1e5 float32 has steps of 0.008, no longer small beside a deviation of 0.03.
    X = (1e5 + 0.05 * irregular(2 * CHUNK + 100, 4)).astype(np.float32)
    assert_moments(moments(X, 1, Monitor()), X, rtol=1e-5)


def test_a_filled_sparse_column_far_from_zero_keeps_its_variance(irregular):
    X = np.abs(irregular(500, 4))
    X[:, 2] += 1e3
    # X^T X - n m m^T loses the square of mean / deviation: 1e6 * 1e-16.
    assert_moments(moments(scipy.sparse.csr_array(X), 1, Monitor()), X, rtol=1e-8)


def test_constant_columns_have_exactly_no_scatter(layout):
    X = np.random.default_rng(0).random((CHUNK + 50, 6))
    X[:, [1, 5]] = 0.1, 0.0
    scatter = moments(layout(X), 1, Monitor()).scatter
    # eps m^2 n for the sparse form and for the rounding of the mean; 1e-12 of the other columns
    assert np.abs(scatter[[1, 5]]).max() <= 1e-12 * scatter[0, 0]


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("cuts", [[1], [700], [699], [1, 2, 3], [64, 65, 300, 301]])
def test_merged_parts_are_the_whole(irregular, kind, cuts):
    X = irregular(700, 8)
    parts = [p for p in np.split(X, cuts) if len(p)]
    total = moments(kind(parts[0]), 1, Monitor())
    for part in parts[1:]:
        total = merge(total, moments(kind(part), 1, Monitor()))
    assert_moments(total, X, rtol=1e-12)


def test_merge_does_not_change_its_arguments(irregular):
    a, b = (moments(irregular(20, 3, seed), 1, Monitor()) for seed in (0, 1))
    copies = [Moments(m.n_rows, m.mean.copy(), m.scatter.copy()) for m in (a, b)]
    merge(a, b)
    for m, copy in zip((a, b), copies, strict=True):
        assert np.array_equal(m.mean, copy.mean)
        assert np.array_equal(m.scatter, copy.scatter)


@each("p", [1, 7, 2000])
def test_column_moments_are_those_of_numpy(irregular, layout, p):
    X = irregular(60, min(p, 50))
    X = np.tile(X, (1, -(-p // 50)))[:, :p]
    mean, squares = column_moments(layout(X))
    assert np.allclose(mean, X.mean(axis=0), rtol=1e-13)
    assert np.allclose(squares, X.var(axis=0) * len(X), rtol=1e-12)


def test_column_moments_of_many_blocks_and_a_large_mean(irregular):
    # 2^22 / 1500 rows per block: three blocks, with distant means.
    X = np.tile(irregular(2000, 30), (4, 50)).astype(np.float32) + np.float32(1e3)
    X[5000:] += 8
    exact = X.astype(np.float64)
    mean, squares = column_moments(X)
    assert np.allclose(mean, exact.mean(axis=0), rtol=1e-12)
    assert np.allclose(squares, exact.var(axis=0) * len(X), rtol=1e-9)


def test_sparse_column_moments_count_the_zeros_that_are_not_stored():
    X = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0], [0.0, 4.0, 0.0], [1.0, 6.0, 0.0]])
    stored = scipy.sparse.csr_array(X)
    stored.data[0] = 0.0  # a zero that is stored
    mean, squares = column_moments(stored)
    assert np.allclose(mean, stored.toarray().mean(axis=0))
    assert np.allclose(squares, stored.toarray().var(axis=0) * 4)


def test_entries_stored_twice_count_as_their_sum():
    data, columns, starts = [1.0, 2.0, 3.0, 4.0, 5.0], [0, 0, 1, 2, 1], [0, 2, 4, 5]
    X = scipy.sparse.csr_array((data, columns, starts), shape=(3, 3))
    assert not X.has_canonical_format
    dense = np.array([[3.0, 0, 0], [0, 3, 4], [0, 5, 0]])
    mean, squares = column_moments(X)
    assert np.allclose(mean, dense.mean(axis=0))
    assert np.allclose(squares, dense.var(axis=0) * 3)
    assert_moments(moments(X, 1, Monitor()), dense, rtol=1e-12)


@each("dtype", [np.float32, np.float64])
def test_known_moments_leave_unknown_values_out(irregular, dtype):
    X = np.tile(irregular(1500, 30), (2, 50)).astype(dtype) + dtype(100)  # several blocks
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    X[:2990, 3], X[::2, 5] = np.nan, np.nan  # the first block knows none of the one
    X[1::2, 5], X[2995, 3] = 0.1, 7.0
    known, mean, squares = known_moments(X)
    np.testing.assert_array_equal(known, np.sum(~np.isnan(X), axis=0))
    np.testing.assert_allclose(mean, np.nanmean(X.astype(float), axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        squares, np.nanvar(X.astype(float), axis=0) * known, rtol=1e-9, atol=1e-20
    )
    assert squares[5] == 0
    assert mean[5] == dtype(0.1)
    whole = np.nan_to_num(X)
    for found, expected in zip(known_moments(whole)[1:], column_moments(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
