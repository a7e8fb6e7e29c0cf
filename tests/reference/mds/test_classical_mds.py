"""Classical scaling: R's cmdscale, PCA, and distances that are not Euclidean."""

import numpy as np
import pytest
from scipy.spatial.distance import squareform

from lowland import PCA, ClassicalMDS
from lowland.errors import DataError
from support.cases import each


def test_eurodist_as_r_prints_it(eurodist):
    names, D = eurodist
    model = ClassicalMDS(metric="precomputed").fit(D)
    np.testing.assert_allclose(model.eigenvalues_[:2], [1.95383770895e7, 1.1856555334e7], rtol=1e-9)
    athens = np.abs(model.embedding_[names.index("Athens")])
    np.testing.assert_allclose(athens, [2290.27468, 1798.80293], atol=1e-5)
    np.testing.assert_allclose(model.goodness_of_fit_, [0.7537543, 0.8679134], atol=1e-7)
    assert (model.eigenvalues_ < -1e-6 * model.eigenvalues_[0]).sum() == 9


def test_euclidean_rows_are_pca_by_either_solver(irregular, distances):
    X = irregular(60, 5)
    pca = PCA(3).fit_transform(X)
    for model in (ClassicalMDS(3).fit(X), ClassicalMDS(3, metric="precomputed").fit(distances(X))):
        np.testing.assert_allclose(np.abs(model.embedding_), np.abs(pca), atol=1e-9)
        assert (model.embedding_[np.abs(model.embedding_).argmax(axis=0), range(3)] > 0).all()
    assert model.goodness_of_fit_[0] == pytest.approx(
        ClassicalMDS(3).fit(X).goodness_of_fit_[0], rel=1e-9
    )


def test_few_pairs_of_many_rows_are_those_of_the_whole_spectrum(irregular):
    X = irregular(600, 6)
    top = ClassicalMDS(metric="manhattan", spectrum="top", random_state=0).fit(X)
    whole = ClassicalMDS(metric="manhattan", spectrum="all").fit(X)
    np.testing.assert_allclose(top.eigenvalues_, whole.eigenvalues_[:2], rtol=1e-8)
    np.testing.assert_allclose(top.embedding_, whole.embedding_, atol=1e-6)
    assert top.goodness_of_fit_ is None
    assert len(whole.eigenvalues_) == 600


def test_goodness_of_fit_is_known_for_a_thousand_rows(irregular):
    X = irregular(500, 4)
    model = ClassicalMDS(metric="manhattan").fit(X)
    D = np.abs(X[:, None] - X[None]).sum(axis=2)
    center = np.eye(500) - 1 / 500
    values = np.linalg.eigvalsh(-0.5 * center @ D**2 @ center)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-9 * values[0])
    shares = values[:2].sum() / [np.abs(values).sum(), values[values > 0].sum()]
    np.testing.assert_allclose(model.goodness_of_fit_, shares, rtol=1e-9)
    norms = np.linalg.norm(model.embedding_, axis=0) ** 2
    np.testing.assert_allclose(norms, values[:2], rtol=1e-9)
    assert ClassicalMDS(metric="manhattan").fit(irregular(1001, 2)).goodness_of_fit_ is None


def test_all_eigenvalues_of_euclidean_rows_if_asked_for(irregular, distances):
    X = irregular(20, 5)
    few, rows = ClassicalMDS().fit(X), ClassicalMDS(spectrum="all").fit(X)
    given = ClassicalMDS(metric="precomputed").fit(distances(X))
    assert len(few.eigenvalues_) == 2
    scale = few.eigenvalues_[0]
    np.testing.assert_allclose(rows.eigenvalues_, given.eigenvalues_, atol=1e-12 * scale)
    np.testing.assert_allclose(rows.embedding_, few.embedding_, atol=1e-12)
    np.testing.assert_allclose(rows.goodness_of_fit_, few.goodness_of_fit_, rtol=1e-12)


