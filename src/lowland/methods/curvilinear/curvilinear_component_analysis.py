"""Curvilinear component analysis (Demartines & Herault 1997)."""

from __future__ import annotations

import numpy as np

from lowland._base.base import Invertible
from lowland._base.constraints import OneOf
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.params import param
from lowland._base.traits import Card, Estimate
from lowland._base.validation import as_dense
from lowland._engines.distances.distance_rows import CrossDistances
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.local_stress.objective import RADIAL, Law, law_height
from lowland._engines.stress.placement import between_nearest, settled
from lowland.methods.curvilinear._base import RadialReducer

# Rows for points of a map: the placement of new rows with the roles of the spaces exchanged.


CLOSE = 1e-9  # of the size of the rows: a row that moves less has converged


def rows_at(
    T: np.ndarray, X: np.ndarray, law: Law, own: np.ndarray, radii: np.ndarray, threads: int
) -> np.ndarray:
    """Rows (m, p) at the distances T (m, n) from the rows X, as far as those count.

    Each minimizes sum_j F(t_j) (t_j - |x - x_j|)^2, from the mean of the rows of the three nearest
    points, weighted by inverse distances. A point of the map that has a row gets that row. F is
    that of the distances in the map: weights that change with x would be 0 for all rows where the
    descent begins, if the map is smaller than the data.
    """
    X = np.ascontiguousarray(X, np.float64)
    equal = T == 0
    found = X[equal.argmax(axis=1)]
    new = np.flatnonzero(~equal.any(axis=1))
    if new.size:
        targets = np.ascontiguousarray(T[new])
        height = law_height(targets, X, law._replace(tradeoff=1.0), own[new], radii, threads)
        width = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
        found[new] = settled(between_nearest(targets, X), height, CLOSE * width)[0]
    return found


class CurvilinearComponentAnalysis(RadialReducer, Invertible):
    """E = 1/2 sum (delta_ij - d_ij)^2 F(d_ij, r): errors count for pairs that are near in the map.

    The radius r shrinks from the whole map to the radius of a neighborhood. What is near in the map
    is then near in the data: the map can be trusted, and closed surfaces (spheres, cylinders,
    rings) are torn rather than crushed. Use it for curved or closed shapes and for clusters that
    overlap in PCA. Do not read long distances or the width of gaps, and see CDA for a shape that
    is rolled up. Cost: O(n^2 q) per step and n^2 numbers up to 4000 rows, O(n) beyond; about
    300 steps.

    Parameters
    ----------
    weighting : {"step", "exp", "sigmoid"}, default="step"
        F: 1 up to r ("step"), exp(-d / r), or a smooth fall from 1 at r / 2 to 0 at 3 r / 2
        ("sigmoid").

    Attributes
    ----------
    radii_ : ndarray of shape (n_samples,)
        Final radius r, the same for all rows: the mean distance to the k-th neighbor.

    Notes
    -----
    The paper picks a random row i and moves every other row j along y_j - y_i, by
    a F(d) (delta - d) with a step a that decreases. It treats F as a constant, because E itself is
    lowest where all points are far apart. Its mean force is the slope of the potential
    2 int_delta^d (u - delta) F(u) du, which quasi-Newton steps lower here; they end at a lower E in
    less time. The radius begins at the largest distance of the start and shrinks geometrically in
    20 stages, with a smooth F in place of a step, which catches fewer points at wrong places; the
    last stage has the F that was asked for. As in the paper, a part of the rows makes the map of
    large data, and the others are placed in it; the paper quantizes, here they are drawn at random.

    A new row is placed where its own potential is lowest, with the larger of r and the distance to
    its k-th fitted neighbor as its radius, so that outliers have a place, too. The inverse does the
    same with the roles of the spaces exchanged, as in the paper, but with the weights of the
    distances in the map, which do not change on the way. It needs Euclidean rows.

    References
    ----------
    Demartines & Herault (1997), Curvilinear component analysis: a self-organizing neural network
    for nonlinear mapping of data sets, IEEE Trans. Neural Networks 8, 148-154.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> CurvilinearComponentAnalysis(random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    weighting: str = param(OneOf(*RADIAL), default="step")

    card = Card(
        keeps="short distances: what is near in the map is near in the data",
        use="for curved or closed shapes and overlapping clusters, which are torn and not crushed",
        avoid="to read long distances, or to unroll a tight roll: CDA follows the surface",
        cost="O(n^2) per step and memory up to 4000 rows, O(n) beyond",
    )
    reference = "Demartines & Herault (1997)"
    aliases = ("cca",)

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        return cls._radial_cost(n, p)

    def _law(self) -> Law:
        return Law(self.weighting)

    # --- back ---------------------------------------------------------------------------------

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        if self.fitted_rows_ is None or self.metric != "euclidean":
            raise ParameterError(
                f"CurvilinearComponentAnalysis: inverse_transform needs rows with "
                f"metric='euclidean', not {self.metric!r}; fit such rows."
            )
        X = as_dense(self.fitted_rows_, type(self).__name__)
        back = np.empty((len(Y), X.shape[1]))
        places = self.embedding_[self.landmarks_]
        cross = CrossDistances(places, "euclidean", None, run.threads)
        for rows in row_blocks(len(Y), rows_within(8 * len(X))):
            T = cross.of(np.ascontiguousarray(Y[rows], np.float64))
            back[rows] = rows_at(T, X, self._law(), self._own_radii(T), self.radii_, run.threads)
        return back.astype(self.embedding_.dtype)
