"""Linear methods on tables in chunks: solvers, rules for the number of axes, classes, batches."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse

from lowland import LDA, MRMR, PCA, PPCA, CorrelationScore
from lowland._engines.linalg.class_moments import labeled_columns, merge_labeled
from lowland._engines.linalg.moments import column_sums, merge_columns, no_columns
from lowland.errors import DataError, MemoryLimitError, ParameterError
from support.cases import each
from support.rows import Passes, labeled_rows
from support.states import assert_same_state, fitted_state

N, P = 240, 12


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    spread = np.linspace(6, 1, P)
    return rng.standard_normal((N, P)) * spread @ np.linalg.qr(rng.standard_normal((P, P)))[0] + 7


def assert_close(there, here, names, tol=1e-8):
    for name in names:
        expected = np.asarray(getattr(there, name))
        np.testing.assert_allclose(
            getattr(here, name), expected, atol=tol * np.abs(expected).max(), err_msg=name
        )


AXES = ("components_", "mean_", "explained_variance_", "explained_variance_ratio_")


@each("n_components", [None, 3, 0.8, "mle", "parallel", "optimal"])
@each("choice", [{}, {"scale": True}, {"whiten": True}, {"solver": "covariance"}])
def test_every_rule_for_the_number_of_axes(X, n_components, choice):
    there = PCA(n_components, random_state=0, **choice).fit(X)
    here = PCA(n_components, random_state=0, **choice).fit(labeled_rows(X))
    assert there.n_components_ == here.n_components_
    assert_close(there, here, (*AXES, "singular_values_"))
    np.testing.assert_allclose(here.noise_variance_, there.noise_variance_, atol=1e-9)
    np.testing.assert_allclose(here.transform(X), there.transform(X), atol=1e-7)


@each("scale", [False, True])
@each("kind", ["dense", "sparse", "single", "huge"])
def test_krylov_finds_the_axes_of_the_covariance(X, scale, kind, monkeypatch):
    Xs = {"huge": X.astype(np.float32) * np.float32(1e25), "single": X.astype(np.float32)}.get(
        kind, X
    )
    tol = 1e-4 if Xs.dtype == np.float32 else 1e-7  # ten times the residual that is asked for
    rows = scipy.sparse.csr_matrix(Xs) if kind == "sparse" else Xs
    passes = Passes(monkeypatch)
    there = PCA(3, scale=scale, solver="covariance").fit(Xs)
    here = PCA(3, scale=scale, solver="randomized", random_state=0).fit(labeled_rows(rows))
    assert passes.count > 1
    assert_close(there, here, AXES, tol)


def test_more_than_3000_columns_take_krylov(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 4)) * [9, 7, 5, 3] @ rng.standard_normal((4, 3001)) + rng.random(
        3001
    )
    passes = Passes(monkeypatch)
    there, here = PCA(3).fit(X), PCA(3, random_state=0).fit(labeled_rows(X, task_rows=40))
    assert 2 <= passes.count <= 8
    assert_close(there, here, AXES, 1e-7)
    there, here = PPCA(3).fit(X), PPCA(3).fit(labeled_rows(X, task_rows=40))
    assert_close(there, here, ("components_", "explained_variance_"), 1e-7)


@each(
    "choice, words",
    [
        ({"solver": "gram"}, r"solver='gram' needs all rows.*rows\.sample"),
        ({"solver": "randomized"}, r"n_components=None needs the whole spectrum"),
        ({"solver": "randomized", "n_components": 0.9}, r"use solver='covariance'"),
        ({"n_components": 13}, "n_components=13 is more than .*ask for at most 12"),
        ({"n_components": 10**12}, r"n_components=1000000000000 is more"),
    ],
)
def test_what_leaves_cannot_have_is_refused(X, choice, words):
    with pytest.raises(ParameterError, match=words):
        PCA(**choice).fit(labeled_rows(X))


def test_a_covariance_beyond_memory_is_refused_before_a_row_is_read(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100MB")
    rows = labeled_rows(np.broadcast_to(np.float64(1.0), (5, 20_000)))
    rows = rows.map(_unread)
    with pytest.raises(MemoryLimitError, match="solver='randomized'"):
        PCA(solver="covariance").fit(rows)
    with pytest.raises(MemoryLimitError, match="LDA"):
        LDA().fit(labeled_rows(np.ones((5, 20_000)), list("aabbb")).map(_unread), "kind")


def _unread(X):
    raise AssertionError("a row was read")


@each("shrinkage", [None, 0.3, "auto"])
@each("kind", [str, int, bool])
@each("dtype", [np.float64, np.float32])
def test_lda_of_chunks_without_some_classes(X, shrinkage, kind, dtype):
    codes = np.arange(N) * 3 // N if kind is not bool else np.arange(N) * 2 // N
    y = np.array([kind(code) for code in codes], dtype=object if kind is str else kind)
    X = (X + np.outer(codes, np.arange(P)) * 0.1).astype(dtype)
    X[:, 4], X[codes == 1, 5] = 2.0, 1.0
    there = LDA(shrinkage=shrinkage).fit(X, y)
    here = LDA(shrinkage=shrinkage).fit(labeled_rows(X, y), "kind")
    assert here.classes_.tolist() == there.classes_.tolist()
    names = ("components_", "coef_", "intercept_", "eigenvalues_", "means_", "priors_", "mean_")
    assert_close(there, here, names, 1e-6)
    assert np.array_equal(here.predict(X), there.predict(X))


def test_classes_in_groups_are_shrunk_alike(X, monkeypatch):
    y = np.array(list("abcdefgh"), dtype=object)[np.arange(N) % 8]
    rows = labeled_rows(X, y)
    whole = LDA(shrinkage="auto").fit(rows, "kind")
    monkeypatch.setattr("lowland.methods.linear._discriminant.GROUP_BYTES", 8 * P * P * 3)
    passes = Passes(monkeypatch)
    parts = LDA(shrinkage="auto").fit(rows, "kind")
    assert passes.count == 1 + 3  # means, and 8 classes in groups of 3
    assert_same_state(fitted_state(whole), fitted_state(parts))


def test_text_and_numbers_as_labels_are_not_mixed(X):
    y = np.array([1] * 120 + ["a"] * 120, dtype=object)
    chunks = [*labeled_rows(X[:120], np.ones(120)).chunks, *labeled_rows(X[120:], y[120:]).chunks]
    rows = labeled_rows(X, np.ones(N))
    rows.chunks = tuple(chunks)
    for method in (LDA(), CorrelationScore()):
        with pytest.raises(DataError, match="use one kind"):
            method.fit(rows, "kind")


@each("y", [True, False])
def test_batches_of_chunks_add_up(X, y):
    labels = np.array(["u", "v", "w"], dtype=object)[np.arange(N) * 3 // N]
    make, label = (LDA, "kind") if y else (PCA, None)
    there = make(2).fit(X, labels if y else None)
    here = make(2)
    here.partial_fit(labeled_rows(X[:100], labels[:100]), label)
    here.partial_fit(X[100:160], labels[100:160] if y else None)
    here.partial_fit(labeled_rows(X[160:], labels[160:]), label)
    assert here.n_samples_seen_ == N
    assert here.scatter_.shape == (P, P)
    assert_close(there, here, ("components_", "mean_"))
    with pytest.raises(DataError, match="11 features"):
        here.partial_fit(labeled_rows(X[:, :11], labels), label)


def test_lda_with_automatic_shrinkage_takes_no_batches(X):
    with pytest.raises(ParameterError, match="use fit"):
        LDA(shrinkage="auto").partial_fit(labeled_rows(X, np.arange(N) % 2), "kind")


def test_gaps_of_probabilistic_pca_are_refused_with_their_rows(X):
    X = X.copy()
    X[100, 3] = np.nan
    with pytest.raises(DataError, match=r"rows 74 to 110: PPCA: column 3.*rows\.sample"):
        PPCA().fit(labeled_rows(X))


def test_sums_of_columns_merge_to_the_sums_of_all_rows():
    """Against numpy in extended precision, with gaps, an offset, and columns without values."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 4)) + np.array([0, 1e8, 5, 0])
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 3] = np.nan
    X[100:, 2] = np.nan
    parts = [column_sums(X[i : i + 50]) for i in range(0, 300, 50)]
    sums = no_columns((4,))
    for part in parts:
        sums = merge_columns(sums, part)
    for j in range(3):
        values = X[~np.isnan(X[:, j]), j].astype(np.longdouble)
        assert sums.known[j] == len(values)
        assert abs(sums.mean[j] - values.mean()) <= 1e-15 * abs(values).max()
        squares = float(((values - values.mean()) ** 2).sum())
        assert abs(sums.squares[j] / squares - 1) < 1e-7  # the mean of 1e8 is known to 1e-8
        assert (sums.low[j], sums.high[j]) == (values.min(), values.max())
    assert sums.known[3] == 0
    assert sums.constant.tolist() == [False, False, False, True]


