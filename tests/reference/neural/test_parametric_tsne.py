"""Parametric t-SNE against its definition, t-SNE itself, and rows that were held out."""

import functools
import math

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist

from lowland import TSNE, ParametricTSNE
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.neighbors.search import neighbor_graph
from lowland._engines.network.layers import Network, first_weights
from lowland.datasets import digits
from lowland.errors import DataError, MemoryLimitError, ParameterError
from lowland.methods.neural import parametric_tsne
from lowland.methods.neural.parametric_tsne import FreeMap, OwnDivergence, neighbor_noise
from lowland.metrics import trustworthiness
from reference.plain import slope_of
from support.bent_rows import rows
from support.cases import each
from support.oracles.basics import HeldOut
from support.oracles.neighbor import affinities as row_affinities
from support.oracles.neural_network import network as output_of
from support.witness import Witness

FEW = {"perplexity": 6.0, "max_iter": 80, "n_epochs": 15, "hidden": [12, 6], "random_state": 0}


def through_the_network(task: HeldOut) -> np.ndarray:
    """h_j = s(sum_i h_i W_ij + b_j) for each layer; the last one is linear."""
    X, p = task.X, task.X.shape[1]
    lengths = [math.dist(x, np.median(X, axis=0)) for x in X]
    X = X[[length <= 10 * np.median(lengths) for length in lengths]]
    mean, deviations = X.mean(axis=0), X.std(axis=0, ddof=1)
    if not task.params["standardize"]:
        deviations = np.full(p, math.sqrt(np.mean(deviations**2)))
    hidden = task.params["hidden"]
    hidden = [256, 128] if hidden == "auto" else np.atleast_1d(hidden).tolist()
    sizes = [p, *hidden, task.Y.shape[1]]
    values = (task.new - mean) / deviations
    return output_of(values, task.model.weights_, sizes, task.params["activation"])


WITNESS = Witness(
    places=through_the_network,
    cases=[
        ({}, "rows"),
        ({"n_components": 1, "hidden": 7}, "rows"),
        ({"n_components": 3, "hidden": [9, 4, 6], "standardize": True}, "rows"),
        *[
            ({"activation": name, "hidden": [12, 5]}, "sheet")
            for name in ("relu", "elu", "sigmoid")
        ],
    ],
)


# --- the definition -----------------------------------------------------------------------------


def affinities(X, perplexity):
    """p_ij of the paper, over the nearest 3 * perplexity rows of each row."""
    n, k = len(X), min(len(X) - 1, math.ceil(3 * perplexity))
    P = np.zeros((n, n))
    for i, d in enumerate(cdist(X, X)):
        near = [j for j in np.argsort(d, kind="stable") if j != i][:k]
        P[i, near] = row_affinities(d[near], perplexity)
    return (P + P.T) / (2 * n)


def divergence(P, Y):
    K = 1 / (1 + cdist(Y, Y, "sqeuclidean"))
    np.fill_diagonal(K, 0)
    Q, joined = K / K.sum(), P > 0
    return float(np.sum(P[joined] * np.log(P[joined] / Q[joined])))


def test_the_slope_of_the_divergence_is_that_of_its_definition():
    X, sizes, size = rows(40), (4, 5, 3, 2), 7.0
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    network, rng = Network(sizes, ("tanh", "tanh", "linear")), np.random.default_rng(0)
    weights = first_weights(network, rng)
    run = FitContext(rng, 1, Monitor())
    free = FreeMap(X, neighbor_graph(X, 18), 6.0, 2, run)
    own = OwnDivergence(network, X.astype(np.float32), free, size, 1)
    loss, slope = own.slope(weights.astype(np.float32))
    P = affinities(X, 6.0)

    def naive(w):
        return divergence(P, size * output_of(X, w, sizes, "tanh"))

    assert loss == pytest.approx(naive(weights), rel=1e-4)  # float32
    expected = slope_of(naive, weights, 1e-5)
    np.testing.assert_allclose(slope, expected, atol=1e-4 * np.abs(expected).max())


def test_the_divergence_is_that_of_the_map():
    X = rows(90)
    model = ParametricTSNE(**FEW).fit(X)
    P = affinities(X, 6.0)
    assert model.kl_divergence_ == pytest.approx(divergence(P, model.embedding_), rel=1e-4)
    first, regressed, *refined = model.loss_history_
    assert model.kl_divergence_ == min(regressed, *refined) <= regressed < first


