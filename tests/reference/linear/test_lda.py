"""LDA against its definition, Fisher's iris data, closed forms, and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
from sklearn import covariance, discriminant_analysis
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

import lowland
from lowland import LDA
from lowland.errors import DataError, ParameterError
from support.cases import each

Peer = discriminant_analysis.LinearDiscriminantAnalysis
TABLES = {
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
    "breast_cancer": load_breast_cancer,
}

# Two exact algorithms on data of moderate condition.
RTOL = 1e-6


def grouped(n, p, C, seed=0, apart=1.0):
    """Skewed, correlated rows of C classes of very different sizes, in no order."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, C + 1) ** 1.5
    y = np.concatenate(
        [np.repeat(np.arange(C), 2), rng.choice(C, n - 2 * C, p=shares / sum(shares))]
    )
    rng.shuffle(y)
    mix = rng.standard_normal((p, p)) * 10.0 ** rng.uniform(-2, 2, p)
    X = rng.gamma(1.5, size=(n, p)) @ mix + apart * rng.standard_normal((C, p))[y] @ mix
    return X + 5 * rng.standard_normal(p), y


def scatters(X, y):
    """S_W and S_B, row by row, as Fisher and Rao write them."""
    m = X.mean(axis=0)
    within, between = np.zeros((X.shape[1],) * 2), np.zeros((X.shape[1],) * 2)
    for c in np.unique(y):
        rows = X[y == c]
        for row in rows:
            within += np.outer(row - rows.mean(axis=0), row - rows.mean(axis=0))
        between += len(rows) * np.outer(rows.mean(axis=0) - m, rows.mean(axis=0) - m)
    return within, between


def same_up_to_sign(first, second, rtol=RTOL):
    """Columns equal up to sign, and to a common precision."""
    signs = np.sign((first * second).sum(axis=0))
    assert np.allclose(first * signs, second, atol=rtol * np.abs(second).max(), rtol=0)


# --- (a) the definition -------------------------------------------------------------------------


@each(("p", "C"), [(5, 4), (9, 2), (3, 6), (1, 3)])
def test_axes_solve_the_generalized_eigenproblem(p, C):
    X, y = grouped(200, p, C)
    found = LDA().fit(X, y)
    within, between = scatters(X, y)
    k = min(p, C - 1)
    values, vectors = scipy.linalg.eigh(between, within / (len(X) - C))
    values, axes = values[::-1][:k], vectors[:, ::-1][:, :k]
    largest = np.abs(axes).max(axis=0)
    assert found.n_components_ == k
    assert np.allclose(found.eigenvalues_, values / (len(X) - C), rtol=RTOL)
    same_up_to_sign(found.components_.T / largest, axes / largest)
    W = found.components_.T
    assert np.allclose(W.T @ within @ W / (len(X) - C), np.eye(k), atol=RTOL)
    assert np.allclose(W.T @ between @ W, np.diag(found.eigenvalues_) * (len(X) - C), atol=1e-5)
    total = within + between
    power = np.diag(W.T @ between @ W) / np.diag(W.T @ total @ W)
    assert np.allclose(found.discriminant_power_, power, rtol=RTOL)
    assert (found.discriminant_power_ > 0).all()
    assert (found.discriminant_power_ < 1).all()
    assert np.allclose(found.transform(X), (X - X.mean(axis=0)) @ W, atol=1e-8 * len(X))


def test_fewer_components_are_the_first_and_the_classifier_keeps_all():
    X, y = grouped(200, 6, 5)
    full, two = LDA().fit(X, y), LDA(2).fit(X, y)
    assert np.array_equal(two.components_, full.components_[:2])
    assert np.array_equal(two.explained_variance_ratio_, full.explained_variance_ratio_[:2])
    assert full.explained_variance_ratio_.sum() == pytest.approx(1)
    assert np.array_equal(two.predict_proba(X), full.predict_proba(X))