def test_sums_by_class_merge_in_any_grouping():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((90, 3)), np.array(list("cab"), dtype=object)[np.arange(90) // 30]
    parts = [labeled_columns(X[i : i + 18], y[i : i + 18], "test") for i in range(0, 90, 18)]
    merge = functools.partial(merge_labeled, owner="test")
    a, b, c, d, e = parts
    left, right = functools.reduce(merge, parts), merge(merge(e, d), merge(c, merge(b, a)))
    for sums in (left, right):
        assert sums.classes.tolist() == ["a", "b", "c"]
        for k, label in enumerate("abc"):
            rows = X[y == label]
            assert sums.sums.known[k, 0] == 30
            np.testing.assert_allclose(sums.sums.mean[k], rows.mean(axis=0), rtol=1e-13)
            np.testing.assert_allclose(sums.sums.squares[k], 30 * rows.var(axis=0), rtol=1e-13)


@each("choice", [{}, {"scheme": "quotient"}, {"cut": 0.5}, {"n_features": 6}])
@each("target", ["classes", "numbers", "counts"])
def test_mrmr_counts_states_as_in_memory(choice, target, monkeypatch):
    rng = np.random.default_rng(6)
    X = rng.gamma(2.0, size=(200, 6))
    X[:, 2], X[:, 3], X[:, 4] = np.arange(200) % 2, np.floor(X[:, 0]), 1.0  # ties at the edges
    sums = X[:, 0] + X[:, 1]
    y = {"classes": np.where(sums > 4, "a", "b"), "numbers": sums, "counts": np.floor(sums)}[target]
    passes = Passes(monkeypatch)
    there, here = MRMR(**choice).fit(X, y), MRMR(**choice).fit(labeled_rows(X, y), "kind")
    assert passes.count == 3
    assert np.array_equal(here.ranking_, there.ranking_)
    np.testing.assert_allclose(here.scores_, there.scores_, atol=1e-12)
    np.testing.assert_allclose(here.relevance_, there.relevance_, atol=1e-12)


@each(
    "y, choice, error, words",
    [
        (np.arange(200) % 2, {"cut": None}, ParameterError, r"set cut=1\.0"),
        (np.arange(200) / 3, {"target": "classes"}, DataError, "continuous"),
        (np.array(["a", "b"] * 100), {"target": "numbers"}, DataError, "must hold numbers"),
    ],
)
def test_mrmr_says_what_to_set(y, choice, error, words):
    with pytest.raises(error, match=words):
        MRMR(**choice).fit(labeled_rows(np.random.default_rng(0).random((200, 3)), y), "kind")


def test_mrmr_asks_whether_many_numbers_are_classes(monkeypatch):
    monkeypatch.setattr("lowland.selection.mrmr.MOST_VALUES", 20)
    rows = labeled_rows(np.random.default_rng(0).random((200, 3)), np.arange(200) % 30)
    with pytest.raises(ParameterError, match="set target='numbers'"):
        MRMR().fit(rows, "kind")
    MRMR(target="numbers").fit(rows, "kind")


def test_constant_columns_have_their_value_as_mean():
    """0.1 is not a binary fraction, so that sums of copies of it are rounded."""
    X = np.random.default_rng(7).random((300, 3))
    X[:, 1] = 0.1
    sparse = scipy.sparse.csr_matrix(X)
    for table in (X, X.astype(np.float32), sparse):
        parts = [column_sums(table[i : i + 37]) for i in range(0, 300, 37)]
        sums = functools.reduce(merge_columns, parts)
        assert sums.constant.tolist() == [False, True, False]
        assert (sums.mean[1], sums.squares[1]) == (float(table.dtype.type(0.1)), 0.0)


def test_one_pass_for_the_covariance(X, monkeypatch):
    passes = Passes(monkeypatch)
    PCA().fit(labeled_rows(X))
    assert passes.count == 1


def test_a_model_of_chunks_is_saved_without_places(X, tmp_path):
    import lowland

    model = PPCA(2).fit(labeled_rows(X))
    assert model.embedding_ is None
    model.save(tmp_path / "model.lowland")
    assert np.array_equal(lowland.load(tmp_path / "model.lowland").transform(X), model.transform(X))
