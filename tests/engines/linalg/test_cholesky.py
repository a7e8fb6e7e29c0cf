"""Dense Cholesky factors, solutions and inverses."""

import numpy as np
import pytest

from lowland._engines.linalg.cholesky import inverse_from, lower_factor, solve_lower
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
    combined = inverse_from(L, factor=-2.0, outer=(0.5, B))
    np.testing.assert_allclose(combined, -2 * inverse + 0.5 * B @ B.T, rtol=1e-10, atol=1e-10)


def test_the_given_matrix_is_kept_unless_it_may_be_overwritten():
    A = definite(9)
    before = A.copy()
    L = lower_factor(A)
    assert np.array_equal(A, before)
    assert np.array_equal(lower_factor(A, overwrite=True), L)


def test_a_matrix_that_is_not_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="order 2"):
        lower_factor(np.array([[1.0, 2.0], [2.0, 1.0]]))
