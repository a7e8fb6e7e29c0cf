"""smallest_eigenpairs by each solver, of matrices and functions, against dense numpy."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.errors import ConvergenceWarning, MemoryLimitError
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._engines.linalg import smallest_solvers as engine
from lowland._engines.linalg.eigen import smallest_eigenpairs
from support.strips import rng, strip

SOLVERS = ["dense", "factor", "filter"]


def pairs(M, q, solver, seed=0, threads=1, **options):
    n = M.shape[0] if hasattr(M, "shape") else None
    known = None if n is None else np.ones(n)
    options = {"tol": 1e-5, "trivial": known, **options}
    run = FitContext(rng(seed), threads, Monitor())
    return smallest_eigenpairs(M, q, run, solver=solver, **options)


def sine(U, V):
    """Of the largest angle between the spans of orthonormal columns."""
    return np.linalg.norm(V - U @ (U.T @ V), 2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_pairs_are_the_smallest_beside_the_constant(solver):
    M, places = strip(700)
    values, vectors = np.linalg.eigh(M.toarray())
    found = pairs(M, 3, solver, ordering=places)
    assert found.solver == solver
    np.testing.assert_allclose(found.values, values[1:4], rtol=1e-6)
    assert sine(vectors[:, 1:4], found.vectors) < 1e-5
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.vectors.sum(axis=0), 0, atol=1e-10)
    assert (found.vectors[np.abs(found.vectors).argmax(axis=0), range(3)] > 0).all()
    measured = np.linalg.norm(M @ found.vectors - found.vectors * found.values, axis=0).max()
    assert measured / found.values[-1] == pytest.approx(found.residual, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("solver", ["dense", "factor"])
def test_among_many_zero_eigenvalues_only_the_known_vector_is_left_out(solver):
    # null space of dimension 4: 1, x, y, and a vector of no meaning; the rest far from 0
    n = 450
    null = np.linalg.qr(np.c_[np.ones(n), rng().standard_normal((n, 3))])[0]
    M = scipy.sparse.csr_matrix(np.eye(n) - null @ null.T)
    found = pairs(M, 3, solver)
    np.testing.assert_allclose(found.values, 0, atol=1e-13)
    assert sine(null[:, 1:], found.vectors) < 1e-10
    np.testing.assert_allclose(found.vectors.sum(axis=0), 0, atol=1e-10)
    assert pairs(M, 4, solver).values[3] == pytest.approx(1.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_another_vector_may_be_the_trivial_one(solver):
    M, places = strip(600)
    scale = scipy.sparse.diags(1 / np.linspace(1, 3, 600))
    known = np.linspace(1, 3, 600)
    A = scipy.sparse.csr_matrix(scale @ M @ scale)
    values, vectors = np.linalg.eigh(A.toarray())
    found = pairs(A, 2, solver, trivial=known, ordering=places)
    np.testing.assert_allclose(found.values, values[1:3], rtol=1e-6)
    assert sine(vectors[:, 1:3], found.vectors) < 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_number_of_threads_does_not_change_a_bit(solver):
    M, places = strip(600)
    one = pairs(M, 3, solver, ordering=places)
    with limit_blas(2):
        two = pairs(M, 3, solver, ordering=places, threads=2)
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert one.values.tobytes() == two.values.tobytes()


def test_small_problems_go_to_lapack_and_strips_to_factors():
    M, places = strip(900)
    assert pairs(M, 2, "auto", ordering=places).solver == "factor"
    assert pairs(M, 91, "auto", ordering=places).solver == "dense"
    assert pairs(strip(300)[0], 2, "auto").solver == "dense"


def test_where_factors_are_too_large_the_filter_serves(monkeypatch):
    M, places = strip(600)
    monkeypatch.setattr(engine, "MOST_FLOPS", 1.0)
    found = pairs(M, 2, "auto", ordering=places)
    assert found.solver == "filter"
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(M.toarray())[1:3], rtol=1e-6)


def test_where_factors_are_expensive_a_short_filter_is_tried_first(monkeypatch):
    M, places = strip(600, wide=40)
    monkeypatch.setattr(engine, "FACTOR_COST", 1e-9)
    found = pairs(M, 2, "auto", ordering=places)
    assert found.solver == "filter"
    monkeypatch.setattr(engine, "DEGREES", (3, 4))
    assert pairs(M, 2, "auto", ordering=places, tol=1e-8).solver == "factor"


def test_a_residual_above_the_tolerance_is_said(monkeypatch):
    M, _ = strip(2000)
    monkeypatch.setattr(engine, "DEGREES", (3, 4))
    with pytest.warns(ConvergenceWarning, match=r"relative residual of .* \(tol=1e-12\)"):
        found = pairs(M, 2, "filter", tol=1e-12)
    assert found.residual > 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairs(M, 2, "factor", tol=1e-6)


@pytest.mark.parametrize("n", [150, 900])
def test_functions_and_dense_matrices_give_the_same_pairs(n):
    M, _ = strip(n, wide=30)
    dense = M.toarray()
    values = np.linalg.eigvalsh(dense)
    norm = float(np.abs(dense).sum(axis=1).max())
    by_matrix = pairs(dense, 2, "auto")
    by_function = pairs(lambda V: dense @ V, 2, "auto", trivial=np.ones(n), norm=norm)
    for found in (by_matrix, by_function):
        assert found.solver == ("dense" if n == 150 else "filter")
        np.testing.assert_allclose(found.values, values[1:3], rtol=1e-6)
        np.testing.assert_allclose(found.vectors.sum(axis=0), 0, atol=1e-10)


def test_the_dense_solver_asks_for_its_memory_first(monkeypatch):
    M, _ = strip(900)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1 MB")
    with pytest.raises(MemoryLimitError, match="100 eigenvectors of 900 rows needs"):
        pairs(M, 100, "auto")


def test_a_matrix_of_zeros_has_no_preferred_vectors():
    empty = scipy.sparse.csr_matrix((500, 500))
    empty.setdiag(0.0)
    for solver in ("dense", "filter"):
        found = pairs(scipy.sparse.csr_matrix(empty), 2, solver)
        assert (found.values == 0).all()
        np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(2), atol=1e-12)