def test_two_classes_are_fishers_direction_and_a_cut():
    X, y = grouped(150, 6, 2)
    found = LDA().fit(X, y)
    within, _ = scatters(X, y)
    means = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
    fisher = np.linalg.solve(within / (len(X) - 2), means[1] - means[0])
    fisher /= np.sqrt(fisher @ within @ fisher / (len(X) - 2))
    assert np.allclose(found.components_[0], fisher, rtol=1e-5)
    z = found.transform(X)[:, 0]
    assert z[y == 1].mean() > z[y == 0].mean()
    assert np.array_equal(found.predict(X), (z > found.threshold_).astype(int))
    middle = LDA(rule="mahalanobis").fit(X, y)
    centers = middle.transform(means)[:, 0]
    assert middle.threshold_ == pytest.approx(centers.mean(), abs=1e-9)
    rare = LDA(priors=[0.9, 0.1]).fit(X, y)
    assert rare.threshold_ > middle.threshold_ - centers.mean() + rare.transform(means).mean()


def test_probabilities_are_those_of_normal_classes_of_one_covariance():
    X, y = grouped(120, 4, 3)
    rng = np.random.default_rng(7)
    new = X[:40] + 0.3 * (X[40:80] - X[80:]) * rng.standard_normal((40, 1))
    found = LDA(priors=[0.2, 0.5, 0.3]).fit(X, y)
    precision = np.linalg.inv(scatters(X, y)[0] / len(X))
    logs = np.column_stack([
        np.log(prior) - 0.5 * np.einsum("ij,jk,ik->i", new - m, precision, new - m)
        for prior, m in zip([0.2, 0.5, 0.3], found.means_, strict=True)
    ])  # fmt: skip
    expected = np.exp(logs - scipy.special.logsumexp(logs, axis=1, keepdims=True))
    assert (expected.max(axis=1) < 0.99).sum() > 20  # where all is certain, nothing is compared
    assert np.allclose(found.predict_proba(new), expected, atol=1e-9)
    assert np.allclose(np.exp(found.predict_log_proba(new)), expected, atol=1e-9)
    assert np.allclose(found.decision_function(new), new @ found.coef_.T + found.intercept_)
    assert found.score(X, y) == np.mean(found.predict(X) == y)
    with pytest.raises(DataError, match="X has 120 rows, but y has 119"):
        found.score(X, y[:-1])


def test_the_score_counts_rows_by_their_weights():
    X, y = grouped(60, 3, 3)
    found = LDA().fit(X, y)
    right, weights = found.predict(X) == y, np.arange(60.0)
    assert 0 < right.mean() < 1
    assert found.score(X, y, sample_weight=weights) == pytest.approx(weights[right].sum() / 1770)


# --- (b) Fisher's irises, and what must hold ----------------------------------------------------


def test_iris_gives_the_numbers_of_the_literature():
    """Eigenvalues and axes as R's MASS::lda prints them; 147 right by nearest barycenter."""
    X, y = load_iris(return_X_y=True)
    found = LDA(rule="mahalanobis").fit(X, y)
    assert np.allclose(found.eigenvalues_, [32.1919292, 0.28539104], rtol=1e-8)
    assert np.allclose(found.explained_variance_ratio_, [0.9912126, 0.0087874], atol=5e-8)
    expected = [
        [-0.82937764, -1.53447307, 2.20121166, 2.81046031],
        [0.02410215, 2.16452123, -0.93192121, 2.83918785],
    ]
    assert np.allclose(found.components_, expected, atol=5e-9)
    assert np.allclose(
        found.discriminant_power_, [32.1919292 / 33.1919292, 0.28539104 / 1.28539104]
    )
    assert (found.predict(X) == y).sum() == 147
    assert found.threshold_ is None


