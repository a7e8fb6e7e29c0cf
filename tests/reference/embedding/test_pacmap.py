"""PaCMAP against loops from the paper, ground truth, and the package of its authors."""

import math

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist

from lowland import PaCMAP
from lowland.datasets import digits
from lowland.errors import DataError, ParameterError
from lowland.methods.embedding import _pair_base
from lowland.metrics import neighbor_recall, trustworthiness
from reference.chance import not_below, not_below_in_pairs
from support.cases import each
from support.pair_maps import pairs_kept


def irregular(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.gamma(1.5, size=(n, p)) @ rng.standard_normal((p, p)) + 3 * (np.arange(n) % 3)[:, None]
    )


# --- the pairs --------------------------------------------------------------------------------


@each("metric", ["euclidean", "sqeuclidean", "manhattan", "cosine", "precomputed"])
def test_near_pairs_have_the_least_scaled_distances(metric):
    X, k = irregular(90, 6), 7
    name = {"manhattan": "cityblock", "sqeuclidean": "euclidean", "precomputed": "euclidean"}
    D = cdist(X, X, name.get(metric, metric))
    given = D if metric == "precomputed" else X
    with pairs_kept() as kept:
        model = PaCMAP(n_neighbors=k, metric=metric, num_iters=(2, 0, 0), random_state=0).fit(given)
    scales = np.array([np.sort(np.delete(row, i))[3:6].mean() for i, row in enumerate(D)])
    np.testing.assert_allclose(model.local_scales_, scales, rtol=1e-9)
    for i in range(90):
        candidates = [j for j in np.argsort(D[i], kind="stable") if j != i][: k + 50]
        scaled = D[i] ** 2 / (scales[i] * scales)
        assert kept["near"][i].tolist() == sorted(candidates, key=lambda j: scaled[j])[:k]


def test_only_the_nearest_rows_are_candidates():
    """A row with many near ones far away by distance, but near by scaled distance, is left out."""
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.standard_normal((100, 3)), [8.0, 0, 0] + 9 * rng.standard_normal((60, 3))]
    )
    with pairs_kept() as kept:
        PaCMAP(n_neighbors=5, num_iters=(1, 0, 0), random_state=0).fit(X)
    D = cdist(X, X)
    scales = np.sort(D, axis=1)[:, 4:7].mean(axis=1)
    scaled = D**2 / np.outer(scales, scales) + np.diag(np.full(160, np.inf))
    wrong = 0
    for i, near in enumerate(kept["near"]):
        among = np.argsort(D[i])[1:56]
        assert set(near) <= set(among)
        wrong += set(near) != set(np.argsort(scaled[i])[:5])
    assert wrong > 0  # the data show the difference


@each("metric", ["euclidean", "manhattan", "cosine", "precomputed", "sparse"])
def test_a_mid_near_pair_is_the_second_nearest_of_six_rows(metric):
    X = irregular(60, 5)
    X[X < 0] = 0 if metric == "sparse" else X[X < 0]
    D = cdist(X, X, {"manhattan": "cityblock", "cosine": "cosine"}.get(metric, "euclidean"))
    given, named = X, metric
    with pairs_kept() as kept, pytest.MonkeyPatch.context() as patch:
        if metric == "sparse":
            patch.setattr(_pair_base, "dense_if_small", lambda X: X)
            given, named = scipy.sparse.csr_matrix(X), "euclidean"
        if metric == "precomputed":
            given = D
        PaCMAP(n_neighbors=8, metric=named, num_iters=(1, 0, 0), random_state=0).fit(given)
    pairs, drawn = kept["mid"], kept["groups"]
    assert pairs.shape == (60, 4)
    groups = np.concatenate([drawn[first] for first in sorted(drawn)]).reshape(60, 4, 6)
    for i in range(60):
        for six, partner in zip(groups[i], pairs[i], strict=True):
            assert len({*six, i}) == 7
            assert partner == sorted(six, key=lambda j: D[i, j])[1]


