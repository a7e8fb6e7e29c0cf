"""Elastic maps against their energy, their limits and surfaces that are known."""

import itertools

import numpy as np
import pytest

from lowland import PCA
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.grids.lattice import Lattice
from lowland.datasets import digits
from lowland.errors import LowlandError, ParameterError
from lowland.methods.topographic._elastic_surface import (
    Coefficients,
    ElasticGrid,
    coefficients,
    start,
)
from lowland.methods.topographic.elastic_map import ElasticMap
from support.cases import each

GRIDS = [
    Lattice("rectangle", (9,), (False,)),
    Lattice("rectangle", (8,), (True,)),
    Lattice("rectangle", (4, 5), (False, False)),
    Lattice("rectangle", (5, 4), (True, False)),
    Lattice("hexagon", (4, 6), (False, False)),
    Lattice("rectangle", (3, 4, 3), (False,) * 3),
]
KINDS = [
    {"n_components": 1},
    {"n_components": 2},
    {"n_components": 3},
    {"grid": "hexagon"},
    {"grid": "ring", "n_components": 1},
    {"grid": "cylinder"},
]


def irregular(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.5, size=(n, p)) * np.linspace(2, 0.4, p)
    X[:, -1] += 0.3 * X[:, 0] ** 2
    return X @ np.linalg.qr(rng.standard_normal((p, p)))[0] + 5


def half_pipe(n=500, noise=0.05, seed=0):
    """An S-shaped sheet with its arc length and its height."""
    rng = np.random.default_rng(seed)
    t, h = rng.uniform(-2.4, 2.4, n), rng.uniform(-1.5, 1.5, n)
    X = np.column_stack([np.sin(t), np.sign(t) * (np.cos(t) - 1), h])
    return X + noise * rng.standard_normal(X.shape), t, h


def grid_on(X, lattice):
    return ElasticGrid(X, X.mean(axis=0), X.var(axis=0).sum(), lattice, 1)


# --- the energy -------------------------------------------------------------------------------


def naive_energy(X, W, lattice, l, m):  # noqa: E741
    """The terms of U, one row, edge, rib and cell at a time."""
    near = sum(min(np.sum((x - w) ** 2) for w in W) for x in X) / len(X)
    D = lattice.squared_distances()
    pairs = itertools.combinations(range(len(W)), 2)
    edges = sum(np.sum((W[a] - W[b]) ** 2) for a, b in pairs if abs(D[a, b] - 1) < 1e-9)
    return np.array([near, l * edges, m * naive_bending(W, lattice)])


def naive_bending(W, lattice):
    """Over nodes two steps apart with a node half-way, and twice over the cells of rectangles."""
    D, P, total = lattice.squared_distances(), lattice.places(), 0.0
    periods = lattice.periods()

    def same(a, b):
        gaps = np.abs(a - b)
        gaps = np.where(
            periods > 0,
            np.minimum(gaps % np.maximum(periods, 1), -gaps % np.maximum(periods, 1)),
            gaps,
        )
        return gaps.max() < 1e-9

    for b in range(len(W)):
        around = [a for a in range(len(W)) if abs(D[a, b] - 1) < 1e-9]
        for a, c in itertools.combinations(around, 2):
            if abs(D[a, c] - 4) < 1e-9:
                total += np.sum((W[a] - 2 * W[b] + W[c]) ** 2)
    if lattice.kind == "hexagon":
        return total
    units = np.eye(P.shape[1])
    for i, j in itertools.combinations(range(P.shape[1]), 2):
        for a in range(len(W)):
            wanted = [P[a] + units[i], P[a] + units[j], P[a] + units[i] + units[j]]
            corners = [[k for k in range(len(W)) if same(P[k], place)] for place in wanted]
            if all(corners):
                (b,), (c,), (d,) = corners
                total += 2 * np.sum((W[a] - W[b] - W[c] + W[d]) ** 2)
    return total


@each("lattice", GRIDS, ids=str)
def test_the_energy_is_that_of_plain_loops(lattice):
    X = irregular(40, 3)
    W = 5 + np.random.default_rng(1).standard_normal((lattice.n_units, 3))
    grid, soft = grid_on(X, lattice), Coefficients(0.3, 0.07)
    centered = W - grid.mean
    found = grid.energy(centered, grid.hosts(centered), soft)
    np.testing.assert_allclose(found, naive_energy(X, W, lattice, 0.3, 0.07), rtol=1e-10)


