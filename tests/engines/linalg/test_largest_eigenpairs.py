"""largest_eigenpairs against numpy's full solution: by LAPACK, by Lanczos, as an operator."""

import numpy as np
import pytest

from lowland._base.errors import ConvergenceWarning
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._engines.linalg import eigen
from lowland._engines.linalg.eigen import largest_eigenpairs
from support.cases import each


def rng(seed=0):
    return np.random.default_rng(seed)


def with_spectrum(values, seed=0):
    basis = np.linalg.qr(rng(seed).standard_normal((len(values), len(values))))[0]
    A = (basis * values) @ basis.T
    return (A + A.T) / 2


SPECTRA = {
    "decaying": 0.9 ** np.arange(500.0),
    "ends negative": np.linspace(-3, 5, 500) ** 3,
    "all negative": -(np.linspace(1, 20, 500) ** 2),
    "three times": np.r_[9.0, 9, 9, 0.8 ** np.arange(497.0)],
    "rank two": np.r_[4.0, 2, np.zeros(498)],
    "zero": np.zeros(500),
    "small": np.linspace(1, 5, 12) ** 2,
}


@each("spectrum", SPECTRA)
@each("form", ["matrix", "operator"])
def test_pairs_are_the_largest_by_value(spectrum, form):
    if (spectrum, form) == ("all negative", "operator"):
        pytest.skip("the top of this spectrum is dense: Lanczos would warn, as another test says")
    values = SPECTRA[spectrum]
    A = with_spectrum(values)
    given = {"A": A} if form == "matrix" else {"A": lambda V: A @ V, "order": len(A)}
    found = largest_eigenpairs(n_pairs=6, tol=1e-9, rng=rng(1), monitor=Monitor(), **given)
    scale = max(np.abs(values).max(), 1e-300)
    np.testing.assert_allclose(found.values, np.sort(values)[::-1][:6], atol=1e-8 * scale)
    assert np.abs(A @ found.vectors - found.vectors * found.values).max() <= 1e-8 * scale
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(6), atol=1e-10)
    assert found.converged
    assert found.residual <= 1e-9


@pytest.mark.parametrize("form", ["matrix", "operator"])
def test_the_residual_is_what_it_says(form):
    A = with_spectrum(np.r_[10.0, 9.0, 8.0, np.linspace(0, 7.5, 597)])
    given = {"A": A} if form == "matrix" else {"A": lambda V: A @ V, "order": 600}
    found = largest_eigenpairs(n_pairs=3, tol=1e-4, rng=rng(1), monitor=Monitor(), **given)
    true = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0).max() / 10
    assert found.residual == pytest.approx(true, rel=1e-3)
    assert 1e-9 < found.residual <= 1e-4


def test_a_negative_end_of_the_spectrum_is_seen():
    A = with_spectrum(np.r_[10.0, 5, 4, -7, np.linspace(-1, 1, 596)])
    found = largest_eigenpairs(
        lambda V: A @ V, 3, order=600, tol=1e-8, rng=rng(), monitor=Monitor()
    )
    assert found.lowest == pytest.approx(-7, rel=1e-4)
    small = largest_eigenpairs(A[:50, :50], 3, tol=1e-8, rng=rng(), monitor=Monitor())
    assert small.lowest == pytest.approx(np.linalg.eigvalsh(A[:50, :50])[0])


def test_a_matrix_that_lanczos_does_not_solve_goes_to_lapack():
    A = with_spectrum(np.linspace(1, 2, 700))  # gaps of a thousandth: hopeless for Lanczos
    found = largest_eigenpairs(A, 3, tol=1e-12, rng=rng(), monitor=Monitor())
    np.testing.assert_allclose(found.values, np.linspace(1, 2, 700)[:-4:-1], rtol=1e-10)


def test_an_operator_that_misses_the_tolerance_warns():
    A = with_spectrum(np.linspace(1, 2, 900))
    with pytest.warns(ConvergenceWarning, match=r"relative residual of .* \(tol=1e-12\)"):
        found = largest_eigenpairs(
            lambda V: A @ V, 3, order=900, tol=1e-12, rng=rng(), monitor=Monitor()
        )
    assert not found.converged
    assert found.residual > 1e-12


def test_seeds_and_threads():
    A = with_spectrum(0.95 ** np.arange(600.0))
    found = []
    for threads, seed in ((1, 0), (2, 0), (2, 1)):
        with limit_blas(threads):
            found.append(largest_eigenpairs(A, 4, tol=1e-8, rng=rng(seed), monitor=Monitor()))
    np.testing.assert_array_equal(found[0].vectors, found[1].vectors)
    assert not np.array_equal(found[1].vectors, found[2].vectors)
    np.testing.assert_allclose(found[1].vectors, found[2].vectors, atol=1e-5)


@pytest.mark.parametrize("width", [1, 5, 24])
def test_any_number_of_vectors_at_a_time_finds_the_same(width):
    A = with_spectrum(0.8 ** np.arange(420.0))
    found = largest_eigenpairs(A, 4, tol=1e-10, rng=rng(), monitor=Monitor(), width=width)
    np.testing.assert_allclose(found.values, 0.8 ** np.arange(4.0), rtol=1e-9)


def test_all_pairs_of_an_operator():
    A = with_spectrum(np.linspace(-1, 3, 40))
    found = largest_eigenpairs(
        lambda V: A @ V, 40, order=40, tol=1e-8, rng=rng(), monitor=Monitor()
    )
    np.testing.assert_allclose(found.values, np.linspace(-1, 3, 40)[::-1], atol=1e-10)


def test_lapack_is_for_small_matrices_and_many_pairs(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("not here")

    monkeypatch.setattr(eigen, "block_lanczos", refuse)
    A = with_spectrum(0.9 ** np.arange(500.0))
    largest_eigenpairs(A, 51, tol=1e-8, rng=rng(), monitor=Monitor())
    largest_eigenpairs(A[:400, :400], 1, tol=1e-8, rng=rng(), monitor=Monitor())
    with pytest.raises(AssertionError, match="not here"):
        largest_eigenpairs(A, 50, tol=1e-8, rng=rng(), monitor=Monitor())
