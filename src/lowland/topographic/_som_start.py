"""How large the grid of a self-organizing map is, and where its units start."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._core.validation import is_sparse
from lowland._engines.grids.lattice import Lattice, sides_for
from lowland._engines.grids.principal_plane import PrincipalPlane
from lowland.topographic._som_sums import Table

MOST_UNITS = 1000
NO_SPREAD = 1e-7  # share of the first deviation, or of the mean, below which one is rounding
START_WIDTH = 2.0  # standard deviations from the mean to the border of the first plane


def number_of_units(n: int) -> int:
    """About 5 sqrt(n), at most n and 1 000."""
    return max(1, min(round(5 * math.sqrt(n)), n, MOST_UNITS))


def sides_of_grid(n: int, plane: PrincipalPlane, q: int, grid: str, even: bool) -> tuple[int, ...]:
    """Sides as the deviations of the data; the second one is ``even`` if it must be."""
    first, size, wanted = plane.deviations[0], np.abs(plane.mean).max(), number_of_units(n)
    if first <= NO_SPREAD * size:
        sides = [1] * q  # equal rows need one unit
    elif q == 2 and plane.deviations[1] <= NO_SPREAD * first:
        sides = [wanted, 1]  # rows on a line
    else:
        kind = grid if q == 2 else "rectangle"
        sides = list(sides_for(wanted, plane.deviations[:q], kind))
    while math.prod(sides) > n:  # rounding of the sides of a few units
        sides[int(np.argmax(sides))] -= 1
    return (sides[0], sides[1] + sides[1] % 2) if even else tuple(sides)


def given_sides(sides: Any, q: int, even: bool) -> tuple[int, ...]:
    """The parameter ``sides`` as one number for each of q axes."""
    given = [sides] * q if np.ndim(sides) == 0 else list(sides)
    if len(given) != q:
        raise ParameterError(
            f"SOM: sides={sides!r} has {len(given)} numbers, but n_components={q}; give "
            "one for each axis."
        )
    if even and given[1] % 2:
        raise ParameterError(
            f"SOM: sides={sides!r}; a closed hexagonal grid needs an even number of units "
            'along the second axis. Add one, or use grid="rectangle".'
        )
    return tuple(int(side) for side in given)


def given_units(init: Any, lattice: Lattice, p: int) -> np.ndarray:
    """The parameter ``init`` as units of p columns."""
    given, m = np.array(init, np.float64), lattice.n_units
    if given.shape != (m, p) or not np.isfinite(given).all():
        raise DataError(
            f"SOM: init has shape {given.shape}; the grid with sides {lattice.sides} needs "
            f"finite numbers of shape {(m, p)}."
        )
    return given


def random_rows(table: Table, m: int, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random rows of a table, none twice if there are enough; missing values are the mean."""
    n = table.shape[0]
    rows = table.at(rng.choice(n, m, replace=m > n))
    rows = np.asarray(rows.toarray() if is_sparse(rows) else rows, np.float64)
    return np.where(np.isnan(rows), mean, rows)


def units_on_plane(lattice: Lattice, plane: PrincipalPlane) -> np.ndarray:
    """An open axis of the grid lies along a principal axis, a closed one on a circle of two."""
    P, Z = lattice.places(), np.zeros((lattice.n_units, len(plane.axes)))
    for axis, period in enumerate(lattice.periods()):
        along = P[:, axis]
        if period:
            turn = 2 * np.pi * along / period
            Z[:, 2 * axis] = START_WIDTH * np.cos(turn)
            Z[:, 2 * axis + 1] = START_WIDTH * np.sin(turn)
        else:
            middle, half = (along.max() + along.min()) / 2, max(np.ptp(along) / 2, 1e-9)
            Z[:, axis] = START_WIDTH * (along - middle) / half
    return plane.points(Z)
