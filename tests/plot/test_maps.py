"""Pictures of maps."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lowland._base.errors import DataError
from lowland.plot import save_figure, scatter_map
from lowland.plot._style import GREY, OKABE_ITO
from support.cases import each

rng = np.random.default_rng(0)
Y = rng.standard_normal((200, 3))


def rendered(figure):
    figure.canvas.draw()
    return figure


def legend_names(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def points(axes):
    return np.vstack([collection.get_offsets() for collection in axes.collections])


def test_every_row_is_a_point_in_a_picture_with_equal_scales():
    axes = scatter_map(Y[:, :2]).axes[0]
    assert sorted(map(tuple, points(axes))) == sorted(map(tuple, Y[:, :2]))
    assert axes.get_aspect() == 1.0


def test_one_dimension_is_a_strip_with_a_line_per_category():
    labels = np.array(["a", "b"])[np.arange(200) % 2]
    axes = scatter_map(Y[:, :1], labels).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    drawn = points(axes)
    order = {x: row for row, x in enumerate(Y[:, 0])}
    rows = np.array([order[x] for x in drawn[:, 0]])
    assert drawn[labels[rows] == "a", 1].min() > drawn[labels[rows] == "b", 1].max()


def test_above_a_strip_is_a_histogram_of_each_category_on_the_same_axis():
    labels = np.where(Y[:, 0] > 0, "right", "left")
    strip, above = scatter_map(Y[:, :1], labels).axes
    assert above.get_xlim() == strip.get_xlim()
    left, right = (stairs.get_data() for stairs in above.patches if not stairs.get_fill())
    for drawn in (left, right):
        assert drawn.values.sum() == pytest.approx(1.0)
    assert right.values[right.edges[1:] < 0].sum() == 0
    (all_rows,) = scatter_map(Y[:, :1]).axes[1].patches
    counts = np.histogram(Y[:, 0], all_rows.get_data().edges)[0]
    assert all_rows.get_data().values * len(Y) == pytest.approx(counts)


@pytest.mark.parametrize("dimensions", [3, 7])
def test_more_dimensions_give_the_three_views_of_the_first_three(dimensions):
    figure = scatter_map(rng.standard_normal((50, dimensions)))
    names = [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]
    assert names == [("axis 1", "axis 2"), ("axis 1", "axis 3"), ("axis 2", "axis 3")]


def test_a_legend_names_the_categories_in_their_natural_order():
    labels = np.array(["type 10", "type 9", "type 1"])[np.arange(200) % 3]
    assert legend_names(scatter_map(Y[:, :2], labels)) == ["type 1", "type 9", "type 10"]


def test_a_few_different_numbers_are_categories_and_many_are_a_color_bar():
    assert legend_names(scatter_map(Y[:, :2], np.arange(200) % 12)) == [str(i) for i in range(12)]
    figure = scatter_map(Y[:, :2], Y[:, 2], label_name="height")
    assert not figure.legends
    assert figure.axes[1].get_ylabel() == "height"


def test_the_rarest_of_many_categories_are_grouped():
    labels = np.repeat([f"c{i:02}" for i in range(42)], np.arange(1, 43)).astype(object)
    labels[-1] = None
    names = legend_names(scatter_map(rng.standard_normal((labels.size, 2)), labels))
    assert names == [f"c{i:02}" for i in range(12, 42)] + ["and 12 more", "missing"]


def test_missing_labels_are_grey_and_named():
    labels = np.array(["a", None] * 100, dtype=object)
    figure = scatter_map(Y[:, :2], labels)
    assert legend_names(figure) == ["a", "missing"]
    below, above = figure.axes[0].collections
    assert set(map(tuple, below.get_offsets())) == set(map(tuple, Y[1::2, :2]))
    assert {to_hex(color) for color in below.get_facecolor()} == {GREY}
    assert {to_hex(color) for color in above.get_facecolor()} == {OKABE_ITO[0]}


def test_missing_numbers_are_grey_and_named_below_the_color_bar():
    values = np.where(np.arange(200) < 50, np.nan, Y[:, 2])
    figure = scatter_map(Y[:, :2], values)
    assert len(points(figure.axes[0])) == 200
    assert to_hex(figure.axes[0].collections[0].get_facecolor()[0]) == GREY
    assert [text.get_text() for text in figure.axes[1].get_legend().get_texts()] == ["missing"]
    assert legend_names(scatter_map(Y[:, :2], np.full(200, np.nan))) == ["missing"]


@pytest.mark.parametrize("n", [2, 20, 60])
def test_a_legend_never_covers_the_map(n):
    labels = np.array([f"a category with a long name {i}" for i in range(n)])[np.arange(200) % n]
    figure = rendered(scatter_map(Y[:, :2], labels, title="title", label_name="kind"))
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= figure.axes[0].get_window_extent().x1
    assert legend.x1 <= figure.bbox.x1
    assert legend.y0 >= figure.bbox.y0
    assert legend.y1 <= figure.bbox.y1


@each(
    "coordinates",
    [
        np.zeros((1, 2)),
        np.full((5, 2), 3e9),
        np.full((5, 1), -1.0),
        Y[:, :2] * 1e300,
        Y[:, :2] * 1e-300,
        Y[:, :2] * [1e6, 1e-6],
        np.array([[-1.7e308, 0.0], [1.7e308, 1.0]]),
    ],
    ids=["point", "constant", "constant-1d", "huge", "tiny", "thin", "extreme"],
)
def test_odd_maps_are_drawn_inside_the_frame(coordinates, tmp_path):
    figure = scatter_map(coordinates, np.arange(len(coordinates)) % 2)
    save_figure(figure, tmp_path / "map.png", dpi=30)
    axes = figure.axes[0]
    drawn, box = points(axes), np.array([axes.get_xlim(), axes.get_ylim()])
    assert (drawn >= box[:, 0]).all()
    assert (drawn <= box[:, 1]).all()
    widest = (np.ptp(drawn, axis=0) / np.ptp(box, axis=1)).max()
    flat = coordinates.shape[1] == 1 or (coordinates == coordinates[0]).all()
    assert flat or widest == pytest.approx(1 / 1.08)


def test_names_that_matplotlib_would_interpret_stay_text(tmp_path):
    labels = np.array(["$x", "_hidden", "日本", "a$b$"])[np.arange(200) % 4]
    figure = scatter_map(Y[:, :2], labels, title="50$ $", label_name="_l", axis_names=["$", "_"])
    save_figure(figure, tmp_path / "map.svg", dpi=30)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "map.svg").read_text())
    assert {"$x", "_hidden", "日本", "a$b$", "50$ $", "_l", "$", "_"} <= set(texts)
    assert legend_names(figure) == ["$x", "_hidden", "a$b$", "日本"]


def test_text_that_no_file_could_hold_is_made_printable(tmp_path):
    labels = np.array(["a\x00b", "two\nlines", "\ud800", ""], dtype=object)[np.arange(200) % 4]
    figure = scatter_map(Y[:, :2], labels, title="t\x1b")
    save_figure(figure, tmp_path / "map.svg", dpi=30)
    assert sorted(legend_names(figure)) == ["(empty)", "a\ufffdb", "two lines", "\ufffd"]


def test_names_can_be_written_where_the_categories_are_densest():
    ring = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    circle = np.column_stack([np.cos(ring), np.sin(ring)]) * 10
    far = rng.normal([40.0, 0.0], 0.5, (100, 2))
    places = np.vstack([circle, far])
    labels = np.repeat(["ring", "far", None], [400, 90, 10]).astype(object)
    labels[-10:] = None
    figure = rendered(scatter_map(places, labels, center_labels=True))
    written = {text.get_text(): np.array(text.get_position()) for text in figure.axes[0].texts}
    assert set(written) == {"ring", "far"}
    assert np.hypot(*(written["far"] - [40, 0])) < 1
    # the middle of the ring has no points, so its name must not be there
    assert np.hypot(*written["ring"]) > 7
    assert legend_names(figure) == ["missing"]


def test_names_of_rows_stand_beside_their_points():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((25, 2))
    figure = scatter_map(Y, names=[f"row number {i}" for i in range(25)])
    axes = figure.axes[0]
    figure.draw_without_rendering()
    assert [text.get_text() for text in axes.texts] == [f"row number {i}" for i in range(25)]
    extents = [text.get_window_extent() for text in axes.texts]
    points = axes.transData.transform(Y)
    assert not any(extent.contains(*point) for extent in extents for point in points)
    centers = np.array([[(e.x0 + e.x1) / 2, (e.y0 + e.y1) / 2] for e in extents])
    assert np.median(np.linalg.norm(centers - points, axis=1)) < 70
    with pytest.raises(DataError, match="there are 2 names for 25 rows"):
        scatter_map(Y, names=["a", "b"])
    equal = scatter_map(np.zeros((3, 2)), names=["a", "b", "c"])  # nowhere to go, and no warning
    assert len(equal.axes[0].texts) == 3


@each(
    ("coordinates", "labels", "message"),
    [
        (np.zeros(3), None, "rows and columns"),
        (np.zeros((0, 2)), None, "rows and columns"),
        (np.array([["a", "b"]]), None, "not a number"),
        (np.array([[0.0, 0.0], [np.nan, 1.0]]), None, "first in row 1"),
        (np.zeros((3, 2)), ["a"], "the map has 3 rows"),
        (np.zeros((3, 2)), [["a"], ["b", "c"], []], "one label per row"),
    ],
)
def test_what_cannot_be_drawn_is_refused(coordinates, labels, message):
    with pytest.raises(DataError, match=message):
        scatter_map(coordinates, labels)


def test_the_wrong_number_of_axis_names_is_refused():
    with pytest.raises(DataError, match="there are 1 axis_names for 2 axes"):
        scatter_map(Y[:, :2], axis_names=["x"])


def test_inputs_stay_as_they_are():
    coordinates, labels = Y[:, :2] * 1e-300, np.arange(200.0)
    before = coordinates.copy(), labels.copy()
    scatter_map(coordinates, labels)
    assert np.array_equal(coordinates, before[0])
    assert np.array_equal(labels, before[1])


def test_names_in_a_map_do_not_cover_each_other():
    labels = np.array([f"a longer name {i}" for i in range(12)])[np.arange(200) % 12]
    figure = rendered(scatter_map(Y[:, :2], labels, center_labels=True))
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 12
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        assert figure.axes[0].get_window_extent().contains(*box.get_points().mean(axis=0))
