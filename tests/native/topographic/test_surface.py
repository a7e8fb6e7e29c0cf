"""project_on_surface against nonnegative least squares over all simplices."""

import numpy as np
import pytest
from scipy.optimize import nnls

from lowland import _native
from lowland._engines.grids.lattice import Lattice
from support.cases import each
from support.kernels import each_isa, each_kind

GRIDS = [
    Lattice("rectangle", (2,), (False,)),
    Lattice("rectangle", (6,), (True,)),
    Lattice("rectangle", (3, 4), (False, False)),
    Lattice("rectangle", (4, 3), (True, False)),
    Lattice("hexagon", (3, 4), (False, False)),
    Lattice("rectangle", (3, 2, 3), (False, False, False)),
]


def stars(simplices, m):
    """The simplices at each node, one node after the other."""
    lists = [[s for s, corners in enumerate(simplices) if c in corners] for c in range(m)]
    starts = np.cumsum([0] + [len(one) for one in lists])
    return starts, np.array([s for one in lists for s in one], np.int64)


def found(x, near, nodes, simplices, threads=1, isa="auto"):
    n = len(x)
    which, weights, squares = np.full(n, -5), np.full((n, simplices.shape[1]), np.nan), np.empty(n)
    _native.project_on_surface(
        x,
        near,
        nodes,
        simplices,
        *stars(simplices, len(nodes)),
        which,
        weights,
        squares,
        threads,
        isa,
    )
    return which, weights, squares


def everywhere(x, nodes):
    return np.tile(np.arange(len(nodes)), (len(x), 1))


def nearest_square(x, corners):
    """min |x - V^T t|^2 for t >= 0 with the sum 1, as a heavy equation."""
    heavy = 1e5 * (np.abs(x).max() + np.abs(corners).max() + 1)
    A = np.vstack([corners.T, np.full(len(corners), heavy)])
    t, _ = nnls(A, np.append(x, heavy))
    return np.sum((x - corners.T @ (t / t.sum())) ** 2)


def oracle(x, nodes, simplices):
    return np.array([min(nearest_square(a, nodes[s]) for s in simplices) for a in x.astype(float)])


def assert_points(x, nodes, simplices, got):
    """Simplex, weights and distance belong together."""
    which, weights, squares = got
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    points = np.einsum("ij,ijk->ik", weights, nodes[simplices[which]])
    gaps = np.sum((x - points) ** 2, axis=1)
    np.testing.assert_allclose(squares, gaps, rtol=1e-9, atol=1e-12 * np.sum(x**2, axis=1).max())


@each("grid", GRIDS, ids=str)
@each_kind
def test_no_point_of_the_surface_is_nearer(grid, dtype, isa):
    rng = np.random.default_rng(len(grid.sides))
    simplices = grid.simplices()
    for p in (1, 3, 4, 9):
        nodes = rng.standard_normal((grid.n_units, p))
        x = (1.5 * rng.standard_normal((9, p))).astype(dtype)
        x[0] = nodes[1]
        got = found(x, everywhere(x, nodes), nodes, simplices, isa=isa)
        assert_points(x, nodes, simplices, got)
        np.testing.assert_allclose(got[2], oracle(x, nodes, simplices), rtol=1e-6, atol=1e-6)


@each("grid", [grid for grid in GRIDS if not any(grid.closed)], ids=str)
@each_isa
def test_on_an_oblique_flat_grid_the_descent_finds_the_nearest_point_from_anywhere(grid, isa):
    rng, q = np.random.default_rng(7), len(grid.sides)
    axes = rng.standard_normal((q, 5))
    axes[1:] = 0.05 * axes[1:] + axes[0]  # long and thin simplices
    nodes, simplices = grid.places() @ axes, grid.simplices()
    x = rng.standard_normal((12, 5)) + nodes[rng.integers(len(nodes), size=12)]
    near = rng.integers(len(nodes), size=(12, 1))
    got = found(x, near, nodes, simplices, isa=isa)
    assert_points(x, nodes, simplices, got)
    np.testing.assert_allclose(got[2], oracle(x, nodes, simplices), rtol=1e-6, atol=1e-6)


@each("grid", GRIDS, ids=str)
def test_equal_nodes_and_flat_simplices_are_no_harm(grid):
    rng, simplices = np.random.default_rng(3), grid.simplices()
    x = rng.standard_normal((8, 3))
    line = np.outer(np.arange(grid.n_units) // 2, [1.0, 0.5, 0.0])
    for nodes in (np.zeros((grid.n_units, 3)), line, 1e-160 * line, 1e120 * line):
        got = found(x, everywhere(x, nodes), nodes, simplices)
        assert_points(x, nodes, simplices, got)
        if np.abs(nodes).max() < 1e9:
            np.testing.assert_allclose(got[2], oracle(x, nodes, simplices), rtol=1e-6, atol=1e-6)


@each("grid", GRIDS, ids=str)
@each_kind
def test_a_row_depends_neither_on_the_others_nor_on_the_threads(
    grid, dtype, isa, same_for_threads, same_alone
):
    rng, simplices = np.random.default_rng(1), grid.simplices()
    nodes = rng.standard_normal((grid.n_units, 6))
    x = rng.standard_normal((201, 6)).astype(dtype)
    near = rng.integers(grid.n_units, size=(201, 2))
    same_for_threads(lambda threads: found(x, near, nodes, simplices, threads, isa))
    same_alone(lambda rows: found(x[rows], near[rows], nodes, simplices, isa=isa), (0, 64, 200))


def test_indices_and_sizes_that_do_not_fit_are_refused():
    grid = GRIDS[2]
    simplices, nodes = grid.simplices(), np.random.default_rng(0).standard_normal((12, 2))
    starts, members = stars(simplices, 12)
    x, near = np.zeros((4, 2)), np.zeros((4, 1), np.int64)
    given = {"x": x, "near": near, "nodes": nodes, "simplices": simplices, "starts": starts}
    given |= {"members": members, "found": np.zeros(4, np.int64), "weights": np.zeros((4, 3))}
    given |= {"squares": np.zeros(4), "threads": 1}

    def changed(array, place, value):
        other = array.copy()
        other.flat[place] = value
        return other

    _native.project_on_surface(**given)
    wrong = [
        {"x": np.zeros((4, 3))},
        {"nodes": nodes[:11]},
        {"near": near[:3]},
        {"near": near[:, :0]},
        {"near": near + 12},
        {"near": near - 1},
        {"simplices": changed(simplices, 4, 12)},
        {"simplices": simplices[:, :1].copy()},
        {"simplices": np.hstack([simplices, simplices])},
        {"starts": changed(starts, 3, -1)},
        {"starts": changed(starts, 3, 10**6)},
        {"starts": changed(starts, -1, len(members) + 1)},
        {"members": changed(members, 0, len(simplices))},
        {"members": changed(members, 0, len(simplices) - 1)},  # not at the node
        {"weights": np.zeros((4, 4))},
        {"found": np.zeros(3, np.int64)},
        {"squares": np.zeros(5)},
        {"threads": 0},
    ]
    for change in wrong:
        with pytest.raises(ValueError, match=r"project_on_surface|threads"):
            _native.project_on_surface(**{**given, **change})
