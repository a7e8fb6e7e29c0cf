"""Maximum variance unfolding against closed forms, a conic optimum, its dual and known sheets."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist, pdist

from lowland import MVU, PCA, Isomap
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.linalg.procrustes import align
from lowland.datasets import swiss_roll
from lowland.errors import ConvergenceWarning, DataError, ParameterError
from lowland.methods.unfolding.mvu import (
    KeptPairs,
    Lagrangian,
    duality_gap,
    place_by_lateration,
)
from support.bent_rows import rows as irregular_rows
from support.cases import each
from support.changes import Change
from support.held_out import GIVEN, GRAPH
from support.oracles.basics import HeldOut, distances_of, first_nearest
from support.witness import Witness


def lateration(task: HeldOut) -> np.ndarray:
    """2 (y_j - m).(z - m) = |y_j - m|^2 - d_j^2 - mean, in least squares, in all axes of Y.

    Directions in which the neighbors spread less than a fifth of the most are left out.
    """
    model, T = task.model, distances_of(task, graph=True)[1]
    T = np.delete(T, model.excluded_, axis=1)
    Y = model.factor_ * model.edge_unit_
    Z = []
    for t in T:
        near = first_nearest(t, task.params["n_neighbors"])
        m = sum(Y[j] for j in near) / len(near)
        sides = np.array([((Y[j] - m) ** 2).sum() - t[j] ** 2 for j in near])
        U, s, V = np.linalg.svd(np.array([Y[j] - m for j in near]), full_matrices=False)
        wide = s > 0.2 * s[0]
        z = m + V[wide].T @ ((U.T @ (sides - sides.mean()))[wide] / (2 * s[wide]))
        Z.append(z[: task.Y.shape[1]])
    return np.array(Z)


WITNESS = Witness(
    places=lateration,
    cases=[
        *GRAPH,
        ({"n_neighbors": 6, "n_components": 3}, "rows"),
        ({"n_neighbors": 6, "slack": 0.0}, "rows"),
        ({"n_neighbors": 6, "rank": 4}, "rows"),
        ({"n_neighbors": 6, "landmarks": 20}, "rows"),
        ({"n_neighbors": 6, "landmarks": 20, **GIVEN}, "distances"),
    ],
    changes={"random_state": Change(1, {"landmarks": 20})},
)


def union_graph(X, k):
    """Pairs of which either is among the k nearest of the other, with their distances."""
    D = cdist(X, X)
    near = np.argsort(D, axis=1, kind="stable")[:, 1 : k + 1]
    joined = np.zeros(D.shape, bool)
    joined[np.arange(len(X))[:, None], near] = True
    return np.where(joined | joined.T, D, 0.0)


def relative_lengths(model, X, k):
    """Distances of the factor relative to those of the kept pairs."""
    G = union_graph(X, k)
    i, j = np.nonzero(np.triu(G))
    Y = model.factor_ * model.edge_unit_
    return np.sqrt(((Y[i] - Y[j]) ** 2).sum(axis=1)) / G[i, j]


def error(truth, Y):
    """Relative error after the best rigid motion and scale."""
    aligned = align(truth, Y).aligned
    centered = truth - truth.mean(axis=0)
    return np.linalg.norm(aligned - truth) / np.linalg.norm(centered)


def helix():
    t = np.linspace(0, 3 * np.pi, 30)
    return np.column_stack([np.cos(t), np.sin(t), t / 4])


# --- closed forms and optima ------------------------------------------------------------------


@each("slack", [0.0, 0.01, 1.0])
def test_a_path_becomes_a_straight_line(slack):
    """The triangle inequality bounds all distances by those along the path, and a line has them."""
    lengths = np.random.default_rng(0).gamma(2.0, size=24)
    steps = np.arange(24)
    graph = scipy.sparse.csr_matrix((lengths, (steps, steps + 1)), shape=(25, 25))
    model = MVU(1, n_neighbors=2, metric="precomputed", slack=slack, tol=1e-7, random_state=0)
    Y = model.fit_transform(graph + graph.T)[:, 0]
    line = np.concatenate([[0], np.cumsum(lengths)])
    np.testing.assert_allclose(np.sort(np.abs(Y - Y[0])), line, atol=1e-4 * line[-1])
    assert model.rank_ == 1
    assert model.duality_gap_ < 1e-3


def test_the_helix_reaches_the_optimum_of_a_conic_solver():
    model = MVU(2, n_neighbors=4, slack=0.0, random_state=0).fit(helix())
    assert np.count_nonzero(np.triu(union_graph(helix(), 4))) == 63
    np.testing.assert_allclose(model.variance_, 241.918, rtol=1e-4)
    np.testing.assert_allclose(model.eigenvalues_[0], 241.779, rtol=1e-4)


def test_with_all_distances_kept_it_is_pca():
    """Too many distances leave nothing to unfold."""
    X = irregular_rows(25, 3)
    model = MVU(2, n_neighbors=24, slack=0.0, random_state=0).fit(X)
    scores = PCA(3).fit_transform(X)
    signs = np.sign((scores[:, :2] * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.embedding_ * signs, scores[:, :2], atol=1e-3 * np.ptp(scores))
    np.testing.assert_allclose(model.variance_, (scores**2).sum(), rtol=1e-3)


@each("slack", [0.01, 0.2])
@each("data", ["helix", "roll"])
def test_the_variance_is_that_of_a_conic_solver(data, slack):
    cvxpy = pytest.importorskip("cvxpy")
    X = helix() if data == "helix" else swiss_roll(25, random_state=0).X
    G = union_graph(X, 4)
    unit = np.sqrt((G[G > 0] ** 2).mean())
    G /= unit
    K = cvxpy.Variable((len(X), len(X)), PSD=True)
    bounds = [cvxpy.sum(K) == 0]
    for i, j in zip(*np.nonzero(np.triu(G)), strict=True):
        square = K[i, i] - 2 * K[i, j] + K[j, j]
        bounds += [square <= G[i, j] ** 2, square >= ((1 - slack) * G[i, j]) ** 2]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        best = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(K)), bounds).solve(solver="CLARABEL")
    model = MVU(2, n_neighbors=4, slack=slack, tol=1e-7, random_state=0).fit(X)
    np.testing.assert_allclose(model.variance_ / unit**2, best, rtol=2e-3)


@each("seed", [0, 1])
@each("slack", [0.0, 0.01, 0.3])
def test_distances_are_kept_and_the_variance_is_not_below_that_of_the_rows(slack, seed):
    """The rows themselves are a map that keeps the distances."""
    X = irregular_rows(40, 3, seed)
    model = MVU(2, n_neighbors=5, slack=slack, random_state=0).fit(X)
    length = relative_lengths(model, X, 5)
    off = np.maximum(np.maximum(length - 1, 1 - slack - length), 0)
    assert model.violation_max_ <= max(0.1 * slack, 1e-4)
    # short distances are compared with 3 % of the root mean square
    assert np.median(off) <= model.violation_max_
    assert model.variance_ >= ((X - X.mean(axis=0)) ** 2).sum() * (1 - 1e-4)
    np.testing.assert_allclose(
        model.factor_.mean(axis=0), 0, atol=1e-9 * np.abs(model.factor_).max()
    )
    parts = (model.factor_**2).sum(axis=0) * model.edge_unit_**2
    np.testing.assert_allclose(model.variance_, parts.sum(), rtol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, parts, rtol=1e-9)
    assert (np.diff(model.eigenvalues_) <= 0).all()


# --- the Lagrangian and the dual --------------------------------------------------------------


def some_pairs(slack, seed=0, masses=None):
    G = union_graph(irregular_rows(30, 4, seed), 4)
    G /= np.sqrt((G[G > 0] ** 2).mean())
    masses = np.ones(30) if masses is None else masses
    return KeptPairs(scipy.sparse.csr_matrix(G), masses, slack, 1), G


@each("slack", [0.0, 0.1, 1.0])
@each("strongest", [0.3, 50.0])
def test_the_slope_is_half_the_gradient(slack, strongest):
    pairs, G = some_pairs(slack, masses=np.arange(1, 31))
    rng = np.random.default_rng(1)
    multipliers = np.maximum(rng.standard_normal(len(pairs.lengths)), -strongest)
    objective = Lagrangian(pairs, multipliers, 7.0, strongest, lambda slope: slope)
    Y = rng.standard_normal((30, 3))
    here, step = objective(Y), 1e-6
    # the loss from its definition, one pair at a time
    mean = np.average(Y, axis=0, weights=pairs.masses)
    loss = -(pairs.masses[:, None] * (Y - mean) ** 2).sum()
    for i, j, m in zip(pairs.first, pairs.second, multipliers, strict=True):
        scale = max(G[i, j], 0.03)
        length, most = np.linalg.norm(Y[i] - Y[j]) / scale, G[i, j] / scale
        above = m + 7 * (length - most)
        below = m + 7 * (length - (1 - slack) * most)
        if above > 0:
            loss += above**2 / 14
        if -strongest < below < 0:
            loss += below**2 / 14
        if below <= -strongest:
            loss += (strongest**2 - 2 * strongest * (below + strongest)) / 14
        loss -= m**2 / 14
    np.testing.assert_allclose(here.loss, loss, rtol=1e-10)
    for at in [(0, 0), (3, 1), (17, 2), (29, 0)]:
        moved = Y.copy()
        moved[at] += step
        ahead = objective(moved).loss
        moved[at] -= 2 * step
        slope = (ahead - objective(moved).loss) / (4 * step)
        np.testing.assert_allclose(here.slope[at], slope, rtol=1e-5, atol=1e-6)


def test_no_allowed_map_has_a_larger_variance_than_the_gap_says():
    """A bad factor and rough tensions still give a bound, which better maps do not exceed."""
    X = irregular_rows(40, 3)
    best = MVU(2, n_neighbors=4, slack=0.05, tol=1e-7, random_state=0).fit(X)
    rough = MVU(2, n_neighbors=4, slack=0.05, tol=1e-1, max_iter=40, random_state=0).fit(X)
    assert best.duality_gap_ < 0.02 < rough.duality_gap_
    assert best.variance_ <= rough.variance_ * (1 + rough.duality_gap_) * (1 + 1e-6)


def test_the_bound_is_that_of_the_tensions():
    """tr(H K) <= sum w d^2 for L_w >= H: here the tensions are enough without a correction."""
    pairs, G = some_pairs(1.0)
    W = np.where(G > 0, 1.0, 0.0)
    L = np.diag(W.sum(axis=1)) - W
    w = np.full(len(pairs.lengths), 1 / np.linalg.eigvalsh(L)[1])
    Y = np.random.default_rng(0).standard_normal((30, 2))
    run = FitContext(np.random.default_rng(0), 1, Monitor())
    bound = (w * pairs.lengths**2).sum() / ((Y - Y.mean(axis=0)) ** 2).sum()
    np.testing.assert_allclose(duality_gap(pairs, Y, w, 1.0, run), bound - 1, rtol=1e-6)


def test_tensions_that_are_too_weak_are_corrected():
    pairs, _ = some_pairs(1.0)
    run = FitContext(np.random.default_rng(0), 1, Monitor())
    i, j = pairs.first, pairs.second
    P = np.zeros((30, 30))
    P[i, j] = P[j, i] = pairs.lengths**-2
    P = np.diag(P.sum(axis=1)) - P
    values, axes = np.linalg.eigh(P)
    root = axes[:, 1:] / np.sqrt(values[1:])
    tau = np.linalg.eigvalsh(root.T @ root)[-1]  # tau P >= H on vectors without mean
    Y = np.random.default_rng(0).standard_normal((30, 2))
    bound = tau * len(i) / ((Y - Y.mean(axis=0)) ** 2).sum()
    found = duality_gap(pairs, Y, np.zeros(len(i)), 1.0, run)
    np.testing.assert_allclose(found, bound - 1, rtol=1e-6)


# --- shapes with a known answer ---------------------------------------------------------------


@pytest.mark.slow
def test_a_roll_is_unrolled_better_than_by_isomap():
    ours, theirs = [], []
    for seed in (1, 2):
        roll = swiss_roll(500, random_state=seed)
        X, T = roll.X[:400], roll.truth
        model = MVU(2, n_neighbors=8, slack=0.005, random_state=0).fit(X)
        ours.append(error(T[:400], model.embedding_))
        theirs.append(error(T[:400], Isomap(2, n_neighbors=8).fit(X).embedding_))
        move = align(T[:400], model.embedding_)
        placed = move.scale * (model.transform(roll.X[400:]) @ move.rotation) + move.translation
        new = np.sqrt(((placed - T[400:]) ** 2).sum(axis=1).mean())
        old = np.sqrt(((move.aligned - T[:400]) ** 2).sum(axis=1).mean())
        assert new < 1.5 * old + 0.1 * pdist(T[400:]).min()
    assert np.mean(ours) < np.mean(theirs)


# --- new rows, copies, pieces -----------------------------------------------------------------


def test_a_place_with_the_given_distances_is_found():
    rng = np.random.default_rng(0)
    Y, Z = rng.standard_normal((20, 3)), rng.standard_normal((5, 3))
    near = np.array([rng.choice(20, 14, replace=False) for _ in Z])
    d = np.sqrt(((Z[:, None] - Y[near]) ** 2).sum(axis=2))
    np.testing.assert_allclose(place_by_lateration(Y, near, d), Z, atol=1e-9)
    near[:, 12:], d[:, 12:] = -1, 0.0  # missing neighbors have no influence
    np.testing.assert_allclose(place_by_lateration(Y, near, d), Z, atol=1e-9)


def test_a_direction_without_spread_is_left_out():
    Y = np.column_stack([np.arange(5.0), [0, 1e-3, 0, 1e-3, 0]])
    d = np.abs(Y[:, 0] - 2.4) + 1e-3 * np.random.default_rng(0).random(5)
    placed = place_by_lateration(Y, np.arange(5)[None], d[None])[0]
    np.testing.assert_allclose(placed, [2.4, 4e-4], atol=2e-3)


@pytest.mark.slow
def test_copies_of_all_rows_change_nothing_but_the_variance():
    X = irregular_rows(30, 3)
    D = cdist(X, X)
    one = MVU(2, n_neighbors=4, metric="precomputed", tol=1e-6, random_state=0)
    one.fit(scipy.sparse.csr_matrix(union_graph(X, 4)))
    twice = np.kron(union_graph(X, 4), np.ones((2, 2)))
    twice = scipy.sparse.lil_matrix(twice)
    for i in range(30):  # a stored zero: the copies are neighbors at distance 0
        twice[2 * i, 2 * i + 1] = twice[2 * i + 1, 2 * i] = 1e-300
    twice = twice.tocsr()
    twice.data[twice.data == 1e-300] = 0.0
    two = MVU(2, n_neighbors=30, metric="precomputed", tol=1e-6, random_state=0).fit(twice)
    np.testing.assert_array_equal(two.embedding_[::2], two.embedding_[1::2])
    np.testing.assert_allclose(two.variance_, 2 * one.variance_, rtol=2e-3)
    np.testing.assert_allclose(
        pdist(two.embedding_[::2]), pdist(one.embedding_), atol=0.02 * D.max()
    )


def test_copies_of_some_rows_count_as_many():
    """Weights in the mean: the center moves to the side with more copies."""
    X = irregular_rows(30, 3)
    model = MVU(2, n_neighbors=6, random_state=0).fit(np.concatenate([X, X[:5], X[:5]]))
    np.testing.assert_array_equal(model.embedding_[:5], model.embedding_[30:35])
    np.testing.assert_allclose(
        model.embedding_.mean(axis=0), 0, atol=1e-9 * np.ptp(model.embedding_)
    )


@pytest.mark.slow
@each("noise", [1e-13, 1e-6, 1e-3, 0.02])
def test_near_copies_are_no_trouble(noise):
    X = irregular_rows(40, 3)
    rng = np.random.default_rng(1)
    near = X[:15] + noise * rng.standard_normal((15, 3))
    model = MVU(2, n_neighbors=6, max_iter=3000, random_state=0).fit(np.concatenate([X, near]))
    apart = np.linalg.norm(model.embedding_[:15] - model.embedding_[40:], axis=1)
    assert apart.max() <= 5 * noise + 1e-2 * model.edge_unit_
    assert np.isfinite(model.duality_gap_)
    assert model.violation_max_ < 0.05


def test_pieces_are_bridged_left_out_or_refused():
    X = np.concatenate([irregular_rows(40, 3), irregular_rows(20, 3, seed=1) + 500])
    assert MVU(n_neighbors=5, random_state=0).fit(X).n_connected_components_ == 2
    largest = MVU(n_neighbors=5, on_disconnected="largest", random_state=0).fit(X)
    np.testing.assert_array_equal(largest.excluded_, np.arange(40, 60))
    assert np.isfinite(largest.embedding_).all()
    with pytest.raises(DataError, match="falls into 2 components"):
        MVU(n_neighbors=5, on_disconnected="raise").fit(X)
    G = union_graph(X, 5)
    with pytest.raises(DataError, match="on_disconnected='bridge' needs"):
        MVU(n_neighbors=5, metric="precomputed").fit(scipy.sparse.csr_matrix(G))


@pytest.mark.slow
def test_landmarks_make_the_map_and_others_are_placed():
    roll = swiss_roll(600, random_state=3)
    model = MVU(2, n_neighbors=8, landmarks=400, random_state=0).fit(roll.X)
    assert len(model.factor_) == 400
    assert len(model.excluded_) == 200
    outside = model.excluded_
    np.testing.assert_array_equal(model.transform(roll.X[outside]), model.embedding_[outside])
    every = MVU(2, n_neighbors=8, landmarks=None, random_state=0).fit(roll.X)
    assert error(roll.truth, model.embedding_) < 3 * error(roll.truth, every.embedding_)
    with pytest.raises(ParameterError, match="landmarks=601 is more than n_samples=600"):
        MVU(landmarks=601).fit(roll.X)
    G = scipy.sparse.csr_matrix(union_graph(roll.X, 8))
    with pytest.raises(ParameterError, match="landmarks=50 needs rows or all distances"):
        MVU(landmarks=50, metric="precomputed").fit(G)


def test_a_large_error_of_a_kept_distance_is_told():
    X = irregular_rows(80, 5)
    with pytest.warns(ConvergenceWarning, match=r"in 1000 steps: a kept distance is wrong by"):
        MVU(n_neighbors=6, rank=2, slack=0.0, max_iter=1000).fit(X)  # two axes are too few
    MVU(n_neighbors=6, max_iter=1).fit(X)  # who wants one step gets it
    with pytest.raises(ParameterError, match="rank=2 is less than n_components=3"):
        MVU(3, rank=2).fit(X)


def test_distances_of_no_space_yield():
    """Four rows at distance 1 from each other and .5 from a fifth: no points have these."""
    D = np.ones((5, 5)) - np.eye(5)
    D[4, :4] = D[:4, 4] = 0.5
    model = MVU(2, n_neighbors=4, metric="precomputed", random_state=0).fit(D)
    assert model.violation_max_ > 0.1
    # nothing is longer than it may be: the four are the corners of a square around the fifth
    Y = model.factor_ * model.edge_unit_
    assert pdist(Y).max() <= 1 + 1e-3
    np.testing.assert_allclose(np.linalg.norm(Y[:4] - Y[4], axis=1), 0.5, atol=1e-3)
