"""Diffeomorphic dimensionality reduction (Walder & Schoelkopf 2008)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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
from lowland.methods.unfolding._flow_descent import (
    Flow,
    FlowEnergy,
    backward,
    choose_centers,
    forward,
    learn_flow,
    norms,
    width_for,
)

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
        "map may differ in what was squeezed flat.",
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
            self._bend(_some_rows(Z, run), q, size, left_out, run._replace(rng=first_field))
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
            flow, residual, objective, losses = learn_flow(
                energy,
                times,
                float(self.penalty),
                unit=unit,
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                width=s,
                run=run,
            )
        self.center_paths_, self.weights_ = s * flow.centers, s * flow.weights
        self.field_norms_ = norms(flow, run.threads)
        A = -float(np.sum(np.log1p(-self.field_norms_ / len(self.field_norms_))))
        self.distortion_bound_ = float(np.exp(min(A, np.log(LARGEST))))
        on_axes = size**2
        total = on_axes + left_out
        self.residual_variance_ = (residual * on_axes + left_out) / total if total > 0 else 0.0
        self.objective_, self.loss_history_ = objective, np.array(losses)
        self.n_iter_ = len(losses) - 1

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


def _some_rows(Z: np.ndarray, run: FitContext) -> np.ndarray:
    """The rows that the flow is learned from."""
    if len(Z) <= LEARNED_ROWS:
        return Z
    return Z[np.sort(run.rng.choice(len(Z), LEARNED_ROWS, replace=False))]