def test_condensed_and_square_distances_are_the_same(eurodist):
    _, D = eurodist
    square = ClassicalMDS(metric="precomputed").fit(D)
    condensed = ClassicalMDS(metric="precomputed").fit(squareform(D))
    np.testing.assert_array_equal(square.embedding_, condensed.embedding_)


def test_the_additive_constant_is_the_least_that_makes_distances_euclidean(eurodist):
    _, D = eurodist
    model = ClassicalMDS(metric="precomputed", additive_constant=True).fit(D)
    largest = model.eigenvalues_[0]
    assert model.additive_constant_ > 0
    assert model.eigenvalues_[-1] > -1e-9 * largest
    off = 1 - np.eye(len(D))
    less = D + (model.additive_constant_ - 1.0) * off
    assert ClassicalMDS(metric="precomputed").fit(less).eigenvalues_[-1] < -1e-5 * largest
    np.testing.assert_allclose(model.transform(D), model.embedding_, atol=1e-6)


def test_the_additive_constant_of_three_points_mends_the_triangle():
    D = squareform([1.0, 1.0, 5.0])  # 5 + c = 2 (1 + c)
    found = ClassicalMDS(metric="precomputed", additive_constant=True).fit(D)
    assert found.additive_constant_ == pytest.approx(3.0, rel=1e-9)
    Y = found.embedding_[:, 0]
    assert np.abs(Y[1] - Y[2]) == pytest.approx(8.0, rel=1e-6)


def test_euclidean_distances_need_no_constant(irregular, distances):
    D = distances(irregular(20, 3))
    model = ClassicalMDS(metric="precomputed", additive_constant=True).fit(D)
    assert model.additive_constant_ == pytest.approx(0, abs=1e-5 * D.max())


def test_stress_of_points_is_relative_to_their_distances(irregular, distances):
    X = irregular(40, 5)
    model = ClassicalMDS().fit(X)
    D, d = distances(X), distances(model.embedding_)
    expected = np.sqrt(((D - d) ** 2).sum(axis=1) / (D**2).sum(axis=1))
    np.testing.assert_allclose(model.stress_per_point_, expected, rtol=1e-9)


def broken(change):
    D = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    change(D)
    return D


@each(
    ("change", "message"),
    [
        (
            lambda D: D.__setitem__((1, 3), 9.0),
            r"symmetric matrix, but X\[1, 3\] = 9 and X\[3, 1\]",
        ),
        (
            lambda D: D.__setitem__(((1, 3), (3, 1)), -2.0),
            "negative number: column 3, first in row",
        ),
        (lambda D: D.__setitem__(((1, 3), (3, 1)), np.nan), "NaN: column 3.*needs all distances"),
        (lambda D: D.__setitem__(((1, 3), (3, 1)), np.inf), "infinity: column 3"),
        (lambda D: D.__setitem__((2, 2), 1.0), "distance of row 2 to itself is 1"),
    ],
    ids=["asymmetric", "negative", "NaN", "infinity", "diagonal"],
)
def test_what_is_no_matrix_of_distances_is_refused_with_its_place(change, message):
    with pytest.raises(DataError, match=message):
        ClassicalMDS(metric="precomputed").fit(broken(change))


def test_other_shapes_are_refused():
    model = ClassicalMDS(metric="precomputed")
    with pytest.raises(DataError, match="square matrix of distances"):
        model.fit(np.ones((3, 4)))
    with pytest.raises(DataError, match="4 is not such a number"):
        model.fit(np.ones(4))
    with pytest.raises(DataError, match="minimum of 2"):
        model.fit(np.zeros((1, 1)))
    two = model.fit([[0, 3], [3, 0]])
    np.testing.assert_allclose(np.abs(two.embedding_), [[1.5, 0], [1.5, 0]], atol=1e-12)
    with pytest.raises(DataError, match="expecting 2 features"):
        two.transform(np.ones((1, 3)))
