"""Filters: closed forms, naive formulas on irregular data, scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn import feature_selection as peer

import lowland
from lowland.datasets import digits, iris, wine
from support.cases import each


def labeled(irregular, n=120, p=7, n_classes=3):
    """Irregular rows in classes of different sizes that differ in some columns."""
    X = irregular(n, p)
    y = np.random.default_rng(1).choice(n_classes, n, p=[0.5, 0.3, 0.2][:n_classes])
    X[:, 1] += 0.8 * y
    X[:, 4] -= 0.5 * (y == 1)
    return X, y


def test_variance_is_numpys():
    X = iris().X
    np.testing.assert_allclose(lowland.VarianceScore().fit(X).scores_, X.var(axis=0), rtol=1e-12)
    kept = lowland.VarianceScore(threshold=0.5).fit(X).get_support()
    np.testing.assert_array_equal(kept, peer.VarianceThreshold(0.5).fit(X).get_support())


def test_correlation_is_pearsons(irregular):
    X = irregular(60, 5)
    y = X[:, 1] - 0.3 * X[:, 3] + np.random.default_rng(0).standard_normal(60)
    expected = [abs(pearsonr(column, y).statistic) for column in X.T]
    np.testing.assert_allclose(lowland.CorrelationScore().fit(X, y).scores_, expected, rtol=1e-9)


def test_correlation_far_from_the_origin_loses_nothing(irregular):
    X = irregular(60, 5)
    y = X[:, 2] + np.arange(60) / 30
    near = lowland.CorrelationScore().fit(X, y).scores_
    far = lowland.CorrelationScore().fit(X + 1e8, y + 1e8).scores_
    np.testing.assert_allclose(far, near, rtol=1e-6)  # X + 1e8 itself has lost eight digits


def test_correlation_takes_two_classes_and_no_more(irregular):
    X, y = labeled(irregular)
    two = lowland.CorrelationScore().fit(X, np.where(y > 0, "b", "a"))
    expected = [abs(pearsonr(column, y > 0).statistic) for column in X.T]
    np.testing.assert_allclose(two.scores_, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="y has 3 classes, but at most two are allowed"):
        lowland.CorrelationScore().fit(X, np.array(["a", "b", "c"])[y])


def test_f_is_scikit_learns_and_fishers_score_is_proportional(irregular):
    X, y = labeled(irregular)
    F = lowland.AnovaF().fit(X, y)
    fisher = lowland.FisherScore().fit(X, y)
    np.testing.assert_allclose(F.scores_, peer.f_classif(X, y)[0], rtol=1e-9)
    # F = score * (n - C) / (C - 1)
    np.testing.assert_allclose(F.scores_, fisher.scores_ * (120 - 3) / (3 - 1), rtol=1e-9)
    np.testing.assert_array_equal(F.ranking_, fisher.ranking_)


def test_f_far_from_the_origin_loses_nothing(irregular):
    X, y = labeled(irregular)
    near, far = lowland.AnovaF().fit(X, y).scores_, lowland.AnovaF().fit(X + 1e8, y).scores_
    np.testing.assert_allclose(far, near, rtol=1e-5)


def test_fishers_score_is_its_formula(irregular):
    X, y = labeled(irregular)
    for j, score in enumerate(lowland.FisherScore().fit(X, y).scores_):
        parts = [X[y == c, j] for c in range(3)]
        between = sum(len(part) * (part.mean() - X[:, j].mean()) ** 2 for part in parts)
        within = sum(len(part) * part.var() for part in parts)
        assert score == pytest.approx(between / within, rel=1e-10)


def test_chi_square_is_scikit_learns_and_wants_no_negative_numbers():
    X, y = digits().X, digits().y
    scores = lowland.ChiSquare().fit(X, y).scores_
    varying = X.std(axis=0) > 0
    np.testing.assert_allclose(scores[varying], peer.chi2(X[:, varying], y)[0], rtol=1e-9)
    assert (scores[~varying] == 0).all()
    X = X.copy()
    X[3, 10] = -2
    with pytest.raises(ValueError, match="column 10 holds -2, but the test is for counts"):
        lowland.ChiSquare().fit(X, y)


def test_the_threshold_keeps_what_is_better():
    X, y = iris().X, iris().y
    assert lowland.AnovaF(threshold=100).fit(X, y).get_support(indices=True).tolist() == [0, 2, 3]
    assert lowland.AnovaF(1, threshold=100).fit(X, y).get_support(indices=True).tolist() == [2]
    with pytest.raises(ValueError, match=r"no column has a score above threshold=5000.*best is 11"):
        lowland.AnovaF(threshold=5000.0).fit(X, y)


def test_the_threshold_of_a_score_that_is_better_when_low_is_an_upper_bound():
    X = iris().X
    scores = lowland.LaplacianScore().fit(X).scores_
    first, second = np.sort(scores)[:2]
    kept = lowland.LaplacianScore(threshold=(first + second) / 2).fit(X)
    assert kept.get_support(indices=True).tolist() == [int(np.argmin(scores))]
    with pytest.raises(ValueError, match="no column has a score below threshold"):
        lowland.LaplacianScore(threshold=first / 2).fit(X)


# --- mutual information -------------------------------------------------------------------------


@each("k", [1, 3, 7])
def test_mutual_information_is_scikit_learns(irregular, k):
    X, y = labeled(irregular, n=300)
    number = np.sin(X[:, 1]) + 0.2 * X[:, 2] * X[:, 3]
    for target, theirs in ((y, peer.mutual_info_classif), (number, peer.mutual_info_regression)):
        ours = lowland.MutualInformation(n_neighbors=k, random_state=0).fit(X, target).scores_
        expected = theirs(X, target, n_neighbors=k, random_state=0)
        np.testing.assert_allclose(ours, expected, atol=1e-9)


def test_mutual_information_of_tied_data_is_scikit_learns_up_to_the_noise_that_breaks_ties():
    X, y = digits().X, digits().y
    ours = lowland.MutualInformation(random_state=0).fit(X, y).scores_
    theirs = [peer.mutual_info_classif(X, y, random_state=seed) for seed in range(5)]
    varying = X.std(axis=0) > 0
    gap = np.abs(ours - np.mean(theirs, axis=0))[varying]
    spread = np.std(theirs, axis=0)[varying].max()
    assert gap.max() < 5 * spread


def test_mutual_information_of_discrete_columns_is_scikit_learns():
    X, y = wine().X.round(0), wine().y
    ours = lowland.MutualInformation(discrete_features=True).fit(X, y).scores_
    theirs = peer.mutual_info_classif(X, y, discrete_features=True)
    varying = X.std(axis=0) > 0
    np.testing.assert_allclose(ours[varying], theirs[varying], rtol=1e-9)
    target = wine().X[:, 9]
    chosen = [0, 3]
    ours = lowland.MutualInformation(discrete_features=chosen, random_state=0).fit(X, target)
    theirs = peer.mutual_info_regression(X, target, discrete_features=chosen, random_state=0)
    np.testing.assert_allclose(ours.scores_[chosen], theirs[chosen], atol=0.02)


def test_mutual_information_of_normal_variables_is_the_closed_form():
    """I = -log(1 - r^2) / 2; the estimate from 4 000 rows is within a few hundredths."""
    rng = np.random.default_rng(0)
    r = np.array([0.0, 0.3, 0.6, 0.9])
    y = rng.standard_normal(4000)
    X = r * y[:, None] + np.sqrt(1 - r**2) * rng.standard_normal((4000, 4))
    scores = lowland.MutualInformation(random_state=0).fit(X, y).scores_
    np.testing.assert_allclose(scores, -np.log(1 - r**2) / 2, atol=0.05)


def test_a_target_can_be_called_what_it_is():
    X = iris().X[:, :3]
    y = (iris().X[:, 3] * 10).astype(int)  # whole numbers that recur: taken for classes
    auto = lowland.MutualInformation(random_state=0).fit(X, y).scores_
    classes = lowland.MutualInformation(random_state=0, target="classes").fit(X, y).scores_
    numbers = lowland.MutualInformation(random_state=0, target="numbers").fit(X, y).scores_
    np.testing.assert_array_equal(auto, classes)
    assert np.abs(numbers - classes).max() > 0.01


# --- Laplacian score ----------------------------------------------------------------------------


def naive_laplacian_scores(X, k, t=None):
    D2 = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(D2, np.inf)
    near = np.argsort(D2, axis=1, kind="stable")[:, :k]
    joined = np.zeros_like(D2, dtype=bool)
    np.put_along_axis(joined, near, True, axis=1)
    t = np.take_along_axis(D2, near, axis=1).mean() if t is None else t
    W = np.where(joined | joined.T, np.exp(-D2 / t), 0.0)
    D = np.diag(W.sum(axis=1))
    L, one = D - W, np.ones(len(X))
    scores = []
    for f in X.T:
        f = f - (f @ D @ one) / (one @ D @ one)
        scores.append((f @ L @ f) / (f @ D @ f))
    return np.array(scores)


@pytest.mark.parametrize(("k", "t"), [(5, None), (3, 2.0), (12, 0.5)])
def test_laplacian_score_is_its_formula(irregular, k, t):
    X = irregular(80, 5)
    ours = lowland.LaplacianScore(n_neighbors=k, bandwidth=t).fit(X)
    expected = naive_laplacian_scores(X, k, t)
    np.testing.assert_allclose(ours.scores_, expected, rtol=1e-9)
    np.testing.assert_array_equal(np.argsort(ours.ranking_), np.argsort(expected))


def test_an_eigenvector_of_the_graph_scores_its_eigenvalue():
    """Rows evenly on a circle: the graph is a ring, and the coordinates are eigenvectors."""
    n = 40
    angle = 2 * np.pi * np.arange(n) / n
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    scores = lowland.LaplacianScore(n_neighbors=2).fit(X).scores_
    np.testing.assert_allclose(scores, 1 - np.cos(2 * np.pi / n), rtol=1e-9)


# --- ReliefF ------------------------------------------------------------------------------------


def naive_relief(X, y, k, rows=None):
    """Kononenko's algorithm, row by row, column by column."""
    U = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    rows = range(len(X)) if rows is None else rows
    share = {c: np.mean(y == c) for c in np.unique(y)}
    W = np.zeros(X.shape[1])
    for i in rows:
        distance = np.abs(U - U[i]).sum(axis=1)
        for c in share:
            others = np.flatnonzero((y == c) & (np.arange(len(X)) != i))
            near = others[np.argsort(distance[others], kind="stable")][:k]
            diff = np.abs(U[near] - U[i]).mean(axis=0)
            W += -diff if c == y[i] else share[c] / (1 - share[y[i]]) * diff
    return W / len(rows)


