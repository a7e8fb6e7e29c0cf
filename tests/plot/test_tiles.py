"""The tiled picture of a map that is a torus."""

from __future__ import annotations

import numpy as np
import pytest

from lowland._base.errors import DataError, ParameterError
from lowland.plot import tiled_map
from support.cases import each

SIDES = np.array([1.5, 1.0])
Y = np.random.default_rng(0).random((60, 2)) * SIDES
NAMES = np.array(["a", "b", "c"])[np.arange(60) % 3]


def drawn(figure, *, faded):
    """The points and their colors without opacity; copies are the fainter ones."""
    points, colors = [], []
    opacities = [c.get_facecolors()[0, 3] for c in figure.axes[0].collections]
    for collection in figure.axes[0].collections:
        if (collection.get_facecolors()[0, 3] < 0.99 * max(opacities)) == faded:
            points.append(collection.get_offsets())
            n = len(points[-1])
            colors.append(np.resize(collection.get_facecolors()[:, :3], (n, 3)))
    return np.vstack(points), np.vstack(colors)


@each("margin", [0.1, 0.25, 1.0])
def test_copies_are_whole_periods_away_and_have_the_color_of_their_point(margin):
    figure = tiled_map(Y, SIDES, NAMES, margin=margin)
    figure.canvas.draw()
    points, colors = drawn(figure, faded=False)
    assert sorted(map(tuple, points)) == sorted(map(tuple, Y))
    copies, copied_colors = drawn(figure, faded=True)
    expected = [
        tuple(np.round(y + np.array([i, j]) * SIDES, 9))
        for y in Y
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
        and -margin * 1.5 <= y[0] + 1.5 * i <= (1 + margin) * 1.5
        and -margin <= y[1] + j <= 1 + margin
    ]
    assert sorted(map(tuple, np.round(copies, 9))) == sorted(expected)
    for copy, color in zip(copies, copied_colors, strict=True):
        original = np.abs(points - np.mod(copy, SIDES)).sum(axis=1).argmin()
        np.testing.assert_allclose(colors[original], color)


def test_the_frame_is_one_period_and_coordinates_beyond_it_come_back():
    axes = tiled_map(Y + 3 * SIDES, SIDES).axes[0]
    corners = axes.lines[0].get_xydata()
    np.testing.assert_allclose(corners.min(axis=0), 0)
    np.testing.assert_allclose(corners.max(axis=0), SIDES)
    points, _ = drawn(axes.figure, faded=False)
    np.testing.assert_allclose(points[np.lexsort(points.T)], Y[np.lexsort(Y.T)], atol=1e-9)
    assert axes.get_aspect() == 1.0
    np.testing.assert_allclose(axes.get_xlim(), (-0.25 * 1.5, 1.25 * 1.5))


def test_numbers_no_labels_no_margin_and_names():
    assert len(tiled_map(Y, SIDES, Y[:, 0], label_name="x").axes) == 2  # with a color bar
    none = tiled_map(Y, SIDES, margin=0).axes[0]
    assert sum(len(c.get_offsets()) for c in none.collections) == 60
    named = tiled_map(Y[:5], SIDES, names=list("abcde"), title="a torus")
    named.canvas.draw()
    assert {text.get_text() for text in named.axes[0].texts} == set("abcde")
    assert named._suptitle.get_text() == "a torus"


@each(
    ("given", "error"),
    [
        ((Y[:, :1], SIDES), DataError),
        ((Y, [1.0]), DataError),
        ((Y, [1.0, 0.0]), DataError),
        ((Y, [1.0, np.nan]), DataError),
        ((Y, SIDES, NAMES[:5]), DataError),
    ],
)
def test_what_does_not_fit_is_refused(given, error):
    with pytest.raises(error):
        tiled_map(*given)
    with pytest.raises(ParameterError, match="margin"):
        tiled_map(Y, SIDES, margin=2)
