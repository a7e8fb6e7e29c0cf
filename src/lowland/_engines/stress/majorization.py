"""Majorization accelerated by L-BFGS: the loop that all stress methods share (de Leeuw 1977).

A majorizing function equals the loss at the present map and is not below it anywhere else, so that
its minimum, the Guttman transform Y - V^+ slope, never has a higher loss. Each step first tries a
quasi-Newton step, L-BFGS with V^+ as the initial inverse Hessian, and keeps it if the loss falls
enough; if not, the memory is cleared and the Guttman transform is taken. So the loss never rises,
and far fewer steps are needed.

References: de Leeuw (1977), Applications of convex analysis to multidimensional scaling; Nocedal
(1980), Updating quasi-Newton matrices with limited storage, Mathematics of Computation 35.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate

MEMORY = 8
ENOUGH = 1e-4  # least share of the decrease predicted by the slope (Armijo's condition)
LOOK_BACK = 5  # steps over which the decrease is measured: a single one may be short by chance


class Evaluation(NamedTuple):
    """The loss at a map, and half its gradient."""

    loss: float
    slope: np.ndarray


class Objective(Protocol):
    """A loss with a majorizer: ``Y - guttman_step(here)`` never has a higher loss than ``Y``.

    A loss of at most ``floor`` is 0 up to rounding; of a loss that may be negative the floor is
    minus infinity.
    """

    floor: float

    def __call__(self, Y: np.ndarray) -> Evaluation: ...

    def guttman_step(self, Y: np.ndarray, here: Evaluation) -> np.ndarray: ...

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        """V^+ slope, or the same with a matrix above V."""


class Majorized(NamedTuple):
    """The final map, the loss at the start and after each step, and whether it converged."""

    Y: np.ndarray
    losses: np.ndarray
    n_iter: int
    converged: bool


def majorization_cost(n: int, q: int, n_steps: int, n_pairs: int | None = None) -> Estimate:
    """Of steps over all pairs of n rows, or over ``n_pairs`` listed ones, without the distances."""
    pairs = 4e-10 * n * n if n_pairs is None else 4e-9 * n_pairs
    return n_steps * Estimate(pairs + 1e-7 * n * q + 3e-5, 8 * n * q * (3 * MEMORY + 8))


def majorize(
    objective: Objective,
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    monitor: Monitor,
    shown: Callable[[np.ndarray], np.ndarray] = lambda Y: Y,
    told: Callable[[float], float] = lambda loss: loss,
    steps_before: int = 0,
    total: int | None = None,
) -> Majorized:
    """Minimize the loss from ``start`` until it falls by less than ``tol`` of its size per step.

    A callback gets ``shown`` of the variables and ``told`` of the loss, in the method's terms.
    ``steps_before`` are those of a descent that this one continues; they count as steps.
    ``total`` is the number of steps that progress is shown of, if others may follow.
    """

    def report(step: int, Y: np.ndarray, loss: float) -> bool:
        step += steps_before
        return monitor.iteration(step, lambda: shown(Y), told(loss), total=total or max_iter)

    with limit_blas(1):  # sums over all points must not depend on the number of threads
        return _descend(objective, start, max_iter - steps_before, tol, report)


def _descend(
    objective: Objective,
    start: np.ndarray,
    max_iter: int,
    tol: float,
    report: Callable[[int, np.ndarray, float], bool],
) -> Majorized:
    Y, here = start, objective(start)
    losses, memory = [here.loss], _Memory(objective)
    converged = here.loss <= objective.floor
    while len(losses) <= max_iter and not converged:
        found = memory.step(Y, here) or _guttman(objective, Y, here)
        if found is None:  # not even the Guttman transform lowers the loss: only rounding is left
            converged = True
            break
        tried, there = found
        memory.learn(tried - Y, there.slope - here.slope)
        Y, here = tried, there
        losses.append(here.loss)
        if report(len(losses) - 1, Y, here.loss):
            break
        before = losses[max(0, len(losses) - 1 - LOOK_BACK)]
        settled = len(losses) > LOOK_BACK and before - here.loss <= LOOK_BACK * tol * abs(before)
        converged = settled or here.loss <= objective.floor
    return Majorized(Y, np.array(losses), len(losses) - 1, converged)


def _guttman(
    objective: Objective, Y: np.ndarray, here: Evaluation
) -> tuple[np.ndarray, Evaluation] | None:
    tried = Y - objective.guttman_step(Y, here)
    there = objective(tried)
    return (tried, there) if there.loss <= here.loss else None


class _Memory:
    """The last steps and the changes of slope along them, from which L-BFGS models the Hessian.

    The preconditioner is linear, so it is applied once per step, to the slope: that of a change is
    the difference of two.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.pairs: deque[_Pair] = deque(maxlen=MEMORY)
        self.before: np.ndarray | None = None  # the preconditioned slope at the last step

    def learn(self, step: np.ndarray, change: np.ndarray) -> None:
        curvature = float(np.vdot(step, change))
        if curvature > 0:
            self.pairs.append(_Pair(step, change, curvature))

    def step(self, Y: np.ndarray, here: Evaluation) -> tuple[np.ndarray, Evaluation] | None:
        """A step that lowers the loss enough, or None; a failure clears the memory."""
        if not self.pairs:
            self.before = None
            return None
        direction = -self._newton(here.slope)
        promised = 2 * float(np.vdot(here.slope, direction))
        if promised < 0:
            tried = Y + direction
            there = self.objective(tried)
            if there.loss <= here.loss + ENOUGH * promised:
                return tried, there
        self.pairs.clear()
        return None

    def _newton(self, slope: np.ndarray) -> np.ndarray:
        """The two loops of L-BFGS (Nocedal 1980)."""
        r = self._preconditioned(slope)
        q, shares = slope.copy(), []
        for pair in reversed(self.pairs):
            shares.append(float(np.vdot(pair.step, q)) / pair.curvature)
            q -= shares[-1] * pair.change
            r -= shares[-1] * pair.scaled
        last = self.pairs[-1]
        r *= last.curvature / float(np.vdot(last.change, last.scaled))
        for pair, share in zip(self.pairs, reversed(shares), strict=True):
            r += (share - float(np.vdot(pair.change, r)) / pair.curvature) * pair.step
        return r

    def _preconditioned(self, slope: np.ndarray) -> np.ndarray:
        """That of the slope; the last pair gets that of its change."""
        there, last = self.objective.precondition(slope), self.pairs[-1]
        if last.scaled is None:
            known = self.before is not None
            last.scaled = there - self.before if known else self.objective.precondition(last.change)
        self.before = there
        return there.copy()


class _Pair:
    """A step, the change of slope along it, step.change, and the preconditioned change."""

    def __init__(self, step: np.ndarray, change: np.ndarray, curvature: float) -> None:
        self.step, self.change, self.curvature = step, change, curvature
        self.scaled: Any = None
