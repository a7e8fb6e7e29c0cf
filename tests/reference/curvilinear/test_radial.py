"""CCA, CDA and TradeoffMDS against the papers' objectives and rules, and on known shapes."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform

from lowland import (
    MDS,
    CurvilinearComponentAnalysis,
    CurvilinearDistanceAnalysis,
    TradeoffMDS,
    datasets,
)
from lowland._engines.local_stress.objective import AllPairs, Law, LocalStress
from lowland.errors import DataError, ParameterError
from lowland.metrics import continuity, trustworthiness
from reference.curvilinear.naive import (
    cca_rule,
    cca_stress,
    kth_radii,
    principal_start,
    tradeoff_rule,
    tradeoff_stress,
)
from reference.plain import FOUR_PLACES, FOUR_ROWS, slope_of
from support.bent_rows import rows as irregular_rows
from support.cases import each

RADIAL = [CurvilinearComponentAnalysis, CurvilinearDistanceAnalysis, TradeoffMDS]
each_method = each("method", RADIAL, ids=lambda cls: cls.__name__)


def objective(D, law, radii):
    return LocalStress(AllPairs(np.ascontiguousarray(D), 1), law, np.broadcast_to(radii, len(D)))


# --- objectives -------------------------------------------------------------------------------


@each(
    ("law", "radii", "value"),
    [
        (Law("step"), 1.05, 4.5262066430),
        (Law("exp"), 1.0, 2.6026875896),
        (Law("step", tradeoff=0.0), "k = 1", 4.4152868977),
        (Law("step", tradeoff=0.5), "k = 1", 2.9135195192),
        (Law("step", tradeoff=1.0), "k = 1", 1.4117521408),
        (Law("step"), 1e9, 6.0133842766),  # F = 1: raw stress
    ],
)
def test_objectives_of_the_four_points(law, radii, value):
    D = squareform(pdist(FOUR_ROWS))
    radii = kth_radii(D, 1) if isinstance(radii, str) else radii
    assert objective(D, law, radii)(FOUR_PLACES).stress == pytest.approx(value, abs=1e-9)


@each("kind", ["step", "exp", "sigmoid"])
def test_the_stated_stress_is_that_of_the_paper(kind):
    X = irregular_rows(70, 5)
    model = CurvilinearComponentAnalysis(weighting=kind, random_state=0).fit(X)
    D, r = cdist(X, X), model.radii_[0]
    assert r == pytest.approx(kth_radii(D, 20).mean())
    expected = cca_stress(D, model.embedding_, r, kind)
    assert model.stress_ == pytest.approx(expected, rel=1e-9)


@each("tradeoff", [0.0, 0.3, 1.0])
def test_the_stated_stress_of_the_tradeoff_is_that_of_the_paper(tradeoff):
    X = irregular_rows(60, 4, seed=1)
    D = cdist(X, X)  # given, because the k-th neighbors lie on the edge of the step
    params = {"n_neighbors": 7, "metric": "precomputed", "random_state": 0}
    model = TradeoffMDS(tradeoff=tradeoff, **params).fit(D)
    np.testing.assert_array_equal(model.radii_, kth_radii(D, 7))
    expected = tradeoff_stress(D, model.embedding_, model.radii_, tradeoff)
    assert model.stress_ == pytest.approx(expected, rel=1e-9)


@each("tradeoff", [0.0, 0.4])
@each("kind", ["step", "exp", "sigmoid"])
@each("q", [1, 2, 3])
def test_the_slope_is_half_the_gradient_of_the_loss(kind, tradeoff, q):
    X = irregular_rows(25, 4, seed=2)
    D, Y = cdist(X, X), principal_start(X, q)
    loss = objective(D, Law(kind, tradeoff=tradeoff), 0.7 * kth_radii(D, 9))
    half = slope_of(lambda Y: loss(Y).loss, Y) / 2
    assert half == pytest.approx(loss(Y).slope, rel=1e-4, abs=1e-4)


# --- equalities -------------------------------------------------------------------------------


def test_a_radius_that_holds_all_pairs_gives_the_minimum_of_mds():
    X = irregular_rows(50, 4)
    start = principal_start(X)
    radius = 3 * cdist(X, X).max()
    loss = objective(cdist(X, X), Law("step"), radius)
    mds = MDS(init=start, tol=0, max_iter=2000).fit(X)
    assert loss(mds.embedding_).loss == pytest.approx(mds.stress_, rel=1e-9)
    assert np.abs(loss(mds.embedding_).slope).max() < 1e-4 * np.abs(loss(start).slope).max()


def test_with_a_complete_graph_cda_is_cca():
    X = irregular_rows(40, 4)
    given = {"init": principal_start(X), "n_neighbors": 39, "random_state": 0}
    cda = CurvilinearDistanceAnalysis(**given).fit(X)
    cca = CurvilinearComponentAnalysis(**given)
    cca._widest = lambda Y, delta: float(delta.max())  # CDA begins at the largest distance
    np.testing.assert_allclose(cda.embedding_, cca.fit(X).embedding_, atol=1e-6)
    assert cda.stress_ == pytest.approx(cca.stress_, rel=1e-6)


@each_method
@each("landmarks", [None, 50])
def test_data_that_are_flat_are_kept_as_they_are(method, landmarks):
    X = np.random.default_rng(0).random((80, 2)) @ np.array([[1.0, 0.5, 0, 2], [0, 1, -1, 0.3]])
    n_neighbors = 79 if method is CurvilinearDistanceAnalysis else 10
    model = method(n_neighbors=n_neighbors, landmarks=landmarks, random_state=0).fit(X)
    kept = model.landmarks_
    np.testing.assert_allclose(pdist(model.embedding_[kept]), pdist(X[kept]), atol=1e-5)
    assert model.stress_ < 1e-8


# --- the papers' rules ------------------------------------------------------------------------


def sphere(n=300, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def cylinder(n=400, seed=0):
    rng = np.random.default_rng(seed)
    angle, height = 2 * np.pi * rng.random(n), 2 * rng.random(n)
    return np.column_stack([np.cos(angle), np.sin(angle), height])


@pytest.mark.slow
@each("shape", [sphere, cylinder, irregular_rows], ids=["sphere", "cylinder", "rows"])
def test_cca_ends_below_the_rule_of_the_paper(shape):
    """On average over samples: where a surface is torn is left to chance by either.

    A ratio of 2 is as far from equal as one of 1/2, so that the mean is that of logarithms.
    """
    ratios = []
    for seed in range(4):
        X = shape(200, 6, seed=seed) if shape is irregular_rows else shape(200, seed=seed)
        D = cdist(X, X)
        model = CurvilinearComponentAnalysis(random_state=0).fit(X)
        loss = objective(D, Law("step"), model.radii_[0])
        paper = loss(cca_rule(D, principal_start(X), model.radii_[0], epochs=60))
        ratios.append(model.stress_ / paper.stress)
    assert np.mean(np.log(ratios)) < 0


@each("tradeoff", [0.0, 0.1, 0.5])
def test_tradeoff_ends_below_the_rule_of_the_paper(tradeoff):
    X = irregular_rows(200, 6)
    D = cdist(X, X)
    model = TradeoffMDS(tradeoff=tradeoff, random_state=0).fit(X)
    paper = tradeoff_rule(D, principal_start(X), model.radii_, tradeoff, epochs=60)
    assert model.stress_ <= tradeoff_stress(D, paper, model.radii_, tradeoff)


# --- known pictures ---------------------------------------------------------------------------


def rings(n=200):
    angle = 2 * np.pi * np.arange(n) / n
    zero = np.zeros(n)
    first = np.column_stack([np.cos(angle), np.sin(angle), zero])
    second = np.column_stack([1 + np.cos(angle), zero, np.sin(angle)])
    noise = 0.05 * np.random.default_rng(0).standard_normal((2 * n, 3))
    return np.vstack([first, second]) + noise, np.repeat([0, 1], n)


def crossings(Y, ring):
    """Rows whose nearest row in the map is of the other ring."""
    D = cdist(Y, Y) + 1e9 * np.eye(len(Y))
    return int((ring[D.argmin(axis=1)] != ring).sum())


def test_interlocked_rings_come_apart():
    X, ring = rings()
    assert crossings(principal_start(X), ring) > 0
    Y = CurvilinearComponentAnalysis(random_state=0).fit_transform(X)
    assert crossings(Y, ring) == 0


def test_a_swiss_roll_is_unrolled_by_cda_where_cca_fails():
    roll = datasets.swiss_roll(600, random_state=0)
    true = cdist(roll.truth, roll.truth)

    def error(method):
        d = cdist(*[method.fit_transform(roll.X)] * 2)
        return np.sqrt(((d - true) ** 2).sum() / (true**2).sum())

    cda = error(CurvilinearDistanceAnalysis(random_state=0))
    # straight distances are what a map that stays rolled up would show at best
    rolled = cdist(roll.X, roll.X)
    rolled = np.sqrt(((rolled - true) ** 2).sum() / (true**2).sum())
    assert cda < rolled
    assert error(CurvilinearComponentAnalysis(random_state=0)) > cda


@each("l", [(0.0, 0.5)])
def test_the_tradeoff_trades_trust_for_continuity(l):  # noqa: E741
    X = datasets.digits().X[:500]
    low, high = (TradeoffMDS(tradeoff=e, random_state=0).fit_transform(X) for e in l)
    assert trustworthiness(X, low) > trustworthiness(X, high)
    assert continuity(X, high) > continuity(X, low)


# --- parts ------------------------------------------------------------------------------------


@each_method
def test_the_loss_falls_within_stages_and_ends_at_the_final_radii(method):
    X = irregular_rows(80, 5)
    model = method(random_state=0).fit(X)
    losses = model.loss_history_
    assert len(losses) == model.n_iter_ + 1
    last = losses[-5:]
    assert (np.diff(last) <= 1e-9 * losses[0]).all()
    if method is CurvilinearComponentAnalysis:
        loss = objective(cdist(X, X), Law("step"), model.radii_[0])(model.embedding_).loss
        assert losses[-1] == pytest.approx(loss, rel=1e-6)


@each_method
def test_rows_beside_the_landmarks_are_placed_like_new_ones(method):
    X = irregular_rows(120, 4)
    model = method(landmarks=70, random_state=0).fit(X)
    marks, n = model.landmarks_, len(X)
    assert len(marks) == 70
    others = np.setdiff1d(np.arange(n), marks)
    # paths along the graph are summed from the other end, which may change the last digit
    slack = 1e-6 * np.abs(model.embedding_).max() if method is CurvilinearDistanceAnalysis else 0
    np.testing.assert_allclose(model.transform(X[others]), model.embedding_[others], atol=slack)
    assert (model.stress_per_point_ >= 0).all()
    with pytest.raises(ParameterError, match="landmarks=200 is more than n_samples=120"):
        method(landmarks=200).fit(X)


@each_method
def test_equal_rows_share_a_place_and_constant_rows_give_a_map(method):
    X = irregular_rows(50, 4)
    X[7] = X[31] = X[3]
    Y = method(random_state=0).fit_transform(X)
    np.testing.assert_allclose(Y[7], Y[3], atol=1e-9 * np.abs(Y).max())
    np.testing.assert_allclose(Y[31], Y[3], atol=1e-9 * np.abs(Y).max())
    flat = method(random_state=0).fit(np.full((9, 3), 2.5))
    np.testing.assert_allclose(flat.embedding_, 0, atol=1e-12)
    many = np.repeat(X[:5], 12, axis=0)  # the k-th neighbors of all rows are copies
    assert np.isfinite(method(random_state=0).fit_transform(many)).all()


def test_policies_for_graphs_in_pieces():
    X = np.vstack([irregular_rows(25, 3, seed=1) + 500, irregular_rows(40, 3)])
    joined = CurvilinearDistanceAnalysis(n_neighbors=5, random_state=0).fit(X)
    assert joined.n_connected_components_ == 2
    assert joined.excluded_.size == 0
    gap = cdist(joined.embedding_[:25], joined.embedding_[25:]).min()
    assert gap > 0.5 * cdist(X[:25], X[25:]).min()
    largest = CurvilinearDistanceAnalysis(
        n_neighbors=5, on_disconnected="largest", random_state=0
    ).fit(X)
    np.testing.assert_array_equal(largest.excluded_, np.arange(25))
    assert np.isfinite(largest.embedding_).all()
    np.testing.assert_array_equal(largest.transform(X[:25]), largest.embedding_[:25])
    with pytest.raises(DataError, match="2 components"):
        CurvilinearDistanceAnalysis(n_neighbors=5, on_disconnected="raise").fit(X)


def test_a_row_far_away_keeps_its_distance_to_the_nearest_rows():
    X = irregular_rows(60, 4)
    model = CurvilinearComponentAnalysis(random_state=0).fit(X)
    far = X.mean(axis=0) + 40 * (X[0] - X.mean(axis=0))
    z = model.transform(far[None])
    nearest = cdist(far[None], X)[0].argmin()
    found = np.linalg.norm(z - model.embedding_[nearest])
    assert found == pytest.approx(cdist(far[None], X).min(), rel=0.05)


@each_method
def test_a_random_start_is_as_large_as_the_classical_one(method):
    X = 100 * irregular_rows(300, 4)
    starts = [method(init=init, random_state=0, max_iter=0) for init in ("random", "classical")]
    drawn, classical = (start.fit(X).embedding_.std() for start in starts)
    # the standard error of the spread of 600 numbers is 1 / sqrt(1200) of it
    assert abs(drawn / classical - 1) < 5 / np.sqrt(1200)


@each_method
def test_a_given_start_has_a_row_for_every_row(method):
    X = irregular_rows(60, 4)
    start = principal_start(X)
    with pytest.raises(DataError, match="init has shape"):
        method(init=start[:30]).fit(X)
    whole = method(init=start, landmarks=40, random_state=0, max_iter=0).fit(X)
    marks = whole.landmarks_
    moved = start[marks] - start[marks].mean(axis=0)
    np.testing.assert_allclose(whole.embedding_[marks], moved, atol=1e-9)