@each("n", [90, 300])
def test_the_network_learns_from_the_map_that_tsne_finds(n):
    X = rows(n, seed=n)
    same = {"perplexity": 6.0, "random_state": 3}
    free = TSNE(**same).fit(X)
    model = ParametricTSNE(**same, n_epochs=1).fit(X)
    assert model.free_kl_divergence_ == pytest.approx(free.kl_divergence_, rel=1e-9)


def test_large_maps_whose_points_are_reordered_keep_their_rows():
    X = rows(5100, p=3)  # from 5000 on, points are sorted along a curve through the map
    same = {"perplexity": 5.0, "max_iter": 310, "random_state": 0}
    model = ParametricTSNE(**same, hidden=40, n_epochs=4).fit(X)
    free = TSNE(**same, tol=0.0).fit(X)
    # the grid of the repulsion lies elsewhere in each evaluation
    assert model.free_kl_divergence_ == pytest.approx(free.kl_divergence_, rel=1e-3)
    # the network follows places of its own rows: shuffled ones would leave it at the start
    assert model.kl_divergence_ < 0.5 * (model.loss_history_[0] + model.free_kl_divergence_)


# --- the noise ----------------------------------------------------------------------------------


def test_noise_is_as_long_as_the_way_to_the_nearest_row_that_differs():
    X = rows(60)
    X[10:14] = X[9]  # copies
    X[:, 2] = 5.0  # no neighbors differ here
    X[0] = [1e4, 0, 5, 0]  # alone
    noise = neighbor_noise(X.astype(np.float32), neighbor_graph(X, 20), 0.7)
    D = cdist(X, X)
    D[D == 0] = np.inf
    nearest = D.min(axis=1)
    expected = 0.7 * np.minimum(nearest, 3 * np.median(nearest))
    np.testing.assert_allclose(noise.lengths, expected, rtol=1e-3)
    units = (X - X[D.argmin(axis=1)]) / nearest[:, None]
    np.testing.assert_allclose(noise.shares, np.sqrt(np.mean(units**2, axis=0)), atol=1e-3)
    assert noise.shares[2] == 0
    draws = np.array(
        [
            noise.added_to(X[[5, 20]].astype(np.float32), np.array([5, 20]), rng) - X[[5, 20]]
            for rng in map(np.random.default_rng, range(800))
        ]
    )
    # the mean square of 800 draws of 4 values has a relative error of some 5 %
    lengths = np.sqrt(np.mean(np.sum(draws**2, axis=2), axis=0))
    np.testing.assert_allclose(lengths, noise.lengths[[5, 20]], rtol=0.2)


# --- what the issue of the method promises --------------------------------------------------------


@functools.cache
def split_digits():
    """A random 80 % of digits, the rest, t-SNE and the network of the former.

    The defaults were chosen on the split of seed 0, so this is another one.
    """
    X = digits().X
    order = np.random.default_rng(1).permutation(len(X))
    fitted, held = np.split(X[order], [round(0.8 * len(X))])
    return (
        fitted,
        held,
        TSNE(random_state=0).fit(fitted),
        ParametricTSNE(random_state=0).fit(fitted),
    )


def held_among_all(fitted, held, model, k=10):
    """Trustworthiness of the held-out rows only, whose neighbors may be any row."""
    X, Y = np.vstack([held, fitted]), np.vstack([model.transform(held), model.embedding_])
    n, m, total = len(X), len(held), 0
    D, E = cdist(held, X), cdist(Y[:m], Y)
    for i in range(m):
        D[i, i] = E[i, i] = -1
        rank = np.argsort(np.argsort(D[i], kind="stable"), kind="stable")
        near = np.argsort(E[i], kind="stable")[1 : k + 1]
        total += np.maximum(rank[near] - k, 0).sum()
    return 1 - 2 * total / (m * k * (2 * n - 3 * k - 1))


@pytest.mark.slow
def test_it_is_as_trustworthy_as_tsne_on_fitted_and_on_held_out_rows():
    fitted, held, free, model = split_digits()
    on_fitted = [trustworthiness(fitted, m.embedding_) for m in (free, model)]
    among_held = [trustworthiness(held, m.transform(held)) for m in (free, model)]
    among_all = [held_among_all(fitted, held, m) for m in (free, model)]
    for tsne, network in (on_fitted, among_held, among_all):
        assert network > tsne - 0.02


def test_the_network_comes_near_the_divergence_of_free_points():
    """Of what separates a map of random weights from t-SNE's, a twentieth may remain."""
    *_, model = split_digits()
    first, free = model.loss_history_[0], model.free_kl_divergence_
    assert model.kl_divergence_ - free < 0.05 * (first - free)


