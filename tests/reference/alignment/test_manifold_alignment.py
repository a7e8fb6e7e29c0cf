"""Manifold alignment before its witnesses: dense formulas, closed forms, held-out pairs."""

import itertools

import numpy as np
import pytest
import scipy.linalg
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

from lowland import PCA, ManifoldAlignment
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.linalg.procrustes import align
from lowland.datasets import digits
from lowland.methods.alignment._joint_graph import (
    connect_tables,
    joint_graph,
    matches_of,
    neighbor_graphs,
)
from lowland.methods.alignment._maps import local_patterns, pattern_distances
from lowland.metrics import match_accuracy
from lowland.metrics.procrustes import match_ranks
from reference.chance import not_below_in_pairs
from support.cases import each


def local_weights(X, k):
    """Self-tuning weights of the union of k nearest neighbors, by loops; their scales."""
    n, D = len(X), cdist(X, X)
    s = np.sort(D, axis=1)[:, k] / 2
    W = np.zeros((n, n))
    for i in range(n):
        for j in [j for j in np.argsort(D[i], kind="stable") if j != i][:k]:
            W[i, j] = W[j, i] = max(np.exp(-(D[i, j] ** 2) / (s[i] * s[j])), np.exp(-4))
    return W, s


def joint(Xs, pairs, k, mu):
    """W of the joint graph from the notes: mu (sum W_x + sum W_y) / (2 sum W_xy) of equal sums."""
    parts = [local_weights(X, k)[0] for X in Xs]
    W = scipy.linalg.block_diag(*[part / part.sum() for part in parts])
    starts = np.cumsum([0, *map(len, Xs)])
    for a, b in itertools.combinations(range(len(Xs)), 2):
        both = {(i, j) for i, j in pairs[:, [a, b]] if i >= 0 and j >= 0}
        for i, j in both:
            W[starts[a] + i, starts[b] + j] += mu / len(both)
            W[starts[b] + j, starts[a] + i] += mu / len(both)
    return W


def smallest(A, B, q):
    """Pairs of A v = l B v after the constant one, with unit variance weighted by B."""
    values, V = scipy.linalg.eigh(A, B)
    return values[1 : q + 1], V[:, 1 : q + 1] * np.sqrt(B.sum())


def like(Y, reference):
    """Y with the signs of the reference."""
    return Y * np.sign((Y * reference).sum(axis=0))


@pytest.fixture
def views(irregular):
    """Two irregular tables of 90 and 70 rows, of which 30 are matched, in any order."""
    Z = irregular(90, 4, seed=1)
    A, B = np.hstack([Z, Z[:, :1] ** 2]), np.tanh(Z[:70, :3] - Z.mean(axis=0)[:3]) * 7
    rows = np.random.default_rng(3).permutation(70)
    inverse = np.argsort(rows)
    return [A, B[rows]], np.column_stack([np.arange(30), inverse[:30]])


# --- the joint Laplacian --------------------------------------------------------------------------


@each("mu", [0.3, 10.0])
def test_the_map_is_that_of_the_definition(views, mu):
    Xs, pairs = views
    W = joint(Xs, pairs, 7, mu)
    D = np.diag(W.sum(axis=1))
    values, Y = smallest(D - W, D, 3)
    model = ManifoldAlignment(3, n_neighbors=7, mu=mu, random_state=0).fit(Xs, correspondence=pairs)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    np.testing.assert_allclose(
        model.embedding_, like(Y, model.embedding_), atol=1e-7 * np.abs(Y).max()
    )


def test_a_hard_map_is_that_of_merged_nodes(views):
    Xs, pairs = views
    W = joint(Xs, pairs, 7, 10.0)
    node = np.arange(160)
    node[90 + pairs[:, 1]] = pairs[:, 0]
    node = np.unique(node, return_inverse=True)[1]
    P = np.eye(130)[:, node]
    W = P @ W @ P.T
    D = np.diag(W.sum(axis=1))
    values, Y = smallest(D - W, D, 2)
    model = ManifoldAlignment(2, n_neighbors=7, mu="hard", random_state=0)
    first, second = model.fit_transform(Xs, correspondence=pairs)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    Y = like(Y[node], model.embedding_)
    np.testing.assert_allclose(model.embedding_, Y, atol=1e-7 * np.abs(Y).max())
    np.testing.assert_array_equal(first[pairs[:, 0]], second[pairs[:, 1]])


