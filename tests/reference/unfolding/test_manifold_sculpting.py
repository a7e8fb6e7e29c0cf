"""Manifold sculpting against the definition of its errors, planes, and sheets that it flattens."""

import numpy as np
import pytest

from lowland import LLE, PCA, Isomap, ManifoldSculpting
from lowland._engines.linalg.procrustes import align
from lowland.datasets import iris, s_curve
from lowland.errors import DataError
from lowland.methods.unfolding import manifold_sculpting
from support.cases import each
from support.oracles.unfolding_sculpting import angle, neighbors_of, widest


def irregular_rows(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, size=(n, p)) @ rng.standard_normal((p, p))


def local_errors(X, Y, k):
    """eps of each row by loops: the formula of the docstring, one-sided for the angles."""
    lists = neighbors_of(X, k)
    mean = np.mean([np.linalg.norm(X[i] - X[j]) for i, row in enumerate(lists) for j in row])
    errors = np.zeros(len(X))
    for i, row in enumerate(lists):
        for j in row:
            off = np.linalg.norm(Y[i] - Y[j]) - np.linalg.norm(X[i] - X[j])
            errors[i] += (off / (2 * mean)) ** 2
            m = widest(X[i], j, X, lists, but=i)
            if m >= 0:
                turned = angle(Y[i], Y[j], Y[m]) - angle(X[i], X[j], X[m])
                errors[i] += (min(turned, 0) / np.pi) ** 2
    return errors


def test_data_in_a_plane_give_their_principal_components():
    rng = np.random.default_rng(0)
    for q, dtype in [(2, np.float64), (1, np.float64), (2, np.float32)]:
        X = (irregular_rows(80, q) @ rng.standard_normal((q, 6)) + 3).astype(dtype)
        model = ManifoldSculpting(q).fit(X)
        scores = PCA(q).fit_transform(X)
        assert model.n_iter_ == 0
        assert model.loss_ == 0
        close = 50 * np.finfo(dtype).eps * np.abs(X).max()
        signs = np.sign((scores * model.embedding_).sum(axis=0))
        np.testing.assert_allclose(model.embedding_ * signs, scores, atol=close)


def test_errors_are_those_of_the_definition():
    X = irregular_rows(60, 3)
    model = ManifoldSculpting(2, n_neighbors=5, scaling=0.8, random_state=0).fit(X)
    true = local_errors(X, model.embedding_, 5)
    np.testing.assert_allclose(model.local_errors_, true, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.loss_, true.mean(), rtol=1e-6)


def test_extra_axes_end_at_exactly_0_and_the_best_map_is_kept():
    X = s_curve(150, random_state=1).X
    model = ManifoldSculpting(random_state=0).fit(X)
    assert model.scale_ == 0
    vanished = int(np.ceil(np.log(0.01) / np.log(model.scaling)))
    assert model.loss_ <= model.loss_history_[vanished:].min() * (1 + 1e-9)
    stopped = ManifoldSculpting(max_iter=7, random_state=0).fit(X)
    assert stopped.n_iter_ == 7
    assert stopped.scale_ == pytest.approx(0.98**7)


@each("seed", [0, 1])
def test_passes_never_raise_what_they_lower(seed):
    """A pass of weight 1 lowers the sum of all errors, and each move that of its point."""
    X = s_curve(120, random_state=seed).X
    model = ManifoldSculpting(max_iter=0).fit(X)
    rng, C = np.random.default_rng(seed), model.coordinates_
    graph = model._graph(C, quiet())
    keep = manifold_sculpting.relations_of(C, graph, 2, 1)
    Y, local = np.ascontiguousarray(C[:, :2]), np.empty((2, 120))
    losses, moved = [], 0
    for _ in range(30):
        moved += pass_of(keep, Y, 0.5, 1.0, rng, local)
        assert (local[1] <= local[0]).all()
        losses.append(keep.terms(Y, Y, 0.5, 1)[1].sum())
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()
    assert moved > 120


def quiet():
    from lowland._base.context import FitContext
    from lowland._base.monitor import Monitor

    return FitContext(np.random.default_rng(0), 1, Monitor())


