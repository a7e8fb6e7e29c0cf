"""Boxes that are moved apart."""

from __future__ import annotations

import numpy as np

from lowland.plot._placement import separate
from support.cases import each

BOUNDS = np.array([[0.0, 0.0], [500.0, 400.0]])


def overlaps(places, sizes):
    apart = np.abs(places[:, None] - places[None])
    touching = (apart < (sizes[:, None] + sizes[None]) / 2 - 1e-5).all(axis=2)
    return touching[np.triu_indices(len(places), 1)].any()


@each("seed", range(5))
def test_boxes_are_moved_apart_within_the_bounds(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.uniform(0.3, 0.7, (25, 2)) * BOUNDS[1]
    sizes = np.column_stack([rng.uniform(20, 90, 25), np.full(25, 14.0)])
    assert overlaps(wanted, sizes)
    places = separate(wanted, sizes, BOUNDS)
    assert not overlaps(places, sizes)
    assert (places - sizes / 2 >= 0).all()
    assert (places + sizes / 2 <= BOUNDS[1]).all()


def test_boxes_that_are_apart_stay():
    wanted = np.array([[100.0, 100.0], [300.0, 300.0]])
    assert np.array_equal(separate(wanted, np.full((2, 2), 50.0), BOUNDS), wanted)


def test_equal_places_are_parted_too():
    wanted = np.full((6, 2), 200.0)
    sizes = np.tile([60.0, 12.0], (6, 1))
    places = separate(wanted, sizes, BOUNDS)
    assert not overlaps(places, sizes)
    assert np.array_equal(wanted, np.full((6, 2), 200.0))


def test_without_room_all_boxes_stay_within_the_bounds():
    wanted = np.full((50, 2), 10.0)
    places = separate(wanted, np.tile([400.0, 100.0], (50, 1)), BOUNDS)
    assert (places >= 0).all()
    assert (places <= BOUNDS[1]).all()
    wide = separate(np.zeros((1, 2)), np.array([[900.0, 10.0]]), BOUNDS)
    assert wide[0, 0] == 250


def test_boxes_leave_fixed_ones_where_they_are():
    wanted = np.array([[100.0, 100.0], [120.0, 104.0], [300.0, 200.0]])
    sizes = np.full((3, 2), 30.0)
    fixed = np.array([[104.0, 101.0], [310.0, 205.0]])
    places = separate(wanted, sizes, BOUNDS, (fixed, np.full((2, 2), 8.0)))
    assert places.shape == (3, 2)
    for place in places:
        assert (np.abs(place - fixed) >= 19.0 - 1e-6).any(axis=1).all()
    assert (np.abs(places[0] - places[1]) >= 30.0 - 1e-6).any()