def test_far_pairs_are_others_than_the_near_ones():
    with pairs_kept() as kept:
        PaCMAP(n_neighbors=6, num_iters=(1, 0, 0), random_state=0).fit(irregular(50, 4))
    near, far = kept["near"], kept["far"]
    assert far.shape == (50, 12)
    for i in range(50):
        assert len({i, *near[i], *far[i]}) == 19


@each(
    ("n", "k", "mid", "far", "expected"),
    [
        (1000, 10, 0.5, 2.0, (10, 5, 20)),
        (1000, 7, 0.3, 1.5, (7, 2, 10)),
        (1000, 10, 0.0, 0.01, (10, 0, 1)),
        (36, 10, 0.5, 2.0, (10, 5, 20)),
        (20, 10, 0.5, 2.0, (5, 2, 11)),  # shares of n: 20 / 3.5 = 5.7
        (3, 10, 0.5, 2.0, (1, 0, 1)),
        (2, 10, 0.5, 2.0, (1, 0, 0)),
        (30, 5, 0.5, 50.0, (1, 0, 28)),
    ],
)
def test_numbers_of_pairs(n, k, mid, far, expected):
    assert _pair_base.pair_counts(n, k, mid, far) == expected


@each(("n", "expected"), [(50, 10), (10_000, 10), (10_001, 10), (70_000, 23), (1_000_000, 40)])
def test_the_default_number_of_neighbors_grows_beyond_ten_thousand_rows(n, expected):
    assert _pair_base.default_neighbors(n) == expected
    assert n <= 10_000 or expected == round(10 + 15 * (math.log10(n) - 4))


# --- the descent ------------------------------------------------------------------------------


def test_weights_of_the_phases():
    weights = [_pair_base.weights_at(t, (100, 100, 250)) for t in range(450)]
    assert weights[0] == (2, 1000, 1, 0)
    assert weights[50] == (2, 501.5, 1, 0)
    assert all(w == (3, 3, 1, 0) for w in weights[100:200])
    assert all(w == (1, 0, 1, 0) for w in weights[200:])
    assert weights[99].mid == pytest.approx(1000 - 0.99 * 997)


def paper_descent(kinds, Y, num_iters, rate, n_steps):
    """Loops over pairs, Adam as the authors write it, in float64."""
    Y = Y.astype(float)
    m, v = np.zeros_like(Y), np.zeros_like(Y)
    for step in range(n_steps):
        if step < num_iters[0]:
            t = step / num_iters[0]
            weights = 2.0, (1 - t) * 1000 + 3 * t, 1.0
        else:
            weights = (3.0, 3.0, 1.0) if step < sum(num_iters[:2]) else (1.0, 0.0, 1.0)
        gradient = np.zeros_like(Y)
        for (pairs, sign, a), w in zip(
            zip(kinds, (1, 1, -1), (10.0, 1e4, 1.0), strict=True), weights, strict=True
        ):
            for i, row in enumerate(pairs):
                for j in row:
                    s = 1 + ((Y[i] - Y[j]) ** 2).sum()
                    force = sign * w * 2 * (a if sign > 0 else 1) / (a + s) ** 2 * (Y[i] - Y[j])
                    gradient[i] += force
                    gradient[j] -= force
        m += 0.1 * (gradient - m)
        v += 0.001 * (gradient**2 - v)
        corrected = rate * math.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        Y = Y - corrected * m / (np.sqrt(v) + 1e-7)
    return Y


@each("d", [1, 2, 3, 4])
def test_the_descent_is_that_of_the_paper(d):
    """Twelve steps through all three phases, before rounding grows by the chaos of the map."""
    X, phases = irregular(40, 5), (5, 4, 3)
    params = {"n_neighbors": 5, "learning_rate": 0.4, "random_state": 1}
    with pairs_kept() as kept:
        model = PaCMAP(d, num_iters=phases, **params).fit(X)
    kinds = kept["near"], kept["mid"], kept["far"]
    expected = paper_descent(kinds, kept["start"], phases, 0.4, 12)
    expected -= expected.mean(axis=0)
    np.testing.assert_allclose(model.embedding_, expected, atol=2e-3 * np.abs(expected).max())


