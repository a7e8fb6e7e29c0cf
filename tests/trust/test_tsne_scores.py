"""Singularity and perturbation of points of t-SNE maps: derivatives, planted truths, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from lowland import PCA, TSNE
from lowland.errors import DataError, ParameterError
from lowland.neighbors import knn_graph
from lowland.trust import perturbation_score, singularity_score, tsne_scores
from support.cases import each
from support.graphs import dense_joint


def irregular(n: int = 60) -> np.ndarray:
    """A curve, a dense group and stragglers: no symmetry that would hide a wrong term."""
    rng = np.random.default_rng(7)
    t = np.sort(rng.uniform(0, 3, n // 2))
    curve = np.column_stack([t, t**2, np.cos(2 * t), 0.3 * t**3])
    group = 0.2 * rng.normal(size=(n - n // 2, 4)) ** 3 + [4, 1, 0, -2]
    return np.vstack([curve, group])


def oracle(Y: np.ndarray, P: np.ndarray, dof: float, pull: float) -> float:
    """e sum p log(1 / K) + log sum K, the part of the loss that depends on the map."""
    D2 = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
    K = (1 + D2 / dof) ** -dof
    np.fill_diagonal(K, 0)
    return pull * float((P * dof * np.log1p(D2 / dof)).sum()) + float(np.log(K.sum()))


def second_derivatives(f, y: np.ndarray, h: float) -> np.ndarray:
    """Central differences of second order."""
    d = len(y)
    H, steps = np.empty((d, d)), h * np.eye(d)
    for a in range(d):
        for b in range(d):
            corners = [
                sign * other * f(y + sign * steps[a] + other * steps[b])
                for sign in (1, -1)
                for other in (1, -1)
            ]
            H[a, b] = sum(corners) / (4 * h * h)
    return H


@each(
    "options",
    [
        {"n_components": 2},
        {"n_components": 3},
        {"n_components": 1},
        {"dof": 0.6},
        {"exaggeration": 2.5},
        {"perplexity": [4, 12]},
    ],
)
def test_the_score_is_that_of_second_differences_of_the_loss(options):
    X = irregular()
    model = TSNE(**{"perplexity": 8, "random_state": 0, "max_iter": 300, **options}).fit(X)
    k = model.n_neighbors_
    P = dense_joint(knn_graph(X, k), model.perplexity)
    Y = model.embedding_.astype(np.float64)
    found = singularity_score(model)
    for i in (0, 7, 29, 30, 44, 59):

        def loss(y: np.ndarray, i: int = i) -> float:
            moved = Y.copy()
            moved[i] = y
            return oracle(moved, P, model.dof, model.exaggeration)

        least = np.linalg.eigvalsh(second_derivatives(loss, Y[i], 2e-3))[0]
        # rounding of the loss, 1e-15, divided by h^2, and h^2 times fourth derivatives
        assert 1 / found[i] == pytest.approx(max(least, 0.0), rel=1e-3, abs=2e-8)


def test_a_point_at_no_minimum_has_an_infinite_score():
    model = TSNE(perplexity=8, random_state=0).fit(irregular())
    far = model.embedding_.copy()
    far[3] = far.mean(axis=0) + 30 * np.ptp(far, axis=0)  # the attraction is concave out there
    model.embedding_ = far
    found = singularity_score(model)
    assert np.isinf(found[3])
    assert not np.isnan(found).any()


def test_only_the_asked_rows_are_measured_and_as_in_all():
    model = TSNE(perplexity=8, random_state=0).fit(irregular())
    for score in (singularity_score, perturbation_score):
        everything = score(model)
        for rows, count in (([3, 50, 3], 2), (np.array([1]), 1), (7, 7), (1000, 60)):
            some = score(model, rows=rows)
            there = ~np.isnan(some)
            assert there.sum() == count
            assert np.array_equal(some[there], everything[there])


def test_large_maps_are_sampled(monkeypatch):
    monkeypatch.setattr(tsne_scores, "ALL_PAIRS", 50)
    monkeypatch.setattr(tsne_scores, "SOME_ROWS", 11)
    monkeypatch.setattr(tsne_scores, "MOVED_ROWS", 12)
    monkeypatch.setattr(tsne_scores, "EXACT_Z", 50)
    model = TSNE(perplexity=8, random_state=0).fit(irregular())
    found = singularity_score(model)
    assert (~np.isnan(found)).sum() == 11
    assert (~np.isnan(perturbation_score(model))).sum() == 12
    monkeypatch.undo()
    there = ~np.isnan(found)  # Z of the fit is that of all pairs, in float32
    np.testing.assert_allclose(found[there], singularity_score(model)[there], rtol=1e-3)


def test_a_graph_or_distances_take_the_place_of_rows():
    X = irregular()
    graph = knn_graph(X, 24)
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    options = {"perplexity": 8, "random_state": 0, "init": "spectral"}
    wanted = singularity_score(TSNE(**options).fit(X))
    by_graph = singularity_score(TSNE(**options).fit(graph), graph)
    model = TSNE(metric="precomputed", **options).fit(D)
    np.testing.assert_allclose(by_graph, wanted, rtol=1e-9)
    np.testing.assert_allclose(singularity_score(model, D), wanted, rtol=1e-6)


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The share of pairs in which the positive one has the larger score."""
    return float((scores[positive][:, None] > scores[~positive][None]).mean())


