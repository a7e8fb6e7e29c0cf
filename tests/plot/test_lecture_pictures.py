"""Pictures for lectures: the curse, recognition, opening angles, selection, chance and elbow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lowland import PCA
from lowland._base.errors import DataError, ParameterError
from lowland.plot import (
    biplot,
    curse,
    opening_angle_plot,
    recognition_strip,
    save_figure,
    scree_plot,
    selection_plot,
)
from lowland.plot.curves import distance_spread, edge_length, sphere_share
from lowland.plot.images import RIGHT, WRONG
from support.cases import each

rng = np.random.default_rng(0)


def texts(artists):
    return [text.get_text() for text in artists]


# the curse of dimensionality


def test_the_formulas_give_the_known_numbers():
    assert edge_length(0.01, 10) == pytest.approx(0.631, abs=5e-4)  # Hastie et al., section 2.5
    assert edge_length(0.1, 10) == pytest.approx(0.794, abs=5e-4)
    assert edge_length(0.3, 1) == pytest.approx(0.3)
    assert sphere_share(2) == pytest.approx(math.pi / 4)
    assert sphere_share(3) == pytest.approx(math.pi / 6)
    assert [round(100 * sphere_share(d), 1) for d in (1, 2, 3)] == [100.0, 78.5, 52.4]
    points = rng.uniform(-1, 1, (200_000, 5))
    inside = ((points**2).sum(axis=1) <= 1).mean()
    assert sphere_share(5) == pytest.approx(inside, abs=5 * math.sqrt(0.16 * 0.84 / 200_000))


def test_the_curse_draws_edges_spheres_and_distances():
    edges, spheres, distances = curse().axes
    for line, share in zip(edges.lines[:3], (50, 10, 1), strict=True):
        x, y = line.get_xdata(), line.get_ydata()
        assert (x[0], x[-1], y[0]) == (1, 20, pytest.approx(share))
        assert y == pytest.approx(100 * (y[0] / 100) ** (1 / x))
    heights = [bar.get_height() for bar in spheres.patches]
    assert heights[1:3] == pytest.approx([78.5, 52.4], abs=0.1)
    assert texts(spheres.texts)[:4] == ["100", "78.5", "52.4", "30.8"]
    assert texts(distances.get_legend().get_texts()) == ["2 columns", "10 columns", "100 columns"]
    outlines = [stairs.get_data() for stairs in distances.patches if not stairs.get_fill()]
    peaks = [drawn.values.max() for drawn in outlines]
    assert peaks == sorted(peaks)  # the more columns, the narrower and the higher
    assert {axes.get_xlabel() for axes in (edges, spheres)} == {"dimensions"}


def test_a_table_is_drawn_beside_uniform_data_of_its_size():
    line = np.outer(np.linspace(0, 1, 50), np.ones(30))  # 30 columns, one dimension
    distances = curse(line).axes[2]
    names = texts(distances.get_legend().get_texts())
    assert names == ["this table: 50 x 30", "uniform data: 50 x 30"]
    own, uniform = (stairs.get_data() for stairs in distances.patches if not stairs.get_fill())
    expected = distance_spread(line)
    assert own.values == pytest.approx(100 * np.histogram(expected, own.edges)[0] / expected.size)
    assert uniform.values.max() > 2 * own.values.max()
    assert expected.mean() == pytest.approx(1)
    assert expected.size == 50 * 49 / 2


def test_odd_tables_have_a_curse_too(tmp_path):
    for table in (np.zeros((1, 2)), np.ones((5, 3)), np.eye(3) * 1e300):
        save_figure(curse(table, title="$table"), tmp_path / "curse.png", dpi=30)
    with pytest.raises(DataError, match="NaN"):
        curse(np.full((3, 3), np.nan))


# recognition

SHAPE = (4, 6)
KNOWN = rng.uniform(0, 1, (8, 24))
MODEL = PCA(5).fit(KNOWN)


def test_each_picture_has_its_reconstruction_and_its_nearest_known_picture():
    X = np.vstack([KNOWN[3] + 0.01, KNOWN[6], 5 * KNOWN[0][::-1]])
    known_names = [f"p{i}" for i in range(8)]
    figure = recognition_strip(
        X,
        KNOWN,
        MODEL.mean_,
        MODEL.components_,
        SHAPE,
        labels=["p3", "p1", None],
        known_labels=known_names,
    )
    grid = np.array(figure.axes).reshape(3, 3)
    scores, known_scores = MODEL.transform(X), MODEL.transform(KNOWN)
    rebuilt = MODEL.inverse_transform(scores)
    for column in range(3):
        shown = [np.asarray(axes.images[0].get_array()).ravel() for axes in grid[:, column]]
        nearest = np.linalg.norm(known_scores - scores[column], axis=1).argmin()
        assert shown[0] == pytest.approx(X[column])
        assert shown[1] == pytest.approx(rebuilt[column])
        assert shown[2] == pytest.approx(KNOWN[nearest])
        error = np.sqrt(((X - rebuilt)[column] ** 2).mean()) / np.ptp(KNOWN)
        assert grid[1, column].get_title() == f"error {error:.1%}"
        assert grid[2, column].get_title() == known_names[nearest]
    assert [axes.get_title() for axes in grid[0]] == ["p3", "p1", "nobody"]
    colors = [to_hex(axes.title.get_color()) for axes in grid[2]]
    assert colors == [RIGHT, WRONG, WRONG]
    assert [axes.get_ylabel() for axes in grid[:, 0]] == ["picture", "rebuilt", "nearest known"]


def test_pictures_of_another_size_and_too_few_labels_are_refused():
    arguments = (KNOWN, MODEL.mean_, MODEL.components_, SHAPE)
    with pytest.raises(DataError, match="X has 5 columns"):
        recognition_strip(np.ones((1, 5)), *arguments)
    with pytest.raises(DataError, match="there are 2 labels for 8 pictures"):
        recognition_strip(KNOWN, *arguments, labels=["a", "b"])


# opening angles


def test_times_and_errors_are_drawn_by_angle():
    figure = opening_angle_plot([0.5, 0.1, 1.0], [0.02, 0.05, 0.01], [0.006, 0.0, 0.04], 0.06)
    times, errors = figure.axes
    assert times.lines[0].get_xdata() == pytest.approx([0.1, 0.5, 1.0])
    assert times.lines[0].get_ydata() == pytest.approx([50, 20, 10])
    assert errors.lines[0].get_ydata() == pytest.approx([0, 0.6, 4])
    assert times.lines[-1].get_ydata() == pytest.approx([60, 60])
    assert texts(times.texts) == ["all pairs: 60 ms"]
    assert times.get_ylim()[1] > 60
    far = opening_angle_plot([0.5], [0.02], [0.006], 9.0).axes[0]
    assert texts(far.texts) == ["all pairs: 9e+03 ms (above the picture)"]
    assert far.get_ylim()[1] < 100
    with pytest.raises(DataError, match="0 or more"):
        opening_angle_plot([0.5], [-1.0], [0.1])
    with pytest.raises(DataError, match="errors must hold 2 numbers"):
        opening_angle_plot([0.5, 0.6], [1.0, 1.0], [0.1])


# selection

CURVES = {
    "filter": ([1, 2, 3], [0.8, 0.85, 0.9], [0.02, 0.02, 0.01]),
    "$wrapper_": ([1, 2], [0.8, 0.95], [0.02, 0.01]),
}


def test_the_best_columns_are_bars_and_the_curves_have_bars_of_errors():
    figure = selection_plot([0.2, 0.9, 0.5], ["a", "_b", "$c"], CURVES, n_columns=2)
    bars, lines = figure.axes
    assert texts(bars.get_yticklabels()) == ["_b", "$c"]
    assert [bar.get_width() for bar in bars.patches] == pytest.approx([0.9, 0.5])
    assert bars.get_ylim()[0] > bars.get_ylim()[1]  # the best is on top
    assert texts(lines.get_legend().get_texts()) == list(CURVES)
    for container, (sizes, scores, errors) in zip(lines.containers, CURVES.values(), strict=True):
        line, _, (spans,) = container
        assert line.get_ydata() == pytest.approx(scores)
        assert line.get_xdata() == pytest.approx(sizes, abs=0.1)
        ends = np.array([segment[:, 1] for segment in spans.get_segments()])
        assert np.ptp(ends, axis=1) / 2 == pytest.approx(errors)


@each(
    ("call", "error", "message"),
    [
        (lambda: selection_plot([1.0], ["a", "b"], CURVES), DataError, "2 names for 1 scores"),
        (lambda: selection_plot([1.0], None, CURVES, n_columns=0), ParameterError, "n_columns=0"),
        (lambda: selection_plot([1.0], None, {"x": ([1, 2], [1], [1])}), DataError, "same length"),
        (lambda: selection_plot([np.nan], None, {}), DataError, "nan at position 0"),
    ],
)
def test_selections_that_do_not_fit_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# scree and biplot


def test_chance_is_a_line_and_the_components_above_it_are_counted():
    shares, chance = [0.5, 0.3, 0.1, 0.06], [0.4, 0.2, 0.2, 0.01]
    bars = scree_plot(shares, chance=chance).axes[0]
    assert bars.lines[0].get_ydata() == pytest.approx(100 * np.array(chance))
    assert texts(bars.get_legend().get_texts()) == ["chance: 2 components above it"]
    one = scree_plot(shares, chance=[0.4, 0.35]).axes[0]
    assert texts(one.get_legend().get_texts()) == ["chance: 1 component above it"]
    assert scree_plot(shares).axes[0].get_legend() is None


def test_the_elbow_is_marked_on_the_bar_where_the_curve_bends():
    shares = [0.40, 0.30, 0.05, 0.04, 0.04, 0.03]
    bars = scree_plot(shares, show_elbow=True).axes[0]
    point = bars.lines[-1]
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (3, pytest.approx(5))
    assert texts(bars.get_legend().get_texts()) == ["elbow: component 3"]


def test_a_biplot_writes_the_share_of_the_variance_on_its_axes():
    Y, loadings = rng.normal(size=(20, 3)), np.eye(4)[:, :3]
    axes = biplot(Y, loadings, shares=[0.5, 0.25, 0.125]).axes[0]
    assert axes.get_xlabel() == "component 1: 50.0 % of the variance"
    assert axes.get_ylabel() == "component 2: 25.0 % of the variance"
    named = biplot(Y, loadings, shares=[0.5, 0.25, 0.1], axis_names=list("pqr")).axes[0]
    assert named.get_xlabel() == "p"
    with pytest.raises(DataError, match="shares must hold 3 numbers"):
        biplot(Y, loadings, shares=[0.5])


def test_names_of_arrows_do_not_cover_arrows():
    loadings = np.array([[1.0, -0.2], [0.5, -0.1], [0.1, 1.0], [-0.7, 0.1]])
    figure = biplot(rng.normal(size=(50, 2)), loadings, ["length", "width", "height", "weight"])
    figure.canvas.draw()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    for arrow in axes.patches:
        tip = np.array(arrow._posA_posB[1])
        for x, y in axes.transData.transform(np.linspace(0, 1, 50)[:, None] * tip):
            assert not any(box.x0 < x < box.x1 and box.y0 < y < box.y1 for box in boxes)
