"""Clusters of a map: what the eye would circle."""

from __future__ import annotations

import numpy as np
import pytest

from lowland.errors import DataError
from lowland.metrics import islands
from support.cases import each


def blobs(n, d, centers, seed=0):
    """Round groups of unit width around the centers, and the true group of each point."""
    rng = np.random.default_rng(seed)
    group = rng.integers(len(centers), size=n)
    return np.asarray(centers, dtype=float)[group][:, :d] + rng.normal(size=(n, d)), group


SPREAD = [[0, 0, 0], [9, 0, 0], [18, 9, 0], [27, 9, 9], [36, 0, 9]]


def agreement(found, truth):
    """Share of the points whose cluster and group are each other's largest partner."""
    table = np.zeros((found.max() + 1, truth.max() + 1), dtype=int)
    np.add.at(table, (found, truth), 1)
    rows, columns = np.arange(len(table)), table.argmax(axis=1)
    mutual = table.argmax(axis=0)[columns] == rows
    return table[rows, columns][mutual].sum() / len(found)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [400, 5000, 70_000])
def test_separate_groups_are_found(n, d):
    Y, group = blobs(n, d, SPREAD)
    found = islands(Y)
    assert found.max() == len(SPREAD)
    assert agreement(found, group) > 0.93
    assert (found == 0).mean() < 0.06


@each("d", [1, 2, 3])
@each("n", [200, 2000, 50_000])
@each("seed", [0, 1, 2])
def test_one_group_stays_one(n, d, seed):
    found = islands(blobs(n, d, [[0, 0, 0]], seed)[0])
    assert found.max() == 1


def test_a_flat_square_is_not_broken_up():
    found = islands(np.random.default_rng(0).uniform(size=(20_000, 2)))
    assert np.bincount(found).max() > 0.9 * 20_000


def test_a_ring_around_a_group_is_its_own_cluster():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 6000)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(12, 0.5, 6000)[:, None]
    found = islands(np.vstack([rng.normal(size=(3000, 2)), ring]))
    inner, outer = np.bincount(found[:3000]).argmax(), np.bincount(found[3000:]).argmax()
    assert inner != outer
    assert (found[3000:] == inner).sum() == 0
    assert (found[:3000] == inner).mean() > 0.95


def test_clusters_are_numbered_by_size():
    Y = np.vstack([blobs(size, 2, [[20 * i, 0]], i)[0] for i, size in enumerate((100, 700, 300))])
    found = islands(Y)
    assert [np.bincount(part).argmax() for part in np.split(found, [100, 800])] == [3, 1, 2]


def test_position_scale_order_and_precision_do_not_matter():
    Y, _ = blobs(3000, 2, SPREAD)
    found = islands(Y)
    assert np.array_equal(islands(Y), found)
    # A power of two keeps every digit, so that no point changes its cell.
    assert np.array_equal(islands(1024 * Y), found)
    order = np.random.default_rng(1).permutation(len(Y))
    assert np.array_equal(islands(Y[order]), found[order])
    assert (islands(Y.astype(np.float32)) == found).mean() > 0.999
    assert (islands(Y + 100.0) == found).mean() > 0.999


def test_a_far_outlier_does_not_hide_the_groups():
    Y, group = blobs(5000, 2, SPREAD)
    found = islands(np.vstack([Y, [[1e6, 1e6]]]))
    assert found[-1] == 0
    assert agreement(found[:-1], group) > 0.93


@pytest.mark.parametrize("Y", [np.zeros((500, 2)), np.ones((1, 3)), np.arange(15.0)[:, None]])
def test_a_map_without_density_is_one_cluster(Y):
    assert (islands(Y) == 1).all()


def test_points_on_few_places_are_grouped_by_place():
    place = np.arange(900) % 3
    found = islands(10.0 * place[:, None])
    assert agreement(found, place) == 1


def test_more_dimensions_are_refused():
    with pytest.raises(DataError, match="1, 2 or 3 dimensions, not 4"):
        islands(np.zeros((50, 4)))


def test_a_million_points_are_grouped_as_well():
    Y, group = blobs(1_000_000, 2, SPREAD)
    assert agreement(islands(Y), group) > 0.95


@pytest.mark.parametrize("shape", [(200,), (60, 45), (20, 15, 12)])
@pytest.mark.parametrize("width", [1.0, 2.7])
def test_the_smoothing_is_a_gaussian_filter(shape, width):
    from scipy.ndimage import gaussian_filter

    from lowland.metrics.hills import _smooth

    counts = np.random.default_rng(0).poisson(0.3, shape)
    expected = gaussian_filter(counts.astype(np.float64), width, mode="constant", truncate=3.0)
    np.testing.assert_allclose(_smooth(counts, width), expected, rtol=1e-6, atol=1e-9)
