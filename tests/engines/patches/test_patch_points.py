"""Points of patches: rows and their distances give differences with the same inner products."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland._engines.patches.patch_weights import PatchDistances, PatchRows


def gram(points, ids, centers=None):
    Z, unit = points.differences(ids, centers)
    return (Z @ Z.transpose(0, 2, 1)) * (unit**2)[:, None, None]


@pytest.fixture
def patches(irregular):
    """Rows, some of them the points, and patches of points around the first."""
    X = irregular(60, 4)
    numbers = np.sort(np.random.default_rng(1).permutation(60)[:40])
    ids = np.argsort(cdist(X[numbers], X[numbers]), axis=1)[:, :9]
    return X, numbers, ids


def test_inner_products_of_differences_are_those_of_the_definition(patches, irregular):
    X, numbers, ids = patches
    new = irregular(40, 4, seed=5)
    rows = PatchRows(X[numbers])
    distances = PatchDistances(cdist(X[numbers], X), numbers)
    for centers, from_rows, from_distances in (
        (X[numbers], None, None),
        (new, new, cdist(new, X)),
    ):
        expected = np.array(
            [
                [[(X[numbers[a]] - c) @ (X[numbers[b]] - c) for a in patch] for b in patch]
                for patch, c in zip(ids, centers, strict=True)
            ]
        )
        atol = 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(gram(rows, ids, from_rows), expected, atol=atol)
        np.testing.assert_allclose(gram(distances, ids, from_distances), expected, atol=atol)


@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float32, 1.0), (np.float64, 1e-150), (np.float64, 1e150)]
)
def test_differences_are_in_units_of_the_patch(patches, dtype, scale):
    X, numbers, ids = patches
    for points in (
        PatchRows((X[numbers] * scale).astype(dtype)),
        PatchDistances((cdist(X[numbers], X) * scale).astype(dtype), numbers),
    ):
        Z, unit = points.differences(ids)
        assert Z.dtype == np.float64
        assert 0.1 < np.abs(Z).max() <= 1.0 + 1e-6
        assert (unit > 0.01 * scale).all()


@pytest.mark.parametrize(("dtype", "slack"), [(np.float64, 1e-14), (np.float32, 1e-5)])
def test_distances_on_a_line_have_one_dimension_and_no_rounding_beside(dtype, slack):
    line = np.sort(np.random.default_rng(0).random(30))
    D = np.abs(line[:, None] - line).astype(dtype)
    ids = np.arange(30).reshape(3, 10)
    Z, unit = PatchDistances(D, np.arange(30)).differences(ids)
    assert ((Z != 0).any(axis=1).sum(axis=1) == 1).all()
    along = np.abs(Z.sum(axis=2)) * unit[:, None]
    np.testing.assert_allclose(along, line[ids] - line[ids[:, :1]], atol=slack)


def test_of_distances_that_are_not_euclidean_the_positive_part_counts():
    D = np.array([[0.0, 1, 1, 4], [1, 0, 1, 1], [1, 1, 0, 1], [4, 1, 1, 0]])  # 4 > 1 + 1
    C = np.array(
        [[(D[0, a] ** 2 + D[0, b] ** 2 - D[a, b] ** 2) / 2 for a in range(4)] for b in range(4)]
    )
    values, vectors = np.linalg.eigh(C)
    assert values[0] < -0.1
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    found = gram(PatchDistances(D, np.arange(4)), np.arange(4)[None, :])[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_all_at_one_place_have_no_differences():
    points = PatchDistances(np.zeros((5, 5)), np.arange(5))
    Z, unit = points.differences(np.arange(5)[None, :])
    assert (Z == 0).all()
    assert (unit == 1).all()


def test_a_row_at_home_is_known_by_its_coordinates_or_by_its_distances(patches):
    X, numbers, _ = patches
    D = cdist(X, X)
    near = np.argsort(D[:, numbers], axis=1, kind="stable")[:, :5]
    expected = np.full(60, -1)
    expected[numbers] = np.arange(40)
    np.testing.assert_array_equal(PatchRows(X[numbers]).equal_point(X, near), expected)
    np.testing.assert_array_equal(
        PatchDistances(D[numbers], numbers).equal_point(D, near), expected
    )


def test_of_several_rows_at_distance_zero_home_is_the_one_with_the_same_distances():
    D = np.array([[0.0, 0, 0, 2], [0, 0, 0, 3], [0, 0, 0, 2.5], [2, 3, 2.5, 0]])
    points = PatchDistances(D, np.arange(4))
    near = np.argsort(D, axis=1, kind="stable")[:, :2]  # row 2 is not among its own nearest
    np.testing.assert_array_equal(points.equal_point(D, near), [0, 1, 2, 3])
    almost = np.array([[0.0, 0, 0, 2.9]])
    np.testing.assert_array_equal(points.equal_point(almost, near[:1]), [1])


def test_a_self_distance_of_rounding_does_not_drive_a_row_from_home():
    D = np.array([[1e-9, 1, 2], [1, 0, 1], [2, 1, 0]])
    points = PatchDistances(D, np.arange(3))
    near = np.argsort(D, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(points.equal_point(D, near), [0, 1, 2])
