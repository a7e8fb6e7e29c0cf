"""Dense Cholesky factors, solutions and inverses."""

import numpy as np
import pytest

from lowland._engines.gaussian_processes.exact import (
    gaussian_sums,
    inverse_from,
    lower_factor,
    solve_lower,
)
from support.cases import each


def definite(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n + 2))
    return A @ A.T + 0.1 * np.eye(n)


@each("n", [1, 2, 7, 64, 130])
def test_factor_solutions_and_inverse(n):
    A, B = definite(n), np.random.default_rng(1).standard_normal((n, 3))
    L = lower_factor(A)
    assert np.array_equal(L, np.tril(L))
    np.testing.assert_allclose(L @ L.T, A, rtol=1e-12, atol=1e-12 * n)
    np.testing.assert_allclose(solve_lower(L, B), np.linalg.solve(L, B), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        solve_lower(L, B, transposed=True), np.linalg.solve(L.T, B), rtol=1e-9, atol=1e-9
    )
    inverse = inverse_from(L)
    assert np.array_equal(inverse, inverse.T)
    np.testing.assert_allclose(inverse @ A, np.eye(n), atol=1e-8)


@each("n", [1, 2, 7, 64, 130])
def test_sums_of_a_gaussian_read_the_upper_triangle_only(n):
    A, B = definite(n), np.random.default_rng(1).standard_normal((n, 3))
    upper = np.where(np.triu(np.ones((n, n), bool)), A, np.nan)
    found, solved = gaussian_sums(upper, B, 4), np.linalg.solve(A, B)
    assert np.isclose(found.log_det, np.linalg.slogdet(A)[1], rtol=1e-10, atol=1e-10)
    assert np.isclose(found.squares, np.sum(B * solved), rtol=1e-9)
    slope = 0.5 * (solved @ solved.T - 4 * np.linalg.inv(A))
    np.testing.assert_allclose(np.triu(found.slope), np.triu(slope), rtol=1e-7, atol=1e-7)
    with pytest.raises(np.linalg.LinAlgError, match="order 1"):
        gaussian_sums(-np.eye(2), np.ones((2, 1)), 1)


def test_the_given_matrix_is_kept():
    A = definite(9)
    before = A.copy()
    lower_factor(A)
    assert np.array_equal(A, before)


def test_a_matrix_that_is_not_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="order 2"):
        lower_factor(np.array([[1.0, 2.0], [2.0, 1.0]]))
