"""Clusters, curve and closed surfaces: on their equation, and spread over it as promised."""

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from scipy.stats import chisquare, kstest

from lowland.datasets import blobs, branching_tree, helix, sphere, torus, two_rings


def test_sphere_rows_have_unit_radius_and_match_latitude_and_longitude():
    data = sphere(500, random_state=0)
    x, y, z = data.X.T
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(np.sin(data.truth[:, 0]), z, atol=1e-14)
    np.testing.assert_allclose(np.arctan2(y, x), data.truth[:, 1], atol=1e-12)


def test_sphere_is_uniform_by_area():
    """Height and longitude are independent and uniform; so is the height along any other axis."""
    data = sphere(6000, random_state=1)
    extent = [(-1.0, 1.0), (-np.pi, np.pi)]
    counts, *_ = np.histogram2d(data.X[:, 2], data.truth[:, 1], bins=8, range=extent)
    assert counts.sum() == 6000
    assert chisquare(counts.ravel()).pvalue > 0.001
    oblique = data.X @ (np.array([1.0, 2.0, -2.0]) / 3.0)
    assert kstest(oblique, "uniform", args=(-1.0, 2.0)).pvalue > 0.001


@pytest.mark.parametrize("tube", [0.1, 0.4, 0.9])
def test_torus_rows_satisfy_its_equation_and_match_the_angles(tube):
    data = torus(500, tube=tube, random_state=0)
    x, y, z = data.X.T
    u, v = data.truth.T
    np.testing.assert_allclose((np.hypot(x, y) - 1.0) ** 2 + z**2, tube**2, atol=1e-13)
    np.testing.assert_allclose(np.arctan2(y, x) % (2 * np.pi), u, atol=1e-12)
    np.testing.assert_allclose(np.arctan2(z, np.hypot(x, y) - 1.0) % (2 * np.pi), v, atol=1e-12)


@pytest.mark.parametrize("tube", [0.4, 0.95])
def test_torus_is_uniform_by_area(tube):
    """The share of area with angle below v is (v + tube sin v) / (2 pi)."""
    u, v = torus(8000, tube=tube, random_state=2).truth.T
    edges = np.linspace(0.0, 2.0 * np.pi, 9)
    counts, *_ = np.histogram2d(u, v, bins=[edges, edges])
    share = np.diff(edges + tube * np.sin(edges)) / (2.0 * np.pi)
    assert counts.sum() == 8000
    assert chisquare(counts.ravel(), np.tile(1000.0 * share, 8)).pvalue > 0.001


@pytest.mark.parametrize(("turns", "pitch"), [(3.0, 1.0), (0.5, 4.0)])
def test_helix_truth_is_the_length_of_the_curve(turns, pitch):
    data = helix(20000, turns=turns, pitch=pitch, random_state=3)
    order = np.argsort(data.truth[:, 0])
    curve, s = data.X[order], data.truth[order, 0]
    length = np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))
    np.testing.assert_allclose(length, s[1:] - s[0], rtol=1e-5, atol=1e-9)
    whole = turns * np.hypot(2.0 * np.pi, pitch)
    assert kstest(s, "uniform", args=(0.0, whole)).pvalue > 0.001


def test_helix_climbs_one_pitch_per_turn_around_the_unit_circle():
    x, y, z = helix(500, turns=4.0, pitch=0.7, random_state=4).X.T
    np.testing.assert_allclose(np.hypot(x, y), 1.0, atol=1e-14)
    np.testing.assert_allclose(x, np.cos(2.0 * np.pi * z / 0.7), atol=1e-12)
    np.testing.assert_allclose(y, np.sin(2.0 * np.pi * z / 0.7), atol=1e-12)
    assert 0.0 <= z.min() < 0.1
    assert 2.7 < z.max() <= 2.8


def test_two_rings_have_the_radii_asked_for_and_equal_shares():
    data = two_rings(501, noise=0.0, random_state=5)
    radii = np.linalg.norm(data.X, axis=1)
    np.testing.assert_allclose(radii, np.where(data.y == 0, 0.6, 2.0), atol=1e-14)
    angle = np.arctan2(data.X[:, 1], data.X[:, 0]) % (2.0 * np.pi)
    np.testing.assert_allclose(angle, data.truth[:, 0], atol=1e-12)
    np.testing.assert_array_equal(np.bincount(data.y), [251, 250])
    assert kstest(data.truth[:, 0], "uniform", args=(0.0, 2.0 * np.pi)).pvalue > 0.001
    near = two_rings(501, ratio=0.9, noise=0.0, random_state=5)
    radii = np.linalg.norm(near.X, axis=1)
    np.testing.assert_allclose(radii, np.where(near.y == 0, 1.8, 2.0), atol=1e-14)


def test_blobs_are_gaussian_around_their_centers():
    data = blobs(9000, n_clusters=4, n_features=3, spread=2.5, random_state=6)
    for cluster in range(4):
        centers = np.unique(data.truth[data.y == cluster], axis=0)
        assert centers.shape == (1, 3)
        rest = (data.X[data.y == cluster] - centers) / 2.5
        assert all(kstest(column, "norm").pvalue > 0.001 for column in rest.T)
        np.testing.assert_allclose(np.cov(rest.T), np.eye(3), atol=0.1)  # about 5 / sqrt(2250)


@pytest.mark.parametrize(("n_samples", "n_clusters"), [(100, 7), (3, 5), (1, 1)])
def test_blobs_have_equal_sizes_in_random_order(n_samples, n_clusters):
    data = blobs(n_samples, n_clusters=n_clusters, n_features=1, random_state=7)
    sizes = np.bincount(data.y, minlength=n_clusters)
    assert len(sizes) == len(data.label_names) == n_clusters
    assert sizes.max() - sizes.min() <= 1
    if n_samples > 50:
        assert np.any(np.diff(data.y) < 0)
        assert not np.array_equal(data.y, np.arange(n_samples) % n_clusters)


def test_blobs_without_spread_are_their_centers_in_an_own_array():
    data = blobs(20, spread=0.0, random_state=8)
    np.testing.assert_array_equal(data.X, data.truth)
    assert not np.shares_memory(data.X, data.truth)


def test_truth_of_the_tree_is_the_path_along_it():
    """Shortest paths between rows a step apart, against city-block distances of the truth."""
    data = branching_tree(300, n_branches=6, noise=0.0, random_state=4)
    apart = cdist(data.X, data.X)
    paths = shortest_path(np.where(np.abs(apart - 1) < 1e-9, 1.0, 0.0), directed=False)
    np.testing.assert_array_equal(paths, cdist(data.truth, data.truth, "cityblock"))
    np.testing.assert_array_equal(np.bincount(data.y), 50)
    own = data.truth[np.arange(300), data.y]
    for branch in range(6):
        np.testing.assert_array_equal(np.sort(own[data.y == branch]), np.arange(1, 51))
