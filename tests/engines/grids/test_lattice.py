"""Grids against their geometry: who is one step away, straight lines, simplices that fill it."""

import numpy as np

from lowland._engines.grids.lattice import Lattice, sides_for
from support.cases import each

OPEN, ROUND = (False, False), (True, True)
GRIDS = [
    Lattice("rectangle", (7,), (False,)),
    Lattice("rectangle", (7,), (True,)),
    Lattice("rectangle", (3, 5), OPEN),
    Lattice("rectangle", (5, 4), ROUND),
    Lattice("rectangle", (4, 5), (False, True)),
    Lattice("rectangle", (3, 4, 5), (False,) * 3),
    Lattice("hexagon", (4, 5), OPEN),
    Lattice("hexagon", (5, 6), ROUND),
    Lattice("hexagon", (5, 4), (True, False)),
]
FLAT = [grid for grid in GRIDS if not any(grid.closed)]


def naive_distances(grid):
    P, periods = grid.places(), grid.periods()
    D = np.empty((len(P), len(P)))
    for i in range(len(P)):
        for j in range(len(P)):
            images = [abs(a - b) for a, b in zip(P[i], P[j], strict=True)]
            images = [min(g, abs(t - g)) if t else g for g, t in zip(images, periods, strict=True)]
            D[i, j] = np.hypot.reduce(images)
    return D


@each("grid", GRIDS, ids=str)
def test_edges_are_the_pairs_one_step_apart(grid):
    D = naive_distances(grid)
    np.testing.assert_allclose(np.sqrt(grid.squared_distances()), D, atol=1e-12)
    wanted = {(i, j) for i, j in zip(*np.nonzero(np.abs(D - 1) < 1e-9), strict=True) if i < j}
    assert {tuple(edge) for edge in grid.edges()} == wanted


@each("grid", FLAT, ids=str)
def test_ribs_are_straight_lines_of_neighbors(grid):
    P = grid.places()
    ends, middles = grid.ribs()[:, ::2], grid.ribs()[:, 1]
    np.testing.assert_allclose(P[ends].mean(axis=1), P[middles], atol=1e-12)
    D = naive_distances(grid)
    two_steps = [(i, j) for i, j in zip(*np.nonzero(np.abs(D - 2) < 1e-9), strict=True) if i < j]
    midpoints = {
        (i, k, j)
        for i, j in two_steps
        for k in range(len(P))
        if np.abs(P[k] - (P[i] + P[j]) / 2).max() < 1e-9
    }
    assert {(min(a, c), b, max(a, c)) for a, b, c in grid.ribs()} == midpoints
    assert len(grid.ribs()) == len(midpoints)


@each("grid", GRIDS, ids=str)
def test_units_are_interpolated_to_themselves(grid):
    found = grid.around(grid.places())
    heaviest = np.take_along_axis(found.units, found.weights.argmax(axis=1)[:, None], axis=1)
    np.testing.assert_array_equal(heaviest[:, 0], np.arange(grid.n_units))
    np.testing.assert_allclose(found.weights.max(axis=1), 1, atol=1e-12)


@each("grid", FLAT, ids=str)
def test_interpolation_reproduces_linear_functions_inside_the_grid(grid):
    rng = np.random.default_rng(3)
    corners = grid.places()[grid.simplices()]
    shares = rng.dirichlet(np.ones(corners.shape[1]), size=len(corners))
    P = np.einsum("ij,ijk->ik", shares, corners)
    found = grid.around(P)
    assert (found.weights > -1e-12).all()
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)
    again = np.einsum("ij,ijk->ik", found.weights, grid.places()[found.units])
    np.testing.assert_allclose(again, P, atol=1e-12)
    known = {tuple(sorted(simplex)) for simplex in grid.simplices().tolist()}
    assert {tuple(sorted(units)) for units in found.units.tolist()} <= known


@each("grid", GRIDS, ids=str)
def test_interpolation_is_continuous_everywhere(grid):
    rng = np.random.default_rng(4)
    values = rng.standard_normal(grid.n_units)
    P = rng.uniform(-2, 9, size=(4000, len(grid.sides)))
    steps = 1e-7 * rng.standard_normal(P.shape)
    here, there = grid.around(P), grid.around(P + steps)
    f = [np.sum(values[s.units] * s.weights, axis=1) for s in (here, there)]
    assert np.abs(f[1] - f[0]).max() < 1e-5


@each("grid", GRIDS, ids=str)
def test_a_closed_axis_repeats(grid):
    P = np.random.default_rng(5).uniform(0, 4, size=(50, len(grid.sides)))
    here, there = grid.around(P), grid.around(P - 2 * grid.periods())
    np.testing.assert_array_equal(here.units, there.units)
    np.testing.assert_allclose(here.weights, there.weights, atol=1e-12)


@each(("spreads", "kind"), [([3, 1], "rectangle"), ([3, 1], "hexagon"), ([2, 1, 1], "rectangle")])
def test_sides_have_the_ratio_of_the_spreads(spreads, kind):
    sides = sides_for(2000, np.array(spreads, float), kind)
    far = Lattice(kind, sides, (False,) * len(sides)).places().max(axis=0)
    assert abs(np.prod(sides) / 2000 - 1) < 0.1
    np.testing.assert_allclose(far[0] / far[1:], spreads[0] / np.array(spreads[1:]), rtol=0.1)


def test_data_without_spread_have_a_square_grid():
    assert sides_for(100, np.zeros(2)) == (10, 10)
    assert min(sides_for(100, np.array([1.0, 0.0]))) > 2


@each("grid", GRIDS, ids=str)
def test_squares_are_the_cells_of_two_axes(grid):
    D, squares = grid.squared_distances(), grid.squares()
    if grid.kind == "hexagon" or len(grid.sides) == 1:
        assert len(squares) == 0
        return
    cells = [
        side if closed else side - 1 for side, closed in zip(grid.sides, grid.closed, strict=True)
    ]
    q, sides = len(cells), grid.sides
    pairs = [(a, b) for a in range(q) for b in range(a)]
    others = [np.prod([sides[c] for c in range(q) if c not in pair]) for pair in pairs]
    wanted = sum(cells[a] * cells[b] * rest for (a, b), rest in zip(pairs, others, strict=True))
    assert len({tuple(sorted(square)) for square in squares}) == len(squares) == wanted
    for a, b, c, d in squares:
        np.testing.assert_allclose([D[a, b], D[a, c], D[b, d], D[c, d]], 1)
        np.testing.assert_allclose([D[a, d], D[b, c]], 2)
