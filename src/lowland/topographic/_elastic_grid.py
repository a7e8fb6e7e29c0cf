"""The grid of an elastic map: how many nodes along each axis, and where they start.

Axes along which the data do not vary have one node and no part in the grid.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import require_memory
from lowland._engines.grids.lattice import Lattice, sides_for
from lowland._engines.grids.principal_plane import PrincipalPlane, principal_plane

CLOSED = {"ring": 1, "cylinder": 1}  # how many of the first axes are closed
AXES = {"hexagon": 2, "ring": 1, "cylinder": 2}  # a rectangle has any number
EXTENT = 1.75  # deviations: half the width of a uniform distribution is 1.73
USUAL_NODES = {1: 50, 2: 400, 3: 1000}
MOST_NODES = 100_000
BYTES_PER_NODE = 3000  # of matrices, factors and simplices
FEWEST = 3  # nodes around a closed axis
NO_VARIANCE = 1e-7  # of the largest deviation; less is rounding


class Start(NamedTuple):
    """Nodes along each axis, their first points less the mean of X, and what PCA explains."""

    shape: tuple[int, ...]
    nodes: np.ndarray
    mean: np.ndarray
    variance: float  # mean squared distance of the rows from their mean
    plane_ratio: float  # share of it in the principal plane with as many axes


def lattice_of(grid: str, shape: tuple[int, ...]) -> Lattice:
    """The lattice of the axes that have more than one node."""
    active = [axis for axis, side in enumerate(shape) if side > 1]
    sides = tuple(shape[axis] for axis in active)
    closed = tuple(axis < CLOSED.get(grid, 0) for axis in active)
    kind = "hexagon" if grid == "hexagon" and len(active) == 2 else "rectangle"
    return Lattice(kind, sides, closed)  # type: ignore[arg-type]


def start(X: np.ndarray, grid: str, n_nodes: Any, q: int, run: FitContext) -> Start:
    """A grid on the plane of the first principal axes, or around an ellipse in it."""
    if AXES.get(grid, q) != q:
        raise ParameterError(
            f"ElasticMap: grid={grid!r} is for n_components={AXES[grid]}, not {q}; choose that, or "
            "grid='rectangle'."
        )
    n, p = X.shape
    plane = principal_plane(X, min(q + CLOSED.get(grid, 0), n, p), run)
    variance = plane.total_variance * (1 - 1 / n)
    explained = float(np.sum(plane.deviations[:q] ** 2))
    ratio = min(1.0, explained / plane.total_variance) if plane.total_variance > 0 else 1.0
    axes = _axes(plane, grid, q)
    shape = _shape(grid, n_nodes, axes.spreads)
    total = math.prod(shape)
    if total > MOST_NODES:
        raise ParameterError(
            f"ElasticMap: n_nodes={n_nodes!r} makes a grid of {total} nodes; ask for at most "
            f"{MOST_NODES}."
        )
    band = 2 * total // max(shape)  # of the matrix of each step
    require_memory(
        total * (48 * p + 16 * band + BYTES_PER_NODE),
        task=f"ElasticMap with {total} nodes",
        alternative="fewer nodes (n_nodes)",
    )
    nodes = np.zeros((total, p))
    lattice = lattice_of(grid, shape)
    if lattice.sides:
        nodes = _points(
            lattice, [a for a, side in zip(axes.curves, shape, strict=True) if side > 1]
        )
    return Start(shape, nodes, plane.mean, variance, ratio)


class _Axes(NamedTuple):
    """Of each axis its length, and two vectors: of its half length, or of an ellipse."""

    spreads: list[float]
    curves: list[np.ndarray]


def _axes(plane: PrincipalPlane, grid: str, q: int) -> _Axes:
    deviations = np.zeros(q + 2)
    deviations[: len(plane.deviations)] = plane.deviations
    deviations[deviations <= NO_VARIANCE * deviations.max()] = 0
    vectors = np.zeros((q + 2, plane.axes.shape[1]))
    vectors[: len(plane.axes)] = plane.axes
    vectors *= deviations[:, None]
    order = list(range(q + 2))
    if grid == "cylinder" and deviations[1] ** 2 < deviations[2] * deviations[0]:
        order = [1, 2, 0, 3]  # the last two are more alike: the cylinder is longer than wide
    spreads, curves = [], []
    for axis in range(q):
        if axis < CLOSED.get(grid, 0):
            pair = vectors[order[:2]] * np.sqrt(2)
            spreads.append(2 * np.pi * float(np.sqrt(np.mean(np.sum(pair**2, axis=1)))))
            curves.append(pair)
        else:
            at = order[axis + CLOSED.get(grid, 0)]
            spreads.append(2 * EXTENT * float(deviations[at]))
            curves.append(EXTENT * vectors[at][None])
    return _Axes(spreads, curves)


def _shape(grid: str, n_nodes: Any, spreads: list[float]) -> tuple[int, ...]:
    q, varies = len(spreads), np.array(spreads) > 0
    least = [FEWEST if axis < CLOSED.get(grid, 0) else 2 for axis in range(q)]
    if isinstance(n_nodes, str):
        n_nodes = USUAL_NODES[int(varies.sum())] if varies.any() else 1
    if np.ndim(n_nodes) > 0:
        if len(n_nodes) != q:
            raise ParameterError(
                f"ElasticMap: n_nodes has {len(n_nodes)} entries, but n_components={q}; give one "
                "number for each axis, or one for all nodes together."
            )
        sides = [int(side) for side in n_nodes]
    else:
        kind = "hexagon" if grid == "hexagon" and varies.all() else "rectangle"
        found = iter(
            sides_for(int(n_nodes), np.array(spreads)[varies], kind) if varies.any() else ()
        )
        sides = [next(found) if moves else 1 for moves in varies]
    return tuple(
        max(side, low) if moves else 1
        for side, low, moves in zip(sides, least, varies, strict=True)
    )


def _points(lattice: Lattice, curves: list[np.ndarray]) -> np.ndarray:
    """Sums over the axes: along a straight one from -1 to 1, around a closed one an ellipse."""
    places, periods = lattice.places(), lattice.periods()
    ends = places.max(axis=0)
    total = np.zeros((len(places), curves[0].shape[1]))
    for along, period, end, curve in zip(places.T, periods, ends, curves, strict=True):
        if period:
            angles = 2 * np.pi * along / period
            total += np.outer(np.cos(angles), curve[0]) + np.outer(np.sin(angles), curve[1])
        else:
            total += np.outer(2 * along / end - 1, curve[0])
    return total
