"""Where rows belong on a grid of units, and what a place of the grid is in the data."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from support.oracles.basics import HeldOut


class Grid(NamedTuple):
    """Places of units and of their images beside a torus, with the number of the unit."""

    places: list[np.ndarray]
    numbers: list[int]


def _grid(task: HeldOut) -> Grid:
    sides = [int(side) for side in task.model.unit_sides_]
    hexagon = task.params["grid"] == "hexagon" and len(sides) == 2
    closed = task.params["toroidal"]
    ranges = [range(-side, 2 * side) if closed else range(side) for side in sides]
    found = Grid([], [])
    for at in itertools.product(*ranges):
        place = np.array(at, float)
        if hexagon:
            place = np.array([at[0] + (at[1] % 2) / 2, at[1] * np.sqrt(3) / 2])
        number = 0
        for position, side in zip(at, sides, strict=True):
            number = number * side + position % side
        found.places.append(place)
        found.numbers.append(number)
    return found


def _own(grid: Grid, task: HeldOut) -> dict[int, np.ndarray]:
    """The place of each unit itself: the image within the grid."""
    sides = task.model.unit_sides_
    high = sides * (np.array([1, np.sqrt(3) / 2]) if _is_hexagon(task) else 1.0) - 1e-9
    inside = [
        (number, place)
        for number, place in zip(grid.numbers, grid.places, strict=True)
        if (place >= 0).all() and (place < high).all()
    ]
    return dict(inside)


def _is_hexagon(task: HeldOut) -> bool:
    return task.params["grid"] == "hexagon" and len(task.model.unit_sides_) == 2


def _square(x: np.ndarray, m: np.ndarray) -> float:
    return sum((float(a) - float(b)) ** 2 for a, b in zip(x, m, strict=True))


def grid_places(task: HeldOut) -> np.ndarray:
    """r_c + sum_j w_j (r_j - r_c), w_j ~ exp(-2 |x - m_j|^2 / s_c), j up to 2 steps from c."""
    M, grid = task.model.codebook_, _grid(task)
    own = _own(grid, task)
    periods = task.model.unit_sides_ * (
        np.array([1, np.sqrt(3) / 2]) if _is_hexagon(task) else np.ones(task.Y.shape[1])
    )
    # on a short closed axis only one of two ways to a unit counts
    reach = max(1.0, min(2.0, 0.49 * min(periods))) if task.params["toroidal"] else 2.0
    places = []
    for x in task.new:
        c = min(range(len(M)), key=lambda j: (_square(x, M[j]), j))
        ways = [
            (np.linalg.norm(place - own[c]), place - own[c], number)
            for place, number in zip(grid.places, grid.numbers, strict=True)
        ]
        if task.params["places"] == "units":
            places.append(own[c])
            continue
        around = {number for length, _, number in ways if abs(length - 1) < 1e-9 and number != c}
        scale = np.mean([_square(M[c], M[j]) for j in around])
        near = [(way, _square(x, M[j])) for length, way, j in ways if length < reach + 1e-9]
        least = min(square for _, square in near)
        weights = [np.exp(-2 * (square - least) / scale) for _, square in near]
        moved = sum(w * way for w, (way, _) in zip(weights, near, strict=True)) / sum(weights)
        place = own[c] + moved
        places.append(place % periods if task.params["toroidal"] else place)
    return np.array(places)


def grid_rows(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """Linear between the corners of the triangle, or the segment, around each place."""
    return np.array([_row(task, np.array(z, float), _grid(task)) for z in Z])


def _row(task: HeldOut, z: np.ndarray, grid: Grid) -> np.ndarray:
    M, sides = task.model.codebook_, task.model.unit_sides_
    if not task.params["toroidal"]:
        z = _moved_to_the_border(z, sides, _is_hexagon(task))
    near = [i for i, place in enumerate(grid.places) if np.linalg.norm(place - z) < 1.5]
    for corners in itertools.combinations(near, len(z) + 1):
        P = np.array([grid.places[i] for i in corners])
        if not _is_simplex(P, _is_hexagon(task)):
            continue
        weights = np.linalg.solve(np.vstack([P.T, np.ones(len(P))]), np.append(z, 1.0))
        if (weights > -1e-9).all():
            return sum(w * M[grid.numbers[i]] for w, i in zip(weights, corners, strict=True))
    raise AssertionError(f"no simplex around {z}")


def _moved_to_the_border(z: np.ndarray, sides: np.ndarray, hexagon: bool) -> np.ndarray:
    if not hexagon:
        return np.clip(z, 0, sides - 1)
    y = np.clip(z[1], 0, (sides[1] - 1) * np.sqrt(3) / 2)
    row = y / (np.sqrt(3) / 2)
    low = np.interp(row % 2, [0, 1, 2], [0, 0.5, 0])  # the border is a zigzag
    return np.array([np.clip(z[0], low, low + sides[0] - 1), y])


def _is_simplex(P: np.ndarray, hexagon: bool) -> bool:
    """All sides are one step, or a square's halves along the rising diagonal."""
    gaps = [b - a for a, b in itertools.combinations(P, 2)]
    lengths = sorted(np.linalg.norm(gap) for gap in gaps)
    if hexagon or len(P) == 2:
        return np.allclose(lengths, 1)
    diagonal = max(gaps, key=np.linalg.norm)
    return np.allclose(lengths, [1, 1, np.sqrt(2)]) and diagonal[0] * diagonal[1] > 0
