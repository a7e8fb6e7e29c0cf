"""PCA against its definition, closed forms, and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse
from sklearn import decomposition
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import lowland
from lowland import PCA
from lowland.errors import DataError, ParameterError
from support.cases import each
from support.data import stored

Peer = decomposition.PCA

SOLVERS = ["auto", "covariance", "gram", "randomized"]
EXACT = ["covariance", "gram"]

# Two exact algorithms on well-posed data; the iterated one stops at a residual of 1e-8.
RTOL = 1e-6
# float32: products of 256 terms are summed in float32 (1e-6), and axes divide that by the gaps.
RTOL32 = 1e-4


def turned(axes):
    """Rows with their largest entry positive: the sign rule, written out."""
    largest = np.abs(axes).argmax(axis=1)
    return axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]


def from_definition(X, k, scale=False):
    """Eigenvectors of numpy's covariance (or correlation) matrix."""
    matrix = np.corrcoef(X, rowvar=False) if scale else np.cov(X, rowvar=False)
    values, vectors = np.linalg.eigh(np.atleast_2d(matrix))
    return turned(vectors[:, ::-1].T[:k]), values[::-1][:k]


def with_covariance(sigma, n=50, mean=0.0, seed=0):
    """n rows whose covariance (n - 1) is exactly sigma, up to rounding."""
    noise = np.random.default_rng(seed).gamma(1.0, size=(n, len(sigma)))
    noise -= noise.mean(axis=0)
    white = np.linalg.solve(np.linalg.cholesky(np.cov(noise, rowvar=False)), noise.T).T
    return white @ np.linalg.cholesky(np.asarray(sigma)).T + mean


# --- (a) the definition -------------------------------------------------------------------------


@each("solver", SOLVERS)
@each("shape", [(120, 14), (14, 40), (30, 30)])
@each("scale", [False, True])
def test_axes_and_variances_are_those_of_the_covariance_matrix(irregular, solver, shape, scale):
    X = irregular(*shape)
    found = PCA(5, solver=solver, scale=scale, random_state=0).fit(X)
    axes, variances = from_definition(X, 5, scale)
    total = X.shape[1] if scale else X.var(axis=0, ddof=1).sum()
    assert np.allclose(found.components_, axes, atol=RTOL)
    assert np.allclose(found.explained_variance_, variances, rtol=RTOL)
    assert np.allclose(found.explained_variance_ratio_, variances / total, rtol=RTOL)
    assert np.allclose(found.singular_values_**2, variances * (len(X) - 1), rtol=RTOL)
    assert np.allclose(found.mean_, X.mean(axis=0), rtol=1e-10)
    left_over = min(shape) - 5
    assert found.noise_variance_ == pytest.approx((total - variances.sum()) / left_over, rel=RTOL)
    assert (found.n_components_, found.n_samples_seen_) == (5, len(X))


@pytest.mark.parametrize("scale", [False, True])
def test_whitened_scores_have_the_identity_as_covariance(irregular, scale):
    X = irregular(90, 8)
    for k in (3, 8):
        Y = PCA(k, whiten=True, scale=scale).fit_transform(X)
        assert np.allclose(np.cov(Y, rowvar=False), np.eye(k), atol=1e-10)
        assert np.allclose(Y.mean(axis=0), 0, atol=1e-10)


@each("whiten", [False, True])
@each("scale", [False, True])
@each("shape", [(40, 9), (9, 30)])
def test_all_components_give_the_data_back(irregular, whiten, scale, shape):
    X = irregular(*shape)
    found = PCA(whiten=whiten, scale=scale).fit(X)
    back = found.inverse_transform(found.transform(X))
    assert np.allclose(back, X, atol=1e-7)  # whitening multiplies and divides by tiny deviations


# --- (b) closed forms ---------------------------------------------------------------------------


@each("solver", SOLVERS)
def test_iris_has_its_known_spectrum(solver):
    found = PCA(solver=solver, random_state=0).fit(load_iris().data)
    assert np.allclose(found.explained_variance_ratio_[:2], [0.92461872, 0.05306648], atol=5e-9)
    known = [4.22824171, 0.24267075, 0.0782095, 0.02383509]
    assert np.allclose(found.explained_variance_, known, atol=5e-9)


