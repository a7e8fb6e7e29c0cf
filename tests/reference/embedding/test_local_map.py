"""LocalMAP against loops from the paper, its redrawn pairs, and the package of its authors."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland import LocalMAP, PaCMAP
from lowland.datasets import digits
from lowland.methods.embedding import _pair_base
from lowland.metrics import neighbor_recall, trustworthiness
from reference.chance import not_below
from support.cases import each
from support.pair_maps import pairs_kept


def irregular(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.gamma(1.5, size=(n, p)) @ rng.standard_normal((p, p)) + 3 * (np.arange(n) % 3)[:, None]
    )


def test_the_first_two_phases_are_those_of_pacmap():
    X, phases = irregular(200, 5), {"num_iters": (40, 40, 0), "random_state": 0}
    np.testing.assert_array_equal(
        LocalMAP(**phases).fit(X).embedding_, PaCMAP(**phases).fit(X).embedding_
    )


def test_weights_of_the_phases():
    weights = [_pair_base.weights_at(t, (100, 100, 250), 5.0) for t in range(450)]
    assert {w.local for w in weights[:200]} == {0.0}
    assert all(w == (1, 0, 1, 5.0) for w in weights[200:])


def paper_steps(near, far_at, Y, reach, rate, n_steps):
    """Only the third phase: loops over pairs, far pairs of each step, Adam, in float64."""
    Y = Y.astype(float)
    m, v = np.zeros_like(Y), np.zeros_like(Y)
    for step in range(n_steps):
        gradient = np.zeros_like(Y)
        for i in range(len(Y)):
            for j in near[i]:
                s = 1 + ((Y[i] - Y[j]) ** 2).sum()
                force = 20 / (10 + s) ** 2 * (reach / 2) / math.sqrt(s) * (Y[i] - Y[j])
                gradient[i] += force
                gradient[j] -= force
            for j in far_at(step)[i]:
                s = 1 + ((Y[i] - Y[j]) ** 2).sum()
                force = -2 / (1 + s) ** 2 * (Y[i] - Y[j])
                gradient[i] += force
                gradient[j] -= force
        m += 0.1 * (gradient - m)
        v += 0.001 * (gradient**2 - v)
        corrected = rate * math.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        Y = Y - corrected * m / (np.sqrt(v) + 1e-7)
    return Y


@each("d", [1, 2, 3, 4])
def test_the_third_phase_is_that_of_the_paper(d):
    """Thirteen steps, with far pairs drawn again after ten; short ones, so that rounding stays."""
    X, start = irregular(40, 5), 3 * irregular(40, d, seed=2)
    params = {"n_neighbors": 5, "learning_rate": 0.1, "low_dist_thres": 6.0, "random_state": 1}
    with pairs_kept() as kept:
        model = LocalMAP(d, init=start, num_iters=(0, 0, 13), **params).fit(X)
    assert len(kept["redrawn"]) == 1

    def far_at(step):
        return kept["first far"] if step < 10 else kept["redrawn"][0][2]

    expected = paper_steps(kept["near"], far_at, kept["start"], 6.0, 0.1, 13)
    expected -= expected.mean(axis=0)
    np.testing.assert_allclose(model.embedding_, expected, atol=1e-4 * np.abs(expected).max())


def test_far_pairs_are_drawn_again_every_ten_steps_nearby():
    X, reach = irregular(300, 5), 4.0
    with pairs_kept() as kept:
        LocalMAP(num_iters=(20, 20, 55), low_dist_thres=reach, random_state=0).fit(X)
    assert len(kept["redrawn"]) == 5
    first = kept["redrawn"][0][0]
    assert [seed - first for seed, _, _ in kept["redrawn"]] == list(range(5))
    before = kept["first far"]
    for _, Y, far in kept["redrawn"]:
        D = cdist(Y, Y)
        for i in range(300):
            assert len({i} & set(far[i])) == 0
            assert not set(far[i]) & set(kept["near"][i])
            changed = far[i][far[i] != before[i]]
            assert (D[i, changed] <= reach * (1 + 1e-5)).all()
            if np.sum(reach >= D[i]) > 100:
                assert (D[i, far[i]] <= reach * (1 + 1e-5)).all()
        before = far


def test_the_loss_is_that_whose_force_is_used():
    X = irregular(60, 5)
    with pairs_kept() as kept:
        model = LocalMAP(n_neighbors=5, num_iters=(50, 50, 50), random_state=0).fit(X)
    Y = model.embedding_
    s = 1 + cdist(Y, Y, "sqeuclidean")
    A = 5.0 * (np.sqrt(s) / (10 + s) + np.arctan(np.sqrt(s / 10)) / np.sqrt(10))
    far = kept["redrawn"][-1][2]
    expected = sum(A[i, kept["near"][i]].sum() + (1 / (1 + s[i, far[i]])).sum() for i in range(60))
    assert model.loss_ == pytest.approx(expected, rel=1e-5)


def test_new_rows_are_repelled_by_the_rows_within_reach():
    X = digits().X
    with pairs_kept() as kept:
        model = LocalMAP(random_state=0).fit(X)
    Y = kept["redrawn"][-1][1]
    within = (cdist(Y, Y) <= 10.0).sum(axis=1).mean()
    # some 60 draws per row estimate the number of rows within reach
    assert model.far_weight_ == pytest.approx(model.n_far_ / within, rel=0.03)


@each("reach", [4.0, 10.0])
def test_the_grid_of_a_large_map_gives_the_places_of_all_pairs(reach):
    X = digits().X
    params = {"num_iters": (60, 60, 60), "low_dist_thres": reach, "random_state": 0}
    model = LocalMAP(**params).fit(X[:1500])
    exact = model.transform(X[1500:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pair_base, "GRID_POINTS", 1000)
        model._once.__init__()
        gridded = model.transform(X[1500:])
    assert not np.array_equal(exact, gridded)
    # the field of the grid has an error of 1 %; where two minima are alike, it may choose
    assert np.quantile(np.linalg.norm(exact - gridded, axis=1), 0.95) < 0.05


# Measured with pacmap 0.9.1 (numba 0.68.1, faiss-cpu 1.15.1, numpy 2.4.6) on the 1797 digits with
# default parameters and seeds 0, 1, 2: trustworthiness of 10 neighbors 0.98978, 0.99052, 0.98994;
# share of the 10 nearest neighbors kept 0.50629, 0.51080, 0.50473. Both are samples of a random
# method, so that the bound is the error of the difference of two means.
PEER_TRUST, PEER_RECALL = (0.98978, 0.99052, 0.98994), (0.50629, 0.51080, 0.50473)


def test_digits_are_mapped_as_well_as_by_the_package_of_the_authors():
    X = digits().X
    maps = [LocalMAP(random_state=seed).fit_transform(X) for seed in range(3)]
    assert not_below([float(trustworthiness(X, Y, n_neighbors=10)) for Y in maps], PEER_TRUST)
    assert not_below([float(neighbor_recall(X, Y, n_neighbors=10)) for Y in maps], PEER_RECALL)
