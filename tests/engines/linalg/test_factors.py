"""Both kinds of factors solve, and a matrix without any is refused."""

import numpy as np
import pytest
import scipy.sparse

from lowland._engines.linalg import smallest_solvers
from lowland._engines.linalg.skyline import plan_skyline
from lowland._engines.linalg.smallest_solvers import inverse_of


def laplacian(n, reach):
    """Of a path whose rows couple with so many before and after."""
    W = scipy.sparse.diags([1.0 / s for s in range(1, reach + 1)], range(1, reach + 1), (n, n))
    W = scipy.sparse.csr_matrix(W + W.T)
    return scipy.sparse.csr_matrix(scipy.sparse.diags(np.asarray(W.sum(axis=1)).ravel()) - W)


@pytest.mark.parametrize(("reach", "thin"), [(2, True), (30, False)])
def test_the_inverse_is_that_of_the_matrix_with_hardly_a_shift(reach, thin, monkeypatch):
    M = laplacian(700, reach)
    taken = []
    superlu = smallest_solvers._superlu
    monkeypatch.setattr(
        smallest_solvers, "_superlu", lambda *given: taken.append(1) or superlu(*given)
    )
    norm = float(np.abs(M.toarray()).sum(axis=1).max())
    solve = inverse_of(M, norm, plan_skyline(M), 1).solve
    assert bool(taken) == thin
    V = np.random.default_rng(0).standard_normal((700, 3))
    V -= V.mean(axis=0)
    found = solve(V)
    found -= found.mean(axis=0)  # along the null vector the inverse is as large as 1 / shift
    np.testing.assert_allclose(M @ found, V, atol=1e-5)


def test_a_matrix_far_from_positive_has_no_factors():
    M = -laplacian(300, 30)
    assert inverse_of(M, 10.0, plan_skyline(M), 1) is None


def test_a_singular_matrix_is_shifted():
    M = scipy.sparse.csr_matrix((500, 500))
    found = inverse_of(M, 1.0, plan_skyline(M), 1).solve(np.ones((500, 1)))
    np.testing.assert_allclose(found, 1 / smallest_solvers.FIRST_SHIFT, rtol=1e-6)
