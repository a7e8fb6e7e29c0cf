"""How the field of a flow is found: its centers, and weights from a stiff to a soft penalty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._base.context import FitContext
from lowland._engines.stress.majorization import Evaluation, majorize

# Flows of velocity fields that are sums of Gaussians: forward, backward, energy and gradient.
#
# All coordinates are in units of the width of the kernel, k(x, y) = exp(-|x - y|^2 / 2). The time
# from 0 to 1 has T steps of length h = 1 / T, in each of which the field is constant:
#
#     x(t + h) = x(t) + h f_t(x(t)),    f_t(x) = sum_j k(x, c_j(t)) a_j(t),
#     |f_t|^2  = sum_ij a_i(t) . a_j(t) k(c_i(t), c_j(t)),
#
# and |f_t(x) - f_t(y)| <= |f_t| |x - y|, so that a step with h |f_t| < 1 is one to one.


MOST_ITERATIONS = 400  # of the inverse of a step; where h |f_t| = 0.9 each gains a tenth
CLOSE = 1e-14  # what the last of them may move, relative to the coordinates


class Flow(NamedTuple):
    """Centers c and weights a of the field in each step, both (T, m, D)."""

    centers: np.ndarray
    weights: np.ndarray


def field(Z: np.ndarray, centers: np.ndarray, weights: np.ndarray, threads: int) -> np.ndarray:
    """sum_j k(z, c_j) a_j for the rows z of Z, each independent of the others."""
    sums, nothing = np.empty_like(Z), np.empty((0, Z.shape[1]))
    _native.gaussian_field(Z, nothing, centers, weights, sums, nothing, threads)
    return sums


def pulled(
    Z: np.ndarray, B: np.ndarray, centers: np.ndarray, weights: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The field f at the rows z of Z, and the gradient of b . f(z) by z."""
    sums, pulls = np.empty_like(Z), np.empty_like(Z)
    _native.gaussian_field(Z, B, centers, weights, sums, pulls, threads)
    return sums, pulls


def forward(Z: np.ndarray, flow: Flow, threads: int) -> np.ndarray:
    """Where the flow carries the rows of Z."""
    h = 1 / len(flow.centers)
    for centers, weights in zip(flow.centers, flow.weights, strict=True):
        Z = Z + h * field(Z, centers, weights, threads)
    return Z


def backward(Z: np.ndarray, flow: Flow, threads: int) -> np.ndarray:
    """The rows that the flow carries to Z: x = z - h f(x) is iterated in each step.

    A row rests once it does not move any more, so that it does not depend on its companions.
    """
    h = 1 / len(flow.centers)
    for centers, weights in zip(flow.centers[::-1], flow.weights[::-1], strict=True):
        X, moving = Z.copy(), np.arange(len(Z))
        for _ in range(MOST_ITERATIONS):
            if not moving.size:
                break
            before = X[moving]
            after = Z[moving] - h * field(before, centers, weights, threads)
            X[moving] = after
            size = np.abs(after).max(axis=1)
            moving = moving[np.abs(after - before).max(axis=1) > CLOSE * size]
        Z = X
    return Z


def norms(flow: Flow, threads: int) -> np.ndarray:
    """|f_t| of each step."""
    squares = [
        float(np.sum(weights * field(centers, centers, weights, threads)))
        for centers, weights in zip(flow.centers, flow.weights, strict=True)
    ]
    return np.sqrt(np.maximum(squares, 0.0))


class Journey(NamedTuple):
    """Objective, its gradient by the weights (T, m, D), what is off the plane, and the end."""

    objective: float
    gradient: np.ndarray
    residual: float
    flow: Flow
    Z: np.ndarray


class FlowEnergy:
    """E(a) = (1/n) sum_i |P x_i(1)|^2 + penalty * h sum_t |f_t|^2, P: all axes but the first q.

    The centers are the moving rows number ``chosen`` themselves.
    """

    def __init__(self, X: np.ndarray, chosen: np.ndarray, q: int, threads: int) -> None:
        self.X, self.chosen, self.q, self.threads = X, chosen, q, threads

    def flow_of(self, weights: np.ndarray) -> Flow:
        """The paths of the centers under these weights."""
        return Flow(np.array([Z[self.chosen] for Z in self.places(weights)[:-1]]), weights)

    def places(self, weights: np.ndarray) -> list[np.ndarray]:
        """The rows at the times 0, h, 2 h, ..., 1."""
        places, h = [self.X], 1 / len(weights)
        for a in weights:
            Z = places[-1]
            places.append(Z + h * field(Z, Z[self.chosen], a, self.threads))
        return places

    def residual_of(self, Z: np.ndarray) -> float:
        """(1/n) sum_i |P z_i|^2: what is off the plane."""
        return float(np.sum(Z[:, self.q :] ** 2)) / len(Z)

    def __call__(self, weights: np.ndarray, penalty: float) -> Journey:
        """By the adjoint of the steps, which is exact for them."""
        (n, q), h, chosen = (len(self.X), self.q), 1 / len(weights), self.chosen
        places = self.places(weights)
        residual = self.residual_of(places[-1])
        P = np.zeros_like(self.X)  # the gradient by the places after the step
        P[:, q:] = (2 / n) * places[-1][:, q:]
        energy, gradient = 0.0, np.empty_like(weights)
        for t in reversed(range(len(weights))):
            Z, a = places[t], weights[t]
            C, velocity = Z[chosen], (places[t + 1][chosen] - Z[chosen]) / h
            energy += h * float(np.sum(a * velocity))
            # h |f|^2 is h sum_i a_i . f(c_i): it acts like a force h a_i on the centers
            force = h * P
            force[chosen] += penalty * h * a
            _, by_place = pulled(Z, force, C, a, self.threads)
            by_weight, by_center = pulled(C, a, Z, force, self.threads)
            gradient[t] = by_weight + penalty * h * velocity
            P += by_place
            P[chosen] += by_center
        centers = np.array([Z[chosen] for Z in places[:-1]])
        total = residual + penalty * energy
        return Journey(total, gradient, residual, Flow(centers, weights), places[-1])


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