@each("shrinkage", [None, 0.3, "auto"])
@each("p", [4, 300])
def test_mahalanobis_is_the_nearest_barycenter_in_the_map(shrinkage, p):
    X, y = grouped(120, p, 5, apart=0.4)
    new, _ = grouped(200, p, 5, seed=9, apart=0.4)
    found = LDA(rule="mahalanobis", shrinkage=shrinkage, priors=[0.6, 0.1, 0.1, 0.1, 0.1]).fit(X, y)
    Y, centers = found.transform(new), found.transform(found.means_)
    nearest = ((Y[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert len(np.unique(nearest)) > 1
    assert np.array_equal(found.predict(new), nearest)


# --- (c) scikit-learn ---------------------------------------------------------------------------


@each("name", TABLES)
@each("solver", ["svd", "eigen"])
def test_axes_and_probabilities_agree_with_scikit_learn(name, solver):
    X, y = TABLES[name](return_X_y=True)
    if name == "digits" and solver == "eigen":
        X = X[:, X.std(axis=0) > 1]  # it does not take constant columns
    ours, peer = LDA().fit(X, y), Peer(solver=solver).fit(X, y)
    Y, theirs = ours.transform(X), peer.transform(X)
    theirs -= theirs.mean(axis=0)  # "eigen" does not center
    same_up_to_sign(Y / Y.std(axis=0), theirs / theirs.std(axis=0))
    assert np.allclose(ours.predict_proba(X), peer.predict_proba(X), atol=RTOL)
    if solver == "svd":  # the others differ by a constant per row
        scores = peer.decision_function(X)
        assert np.allclose(ours.decision_function(X), scores, atol=RTOL * np.abs(scores).max())
    assert np.allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_[: Y.shape[1]])
    assert np.array_equal(ours.predict(X), peer.predict(X))


@each("name", ["iris", "wine", "breast_cancer"])
@each("shrinkage", [0.0, 0.1, 0.7, 1.0, "auto"])
def test_shrunk_probabilities_agree_with_scikit_learn(name, shrinkage):
    X, y = TABLES[name](return_X_y=True)
    ours = LDA(shrinkage=shrinkage).fit(X, y)
    peer = Peer(solver="lsqr", shrinkage=shrinkage).fit(X, y)
    assert np.allclose(ours.predict_proba(X), peer.predict_proba(X), atol=RTOL)


@pytest.mark.parametrize("priors", [[0.2, 0.3, 0.5], (0.98, 0.01, 0.01), np.full(3, 1 / 3)])
def test_priors_agree_with_scikit_learn(priors):
    X, y = load_wine(return_X_y=True)
    ours, peer = LDA(priors=priors).fit(X, y), Peer(priors=priors).fit(X, y)
    same_up_to_sign(ours.transform(X), peer.transform(X) * np.sqrt((len(X) - 3) / len(X)))
    assert np.allclose(ours.predict_proba(X), peer.predict_proba(X), atol=RTOL)


@pytest.mark.parametrize("shrinkage", [0.2, "auto"])
def test_wide_data_with_shrinkage_agree_with_scikit_learn(shrinkage):
    X, y = grouped(40, 90, 3)
    new, _ = grouped(30, 90, 3, seed=2)
    ours = LDA(shrinkage=shrinkage).fit(X, y)
    peer = Peer(solver="lsqr", shrinkage=shrinkage).fit(X, y)
    for rows in (X, new):
        assert np.allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=1e-5)


def test_the_share_of_ledoit_and_wolf_is_scikit_learns():
    from lowland._base.monitor import Monitor
    from lowland.methods.linear._discriminant import ledoit_wolf

    with Monitor(label="test", verbose=False) as monitor:
        # a few rows of noise have no correlations: their share is 1, the most there can be
        noise = np.random.default_rng(3).standard_normal((10, 3))
        for X in (*(grouped(n, p, 2)[0] for n, p in ((200, 6), (30, 80), (9, 3))), noise):
            Z = StandardScaler().fit_transform(X)
            _, expected = covariance.ledoit_wolf(Z)
            for rows in (X, scipy.sparse.csr_matrix(X)):
                share = ledoit_wolf(rows, X.mean(axis=0), X.std(axis=0), 1, monitor)
                assert share == pytest.approx(expected, rel=1e-8)
        assert share == 1


# --- (d) shapes of data -------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [None, 0.25])
def test_few_rows_through_inner_products_equal_those_of_the_covariance(shrinkage):
    """partial_fit always has the p x p matrix; fit works in the span of the rows."""
    X, y = grouped(36, 60, 4)
    new, _ = grouped(25, 60, 4, seed=5)
    span, full = LDA(shrinkage=shrinkage), LDA(shrinkage=shrinkage)
    span.fit(X, y)
    full.partial_fit(X, y)
    assert np.allclose(span.eigenvalues_, full.eigenvalues_, rtol=1e-5)
    for rows in (X, new):
        same_up_to_sign(span.transform(rows), full.transform(rows), 1e-5)
        assert np.allclose(span.predict_proba(rows), full.predict_proba(rows), atol=1e-5)
    assert span.score(X, y) == 1


def test_directions_in_which_no_class_varies_are_used():
    """With a pseudo-inverse, as in scikit-learn, a column that determines the class is ignored."""
    X, y = grouped(80, 5, 3, apart=0.0)
    X[:, 2] = np.array([4.0, -1.0, 7.5])[y]
    found = LDA().fit(X, y)
    assert found.score(X, y) == 1
    assert Peer().fit(X, y).score(X, y) < 0.9
    assert np.isfinite(found.eigenvalues_).all()
    assert np.isfinite(found.predict_proba(X)).all()


@each("shrinkage", [None, 0.2, "auto"])
@each("shape", [(150, 12), (30, 70)])
def test_sparse_rows_give_the_same_as_dense_ones(shape, shrinkage):
    X, y = grouped(*shape, 3)
    X[np.abs(X) < np.quantile(np.abs(X), 0.6, axis=0)] = 0
    dense = LDA(shrinkage=shrinkage).fit(X, y)
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        found = LDA(shrinkage=shrinkage).fit(kind(X), y)
        same_up_to_sign(found.transform(kind(X)), dense.transform(X))
        assert np.allclose(found.predict_proba(kind(X)), dense.predict_proba(X), atol=RTOL)


def test_sparse_rows_are_never_made_dense(monkeypatch):
    X = scipy.sparse.random_array((500, 40), density=0.05, rng=np.random.default_rng(0)).tocsr()
    shapes = []
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array):

        def toarray(self, *args, original=kind.toarray, **kwargs):
            shapes.append(self.shape)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(kind, "toarray", toarray)
    LDA().fit(X, np.arange(500) % 3).predict(X)
    assert set(shapes) == {(40, 40)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classes_far_apart_do_not_blur_the_scatter_within_them(dtype):
    """S_W = S_T - S_B would lose all digits here."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    noise = np.round(rng.standard_normal((300, 4)) * 64) / 64  # exact beside the offsets
    X = (noise + np.array([0, 2.0**12, -(2.0**13)])[y][:, None] * [1, 0.5, 0.25, 1]).astype(dtype)
    within, _ = scatters(noise, y)
    W = LDA().fit(X, y).components_.T
    assert np.allclose(W.T @ within @ W / 297, np.eye(2), atol=1e-9)


def test_many_small_classes_beside_a_large_one():
    """Small classes are summed together, large ones alone; both in more than one piece."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.concatenate([np.repeat(np.arange(700), 9), np.full(5000, 700)]))
    X = rng.gamma(1.0, size=(len(y), 3)) + rng.standard_normal((701, 3))[y] + 100
    found = LDA().fit(X, y)
    centers = np.array([X[y == c].mean(axis=0) for c in range(701)])
    within = (X - centers[y]).T @ (X - centers[y])
    W = found.components_.T
    assert np.allclose(found.means_, centers)
    assert np.allclose(W.T @ within @ W / (len(X) - 701), np.eye(3), atol=1e-9)


def test_constant_and_repeated_columns_change_nothing():
    X, y = grouped(100, 4, 3)
    plain = LDA().fit(X, y)
    more = np.column_stack([X, np.full(100, 0.1), X[:, 0] * 3, np.zeros(100)])
    found = LDA().fit(more, y)
    assert np.array_equal(found.components_[:, [4, 6]], np.zeros((2, 2)))
    same_up_to_sign(found.transform(more), plain.transform(X))
    assert np.allclose(found.predict_proba(more), plain.predict_proba(X), atol=RTOL)


def test_a_class_of_one_row_is_a_class():
    X, y = grouped(60, 4, 3)
    X, y = np.vstack([X, X.mean(axis=0) + 50]), np.append(y, 3)
    for shrinkage in (None, 0.1, "auto"):
        found = LDA(shrinkage=shrinkage).fit(X, y)
        assert found.class_counts_[3] == 1
        assert np.allclose(found.means_[3], X[-1])
        assert found.predict(X[-1:])[0] == 3
        assert np.isfinite(found.components_).all()


def test_coinciding_means_leave_no_cut():
    X = np.array([[1.0, 2], [3, 5], [1, 2], [3, 5], [4, 1], [4, 1]])
    found = LDA().fit(X, [0, 0, 1, 1, 0, 1])
    assert found.threshold_ is None
    assert found.eigenvalues_ == pytest.approx(0, abs=1e-12)
    assert np.allclose(found.predict_proba(X), 0.5)


# --- batches ------------------------------------------------------------------------------------


@each("shrinkage", [None, 0.3])
@each("sparse", [False, True])
def test_batches_give_what_one_fit_gives(shrinkage, sparse):
    X, y = grouped(240, 7, 5)
    X[:, 3] = 2.5
    labels = np.array(["e", "d", "c", "b", "a"], dtype=object)[y]
    found = LDA(shrinkage=shrinkage)
    for start in range(0, 240, 37):
        rows = slice(start, start + 37)
        found.partial_fit(scipy.sparse.csr_array(X[rows]) if sparse else X[rows], labels[rows])
    whole = LDA(shrinkage=shrinkage).fit(X, labels)
    assert found.n_samples_seen_ == 240
    assert list(found.classes_) == list("abcde")
    assert np.array_equal(found.class_counts_, whole.class_counts_)
    assert np.allclose(found.means_, whole.means_)
    same_up_to_sign(found.transform(X), whole.transform(X))
    assert np.allclose(found.predict_proba(X), whole.predict_proba(X), atol=RTOL)


def test_batches_go_on_after_a_model_file(tmp_path):
    X, y = grouped(100, 4, 3)
    LDA().partial_fit(X[:50], y[:50]).save(tmp_path / "m.lowland")
    resumed = lowland.load(tmp_path / "m.lowland").partial_fit(X[50:], y[50:])
    same_up_to_sign(resumed.transform(X), LDA().fit(X, y).transform(X))


def test_the_model_waits_for_every_class_that_was_named():
    X, y = grouped(60, 4, 3)
    found = LDA().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    with pytest.raises(NotFittedError):
        found.predict(X)
    found.partial_fit(X[y == 2], y[y == 2])
    assert np.allclose(found.predict_proba(X), LDA().fit(X, y).predict_proba(X), atol=RTOL)
    with pytest.raises(DataError, match=r"the label 7, which is not among classes=.*0.*1.*2"):
        found.partial_fit(X[:2], [0, 7], classes=[0, 1, 2])
    with pytest.raises(DataError, match="text in some batches and numbers in others"):
        found.partial_fit(X[:2], ["a", "b"])
    with pytest.raises(DataError, match="numbers in some batches and dates in others"):
        found.partial_fit(X[:2], np.array(["2020-01-01", "2021-01-01"], "M8[D]"))
    with pytest.raises(DataError, match="is not among classes="):
        found.partial_fit(X[:2], np.array(["2020-01-01", "2021-01-01"], "M8[D]"), classes=[0, 1, 2])


def test_a_new_class_among_batches_joins_in():
    X, y = grouped(90, 4, 3)
    found = LDA().partial_fit(X[y != 1], y[y != 1])
    assert found.predict_proba(X).shape == (90, 2)
    found.partial_fit(X[y == 1], y[y == 1])
    assert np.allclose(found.predict_proba(X), LDA().fit(X, y).predict_proba(X), atol=RTOL)


def test_a_refused_batch_changes_nothing():
    X, y = grouped(90, 4, 3)
    found = LDA().partial_fit(X[:50], y[:50])
    before = found.predict_proba(X)
    found.set_params(priors=[0.5, 0.5, 0.5])
    with pytest.raises(ParameterError, match="the sum 1"):
        found.partial_fit(X[50:], y[50:])
    assert np.array_equal(found.predict_proba(X), before)
    found.set_params(priors=None).partial_fit(X[50:], y[50:])
    assert found.n_samples_seen_ == 90
    assert np.allclose(found.predict_proba(X), LDA().fit(X, y).predict_proba(X), atol=RTOL)


def test_what_batches_cannot_do_is_said():
    X, y = grouped(60, 4, 3)
    with pytest.raises(ParameterError, match="shrinkage='auto' needs all rows at once"):
        LDA(shrinkage="auto").partial_fit(X, y)
    with pytest.raises(DataError, match="requires y to be passed"):
        LDA().partial_fit(X)
    with pytest.warns(UserWarning, match="partial_fit starts anew"):
        LDA().fit(X, y).partial_fit(X, y)
    X[3, 1] = np.nan
    with pytest.raises(DataError, match="contains NaN: column 1, first in row 3"):
        LDA().partial_fit(X, y)


# --- labels, errors, files ----------------------------------------------------------------------


@each(
    "names",
    [
        ["x", "y", "z"],
        np.array(["long name", "n", "ü"]),
        np.array(["b", "a", "c"], dtype=object),
        [3, -1, 200],
        [True, False, True],
        [1.0, 2.0, -3.0],
        pd.Categorical(["u", "v", "w"]),
        np.array([1, 2, 3], dtype=object),
    ],
    ids=["list", "text", "objects", "integers", "booleans", "floats", "categories", "boxed"],
)
def test_labels_of_any_kind_survive_a_model_file(names, tmp_path):
    X, y = grouped(60, 4, 3)
    labels = np.asarray(names)[y]
    found = LDA().fit(X, pd.Series(names).iloc[y] if isinstance(names, pd.Categorical) else labels)
    found.save(tmp_path / "m.lowland")
    loaded = lowland.load(tmp_path / "m.lowland")
    assert list(found.classes_) == sorted(set(labels.tolist()))
    assert loaded.classes_.dtype == found.classes_.dtype
    assert np.array_equal(loaded.predict(X), found.predict(X))
    assert set(found.predict(X)) <= set(labels.tolist())
    assert np.array_equal(loaded.predict_proba(X), found.predict_proba(X))


@each(
    ("y", "message"),
    [
        (None, "LDA requires y to be passed, but the target y is None; .* fit"),
        ([1] * 20, "needs at least two classes, but y has only one class, .*1"),
        ([0, 1] * 9, "X has 20 rows, y has 18 labels"),
        ([0.5, 1.25] * 10, "Unknown label type: continuous. y holds .*0.5.* in row 0"),
        ([0, np.nan] * 10, "Input y contains NaN in row 1"),
        ([0, np.inf] * 10, "Input y contains infinity in row 1"),
        (["a", None] * 10, "Input y contains NaN: None in row 1"),
        (np.array(["a", 1] * 10, dtype=object), r"mixes labels .*\(int, str\)"),
        (np.zeros((20, 3)), r"y should be a 1d array, got an array of shape \(20, 3\)"),
        (np.arange(20), "more rows than classes, not 20 rows of 20 classes"),
        ([1j, 2] * 10, "Unknown label type: complex"),
        (scipy.sparse.csr_matrix(np.ones((20, 1))), "y is sparse"),
        (pd.array([1, None] * 10, dtype="Int64"), "contains NaN in row 1"),
        (pd.array(["a", None] * 10, dtype="string"), "contains NaN: <NA> in row 1"),
    ],
)
def test_invalid_labels_are_refused(y, message):
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(DataError, match=message):
        LDA().fit(X, y)


def test_a_column_of_labels_is_taken_with_a_warning():
    X, y = grouped(60, 4, 3)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        found = LDA().fit(X, y[:, None])
    assert np.array_equal(found.components_, LDA().fit(X, y).components_)


@each(
    ("params", "message"),
    [
        ({"n_components": 3}, "n_components=3 is more than 2, one less than the 3 classes"),
        ({"priors": [0.5, 0.5]}, r"are 2 numbers with the sum 1; give 3"),
        ({"priors": [0.5, 0.5, 0.5]}, r"are 3 numbers with the sum 1.5; .* the sum 1"),
        ({"priors": [0.0, 0.5, 0.5]}, "priors=.* is not allowed"),
        ({"shrinkage": 1.5}, "shrinkage=1.5 is not allowed; expected None, 'auto' or a number in"),
        ({"rule": "nearest"}, "rule='nearest' is not allowed"),
    ],
)
def test_parameters_out_of_place_are_refused(params, message):
    X, y = grouped(60, 4, 3)
    with pytest.raises(ParameterError, match=message):
        LDA(**params).fit(X, y)


@pytest.mark.parametrize("shape", [(2000, 250), (40, 20_000)])
def test_no_byte_of_a_large_model_depends_on_threads(shape):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal(shape), np.arange(shape[0]) % 5
    for params in ({}, {"shrinkage": "auto"}):
        one, two = (LDA(n_jobs=jobs, **params).fit(X, y) for jobs in (1, 2))
        for name in ("components_", "coef_", "intercept_", "eigenvalues_", "means_", "mean_"):
            assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name
        assert one.predict_proba(X).tobytes() == two.predict_proba(X).tobytes()


def test_parameters_are_checked_before_a_batch():
    X, y = grouped(90, 4, 3)
    with pytest.raises(ParameterError, match="shrinkage=array of shape"):
        LDA(shrinkage=np.array([0.1, 0.2])).partial_fit(X, y)