@each("solver", SOLVERS)
def test_the_textbook_covariance_has_its_textbook_axes(solver):
    X = with_covariance([[2, 0.8], [0.8, 0.6]], mean=[5, -3])
    found = PCA(solver=solver, random_state=0).fit(X)
    root = np.sqrt(0.7**2 + 0.8**2)  # trace 2.6, determinant 0.56
    exact = np.array([1.3 + root, 1.3 - root])
    assert np.allclose(found.explained_variance_, exact, rtol=1e-10)
    assert np.allclose(exact, [2.36, 0.24], atol=0.005)
    first = np.array([exact[0] - 0.6, 0.8])
    first /= np.linalg.norm(first)
    assert np.allclose(found.components_, [first, [-first[1], first[0]]], atol=1e-10)
    assert np.allclose(found.components_, [[0.91, 0.41], [-0.41, 0.91]], atol=0.005)


def test_ninety_five_per_cent_of_mnist_are_154_components():
    X = stored("mnist")["X"][:60_000].reshape(60_000, -1).astype(np.float32)
    found = PCA(0.95).fit(X)
    assert found.n_components_ == 154
    assert found.explained_variance_ratio_.sum() >= 0.95
    assert found.explained_variance_ratio_[:-1].sum() < 0.95


@each("solver", SOLVERS)
@each("scale", [False, True])
def test_the_reconstruction_error_is_the_sum_of_the_discarded_variances(irregular, solver, scale):
    X = irregular(80, 10)
    _, variances = from_definition(X, 10, scale)
    found = PCA(4, solver=solver, scale=scale, random_state=0).fit(X)
    error = found.reconstruction_error(X)
    assert error.shape == (80,)
    assert error.sum() == pytest.approx(79 * variances[4:].sum(), rel=1e-8)
    if not scale:
        rebuilt = found.inverse_transform(found.transform(X))
        assert np.allclose(error, ((X - rebuilt) ** 2).sum(axis=1), rtol=1e-6, atol=1e-10)


# --- (c) scikit-learn ---------------------------------------------------------------------------


def assert_like_peer(found, peer, X, rtol=RTOL, axes_atol=None):
    """All attributes relative to the largest of their kind; scores up to the sign of each axis."""
    assert found.n_components_ == peer.n_components_
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        mine, theirs = getattr(found, name), getattr(peer, name)
        assert mine.shape == theirs.shape
        assert np.allclose(mine, theirs, rtol=rtol, atol=1e-7 * theirs[0]), name
    scale = peer.explained_variance_[0]
    assert found.noise_variance_ == pytest.approx(peer.noise_variance_, rel=rtol, abs=1e-12 * scale)
    assert np.allclose(found.mean_, peer.mean_, rtol=rtol, atol=rtol)
    certain = peer.explained_variance_ > 1e-10 * scale  # an axis without variance may be any
    signs = np.sign((found.components_ * peer.components_).sum(axis=1))[:, None]
    axes_atol = axes_atol or rtol
    axes = found.components_ * signs
    assert np.allclose(axes[certain], peer.components_[certain], atol=axes_atol)
    Y, Z = found.transform(X), peer.transform(X)
    largest = np.abs(Z).max()
    assert np.allclose((Y * signs.T)[:, certain], Z[:, certain], atol=10 * axes_atol * largest)


TABLES = {
    "tall": lambda make: make(200, 12),
    "wide": lambda make: make(20, 60),
    "square": lambda make: make(25, 25),
    "wine": lambda make: load_wine().data,
    "breast cancer": lambda make: load_breast_cancer().data,
}


@each("solver", SOLVERS)
@each("table", TABLES)
@each("whiten", [False, True])
def test_a_number_of_components_gives_what_scikit_learn_gives(irregular, solver, table, whiten):
    X = TABLES[table](irregular)
    found = PCA(4, solver=solver, whiten=whiten, random_state=0).fit(X)
    peer = Peer(4, svd_solver="full", whiten=whiten).fit(X)
    # The iteration stops when residuals are 1e-8 of the largest variance; the fourth of the breast
    # cancer data is 1e-4 of it, which leaves its axis, not its variance, four digits less.
    assert_like_peer(found, peer, X, axes_atol=1e-5 if solver == "randomized" else None)


