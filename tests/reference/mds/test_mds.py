"""Metric scaling: Borg & Groenen's step, naive oracles, scikit-learn, unknown and sparse pairs."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize, nnls

from lowland import MDS, ClassicalMDS
from lowland._engines.stress.objective import IntervalCone
from lowland.errors import DataError, ParameterError
from support.cases import each
from support.oracles.mds import guttman

B_AND_G = np.array([[0, 5, 3, 4], [5, 0, 2, 2], [3, 2, 0, 1], [4, 2, 1, 0.0]])
Z = np.array([[-0.266, -0.539], [0.451, 0.252], [0.016, -0.238], [-0.200, 0.524]])


def test_the_first_step_is_borg_and_groenens():
    model = MDS(metric="precomputed", init=Z, max_iter=1).fit(B_AND_G)
    expected = [[-1.415, -2.471], [1.633, 1.107], [0.249, -0.067], [-0.468, 1.431]]
    np.testing.assert_allclose(model.embedding_, expected, atol=2e-3)  # they print 3 digits of Z
    np.testing.assert_allclose(model.loss_history_, [34.3004, 0.58276], rtol=1e-5)


def test_the_weighted_first_step_is_the_books(irregular, distances):
    D = distances(irregular(12, 4))
    rng = np.random.default_rng(0)
    W = np.triu(rng.gamma(1.0, size=D.shape), 1)
    W[rng.random(D.shape) < 0.3] = 0
    W += W.T
    start = rng.standard_normal((12, 2))
    start -= start.mean(axis=0)
    for weights in (W, sparse.csr_array(W)):
        model = MDS(metric="precomputed", weights=weights, init=start, max_iter=1).fit(D)
        np.testing.assert_allclose(model.embedding_, guttman(D, start, W), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("case", ["plain", "weighted", "missing"])
def test_the_end_is_a_minimum_of_the_naive_stress(case, irregular, distances, naive_stress):
    D = distances(irregular(14, 5))
    rng = np.random.default_rng(1)
    W = None
    if case == "weighted":
        W = np.triu(rng.gamma(1.0, size=D.shape), 1)
        W += W.T
    if case == "missing":
        unknown = np.triu(rng.random(D.shape) < 0.3, 1)
        D[unknown | unknown.T] = np.nan
    model = MDS(metric="precomputed", weights=W, tol=1e-12, max_iter=2000).fit(D)
    assert model.stress_ == pytest.approx(naive_stress(D, model.embedding_, W), rel=1e-10)

    def flat(y):
        return naive_stress(D, y.reshape(-1, 2), W)

    polished = minimize(flat, model.embedding_.ravel(), method="BFGS", options={"gtol": 1e-8})
    assert model.stress_ <= polished.fun * (1 + 1e-6)
    size = np.nansum(np.triu((1 if W is None else W) * D**2, 1))
    assert model.normalized_stress_ == pytest.approx(np.sqrt(model.stress_ / size), rel=1e-9)


def test_weight_zero_and_nan_are_the_same(irregular, distances):
    D = distances(irregular(15, 4))
    W = np.ones_like(D)
    W[2, 5] = W[5, 2] = W[0, 9] = W[9, 0] = 0
    unknown = np.where(W == 0, np.nan, D)
    by_weight = MDS(metric="precomputed", weights=W, tol=1e-12, max_iter=1000).fit(D)
    by_nan = MDS(metric="precomputed", tol=1e-12, max_iter=1000).fit(unknown)
    stored = sparse.csr_array(np.where(np.isnan(unknown), 0, unknown))
    by_absence = MDS(metric="precomputed", tol=1e-12, max_iter=1000).fit(stored)
    assert by_nan.stress_ == pytest.approx(by_weight.stress_, rel=1e-6)
    np.testing.assert_allclose(by_absence.embedding_, by_nan.embedding_, atol=1e-6)


def test_stress_never_rises_and_ends_no_higher_than_scikit_learns(irregular, distances):
    from sklearn.manifold import smacof

    for seed in range(6):
        D = distances(irregular(40, 6, seed=seed))
        # random starts may lead to different local minima; this start leads to one minimum
        start = ClassicalMDS(metric="precomputed").fit(D).embedding_
        ours = MDS(metric="precomputed", init=start, tol=1e-10, max_iter=2000).fit(D)
        settings = {"n_init": 1, "max_iter": 2000, "eps": 1e-10, "normalized_stress": False}
        _, theirs = smacof(D, n_components=2, init=start, **settings)
        assert (np.diff(ours.loss_history_) <= 0).all()
        assert ours.stress_ <= theirs * (1 + 1e-6)


def test_stress_never_rises_from_noise_either(irregular):
    for seed in range(5):
        model = MDS(init="random", random_state=seed).fit(irregular(40, 6))
        assert (np.diff(model.loss_history_) <= 0).all()


def test_a_plane_is_found_exactly(irregular, distances):
    X = irregular(50, 2)
    model = MDS().fit(X)
    np.testing.assert_allclose(distances(model.embedding_), distances(X), atol=1e-8)
    assert model.normalized_stress_ < 1e-9


def test_eurodist_is_no_worse_than_its_classical_start(eurodist, naive_stress):
    _, D = eurodist
    model = MDS(metric="precomputed").fit(D)
    start = ClassicalMDS(metric="precomputed").fit(D).embedding_
    assert model.loss_history_[0] == pytest.approx(naive_stress(D, start), rel=1e-6)
    assert model.stress_ == pytest.approx(3356497.39, rel=1e-6)
    assert model.loss_history_[-1] == model.stress_


def test_interval_scaling_finds_the_constant(irregular, distances):
    D = distances(irregular(40, 2))
    off = 1 - np.eye(40)
    model = MDS(metric="precomputed", transformation="interval", tol=1e-12, max_iter=3000).fit(
        2.0 * D + 5.0 * off
    )
    a, b = model.coefficients_
    assert a / b == pytest.approx(-5.0, rel=1e-2)
    assert model.normalized_stress_ < 1e-3
    assert (np.diff(model.loss_history_) <= 0).all()
    d = distances(model.embedding_)
    i, j = np.triu_indices(40, 1)
    assert np.corrcoef(d[i, j], D[i, j])[0, 1] > 0.99999


@each("kind", ["matrix", "listed"])
def test_the_interval_function_is_a_weighted_regression(kind, irregular, distances):
    X = irregular(18, 5)
    rng = np.random.default_rng(1)
    D = distances(X) ** 1.5 + 2.0 * (1 - np.eye(18))
    W = rng.gamma(0.3, size=(18, 18)) + 1e-3
    W += W.T
    given = {"matrix": D, "listed": sparse.csr_matrix(D)}[kind]
    model = MDS(
        metric="precomputed",
        transformation="interval",
        weights=W,
        pairs="all" if kind == "matrix" else "sparse",
        init=X[:, :2],
        max_iter=20,  # at any map
    ).fit(given)
    i, j = np.triu_indices(18, 1)
    d = distances(model.embedding_)[i, j]
    b, a = np.polyfit(D[i, j], d, 1, w=np.sqrt(W[i, j]))
    assert a + b * D[i, j].min() > 0 < b  # the function is neither cut off nor falling
    np.testing.assert_allclose(model.coefficients_, [a, b], rtol=1e-6)
    gap = d - a - b * D[i, j]
    assert model.stress_ == pytest.approx((W[i, j] * gap**2).sum(), rel=1e-6)


@each("weighted", [False, True])
def test_the_interval_function_is_the_best_that_rises_and_is_positive(weighted):
    rng = np.random.default_rng(0)
    falling = 0
    for _ in range(30):
        delta, d = rng.gamma(2.0, size=(2, 12))
        w = rng.gamma(1.0, size=12) if weighted else np.ones(12)
        columns = np.column_stack([np.ones(12), delta - delta.min()])
        root = np.sqrt(w)
        (base, slope), _ = nnls(columns * root[:, None], d * root)
        cone = IntervalCone(delta, w if weighted else None)
        np.testing.assert_allclose(cone.nearest(d), columns @ [base, slope], atol=1e-9)
        falling += slope == 0
    assert 5 < falling < 25


def test_the_interval_function_of_equal_distances_is_the_mean():
    cone = IntervalCone(np.full(3, 2.0))
    np.testing.assert_allclose(cone.nearest(np.array([1.0, 2.0, 6.0])), 3.0)


def test_a_new_row_may_know_few_distances():
    square = np.array([[0, 0], [4, 0], [4, 4], [0, 4.0], [1, 2]])
    D = np.sqrt(((square[:, None] - square[None]) ** 2).sum(axis=2))
    model = MDS(metric="precomputed").fit(D)
    new = np.sqrt(((square - [2, 1]) ** 2).sum(axis=1))
    whole = model.transform(new[None])
    new[3] = np.nan
    np.testing.assert_allclose(model.transform(new[None]), whole, atol=1e-5)
    with pytest.raises(DataError, match="no distance of new row 0 is known"):
        model.transform(np.full((1, 5), np.nan))


def test_sparse_pairs_come_close_to_all_pairs(irregular):
    X = irregular(1500, 8)
    dense = MDS(random_state=0).fit(X)
    few = MDS(pairs="sparse", random_state=0).fit(X)
    assert (np.diff(few.loss_history_) <= 0).all()
    assert few.stress_ == pytest.approx(dense.stress_, rel=0.1)
    i, j = np.triu_indices(1500, 1)

    def stress(Y):
        gap = np.linalg.norm(X[i] - X[j], axis=1) - np.linalg.norm(Y[i] - Y[j], axis=1)
        return (gap**2).sum()

    assert stress(few.embedding_) <= 1.05 * stress(dense.embedding_)
    with pytest.raises(ParameterError, match="weights need all pairs"):
        MDS(pairs="sparse", weights=np.ones((1500, 1500))).fit(X)


def test_more_starts_are_never_worse(irregular, distances):
    D = distances(irregular(25, 6))
    one = MDS(metric="precomputed", init="random", random_state=0).fit(D)
    many = MDS(metric="precomputed", init="random", n_init=5, random_state=0).fit(D)
    assert many.stress_ <= one.stress_


def test_equal_rows_share_one_place_and_stay_finite(irregular):
    X = np.vstack([irregular(20, 4), irregular(20, 4)[:5]])
    model = MDS(random_state=0).fit(X)
    np.testing.assert_array_equal(model.embedding_[:5], model.embedding_[20:])
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_zero_between_objects_that_differ_otherwise_does_not_glue_them():
    D = np.array([[0, 0, 1, 3.0], [0, 0, 3, 1], [1, 3, 0, 2], [3, 1, 2, 0]])
    Y = MDS(metric="precomputed", random_state=0).fit(D).embedding_
    assert np.linalg.norm(Y[0] - Y[1]) > 0.1


def test_what_leaves_points_anywhere_is_refused(irregular, distances):
    D = distances(irregular(6, 3))
    alone = D.copy()
    alone[2, :] = alone[:, 2] = np.nan
    with pytest.raises(DataError, match="no distance of row 2 is known"):
        MDS(metric="precomputed").fit(alone)
    W = np.zeros((6, 6))
    W[:3, :3] = W[3:, 3:] = 1
    with pytest.raises(DataError, match="2 groups of rows unconnected, as of rows 0 and 3"):
        MDS(metric="precomputed", weights=W).fit(D)
    for bad, match in [
        (np.ones((5, 5)), r"weights have shape \(5, 5\)"),
        (np.where(np.eye(6) > 0, 1, -1.0), r"weights\[0, 1\] = -1"),
        (np.triu(np.ones((6, 6))), "a pair has one weight"),
    ]:
        with pytest.raises(DataError, match=match):
            MDS(metric="precomputed", weights=bad).fit(D)
