"""Products with centered data against numpy on a centered copy."""

import numpy as np
import pytest
import scipy.sparse

from lowland._engines.linalg import products

# Sums of about 100 terms of size 10: rounding stays below 100 * 10^2 * eps, here with a margin.
ATOL = {np.float64: 1e-11, np.float32: 2e-3}


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def case(irregular, dtype):
    """X, its mean, V (p x q) and Z (n x q)."""
    X = irregular(97, 31).astype(dtype)
    rng = np.random.default_rng(1)
    return X, X.mean(axis=0, dtype=np.float64), rng.random((31, 5)), rng.random((97, 4))


def test_times_is_the_product_with_the_centered_copy(case, layout, dtype):
    X, mean, V, _ = case
    found = products.times(layout(X), mean, V, 2)
    assert found.dtype == dtype
    assert np.allclose(found, (X - mean) @ V, rtol=0, atol=ATOL[dtype])


def test_times_does_not_move_rows_of_float32_by_the_rounding_of_their_mean(irregular):
    X = (np.round(64 * irregular(97, 31)) / 64 + 4096).astype(np.float32)  # float32 holds them
    mean, V = X.mean(axis=0, dtype=np.float64), np.random.default_rng(1).random((31, 5))
    centered = X - mean
    # 31 terms of centered rows, and the rounding of V; that of the mean is 4096 / 10 times as large
    bound = 40 * 2.0**-24 * (np.abs(centered) @ V).max()
    assert np.abs(products.times(X, mean, V, 2) - centered @ V).max() < bound < 1e-3


def test_transpose_times_is_the_product_with_the_centered_copy(case, layout, dtype):
    X, mean, _, Z = case
    found = products.transpose_times(layout(X), mean, Z, 2)
    assert found.dtype == np.float64
    assert np.allclose(found, (X - mean).T @ Z, rtol=0, atol=ATOL[dtype])


def test_sample_gram_holds_the_inner_products_of_the_centered_rows(case, dense_layout, dtype):
    X, mean, _, _ = case
    found = products.sample_gram(dense_layout(X), mean, 2)
    assert np.array_equal(found, found.T)
    assert np.allclose(found, (X - mean) @ (X - mean).T, rtol=0, atol=ATOL[dtype])


def test_a_transpose_made_before_changes_nothing(case):
    X, mean, _, Z = case
    X = scipy.sparse.csr_array(X)
    plain = products.transpose_times(X, mean, Z, 1)
    assert np.array_equal(products.transpose_times(X, mean, Z, 1, X.T.tocsr()), plain)


def test_one_column_and_one_row_are_no_special_cases(dtype):
    X = np.arange(6, dtype=dtype).reshape(6, 1)
    mean = np.array([2.5])
    expected = [[-5], [-3], [-1], [1], [3], [5]]
    assert np.array_equal(products.times(X, mean, np.array([[2.0]]), 1), expected)
    assert np.array_equal(products.times(X[::2], mean, np.array([[2.0]]), 1), expected[::2])
    assert products.transpose_times(X, mean, np.ones((6, 1)), 1) == pytest.approx(0)
    assert products.sample_gram(X[:1], mean, 1) == pytest.approx(6.25)


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1100])
def test_mirror_copies_the_upper_triangle_down_and_keeps_the_diagonal(n):
    full = np.random.default_rng(n).random((n, n))
    upper = np.triu(full)
    found = full.copy()
    returned = products.mirror(found)
    assert returned is found
    assert np.array_equal(found, upper + upper.T - np.diag(np.diag(upper)))


def test_inputs_are_not_written_to(case, layout):
    X, mean, V, Z = case
    given = layout(X)
    before = [a.copy() for a in (given, mean, V, Z)]
    products.times(given, mean, V, 2)
    products.transpose_times(given, mean, Z, 2)
    if not scipy.sparse.issparse(given):
        products.sample_gram(given, mean, 2)
    for array, copy in zip((given, mean, V, Z), before, strict=True):
        assert (array != copy).sum() == 0