@each("solver", ["auto", *EXACT])
@each("table", TABLES)
@each("kept", [None, 0.5, 0.99])
def test_all_components_and_shares_are_those_of_scikit_learn(irregular, solver, table, kept):
    X = TABLES[table](irregular)
    found = PCA(kept, solver=solver).fit(X)
    assert_like_peer(found, Peer(kept, svd_solver="full").fit(X), X)


@each("solver", ["auto", *EXACT])
@each("table", ["tall", "wine", "breast cancer"])
def test_the_evidence_rule_gives_what_scikit_learn_gives(irregular, solver, table):
    X = TABLES[table](irregular)
    assert_like_peer(PCA("mle", solver=solver).fit(X), Peer("mle", svd_solver="full").fit(X), X)


@each("solver", SOLVERS)
@each("table", ["tall", "wide"])
def test_single_precision_gives_what_double_gives_to_single_precision(irregular, solver, table):
    X = TABLES[table](irregular).astype(np.float32)
    found = PCA(4, solver=solver, random_state=0).fit(X)
    assert_like_peer(found, Peer(4, svd_solver="full").fit(X.astype(float)), X, rtol=RTOL32)
    assert found.inverse_transform(found.transform(X)).dtype == np.float32


def sparse_table(irregular, n, p, seed=0):
    """About six in ten values are zero, in every column."""
    X = irregular(n, p, seed)
    return np.maximum(X - np.quantile(X, 0.6, axis=0), 0.0)


@each("solver", SOLVERS)
@each("scale", [False, True])
@each("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array])
@each("shape", [(60, 12), (20, 150)])
def test_sparse_and_dense_data_give_the_same_model(irregular, solver, scale, kind, shape):
    X = sparse_table(irregular, *shape)
    dense = PCA(3, scale=scale).fit(X)
    sparse = PCA(3, solver=solver, scale=scale, random_state=0).fit(kind(X))
    assert np.allclose(sparse.components_, dense.components_, atol=RTOL)
    assert np.allclose(sparse.explained_variance_, dense.explained_variance_, rtol=RTOL)
    assert np.allclose(sparse.transform(kind(X)), dense.transform(X), atol=1e-5)
    assert np.allclose(sparse.transform(X), sparse.transform(kind(X)), atol=1e-10)


def test_sparse_entries_stored_twice_count_as_their_sum():
    data, columns, starts = [1.0, 2.0, 3.0, 4.0, 5.0], [0, 0, 1, 2, 1], [0, 2, 4, 5]
    X = scipy.sparse.csr_array((data, columns, starts), shape=(3, 3))
    expected = PCA(2).fit(X.toarray())
    for solver in ("covariance", "randomized"):
        found = PCA(2, solver=solver, random_state=0).fit(X)
        assert np.allclose(
            found.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=RTOL
        )


# --- batches ------------------------------------------------------------------------------------


def in_batches(model, X, cuts):
    for start, stop in zip([0, *cuts], [*cuts, X.shape[0]], strict=True):
        model.partial_fit(X[start:stop])
    return model


@each("kind", [np.asarray, scipy.sparse.csr_array])
@each("scale", [False, True])
@each("cuts", [[1, 2, 3], [10, 11, 300]])
@each("n_components", [None, 4, 0.9, "mle"])
def test_ragged_batches_give_the_model_of_one_fit(irregular, kind, scale, cuts, n_components):
    if n_components == "mle":
        cuts = [cut for cut in cuts if cut > 12]
    X = sparse_table(irregular, 400, 12)
    X[200:] += 3 * (X[200:] > 0)  # batches that differ in their means
    whole = PCA(n_components, solver="covariance", scale=scale).fit(kind(X))
    parts = in_batches(PCA(n_components, scale=scale), kind(X), cuts)
    assert parts.n_samples_seen_ == 400
    assert parts.n_components_ == whole.n_components_
    for name in ("components_", "mean_", "explained_variance_", "singular_values_"):
        # the documented tolerance is 1e-5; both are exact up to rounding
        assert np.allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9, atol=1e-9), name
    assert parts.noise_variance_ == pytest.approx(whole.noise_variance_, rel=1e-8, abs=1e-12)
    assert np.allclose(parts.transform(kind(X)), whole.transform(kind(X)), atol=1e-8)


