"""The order of points along a curve through the map."""

import numpy as np

from lowland._engines.embedding.descent import map_order
from support.cases import each


@each("d", [1, 2, 3, 5])
@each("n", [1, 2, 500])
def test_every_point_occurs_once_and_the_map_is_not_written_to(n, d):
    Y = np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)
    before = Y.copy()
    order = map_order(Y)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    np.testing.assert_array_equal(Y, before)


def test_a_line_is_ordered_by_its_coordinate():
    Y = np.random.default_rng(1).standard_normal((300, 1))
    np.testing.assert_array_equal(map_order(Y), np.argsort(Y[:, 0]))


def test_the_curve_through_a_plane_never_jumps():
    """Hilbert's curve goes from each cell of a square to one beside it."""
    side = 32
    cells = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    Y = np.random.default_rng(2).permutation(cells) + 0.5
    corners = np.array([[0.0, 0.0], [side, side]])  # the grid of the curve is laid over the map
    order = map_order(np.concatenate([Y, corners]))
    path = Y[order[order < len(Y)]]
    np.testing.assert_array_equal(np.abs(np.diff(path, axis=0)).sum(axis=1), 1)


def test_points_in_one_place_keep_their_order():
    np.testing.assert_array_equal(map_order(np.zeros((9, 2))), np.arange(9))
