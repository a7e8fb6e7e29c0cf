"""Pre-images of points of a map against plain numpy."""

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist, pdist

from lowland._engines.kernels.kernel_operators import Kernel
from lowland.methods.kernel import kernel_pca


def test_the_nearest_place_is_found(irregular):
    Y, places = irregular(30, 2), irregular(50, 2, 1)
    np.testing.assert_array_equal(
        kernel_pca.nearest_rows(Y, places), cdist(Y, places).argmin(axis=1)
    )


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_least_squares_are_numpys(irregular, make):
    places, rows, Y = irregular(80, 3), irregular(80, 6, 1), irregular(9, 3, 2)
    design = np.column_stack([places, np.ones(80)])
    expected = np.column_stack([Y, np.ones(9)]) @ np.linalg.lstsq(design, rows, rcond=None)[0]
    found = kernel_pca.by_least_squares(Y, places, make(rows), 1)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_ridge_regression_is_that_of_its_formula(irregular, make, monkeypatch):
    places, rows, Y = irregular(80, 3), irregular(80, 6, 1), irregular(9, 3, 2)
    monkeypatch.setattr(kernel_pca, "RIDGE_ROWS", 40)
    centers, targets = places[::2], rows[::2]
    gamma = 0.5 / np.median(pdist(centers)) ** 2
    K = np.exp(-gamma * cdist(centers, centers) ** 2) + 0.01 * np.eye(40)
    mean = targets.mean(axis=0)
    at = np.exp(-gamma * cdist(Y, centers) ** 2)
    expected = at @ np.linalg.solve(K, targets - mean) + mean
    found = kernel_pca.by_ridge(Y, places, make(rows), 0.01, 1)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_the_fixed_point_is_that_of_its_formula(irregular):
    rows = irregular(60, 3)
    kernel = Kernel("rbf", 0.2)
    axes = kernel_pca.Axes(rows, rows[:, :1], np.zeros((60, 1)), np.full(60, 1 / 60))
    Z = kernel_pca.by_fixed_point(np.array([[0.0], [3.0]]), axes, kernel, 1)
    for z in Z:  # weights are 1/n: a mode of the density of the rows
        k = np.exp(-0.2 * ((z - rows) ** 2).sum(axis=1))
        np.testing.assert_allclose(k @ rows / k.sum(), z, atol=1e-4)


def test_a_point_without_any_nearness_comes_back_as_the_nearest_row(irregular):
    rows = irregular(20, 3)
    axes = kernel_pca.Axes(rows, rows[:, :1], np.zeros((20, 1)), np.full(20, -1.0))
    Z = kernel_pca.by_fixed_point(rows[:5, :1], axes, Kernel("rbf", 0.2), 1)
    np.testing.assert_array_equal(Z, rows[:5])