def test_points_between_two_groups_move_farthest():
    """Two Gaussians that overlap: points midway are put to one side by chance.

    Each area is more than that of a score without meaning, by three deviations of Mann & Whitney.
    And a moved row does not know itself: the places that ``transform`` gives to the moved rows,
    each of which is held back by its own place, tell less.
    """
    areas, held_back = [], []
    for seed in range(3, 6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(700, 20))
        X[:, 0] += 5 * (rng.integers(2, size=700) - 0.5)
        between = np.abs(X[:, 0]) < 0.75
        inside = np.abs(np.abs(X[:, 0]) - 2.5) < 1
        both = between | inside
        model = TSNE(random_state=0).fit(X)
        areas.append(auc(perturbation_score(model)[both], between[both]))
        m, n = between.sum(), inside.sum()
        assert areas[-1] > 0.5 + 3 * np.sqrt((m + n + 1) / (12 * m * n))
        with model._running() as run:
            moves = tsne_scores._moves(model, 1.0, run)
        ways = [
            np.linalg.norm(model.transform(X[both] + move) - model.embedding_[both], axis=1)
            for move in moves
        ]
        held_back.append(auc(np.max(ways, axis=0), between[both]))
    assert np.mean(areas) > np.mean(held_back)


def test_moves_are_those_of_the_docstring():
    """The lengths are differences of neighbors along each axis, and both sides are tried."""
    X = irregular(80)
    model = TSNE(perplexity=8, random_state=0).fit(X)
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:3]
    graph = knn_graph(X, 15)
    apart = ((X[graph.indices] - X[:, None]) @ axes.T).reshape(-1, 3)
    wanted = np.sqrt((apart**2).mean(axis=0))[:, None] * axes
    with model._running() as run:
        moves = np.array(tsne_scores._moves(model, 2.0, run)) / 2
    both = np.concatenate([wanted, -wanted])
    for move in moves:
        assert np.abs(both - move).sum(axis=1).min() < 1e-9
    assert len(np.unique(moves.round(9), axis=0)) == 6


def test_scores_are_the_same_in_other_units_containers_and_threads():
    X = irregular(100)
    options = {"perplexity": 8, "random_state": 0}
    model = TSNE(n_jobs=1, **options).fit(X)
    others = [
        TSNE(n_jobs=2, **options).fit(X),
        TSNE(**options).fit(X * 2.0**200),
        TSNE(**options).fit(scipy.sparse.csr_matrix(X)),
    ]
    for other in others:
        assert np.array_equal(perturbation_score(other), perturbation_score(model))
        assert np.array_equal(
            singularity_score(other, n_jobs=2), singularity_score(model, n_jobs=1)
        )
    assert not np.array_equal(perturbation_score(model, length=2.0), perturbation_score(model))


def test_rows_that_stay_sparse_are_moved():
    X = scipy.sparse.random(60, 40_000, 0.002, format="csr", random_state=0)
    model = TSNE(perplexity=5, random_state=0, max_iter=100).fit(X)
    if not scipy.sparse.issparse(model.fitted_rows_):
        model.fitted_rows_ = scipy.sparse.csr_matrix(model.fitted_rows_)
    found = perturbation_score(model, rows=4)
    assert (found[~np.isnan(found)] > 0).sum() == 4


def test_equal_rows_have_equal_scores():
    X = irregular()
    X[10] = X[11] = X[12]
    model = TSNE(perplexity=8, random_state=0).fit(X)
    found = singularity_score(model)
    assert found[10] == pytest.approx(found[12], rel=1e-9)
    assert np.isfinite(perturbation_score(model)).all()


@each("score", [singularity_score, perturbation_score])
def test_other_models_and_rows_are_refused(score):
    X = irregular()
    with pytest.raises(ParameterError, match="not of PCA"):
        score(PCA(2).fit(X))
    with pytest.raises(ValueError, match="not fitted"):
        score(TSNE())
    model = TSNE(perplexity=8, random_state=0, max_iter=10).fit(X)
    for rows, message in (
        ([60], "each an integer from 0 to"),
        ([-1], "each an integer from 0 to"),
        ([], "rows=\\[\\]"),
        (0, "rows=0"),
        ([0.5], "rows="),
        ("all", "rows='all'"),
    ):
        with pytest.raises(ParameterError, match=message):
            score(model, rows=rows)


def test_what_a_score_needs_is_asked_for():
    X = irregular()
    options = {"perplexity": 8, "random_state": 0, "max_iter": 10}
    graph = knn_graph(X, 24)
    of_graph, of_rows = TSNE(**options).fit(graph), TSNE(**options).fit(X)
    with pytest.raises(ParameterError, match="give them as X"):
        singularity_score(of_graph)
    with pytest.raises(ParameterError, match="leave X out"):
        singularity_score(of_rows, graph)
    with pytest.raises(DataError, match="X has 50 rows"):
        singularity_score(of_graph, knn_graph(X[:50], 24))
    with pytest.raises(ParameterError, match="a graph or distances"):
        perturbation_score(of_graph)
    with pytest.raises(ParameterError, match="metric='gower'"):
        perturbation_score(TSNE(metric="gower", **options).fit(X))
    with pytest.raises(ParameterError, match="length=0"):
        perturbation_score(of_rows, length=0)