@each(("k", "rare"), [(1, 0), (10, 0), (30, 0), (10, 3)])
def test_relief_is_its_algorithm(irregular, k, rare):
    X, y = labeled(irregular)
    y = np.where(np.arange(120) < rare, 7, y)  # a class of fewer rows than neighbors
    ours = lowland.ReliefF(n_neighbors=k).fit(X, y).scores_
    np.testing.assert_allclose(ours, naive_relief(X, y, k), rtol=1e-10, atol=1e-13)


def test_relief_of_a_sample_looks_around_from_some_rows(irregular):
    X, y = labeled(irregular)
    ours = lowland.ReliefF(n_samples=40, random_state=3).fit(X, y).scores_
    rows = np.sort(np.random.default_rng(3).choice(120, 40, replace=False))
    np.testing.assert_allclose(ours, naive_relief(X, y, 10, rows), rtol=1e-10, atol=1e-13)
    with pytest.raises(ValueError, match="n_samples=121 is more than the 120 rows"):
        lowland.ReliefF(n_samples=121).fit(X, y)


def test_relief_sees_columns_that_matter_only_together():
    """y = sign(x0 x1): no single column tells anything, and F finds nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 8))
    y = (X[:, 0] * X[:, 5] > 0).astype(int)
    assert set(lowland.ReliefF(2).fit(X, y).get_support(indices=True)) == {0, 5}
    assert lowland.AnovaF().fit(X, y).scores_[[0, 5]].max() < 5


# --- mRMR ---------------------------------------------------------------------------------------


def naive_information(a, b):
    total = 0.0
    for u in np.unique(a):
        for v in np.unique(b):
            joint = np.mean((a == u) & (b == v))
            if joint > 0:
                total += joint * np.log(joint / np.mean(a == u) / np.mean(b == v))
    return total


def naive_mrmr(X, y, k, quotient):
    m, s = X.mean(axis=0), X.std(axis=0)
    Z = (m + s < X).astype(int) - (m - s > X)
    relevance = [naive_information(z, y) for z in Z.T]
    chosen = [int(np.argmax(relevance))]
    values = [max(relevance)]
    while len(chosen) < k:
        merit = {}
        for j in set(range(X.shape[1])) - set(chosen):
            redundancy = np.mean([naive_information(Z[:, j], Z[:, c]) for c in chosen])
            merit[j] = relevance[j] / redundancy if quotient else relevance[j] - redundancy
        chosen.append(max(merit, key=merit.get))
        values = [*values, merit[chosen[-1]]]
    return chosen, values


@pytest.mark.parametrize("scheme", ["difference", "quotient"])
def test_mrmr_is_its_algorithm(irregular, scheme):
    X, y = labeled(irregular, n=200, p=8)
    chosen, values = naive_mrmr(X, y, 5, scheme == "quotient")
    ours = lowland.MRMR(5, scheme=scheme).fit(X, y)
    assert np.argsort(ours.ranking_)[:5].tolist() == chosen
    np.testing.assert_allclose(ours.scores_[chosen], values, rtol=1e-9)


def test_mrmr_does_not_take_the_same_thing_twice():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 600)
    first, second = (y // 2)[:, None], (y % 2)[:, None]  # each tells half of the class
    X = np.hstack([first, first, first, second]).astype(float)
    X[rng.random(X.shape) < 0.02] = 0
    X[rng.random(600) < 0.1, 3] = 1  # less relevant than the copies
    assert 3 in lowland.MRMR(2, cut=None).fit(X, y).get_support(indices=True)
    assert 3 not in lowland.MutualInformation(2, discrete_features=True).fit(X, y).get_support(
        indices=True
    )


def test_mrmr_refuses_numbers_as_states(irregular):
    X, y = labeled(irregular, n=300)
    with pytest.raises(
        ValueError, match="column 0 has 300 different values, but cut=None allows only 256"
    ):
        lowland.MRMR(cut=None).fit(X, y)
