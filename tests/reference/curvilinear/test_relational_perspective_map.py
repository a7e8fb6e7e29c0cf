"""Relational perspective map against the energy, its gradient, the paper's rule and known maps."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland import RelationalPerspectiveMap
from lowland._engines.neighbors.duplicates import equal_in_distances
from lowland.methods.curvilinear.relational_perspective_map import TorusEnergy, cut_open, relocated
from lowland.workflow import compare_methods
from reference.plain import FOUR_ROWS, slope_of
from support.bent_rows import rows
from support.cases import each


def torus_distance(a, b, sides):
    return sum(min(abs(s - t), side - abs(s - t)) for s, t, side in zip(a, b, sides, strict=True))


def energy(delta, Y, p, sides):
    """E_p, pair by pair; at p = -1 points may meet, and count as a little apart."""
    total, least = 0.0, 1e-6 * sum(sides) / 2
    for i, j in itertools.combinations(range(len(Y)), 2):
        d = max(torus_distance(Y[i], Y[j], sides), least)
        total += -delta[i, j] * np.log(d) if p == 0 else delta[i, j] / (p * d**p)
    return total


def clusters():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 20)
    return 6 * rng.standard_normal((6, 8))[y] + rng.standard_normal((120, 8)), y


def distances_on(model):
    Y, sides = model.embedding_, model.sides_
    along = np.abs(Y[:, None] - Y)
    return np.minimum(along, sides - along).sum(axis=2)


# --- the energy -------------------------------------------------------------------------------
FIXTURE_Y = np.array([(0.1, 0.1), (0.4, 0.2), (0.8, 0.9), (0.3, 0.7)])


@each("p, expected", [(0.0, 5.6604987839), (1.0, 18.4541233616), (-0.5, -16.5359322374)])
def test_four_points_have_the_known_energies(p, expected):
    delta = cdist(FOUR_ROWS, FOUR_ROWS)
    found = TorusEnergy(delta, np.ones(2), p, 1)(FIXTURE_Y)
    assert abs(found.energy - expected) < 1e-9
    np.testing.assert_allclose(found.per_point.sum(), 2 * expected)
    kept = RelationalPerspectiveMap(rigidity=p, init=FIXTURE_Y, max_iter=0).fit(FOUR_ROWS)
    assert abs(kept.stress_ - expected) < 1e-9


@each("p", [-1.0, -0.6, -0.25, 0.0, 0.5, 1.0, 2.0])
@each("q", [1, 2, 3])
def test_the_stress_is_the_energy_of_the_map(p, q):
    X = rows(40)
    for aspect in (1.0, 1.7):
        model = RelationalPerspectiveMap(q, rigidity=p, aspect=aspect, random_state=0).fit(X)
        sides = [aspect, 1.0, 1.0][:q]
        np.testing.assert_array_equal(model.sides_, sides)
        Y = model.embedding_
        assert Y.min() >= 0
        assert (Y / sides).max() < 1
        expected = energy(cdist(X, X), Y, p, sides)
        np.testing.assert_allclose(model.stress_, expected, rtol=1e-9)
        assert model.loss_history_[-1] == model.stress_
        assert len(model.loss_history_) == model.n_iter_ + 1 <= 201


@each("p", [-0.7, -0.25, 0.0, 1.0, 1.5])
@each("q", [1, 2, 3])
def test_forces_are_minus_the_gradient(p, q):
    rng = np.random.default_rng(1)
    sides = np.array([1.3, 1.0, 1.0])[:q]
    Y, delta = rng.random((12, q)) * sides, cdist(rows(12), rows(12))
    along = np.abs(Y[:, None] - Y)
    kinks = np.concatenate([along[along > 0], np.abs(along - sides / 2)[along > 0]])
    h = 1e-6
    assert kinks.min() > 2 * h  # no pair changes its shorter way within a difference
    forces = TorusEnergy(delta, sides, p, 1)(Y).forces
    slope = slope_of(lambda Y: energy(delta, Y, p, sides), Y, h)
    np.testing.assert_allclose(forces, -slope, rtol=0, atol=1e-6 * np.abs(forces).max())


# --- the descent ------------------------------------------------------------------------------


def paper_rule(delta, Y, p, steps, decay):
    """The lowest energy on the way of Dx_i = c_t sum_j h f / sum_j (f / d), c_t = decay^t / 2."""
    Y, lowest, c = Y.copy(), np.inf, 0.5
    for _ in range(steps):
        along = Y[:, None] - Y
        length = np.minimum(np.abs(along), 1 - np.abs(along))
        h = np.sign(along) * np.sign(0.5 - np.abs(along))
        d = np.maximum(length.sum(axis=2), 1e-6)
        pairs = -delta * np.log(d) if p == 0 else delta / (p * d**p)
        lowest = min(lowest, pairs.sum() / 2)
        f = delta / d ** (p + 1)
        Y = np.mod(Y + c * (h * f[:, :, None]).sum(axis=1) / (f / d).sum(axis=1)[:, None], 1.0)
        c *= decay
    return lowest


@pytest.mark.slow
@each("p", [-0.5, 0.0, 1.0])
@each("init", ["classical", "random"])
def test_the_energy_is_at_most_that_of_the_papers_rule(p, init):
    for X in (rows(100), clusters()[0]):
        D, settings = cdist(X, X), {"rigidity": p, "init": init, "random_state": 2}
        start = RelationalPerspectiveMap(**settings, max_iter=0).fit(X).embedding_
        lowest = paper_rule(D, start, p, 600, 0.99)  # from 1/2 to 1/1000, where nothing moves
        model = RelationalPerspectiveMap(**settings, n_jobs=1).fit(X)
        assert model.stress_ <= lowest + 1e-9 * abs(lowest)


def test_two_points_go_half_round_every_axis():
    X = np.array([[0.0, 0.0], [1.0, 3.0]])
    for p, init, aspect in itertools.product((-0.5, 0.0, 1.0), ("classical", "random"), (1, 1.6)):
        model = RelationalPerspectiveMap(rigidity=p, init=init, aspect=aspect, random_state=1)
        Y = model.fit(X).embedding_
        assert abs(torus_distance(*Y, model.sides_) - (aspect + 1) / 2) < 1e-4


def test_a_given_start_is_followed_downward():
    X, start = rows(50), np.random.default_rng(0).random((50, 2))
    model = RelationalPerspectiveMap(init=start).fit(X)
    np.testing.assert_allclose(model.loss_history_[0], energy(cdist(X, X), start, 0, [1, 1]))
    assert (np.diff(model.loss_history_) <= 0).all()
    assert model.loss_history_[-1] < model.loss_history_[0]
    beyond = RelationalPerspectiveMap(init=start + np.array([3.0, -2.0]), max_iter=0).fit(X)
    np.testing.assert_allclose(beyond.stress_, model.loss_history_[0])


def test_points_in_one_place_come_apart():
    X = rows(30)
    model = RelationalPerspectiveMap(init=np.zeros((30, 2)), rigidity=1.0, random_state=0).fit(X)
    apart = distances_on(model) + np.eye(30)
    assert apart.min() > 1e-3


def test_points_left_behind_are_relocated():
    X, y = clusters()
    D = cdist(X, X)
    D /= D.mean()
    good = RelationalPerspectiveMap(rigidity=-0.25, random_state=0).fit(X).embedding_
    Y = good.copy()
    strays = [0, 20, 40, 60]
    Y[strays] = good[[30, 50, 70, 90]] + 0.01  # in the middle of other clusters
    objective = TorusEnergy(D, np.ones(2), -0.25, 1)
    moved = relocated(objective, Y, None, np.random.default_rng(0))
    assert objective(moved).energy < objective(Y).energy
    for stray in strays:
        others = np.setdiff1d(np.arange(120), strays)
        d = [torus_distance(moved[stray], moved[j], [1, 1]) for j in others]
        assert y[others[np.argmin(d)]] == y[stray]


def test_equal_rows_share_one_place():
    X = rows(40)[np.r_[:40, 3, 3, 7]]
    for init in ("classical", "random"):
        Y = RelationalPerspectiveMap(rigidity=1.0, init=init, random_state=0).fit(X).embedding_
        np.testing.assert_array_equal(Y[[40, 41, 42]], Y[[3, 3, 7]])
        assert len(np.unique(Y, axis=0)) == 40
    D = cdist(X, X)
    moved = relocated(
        TorusEnergy(D, np.ones(2), -0.25, 1),
        np.random.default_rng(0).random((40, 2))[np.r_[:40, 3, 3, 7]],
        equal_in_distances(D),
        np.random.default_rng(0),
    )
    np.testing.assert_array_equal(moved[[40, 41, 42]], moved[[3, 3, 7]])


def test_many_rows_are_float32_and_as_good():
    X = rows(1100)
    model = RelationalPerspectiveMap(max_iter=30, random_state=0).fit(X)
    Y = np.ascontiguousarray(model.embedding_)
    exact = TorusEnergy(cdist(X, X), np.ones(2), 0.0, 2)(Y).energy
    np.testing.assert_allclose(model.stress_, exact, rtol=1e-5)


# --- the map ----------------------------------------------------------------------------------


def test_the_edges_lie_in_the_sparsest_strip():
    rng = np.random.default_rng(0)
    u = np.mod(0.37 + 0.9 * rng.random(200), 1.0)  # empty from 0.27 to 0.37
    v = 2 * rng.random(200)
    v = v[(v < 1.1) | (v > 1.3)]
    Y = np.column_stack([u[: len(v)], v])
    cut = cut_open(Y, np.array([1.0, 2.0]))
    assert (cut.min(axis=0) > [0.045, 0.095]).all()
    assert (cut.max(axis=0) < [1 - 0.045, 2 - 0.095]).all()
    for k, side in enumerate((1.0, 2.0)):
        shift = np.mod(cut[:, k] - Y[:, k], side)
        assert np.ptp(shift) < 1e-12 or np.ptp(np.mod(shift + side / 2, side)) < 1e-12


def test_the_torus_of_two_circles_keeps_both_angles():
    rng = np.random.default_rng(4)
    a, b = 2 * np.pi * rng.random((2, 300))
    X = np.column_stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b)])
    model = RelationalPerspectiveMap(random_state=0).fit(X)
    turns = 2 * np.pi * model.embedding_
    for angle in (a, b):
        # an angle goes once round one axis: e^(i angle) = c e^(+-i turn) with |c| = 1
        fits = [abs(np.exp(1j * (angle - s * t)).mean()) for t in turns.T for s in (1, -1)]
        assert max(fits) > 0.95
    near = (distances_on(model) + 9 * np.eye(300)).argmin(axis=1)
    gaps = np.linalg.norm(X - X[near], axis=1)
    assert np.quantile(gaps, 0.9) < 0.5  # also across the edges; random pairs are 2 apart
    flat = np.abs(model.embedding_ - model.embedding_[near]).max(axis=1)
    assert (flat > 0.5).any()


def test_the_stress_of_a_point_is_relative_at_the_best_scale():
    X = rows(25)
    model = RelationalPerspectiveMap(aspect=1.4, random_state=0).fit(X)
    D, d = cdist(X, X), distances_on(model)
    scale = (D * d).sum() / (d * d).sum()
    expected = np.sqrt(((D - scale * d) ** 2).sum(axis=1) / (D**2).sum(axis=1))
    np.testing.assert_allclose(model.stress_per_point_, expected, rtol=1e-8)


def test_the_method_says_that_its_map_wraps():
    assert RelationalPerspectiveMap.wraps
    assert "left edge meets the right" in RelationalPerspectiveMap.reading.axes


# --- new rows ---------------------------------------------------------------------------------


def test_a_comparison_does_not_turn_a_torus():
    found = compare_methods("iris", ["pca", "rpm"])
    torus = found._entries[1]["coordinates"]
    np.testing.assert_array_equal(torus, found._attempts[1].fit.Y)