def test_batches_of_single_precision_agree_to_one_part_in_100_000(irregular):
    X = (irregular(3000, 10) + 100).astype(np.float32)
    whole, parts = PCA(3).fit(X), in_batches(PCA(3), X, [7, 1000, 1003])
    assert np.allclose(parts.explained_variance_, whole.explained_variance_, rtol=1e-5)
    assert np.allclose(parts.components_, whole.components_, atol=1e-5)


def test_batches_may_change_between_sparse_and_dense(irregular):
    X = sparse_table(irregular, 100, 6)
    mixed = PCA(2).partial_fit(X[:40]).partial_fit(scipy.sparse.csr_array(X[40:]))
    assert np.allclose(mixed.components_, PCA(2).fit(X).components_, atol=1e-9)


def test_a_model_with_too_few_rows_waits_for_more(irregular):
    X = irregular(30, 8)
    model = PCA(5).partial_fit(X[:3])
    with pytest.raises(ValueError, match="not fitted"):
        model.transform(X)
    assert model.n_samples_seen_ == 3
    model.partial_fit(X[3:5])
    assert model.transform(X).shape == (30, 5)
    model.partial_fit(X[5:])
    assert np.allclose(model.components_, PCA(5).fit(X).components_, atol=1e-9)


def test_a_rule_that_needs_more_rows_waits_for_more(irregular):
    X = irregular(100, 8)
    model = in_batches(PCA("mle"), X, [3, 8])
    assert model.n_components_ == PCA("mle").fit(X).n_components_


@each("solver", SOLVERS)
def test_a_batch_after_a_whole_fit_begins_anew_and_says_so(irregular, solver):
    X, batch = irregular(30, 4), irregular(20, 4, seed=1)
    model = PCA(2, solver=solver, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="starts anew.*give all rows to partial_fit"):
        model.partial_fit(batch)
    assert model.n_samples_seen_ == 20
    assert np.allclose(model.components_, PCA(2).fit(batch).components_, atol=1e-9)


def test_a_whole_fit_after_batches_forgets_them(irregular):
    X, other = irregular(30, 4), irregular(50, 6, seed=1)
    model = PCA(2).partial_fit(X).fit(other)
    assert np.array_equal(model.components_, PCA(2).fit(other).components_)
    assert model.n_samples_seen_ == 50


def test_a_batch_with_other_columns_is_refused_and_changes_nothing(irregular):
    X = irregular(30, 4)
    model = PCA(2).partial_fit(X)
    with pytest.raises(DataError, match="expecting 4 features"):
        model.partial_fit(irregular(30, 5))
    model.partial_fit(X)
    assert model.n_samples_seen_ == 60


def test_a_refused_batch_is_not_counted(irregular):
    X = irregular(30, 4)
    model = PCA(2).partial_fit(X[:20])
    model.set_params(n_components=5)
    with pytest.raises(ParameterError, match="ask for at most 4"):
        model.partial_fit(X[20:])
    model.set_params(n_components=2).partial_fit(X[20:])
    assert model.n_samples_seen_ == 30
    assert np.allclose(model.components_, PCA(2).fit(X).components_, atol=1e-9)


def test_a_model_that_needs_more_rows_than_before_is_not_used(irregular):
    X = irregular(30, 9)
    model = PCA(2).partial_fit(X[:3])
    model.set_params(n_components=6).partial_fit(X[3:5])
    with pytest.raises(ValueError, match="not fitted"):
        model.transform(X)
    model.partial_fit(X[5:])
    assert np.allclose(model.explained_variance_, PCA(6).fit(X).explained_variance_, rtol=1e-9)


def test_batches_do_not_change_arrays_handed_out_before(irregular):
    X = irregular(60, 5)
    model = PCA(2).partial_fit(X[:30])
    scatter, mean = model.scatter_, model.mean_
    copies = scatter.copy(), mean.copy()
    model.partial_fit(X[30:])
    assert np.array_equal(scatter, copies[0])
    assert np.array_equal(mean, copies[1])