def test_the_loss_is_that_of_the_map():
    X = irregular(60, 5)
    with pairs_kept() as kept:
        model = PaCMAP(n_neighbors=5, random_state=0).fit(X)
    Y = model.embedding_
    s = 1 + cdist(Y, Y, "sqeuclidean")
    near, far = kept["near"], kept["far"]
    expected = sum(s[i, j] / (10 + s[i, j]) for i in range(60) for j in near[i])
    expected += sum(1 / (1 + s[i, j]) for i in range(60) for j in far[i])
    assert model.loss_ == pytest.approx(expected, rel=1e-5)
    assert model.loss_history_[-1] == model.loss_
    assert len(model.loss_history_) == 450 // 50 + 1
    assert model.n_iter_ == 450


def test_the_start_is_principal_components_in_any_unit():
    X = irregular(80, 5)
    for scale in (1.0, 1e-3, 1e5):
        with pairs_kept() as kept:
            PaCMAP(num_iters=(0, 0, 1), random_state=0).fit(scale * X)
        Y = kept["start"]
        U, S, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
        scores = U[:, :2] * S[:2]
        assert Y.std(axis=0).max() == pytest.approx(0.01, rel=1e-4)
        for y, score in zip(Y.T, scores.T, strict=True):
            assert abs(np.corrcoef(y, score)[0, 1]) > 0.9999


def test_a_given_start_is_centered_and_kept():
    X, start = irregular(30, 4), irregular(30, 2, seed=3)
    Y = PaCMAP(init=start, num_iters=(0, 0, 0)).fit_transform(X)
    np.testing.assert_allclose(Y, start - start.mean(axis=0), rtol=1e-5, atol=1e-5)
    with pytest.raises(DataError, match="init has shape"):
        PaCMAP(init=start[:5]).fit(X)


# --- bytes, threads, copies -------------------------------------------------------------------


def test_equal_rows_share_one_place():
    X = irregular(70, 4)
    X[30:40] = X[3]
    Y = PaCMAP(n_neighbors=5, random_state=0).fit_transform(X)
    assert (Y[30:40] == Y[3]).all()
    assert len(np.unique(Y, axis=0)) == 60


def test_more_copies_than_candidates_give_a_finite_map():
    X = np.concatenate([np.zeros((90, 3)), irregular(40, 3)])
    model = PaCMAP(n_neighbors=5, random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(X + 1e-3)).all()