@each("lattice", GRIDS, ids=str)
def test_a_step_solves_the_equations_of_the_paper(lattice):
    X = irregular(70, 4)
    grid, soft = grid_on(X, lattice), Coefficients(0.02, 0.3)
    W = np.random.default_rng(2).standard_normal((lattice.n_units, 4))
    hosts = grid.hosts(W)
    n_j = np.bincount(hosts.nearest, minlength=lattice.n_units)
    S = np.array([X[hosts.nearest == j].sum(axis=0) for j in range(lattice.n_units)])
    I = np.eye(lattice.n_units)  # noqa: E741
    E = sum(np.outer(I[a] - I[b], I[a] - I[b]) for a, b in lattice.edges())
    bends = [I[a] - 2 * I[b] + I[c] for a, b, c in lattice.ribs()]
    bends += [np.sqrt(2) * (I[a] - I[b] - I[c] + I[d]) for a, b, c, d in lattice.squares()]
    R = sum(np.outer(bend, bend) for bend in bends)
    A = np.diag(n_j / len(X)) + soft.edges * E + soft.ribs * R
    expected = np.linalg.solve(A, S / len(X))
    np.testing.assert_allclose(grid.relax(W, hosts, soft) + grid.mean, expected, atol=1e-7)


@each("lattice", GRIDS, ids=str)
@each("soft", [(0.0, 0.0), (1e-3, 0.0), (0.0, 1e-2), (0.05, 1.0), (1e-6, 1e5)])
def test_neither_half_of_a_step_raises_the_energy(lattice, soft):
    X = irregular(60, 3, seed=4)
    grid, soft = grid_on(X, lattice), Coefficients(*soft)
    W = 2 * np.random.default_rng(0).standard_normal((lattice.n_units, 3))
    hosts = grid.hosts(W)
    last = grid.energy(W, hosts, soft).sum()
    for _ in range(12):
        W = grid.relax(W, hosts, soft)
        solved = grid.energy(W, hosts, soft).sum()
        hosts = grid.hosts(W)
        assigned = grid.energy(W, hosts, soft).sum()
        assert assigned <= solved * (1 + 1e-9) <= last * (1 + 1e-8)
        last = assigned


@each("lattice", GRIDS, ids=str)
def test_shifted_grids_are_not_stretched_and_affine_ones_not_bent(lattice):
    grid, q = grid_on(irregular(20, 3), lattice), len(lattice.sides)
    ones = np.ones(lattice.n_units)
    np.testing.assert_allclose(grid.E @ ones, 0, atol=1e-12)
    np.testing.assert_allclose(grid.R @ ones, 0, atol=1e-12)
    null = lattice.n_units - np.linalg.matrix_rank(grid.R.toarray())
    free = [axis for axis in range(q) if not lattice.closed[axis]]
    np.testing.assert_allclose(grid.R @ lattice.places()[:, free], 0, atol=1e-10)
    assert null == 1 + len(free)  # nothing else, not even a saddle
    assert lattice.n_units - np.linalg.matrix_rank(grid.E.toarray()) == 1


@each("q", [1, 2, 3])
@each("kind", ["rectangle", "hexagon"])
def test_the_same_surface_has_the_same_energy_on_grids_of_any_size(q, kind):
    if kind == "hexagon" and q != 2:
        return
    energies = []
    for side in (20, 40) if q < 3 else (12, 24):
        lattice = Lattice(kind, (side,) * q, (False,) * q)
        U = lattice.places() / lattice.n_units ** (1 / q)
        W = np.column_stack([U, np.sin(2 * U[:, 0]), U[:, -1] ** 2])
        edges = W[lattice.edges()]
        ribs = W[lattice.ribs()]
        l, m = coefficients(lattice, 1.0, 1.0)  # noqa: E741
        energies.append(
            [
                l * np.sum((edges[:, 0] - edges[:, 1]) ** 2),
                m * np.sum((ribs[:, 0] - 2 * ribs[:, 1] + ribs[:, 2]) ** 2),
            ]
        )
    # the border is missing: of s nodes s - 1 edges and s - 2 ribs
    np.testing.assert_allclose(energies[-1], energies[-2], rtol=0.25)


# --- limits -----------------------------------------------------------------------------------


def test_without_springs_the_nodes_are_means_and_those_without_rows_stay():
    X = irregular(30, 3)
    model = ElasticMap(n_nodes=[8, 8], stretching=0, bending=0, tol=0).fit(X)
    D = ((X[:, None] - model.nodes_) ** 2).sum(axis=2)
    assert (model.hits_ == np.bincount(D.argmin(axis=1), minlength=64)).all()
    assert 0 < (model.hits_ == 0).sum() < 64
    for j in np.flatnonzero(model.hits_):
        np.testing.assert_allclose(
            model.nodes_[j], X[D.argmin(axis=1) == j].mean(axis=0), atol=1e-6
        )
    assert np.isfinite(model.nodes_).all()