def test_a_saved_model_goes_on_with_batches_where_it_stopped(irregular, tmp_path):
    X = irregular(100, 7)
    PCA(3, scale=True).partial_fit(X[:40]).save(tmp_path / "half.lowland")
    loaded = lowland.load(tmp_path / "half.lowland").partial_fit(X[40:])
    straight = in_batches(PCA(3, scale=True), X, [40])
    assert loaded.n_samples_seen_ == 100
    for name in ("components_", "explained_variance_", "mean_", "scale_"):
        assert np.array_equal(getattr(loaded, name), getattr(straight, name)), name


# --- unusual data -------------------------------------------------------------------------------


@each("solver", SOLVERS)
@each("scale", [False, True])
@each("value", [0.0, 7.0, 0.1])
def test_constant_columns_change_nothing(irregular, solver, scale, value):
    X = irregular(1100, 6)
    padded = np.insert(X, [0, 3, 6], value, axis=1)
    plain = PCA(4, scale=scale).fit(X)
    found = PCA(4, solver=solver, scale=scale, random_state=0).fit(padded)
    kept = [1, 2, 3, 5, 6, 7]
    assert np.allclose(found.explained_variance_, plain.explained_variance_, rtol=RTOL)
    assert np.allclose(found.components_[:, kept], plain.components_, atol=RTOL)
    assert np.allclose(np.delete(found.components_, kept, axis=1), 0, atol=RTOL)
    assert np.allclose(found.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=RTOL)
    assert np.allclose(found.transform(padded), plain.transform(X), atol=1e-5)


@each("solver", ["covariance", "randomized"])
@each("scale", [False, True])
def test_constant_columns_of_sparse_data_change_nothing(irregular, solver, scale):
    X = sparse_table(irregular, 1100, 6)
    padded = np.insert(X, [0, 3], [0.0, 0.1], axis=1)
    plain = PCA(4, scale=scale).fit(X)
    given = scipy.sparse.csr_array(padded)
    found = PCA(4, solver=solver, scale=scale, random_state=0).fit(given)
    assert np.allclose(found.explained_variance_, plain.explained_variance_, rtol=RTOL)
    assert np.allclose(found.transform(given), plain.transform(X), atol=1e-5)


@each("solver", SOLVERS)
@each("settings", [{}, {"whiten": True}, {"scale": True, "whiten": True}])
@each("value", [0.0, 0.1])
def test_rows_that_are_all_equal_are_all_placed_at_the_origin(solver, settings, value):
    X = np.full((9, 4), value)
    found = PCA(3, solver=solver, random_state=0, **settings).fit(X)
    assert np.allclose(found.transform(X), 0, atol=1e-12)
    assert np.allclose(found.explained_variance_, 0, atol=1e-25)
    assert np.isfinite(found.explained_variance_ratio_).all()
    k = found.n_components_
    assert np.allclose(found.components_ @ found.components_.T, np.eye(k), atol=1e-8)
    scores = found.outlier_scores(X)
    assert np.allclose(scores.residual, 0, atol=1e-20)
    assert np.isfinite(scores.t2).all()
    assert np.allclose(found.inverse_transform(found.transform(X)), X, atol=1e-12)


@each("rule", [0.9, "mle", "parallel", "optimal"])
def test_rules_keep_one_axis_of_rows_that_are_all_equal(rule):
    assert PCA(rule, random_state=0).fit(np.full((9, 4), 0.1)).n_components_ == 1


@each("solver", SOLVERS)
def test_two_rows_have_one_axis_between_them(solver):
    X = np.array([[1.0, 2.0, 3.0], [3.0, -1.0, 9.0]])
    found = PCA(1, solver=solver, random_state=0).fit(X)
    assert np.allclose(found.components_, [np.array([2, -3, 6]) / 7])
    assert found.explained_variance_ == pytest.approx(24.5)
    assert found.explained_variance_ratio_ == pytest.approx(1.0)
    assert np.allclose(found.transform(X), [[-3.5], [3.5]])
    both = PCA(solver=solver, random_state=0).fit(X)
    assert both.n_components_ == 2
    assert np.allclose(both.explained_variance_, [24.5, 0], atol=1e-10)
    assert np.allclose(both.components_ @ both.components_.T, np.eye(2), atol=1e-8)


