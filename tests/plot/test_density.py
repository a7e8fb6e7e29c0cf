"""Many points: shades instead of dots."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from lowland.plot import compare_maps, distortion_map, pairs_plot, save_figure, scatter_map
from lowland.plot._points import density_image, shades
from lowland.plot._style import DARK_GREY, GREY, OKABE_ITO
from lowland.plot.colors import MISSING, OTHER, Categories, Continuum

BOX = (0.0, 2.0, 0.0, 2.0)
WHITE = np.ones(3)
# four cells: x and y of their centers
LEFT_LOW, RIGHT_LOW, LEFT_HIGH = (0.5, 0.5), (1.5, 0.5), (0.5, 1.5)


def image(places, coloring):
    x, y = np.array(places).T
    return density_image(x, y, coloring, BOX, 2, WHITE)


def mixed(color, strength):
    return WHITE + strength * (np.array(to_rgb(color)) - WHITE)


def test_a_cell_has_the_color_of_the_category_most_of_its_points_have():
    places = [LEFT_LOW] * 5 + [RIGHT_LOW] * 5
    codes = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1, 2])
    drawn = image(places, Categories(codes, ("a", "b", "c")))
    assert drawn[0, 0] == pytest.approx(mixed(OKABE_ITO[1], 1.0))
    assert drawn[0, 1] == pytest.approx(mixed(OKABE_ITO[0], 1.0))
    assert (drawn[1] == 1).all()


def test_grey_rows_show_only_where_no_named_category_is():
    places = [LEFT_LOW] * 4 + [RIGHT_LOW] * 4 + [LEFT_HIGH] * 4
    codes = np.array([MISSING, MISSING, OTHER, 1] + [MISSING] * 3 + [OTHER] + [MISSING] * 4)
    drawn = image(places, Categories(codes, ("a", "b"), 3))
    assert drawn[0, 0] == pytest.approx(mixed(OKABE_ITO[1], 1.0))
    assert drawn[0, 1] == pytest.approx(mixed(DARK_GREY, 1.0))
    assert drawn[1, 0] == pytest.approx(mixed(GREY, 1.0))
    only_missing = image(places, Categories(np.full(12, MISSING), ()))
    assert only_missing[0, 0] == pytest.approx(mixed(GREY, 1.0))


def test_the_more_points_the_stronger_the_color():
    places = [LEFT_LOW] * 100 + [RIGHT_LOW] * 10 + [LEFT_HIGH]
    drawn = image(places, Categories(np.zeros(111, int), ("a",)))
    white = drawn @ [1, 1, 1]
    assert white[0, 0] < white[0, 1] < white[1, 0] < white[1, 1] == 3
    unlabeled = image(places, None) @ [1, 1, 1]
    assert unlabeled[0, 0] < unlabeled[0, 1] < unlabeled[1, 0] < unlabeled[1, 1] == 3


def test_shades_grow_with_the_count_and_are_full_where_no_cell_has_two_points():
    assert shades(np.array([1, 10, 100])) == pytest.approx([0, 0.5, 1], abs=0.01)
    assert (shades(np.ones(9, int)) == 1).all()


def test_numbers_are_averaged_and_missing_ones_do_not_count():
    from matplotlib import colormaps

    places = [LEFT_LOW] * 3 + [RIGHT_LOW] * 3
    values = np.array([0.0, 0.5, np.nan, np.nan, np.nan, np.nan])
    drawn = image(places, Continuum(values, 0.0, 1.0))
    assert drawn[0, 0] == pytest.approx(np.array(colormaps["viridis"](0.25)[:3]))
    assert drawn[0, 1] == pytest.approx(mixed(GREY, 1.0))


@pytest.mark.parametrize("labels", ["names", "numbers", None])
def test_more_than_100_000_points_are_an_image_and_the_picture_says_so(labels):
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((100_001, 2))
    kinds = {"names": np.array(["a", "b"])[(Y[:, 0] > 0) * 1], "numbers": Y[:, 1], None: None}
    axes = scatter_map(Y, kinds[labels]).axes[0]
    assert not axes.collections
    assert len(axes.images) == 1
    assert axes.get_title(loc="right") == "100,001 points, shaded by density"
    assert axes.get_aspect() == 1.0
    low, high = axes.get_xlim()
    assert axes.images[0].get_extent()[:2] == pytest.approx((low, high))
    assert low < Y[:, 0].min()
    assert Y[:, 0].max() < high


def test_where_to_shade_can_be_chosen():
    Y = np.random.default_rng(0).standard_normal((500, 2))
    assert scatter_map(Y, density=True).axes[0].images
    assert not scatter_map(Y).axes[0].images
    assert scatter_map(np.zeros((100_001, 2)), density=False).axes[0].collections


def test_the_image_lies_where_the_points_are():
    """The upper right of the image is the upper right of the map."""
    Y = np.array([[0.0, 0.0]] * 50 + [[1.0, 1.0]] * 50 + [[1.0, 0.0]])
    pixels = scatter_map(Y, ["a"] * 50 + ["b"] * 50 + ["c"], density=True).axes[0].images[0]
    assert pixels.origin == "lower"
    array = np.asarray(pixels.get_array())
    row, column = (array @ [1, 1, 1] < 3).nonzero()
    upper = row > len(array) / 2
    assert (column[upper] > len(array) / 2).all()
    assert array[row[upper][0], column[upper][0]] == pytest.approx(np.array(to_rgb(OKABE_ITO[1])))


def test_other_maps_are_shaded_too():
    Y = np.random.default_rng(0).standard_normal((300, 3))
    assert all(axes.images for axes in compare_maps([Y, Y], density=True).axes)
    assert distortion_map(Y, Y[:, 0], density=True).axes[0].images
    pairs = pairs_plot(Y, density=True)
    assert sum(bool(axes.images) for axes in pairs.axes) == 3
    assert scatter_map(Y[:, :1], density=True).axes[0].images


def test_a_million_points_make_a_small_picture(tmp_path):
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((1_000_000, 2))
    names = np.array([f"kind {i}" for i in range(40)], dtype=object)[rng.integers(0, 40, len(Y))]
    save_figure(scatter_map(Y, names, title="a million"), tmp_path / "map.png")
    assert 10_000 < (tmp_path / "map.png").stat().st_size < 2_000_000