def test_three_tables_are_joined_by_all_their_pairs(irregular):
    Z = irregular(60, 3, seed=2)
    Xs = [Z, Z[::-1] @ [[1.0, 0.2], [0.0, 1.0], [1.0, -2.0]], Z**2]
    i = np.arange(20)
    pairs = np.column_stack([i, 59 - i, np.where(i < 10, i, -1)])
    pairs = np.vstack([pairs, [[30, -1, 30], [-1, 15, 44]], pairs[:3]])  # some of them twice
    W = joint(Xs, pairs, 6, 10.0)
    D = np.diag(W.sum(axis=1))
    values, Y = smallest(D - W, D, 2)
    model = ManifoldAlignment(2, n_neighbors=6).fit(Xs, correspondence=pairs)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    np.testing.assert_allclose(
        model.embedding_, like(Y, model.embedding_), atol=1e-7 * np.abs(Y).max()
    )
    assert [len(part) for part in model.embeddings_] == [60, 60, 60]


def test_equal_tables_have_the_spectrum_of_the_notes_and_equal_maps(irregular):
    """X = Y: (v, v) has the eigenvalue l of one table, (v, -v) has l + 2 mu; mu / n per pair."""
    X = irregular(60, 3, seed=4)
    run = FitContext(np.random.default_rng(0), 1, Monitor())
    pairs = np.column_stack([np.arange(60)] * 2)
    starts, mu = np.array([0, 60, 120]), 0.7
    matches = matches_of(pairs, starts)
    graphs = neighbor_graphs([X, X], 6, "euclidean", "test", run)
    connected = connect_tables(graphs, [X, X], matches, np.empty(0, int), "raise", "euclidean", run)
    both = joint_graph(connected, matches, np.arange(120), starts, mu).W
    alone = local_weights(X, 6)[0]
    alone /= alone.sum()
    single = np.linalg.eigvalsh(np.diag(alone.sum(axis=1)) - alone)
    found = np.linalg.eigvalsh(laplacian(both)[0].toarray())
    expected = np.sort(np.concatenate([single, single + 2 * mu / 60]))
    np.testing.assert_allclose(found, expected, atol=1e-14)
    Y, Z = ManifoldAlignment(3, n_neighbors=6).fit_transform([X, X], correspondence=pairs)
    np.testing.assert_allclose(Y, Z, atol=1e-8)
    assert (Y.std(axis=0) > 0.3).all()


