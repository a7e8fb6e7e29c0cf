"""Shades behind the points of a map."""

import numpy as np

from lowland.plot import scatter_map
from lowland.plot.maps import CELLS, DARKEST

Y = np.random.default_rng(0).normal(size=(30, 2))


def shades(figure):
    (image,) = figure.axes[0].images
    return image.get_array()[:, :, 0]


def test_low_numbers_are_white_and_high_ones_gray():
    seen = []

    def to_the_right(places):
        seen.append(places)
        return places[:, 0]

    figure = scatter_map(Y, background=to_the_right)
    gray = shades(figure)
    assert gray.shape == (CELLS, CELLS)
    assert np.isclose(gray[:, 0], 1.0).all()
    assert np.isclose(gray[:, -1], DARKEST).all()
    (places,) = seen
    assert places[:, 0].min() <= Y[:, 0].min()
    assert places[:, 1].max() >= Y[:, 1].max()
    assert "uncertainty" in figure.axes[0].get_title(loc="right")


def test_the_upper_end_is_above():
    gray = shades(scatter_map(Y, background=lambda places: places[:, 1]))
    assert gray[0].mean() > gray[-1].mean()  # the first row of the image is the lowest


def test_places_are_in_the_units_of_the_map():
    seen = []

    def far(places):
        seen.append(np.abs(places).max())
        return places[:, 0]

    scatter_map(1e40 * Y, background=far)
    assert 1e40 < seen[0] < 1e41


def test_nothing_is_drawn_where_nothing_varies_or_the_map_is_no_plane():
    for shade in (lambda p: np.zeros(len(p)), lambda p: np.where(p[:, 0] > 0, np.inf, 0.0)):
        assert not scatter_map(Y, background=shade).axes[0].images
    scatter_map(Y[:, :1], background=None)
    assert not scatter_map(np.hstack([Y, Y]), background=lambda p: p[:, 0]).axes[0].images