@each("kind", KINDS[:4], ids=str)
def test_a_stiff_grid_is_the_plane_of_pca(kind):
    X = irregular(300, 5)
    q = kind.get("n_components", 2)
    model = ElasticMap(**kind, stretching=0, bending=1e5, n_epochs=1, tol=0, max_iter=300).fit(X)
    pca = PCA(q).fit(X)
    off = model.nodes_ - pca.inverse_transform(pca.transform(model.nodes_))
    # nodes are finite in number: the plane of their steps is not quite that of the rows
    assert np.sqrt(np.mean(off**2)) < 0.03 * np.sqrt(X.var(axis=0).sum())
    assert abs(model.surface_variance_ratio_ - model.plane_variance_ratio_) < 0.01
    np.testing.assert_allclose(model.plane_variance_ratio_, pca.explained_variance_ratio_.sum())
    bent = ElasticMap(**kind, bending=1e-4).fit(X)
    assert bent.surface_variance_ratio_ > model.surface_variance_ratio_


def test_the_stiffest_springs_pull_the_grid_to_the_mean():
    X = irregular(100, 3)
    model = ElasticMap(stretching=1e300).fit(X)
    np.testing.assert_allclose(
        model.nodes_, np.tile(X.mean(axis=0), (len(model.nodes_), 1)), atol=1e-4
    )


# --- surfaces that are known ------------------------------------------------------------------


@each("grid", ["rectangle", "hexagon"])
def test_an_s_shaped_sheet_is_flattened(grid):
    X, t, h = half_pipe()
    new, t_new, h_new = half_pipe(300, seed=1)
    model = ElasticMap(grid=grid).fit(X)
    for Y, a, b in ((model.embedding_, t, h), (model.transform(new), t_new, h_new)):
        assert max(abs(np.corrcoef(y, a)[0, 1]) for y in Y.T) > 0.98
        assert max(abs(np.corrcoef(y, b)[0, 1]) for y in Y.T) > 0.98
    off = np.mean(np.sum((new - model.inverse_transform(model.transform(new))) ** 2, axis=1))
    flat = PCA(2).fit(X)
    assert off < 0.25 * np.mean(
        np.sum((new - flat.inverse_transform(flat.transform(new))) ** 2, axis=1)
    )
    assert off < 3 * 0.05**2  # of the noise in three columns, that across the sheet is left


def test_the_map_of_a_flat_sheet_is_the_sheet():
    rng = np.random.default_rng(0)
    flat = rng.uniform(-1, 1, (2000, 2)) * [3, 2]
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0][:2]
    for kind in ({}, {"grid": "hexagon"}, {"n_nodes": [15, 15]}):
        Y = ElasticMap(**kind).fit_transform(flat @ turn)
        Y = np.abs(np.cov(Y.T))
        np.testing.assert_allclose(np.sqrt(np.diag(Y)), np.array([3, 2]) / np.sqrt(3), rtol=0.1)


def test_a_ring_recovers_a_circle():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 400)
    X = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle]) + 0.05 * rng.standard_normal(
        (400, 3)
    )
    model = ElasticMap(1, grid="ring").fit(X)
    period = model.step_lengths_[0] * model.shape_[0]
    assert abs(period - 2 * np.pi) < 0.3
    found = 2 * np.pi * model.embedding_[:, 0] / period
    turns = [np.abs(np.mean(np.exp(1j * (angle - sign * found)))) for sign in (1, -1)]
    assert max(turns) > 0.99
    assert model.surface_variance_ratio_ > 0.97
    ends = model.inverse_transform([[-period / 2], [period / 2 - 1e-9], [period * 1.5]])
    np.testing.assert_allclose(ends, ends[[0, 0, 0]], atol=1e-6)


@each("height", [0.5, 4.0])
def test_a_cylinder_recovers_a_cylinder(height):
    rng = np.random.default_rng(0)
    angle, h = rng.uniform(0, 2 * np.pi, 600), rng.uniform(-height, height, 600)
    X = np.column_stack([np.cos(angle), np.sin(angle), h]) + 0.03 * rng.standard_normal((600, 3))
    model = ElasticMap(grid="cylinder").fit(X)
    around = 2 * np.pi * model.embedding_[:, 0] / (model.step_lengths_[0] * model.shape_[0])
    assert max(np.abs(np.mean(np.exp(1j * (angle - s * around)))) for s in (1, -1)) > 0.98
    assert abs(np.corrcoef(model.embedding_[:, 1], h)[0, 1]) > 0.98


# --- what the model tells ---------------------------------------------------------------------


@each("kind", KINDS, ids=str)
def test_the_attributes_belong_together(kind):
    X = irregular(150, 4)
    model = ElasticMap(**kind, n_nodes=100).fit(X)
    assert model.nodes_.shape == (np.prod(model.shape_), 4)
    assert model.hits_.sum() == 150
    np.testing.assert_allclose(model.energy_.sum(), model.loss_history_[-1])
    assert len(model.loss_history_) == model.n_iter_ + 1
    projected = model.inverse_transform(model.embedding_)
    left = np.sum((X - projected) ** 2) / np.sum((X - X.mean(axis=0)) ** 2)
    np.testing.assert_allclose(model.surface_variance_ratio_, 1 - left, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(model.node_places_), model.nodes_, atol=1e-9)
    again = model.inverse_transform(model.transform(projected))
    np.testing.assert_allclose(again, projected, atol=1e-6)