def pass_of(keep, Y, scale, weight, rng, local):
    n = len(Y)
    step = 0.02 * keep.width * rng.uniform(0.6, 1, n)
    seeds, free = rng.integers(0, n, 1).astype(np.int32), np.zeros(n, np.uint8)
    return manifold_sculpting._native.sculpt_pass(
        *keep, scale, *keep.roles(), seeds, free, step, weight, 30, Y, local
    )


def fit_to_truth(Y, truth):
    """The share of the truth's variance that a rotation and one scale of the map give."""
    return 1 - align(truth, Y).disparity


def test_it_recovers_the_s_curve_better_than_isomap_and_lle():
    """Section 4 of the paper: the s curve, at the same number of neighbors."""
    results = {ManifoldSculpting: [], Isomap: [], LLE: []}
    for seed in range(3):
        data = s_curve(400, random_state=seed)
        for method, found in results.items():
            Y = method(2, n_neighbors=10, random_state=0).fit_transform(data.X)
            found.append(fit_to_truth(Y, data.truth))
    ours, isomap, lle = (np.mean(found) for found in results.values())
    assert ours > isomap > lle


def test_fixed_rows_stay_and_the_others_come_to_them():
    data = s_curve(300, random_state=2)
    known = np.full((300, 2), np.nan)
    known[::6] = data.truth[::6]
    model = ManifoldSculpting(fixed=known, random_state=0).fit(data.X)
    np.testing.assert_array_equal(model.embedding_[::6], data.truth[::6])
    off = np.linalg.norm(model.embedding_ - data.truth, axis=1)
    assert np.median(off) < model.mean_neighbor_distance_ / 4
    for wrong, text in [(known[:9], "shape"), (np.where([[True, False]], known, 0.0), "whole")]:
        with pytest.raises(DataError, match=text):
            ManifoldSculpting(fixed=wrong).fit(data.X)


def test_each_component_is_sculpted_and_stays_apart():
    one, two = s_curve(120, random_state=0).X, s_curve(120, random_state=1).X + 40.0
    model = ManifoldSculpting(random_state=0, n_neighbors=8).fit(np.vstack([one, two]))
    assert model.n_connected_components_ == 2
    Y = model.embedding_
    widths = [np.ptp(part, axis=0).max() for part in (Y[:120], Y[120:])]
    assert np.linalg.norm(Y[:120].mean(axis=0) - Y[120:].mean(axis=0)) > 3 * max(widths)
    for rows, part in ((one, Y[:120]), (two, Y[120:])):
        before = local_errors(rows, PCA(2).fit_transform(rows), 8).mean()
        assert local_errors(rows, part, 8).mean() < before / 4


@pytest.mark.slow
@each("q", [1, 2])
def test_centers_of_components_are_drawn_apart_as_much_as_the_components_grow(q):
    """The axes grow to make up for those that shrink; that must not push components away."""
    X = iris().X
    model = ManifoldSculpting(q, random_state=0).fit(X)
    assert model.n_connected_components_ == 2
    first, Y = np.arange(150) < 50, model.embedding_
    start = PCA(q).fit_transform(X)

    def inside(Z):
        return np.sqrt(
            sum(((Z[rows] - Z[rows].mean(axis=0)) ** 2).sum() for rows in (first, ~first))
        )

    def apart(Z):
        return np.linalg.norm(Z[first].mean(axis=0) - Z[~first].mean(axis=0))

    growth = max(1.0, inside(Y) / inside(start))
    np.testing.assert_allclose(apart(Y), growth * apart(start), rtol=0.02)  # equal rows count once
    products = Y.T @ Y
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=0.05 * products.max())


def test_equal_rows_share_a_place():
    X = irregular_rows(40, 3)
    twice = np.vstack([X, X[:15], X[:15]])
    model = ManifoldSculpting(random_state=0, scaling=0.8).fit(twice)
    np.testing.assert_array_equal(model.embedding_[:15], model.embedding_[40:55])
    assert len(model.distinct_) == 40


@each("n", [2, 3, 4])
def test_few_rows_and_constant_rows(n):
    X = irregular_rows(n, 3)
    Y = ManifoldSculpting(random_state=0).fit_transform(X)
    assert np.isfinite(Y).all()
    if n in (2, 3):  # they lie in a plane
        np.testing.assert_allclose(
            np.linalg.norm(Y[0] - Y[1]), np.linalg.norm(X[0] - X[1]), rtol=1e-9
        )
    assert not ManifoldSculpting().fit_transform(np.ones((n, 3))).any()