@each("solver", SOLVERS)
@each("kind", [np.asarray, scipy.sparse.csr_array])
def test_one_column_is_centered_and_no_more(solver, kind):
    X = np.array([[1.0], [4.0], [0.0], [7.0]])
    found = PCA(solver=solver, random_state=0).fit(kind(X))
    assert np.array_equal(found.components_, [[1.0]])
    assert found.explained_variance_ == pytest.approx(10.0)
    assert np.allclose(found.transform(kind(X)), X - 3)


@each("solver", SOLVERS)
def test_a_far_away_center_does_not_matter(irregular, solver):
    X = irregular(200, 6)
    found = PCA(3, solver=solver, random_state=0).fit(X + 1e6)
    assert np.allclose(found.components_, from_definition(X, 3)[0], atol=RTOL)
    assert np.allclose(found.explained_variance_, from_definition(X, 3)[1], rtol=RTOL)


# --- what is refused ----------------------------------------------------------------------------


@each("rule", [0.9, "mle", "parallel", "optimal"])
@each("kind", [np.asarray, scipy.sparse.csr_array])
def test_rules_with_the_randomized_solver_are_refused_by_name(irregular, rule, kind):
    with pytest.raises(ParameterError, match=f"n_components={rule!r}.*solver='randomized'"):
        PCA(rule, solver="randomized").fit(kind(irregular(50, 6)))


@each("wrong", [0, -1, 0.0, 1.0, 1.5, "all", True, [2]])
def test_other_numbers_of_components_are_refused_by_name(irregular, wrong):
    with pytest.raises(ParameterError, match="n_components"):
        PCA(wrong).fit(irregular(20, 4))


def test_the_evidence_rule_wants_more_rows_than_columns(irregular):
    with pytest.raises(ParameterError, match="'mle' needs more rows than columns"):
        PCA("mle").fit(irregular(5, 5))


def test_numbers_of_numpy_are_numbers_of_components(irregular):
    X = irregular(50, 6)
    for solver in SOLVERS:
        assert PCA(np.int64(2), solver=solver, random_state=0).fit(X).n_components_ == 2
    for share in (np.float32(0.9), np.float64(0.9)):
        assert PCA(share).fit(X).n_components_ == PCA(0.9).fit(X).n_components_
    waiting = PCA(np.int64(4)).partial_fit(X[:3])
    assert waiting.partial_fit(X[3:]).n_components_ == 4


# --- rules --------------------------------------------------------------------------------------


def planted(n, p, factors, seed=0):
    rng = np.random.default_rng(seed)
    loadings = rng.choice([-1.0, 1.0], (factors, p)) / np.sqrt(p)
    scores = 8 * rng.standard_normal((n, factors)) * np.linspace(1, 1.5, factors)
    return scores @ loadings + rng.standard_normal((n, p)) + 5


@each("rule", ["parallel", "optimal"])
@each("shape", [(300, 40), (60, 100)])
@each("solver", ["auto", *EXACT])
def test_rules_find_the_planted_number_of_factors(rule, shape, solver):
    for factors in (1, 3):
        X = planted(*shape, factors)
        assert PCA(rule, solver=solver, random_state=0).fit(X).n_components_ == factors


def test_parallel_analysis_of_scaled_columns_looks_at_correlations():
    X = planted(300, 20, 2)
    scaled = X * np.geomspace(1e-3, 1e3, 20)
    assert PCA("parallel", scale=True, random_state=0).fit(scaled).n_components_ == 2


def test_a_share_counts_of_the_total_variance_even_when_rows_are_few(irregular):
    X = irregular(8, 50)
    ratios = np.cumsum(PCA().fit(X).explained_variance_ratio_)
    assert ratios[-1] == pytest.approx(1.0)
    for share in (0.2, 0.5, 0.9):
        assert PCA(share).fit(X).n_components_ == 1 + np.searchsorted(ratios, share)


# --- outliers -----------------------------------------------------------------------------------


@each("kind", [np.asarray, scipy.sparse.csr_array])
@each("settings", [{}, {"scale": True}, {"scale": True, "whiten": True}])
def test_outlier_scores_are_those_of_the_definition(irregular, kind, settings):
    X, new = sparse_table(irregular, 80, 7), sparse_table(irregular, 9, 7, seed=1)
    found = PCA(3, **settings).fit(X)
    scale = settings.get("scale", False)
    axes, variances = from_definition(X, 3, scale)
    centered = (new - X.mean(axis=0)) / (X.std(axis=0, ddof=1) if scale else 1.0)
    t2, residual = found.outlier_scores(kind(new))
    for i, row in enumerate(centered):
        scores = axes @ row
        assert t2[i] == pytest.approx(sum(scores**2 / variances), rel=1e-8)
        assert residual[i] == pytest.approx(sum((row - axes.T @ scores) ** 2), rel=1e-8)
    assert np.array_equal(found.reconstruction_error(kind(new)), residual)


