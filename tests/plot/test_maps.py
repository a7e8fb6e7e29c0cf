"""Pictures of maps."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from lowland._core.errors import DataError
from lowland.plot import save_figure, scatter_map

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
    drawn = points(scatter_map(Y[:, :1], labels).axes[0])
    order = {x: row for row, x in enumerate(Y[:, 0])}
    rows = np.array([order[x] for x in drawn[:, 0]])
    assert drawn[labels[rows] == "a", 1].min() > drawn[labels[rows] == "b", 1].max()


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
    labels = np.repeat([f"c{i:02}" for i in range(40)], np.arange(1, 41))
    names = legend_names(scatter_map(rng.standard_normal((labels.size, 2)), labels))
    assert names == [f"c{i:02}" for i in range(21, 40)] + ["other (21)"]


def test_missing_labels_are_grey_and_named():
    labels = np.array(["a", None] * 100, dtype=object)
    assert legend_names(scatter_map(Y[:, :2], labels)) == ["a", "missing"]
    values = np.where(np.arange(200) < 50, np.nan, Y[:, 2])
    assert len(points(scatter_map(Y[:, :2], values).axes[0])) == 200


def test_no_two_categories_look_the_same():
    from lowland.plot.colors import MOST_CATEGORIES, encode_labels

    categories = encode_labels(np.arange(MOST_CATEGORIES).astype(str), MOST_CATEGORIES)
    looks = [categories.style(code) for code in range(-1, MOST_CATEGORIES)]
    assert len(set(looks)) == MOST_CATEGORIES + 1


@pytest.mark.parametrize(
    "simulate",
    [
        np.eye(3),
        # Machado, Oliveira & Fernandes (2009), severity 1: no green cones, no red cones
        np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
        np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    ],
    ids=["normal", "deuteranopia", "protanopia"],
)
def test_the_palette_is_told_apart_by_color_blind_eyes(simulate):
    from matplotlib.colors import to_rgb

    from lowland.plot.colors import PALETTE

    rgb = np.array([to_rgb(color) for color in PALETTE])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ simulate.T, 0, 1)
    # OKLab, in which equal distances look equal; 0.02 is about a just visible difference
    lms = np.cbrt(
        seen @ [[0.4122, 0.2119, 0.0883], [0.5363, 0.6807, 0.2817], [0.0514, 0.1074, 0.63]]
    )
    lab = lms @ [[0.2105, 1.978, 0.0259], [0.7936, -2.4286, 0.7828], [-0.0041, 0.4506, -0.8087]]
    distances = np.linalg.norm(lab[:, None] - lab[None], axis=2)
    assert distances[np.triu_indices(len(PALETTE), 1)].min() > 0.08


@pytest.mark.parametrize("n", [2, 20, 60])
def test_a_legend_never_covers_the_map(n):
    labels = np.array([f"a category with a long name {i}" for i in range(n)])[np.arange(200) % n]
    figure = rendered(scatter_map(Y[:, :2], labels, title="title", label_name="kind"))
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= figure.axes[0].get_window_extent().x1
    assert legend.x1 <= figure.bbox.x1
    assert legend.y0 >= figure.bbox.y0
    assert legend.y1 <= figure.bbox.y1


@pytest.mark.parametrize(
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
    assert np.ptp(drawn, axis=0).max() == 0 or (
        np.ptp(drawn, axis=0) / np.ptp(box, axis=1)
    ).max() == pytest.approx(1 / 1.08)


def test_names_that_matplotlib_would_interpret_stay_text(tmp_path):
    labels = np.array(["$x", "_hidden", "日本", "a$b$"])[np.arange(200) % 4]
    figure = scatter_map(Y[:, :2], labels, title="50$ $", label_name="_l", axis_names=["$", "_"])
    save_figure(figure, tmp_path / "map.png", dpi=30)
    assert len(legend_names(figure)) == 4


def test_larger_maps_get_smaller_points():
    sizes = [
        scatter_map(np.zeros((n, 2))).axes[0].collections[0].get_sizes()[0] for n in (10, 9999)
    ]
    assert sizes[1] < sizes[0]


def test_pyplot_is_never_loaded(tmp_path):
    import subprocess

    code = (
        "import sys, numpy as np; from lowland.plot import scatter_map, save_figure; "
        "save_figure(scatter_map(np.eye(2), ['a', 'b']), sys.argv[1]); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "map.png"], check=True)


@pytest.mark.parametrize(
    ("coordinates", "labels", "message"),
    [
        (np.zeros(3), None, "rows and columns"),
        (np.zeros((0, 2)), None, "rows and columns"),
        (np.array([[0.0, 0.0], [np.nan, 1.0]]), None, "first in row 1"),
        (np.zeros((3, 2)), ["a"], "the map has 3 rows"),
    ],
)
def test_what_cannot_be_drawn_is_refused(coordinates, labels, message):
    with pytest.raises(DataError, match=message):
        scatter_map(coordinates, labels)