@each("n", [2, 3, 4, 5, 8, 12])
def test_few_rows_give_a_finite_map(n):
    X = irregular(n, 3)
    model = PaCMAP(random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.array_equal(model.transform(X), model.embedding_)
    assert np.isfinite(model.transform(X + 0.1)).all()
    if n > 3:
        assert len(np.unique(model.embedding_.round(3), axis=0)) > 1


def test_what_is_refused():
    X = irregular(20, 3)
    with pytest.raises(
        ParameterError, match=r"num_iters=\[10, 20\] is not allowed; expected three"
    ):
        PaCMAP(num_iters=[10, 20]).fit(X)
    with pytest.raises(DataError, match="needs all distances"):
        PaCMAP(metric="precomputed").fit(scipy.sparse.csr_matrix(cdist(X, X)))


# --- wide tables ------------------------------------------------------------------------------


def test_wide_tables_are_searched_in_a_hundred_principal_components():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((260, 300)) * np.linspace(3, 0.5, 300)
    X += np.eye(4).repeat(65, axis=0).repeat(75, axis=1)  # four groups
    with pairs_kept() as kept:
        model = PaCMAP(num_iters=(5, 5, 5), random_state=0).fit(X)
    centered = X - X.mean(axis=0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:100]
    scores = centered @ axes.T
    assert model.fitted_rows_.shape == (260, 100)
    np.testing.assert_allclose(
        np.abs(model.fitted_rows_), np.abs(scores), atol=1e-6 * np.abs(scores).max()
    )
    D = cdist(scores, scores)
    scales = np.sort(D, axis=1)[:, 4:7].mean(axis=1)
    scaled = D**2 / np.outer(scales, scales)
    for i, near in enumerate(kept["near"]):
        among = np.argsort(D[i])[1:61]
        assert set(near) == set(among[np.argsort(scaled[i][among])[:10]])
    plain = PaCMAP(num_iters=(5, 5, 5), apply_pca=False, random_state=0).fit(X)
    assert plain.search_axes_ is None
    assert plain.fitted_rows_.shape == (260, 300)
    assert np.array_equal(model.transform(X), model.embedding_)
    np.testing.assert_array_equal(model.transform(X[7:8] + 0.01)[0], model.transform(X + 0.01)[7])


# --- new rows ---------------------------------------------------------------------------------


def test_held_out_digits_find_their_class():
    """As well as a vote of their nearest fitted digits in the data, but for chance."""
    data = digits()
    X, y, new, truth = data.X[:1300], data.y[:1300], data.X[1300:], data.y[1300:]
    model = PaCMAP(random_state=0).fit(X)

    def votes(D):
        near = np.argsort(D, axis=1)[:, :10]
        return np.array([np.bincount(row).argmax() for row in y[near].astype(int)])

    raw = votes(cdist(new, X)) == truth.astype(int)
    placed = votes(cdist(model.transform(new), model.embedding_)) == truth.astype(int)
    assert not_below_in_pairs(placed, raw)


def test_the_grid_of_a_large_map_gives_the_places_of_all_pairs(monkeypatch):
    X = digits().X
    for d in (1, 2, 3):
        model = PaCMAP(d, num_iters=(60, 60, 60), random_state=0).fit(X[:1500])
        exact = model.transform(X[1500:])
        monkeypatch.setattr(_pair_base, "GRID_POINTS", 1000)
        model._once.__init__()
        gridded = model.transform(X[1500:])
        monkeypatch.undo()
        apart = np.linalg.norm(exact - gridded, axis=1)
        assert not np.array_equal(exact, gridded)
        # the field of the grid has an error of 1 %; where two minima are alike, it may choose
        assert np.quantile(apart, 0.95) < 0.05
        # a row alone
        np.testing.assert_array_equal(model.transform(X[1600:1601])[0], gridded[100])


# --- ground truth -----------------------------------------------------------------------------


def test_a_line_of_groups_stays_in_order():
    """Mid-near pairs keep the large-scale order, which near pairs alone do not know."""
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 8
    X = np.zeros((600, 10))
    X[:, 0] = 20.0 * labels
    X += rng.standard_normal(X.shape)
    agree = []
    for seed in range(3):
        Y = PaCMAP(random_state=seed, init="random").fit_transform(X)
        means = np.array([Y[labels == g].mean(axis=0) for g in range(8)])
        axis = np.linalg.svd(means - means.mean(axis=0))[2][0]
        place = means @ axis
        agree.append(abs(np.corrcoef(np.argsort(np.argsort(place)), np.arange(8))[0, 1]))
    assert np.median(agree) > 0.9


# Measured with pacmap 0.9.1 (numba 0.68.1, faiss-cpu 1.15.1, numpy 2.4.6) on the 1797 digits with
# default parameters and seeds 0, 1, 2: trustworthiness of 10 neighbors 0.98238, 0.98270, 0.98271;
# share of the 10 nearest neighbors kept 0.44018, 0.42966, 0.43929. Seeds of ours vary, too: the
# bound is the error of the difference of two means.
PEER_TRUST, PEER_RECALL = (0.98238, 0.98270, 0.98271), (0.44018, 0.42966, 0.43929)


def test_digits_are_mapped_as_well_as_by_the_package_of_the_authors():
    X = digits().X
    maps = [PaCMAP(random_state=seed).fit_transform(X) for seed in range(3)]
    assert not_below([float(trustworthiness(X, Y, n_neighbors=10)) for Y in maps], PEER_TRUST)
    assert not_below([float(neighbor_recall(X, Y, n_neighbors=10)) for Y in maps], PEER_RECALL)