# --- special tables -------------------------------------------------------------------------------


def test_a_row_far_out_has_no_say_in_the_scale():
    X = rows(200)
    far = np.vstack([X, np.full((1, 4), 1e6)])
    # Beyond the 250 exaggerated steps: how large a map is before they end depends on the start,
    # where the other rows are one point but for rounding.
    options = {**FEW, "max_iter": 300, "n_epochs": 100}
    alone, beside = ParametricTSNE(**options).fit(X), ParametricTSNE(**options).fit(far)
    np.testing.assert_allclose(beside.scale_, alone.scale_, rtol=1e-9)
    np.testing.assert_allclose(beside.mean_, alone.mean_, rtol=1e-9)
    # The others are placed as well as without it. One point, which they would be to a network
    # that sees the far row, has 0.5.
    placed = [trustworthiness(X, model.embedding_[:200]) for model in (alone, beside)]
    assert placed[1] > placed[0] - 0.05


def test_of_many_rows_some_train_the_network_and_all_are_placed(monkeypatch):
    monkeypatch.setattr(parametric_tsne, "MOST_ROWS", 150)
    c = 20 * np.eye(3)
    labels = np.arange(600) % 3
    X = c[labels] + np.random.default_rng(0).standard_normal((600, 3))
    model = ParametricTSNE(perplexity=10, n_epochs=60, hidden=20, random_state=0)
    Y = model.fit_transform(X)
    assert Y.shape == (600, 2)
    centers = np.array([Y[labels == k].mean(axis=0) for k in range(3)])
    assert (cdist(Y, centers).argmin(axis=1) == labels).all()
    with pytest.raises(ParameterError, match="perplexity=200 is too large for 150 rows"):
        ParametricTSNE(perplexity=200).fit(X)


def test_equal_rows_share_a_place_and_sparse_rows_are_rows():
    X = np.round(rows(80))
    X[::4] = X[0]
    model = ParametricTSNE(**FEW).fit(X)
    assert (model.embedding_[::4] == model.embedding_[0]).all()
    sparse = ParametricTSNE(**FEW).fit(scipy.sparse.csr_matrix(X))
    np.testing.assert_array_equal(sparse.embedding_, model.embedding_)


# --- interruption and refusal ---------------------------------------------------------------------


@each("stop", [3, 85, 100])  # in the descent, in the regression, in the refinement
def test_interruption_keeps_the_best(stop):
    X, seen = rows(90), []

    def callback(step, Y, loss):
        seen.append((step, Y.copy(), loss))
        return step == stop

    model = ParametricTSNE(**FEW, callback=callback).fit(X)
    assert model.n_iter_ == stop == len(seen)
    assert all(Y.shape == (90, 2) for _, Y, _ in seen)
    assert model.kl_divergence_ == min(model.loss_history_[1:])
    assert model.kl_divergence_ == pytest.approx(
        divergence(affinities(X, 6.0), model.embedding_), rel=1e-3
    )
    if stop == 85:  # the fifth epoch: of these, the one with the least loss is kept
        best = min(seen[80:], key=lambda entry: entry[2])[1]
        apart = model.embedding_ - best
        np.testing.assert_allclose(apart - apart.mean(axis=0), 0, atol=1e-3 * np.abs(best).max())


def test_the_refinement_keeps_the_weights_of_the_least_divergence(monkeypatch):
    monkeypatch.setattr(parametric_tsne, "REFINING_RATE", 1e5)  # steps that rise
    X = rows(90)
    model = ParametricTSNE(**FEW).fit(X)
    assert model.loss_history_[-1] > 1.1 * model.kl_divergence_
    naive = divergence(affinities(X, 6.0), model.embedding_)
    assert naive == pytest.approx(model.kl_divergence_, rel=1e-3)


@each("rate", [1e4, 1e12])
@each("activation", ["tanh", "relu"])
def test_a_learning_rate_that_explodes_is_an_error(rate, activation):
    model = ParametricTSNE(**{**FEW, "learning_rate": rate, "activation": activation})
    with pytest.raises(DataError, match=r"training diverged in epoch \d+.*with learning_rate=1"):
        model.fit(rows(90))


def test_layers_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "500 MB")
    with pytest.raises(MemoryLimitError, match="fewer hidden units"):
        ParametricTSNE(perplexity=5, hidden=[100_000, 100_000]).fit(rows(40))
    with pytest.raises(ParameterError, match="n_components=1000000 is more than"):
        ParametricTSNE(10**6).fit(rows(40))
