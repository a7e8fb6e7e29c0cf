"""Boxes that are moved apart."""

from __future__ import annotations

import numpy as np

from lowland.plot._placement import separate, sides
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


def test_a_name_goes_to_the_side_of_its_point_that_is_free():
    size = np.array([[60.0, 10.0]])
    alone = sides(np.array([[250.0, 200.0]]), size, BOUNDS, 5.0)
    assert alone[0].tolist() == [285.0, 200.0]  # to the right, if nothing is there
    edge = sides(np.array([[480.0, 200.0]]), size, BOUNDS, 5.0)
    assert edge[0, 0] + 30 <= 500
    crowd = np.array([[250.0, 200.0], [275.0, 200.0], [250.0, 212.0], [250.0, 190.0]])
    places = sides(crowd, np.tile(size, (4, 1)), BOUNDS, 5.0)
    for place in places:  # no name hides a point
        assert ((np.abs(place - crowd) >= [30, 5]).any(axis=1)).all()
    assert not overlaps(places, np.tile(size, (4, 1)))
    # two points whose names would both go to the right and cover each other
    pair = np.array([[250.0, 200.0], [262.0, 209.0]])
    assert not overlaps(sides(pair, np.tile(size, (2, 1)), BOUNDS, 5.0), np.tile(size, (2, 1)))


def test_names_of_cities_hide_no_point_and_no_other_name():
    from lowland import ClassicalMDS
    from lowland.datasets import eurodist
    from lowland.plot import scatter_map

    data = eurodist()
    Y = ClassicalMDS(metric="precomputed").fit_transform(data.X)
    figure = scatter_map(Y, names=data.row_names)
    figure.canvas.draw()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        for x, y in axes.transData.transform(Y):
            assert not (box.x0 < x < box.x1 and box.y0 < y < box.y1)
    # each name is beside its own point
    for text, (x, y) in zip(axes.texts, axes.transData.transform(Y), strict=True):
        box = text.get_window_extent()
        nearest = np.clip((x, y), (box.x0, box.y0), (box.x1, box.y1))
        assert np.hypot(*(nearest - (x, y))) < 15
