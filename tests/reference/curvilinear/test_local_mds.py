"""Local MDS against its definition, its limits, and the optimizer of the public code."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist, pdist

from lowland import MDS, PCA
from lowland._engines.graphs import laplacian as multigrid
from lowland._engines.graphs.laplacian import graph_multigrid
from lowland.datasets import swiss_roll
from lowland.errors import DataError
from lowland.methods.curvilinear import local_mds
from lowland.methods.curvilinear.local_mds import (
    DistanceSums,
    LocalMDS,
    LocalStress,
    NeighborOverlap,
)
from lowland.metrics import continuity, trustworthiness
from reference.plain import FOUR_PLACES, FOUR_ROWS
from support.bent_rows import rows as irregular_rows
from support.cases import each
from support.oracles.curvilinear_local_mds import neighbor_pairs, strength


def naive(Y, D, pairs, t):
    """E, pair by pair."""
    total = 0.0
    for i in range(len(D)):
        for j in range(i + 1, len(D)):
            d = np.linalg.norm(Y[i] - Y[j])
            total += (D[i, j] - d) ** 2 if (i, j) in pairs else -t * d
    return total


def graph_of(D, pairs):
    i, j = np.array(sorted(pairs)).T
    both = np.concatenate([i, j]), np.concatenate([j, i])
    return csr_matrix((np.tile(D[i, j], 2), both), shape=D.shape)


def objective_of(D, k, tau, q=2):
    pairs = neighbor_pairs(D, k)
    rng = np.random.default_rng(0)
    return LocalStress(graph_of(D, pairs), q, rng, 1).with_tau(tau), pairs


# --- the objective ----------------------------------------------------------------------------


def test_the_value_of_four_points():
    D = cdist(FOUR_ROWS, FOUR_ROWS)
    objective, _ = objective_of(D, 1, 0.5)
    assert objective.strength == pytest.approx(0.5315072906, abs=1e-9)
    assert objective(FOUR_PLACES).loss == pytest.approx(0.8237102469, abs=1e-9)
    model = LocalMDS(n_neighbors=1, tau=0.5, init=FOUR_PLACES, max_iter=0).fit(FOUR_ROWS)
    assert model.stress_ == pytest.approx(0.8237102469, abs=1e-9)
    assert model.repulsion_ == pytest.approx(0.5315072906, abs=1e-9)


@each("q", [1, 2, 3, 4])
@each(("k", "tau"), [(3, 1.0), (6, 0.03), (29, 1.0)])
def test_value_and_gradient_are_those_of_the_definition(k, tau, q):
    D = cdist(irregular_rows(30, 4), irregular_rows(30, 4))
    objective, pairs = objective_of(D, k, tau, q)
    t = 0.0 if k == 29 else strength(D, pairs, tau)
    assert objective.strength == pytest.approx(t, rel=1e-12)
    Y = irregular_rows(30, q, seed=1)
    assert objective(Y).loss == pytest.approx(naive(Y, D, pairs, t), rel=1e-10)

    def value(y):
        return objective(y.reshape(Y.shape)).loss

    def gradient(y):
        return 2 * objective(y.reshape(Y.shape)).slope.ravel()

    size = np.linalg.norm(gradient(Y.ravel()))
    assert check_grad(value, gradient, Y.ravel(), epsilon=1e-6) < 1e-4 * size


@each("tau", [1.0, 0.05])
def test_a_guttman_step_never_raises_the_objective(tau):
    D = cdist(irregular_rows(60, 4), irregular_rows(60, 4))
    objective, pairs = objective_of(D, 4, tau)
    by_cycles = graph_multigrid(graph_of(D, pairs), np.random.default_rng(0), 1)
    for seed in range(5):
        for solve in (objective.precondition, by_cycles):
            Y = irregular_rows(60, 2, seed) - irregular_rows(60, 2, seed).mean(axis=0)
            for _ in range(5):
                here = objective(Y)
                Y = Y - solve(here.slope)
                assert objective(Y).loss < here.loss


@each("data", ["sheet", "cloud"])
def test_the_cycle_lies_between_zero_and_the_inverse(data, monkeypatch):
    """B is symmetric, and the eigenvalues of B V are in (0, 1], but for the constant vector."""
    monkeypatch.setattr(multigrid, "COARSEST", 20)
    X = swiss_roll(300, random_state=0).X if data == "sheet" else irregular_rows(300, 8)
    near = lists_of(cdist(X, X), 6)
    A = np.zeros((300, 300))
    A[np.arange(300)[:, None], near] = A[near, np.arange(300)[:, None]] = 1.0
    V = np.diag(A.sum(axis=1)) - A
    H = np.eye(300) - 1 / 300
    B = graph_multigrid(csr_matrix(A), np.random.default_rng(0), 1)(H)
    np.testing.assert_allclose(B, B.T, atol=1e-12)
    squares, axes = np.linalg.eigh(V)
    root = axes * np.sqrt(np.maximum(squares, 0)) @ axes.T
    values = np.linalg.eigvalsh(root @ B @ root)
    assert abs(values[0]) < 1e-6  # of the constant vector
    by_degrees = np.linalg.eigvalsh(root @ (root / (2 * A.sum(axis=1)[:, None])))
    assert values[1] > 5 * by_degrees[1]
    assert values[-1] < 1 + 1e-9


def test_all_neighbors_give_the_stress_of_mds():
    X = irregular_rows(50, 5)
    start = PCA(2).fit_transform(X)
    ours = LocalMDS(n_neighbors=49, init=start, tol=1e-9, max_iter=2000).fit(X)
    metric = MDS(init=start, tol=1e-9, max_iter=2000).fit(X)
    assert ours.repulsion_ == 0
    d = pdist(ours.embedding_)
    assert ours.stress_ == pytest.approx(((pdist(X) - d) ** 2).sum(), rel=1e-9)
    assert ours.stress_ <= metric.stress_ * (1 + 1e-6)


# --- the sum of all distances -----------------------------------------------------------------


def maps_of(n, d):
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((n, d))
    yield normal
    yield normal / np.linalg.norm(normal, axis=1, keepdims=True)
    centers = 10 * rng.standard_normal((12, d))
    yield centers[rng.integers(0, 12, n)] + 0.5 * rng.standard_normal((n, d))
    far = normal.copy()
    far[:4] *= 200
    yield far


@each(("d", "kind"), [(2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (3, 1), (3, 3)])
def test_forces_on_the_mesh_are_within_one_percent(d, kind, monkeypatch):
    monkeypatch.setattr(local_mds, "MESH_ROWS", {2: 100, 3: 100})
    for Y in [list(maps_of(3000, d))[kind]]:
        exact = DistanceSums(10, d, 1)(Y)
        mesh = DistanceSums(3000, d, 1)
        assert mesh.mesh is not None
        total, units = mesh(Y)
        assert total == pytest.approx(exact[0], rel=1e-3)
        assert np.linalg.norm(units - exact[1]) < 0.01 * np.linalg.norm(exact[1])
        again = DistanceSums(3000, d, 2)(Y)
        assert again[0] == total
        assert again[1].tobytes() == units.tobytes()


def test_one_dimension_is_summed_exactly_from_the_order():
    Y = np.round(irregular_rows(300, 1), 1)  # with ties
    total, units = DistanceSums(300, 1, 1)(Y)
    assert total == pytest.approx(pdist(Y).sum(), rel=1e-12)
    np.testing.assert_array_equal(units[:, 0], np.sign(Y - Y.T).sum(axis=1))


# --- the map ----------------------------------------------------------------------------------


def public_code(Y, objective, n_steps=500):
    """The optimizer of the public code: gradient of length |Y|, step * 1.05 or * 0.5."""
    step, here = 0.1, objective(Y)
    for _ in range(n_steps):
        tried = Y - step * here.slope * np.linalg.norm(Y) / np.linalg.norm(here.slope)
        there = objective(tried)
        if there.loss < here.loss:
            Y, here, step = tried, there, 1.05 * step
        else:
            step *= 0.5
        if step < 1e-5:
            break
    return here.loss


@each("tau", [1.0, 0.1])
@each("data", ["roll", "irregular"])
def test_the_map_is_at_least_as_low_as_that_of_the_public_code(data, tau):
    X = swiss_roll(250, random_state=1).X if data == "roll" else irregular_rows(250, 6)
    start = PCA(2).fit_transform(X)
    model = LocalMDS(n_neighbors=6, tau=tau, init=start).fit(X)
    objective, pairs = objective_of(cdist(X, X), 6, tau)
    lowest = public_code(start, objective)
    assert objective(model.embedding_).loss == pytest.approx(model.stress_, rel=1e-8)
    assert model.stress_ <= lowest + 1e-6 * abs(lowest)
    assert naive(model.embedding_, cdist(X, X), pairs, model.repulsion_) == pytest.approx(
        model.stress_, rel=1e-8
    )


def test_a_curved_sheet_is_unrolled_and_mds_does_not():
    roll = swiss_roll(1000, random_state=0)
    model = LocalMDS(random_state=0).fit(roll.X)
    metric = MDS(random_state=0).fit_transform(roll.X)
    for measure in (trustworthiness, continuity):
        assert measure(roll.X, model.embedding_) > 0.995 > measure(roll.X, metric)


def test_the_grid_and_the_cycles_end_where_the_exact_sums_end(monkeypatch):
    X = swiss_roll(3000, random_state=0).X
    fast = LocalMDS(tau=0.01, random_state=0).fit(X)
    monkeypatch.setattr(local_mds, "MESH_ROWS", {})
    exact = LocalMDS(tau=0.01, random_state=0).fit(X)
    assert fast.stress_ == pytest.approx(exact.stress_, rel=0.01)
    assert fast.lc_ > exact.lc_ - 0.05


def test_the_geodesic_start_keeps_a_long_sheet_from_twisting():
    X = swiss_roll(6000, random_state=0).X
    model = LocalMDS(random_state=0, tol=1e-3).fit(X)
    assert model.lc_ > 0.9  # a twisted sheet has lost the neighbors at the twist
    assert model.tau_ < 0.01
    assert trustworthiness(X, model.embedding_) > 0.999


def test_separated_groups_stay_together():
    X = np.concatenate([irregular_rows(40, 3), irregular_rows(30, 3) + 500])
    model = LocalMDS(n_neighbors=5, tau=0.05).fit(X)
    assert model.n_connected_components_ == 2
    D = cdist(X, X)
    pairs = neighbor_pairs(D, 5)
    # at a stationary point the only edge between the groups holds what repels them
    bridge = D[:40, 40:].min()
    repelled = 40 * 30 * strength(D, pairs, 0.05) / 2
    gap = cdist(model.embedding_[:40], model.embedding_[40:]).min()
    assert gap < bridge + repelled + np.ptp(X[:40])
    with pytest.raises(DataError, match="2 connected components"):
        LocalMDS(n_neighbors=5, on_disconnected="raise").fit(X)


def test_equal_rows_share_a_place_and_count_once():
    X = irregular_rows(40, 3)
    copies = np.concatenate([X, X[:5], X[:5], X[:1].repeat(30, axis=0)])
    plain, model = (LocalMDS(n_neighbors=6, tau=0.1).fit(A) for A in (X, copies))
    Y = model.embedding_
    for copy, first in zip(Y[40:], [*range(5), *range(5), *[0] * 30], strict=True):
        np.testing.assert_array_equal(copy, Y[first])
    np.testing.assert_array_equal(model.distinct_rows_, np.arange(40))
    np.testing.assert_allclose(pdist(Y[:40]), pdist(plain.embedding_), rtol=0.1)
    assert (LocalMDS(n_neighbors=3).fit_transform(np.ones((9, 2))) == 0).all()


def test_stress_per_point_is_that_of_the_neighbors():
    X = irregular_rows(40, 4)
    model = LocalMDS(n_neighbors=5, tau=0.1).fit(X)
    D, d = cdist(X, X), cdist(model.embedding_, model.embedding_)
    pairs = neighbor_pairs(D, 5)
    for i in range(40):
        near = [j for j in range(40) if (min(i, j), max(i, j)) in pairs]
        size = sum(D[i, j] ** 2 for j in near)
        stress = sum((D[i, j] - d[i, j]) ** 2 for j in near)
        assert model.stress_per_point_[i] == pytest.approx(np.sqrt(stress / size), rel=1e-6)


# --- the criterion ----------------------------------------------------------------------------


def lists_of(D, k):
    return np.argsort(D + np.diag(np.full(len(D), np.inf)), axis=1, kind="stable")[:, :k]


def test_the_criterion_of_a_copy_and_of_chance():
    X = irregular_rows(300, 2)
    lists = lists_of(cdist(X, X), 10)
    overlap = NeighborOverlap(lists, 1)
    assert overlap(3 * X @ [[0.6, 0.8], [-0.8, 0.6]] + 5) == pytest.approx(1 - 10 / 299)
    rng = np.random.default_rng(0)
    chance = [overlap(rng.standard_normal((300, 2))) for _ in range(20)]
    # 20 * 3000 lists entries, each shared with probability 10/299
    assert abs(np.mean(chance)) < 4 * np.sqrt(10 / 299 / 60000)
    Y = irregular_rows(300, 2, seed=3)
    shared = [len({*a} & {*b}) for a, b in zip(lists, lists_of(cdist(Y, Y), 10), strict=True)]
    assert overlap(Y) == pytest.approx(np.mean(shared) / 10 - 10 / 299)


def test_auto_keeps_the_best_of_its_path(monkeypatch):
    for X in (swiss_roll(300, random_state=0).X, irregular_rows(200, 8)):
        model = LocalMDS(tol=1e-3).fit(X)  # the map on the path is the last one
        best = model.lc_path_.argmax()
        assert model.tau_ == model.tau_path_[best]
        assert model.lc_ == model.lc_path_[best]
        assert model.tau_path_[0] == 1
        assert (np.diff(model.tau_path_) < 0).all()
    monkeypatch.setattr(local_mds, "TRIED_NEIGHBORS", (5, 9, 14))
    settings = {"tol": 1e-3, "init": "classical"}  # a start without random landmarks
    found = {k: LocalMDS(n_neighbors=k, **settings).fit(X).lc_ for k in (5, 9, 14)}
    model = LocalMDS(n_neighbors="auto", **settings).fit(X)
    assert model.n_neighbors_ == max(found, key=lambda k: found[k])
