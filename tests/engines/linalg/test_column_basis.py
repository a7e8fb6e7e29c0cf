"""An orthonormal basis of columns: its span, its rank, and units that do not matter."""

import numpy as np
import pytest
import scipy.sparse

from lowland._base.monitor import Monitor
from lowland._engines.linalg.principal_axes import orthonormal_basis


def basis(X, threads=1):
    return orthonormal_basis(X, threads, Monitor())


@pytest.mark.parametrize("shape", [(40, 6), (12, 30), (5, 1), (1, 4)])
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_it_spans_the_centered_columns(irregular, shape, make):
    X = irregular(*shape)
    found = basis(make(X))
    centered = X - X.mean(axis=0)
    if shape[0] == 1:
        assert not found.U.any()
        return
    r = min(shape[1], shape[0] - 1)
    assert found.U.shape == (shape[0], r)
    np.testing.assert_allclose(found.U.T @ found.U, np.eye(r), atol=1e-12)
    np.testing.assert_allclose(found.U @ (found.U.T @ centered), centered, atol=1e-9)
    np.testing.assert_allclose(centered @ found.coefficients, found.U, atol=1e-8)
    np.testing.assert_allclose(found.loadings, found.U.T @ centered, atol=1e-9)
    A = irregular(r, 2, 3)
    np.testing.assert_allclose(centered @ found.weights(A), found.U @ A, atol=1e-8)
    W = irregular(shape[1], 2, 4)
    np.testing.assert_allclose(found.U @ found.variables(W), centered @ W, atol=1e-9)


def test_the_axes_are_the_principal_axes(irregular):
    X = irregular(50, 4)
    right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2]
    np.testing.assert_allclose(np.abs(basis(X).axes @ right.T), np.eye(4), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [30, 2000])
def test_collinear_columns_have_the_rank_of_the_others(dtype, n):
    rng = np.random.default_rng(0)
    for offset in (0.0, 30.0):
        Z = rng.standard_normal((n, 6)) + offset
        X = np.c_[Z, Z @ rng.standard_normal(6)].astype(dtype)
        assert basis(X).U.shape[1] == 6
        assert basis(np.c_[X, 7 * X[:, :2]]).U.shape[1] == 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("factor", [1e9, 1e-9, 1e30])
def test_a_column_in_other_units_does_not_hide_the_others(irregular, dtype, factor):
    X = irregular(40, 5).astype(dtype)
    unit = np.array([1, 1, factor, 1, 1], dtype)
    plain, scaled = basis(X), basis(X * unit)
    assert scaled.U.shape[1] == 5
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(plain.U @ (plain.U.T @ scaled.U), scaled.U, atol=tolerance)
    np.testing.assert_allclose(scaled.U.T @ scaled.U, np.eye(5), atol=1e-12)


def test_a_direction_of_little_variance_is_kept_as_long_as_it_is_not_rounding(irregular):
    X = irregular(60, 3)
    for size, rank in ((1e-4, 4), (1e-15, 3)):
        near = X.sum(axis=1) + size * irregular(60, 1, 5)[:, 0]
        found = basis(np.c_[X, near])
        assert found.U.shape[1] == rank
        np.testing.assert_allclose(found.U.T @ found.U, np.eye(rank), atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e300])
def test_rows_that_are_all_equal_have_a_basis_of_zeros(value):
    found = basis(np.full((7, 3), value))
    assert found.U.shape == (7, 1)
    assert not found.U.any()
    np.testing.assert_array_equal(found.mean, value)


def test_threads_do_not_change_a_bit_and_inputs_are_not_written_to(irregular):
    X = irregular(3000, 20)
    copy = X.copy()
    one, two = basis(X), basis(X, threads=2)
    assert one.U.tobytes() == two.U.tobytes()
    assert np.array_equal(X, copy)
