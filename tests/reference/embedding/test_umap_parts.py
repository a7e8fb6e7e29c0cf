"""The parts of UMAP against the paper in plain Python and against umap-learn."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.integrate
from scipy.spatial.distance import cdist

from lowland import UMAP
from lowland.errors import DataError, ParameterError
from lowland.methods.embedding import _umap_descent
from lowland.methods.embedding._fuzzy_graph import (
    FuzzyGraph,
    class_codes,
    fuzzy_graph,
    known_squares,
    memberships,
    with_classes,
    with_numbers,
)
from lowland.methods.embedding._umap_descent import (
    DensityTerm,
    UmapForces,
    curve_parameters,
    data_radii,
    row_normalized,
    umap_law,
)
from lowland.neighbors import NeighborGraph, knn_graph
from reference.plain import slope_of
from support.cases import each
from support.oracles.neighbor_umap import memberships as row_memberships

PEER = json.loads((Path(__file__).parents[2] / "data" / "umap_learn_graphs.json").read_text())
ROWS = np.array(PEER["rows"])
# The peer's widths are found to 1e-5 of a row's sum. All memberships of a row rise with its width,
# so that each is within 1e-5, too, and a union or product of two within 2e-5.
PEER_ERROR = 2.5e-5


def graph_of(X, k, connectivity=1.0, mix=1.0):
    """The fuzzy graph of rows; k counts the row itself."""
    return fuzzy_graph(knn_graph(X, k - 1), k, connectivity, mix, 1)[0]


def dense(graph):
    return graph.to_csr().toarray()


def upper(graph):
    W = dense(graph)
    np.testing.assert_array_equal(W, W.T)
    assert (np.diag(W) == 0).all()
    return W[np.triu_indices(len(W), 1)]


# --- the fuzzy graph --------------------------------------------------------------------------


def naive_memberships(D, k, connectivity=1):
    """w_{j|i} of the paper, section 3.1 and algorithm 3; distances without ties."""
    W = np.zeros_like(D)
    for i, row in enumerate(D):
        near = [j for j in np.argsort(row) if j != i][: k - 1]
        W[i, near] = row_memberships(row[near], k, connectivity)[0]
    return W


def united(W, mix=1.0):
    both = W * W.T
    return mix * (W + W.T - both) + (1 - mix) * both


@each("k", [3, 7, 15])
@each("connectivity", [1, 2])
@each("mix", [0.0, 0.4, 1.0])
def test_the_fuzzy_graph_is_that_of_the_paper(k, connectivity, mix, irregular):
    X = irregular(50, 4)
    expected = united(naive_memberships(cdist(X, X), k, connectivity), mix)
    np.testing.assert_allclose(dense(graph_of(X, k, connectivity, mix)), expected, atol=1e-5)


@each("case", PEER["graphs"])
def test_the_fuzzy_graph_is_that_of_umap_learn(case):
    near = knn_graph(ROWS, 4)
    graph, local = fuzzy_graph(near, 5, case["connectivity"], case["mix"], 1)
    np.testing.assert_allclose(upper(graph), case["upper"], atol=PEER_ERROR)
    np.testing.assert_allclose(local.nearest, case["nearest"], rtol=1e-5)
    np.testing.assert_allclose(local.widths, case["widths"], rtol=1e-3)


def test_no_row_changes_the_memberships_of_another_one(irregular):
    near = knn_graph(irregular(30, 3), 6)
    together = memberships(near, 7, 1.0, 1)
    for i in (0, 11, 29):
        alone = NeighborGraph(near.indices[[i]], near.distances[[i]], 30)
        for few, all_rows in zip(memberships(alone, 7, 1.0, 1), together, strict=True):
            assert few.tobytes() == all_rows[[i]].tobytes()


def test_copies_are_full_neighbors_and_missing_neighbors_are_none():
    near = NeighborGraph(
        np.array([[1, 2], [0, 2], [0, -1], [-1, -1]]),
        np.array([[0.0, 1.0], [0.0, 1.0], [1.0, np.inf], [np.inf, np.inf]]),
        4,
    )
    W = dense(fuzzy_graph(near, 3, 1.0, 1.0, 1)[0])
    assert W[0, 1] == 1
    assert (W[3] == 0).all()
    assert (W[:3, :3][~np.eye(3, dtype=bool)] > 0).all()


# --- the law ----------------------------------------------------------------------------------


@each(
    ("spread", "min_dist", "a", "b"),
    [
        (1.0, 0.1, 1.57694346041, 0.895060878123),
        (2.0, 0.1, 0.544660540037, 0.84205542675),
        (0.6, 0.2, 2.95031796402, 1.14888917655),
        (1.0, 0.0, 1.93280839734, 0.790494973223),  # this one and the next: umap-learn 0.5.12
        (1.0, 0.5, 0.583030020341, 1.33416699243),
    ],
)
def test_the_curve_has_the_published_parameters(spread, min_dist, a, b):
    # both are minima of one sum of squares, found to the square root of the precision
    assert curve_parameters(spread, min_dist) == pytest.approx((a, b), rel=1e-6)


def test_the_curve_of_another_unit_is_the_same_curve():
    a, b = curve_parameters(1.0, 0.1)
    for unit in (1e-6, 1e-3, 7.0, 1e6):
        assert curve_parameters(unit, 0.1 * unit) == pytest.approx((a * unit ** (-2 * b), b))


def test_an_impossible_curve_is_refused():
    with pytest.raises(ParameterError, match=r"min_dist=2 with spread=1 .* larger spread"):
        curve_parameters(1.0, 2.0)


LAWS = [(1.577, 0.895), (0.3, 2.6), (1.9, 0.3)]


def repulsion(u, a, b):
    return 2 * b / (((b / 4) ** 2 + u) * (1 + a * u**b))


def potential(u, a, b):
    """K(u), by quadrature over log v."""

    def over(log):
        return repulsion(math.exp(log), a, b) * math.exp(log)

    start = math.log(u)
    ends = [start, max(start, 0.0), max(start, 0.0) + 8, max(start, 0.0) + 150]
    parts = itertools.pairwise(ends)
    return sum(scipy.integrate.quad(over, *part, epsabs=1e-13)[0] for part in parts)


@each("law", LAWS)
def test_the_potential_is_the_integral_of_the_repulsion(law):
    u = np.array([1e-8, 1e-3, 0.04, 0.7, 3.0, 50.0, 4e3, 1e6])
    expected = np.array([potential(v, *law) for v in u])
    points = np.sqrt(u)[:, None]
    heights, forces = np.empty(len(u)), np.empty_like(points)
    umap_law(*law).repel(points, np.zeros((1, 1)), forces, 1, heights, same=False)
    # linear between 32 entries per octave: (ln 2 / 32)^2 / 8 of what changes within an e-th part
    np.testing.assert_allclose(heights, expected, atol=1e-4 * expected.max())
    np.testing.assert_allclose(forces, repulsion(u, *law)[:, None] * points, rtol=1e-10)
    on_mesh = umap_law(*law).radial().values(u)
    np.testing.assert_allclose(on_mesh, expected, atol=1e-6 * expected.max())


# --- forces -----------------------------------------------------------------------------------


def naive_heights(W, Y, law, rate):
    """J_i by loops: 2 sum_j p_ij log(1 + a u^b) + rate / 2n sum_j K(u)."""
    a, b = law
    n = len(W)
    J = np.zeros(n)
    for i in range(n):
        for j in range(n):
            if i != j:
                u = float(((Y[i] - Y[j]) ** 2).sum())
                J[i] += 2 * W[i, j] / W[i].sum() * math.log(1 + a * u**b)
                J[i] += rate / (2 * n) * potential(u, a, b)
    return J


@each("d", [1, 2, 3, 5])
@each("law", LAWS[:2])
def test_forces_are_half_the_slope_of_each_rows_loss(d, law, irregular):
    n, rate, step = 9, 3.5, 1e-4
    graph = graph_of(irregular(n, 3), 4)
    W, Y = dense(graph).astype(float), irregular(n, d, seed=1).astype(np.float32)
    forces = UmapForces(row_normalized(graph), umap_law(*law), rate, 0, 1)
    found = forces(Y, with_loss=True)
    gradient = found.attraction - found.repulsion / found.total
    J = naive_heights(W, Y.astype(float), law, rate)
    assert found.loss == pytest.approx(J.mean(), rel=1e-4)
    assert forces.loss(Y) == pytest.approx(J.mean(), rel=1e-4)
    for i in (0, 4, 8):  # only its own place counts for the loss of a row
        for k in range(d):
            ahead, behind = Y.astype(float), Y.astype(float)
            ahead[i, k] += step
            behind[i, k] -= step
            rise = [naive_heights(W, moved, law, rate)[i] for moved in (ahead, behind)]
            slope = (rise[0] - rise[1]) / (4 * step)
            assert gradient[i, k] == pytest.approx(slope, abs=1e-4 * float(np.abs(gradient).max()))


@each("d", [1, 2, 3])
@each(("pitch", "error"), [(0.8, 0.03), (0.6, 0.01)])
def test_the_field_on_the_mesh_is_the_sum_over_pairs(d, pitch, error, monkeypatch):
    """1 % is what the law promises for its pitch; a coarser mesh may be off by 3 %."""
    rng = np.random.default_rng(0)
    places = rng.uniform(-3, 3, (12, d))[rng.integers(0, 12, 400)]
    Y = (places + rng.gamma(1.0, 0.25, (400, d))).astype(np.float32)
    graph = graph_of(rng.random((400, 3)), 5)
    assert _umap_descent.PITCH == 0.6
    monkeypatch.setattr(_umap_descent, "PITCH", pitch)
    found = []
    for pair in (0.0, 1e9):  # what a pair is taken to cost decides the way
        monkeypatch.setattr(_umap_descent, "PAIR", pair)
        forces = UmapForces(row_normalized(graph), umap_law(1.577, 0.895), 5.0, 0, 1)
        push = np.empty_like(Y)
        forces.repel(Y, push, 3, True)
        found.append((push, forces._potential.copy()))
    (pairs, height), (mesh, mesh_height) = found
    assert not np.array_equal(pairs, mesh)
    assert np.linalg.norm(mesh - pairs) < error * np.linalg.norm(pairs)
    np.testing.assert_allclose(mesh_height, height, rtol=error)


def test_drawn_pairs_are_drawn_anew_in_every_step_and_right_on_average(monkeypatch, irregular):
    monkeypatch.setattr(_umap_descent, "PAIR", 1e9)
    Y = irregular(60, 5).astype(np.float32)
    forces = UmapForces(row_normalized(graph_of(Y, 5)), umap_law(1.577, 0.895), 5.0, 11, 1)
    steps = np.array([forces(Y).repulsion.copy() for _ in range(400)])
    assert not np.array_equal(steps[0], steps[1])
    exact = np.empty_like(Y)
    umap_law(1.577, 0.895).repel(Y, Y, exact, 1)
    error = steps.std(axis=0) / math.sqrt(len(steps))
    assert (np.abs(steps.mean(axis=0) - exact) < 5 * error).all()  # of 300 numbers, chance 2e-4


def test_rearranged_points_have_the_same_forces(irregular):
    X = irregular(80, 4)
    graph, Y = graph_of(X, 6), irregular(80, 2, seed=1).astype(np.float32)
    forces = UmapForces(row_normalized(graph), umap_law(1.577, 0.895), 5.0, 0, 1)
    squares = known_squares(graph, knn_graph(X, 5))
    forces.density = DensityTerm(graph, data_radii(graph, squares), 2.0, 1.577, 0.895, 1)
    before = forces(Y).attraction.copy()
    order = forces.arrange(Y)
    assert not np.array_equal(order, np.arange(80))
    after = forces(np.ascontiguousarray(Y[order])).attraction
    np.testing.assert_allclose(after, before[order], atol=1e-4 * np.abs(before).max())


# --- densities --------------------------------------------------------------------------------


def test_radii_in_the_data_are_weighted_means_of_squared_distances(irregular):
    X = irregular(40, 3)
    graph = graph_of(X, 6)
    squares = known_squares(graph, knn_graph(X, 5))
    W, D2 = dense(graph).astype(float), cdist(X, X, "sqeuclidean")
    np.testing.assert_allclose(squares, D2[graph.rows(), graph.indices], rtol=1e-5)
    expected = np.log((W * D2).sum(axis=1) / W.sum(axis=1))
    np.testing.assert_allclose(data_radii(graph, squares), expected, rtol=1e-5, atol=1e-6)


@each("d", [1, 2, 3, 5])
@each("strength", [0.5, 2.0])
def test_the_force_of_the_densities_is_the_slope_of_their_correlation(d, strength, irregular):
    n, law = 20, (1.577, 0.895)
    graph = graph_of(irregular(n, 3), 5)
    graph = graph._replace(weights=graph.weights.astype(float))
    W, Y = dense(graph), irregular(n, d, seed=1)
    R = np.random.default_rng(0).standard_normal(n)
    term = DensityTerm(graph, R, strength, *law, 1)
    gradient = np.zeros_like(Y)
    term.add_to(gradient, Y)

    def correlation(Y):
        u = cdist(Y, Y, "sqeuclidean")
        phi = np.where(W > 0, 1 / (1 + law[0] * u ** law[1]), 0)
        r = np.log((phi * u).sum(axis=1) / phi.sum(axis=1))
        return ((R - R.mean()) * (r - r.mean())).mean() / R.std() / math.sqrt(r.var() + 0.1)

    slope = slope_of(correlation, Y)
    # the mean step of the reference implementation, 2 lambda M dCorr/dy_i, divided by 2 deg_i
    degrees = W.sum(axis=1)
    expected = -strength * degrees.sum() / 2 * slope / degrees[:, None]
    np.testing.assert_allclose(gradient, expected, atol=1e-5 * np.abs(expected).max())


# --- targets ----------------------------------------------------------------------------------


def reset(W):
    return united(W / W.max(axis=1, keepdims=True))


@each("weight", [0.1, 0.5, 0.9, 1.0])
def test_classes_weaken_the_edges_between_them(weight, irregular):
    graph = graph_of(irregular(40, 3), 8)
    labels = np.random.default_rng(0).choice([-1, 3, 7, 9], 40)
    W, expected = dense(graph).astype(float), np.zeros((40, 40))
    for i, j in zip(*np.nonzero(W), strict=True):
        if labels[i] == -1 or labels[j] == -1:
            factor = math.exp(-1)
        elif labels[i] == labels[j]:
            factor = 1.0
        else:
            factor = math.exp(-2.5 / (1 - weight)) if weight < 1 else 0.0
        expected[i, j] = W[i, j] * factor
    found = with_classes(graph, class_codes(labels, 40, "UMAP"), weight, 1)
    np.testing.assert_allclose(dense(found), reset(expected), atol=1e-5)


@each("weight", [0.1, 0.3, 0.5, 0.8])
def test_numbers_are_intersected_as_a_graph_of_their_own(weight, irregular):
    graph, numbers = graph_of(irregular(40, 3), 8), graph_of(irregular(40, 1, seed=1), 8)
    V, W = dense(graph).astype(float), dense(numbers).astype(float)
    least_v = max(V[V > 0].min() / 2, 1e-8)
    least_w = min(max(W[W > 0].min() / 2, 1e-8), 1e-4)
    expected = np.zeros((40, 40))
    for i, j in zip(*np.nonzero(V + W), strict=True):
        v, w = max(V[i, j], least_v), max(W[i, j], least_w)
        powers = (1, weight / (1 - weight)) if weight < 0.5 else ((1 - weight) / weight, 1)
        expected[i, j] = v ** powers[0] * w ** powers[1]
    found = dense(with_numbers(graph, numbers, weight, 1))
    np.testing.assert_allclose(found, reset(expected), atol=1e-5)


def test_targets_change_the_graph_as_in_umap_learn():
    graph = graph_of(ROWS, 5)
    codes = class_codes(PEER["labels"], 12, "UMAP")
    # a row is divided by its largest weight, not below 0.3 here, which enlarges the peer's error
    for case in PEER["classes"]:
        found = with_classes(graph, codes, case["weight"], 1)
        np.testing.assert_allclose(upper(found), case["upper"], atol=4 * PEER_ERROR)
    numbers = graph_of(np.array(PEER["measured"])[:, None], 5)
    for case in PEER["numbers"]:
        found = with_numbers(graph, numbers, case["weight"], 1)
        np.testing.assert_allclose(upper(found), case["upper"], atol=4 * PEER_ERROR)


@each(
    "labels",
    [
        [2, -1, 5, 2, -1],
        [2.0, np.nan, 5.0, 2.0, -1.0],
        ["b", None, "c", "b", None],
        np.array([2, -1, 5, 2, -1], np.int8),
        np.array(["b", None, "c", "b", None], object),
    ],
)
def test_unknown_labels_are_minus_one_none_and_nan(labels):
    assert class_codes(labels, 5, "UMAP").tolist() == [0, -1, 1, 0, -1]


def test_rows_whose_labels_are_all_unknown_keep_their_graph(irregular):
    graph = graph_of(irregular(30, 3), 6)
    found = with_classes(graph, class_codes([-1] * 30, 30, "UMAP"), 0.5, 1)
    # the largest weight of each row is 1, but the union is taken again
    np.testing.assert_allclose(dense(found), reset(dense(graph)), atol=1e-5)


def test_booleans_and_minus_one_as_text_are_classes():
    assert class_codes([True, False, True], 3, "UMAP").tolist() == [1, 0, 1]
    assert class_codes(["-1", "a", "-1"], 3, "UMAP").tolist() == [0, 1, 0]


def test_bad_targets_are_refused_by_name():
    with pytest.raises(DataError, match="y"):
        class_codes([1, 2], 3, "UMAP")
    with pytest.raises(DataError, match=r"y mixes labels.*int, str"):
        class_codes(np.array([1, "a", 2], object), 3, "UMAP")
    with pytest.raises(DataError, match=r"y holds 0.5.*target_metric='euclidean'"):
        class_codes([1.0, 0.5, 2.0], 3, "UMAP")
    by_numbers = UMAP(target_metric="euclidean", n_neighbors=3)
    with pytest.raises(DataError, match="y is the same number in all rows"):
        by_numbers.fit(ROWS[:5], [2.0] * 5)
    with pytest.raises(DataError, match="y contains NaN in row 1"):
        by_numbers.fit(ROWS[:3], [1.0, np.nan, 2.0])


def test_a_graph_without_edges_stays_empty():
    nothing = FuzzyGraph(np.zeros(4, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    assert with_classes(nothing, np.array([0, 1, 1]), 0.5, 1).indices.size == 0
    assert (row_normalized(nothing).degrees() == 0).all()