def test_new_rows_follow_their_neighbors_in_their_own_table(views):
    Xs, pairs = views
    model = ManifoldAlignment(2, n_neighbors=7, random_state=0).fit(Xs, correspondence=pairs)
    for d, X in enumerate(Xs):
        new = X[:12] * 0.6 + X[20:32] * 0.4
        s, Y = local_weights(X, 7)[1], model.embeddings_[d]
        for x, z in zip(new, model.transform(new, domain=d), strict=True):
            distance = np.linalg.norm(X - x, axis=1)
            near = np.argsort(distance)[:7]
            own = distance[near].max() / 2
            w = np.maximum(np.exp(-(distance[near] ** 2) / (own * s[near])), np.exp(-4))
            expected = (w @ Y[near]) / w.sum() / (1 - model.eigenvalues_)
            np.testing.assert_allclose(z, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(model.transform(X, d), Y)


# --- projections ----------------------------------------------------------------------------------


def linear_oracle(Xs, W, q, ridge):
    """Z L Z^T g = l Z D Z^T g with a constant per table; the penalty of lengths in units of s_1."""
    d = W.sum(axis=1)
    columns, penalty = [], []
    for X in Xs:
        columns.append(np.column_stack([np.ones(len(X)), X - X.mean(axis=0)]))
        size = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[0] ** 2 / len(X)
        penalty.append(scipy.linalg.block_diag(0, np.eye(X.shape[1]) * size))
    F = scipy.linalg.block_diag(*columns)
    A = F.T @ (np.diag(d) - W) @ F + ridge * d.sum() * scipy.linalg.block_diag(*penalty)
    return F, A, F.T @ (d[:, None] * F), d.sum()


@each("ridge", [0.0, 1e-3, 0.5])
def test_projections_are_those_of_the_paper(views, ridge):
    Xs, pairs = views
    Xs = [Xs[0], Xs[1] * [1.0, 30.0, 0.1]]
    W = joint(Xs, pairs, 7, 2.0)
    F, A, B, total = linear_oracle(Xs, W, 3, ridge)
    values, G = scipy.linalg.eigh(A, B)
    Y = F @ G[:, 1:4] * np.sqrt(total)
    model = ManifoldAlignment(3, level="feature", n_neighbors=7, mu=2.0, ridge=ridge)
    model.fit(Xs, correspondence=pairs)
    np.testing.assert_allclose(model.eigenvalues_, values[1:4], rtol=1e-7)
    np.testing.assert_allclose(
        model.embedding_, like(Y, model.embedding_), atol=1e-6 * np.abs(Y).max()
    )


def test_dependent_and_constant_columns_change_nothing(views):
    Xs, pairs = views
    plain = ManifoldAlignment(2, level="feature", ridge=0.0, n_neighbors=7)
    plain.fit(Xs, correspondence=pairs)
    graph_of = Xs[0]
    more = np.column_stack([graph_of, np.full(90, 3.0)])
    wider = ManifoldAlignment(2, level="feature", ridge=0.0, n_neighbors=7)
    wider.fit([more, Xs[1]], correspondence=pairs)
    scale = np.abs(plain.embedding_).max()
    np.testing.assert_allclose(wider.embedding_, plain.embedding_, atol=1e-8 * scale)
    np.testing.assert_array_equal(wider.projections_[5], 0)
    # columns beyond the rank: a copy and a sum, which change distances, but not what a map can be
    copies = np.column_stack([more, graph_of[:, 0], graph_of[:, 1] - graph_of[:, 2]])
    model = ManifoldAlignment(12, level="feature", ridge=0.0, n_neighbors=7)
    model.fit([copies, Xs[1]], correspondence=pairs)
    assert np.isfinite(model.eigenvalues_).sum() == 5 + 3 + 1  # columns and one constant
    assert (model.embedding_[:, 9:] == 0).all()


def test_with_more_columns_than_rows_projections_can_be_any_function(irregular):
    Xs = [irregular(30, 50, seed=6), irregular(25, 40, seed=7)]
    pairs = np.column_stack([np.arange(15)] * 2)
    linear = ManifoldAlignment(2, level="feature", ridge=0.0, n_neighbors=5)
    free = ManifoldAlignment(2, n_neighbors=5)
    Y = linear.fit(Xs, correspondence=pairs).embedding_
    Z = free.fit(Xs, correspondence=pairs).embedding_
    np.testing.assert_allclose(linear.eigenvalues_, free.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(like(Y, Z), Z, atol=1e-5 * np.abs(Z).max())


# --- Procrustes -----------------------------------------------------------------------------------


def test_a_turned_map_is_recovered_to_rounding(irregular):
    X = irregular(50, 3, seed=8)
    R = Rotation.from_euler("xyz", [0.3, 1.0, -2.0]).as_matrix() @ np.diag([1, 1, -1])
    copies = [X, 3.7 * X @ R + [5, -2, 100.0], 0.01 * X[::-1] @ R.T - 4]
    i = np.array([3, 17, 18, 29, 40])
    # the third table is matched with the second one only
    pairs = np.vstack(
        [np.column_stack([i, i, -1 + 0 * i]), np.column_stack([-1 + 0 * i, i, 49 - i])]
    )
    model = ManifoldAlignment(3, method="procrustes", level="given").fit(
        copies, correspondence=pairs
    )
    first, second, third = model.embeddings_
    np.testing.assert_array_equal(first, X)
    np.testing.assert_allclose(second, X, atol=1e-11)
    np.testing.assert_allclose(third[::-1], X, atol=1e-11)
    np.testing.assert_allclose(model.disparities_, 0, atol=1e-12)
    np.testing.assert_allclose(model.transform(copies[1][7:9] + 1e-3, 1), X[7:9], atol=1e-2)


def test_pca_of_each_table_is_turned_onto_the_first(views):
    Xs, pairs = views
    maps = [PCA(2).fit(X) for X in Xs]
    A, B = (m.transform(X) for m, X in zip(maps, Xs, strict=True))
    found = align(A[pairs[:, 0]], B[pairs[:, 1]])
    model = ManifoldAlignment(2, method="procrustes", level="feature").fit(Xs, correspondence=pairs)
    first, second = model.embeddings_
    signs = np.sign((first * A).sum(axis=0))
    np.testing.assert_allclose(first, A * signs, atol=1e-9)
    expected = (found.scale * B @ found.rotation + found.translation) * signs
    np.testing.assert_allclose(second, expected, atol=1e-9)
    before = np.linalg.norm(A[pairs[:, 0]] - B[pairs[:, 1]])
    assert np.linalg.norm(first[pairs[:, 0]] - second[pairs[:, 1]]) <= before
    assert model.disparities_[1] == pytest.approx(found.disparity)


def test_eigenmaps_of_each_table_are_turned_with_their_new_rows(views):
    Xs, pairs = views
    model = ManifoldAlignment(2, method="procrustes", n_neighbors=7, random_state=0)
    model.fit(Xs, correspondence=pairs)
    own = []
    for X in Xs:
        W, s = local_weights(X, 7)
        D = np.diag(W.sum(axis=1))
        own.append((*smallest(D - W, D, 2), s))
    signs = np.sign((own[0][1] * model.embeddings_[0]).sum(axis=0))
    first, second = own[0][1] * signs, own[1][1]
    found = align(first[pairs[:, 0]], second[pairs[:, 1]])
    np.testing.assert_allclose(model.embeddings_[0], first, atol=1e-7)
    turned = found.scale * second @ found.rotation + found.translation
    np.testing.assert_allclose(model.embeddings_[1], turned, atol=1e-6)
    X, (values, Y, s) = Xs[1], own[1]
    x = X[3] * 0.5 + X[9] * 0.5
    distance = np.linalg.norm(X - x, axis=1)
    near = np.argsort(distance)[:7]
    w = np.exp(-(distance[near] ** 2) / (distance[near].max() / 2 * s[near]))
    w = np.maximum(w, np.exp(-4))
    alone = (w @ Y[near]) / w.sum() / (1 - values)
    expected = found.scale * alone @ found.rotation + found.translation
    np.testing.assert_allclose(model.transform(x[None], 1)[0], expected, rtol=1e-6)


# --- known places ---------------------------------------------------------------------------------


def test_known_places_are_least_squares_or_kept(views):
    Xs, pairs = views
    S = [np.full((90, 2), np.nan), None]
    S[0][40:60] = np.column_stack([np.cos(np.arange(20)), np.arange(20.0)])
    known = np.arange(40, 60)
    W = joint(Xs, pairs, 7, 3.0)
    L = np.diag(W.sum(axis=1)) - W
    K = np.zeros((160, 160))
    K[known, known] = 3.0 / 20
    expected = np.linalg.solve(L + K, K[:, :90][:, known] @ S[0][known])
    model = ManifoldAlignment(2, n_neighbors=7, mu=3.0)
    Y = model.fit(Xs, correspondence=pairs, coordinates=S).embedding_
    np.testing.assert_allclose(Y, expected, atol=1e-7)
    assert model.eigenvalues_ is None
    kept = ManifoldAlignment(2, n_neighbors=7, mu="hard")
    first, second = kept.fit_transform(Xs, correspondence=pairs, coordinates=S)
    np.testing.assert_allclose(first[known], S[0][known], atol=1e-14)
    np.testing.assert_array_equal(first[pairs[:, 0]], second[pairs[:, 1]])
    # harmonic: no other row lies outside the known ones
    assert (first.min(axis=0) >= S[0][known].min(axis=0) - 1e-9).all()
    assert (second.max(axis=0) <= S[0][known].max(axis=0) + 1e-9).all()
    F, A, _, _ = linear_oracle(Xs, W, 2, 1e-3)
    G = np.linalg.solve(A + F.T @ K @ F, F.T @ (K[:, :90][:, known] @ S[0][known]))
    linear = ManifoldAlignment(2, n_neighbors=7, mu=3.0, level="feature")
    linear.fit(Xs, correspondence=pairs, coordinates=S)
    np.testing.assert_allclose(linear.embedding_, F @ G, atol=1e-6)


def test_known_places_on_a_line_keep_all_rows_on_it(views):
    Xs, pairs = views
    S = [np.full((90, 2), np.nan), None]
    S[0][40:60] = np.column_stack([np.zeros(20), np.arange(20.0)])
    model = ManifoldAlignment(2, n_neighbors=7, mu=3.0)
    Y = model.fit(Xs, correspondence=pairs, coordinates=S).embedding_
    np.testing.assert_array_equal(Y[:, 0], 0)
    assert np.ptp(Y[:, 1]) > 1


def test_known_places_alone_join_tables(views):
    Xs, _ = views
    S = [np.full((len(X), 2), np.nan) for X in Xs]
    S[0][:10], S[1][:5] = Xs[0][:10, :2], Xs[1][:5, :2]
    model = ManifoldAlignment(2, n_neighbors=7, mu="hard").fit(Xs, coordinates=S)
    for Y, known, m in zip(model.embeddings_, S, (10, 5), strict=True):
        np.testing.assert_allclose(Y[:m], known[:m], atol=1e-13)


# --- without correspondence -----------------------------------------------------------------------


def test_patterns_are_compared_in_all_orders_and_both_scales(irregular):
    """The paper's min over h of min(|B_h - a A|, |A - b B_h|), for patterns of norm 1."""
    A, B = irregular(9, 3, seed=1), irregular(8, 2, seed=2)
    run = FitContext(np.random.default_rng(0), 1, Monitor())

    def pattern(X, i):
        near = np.argsort(np.linalg.norm(X - X[i], axis=1))[:5]
        R = cdist(X[near], X[near])
        return R / np.linalg.norm(R)

    found = pattern_distances(
        local_patterns(A, "euclidean", run), local_patterns(B, "euclidean", run)
    )
    for i, j in itertools.product(range(9), range(8)):
        P, Q, best = pattern(A, i), pattern(B, j), np.inf
        for order in itertools.permutations(range(1, 5)):
            h = np.array([0, *order])
            R = Q[np.ix_(h, h)]
            a, b = (P * R).sum() / (P * P).sum(), (P * R).sum() / (R * R).sum()
            best = min(best, np.linalg.norm(R - a * P), np.linalg.norm(P - b * R))
        assert found[i, j] == pytest.approx(best, abs=1e-7)


def test_a_curve_and_its_bent_copy_find_each_other():
    """A helix and an arc of the same lengths, unevenly sampled: 99 % of the partners are found."""
    rng = np.random.default_rng(0)
    s, order = np.sort(rng.uniform(0, 10, 300)), rng.permutation(300)
    helix = np.column_stack([np.cos(s), np.sin(s), 0.5 * s]) / np.sqrt(1.25)
    arc = 2.5 * np.column_stack([4 * np.cos(s / 4), 4 * np.sin(s / 4)])  # in another unit
    pairs = np.column_stack([order, np.arange(300)])
    Y, Z = ManifoldAlignment(2, random_state=0).fit_transform([helix, arc[order]])
    assert match_accuracy(Y, Z, pairs) > 0.99
    assert abs(np.corrcoef(Y[:, 0], s)[0, 1]) > 0.9  # and the map is the curve


# --- held-out pairs -------------------------------------------------------------------------------


def surely_nearer(ours, theirs, pairs):
    """Whether fewer rows are nearer than the partner in our maps, by more than chance."""
    counts = [match_ranks(*maps, pairs)[0].sum(axis=0) for maps in (ours, theirs)]
    return not not_below_in_pairs(*counts)


def test_held_out_pairs_of_digits_are_found_better_than_by_pca_and_by_chance():
    X = digits().X[:1000].reshape(-1, 8, 8)
    Xs = [X[:, :, :4].reshape(1000, -1), X[:, :, 4:].reshape(1000, -1)]
    order = np.random.default_rng(0).permutation(1000)
    given, held = (np.column_stack([part, part]) for part in (order[:250], order[250:]))
    pca = ManifoldAlignment(10, method="procrustes", level="feature")
    peer = pca.fit_transform(Xs, correspondence=given)
    for level in ("instance", "feature"):
        model = ManifoldAlignment(10, level=level, random_state=0)
        Y, Z = model.fit_transform(Xs, correspondence=given)
        # one of 1000 rows is the partner: a random one is it in .75 of the 750 cases on average
        assert match_accuracy(Y, Z, held) * 750 > 0.75 + 3 * np.sqrt(0.75), level
        assert match_accuracy(Y, Z, held) > match_accuracy(*peer, held), level
        assert surely_nearer((Y, Z), peer, held), level
