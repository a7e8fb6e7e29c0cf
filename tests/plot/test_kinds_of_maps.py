"""Maps in space, of distortion, in pairs of axes, side by side; biplots."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lowland._base.errors import DataError, ParameterError
from lowland.plot import (
    biplot,
    compare_maps,
    distortion_map,
    pairs_plot,
    save_figure,
    scatter_map,
    scatter_map_3d,
)
from lowland.plot._style import OKABE_ITO
from support.cases import each

rng = np.random.default_rng(0)
Y = rng.standard_normal((200, 4)) * [4, 2, 1, 0.5]
NAMES = np.array(["a", "b"])[np.arange(200) % 2]


def texts(artists):
    return [text.get_text() for text in artists]


def rendered(figure):
    figure.canvas.draw()
    return figure


def rows(axes):
    return sorted(map(tuple, np.vstack([c.get_offsets() for c in axes.collections])))


def turn(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


# in space


def test_a_map_in_space_holds_every_row_with_equal_scales():
    axes = scatter_map_3d(Y[:, :3], NAMES).axes[0]
    drawn = np.vstack([np.column_stack(c._offsets3d) for c in axes.collections])
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, Y[:, :3]))
    widths = [np.ptp(limits()) for limits in (axes.get_xlim, axes.get_ylim, axes.get_zlim)]
    box = axes.get_box_aspect() if hasattr(axes, "get_box_aspect") else None
    aspect = axes._box_aspect if box is None else np.asarray(box)
    ratio = np.asarray(aspect) / widths
    assert ratio == pytest.approx(np.full(3, ratio[0]))


def test_many_points_in_space_are_a_sample_that_is_named(tmp_path):
    cloud = rng.standard_normal((100_500, 3))
    figure = scatter_map_3d(cloud, cloud[:, 0])
    assert figure.axes[0].get_title(loc="right") == "100,000 of 100,500 points"
    assert sum(len(c._offsets3d[0]) for c in figure.axes[0].collections) == 100_000


@pytest.mark.parametrize("cloud", [np.zeros((1, 3)), np.full((4, 3), 5e9), np.eye(3) * 1e300])
def test_odd_maps_in_space_are_drawn(cloud, tmp_path):
    save_figure(scatter_map_3d(cloud, np.arange(len(cloud))), tmp_path / "map.png", dpi=30)


def test_a_flat_map_is_not_drawn_in_space():
    with pytest.raises(DataError, match="three columns, but Y has 2"):
        scatter_map_3d(Y[:, :2])


def test_the_names_of_axes_in_space_are_inside_the_picture():
    figure = rendered(scatter_map_3d(Y, axis_names=["first", "second", "third", "fourth"]))
    axes = figure.axes[0]
    for letter, name in zip("xyz", ("first", "second", "third"), strict=True):
        axis = getattr(axes, f"{letter}axis")
        assert axis.label.get_text() == name
        box = axis.label.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1


# distortion


def test_distortion_is_measured_from_the_best_value():
    trust = np.linspace(0.7, 1.0, 200)
    figure = distortion_map(Y[:, :2], trust)
    points = figure.axes[0].collections[0]
    assert points.get_clim() == pytest.approx((0.7, 1.0))
    assert points.get_cmap().name == "plasma"
    assert figure.axes[1].get_ylabel() == "trust"


def test_errors_are_dark_where_they_are_large():
    points = distortion_map(Y[:, :2], np.linspace(0.1, 3, 200), best=0).axes[0].collections[0]
    assert points.get_clim() == pytest.approx((0, 3))
    assert points.get_cmap().name == "plasma_r"


@pytest.mark.parametrize("value", [1.0, 0.4])
def test_constant_distortion_is_drawn_on_a_scale_that_ends_at_the_best(value):
    points = distortion_map(Y[:, :2], np.full(200, value)).axes[0].collections[0]
    low, high = points.get_clim()
    assert low <= value <= high == 1.0


def test_rows_that_were_not_measured_are_listed_as_missing():
    values = np.where(np.arange(200) < 9, np.nan, 0.5 + Y[:, 0] / 100)
    figure = distortion_map(Y[:, :2], values)
    assert texts(figure.axes[1].get_legend().get_texts()) == ["missing"]
    with pytest.raises(DataError, match="values must hold 200 numbers"):
        distortion_map(Y[:, :2], values[:5])
    nothing = distortion_map(Y[:, :2], np.full(200, np.nan))
    assert texts(nothing.legends[0].get_texts()) == ["missing"]


# pairs


def test_pairs_show_every_two_axes_once_below_the_diagonal():
    figure = pairs_plot(Y, NAMES, n_axes=3, axis_names=list("pqrs"))
    grid = np.array(figure.axes).reshape(3, 3)
    for row in range(3):
        for column in range(row):
            assert rows(grid[row, column]) == sorted(map(tuple, Y[:, [column, row]]))
    assert [axes.get_visible() for axes in grid[0]] == [True, False, False]
    assert [axes.get_xlabel() for axes in grid[2]] == ["p", "q", "r"]
    assert [axes.get_ylabel() for axes in grid[:, 0]] == ["p", "q", "r"]


def test_the_diagonal_shows_the_share_of_each_category_along_the_axis():
    figure = pairs_plot(Y, np.where(Y[:, 0] > 0, "right", "left"), n_axes=1)
    left, right = figure.axes[0].patches
    assert [to_hex(stairs.get_edgecolor()) for stairs in (left, right)] == list(OKABE_ITO[:2])
    for stairs in (left, right):
        assert stairs.get_data().values.sum() == pytest.approx(1.0)
    edges = right.get_data().edges
    assert (right.get_data().values[edges[1:] < 0] == 0).all()


def test_pairs_need_an_axis():
    with pytest.raises(ParameterError, match="n_axes=0"):
        pairs_plot(Y, n_axes=0)


# side by side


def test_maps_are_turned_to_match_the_first():
    mirrored = (Y[:, :2] * [1, -1]) @ turn(2.0) * 7 + 100
    first, second = compare_maps([Y[:, :2], mirrored], ["one", "_$two$"], NAMES).axes
    assert (first.get_title(), second.get_title()) == ("one", "_$two$")
    a, b = (np.array(axes.collections[0].get_offsets()) for axes in (first, second))
    assert b == pytest.approx(a)
    right = compare_maps([Y[:, :2], mirrored], aligned=False).axes[1]
    assert rows(right) == sorted(map(tuple, mirrored))


def test_a_line_under_each_map():
    figure = compare_maps([Y[:, :2], Y[:, :1]], notes=["recall 0.5", "recall 0.2"])
    assert figure.axes[0].get_xlabel() == "recall 0.5"
    assert figure.axes[1].get_xlabel() == "the only axis\nrecall 0.2"
    with pytest.raises(DataError, match="1 notes for 2 maps"):
        compare_maps([Y, Y], notes=["recall 0.5"])


def test_maps_of_different_dimension_are_compared():
    figure = compare_maps([Y[:, :2], Y[:, :3], Y], ["2", "3", "4"])
    drawn = [np.vstack([c.get_offsets() for c in axes.collections]) for axes in figure.axes]
    assert all(view.shape == (200, 2) for view in drawn)
    # what a map has beyond the first two axes of the reference does not turn it much
    assert np.corrcoef(drawn[0][:, 0], drawn[1][:, 0])[0, 1] > 0.99
    assert all(axes.get_aspect() == 1.0 for axes in figure.axes)


def test_a_map_of_one_dimension_is_a_histogram_beside_others_and_no_tilted_line():
    kinds = np.where(Y[:, 0] > 0, "right", "left")
    flat, line = compare_maps([Y[:, :2], -Y[:, :1]], ["2", "1"], kinds).axes
    assert flat.collections
    assert not line.collections
    outlines = [stairs for stairs in line.patches if not stairs.get_fill()]
    left, right = outlines
    assert [to_hex(stairs.get_edgecolor()) for stairs in outlines] == list(OKABE_ITO[:2])
    for stairs in outlines:
        assert stairs.get_data().values.sum() == pytest.approx(1.0)
    # mirrored to match the first axis of the first map: what is right there is right here
    edges = right.get_data().edges
    assert right.get_data().values[edges[1:] < 0].sum() == 0
    assert left.get_data().values[edges[:-1] > 0].sum() == 0
    same = compare_maps([Y[:, :2], -Y[:, :1]], ["2", "1"], kinds, aligned=False).axes[1]
    assert same.patches[-1].get_data().values[edges[:-1] > 0].sum() == 0
    assert line.get_xlabel() == "the only axis"
    # the same map as a line in the plane, as an alignment with a flat map pads it
    slope = np.column_stack([Y[:, 0], 0.3 * Y[:, 0] + 7])
    padded = compare_maps([Y[:, :2], slope], ["2", "1"], kinds).axes[1]
    assert not padded.collections
    assert padded.patches[-1].get_data().values[edges[1:] < 0].sum() == 0


@each("n_maps", [1, 4, 5, 9])
def test_panels_fill_a_grid_with_one_legend(n_maps):
    figure = rendered(compare_maps([Y] * n_maps, None, NAMES, label_name="kind", title="all"))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert len(shown) == n_maps
    assert len(figure.legends) == 1
    legend = figure.legends[0].get_window_extent()
    assert all(axes.get_window_extent().x1 <= legend.x0 for axes in shown)


@each(
    ("maps", "titles", "message"),
    [
        ([], None, "no maps"),
        ([Y, Y[:5]], None, "map 1 has 5 rows, but map 0 has 200"),
        ([Y], ["a", "b"], "2 titles for 1 maps"),
        ([Y, np.full((200, 2), np.nan)], None, "map 1 holds NaN or infinity, first in row 0"),
    ],
)
def test_maps_that_do_not_fit_are_refused(maps, titles, message):
    with pytest.raises(DataError, match=message):
        compare_maps(maps, titles)


# biplot

LOADINGS = np.array([[1.0, 0.0], [0.0, 2.0], [-0.1, 0.0], [0.0, 0.0], [1.5, 1.5]])


def test_the_strongest_variables_are_arrows_of_one_scale():
    axes = biplot(Y, LOADINGS, list("abcde"), n_arrows=3).axes[0]
    assert texts(axes.texts) == ["e", "b", "a"]
    tips = np.array([arrow.get_path().vertices.max(axis=0) for arrow in axes.patches])
    assert len(tips) == 3
    lengths = np.array([np.hypot(*arrow._posA_posB[1]) for arrow in axes.patches])
    assert lengths / lengths[0] == pytest.approx(
        np.array([np.sqrt(4.5), 2, 1]) / np.sqrt(4.5), rel=1e-9
    )


def test_a_variable_without_any_loading_gets_no_arrow():
    assert len(biplot(Y, LOADINGS).axes[0].patches) == 4
    assert not biplot(Y, np.zeros((3, 2))).axes[0].texts


def test_a_biplot_says_what_to_transpose():
    with pytest.raises(DataError, match="components_ must be transposed"):
        biplot(Y, LOADINGS[:4].T @ np.eye(4)[:, :4], list("abcd"))
    with pytest.raises(DataError, match="two axes"):
        biplot(Y[:, :1], LOADINGS)


# points


def test_larger_maps_and_smaller_panels_get_smaller_points():
    one = scatter_map(Y[:, :2]).axes[0].collections[0].get_sizes()[0]
    panel = compare_maps([np.tile(Y, (5, 1))]).axes[0].collections[0].get_sizes()[0]
    assert panel < one


def test_names_of_arrows_do_not_cover_each_other_and_stay_inside():
    angles = rng.normal(0.3, 0.1, 20)
    loadings = np.column_stack([np.cos(angles), np.sin(angles)])
    names = [f"variable number {i}" for i in range(20)]
    figure = rendered(biplot(Y, loadings, names, n_arrows=20))
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    frame = figure.axes[0].get_window_extent()
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1
        assert frame.y0 <= box.y0
        assert box.y1 <= frame.y1
