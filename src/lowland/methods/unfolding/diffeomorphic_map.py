"""Diffeomorphic dimensionality reduction (Walder & Schoelkopf 2008)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.base import Invertible
from lowland._base.constraints import Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import dense_if_small
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes, principal_axes_cost
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


# How the field of a flow is found: its centers, and weights from a stiff to a soft penalty.


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

    def __call__(self, weights: np.ndarray) -> Evaluation:
        found = self.energy(weights, self.penalty)
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


LEARNED_ROWS = 5000  # the flow is learned from so many rows at most; all others flow along
MOST_AXES = 30  # principal axes in which the rows move, if the map has not more
NO_VARIANCE = 1e-12  # share of the first axis' variance below which an axis is rounding
EXTREME_WIDTH = 1e6  # sizes of the data, or parts of one
LARGEST = 1e300


class DiffeomorphicMap(Invertible):
    """dx/dt = f_t(x): min mean |P x(1)|^2 + penalty int |f_t|^2 dt, P = what is off the plane.

    A flow bends space until the rows lie near the plane of the first principal axes; the map is
    where they arrive there. The velocity fields are sums of Gaussians, and the penalty keeps them
    small and smooth. So space is never torn or folded: distances change by at most the factor
    ``distortion_bound_``, new rows flow along, and points of the map flow back. Use it for
    moderately bent curves and sheets, and when a smooth map with an inverse is wanted. Do not use
    it for surfaces that are rolled up, or thinner across than they are bent: to squeeze them flat
    costs less than to unroll them. Cost: O(n m d) per step of time and of the descent, for m
    centers, d axes and up to 5 000 rows.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the plane. All axes of the data give plain PCA.
    width : float or "auto", default="auto"
        Width s of the kernel exp(-|x - y|^2 / (2 s^2)), in the unit of the data. "auto" is 1.3
        times the median distance to the 10th neighbor among 1 000 rows, but 0.5 to 1 times the
        root mean squared distance from the mean.
    penalty : float, default=0.0003
        Weight of the squared norm of the field; both terms are in units of the variance of the
        data. A large penalty gives PCA, a small one a flatter and more distorted map.
    n_steps : int, default=10
        Number of time steps, at most 1 000. They are halved where a step could fold space.
    landmarks : int, default=200
        Maximum number of rows that are centers of the Gaussians. Fewer are taken if their
        Gaussians span those of the others.
    max_iter : int, default=300
        Maximum number of steps of the descent, for all penalties together. 0 gives PCA.
    tol : float, default=0.00001
        The descent ends when the objective falls by less than this share of itself per step.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Where the fitted rows arrive in the plane, in the unit of the data.
    mean_ : ndarray of shape (n_features,)
        Mean of the columns, the origin of the map.
    axes_ : ndarray of shape (n_axes, n_features)
        Principal axes in rows. The first ``n_components`` span the plane.
    width_ : float
        Width of the kernel.
    center_paths_ : ndarray of shape (n_times, n_centers, n_axes)
        Where the centers are at the beginning of each time step, in coordinates of the axes.
    weights_ : ndarray of shape (n_times, n_centers, n_axes)
        Weights of the Gaussians in each time step.
    field_norms_ : ndarray of shape (n_times,)
        |f_t| / s of each time step, a bound on its Lipschitz constant.
    distortion_bound_ : float
        exp(A), A = -sum_t log(1 - h |f_t| / s) with the time step h, about the integral of
        |f_t| / s. Distances of any two rows on the axes are multiplied by exp(-A) to exp(A), before
        what is off the plane is dropped.
    residual_variance_ : float
        Share of the variance that is left off the plane, that of axes left out included.
    objective_ : float
        The objective at the map, in units of the variance on the axes.
    loss_history_ : ndarray of shape (n_losses,)
        The objective at the start and after each step, with the penalty at that time.

    Notes
    -----
    Only the idea and the form of the field are taken from the paper: the numbers below were
    measured here. Rows are moved in their first 30 principal axes (n rows have at most n - 1 with
    any variance), the others are dropped. The flow moves rows in their own space, so distances in
    place of rows are not accepted.

    Time steps are explicit: x + h f_t(x), with the centers at the moving rows, for which sums of
    Gaussians at the rows are optimal. A step with h |f_t| / s < 1 is one to one, and its inverse
    is found by iteration to rounding; steps are halved until h |f_t| / s <= 0.9. All weights are
    optimized together; solving one time step after the other gives plain PCA. The descent is
    L-BFGS in the metric of the kernel, with the exact adjoint gradient, along penalties from 0.1
    to the last one in factors of about 10, from a small random field.

    Centers are chosen by Cholesky decomposition with pivots until the squared distance of every
    kernel function from their span is below 0.001. On an S-curve of 1 000 rows that takes 113
    centers instead of 1 000 and changes the objective by less than 0.5 %. The width and the penalty
    were chosen by trustworthiness and by what is left off the plane of held-out rows, on curves,
    an S-curve, iris and digits. A swiss roll becomes a spiral that is drawn apart across, and an
    S-curve that is narrower than the S is deep becomes a wider S: nothing in the objective prefers
    an unrolled surface to a squeezed one.

    Beyond 5 000 rows the flow is learned from 5 000 random ones, and the others flow along like new
    rows.

    The descent ends in a flat valley and magnifies rounding. Data that differ in their last digit,
    or another ``random_state``, change the objective by up to 0.6 %, and the map by 0.5 % (circle)
    to 4 % (S-curve) and 8 % (swiss roll) of its size.

    References
    ----------
    Walder & Schoelkopf (2008), Diffeomorphic dimensionality reduction, NIPS 21, 1713-1720.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> flow = DiffeomorphicMap(random_state=0)
    >>> flow.fit_transform(iris().X).shape
    (150, 2)
    """

    width: Any = param(Real(0) | OneOf("auto"), default="auto")
    penalty: float = param(Real(0), default=3e-4)
    n_steps: int = param(Integer(1, 1000), default=10)
    landmarks: int = param(Integer(1), default=200)
    max_iter: int = param(Integer(0), default=300)
    tol: float = param(Real(0, closed="left"), default=1e-5)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    mean_: np.ndarray = fitted("n_features")
    axes_: np.ndarray = fitted("n_axes", "n_features")
    width_: float = fitted(meaning=above(0))
    center_paths_: np.ndarray = fitted("n_times", "n_centers", "n_axes")
    weights_: np.ndarray = fitted("n_times", "n_centers", "n_axes")
    field_norms_: np.ndarray = fitted("n_times")
    distortion_bound_: float = fitted()
    residual_variance_: float = fitted()
    objective_: float = fitted()
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    card = Card(
        keeps="neighborhoods: space is bent smoothly, without tears and folds",
        use="for moderately bent curves and sheets, and for a smooth map with an inverse",
        avoid="for rolled-up or closed surfaces, which are squeezed flat instead of unrolled",
        cost="O(n m d) time per time step and step of the descent, O(n d) memory",
    )
    reference = "Walder & Schoelkopf (2008)"
    aliases = ("diffeomap",)
    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="The axes are principal axes, bent so that the rows lie near them.",
        distances="Rows that are near in the data are near in the map. Rows that are near in the "
        "map may differ in the directions that were flattened.",
        gaps="A gap in the map is a gap in the data, because space is not torn.",
        sizes="Regions are stretched and squeezed smoothly, so sizes of groups in different places "
        "compare only roughly.",
        scale="The axes have the unit of the columns.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 250 gradients of 10 to 20 time steps."""
        d, r = min(n, p, MOST_AXES), min(n, LEARNED_ROWS)
        m, times = min(n, 40 * d, 200), 10 if d < 10 else 20
        pair = 3e-9 + 2.5e-10 * d
        pairs = Estimate(times * r * m * pair, 8 * times * (r + 20 * m) * d)
        flow = Estimate(0.3 * times * n * m * pair, 32 * n * d)
        steps = 250 * pairs.holding(8 * r * m)
        return Estimate(0.05, 0) + principal_axes_cost(n, p, d) + steps + flow

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the plane has as many axes as the map."""
        if len(self.axes_) < self.n_components:
            return f"{len(self.axes_)} 'axes_', but n_components={self.n_components}"
        return super().inconsistency()

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, p = X.shape
        q = self._check_components(n, p)
        # the first field must not depend on how many random numbers the axes of sparse rows need
        first_field = np.random.default_rng(run.rng.integers(2**63))
        with limit_blas(1):  # the map must not depend on the number of threads
            table = dense_if_small(X)  # rounding grows in the descent: the same as of dense rows
            left_out = self._turn(table, q, run)
            Z = self._on_axes(table, run)
            size = float(np.sqrt(np.mean(np.sum(Z**2, axis=1)))) or 1.0
            self.width_ = self._width(Z, size)
            if n > LEARNED_ROWS:
                Z = Z[np.sort(run.rng.choice(n, LEARNED_ROWS, replace=False))]
            self._bend(Z, q, size, left_out, run._replace(rng=first_field))
        self.embedding_ = self._transform(X, run)
        return self.embedding_.copy()

    def _turn(self, X: Any, q: int, run: FitContext) -> float:
        """Keep the principal axes; returns the variance on the axes left out."""
        wanted = min(*X.shape, max(q, MOST_AXES))
        found = leading_axes(X, wanted, run.threads, run.rng, run.monitor)
        varies = found.variances > NO_VARIANCE * found.variances[0]
        d = max(q, int(varies.sum()))
        self.axes_, self.mean_ = np.ascontiguousarray(found.axes[:d]), found.mean
        left_out = found.total_variance - float(found.variances[:d].sum())
        return max(0.0, left_out) * (1 - 1 / X.shape[0])

    def _width(self, Z: np.ndarray, size: float) -> float:
        if isinstance(self.width, str):
            return width_for(Z, size)
        width = float(self.width)
        if not size / EXTREME_WIDTH <= width <= size * EXTREME_WIDTH:
            raise ParameterError(
                f"DiffeomorphicMap: width={width:g} is not comparable with the data, whose size "
                f"is {size:g}; give one from {size / EXTREME_WIDTH:.0e} to "
                f"{size * EXTREME_WIDTH:.0e}, or 'auto'."
            )
        return width

    def _bend(self, Z: np.ndarray, q: int, size: float, left_out: float, run: FitContext) -> None:
        """Find the flow and set the attributes that describe it."""
        (n, d), s = Z.shape, self.width_
        most, times = min(n, int(self.landmarks)), int(self.n_steps)
        require_memory(
            8 * (times * (n * d + most * (25 * d + most)) + n * most),
            task=f"DiffeomorphicMap with {times} steps of {n} rows on {d} axes",
            alternative="fewer steps, or fewer landmarks",
        )
        with run.monitor.phase("centers"):
            chosen = choose_centers(Z / s, most)
        energy, unit = FlowEnergy(Z / s, chosen, q, run.threads), (s / size) ** 2
        resting = np.zeros((times, len(chosen), d))
        flow, losses = energy.flow_of(resting), [unit * energy.residual_of(energy.X)]
        residual = objective = losses[0]
        if self.max_iter > 0 and residual > 0:
            flow, residual, objective, losses = self._learned(energy, unit, run)
        self.center_paths_, self.weights_ = s * flow.centers, s * flow.weights
        self.field_norms_ = norms(flow, run.threads)
        A = -float(np.sum(np.log1p(-self.field_norms_ / len(self.field_norms_))))
        self.distortion_bound_ = float(np.exp(min(A, np.log(LARGEST))))
        on_axes = size**2
        total = on_axes + left_out
        self.residual_variance_ = (residual * on_axes + left_out) / total if total > 0 else 0.0
        self.objective_, self.loss_history_ = objective, np.array(losses)
        self.n_iter_ = len(losses) - 1

    def _learned(self, energy: FlowEnergy, unit: float, run: FitContext) -> LearnedFlow:
        """Minimize E for smaller and smaller penalties, each from the flow of the one before.

        E is reported in units of ``unit``. While a step could fold (h |f_t| near 1), all
        steps are halved.
        """
        n_steps, max_iter = int(self.n_steps), int(self.max_iter)
        penalty, tol = float(self.penalty), float(self.tol)
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
                shown=lambda a: self.width_ * energy.places(a)[-1][:, :q],
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

    # --- rows to the map and back ---------------------------------------------------------------

    def _on_axes(self, X: Any, run: FitContext) -> np.ndarray:
        return products.times(X, self.mean_, self.axes_.T, run.threads).astype(np.float64)

    def _flow(self) -> Flow:
        """In units of the width; a model file may hold other types than a fit leaves behind."""
        paths, weights = (
            np.ascontiguousarray(part, np.float64) for part in (self.center_paths_, self.weights_)
        )
        return Flow(paths / self.width_, weights / self.width_)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        Z = forward(self._on_axes(X, run) / self.width_, self._flow(), run.threads)
        return (self.width_ * Z[:, : int(self.n_components)]).astype(X.dtype)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        Z = np.zeros((len(Y), len(self.axes_)))
        Z[:, : Y.shape[1]] = Y / self.width_
        Z = self.width_ * backward(Z, self._flow(), run.threads)
        X = products.times(Z, np.zeros(Z.shape[1]), self.axes_, run.threads) + self.mean_
        return X.astype(Y.dtype)
