"""Principal curves (Hastie & Stuetzle 1989)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.constraints import Array, Boolean, Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import Ascending, at_least
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.grids.lattice import Net
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes, principal_axes_cost
from lowland._engines.stress.initial_map import given_numbers
from lowland.methods.topographic import _curve as curves
from lowland.methods.topographic._base import TopographicReducer
from lowland.methods.topographic._smoothers import Spline

START_ROWS = 2000  # starts are compared on so many rows
START_AXES = 30  # and in so many principal axes
START_STEPS = 30
GRAPH_NEIGHBORS = (10, 5)
NO_VARIANCE = 1e-12  # share of the first axis' variance below which an axis is rounding


class PrincipalCurve(TopographicReducer):
    """f(l) = E[X | l(X) = l]: each point of the curve is the mean of the rows that project on it.

    A smooth curve through the middle of the rows; the map is the arc length l at the point nearest
    to a row. It is the curved first principal axis, and where the rows vary in one bent direction
    one number describes what otherwise takes several axes. Use it for gradual processes:
    development, wear, the course of a season. Do not use it for clusters, for branches, or for
    sheets, through which a curve has no natural way. Cost: O(n m p) per step for m knots.

    Parameters
    ----------
    n_components : int, default=1
        Dimension of the map: 1, the arc length. For data with two columns it may be 2.
        The second coordinate is then the signed distance from the curve, positive on its left.
    smoother : {"spline", "kernel", "lowess"}, default="spline"
        How rows are averaged along the curve. "spline" is a penalized cubic spline, "kernel" are
        local lines with Gaussian weights of one width, "lowess" local lines with tricube weights
        over one share of the rows.
    df : float or "auto", default="auto"
        Degrees of freedom of the smoother, from 2 (a straight line; closed: 3, a circle) to n.
        "auto" is generalized cross-validation, up to the number at which the curve would begin to
        follow the noise.
    closed : bool, default=False
        Fit a closed curve, whose end is its beginning.
    bias_correction : bool, default=False
        Undo the two biases of a curve in its bends, at the end.
        Smoothing pulls it inward; the residuals, smoothed, are added to the curve. Noise of
        variance s^2 across it pushes it outward by s^2/2 times its curvature; it is moved back.
    init : {"auto", "principal_axis", "geodesic"} or array of shape (n_samples, 1), default="auto"
        Where the rows are along the first curve. "principal_axis" is the first axis, or for closed
        curves the angle in the plane of the first two. "geodesic" is the place between the ends
        of a neighbor graph. "auto" tries both. An array holds positions along a line.
    stretch : float, default=2.0
        The ends are prolonged by this times the root mean squared distance of the rows.
        Rows beyond an end then do not all fall on it. A closed curve has no ends.
    n_knots : int, default=200
        Number of points of the curve, 2 to 10 000. Rows are projected on the lines between them.
    max_iter : int, default=50
        Maximum number of steps: smoothing, and projection.
    tol : float, default=0.001
        The fit ends when the squared distance changes by less than this share of itself.

    Attributes
    ----------
    curve_ : ndarray of shape (n_knots, n_features)
        Points of the curve, at about equal distances. The last point of a closed curve is its
        first.
    arc_lengths_ : ndarray of shape (n_knots,)
        Arc length at each of these points, from 0 to ``length_``.
    embedding_ : ndarray of shape (n_samples, n_components)
        Arc lengths of the fitted rows. Those on the prolonged ends are below 0 or above
        ``length_``.
    distances_ : ndarray of shape (n_samples,)
        Distances of the fitted rows from the curve.
    length_ : float
        Length of the curve.
    prolongation_ : float
        How far each end is prolonged; 0 for a closed curve.
    smoothness_ : float
        Degrees of freedom of the smoother.
    mean_squared_distance_ : float
        Of the fitted rows from the curve.
    loss_history_ : ndarray of shape (n_losses,)
        The mean squared distance after each step.

    Notes
    -----
    Before a step, rows are averaged in at most 2 000 cells of neighbors along the curve; local
    lines take 500. A spline has up to 100 knots; with one at each row it is the smoothing spline.
    The smoothers do not weigh down outliers.

    The paper starts from the principal axis, which fails where a curve turns back, as a spiral
    does. A neighbor graph, with 10 and with 5 neighbors, then gives a better start. Starts are
    compared on up to 2 000 rows and in 30 principal axes, with splines, by the entropy of rows
    around the curve: along it, and of normal noise across. The squared distance alone would prefer
    a curve that winds through all of a cloud.

    Cross-validation takes the places along the curve as given, but they follow the noise if the
    curve does. So the degrees of freedom are at most 2 + 0.2 L / s, with the length L and the
    noise s across. Of the factors tried, 0.2 recovered circles, spirals, helices and cubics of 150
    to 2 000 rows; from 0.3 on, some curves wound around theirs. Once the curve settles, the degrees
    of freedom are kept, so that the steps can end. There is no proof that they do; they also end
    after 10 without a shorter distance.

    The paper's curve is biased outward where it bends, by s^2 / (2 r) for the radius r, and
    smoothing pulls it inward. ``bias_correction`` smooths the residuals once, as Banfield &
    Raftery do in every step, and then undoes the first bias as on a circle, for one variance s^2 in
    all directions across.

    The arc length runs so that the largest coordinate of the last point minus the first is
    positive. New rows far beyond an end are placed at the end of its prolongation. Points of
    the map are taken back to the curve, and beyond its ends along straight lines.

    References
    ----------
    Hastie & Stuetzle (1989), Principal curves, Journal of the American Statistical Association 84,
    502-516.
    Banfield & Raftery (1992), Ice floe identification in satellite images using mathematical
    morphology and clustering about principal curves, the same journal 87, 7-16.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> curve = PrincipalCurve()
    >>> curve.fit_transform(iris().X).shape
    (150, 1)
    >>> curve.curve_.shape
    (200, 4)
    """

    n_components: Any = param(Integer(1), default=1, kw_only=False)
    smoother: str = param(OneOf(*curves.SMOOTHERS), default="spline")
    df: Any = param(Real(2, closed="left") | OneOf("auto"), default="auto")
    closed: bool = param(Boolean(), default=False)
    bias_correction: bool = param(Boolean(), default=False)
    init: Any = param(OneOf("auto", "principal_axis", "geodesic") | Array(), default="auto")
    stretch: float = param(Real(0, closed="left"), default=2.0)
    n_knots: int = param(Integer(2, 10_000), default=200)
    max_iter: int = param(Integer(1), default=50)
    tol: float = param(Real(0, closed="left"), default=1e-3)

    curve_: np.ndarray = fitted("n_points", "n_features")
    arc_lengths_: np.ndarray = fitted("n_points", meaning=(at_least(0), Ascending()))
    embedding_: np.ndarray = fitted("n_samples", "n_components")
    distances_: np.ndarray = fitted("n_samples")
    length_: float = fitted(meaning=at_least(0))
    prolongation_: float = fitted(meaning=at_least(0))
    smoothness_: float = fitted()
    mean_squared_distance_: float = fitted()
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    card = Card(
        keeps="the order along one bent direction, and distances along it",
        use="for gradual processes, in which rows follow each other along a curve",
        avoid="for clusters, branches and sheets, through which a curve has no natural way",
        cost="O(n m p) time per step for m knots, O(n p) memory",
    )
    reference = "Hastie & Stuetzle (1989)"
    aliases = ("principal_curves", "princurve")
    accepts_sparse = True
    components_limit = "curve"
    reading = Reading(
        axes="The first axis is the arc length of a curve through the middle of the data, the "
        "second, if there is one, the distance from it.",
        distances="Rows that are near in the map project on near points of the curve. They may be "
        "far from each other across it.",
        gaps="A gap in the map is a gap in the data along the curve.",
        sizes="Lengths along the curve are those of the data, and compare.",
        scale="The axes have the unit of the columns.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: about 5 steps, and the comparison of starts."""
        starts = 0.25 + 1e-4 * min(n, START_ROWS)
        steps = 5 * n * (2.5e-7 + 5e-8 * p)
        axes = principal_axes_cost(n, p, min(n, p, START_AXES))
        return Estimate(starts + steps, 8 * n * (2 * p + 20)) + axes

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: a curve has two points."""
        if len(self.curve_) < 2:
            return "'curve_' has fewer than 2 points"
        if self.n_components > self.most_components(len(self.embedding_), self.n_features_in_):
            return f"n_components={self.n_components} for {self.n_features_in_} columns"
        return super().inconsistency()

    def net(self) -> Net:
        """See :meth:`TopographicReducer.net`."""
        self._require_fitted()
        return Net(self.curve_, None, bool(self.closed))

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, p = X.shape
        self._check_components(n, p)
        least = curves.LEAST_DF[self.closed]
        if not isinstance(self.df, str) and not least <= self.df <= n:
            raise ParameterError(
                f"PrincipalCurve: df={self.df:g} is not possible; give a number from {least:g} to "
                f"the {n} rows of X, or 'auto'."
            )
        # sums must not depend on the layout
        X = np.ascontiguousarray(as_dense(X, type(self).__name__))
        require_memory(
            8 * n * (2 * p + 20),
            task=f"PrincipalCurve of {n} rows x {p} columns",
            alternative="fit it to a part of the rows",
        )
        with limit_blas(1):  # the curve must not depend on the number of threads
            mean = X.mean(axis=0, dtype=np.float64)
            found = self._traced(np.ascontiguousarray(X - mean, dtype=np.float64), run)
        self.curve_, self.arc_lengths_ = found.curve.knots + mean, found.curve.arcs
        self.length_, self.prolongation_ = found.curve.length, found.prolonged
        self.smoothness_ = found.df
        self.loss_history_, self.n_iter_ = np.array(found.losses), len(found.losses)
        places = self._project(X, run)
        self.distances_ = np.sqrt(places.squares)
        self.mean_squared_distance_ = float(places.squares.mean())
        self.embedding_ = self._coordinates(X, places)
        return self.embedding_.copy()

    def _traced(self, Z: np.ndarray, run: FitContext) -> curves.Traced:
        """The curve through centered rows."""
        with run.monitor.phase("principal axes") as phase:
            n_axes = min(*Z.shape, START_AXES)
            found = leading_axes(Z, n_axes, run.threads, run.rng, run.monitor)
            phase.advance()
        variances = found.variances
        flat = len(variances) < 2 or variances[1] <= NO_VARIANCE * variances[0]
        if self.closed and flat:
            raise DataError(
                "PrincipalCurve: the rows lie on a line, around which no closed curve leads; "
                "fit an open one, closed=False."
            )
        if not variances[0] > 0:  # equal rows: the curve is a point
            curve = curves.Curve(np.zeros((2, Z.shape[1])), np.zeros(2))
            places = curves.Projection(np.zeros(len(Z), np.int64), *np.zeros((2, len(Z))))
            return curves.Traced(curve, 0.0, places, 1.0, 0.0, [0.0])
        shape = (bool(self.closed), int(self.n_knots), float(self.stretch))
        rule = curves.Rule(curves.SMOOTHERS[self.smoother], *shape, run.threads)
        scores = products.times(Z, found.mean, np.ascontiguousarray(found.axes.T), run.threads)
        t = self._start(np.ascontiguousarray(scores), variances, rule, run)

        def told(places: curves.Projection, loss: float, step: int) -> bool:
            return run.monitor.iteration(step, places.arcs[:, None], loss, int(self.max_iter))

        traced = curves.trace(Z, t, self._df(), rule, int(self.max_iter), float(self.tol), told)
        curve = traced.curve
        if self.bias_correction and np.ptp(traced.places.arcs) > 0:
            variance = curves.noise(Z, curve, traced.places)
            curve = curves.unbiased(curves.refined(Z, traced, rule), rule.closed, variance)
        return traced._replace(curve=curves.directed(curve, rule.closed))

    def _df(self) -> float | None:
        return None if isinstance(self.df, str) else float(self.df)

    def _start(
        self, scores: np.ndarray, variances: np.ndarray, rule: curves.Rule, run: FitContext
    ) -> np.ndarray:
        """The place of each row along the first curve, in 0 .. 1."""
        n, closed = len(scores), bool(self.closed)
        if not isinstance(self.init, str):
            given = given_numbers(self.init, (n, 1), f"it needs one position for {n} rows")[:, 0]
            if np.ptp(given) == 0:
                raise DataError("init holds one position for all rows; give different ones.")
            return curves.on_unit(given, False, 0.0) * (1 - closed / n)
        plain = curves.around_circle if closed else curves.along_axis
        if self.init == "principal_axis":
            return plain(scores)
        some = np.arange(n)
        if n > START_ROWS:
            some = np.sort(run.rng.choice(n, START_ROWS, replace=False))
        Z = np.ascontiguousarray(scores[some])
        starts = [curves.along_graph(Z, k, closed, run) for k in GRAPH_NEIGHBORS if k < n]
        if self.init == "auto" or not starts:
            starts.insert(0, plain(Z))
        n_across = max(1.0, float(variances.sum() ** 2 / np.sum(variances**2)) - 1)
        rule = rule._replace(smoother=Spline)  # the fastest one
        steps, tried = min(START_STEPS, int(self.max_iter)), []
        with run.monitor.phase("comparing starts", len(starts)) as phase:
            for t in starts:
                if np.ptp(t) > 0:
                    tried.append(curves.trace(Z, t, self._df(), rule, steps, float(self.tol)))
                phase.advance()
        best = min(tried, key=lambda traced: curves.tube(traced, n_across))
        places = curves.project(scores, best.curve, best.prolonged, run.threads)
        return curves.on_unit(places.arcs, closed, best.curve.length)

    # --- rows to the map and back ---------------------------------------------------------------

    def _project(self, X: Any, run: FitContext) -> curves.Projection:
        X = np.ascontiguousarray(X)
        return curves.project(X, self._curve(), self.prolongation_, run.threads)

    def _curve(self) -> curves.Curve:
        return curves.Curve(np.ascontiguousarray(self.curve_), self.arc_lengths_)

    def _coordinates(self, X: np.ndarray, places: curves.Projection) -> np.ndarray:
        arcs = places.arcs
        if self.closed:  # the end is the beginning
            arcs = np.where(arcs >= self.length_, 0.0, arcs)
        Y = [arcs]
        if self.n_components == 2:
            across = self._normals(places.segments)
            gaps = X - self.curve_[places.segments]
            side = np.einsum("ij,ij->i", gaps, across)
            Y.append(np.copysign(np.sqrt(places.squares), side))
        return np.stack(Y, axis=1).astype(X.dtype)

    def _normals(self, segments: np.ndarray) -> np.ndarray:
        """Unit vectors to the left of segments in the plane; zero for those without a length."""
        steps = self.curve_[segments + 1] - self.curve_[segments]
        lengths = np.hypot(steps[:, 0], steps[:, 1])
        left = np.stack([-steps[:, 1], steps[:, 0]], axis=1)
        return left / np.where(lengths > 0, lengths, 1.0)[:, None]

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X = as_dense(X, type(self).__name__)
        return self._coordinates(X, self._project(X, run))

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        arcs = Y[:, 0].astype(np.float64)
        if self.closed and self.length_ > 0:
            arcs = np.mod(arcs, self.length_)
        X = curves.point_on(self._curve(), arcs)
        if self.n_components == 2:
            ends = np.searchsorted(self.arc_lengths_, arcs, side="right") - 1
            X += Y[:, 1:] * self._normals(np.clip(ends, 0, len(self.curve_) - 2))
        return X.astype(Y.dtype)