def test_scores_of_a_row_hardly_depend_on_the_batch_even_across_blocks(irregular):
    # 2^21 values per block: 5000 columns make blocks of 419 rows.
    X = np.tile(irregular(500, 50), (1, 100))
    found = PCA(3, solver="randomized", random_state=0).fit(X)
    t2, residual = found.outlier_scores(X)
    for i in (0, 418, 419, 499):
        alone = found.outlier_scores(X[i : i + 1])
        assert alone.t2[0] == pytest.approx(t2[i], rel=1e-10)
        assert alone.residual[0] == pytest.approx(residual[i], rel=1e-10)


# --- promises -----------------------------------------------------------------------------------


@each(
    ("solver", "shape", "k"),
    [
        ("covariance", (2500, 120), 20),
        ("covariance", (400, 450), 400),
        ("gram", (900, 120), 20),
        ("gram", (150, 2500), 150),  # large enough for LAPACK to use its threads, if it may
        ("randomized", (1500, 400), 9),
        ("randomized", (150, 2500), 9),
    ],
)
@each("dtype", [np.float32, np.float64])
@each("kind", [np.asarray, scipy.sparse.csr_array])
def test_the_number_of_threads_changes_no_byte(solver, kind, dtype, shape, k):
    rng = np.random.default_rng(0)
    scores = rng.gamma(2.0, size=(shape[0], 12)) * np.geomspace(30, 3, 12)
    X = scores @ rng.standard_normal((12, shape[1])) + rng.standard_normal(shape)
    X[X < 1] = 0
    X = kind(X.astype(dtype))
    if solver == "gram" and kind is not np.asarray:
        k = 9  # sparse data take the iteration instead
    one, two = (
        PCA(k, solver=solver, whiten=True, n_jobs=jobs, random_state=0).fit(X) for jobs in (1, 2)
    )
    for name in ("mean_", "components_", "explained_variance_", "explained_variance_ratio_"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert one.noise_variance_ == two.noise_variance_
    Y = one.transform(X)
    assert np.array_equal(Y, two.transform(X))
    assert np.array_equal(one.inverse_transform(Y), two.inverse_transform(Y))
    assert np.array_equal(one.outlier_scores(X), two.outlier_scores(X))


@each("kind", [np.asarray, np.asfortranarray, scipy.sparse.csr_array])
@each("dtype", [np.float32, np.float64])
@each("settings", [{}, {"scale": True, "whiten": True}])
def test_row_by_row_and_all_at_once_are_the_same_bytes(irregular, kind, dtype, settings):
    X = sparse_table(irregular, 70, 30).astype(dtype)
    found = PCA(7, **settings).fit(kind(X))
    together = found.transform(kind(X))
    alone = np.vstack([found.transform(kind(X[i : i + 1])) for i in range(70)])
    assert np.array_equal(together, alone)
    if kind is np.asarray:
        back = found.inverse_transform(together)
        rows = [found.inverse_transform(together[i : i + 1]) for i in range(70)]
        assert np.array_equal(back, np.vstack(rows))


@each("solver", SOLVERS)
@each("kind", [np.array, np.asfortranarray, scipy.sparse.csr_array])
def test_nothing_writes_to_the_data(irregular, solver, kind):
    table = sparse_table(irregular, 50, 8)
    X = kind(table)
    parts = [X.data, X.indices, X.indptr] if scipy.sparse.issparse(X) else [X]
    for part in parts:
        part.flags.writeable = False
    found = PCA(3, solver=solver, scale=True, whiten=True, random_state=0).fit(X)
    Y = found.transform(X)
    Y.flags.writeable = False
    found.inverse_transform(Y)
    found.outlier_scores(X)
    PCA(2).partial_fit(X).partial_fit(X)
    assert np.array_equal(X.toarray() if scipy.sparse.issparse(X) else X, table)
