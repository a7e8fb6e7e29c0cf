"""Skyline factors: they solve, cost what the plan says, and have the same bytes on two threads."""

import numpy as np
import pytest
import scipy.sparse

from lowland._engines.graphs.components import line_up
from lowland._engines.linalg.skyline import SkylineCholesky, plan_skyline
from support.strips import rng, strip


@pytest.mark.parametrize("n", [1, 2, 3, 50, 400, 1500])
def test_factors_solve_to_rounding(n):
    M, along = strip(max(n, 30), seed=n)
    M = M[:n, :n].tocsr()
    plan = plan_skyline(M, along[:n])
    assert sorted(plan.order) == list(range(n))
    V = rng().standard_normal((n, 3))
    solved = SkylineCholesky(M, plan, 0.1).solve(V)
    expected = np.linalg.solve(M.toarray() + 0.1 * np.eye(n), V)
    np.testing.assert_allclose(solved, expected, atol=1e-10)


def test_rows_that_couple_with_none_and_rows_that_couple_with_all_are_solved():
    alone = scipy.sparse.csr_matrix((500, 500))
    V = rng().standard_normal((500, 2))
    np.testing.assert_allclose(SkylineCholesky(alone, plan_skyline(alone), 2.0).solve(V), V / 2)
    star = scipy.sparse.lil_matrix((500, 500))
    star[250, :] = star[:, 250] = -1.0
    star.setdiag(499.0)
    star = star.tocsr()
    solved = SkylineCholesky(star, plan_skyline(star, np.arange(500.0)), 1.0).solve(V)
    np.testing.assert_allclose(solved, np.linalg.solve(star.toarray() + np.eye(500), V), atol=1e-12)


def test_two_threads_give_the_same_bytes():
    M, along = strip(2000)
    plan, V = plan_skyline(M, along), rng().standard_normal((2000, 4))
    one, two = (SkylineCholesky(M, plan, 1e-3, threads).solve(V) for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_the_plan_knows_the_order_and_the_cost():
    M, along = strip(3000)
    random = plan_skyline(M, rng().random(3000))
    lined_up = plan_skyline(M, along)
    assert lined_up.flops <= random.flops  # Cuthill and McKee's order is the alternative
    assert lined_up.n_bytes < 8 * 3000 * 3000 / 10
    factors = SkylineCholesky(M, lined_up, 0.1)
    panels = [panel for chain in factors.chains for panel in chain.panels]
    held = sum(panel.inverse.nbytes + panel.coupling.nbytes for panel in panels)
    assert lined_up.n_bytes / 2 < held <= lined_up.n_bytes * 1.5


def test_an_indefinite_matrix_is_refused():
    M, along = strip(200)
    for threads in (1, 2):
        with pytest.raises(np.linalg.LinAlgError):
            SkylineCholesky(M, plan_skyline(M, along), -0.5, threads)


def test_line_up_starts_at_an_end():
    path = scipy.sparse.diags(np.arange(1.0, 30), 1, shape=(30, 30)).tocsr()
    shuffled = rng().permutation(30)
    along = line_up(path[shuffled][:, shuffled])
    places = np.r_[0, np.cumsum(np.arange(1.0, 30))][shuffled]
    assert np.allclose(along, places) or np.allclose(along, places.max() - places)


def test_a_matrix_whose_halves_do_not_meet_prints_nothing(capfd):
    A = scipy.sparse.identity(600, format="csr")
    factor = SkylineCholesky(A, plan_skyline(A), 0.0)
    V = np.random.default_rng(0).standard_normal((600, 2))
    np.testing.assert_allclose(factor.solve(V), V)
    assert capfd.readouterr().out == ""
