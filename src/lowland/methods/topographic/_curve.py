"""The steps of Hastie & Stuetzle: rows are smoothed along the curve, and projected on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.threads import limit_blas
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.geodesics import shortest_paths
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.neighbors.search import neighbor_graph
from lowland._engines.stress import classical_scaling
from lowland.methods.topographic._smoothers import (
    Kernel,
    Lowess,
    Smoother,
    Spline,
    best_control,
    cells_of,
    control_with,
    gcv,
)

# Where a principal curve starts: the place of each row along a line, a circle or a graph.


ROUGH = 1e-3  # residual of eigenvectors, enough for a start


def along_axis(Z: np.ndarray) -> np.ndarray:
    """The first principal coordinate, as t in 0 .. 1."""
    return _from_0_to_1(Z[:, 0])


def around_circle(Z: np.ndarray) -> np.ndarray:
    """The angle in the plane of the first two coordinates, as t in 0 .. 1."""
    return np.mod(np.arctan2(Z[:, 1], Z[:, 0]) / (2 * np.pi), 1.0)


def along_graph(Z: np.ndarray, n_neighbors: int, closed: bool, run: FitContext) -> np.ndarray:
    """The place of each row between the two ends of its neighbor graph, as t in 0 .. 1.

    With distances along the graph, the ends are a row farthest from the first row, and the row
    farthest from that one. For a closed curve it is the angle in the map of classical scaling of
    these distances, in which a ring is a circle.
    """
    k = min(n_neighbors, len(Z) - 1)
    found = neighbor_graph(Z, k, threads=run.threads, rng=run.rng, monitor=run.monitor)
    graph = connect(symmetrize(found), Z, threads=run.threads, monitor=run.monitor).graph
    if closed:
        D = shortest_paths(graph, threads=run.threads, monitor=run.monitor)
        Y = classical_scaling.of_distances((D + D.T) / 2, 2, run, tol=ROUGH, rough=True).Y
        return around_circle(Y)
    first = int(shortest_paths(graph, [0], threads=1)[0].argmax())
    from_first = shortest_paths(graph, [first], threads=1)[0]
    last = int(from_first.argmax())
    return _from_0_to_1(from_first - shortest_paths(graph, [last], threads=1)[0])


def _from_0_to_1(values: np.ndarray) -> np.ndarray:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


SMOOTHERS: dict[str, type[Smoother]] = {"spline": Spline, "kernel": Kernel, "lowess": Lowess}
FINER = 2  # knots are placed by the length of a polyline that has so many times more
PATIENCE = 10  # steps without a better curve, after which the fit ends
LEAST_DF = (2.0, 3.0)  # a straight line; a circle
STABLE = 0.2  # see stable_df
NOISE_ROWS = 2000  # are enough to measure the noise


class Curve(NamedTuple):
    """Knots (m, p) of a polyline, and the arc length at each."""

    knots: np.ndarray
    arcs: np.ndarray

    @property
    def length(self) -> float:
        return float(self.arcs[-1])


class Projection(NamedTuple):
    """For each row the nearest segment of a curve, the arc length and the squared distance."""

    segments: np.ndarray
    arcs: np.ndarray
    squares: np.ndarray


class Rule(NamedTuple):
    """How a curve is smoothed and how rows are projected.

    ``stretch`` prolongs the ends, in root mean squared distances of the rows from the curve.
    """

    smoother: type[Smoother]
    closed: bool
    n_knots: int
    stretch: float
    threads: int


class Traced(NamedTuple):
    """The last curve, the length of its prolonged ends, and the projection of the rows on it.

    ``score`` estimates the mean squared distance of new rows; ``losses`` are those of the steps.
    """

    curve: Curve
    prolonged: float
    places: Projection
    df: float
    score: float
    losses: list[float]


def as_curve(knots: np.ndarray) -> Curve:
    """The polyline with these knots."""
    steps = np.sqrt(np.sum(np.diff(knots, axis=0) ** 2, axis=1))
    return Curve(knots, np.concatenate([[0.0], np.cumsum(steps)]))


def project(X: np.ndarray, curve: Curve, stretch: float, threads: int) -> Projection:
    """Rows on a curve whose ends are prolonged by a length."""
    n = len(X)
    segments, along, squares = np.empty(n, np.int64), np.empty(n), np.empty(n)
    _native.project_on_polyline(X, curve.knots, stretch, stretch, segments, along, squares, threads)
    return Projection(segments, curve.arcs[segments] + along, squares)


def smoothed(smoother: Smoother, control: float, n_knots: int) -> Curve:
    """The curve of a smoother as a polyline, with knots at about equal distances."""
    fine = np.linspace(0.0, 1.0, FINER * n_knots)
    arcs = as_curve(smoother.curve(control, fine)).arcs
    if arcs[-1] > 0:
        even = np.linspace(0.0, arcs[-1], n_knots)
        # where the curve stands still, arcs do not ascend; a little of t keeps their order
        t = np.interp(even, arcs + 1e-9 * arcs[-1] * fine, fine)
        t[0], t[-1] = 0.0, 1.0
    else:
        t = np.linspace(0.0, 1.0, n_knots)
    knots = smoother.curve(control, t)
    if smoother.closed:
        knots[-1] = knots[0]
    return as_curve(knots)


def on_unit(arcs: np.ndarray, closed: bool, length: float) -> np.ndarray:
    """Arc lengths as t in 0 .. 1: from the first row to the last, or once around."""
    if closed:
        return np.mod(arcs / length, 1.0) if length > 0 else np.zeros(len(arcs))
    low, high = arcs.min(), arcs.max()
    return (arcs - low) / (high - low) if high > low else np.zeros(len(arcs))


def point_on(curve: Curve, arcs: np.ndarray) -> np.ndarray:
    """Points of the curve; beyond its ends those of the prolonged end segments."""
    j = np.clip(np.searchsorted(curve.arcs, arcs, side="right") - 1, 0, len(curve.arcs) - 2)
    steps = np.diff(curve.arcs)[j]
    share = np.divide(arcs - curve.arcs[j], steps, out=np.zeros(len(arcs)), where=steps > 0)
    return curve.knots[j] + share[:, None] * (curve.knots[j + 1] - curve.knots[j])


def noise(X: np.ndarray, curve: Curve, places: Projection) -> float:
    """The variance of the rows around the curve in one of the directions across it.

    (mean squared distance) / (d - 1), d = tr(C)^2 / tr(C^2) directions of the residuals with the
    covariance C, but at least 1. A curve that turns has residuals in one more direction than there
    are across it.
    """
    some = slice(None, None, max(1, len(X) // NOISE_ROWS))
    rest = X[some] - point_on(curve, places.arcs[some])
    # C, or the matrix of inner products of the rows, which has the same traces and may be smaller
    with limit_blas(1):
        C = (rest.T @ rest if len(rest) > rest.shape[1] else rest @ rest.T) / len(rest)
    total, squares = float(np.trace(C)), float(np.sum(C**2))
    return total / max(1.0, total**2 / squares - 1) if squares > 0 else 0.0


def stable_df(length: float, variance: float) -> float:
    """The degrees of freedom up to which a curve does not bend after the noise of single rows.

    A wave of frequency w on a straight curve amid noise of variance s^2 comes back from one
    projection with amplitude -s^2 w^2, and is then smoothed. Smoothing splines with the penalty
    (s^2 / 2 g L^2)^2 keep the factor below g, and have 2 + sqrt(2 g / 8) L / s degrees of freedom.
    The wave dies out for g < 1; g = 0.16 was the best of those tried.
    """
    return 2 + STABLE * length / np.sqrt(variance) if variance > 0 else np.inf


def trace(
    X: np.ndarray,
    t: np.ndarray,
    df: float | None,
    rule: Rule,
    max_iter: int,
    tol: float,
    told: Callable[[Projection, float, int], bool] = lambda places, loss, step: False,
) -> Traced:
    """The curve from the start t in 0 .. 1; ``df`` None: chosen by GCV until the curve settles."""
    losses: list[float] = []
    free, best, since, most_df = df is None, np.inf, 0, np.inf
    while True:
        smoother = rule.smoother(cells_of(t, X), rule.closed)
        if free:
            control = best_control(smoother, LEAST_DF[rule.closed], most_df)
        else:
            control = control_with(smoother, float(df or 0.0))
        curve = smoothed(smoother, control, rule.n_knots)
        spread = np.sqrt(smoother.residual(control))
        prolonged = 0.0 if rule.closed else float(rule.stretch * spread)
        places = project(X, curve, prolonged, rule.threads)
        loss = float(places.squares.mean())
        losses.append(loss)
        settled = len(losses) > 1 and abs(losses[-2] - loss) <= tol * losses[-2]
        since = 0 if loss < best * (1 - tol) else since + 1
        best = min(best, loss)
        if told(places, loss, len(losses)) or len(losses) >= max_iter:
            break
        if settled or since >= PATIENCE:
            if not free:
                break
            df, free, since = smoother.trace(control), False, 0
        t = on_unit(places.arcs, rule.closed, curve.length)
        if np.ptp(t) == 0:  # the curve is a point
            break
        most_df = stable_df(curve.length, noise(X, curve, places))
        most_df = max(most_df, LEAST_DF[rule.closed] + 1)
    score = gcv(smoother, control)
    return Traced(curve, prolonged, places, smoother.trace(control), score, losses)


def tube(traced: Traced, n_across: float) -> float:
    """Entropy of rows around a curve: along it, and of normal noise in the directions across.

    The entropy along is that of Vasicek (1976), by the spacings of the arc lengths; much of the
    curve without rows counts as if it had some. Of several
    curves, the one with the narrowest tube for its length describes the rows best; by distances
    alone a curve that winds through all of a cloud would.
    """
    arcs, n = np.sort(traced.places.arcs), len(traced.places.arcs)
    m = max(1, int(np.sqrt(n) / 2))
    far = arcs[np.minimum(np.arange(n) + m, n - 1)] - arcs[np.maximum(np.arange(n) - m, 0)]
    least = max(1e-9 * traced.curve.length, 1e-300)
    along = float(np.mean(np.log(np.maximum(n / (2 * m) * far, least))))
    if traced.curve.length > 0:
        along = max(along, float(np.log(traced.curve.length)) - 1)
    variance = max(traced.score / n_across, least**2)
    return along + n_across / 2 * float(np.log(2 * np.pi * np.e * variance))


def refined(X: np.ndarray, traced: Traced, rule: Rule) -> Curve:
    """f + S(x - f): what smoothing has taken from the bends is found in the residuals."""
    curve, arcs = traced.curve, traced.places.arcs
    rest = X - point_on(curve, arcs)
    smoother = rule.smoother(cells_of(on_unit(arcs, rule.closed, curve.length), rest), rule.closed)
    control = control_with(smoother, traced.df)
    if rule.closed:
        t = curve.arcs / curve.length
    else:
        t = np.clip((curve.arcs - arcs.min()) / np.ptp(arcs), 0.0, 1.0)
    knots = curve.knots + smoother.curve(control, t)
    if rule.closed:
        knots[-1] = knots[0]
    return as_curve(knots)


def unbiased(curve: Curve, closed: bool, variance: float) -> Curve:
    """f + s^2/2 f'': noise of variance s^2 moves the mean of the rows that much outward.

    Rows around a circle of radius r have the mean radius r + s^2 / (2 r), because noise along the
    circle leads away from it.
    """
    V, h = curve.knots, curve.length / (len(curve.knots) - 1)
    if len(V) < 4 or h == 0:
        return curve
    bend = np.zeros_like(V)
    bend[1:-1] = (V[2:] - 2 * V[1:-1] + V[:-2]) / h**2
    if closed:
        bend[0] = bend[-1] = (V[1] - 2 * V[0] + V[-2]) / h**2
    else:
        bend[0], bend[-1] = bend[1], bend[-2]
    return as_curve(V + variance / 2 * bend)


def directed(curve: Curve, closed: bool) -> Curve:
    """The curve in the direction that is agreed on."""
    V = curve.knots
    turn = V[-1] - V[0]
    if closed:  # counterclockwise in the plane of the two columns that vary most
        a, b = np.argsort(-V.var(axis=0), kind="stable")[:2]
        turn = np.array([np.sum(V[:-1, a] * V[1:, b] - V[1:, a] * V[:-1, b])])
    return as_curve(V[::-1].copy()) if turn[np.abs(turn).argmax()] < 0 else curve
