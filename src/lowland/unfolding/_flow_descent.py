"""How the field of a flow is found: its centers, and weights from a stiff to a soft penalty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._engines.stress.majorization import Evaluation, majorize
from lowland.unfolding._flow import Flow, FlowEnergy, Journey, norms

FIRST_PENALTY, PENALTY_FACTOR, MOST_PENALTIES = 0.1, 10.0, 8
ROUGH = 1e-3  # the tolerance of all penalties but the last
JITTER = 1e-3  # norm of the first field per coordinate: at 0 the kept axes feel no force
RIDGE = 1e-3  # added to the kernel of the centers where it is inverted
UNLIKE = 1e-3  # least squared distance, in feature space, of a center from the span of the others
STEEP, STEEPEST = 0.5, 0.9  # h |f_t| above which steps are halved: on the way, and at the end
MOST_HALVINGS = 6
SAMPLE, NEIGHBORS = 1000, 10  # rows, and the neighbor of each, whose distance makes the width
WIDER, NARROWEST, WIDEST = 1.3, 0.5, 1.0  # times that distance; in units of the size of the data


def width_for(Z: np.ndarray, size: float) -> float:
    """1.3 times the median distance to the 10th neighbor among 1 000 rows, 0.5 to 1 sizes."""
    n = min(len(Z), SAMPLE)
    some = Z[np.linspace(0, len(Z) - 1, n).astype(np.int64)]
    k = min(n - 1, max(2, min(NEIGHBORS, round(n / 10))))
    reach = [np.partition(np.sum((some - z) ** 2, axis=1), k)[k] for z in some]
    return float(np.clip(WIDER * np.sqrt(np.median(reach)), NARROWEST * size, WIDEST * size))


def choose_centers(X: np.ndarray, most: int) -> np.ndarray:
    """Rows whose kernel functions span those of all rows nearly: Cholesky with pivots.

    The next row is always the one whose k(., x) is farthest from the span of those chosen, so that
    equal rows are never chosen twice.
    """
    rest, factor = np.ones(len(X)), np.empty((len(X), most))
    chosen: list[int] = []
    while len(chosen) < most:
        row, k = int(rest.argmax()), len(chosen)
        if rest[row] < UNLIKE:
            break
        column = np.exp(-0.5 * np.sum((X - X[row]) ** 2, axis=1))
        column -= factor[:, :k] @ factor[row, :k]
        factor[:, k] = column / np.sqrt(rest[row])
        rest -= factor[:, k] ** 2
        rest[row] = 0.0
        chosen.append(row)
    return np.sort(chosen)


def penalties_to(last: float) -> list[float]:
    """From a stiff flow, which is near PCA, to the penalty that was asked for."""
    factors = (np.log(FIRST_PENALTY) - np.log(last)) / np.log(PENALTY_FACTOR)
    steps = int(np.ceil(factors - 0.5))
    steps = min(max(steps, 0), MOST_PENALTIES)
    return [*(FIRST_PENALTY * PENALTY_FACTOR**-k for k in range(steps)), last]


class LearnedFlow(NamedTuple):
    """The flow, what it leaves off the plane, the objective, and its values on the way."""

    flow: Flow
    residual: float
    objective: float
    losses: list[float]


class _Penalized:
    """The energy of one penalty, as an objective of the descent; the kernel is its metric."""

    floor = 1e-30

    def __init__(self, energy: FlowEnergy, weights: np.ndarray, penalty: float, unit: float):
        self.energy, self.penalty, self.unit = energy, penalty, unit
        kernels = [_kernel(centers) for centers in energy.flow_of(weights).centers]
        self.inverses = np.linalg.inv(np.array(kernels))

    def journey(self, weights: np.ndarray) -> Journey:
        return self.energy(weights, self.penalty)

    def __call__(self, weights: np.ndarray) -> Evaluation:
        found = self.journey(weights)
        # a large penalty must not overflow: only the ratio of the two terms counts
        scale = self.unit / (1 + self.penalty)
        return Evaluation(scale * found.objective, 0.5 * scale * found.gradient)

    def told(self, loss: float) -> float:
        return loss * (1 + self.penalty)

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        return np.matmul(self.inverses, slope)

    def guttman_step(self, weights: np.ndarray, here: Evaluation) -> np.ndarray:
        """A step down the gradient in the space of fields, as long as it lowers the loss."""
        step = self.precondition(here.slope) * (len(weights) / self.unit)
        for _ in range(60):
            if self(weights - step).loss < here.loss:
                break
            step = step / 4
        return step


def _kernel(C: np.ndarray) -> np.ndarray:
    squares = np.array([np.sum((C - c) ** 2, axis=1) for c in C])
    return np.exp(-0.5 * squares) + RIDGE * np.eye(len(C))


def learn_flow(
    energy: FlowEnergy,
    n_steps: int,
    penalty: float,
    *,
    unit: float,
    max_iter: int,
    tol: float,
    width: float,
    run: FitContext,
) -> LearnedFlow:
    """Minimize E for smaller and smaller penalties, each from the flow of the one before.

    ``unit`` is the factor that E is told in, ``width`` that of the coordinates. While a step could
    fold (h |f_t| near 1), all steps are halved.
    """
    m, q = len(energy.chosen), energy.q
    shape = (n_steps, m, energy.X.shape[1])
    factor = np.linalg.cholesky(np.linalg.inv(_kernel(energy.X[energy.chosen])))
    weights = JITTER * np.matmul(factor, run.rng.standard_normal(shape))
    losses: list[float] = []

    def descend(weights: np.ndarray, last: float, tol: float, most: int) -> np.ndarray:
        objective, before = _Penalized(energy, weights, last, unit), max(0, len(losses) - 1)
        found = majorize(
            objective,
            weights,
            max_iter=most,
            tol=tol,
            monitor=run.monitor,
            shown=lambda a: width * energy.places(a)[-1][:, :q],
            told=objective.told,
            steps_before=before,
        )
        losses.extend(objective.told(loss) for loss in found.losses[1 if losses else 0 :])
        return found.Y

    path = penalties_to(penalty)
    for k, stiff in enumerate(path):
        if k and (run.monitor.stopped or len(losses) > max_iter):
            break
        done = max(0, len(losses) - 1)
        most = done + -(-(max_iter - done) // (len(path) - k))
        is_last = k == len(path) - 1
        weights = descend(weights, stiff, tol if is_last else max(tol, ROUGH), most)
        if not is_last:
            weights = _halved(energy, weights, n_steps, STEEP)
    while len(weights) < len(finer := _halved(energy, weights, n_steps, STEEPEST)):
        weights = finer
        if not run.monitor.stopped and len(losses) <= max_iter:
            weights = descend(weights, penalty, tol, max_iter)
    found = energy(_gentle(energy, weights), penalty)
    resting = energy(np.zeros((n_steps, *shape[1:])), penalty)
    best = found if found.objective < resting.objective else resting
    return LearnedFlow(best.flow, unit * best.residual, unit * best.objective, losses)


def _steepness(energy: FlowEnergy, weights: np.ndarray) -> float:
    return float(norms(energy.flow_of(weights), energy.threads).max()) / len(weights)


def _halved(energy: FlowEnergy, weights: np.ndarray, n_steps: int, steep: float) -> np.ndarray:
    """The same field in half as long steps, or shorter ones, as far as it is steep."""
    while len(weights) < n_steps * 2**MOST_HALVINGS and _steepness(energy, weights) > steep:
        weights = np.repeat(weights, 2, axis=0)
    return weights


def _gentle(energy: FlowEnergy, weights: np.ndarray) -> np.ndarray:
    """Weights of which each step is one to one, also if no number of steps was enough."""
    for _ in range(60):
        if _steepness(energy, weights) <= STEEPEST:
            return weights
        weights = weights / 2
    return np.zeros_like(weights)
