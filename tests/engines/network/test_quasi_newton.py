"""L-BFGS on functions whose minimum is known."""

import numpy as np
import pytest

from lowland._base.monitor import Monitor
from lowland._engines.network.quasi_newton import minimize


def rosenbrock(x):
    a, b = x
    slope = np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])
    return (1 - a) ** 2 + 100 * (b - a * a) ** 2, slope


def test_the_minimum_is_found_and_the_loss_never_rises():
    start = np.array([-1.2, 1.0])
    found = minimize(rosenbrock, start, max_iter=200, tol=1e-15, monitor=Monitor())
    np.testing.assert_allclose(found.point, 1, atol=1e-5)
    assert found.converged
    assert (np.diff(found.losses) <= 0).all()
    assert found.losses[0] == pytest.approx(24.2)
    assert len(found.losses) == found.n_iter + 1
    np.testing.assert_array_equal(start, [-1.2, 1.0])


def test_steps_end_at_the_limit_or_by_the_monitor():
    start = np.array([-1.2, 1.0])
    few = minimize(rosenbrock, start, max_iter=3, tol=0, monitor=Monitor())
    assert few.n_iter == 3
    assert not few.converged
    asked = Monitor(callback=lambda i, Y, loss: i == 2)
    stopped = minimize(rosenbrock, start, max_iter=50, tol=0, monitor=asked, show=lambda x: x)
    assert stopped.n_iter == 2
    assert not stopped.converged
    np.testing.assert_array_equal(
        stopped.point, minimize(rosenbrock, start, max_iter=2, tol=0, monitor=Monitor()).point
    )


def test_no_steps_give_the_start():
    found = minimize(rosenbrock, np.zeros(2), max_iter=0, tol=0, monitor=Monitor())
    np.testing.assert_array_equal(found.point, 0)
    assert found.losses.tolist() == [1.0]
