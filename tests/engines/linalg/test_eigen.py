"""The door to eigenproblems: order, signs, trivial vectors, scale, generalized problems, SVD."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._engines.linalg import eigen


def symmetric(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return (A + A.T) / 2


def assert_signs(vectors):
    size = np.abs(vectors)
    at = size.argmax(axis=0)
    assert (vectors[at, np.arange(vectors.shape[1])] > 0).all()


@pytest.mark.parametrize("n", [1, 2, 20, 200])
def test_all_pairs_rebuild_the_matrix_largest_first(n):
    A = symmetric(n)
    values, vectors = eigen.all_eigenpairs(A)
    np.testing.assert_allclose((vectors * values) @ vectors.T, A, atol=1e-12 * n)
    assert (np.diff(values) <= 0).all()
    assert_signs(vectors)
    np.testing.assert_allclose(eigen.eigenvalues(A), values, atol=1e-12 * n)


def test_a_stack_is_solved_matrix_by_matrix_whatever_comes_along():
    stack = np.array([symmetric(5, 0), 1e-200 * symmetric(5, 1), 1e200 * symmetric(5, 2)])
    values, vectors = eigen.all_eigenpairs(stack)
    for A, found, V in zip(stack, values, vectors, strict=True):
        alone = eigen.all_eigenpairs(A)
        assert np.array_equal(alone.values, found)
        assert np.array_equal(alone.vectors, V)
        np.testing.assert_allclose((V * found) @ V.T, A, atol=1e-12 * np.abs(A).max())
        assert_signs(V)
    np.testing.assert_allclose(eigen.eigenvalues(stack), values, rtol=1e-12)


@pytest.mark.parametrize("e", [-900, -300, 0, 300, 900])
def test_a_power_of_two_changes_no_digit(e):
    A = symmetric(30) @ symmetric(30)
    M = np.ldexp(A, e)
    for semidefinite in (False, True):
        plain, scaled = (eigen.largest_eigenpairs(B, 3, semidefinite=semidefinite) for B in (A, M))
        assert np.array_equal(np.ldexp(plain.values, e), scaled.values)
        assert np.array_equal(plain.vectors, scaled.vectors)
    assert np.array_equal(np.ldexp(eigen.eigenvalues(A), e), eigen.eigenvalues(M))


@pytest.mark.parametrize("n", [40, 600])
@pytest.mark.parametrize("form", ["matrix", "operator"])
def test_a_trivial_vector_is_left_out_of_the_largest(n, form):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    spectrum = np.r_[9.0, 9.0, 5.0, 2.0, -1 - rng.random(n - 4)]
    A = (basis * spectrum) @ basis.T
    A = (A + A.T) / 2
    # in the double eigenvalue only the projection tells the trivial vector from the other
    trivial = basis[:, 0] + basis[:, 1]
    given = {"A": A} if form == "matrix" else {"A": lambda V: A @ V, "order": n}
    found = eigen.largest_eigenpairs(n_pairs=3, trivial=trivial, tol=1e-9, **given)
    np.testing.assert_allclose(found.values, [9, 5, 2], rtol=1e-6)
    np.testing.assert_allclose(trivial @ found.vectors, 0, atol=1e-8)
    np.testing.assert_allclose(A @ found.vectors, found.vectors * found.values, atol=1e-6)


@pytest.mark.parametrize("solver", ["dense", "factor", "filter"])
def test_without_a_trivial_vector_the_smallest_pair_is_found_too(solver):
    n = 500
    i = np.arange(n)
    path = scipy.sparse.diags(
        [np.full(n, 2.0), np.full(n - 1, -1.0), np.full(n - 1, -1.0)], [0, 1, -1]
    )
    M = scipy.sparse.csr_matrix(path) * (n / np.pi) ** 2
    found = eigen.smallest_eigenpairs(
        M, 3, FitContext(np.random.default_rng(0), 1, Monitor()), tol=1e-5, solver=solver
    )
    k = np.arange(1, 4)
    expected = (2 - 2 * np.cos(np.pi * k / (n + 1))) * (n / np.pi) ** 2  # close to 1, 4, 9
    np.testing.assert_allclose(found.values, expected, rtol=1e-6)
    waves = np.sin(np.pi * np.outer(i + 1, k) / (n + 1)) * np.sqrt(2 / (n + 1))
    np.testing.assert_allclose(np.abs(waves.T @ found.vectors), np.eye(3), atol=1e-5)


def test_the_constant_is_found_where_it_is_not_left_out():
    M = scipy.sparse.csr_matrix(np.eye(30) - 1 / 30)
    run, options = FitContext(np.random.default_rng(0), 1, Monitor()), {"tol": 1e-8}
    with_constant = eigen.smallest_eigenpairs(M, 2, run, **options)
    np.testing.assert_allclose(with_constant.values, [0, 1], atol=1e-12)
    np.testing.assert_allclose(with_constant.vectors[:, 0], 30**-0.5)
    without = eigen.smallest_eigenpairs(M, 2, run, trivial=np.ones(30), **options)
    np.testing.assert_allclose(without.values, [1, 1])


@pytest.mark.parametrize("e", [-600, 600])
def test_the_smallest_pairs_of_an_extreme_matrix(e):
    A = symmetric(30) @ symmetric(30)
    run = FitContext(np.random.default_rng(0), 1, Monitor())
    plain, scaled = (eigen.smallest_eigenpairs(M, 2, run, tol=1e-6) for M in (A, np.ldexp(A, e)))
    np.testing.assert_allclose(np.ldexp(plain.values, e), scaled.values, rtol=1e-10)


# --- A v = l B v ----------------------------------------------------------------------------------


def definite(n, seed=3):
    F = np.random.default_rng(seed).standard_normal((2 * n, n))
    return F.T @ F


@pytest.mark.parametrize("which", ["largest", "smallest"])
def test_generalized_pairs_are_those_of_lapack(which):
    A, B = symmetric(12), definite(12)
    values, vectors = scipy.linalg.eigh(A, B)
    order = slice(None, None, -1) if which == "largest" else slice(None)
    found = eigen.generalized_eigenpairs(A, B, 4, which=which)
    np.testing.assert_allclose(found.values, values[order][:4], rtol=1e-9)
    np.testing.assert_allclose(found.vectors, eigen.fix_signs(vectors[:, order][:, :4]), atol=1e-9)
    np.testing.assert_allclose(found.vectors.T @ B @ found.vectors, np.eye(4), atol=1e-10)
    assert found.rank == 12


def test_the_units_of_the_columns_do_not_matter():
    A, B, units = symmetric(6), definite(6), np.array([1, 1e9, 1, 1e-7, 1, 1])
    plain = eigen.generalized_eigenpairs(A, B, 6)
    scaled = eigen.generalized_eigenpairs(A * np.outer(units, units), B * np.outer(units, units), 6)
    assert scaled.rank == 6
    np.testing.assert_allclose(scaled.values, plain.values, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_singular_B_leaves_out_what_has_no_length(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    X = np.c_[X, X @ rng.standard_normal(6), np.zeros(300)].astype(dtype)
    B = (X.T @ X).astype(np.float64)
    A = definite(8)
    found = eigen.generalized_eigenpairs(A, B, 8, which="smallest", dtype=dtype)
    assert found.rank == 6
    assert found.vectors.shape == (8, 6)
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(found.vectors.T @ B @ found.vectors, np.eye(6), atol=tolerance)
    padded = found.padded(8)
    assert np.isnan(padded.values[6:]).all()
    assert not padded.vectors[:, 6:].any()
    np.testing.assert_array_equal(padded.vectors[:, :6], found.vectors)


def test_a_B_of_zeros_has_no_pairs():
    found = eigen.generalized_eigenpairs(np.eye(3), np.zeros((3, 3)), 2)
    assert (found.rank, found.values.shape, found.vectors.shape) == (0, (0,), (3, 0))
    assert found.padded(2).vectors.shape == (3, 2)


def test_the_number_of_threads_does_not_change_a_bit():
    A, B = symmetric(300), definite(300)
    found = []
    for threads in (1, 2):
        with limit_blas(threads):
            found.append(eigen.generalized_eigenpairs(A, B, 5).vectors.tobytes())
            found[-1] += eigen.thin_svd(A[:, :40]).left.tobytes()
            found[-1] += eigen.all_eigenpairs(A).vectors.tobytes()
    assert found[0] == found[1]


# --- singular values, and matrices that are not symmetric -----------------------------------------


@pytest.mark.parametrize("shape", [(30, 4), (4, 30), (5, 5), (1, 3)])
def test_the_singular_value_decomposition_rebuilds_the_matrix(irregular, shape):
    A = irregular(*shape)
    left, lengths, right = eigen.thin_svd(A)
    np.testing.assert_allclose((left * lengths) @ right, A, atol=1e-10)
    np.testing.assert_allclose(lengths, np.linalg.svd(A, compute_uv=False), rtol=1e-10)
    np.testing.assert_allclose(left.T @ left, np.eye(min(shape)), atol=1e-12)
    assert_signs(right.T)


def test_eigenvalues_of_a_rotation_are_complex():
    values = eigen.general_eigenvalues(np.array([[0.0, -2.0], [2.0, 0.0]]))
    np.testing.assert_allclose(np.sort_complex(values), [-2j, 2j])