@each("kind", KINDS, ids=str)
def test_permuted_rows_and_threads_give_the_same_map(kind):
    X = irregular(120, 4)
    order = np.random.default_rng(0).permutation(120)
    kind = {**kind, "n_nodes": 100}
    plain = ElasticMap(**kind, n_jobs=1).fit(X)
    assert ElasticMap(**kind, n_jobs=2).fit(X).embedding_.tobytes() == plain.embedding_.tobytes()
    permuted = ElasticMap(**kind).fit_transform(X[order])
    np.testing.assert_allclose(permuted, plain.embedding_[order], atol=1e-6)


def test_the_border_is_continued_so_that_rows_do_not_pile_up():
    X = digits().X
    for layers, most in ((0, 1.0), (4, 0.02)):
        model = ElasticMap(extrapolate=layers).fit(X)
        border = np.abs(model.node_places_).max(axis=0) + layers * model.step_lengths_
        share = np.mean((np.abs(model.embedding_) > border * (1 - 1e-9)).any(axis=1))
        assert share <= most
    assert share < 0.02


# --- hostile rows -----------------------------------------------------------------------------


@each("kind", KINDS, ids=str)
def test_few_equal_and_collinear_rows_have_a_map(kind):
    q, rng = kind.get("n_components", 2), np.random.default_rng(0)
    line = np.outer(rng.standard_normal(30), [1.0, 2.0, -1.0])
    tables = [
        *(rng.standard_normal((n, 3)) for n in (2, 3, 4)),
        np.repeat(rng.standard_normal((3, 3)), 20, axis=0),
        np.ones((9, 3)),
        line,
        np.column_stack([np.round(line[:, 0]), np.zeros(30), np.ones(30)]),
        rng.standard_t(1.5, (60, 3)) * [1, 1e3, 1e-3],
    ]
    for X, dtype in itertools.product(tables, (np.float32, np.float64)):
        if q > len(X):
            continue
        model = ElasticMap(**kind, n_nodes=60).fit(X.astype(dtype))
        Y = model.transform(X.astype(dtype))
        assert Y.dtype == dtype
        assert np.isfinite(Y).all()
        assert np.isfinite(model.inverse_transform(Y)).all()
        assert model.inverse_transform([[1e70] * q, [-1e70] * q]).shape == (2, 3)


def test_an_axis_without_variance_has_one_node():
    X = np.outer(np.arange(20.0), [1.0, 2.0, 0.0])
    model = ElasticMap().fit(X)
    assert model.shape_[1] == 1
    assert (model.embedding_[:, 1] == 0).all()
    along = model.embedding_[:, 0]
    np.testing.assert_allclose(np.abs(np.corrcoef(along, np.arange(20))[0, 1]), 1, atol=1e-2)


def test_grids_and_axes_that_do_not_fit_are_refused():
    X = irregular(30, 5)
    wrong = [
        {"n_components": 4},
        {"grid": "ring"},
        {"grid": "hexagon", "n_components": 3},
        {"grid": "cylinder", "n_components": 1},
        {"n_nodes": [5]},
        {"n_nodes": [5, 5, 5]},
    ]
    for params in wrong:
        with pytest.raises(ParameterError, match=r"n_components|n_nodes"):
            ElasticMap(**params).fit(X)
    for too_many in (10**9, [10**6, 10**6], [2**40, 2**40]):
        with pytest.raises(LowlandError, match="nodes"):
            ElasticMap(n_nodes=too_many).fit(X)


def test_the_start_is_on_the_principal_plane():
    X = irregular(80, 4)
    run = FitContext(np.random.default_rng(0), 1, Monitor(), None)
    found = start(X, "rectangle", [6, 3], 2, run)
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2]
    inside = found.nodes @ axes.T @ axes
    np.testing.assert_allclose(inside, found.nodes, atol=1e-9)
    assert found.shape == (6, 3)


@each(
    ("grid", "n_nodes", "shape"),
    [("ring", [2], (3,)), ("rectangle", [2, 2], (2, 2)), ("cylinder", [2, 2], (3, 2))],
)
def test_a_closed_axis_has_at_least_three_nodes_and_a_straight_one_two(grid, n_nodes, shape):
    X = np.random.default_rng(0).standard_normal((60, 4))
    model = ElasticMap(len(n_nodes), grid=grid, n_nodes=n_nodes).fit(X)
    np.testing.assert_array_equal(model.shape_, shape)
