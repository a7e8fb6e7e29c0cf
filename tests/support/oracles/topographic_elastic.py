"""Where rows belong on an elastic surface, and which points lie at places of the map."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from support.oracles.basics import HeldOut, first_nearest

HEIGHT = np.sqrt(3) / 2


class _Surface:
    """Nodes with their places in steps, and all simplices of neighboring nodes."""

    def __init__(self, task: HeldOut) -> None:
        model, self.grid = task.model, task.params["grid"]
        shape = [int(side) for side in model.shape_]
        self.closed = [
            axis == 0 and self.grid in ("ring", "cylinder") for axis in range(len(shape))
        ]
        layers = int(task.params["extrapolate"])
        more = [0 if closed else layers for closed in self.closed]
        if self.grid == "hexagon":
            more[1] += layers % 2
        self.sides = [side + 2 * m for side, m in zip(shape, more, strict=True)]
        self.nodes = np.asarray(model.surface_, float)
        if self.grid != "hexagon":
            self.nodes = _continued(np.asarray(model.nodes_, float), shape, more)
        self.number = {at: i for i, at in enumerate(itertools.product(*map(range, self.sides)))}
        self.simplices = list(self._triangles() if self.grid == "hexagon" else self._kuhn())
        places = np.array([self.place(at) for at in self.number])
        self.center = (places.max(axis=0) + np.array(self.closed)) / 2
        self.lengths = np.asarray(model.step_lengths_, float)

    def place(self, at: Any) -> list[float]:
        if self.grid != "hexagon":
            return [float(a) for a in at]
        return [at[0] + 0.5 * (at[1] % 2), at[1] * HEIGHT]

    def _kuhn(self) -> Any:
        """From each node to the opposite corner of its cell, by one axis after the other."""
        q = len(self.sides)
        for low in self.number:
            for order in itertools.permutations(range(q)):
                path = [list(low)]
                for axis in order:
                    path.append([a + (k == axis) for k, a in enumerate(path[-1])])
                ends = zip(path[-1], self.sides, self.closed, strict=True)
                if all(closed or a < side for a, side, closed in ends):
                    yield path

    def _triangles(self) -> Any:
        for three in itertools.combinations(self.number, 3):
            P = [np.array(self.place(at)) for at in three]
            if all(abs(np.hypot(*(a - b)) - 1) < 1e-9 for a, b in itertools.combinations(P, 2)):
                yield [list(at) for at in three]

    def corners(self, simplex: Any) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Numbers, points and places of the corners."""
        ids = []
        for at in simplex:
            ends = zip(at, self.sides, self.closed, strict=True)
            ids.append(self.number[tuple(a % side if closed else a for a, side, closed in ends)])
        return ids, self.nodes[ids], np.array([self.place(at) for at in simplex])


def _continued(nodes: np.ndarray, shape: list[int], more: list[int]) -> np.ndarray:
    """Linear extrapolation along one axis after the other."""
    W = nodes.reshape(*shape, -1)
    for axis, layers in enumerate(more):
        W = np.moveaxis(W, axis, 0)
        below = [W[0] + k * (W[0] - W[1]) for k in range(layers, 0, -1)]
        above = [W[-1] + k * (W[-1] - W[-2]) for k in range(1, layers + 1)]
        W = np.moveaxis(np.array([*below, *W, *above]), 0, axis)
    return W.reshape(-1, nodes.shape[1])


def _foot(x: np.ndarray, V: np.ndarray) -> tuple[float, np.ndarray]:
    """The nearest point of a simplex is the foot on the plane of one of its faces, inside of it."""
    best, weights = np.inf, np.zeros(len(V))
    for size in range(1, len(V) + 1):
        for face in itertools.combinations(range(len(V)), size):
            edges = (V[list(face[1:])] - V[face[0]]).T
            t = np.linalg.lstsq(edges, x - V[face[0]], rcond=None)[0] if size > 1 else np.zeros(0)
            if (t < 0).any() or t.sum() > 1:
                continue
            gap = float(np.sum((x - V[face[0]] - edges @ t) ** 2))
            if gap < best:
                best, weights = gap, np.zeros(len(V))
                weights[list(face)] = [1 - t.sum(), *t]
    return best, weights


def elastic_places(task: HeldOut) -> np.ndarray:
    """From the simplices at the four nearest nodes downhill, corner by corner."""
    surface = _Surface(task)
    all_corners = [surface.corners(simplex) for simplex in surface.simplices]
    at_node: dict[int, list[int]] = {}
    for s, (ids, _, _) in enumerate(all_corners):
        for i in ids:
            at_node.setdefault(i, []).append(s)
    placed = []
    for x in np.asarray(task.new, float):
        feet: dict[int, tuple[float, np.ndarray]] = {}

        def nearest(nodes: Any, x=x, feet=feet) -> int:
            for s in {s for i in nodes for s in at_node[i]} - set(feet):
                feet[s] = _foot(x, all_corners[s][1])
            return min(feet, key=lambda s: feet[s][0])

        gaps = np.array([np.sum((x - w) ** 2) for w in surface.nodes])
        found, last = nearest(first_nearest(gaps, 4)), np.inf
        while feet[found][0] < last - 1e-13 * gaps.min():
            last = feet[found][0]
            inside = zip(all_corners[found][0], feet[found][1], strict=True)
            found = nearest([i for i, weight in inside if weight > 0])
        place = feet[found][1] @ all_corners[found][2]
        for axis, closed in enumerate(surface.closed):
            if closed:
                place[axis] %= surface.sides[axis]
                if place[axis] > surface.sides[axis] * (1 - 1e-12):  # the seam, but for rounding
                    place[axis] = 0.0
        placed.append((place - surface.center) * surface.lengths)
    return np.array(placed)


def elastic_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """The mixture of the corners around a place; places off the grid are moved to its border."""
    surface, rows = _Surface(task), []
    for z in Z:
        at = z / surface.lengths + surface.center
        low, shift = [0.0] * len(at), 0.0
        high = [side - 1.0 for side in surface.sides]
        if surface.grid == "hexagon":
            high[1] *= HEIGHT
            at[1] = min(max(at[1], 0.0), high[1])
            row = at[1] / HEIGHT
            shift = 0.5 * abs(row - 2 * round(row / 2))
            low[0], high[0] = shift, high[0] + shift
        for axis, closed in enumerate(surface.closed):
            at[axis] = (
                at[axis] % surface.sides[axis]
                if closed
                else min(max(at[axis], low[axis]), high[axis])
            )
        best, found = -np.inf, None
        for simplex in surface.simplices:
            _, V, P = surface.corners(simplex)
            weights = np.linalg.solve(np.vstack([P.T, np.ones(len(P))]), np.append(at, 1.0))
            if weights.min() > best:
                best, found = weights.min(), weights @ V
        assert best > -1e-9
        rows.append(found)
    return np.array(rows)
