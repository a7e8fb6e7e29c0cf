"""Data-driven high-dimensional scaling, DD-HDS (Lespinats et al. 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.constraints import Real
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._engines.local_stress.objective import (
    AllPairs,
    Law,
    LocalStress,
    geometric,
    place_by_law,
)
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_distances
from lowland.methods.curvilinear._base import CurvilinearReducer, centered, in_unit

WIDEST = 0.7  # the reach that the annealing begins with
# |gap| is rounded off within this share of the deviation, at the beginning and at the end
ROUGH, FINE = 0.3, 1e-3
NEW = 0.1  # for new rows, whose narrow valleys would be hard to follow


class DDHDS(CurvilinearReducer):
    """E = sum |delta - d| F(min(delta, d)), F(u) = 1 - Phi((u - m) / s): short in either space.

    Errors count if a pair is near in the data or in the map, so that neighbors are neither torn
    apart nor invented as far as possible; the distribution of the distances sets the weights. In
    data of many columns, where distances are concentrated around their mean, ``reach`` sets how
    much of that bulk counts. Absolute errors tolerate outliers. Cost: O(n^2 q) per step and n^2
    numbers; for more rows than memory holds, fit a sample and place the others.

    Parameters
    ----------
    reach : float, default=0.2
        lambda of the paper, from 0.001 to 1. Small values keep the shortest distances only,
        with 0.9 about half of all distances count. Of six tables, 0.1 to 0.3 kept neighbors best.
    tol : float, default=1e-5
        The fit stops when a step of the last stage lowers the loss by less than this share.

    Attributes
    ----------
    stress_ : float
        Objective E of the map.
    loss_history_ : ndarray of shape (n_steps,)
        E with absolute errors rounded off near 0, at the start and after each step. The rounding
        and the reach shrink in 20 stages; within a stage it never increases.
    weight_center_, weight_width_ : float
        m = mean - 2 (1 - lambda) deviation of the distances, and s = 2 lambda deviation.
    stress_per_point_ : ndarray of shape (n_samples,)
        Weighted absolute error of each row, sum_j |delta - d| F(min(delta, d)), relative to the sum
        for a map in which all points coincide.

    Notes
    -----
    The weights are those of the paper as we know it from secondary sources. The paper moves points
    by springs and adds random ("Brownian") forces that fade; here quasi-Newton steps lower E
    with its exact gradient, in which |gap| is sqrt(gap^2 + e^2) - e. The reach begins at 0.7 and e
    at 0.3 of the deviation, and both shrink geometrically; on spheres and digits this ended at a
    lower E than random forces. The deviation is that of all pairs i < j, without Bessel's
    correction. A new row whose nearest fitted row is farther than m is placed with that distance in
    place of m, because all its weights would be about 0; for new rows e is 0.1 of the deviation.

    References
    ----------
    Lespinats, Verleysen, Giron & Fertil (2007), DD-HDS: a method for visualization and exploration
    of high-dimensional data, IEEE Trans. Neural Networks 18, 1265-1279.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> DDHDS(random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    reach: float = param(Real(0.001, 1, closed="both"), default=0.2)
    tol: float = param(Real(0, closed="left"), default=1e-5)

    weight_center_: float = fitted()
    weight_width_: float = fitted(meaning=above(0))

    card = Card(
        keeps="distances that are short in the data or in the map",
        use="for data of many columns, whose distances are concentrated around their mean",
        avoid="for more than some thousand rows; fit a sample of them",
        cost="O(n^2) per step and memory",
    )
    reference = "Lespinats, Verleysen, Giron & Fertil (2007)"

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 200 steps over all pairs."""
        distances = cls._distances_cost(n, p)
        steps = Estimate(200 * (2e-9 * n * n + 1e-4), 4 * n * n).holding(distances.n_bytes)
        return (Estimate(0.05, 0) + distances + steps).holding(16 * n * p)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n = X.shape[0]
        advice = "fit a sample of the rows and transform the others"
        require_memory(8 * n * n, task=f"DDHDS with all pairs of {n} rows", alternative=advice)
        D = self._distances(X, run, advice)
        mean, deviation = _moments(D)
        unit = mean or 1.0
        delta = in_unit(D, unit)
        spread = deviation / unit or 1.0
        pairs, equal = AllPairs(delta, run.threads), equal_in_distances(delta)
        Y = self._start(X, run, D) / unit
        if self.max_iter > 0:
            Y = self._separated(Y, equal, run) if mean > 0 else at_common_place(Y, equal)
        first, last = max(WIDEST, float(self.reach)), float(self.reach)

        def objective_at(t: float, Y: np.ndarray) -> LocalStress:
            law = weights(mean / unit, spread, geometric(first, last, t))
            law = law._replace(rounding=geometric(ROUGH, FINE, t) * spread)
            return LocalStress(pairs, law, np.empty(0))

        found = self._annealed(objective_at, Y, unit, 1, run)
        law = weights(mean / unit, spread, last)
        sums = pairs.sums(found.Y, law, np.empty(0)).stress
        crushed = pairs.sums(np.zeros((n, 1)), law, np.empty(0)).stress
        self.weight_center_, self.weight_width_ = law.center * unit, law.width * unit
        self.stress_ = float(sums.sum()) / 2 * unit
        self.stress_per_point_ = sums / np.where(crushed > 0, crushed, 1.0)
        self.loss_history_, self.n_iter_ = found.losses * unit, found.n_iter
        self.embedding_ = centered(found.Y, unit).astype(X.dtype)
        self.fitted_rows_ = None if self._has_distances else X.copy()
        return self.embedding_.copy()

    # --- new rows -----------------------------------------------------------------------------

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        center, width = self.weight_center_, self.weight_width_
        rounding = NEW * width / (2 * float(self.reach))
        law = Law("symmetric", center=center, width=width, rounding=rounding)
        Z, nearest = np.empty((len(D), int(self.n_components))), D.min(axis=1)
        usual = np.flatnonzero(nearest <= center)
        # a row far from all others has weights of 0, and a place only by its own nearest distances
        for rows in ([usual] if usual.size else []) + [
            [i] for i in np.flatnonzero(nearest > center)
        ]:
            own = law._replace(center=max(center, float(nearest[rows].max())))
            Z[rows] = place_by_law(
                D[rows], self.embedding_, own, np.ones(len(rows)), np.empty(0), run.threads
            )
        return Z


def weights(mean: float, deviation: float, reach: float) -> Law:
    """F of distances with this mean and deviation, without rounding."""
    center = mean - 2 * (1 - reach) * deviation
    return Law("symmetric", center=center, width=2 * reach * deviation)


def _moments(D: np.ndarray) -> tuple[float, float]:
    """Mean and deviation of the distances of all pairs i < j."""
    n_pairs = len(D) * (len(D) - 1)
    mean = float(D.sum(dtype=np.float64)) / n_pairs
    square = float(np.einsum("ij,ij->", D, D, dtype=np.float64)) / n_pairs
    # the diagonal adds nothing to either sum
    return mean, float(np.sqrt(max(0.0, square - mean * mean)))
