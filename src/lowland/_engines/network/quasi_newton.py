"""L-BFGS (Liu & Nocedal 1989) of a smooth function of one vector, by SciPy's implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas

MEMORY = 20  # pairs of steps and slopes
LARGEST_TOL = 1e9  # larger ones stop the descent as well, but overflow in L-BFGS-B


class Minimum(NamedTuple):
    """The last point, the losses at the start and after each step, whether ``tol`` was reached."""

    point: np.ndarray
    losses: np.ndarray
    n_iter: int
    converged: bool


def minimize(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    monitor: Monitor,
    show: Callable[[np.ndarray], np.ndarray] | None = None,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
    memory: int = MEMORY,
    done: int = 0,
) -> Minimum:
    """Descend from ``start`` by ``function(x) = (loss, gradient)``; the loss never rises.

    It ends when a step lowers the loss by less than ``tol`` times the larger of the loss and 1,
    after ``max_iter`` steps, or when the monitor stops them. ``show(x)`` makes the map that a
    callback gets. ``bounds`` are the least and the largest values of x, infinite where there are
    none. ``memory`` pairs of steps and slopes are held, two vectors each. The monitor's count goes
    on from the ``done`` steps of an earlier stage.
    """
    from scipy.optimize import minimize as scipy_minimize

    losses = [float(function(start)[0])]

    def after_step(intermediate_result: object) -> None:
        x, loss = intermediate_result.x, float(intermediate_result.fun)  # type: ignore[attr-defined]
        losses.append(loss)
        stop = monitor.iteration(
            done + len(losses) - 1, lambda: show(x) if show else x, loss, total=done + max_iter
        )
        if stop:
            raise StopIteration

    if max_iter == 0:
        return Minimum(start.copy(), np.array(losses), 0, True)
    with limit_blas(1):
        result = scipy_minimize(
            function,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=after_step,
            bounds=None if bounds is None else np.column_stack(bounds),
            options={
                "maxiter": max_iter,
                "maxfun": 20 * max_iter,
                "ftol": min(tol, LARGEST_TOL),
                "gtol": 0.0,
                "maxcor": memory,
            },
        )
    n_iter = len(losses) - 1
    return Minimum(result.x, np.array(losses), n_iter, n_iter < max_iter and not monitor.stopped)
