"""Semidefinite matrices against numpy's full solution: order, signs, ties, zeros, both solvers."""

import numpy as np
import pytest

from lowland._engines.linalg import eigen
from lowland._engines.linalg.eigen import fix_signs, largest_eigenpairs
from support.cases import each


def with_spectrum(values, seed=0):
    """A symmetric matrix with these eigenvalues in a random basis, and the basis."""
    n = len(values)
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    A = (basis * values) @ basis.T
    return (A + A.T) / 2, basis


def assert_pairs(A, values, vectors, scale):
    """Eigenpairs in the plain sense, to 1e-10 of the largest eigenvalue."""
    assert np.abs(A @ vectors - vectors * values).max() <= 1e-10 * scale
    assert np.abs(vectors.T @ vectors - np.eye(len(values))).max() <= 1e-10


@pytest.fixture(params=["dense", "Lanczos"])
def solver(request, monkeypatch):
    monkeypatch.setattr(eigen, "DENSE_ORDER", 10**9 if request.param == "dense" else 20)


def solve_eigenproblem(A, n_pairs):
    found = largest_eigenpairs(A, n_pairs, semidefinite=True)
    return eigen.EigenPairs(found.values, found.vectors)


SPECTRA = {
    "distinct": np.linspace(1, 5, 80) ** 2,
    "decaying": 0.8 ** np.arange(80.0),
    "largest one three times": np.r_[9.0, 9, 9, np.linspace(0.1, 3, 77)],
    "ties at the cut": np.r_[9.0, 8, 5, 5, 5, 5, 5, 5, 5, 5, np.linspace(0, 1, 70)],
    "rank two": np.r_[4.0, 2, np.zeros(78)],
    "identity": np.ones(80),
    "zero": np.zeros(80),
    "tiny": 1e-200 * np.linspace(1, 5, 80),
    "huge": 1e200 * np.linspace(1, 5, 80),
}


@pytest.mark.usefixtures("solver")
@each("name", SPECTRA)
@each("n_pairs", [1, 3, 8])
def test_the_largest_pairs_of_every_kind_of_spectrum_are_found(name, n_pairs):
    spectrum = SPECTRA[name]
    A, _ = with_spectrum(spectrum)
    values, vectors = solve_eigenproblem(A, n_pairs)
    scale = spectrum.max()
    expected = np.maximum(np.linalg.eigvalsh(A)[::-1][:n_pairs], 0)
    assert np.allclose(values, expected, rtol=0, atol=1e-10 * scale)
    assert_pairs(A, values, vectors, scale)


def test_rounding_never_leaves_a_negative_eigenvalue():
    rows = np.random.default_rng(0).standard_normal((4, 50))
    A = rows.T @ rows
    assert np.linalg.eigvalsh(A).min() < 0  # so there is something to clip
    values, _ = solve_eigenproblem(A, 50)
    assert (values >= 0).all()
    assert np.allclose(values[4:], 0, atol=1e-13 * values[0])


@pytest.mark.usefixtures("solver")
def test_the_same_matrix_gives_the_same_bytes_every_time():
    A, _ = with_spectrum(0.9 ** np.arange(90.0))
    first, second = solve_eigenproblem(A, 5), solve_eigenproblem(A.copy(), 5)
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.vectors, second.vectors)


@pytest.mark.usefixtures("solver")
def test_the_matrix_is_not_written_to():
    A, _ = with_spectrum(0.9 ** np.arange(90.0))
    copy = A.copy()
    solve_eigenproblem(A, 5)
    assert np.array_equal(A, copy)


@pytest.mark.usefixtures("solver")
def test_solved_vectors_follow_the_sign_rule():
    A, basis = with_spectrum(0.8 ** np.arange(90.0))
    _, vectors = solve_eigenproblem(A, 9)
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(9)] > 0).all()
    # signs agree with the basis turned by the rule written out
    for found, given in zip(vectors.T, basis.T[:9], strict=True):
        turned = given if given[np.abs(given).argmax()] > 0 else -given
        assert np.allclose(found, turned, atol=1e-8)


def test_the_entry_largest_in_absolute_value_becomes_positive():
    vectors = np.array([[0.1, -0.9, 0.3], [-0.8, 0.2, 0.4], [0.3, 0.1, -0.2]])
    expected = np.array([[-0.1, 0.9, 0.3], [0.8, -0.2, 0.4], [-0.3, -0.1, -0.2]])
    assert np.array_equal(fix_signs(vectors), expected)


def test_among_entries_equal_up_to_rounding_the_first_decides():
    half = np.sqrt(0.5)
    nudge = 1e-12
    for first, second in ((half, -half - nudge), (half + nudge, -half)):
        for sign in (1, -1):
            turned = fix_signs(sign * np.array([[first], [second]]))
            assert turned[0, 0] > 0
            assert turned[1, 0] < 0


def test_a_clear_winner_decides_even_when_it_comes_last():
    assert np.array_equal(fix_signs(np.array([[0.70], [-0.71]])), [[-0.70], [0.71]])


def test_signs_of_a_zero_vector_stay_finite_and_inputs_untouched():
    vectors = np.array([[0.0, -1.0], [0.0, 0.0]])
    copy = vectors.copy()
    assert np.array_equal(fix_signs(vectors), [[0.0, 1.0], [0.0, 0.0]])
    assert np.array_equal(vectors, copy)


def test_some_pairs_of_nearly_equal_eigenvalues_are_all_there():
    u = np.random.default_rng(0).standard_normal(48)
    A = np.eye(48) - np.outer(u, u) / (u @ u) * 0.8
    values, vectors = eigen.lapack_pairs(A, 46, 47)
    np.testing.assert_allclose(values, 1.0)
    np.testing.assert_allclose(A @ vectors, vectors, atol=1e-12)
