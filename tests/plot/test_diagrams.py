"""Scree, Shepard, R_NX, loss: diagrams of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lowland._base.errors import DataError
from lowland.plot import loss_plot, rnx_plot, scree_plot, shepard_plot
from support.cases import each


def texts(artists):
    return [text.get_text() for text in artists]


def test_scree_bars_are_the_shares_and_the_curve_is_their_sum():
    shares = [0.5, 0.3, 0.1, 0.06]
    each, together = scree_plot(shares, marks=(0.8, 0.95, 0.99)).axes
    assert [bar.get_height() for bar in each.patches] == pytest.approx([50, 30, 10, 6])
    assert together.lines[0].get_ydata() == pytest.approx([50, 80, 90, 96])
    assert texts(together.texts) == ["80 %: 2 components", "95 %: 4 components"]


def test_a_mark_reached_but_for_rounding_is_reached():
    shares = np.full(10, 0.1)
    assert np.cumsum(shares)[8] != 0.9
    assert texts(scree_plot(shares, marks=[0.9]).axes[1].texts) == ["90 %: 9 components"]
    assert texts(scree_plot([1.0], marks=[0.9]).axes[1].texts) == ["90 %: 1 component"]


def test_many_components_are_a_line():
    each = scree_plot(np.full(500, 1 / 500)).axes[0]
    assert not each.patches
    assert each.lines[0].get_ydata().size == 500


@each(
    ("shares", "message"),
    [
        ([0.9, 0.9], "add up to 1"),
        ([0.5, -0.1], "at least 0"),
        ([], "shape"),
        ([[0.5]], "shape"),
        ([0.5, np.nan], "nan at position 1"),
        (["a"], "not a number"),
    ],
)
def test_shares_that_are_none_are_refused(shares, message):
    with pytest.raises(DataError, match=message):
        scree_plot(shares)


def test_the_shepard_diagram_counts_every_pair_once():
    rng = np.random.default_rng(0)
    data = rng.uniform(0, 3, 5000)
    figure = shepard_plot(data, data**2, np.sort(data))
    axes, bar = figure.axes
    (mesh,) = axes.collections
    assert mesh.get_array().sum() == 5000
    assert mesh.get_rasterized()
    assert bar.get_ylabel() == "pairs"
    line = axes.lines[0]
    assert (np.diff(line.get_xdata()) >= 0).all()
    assert texts(axes.get_legend().get_texts()) == ["monotone fit"]
    assert axes.get_xlim() == pytest.approx((0, data.max()))


def test_the_histogram_has_data_to_the_right_and_the_map_upward():
    mesh = shepard_plot([3.0] * 9 + [0.0], [1.0] * 9 + [4.0]).axes[0].collections[0]
    counts = np.ma.filled(mesh.get_array(), 0)
    row, column = np.unravel_index(counts.argmax(), counts.shape)
    assert row < len(counts) / 2 <= column


def test_a_shepard_diagram_of_equal_distances_is_drawn(tmp_path):
    figure = shepard_plot([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    figure.savefig(tmp_path / "s.png", dpi=30)
    assert figure.axes[0].collections[0].get_array().sum() == 2


@each(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1.0]), "map_ must hold 2 numbers"),
        (([1.0], [1.0], [1.0, 2.0]), "fit must hold 1 numbers"),
        (([-1.0], [1.0]), "not negative"),
        (([np.inf], [1.0]), "data holds inf"),
    ],
)
def test_what_is_no_pair_of_distances_is_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        shepard_plot(*arguments)


def test_rnx_curves_are_listed_by_their_area():
    from lowland.datasets import iris
    from lowland.metrics import rnx_auc, rnx_curve

    X = iris().X
    maps = {"sepals": X[:, :2], "_petals$": X[:, 2:]}
    axes = rnx_plot({name: rnx_curve(X, Y).values for name, Y in maps.items()}).axes[0]
    areas = {name: rnx_auc(X, Y) for name, Y in maps.items()}
    assert axes.get_xscale() == "log"
    assert texts(axes.get_legend().get_texts()) == [
        f"{name} ({areas[name]:.2f})" for name in sorted(maps, key=areas.get, reverse=True)
    ]
    drawn = {to_hex(line.get_color()): line for line in axes.lines}
    named = [to_hex(line.get_color()) for line in axes.get_legend().get_lines()]
    first = drawn[named[0]].get_ydata()
    assert first == pytest.approx(rnx_curve(X, maps[max(areas, key=areas.get)]).values)


def test_long_curves_are_thinned_but_keep_their_ends_and_errors_are_a_band():
    curve = np.linspace(0.5, 0.1, 50_000)
    axes = rnx_plot({"a": curve}, errors={"a": np.full(50_000, 0.01)}).axes[0]
    x, y = axes.lines[0].get_data()
    assert x.size <= 1000
    assert (x[0], x[-1]) == (1, 50_000)
    assert y == pytest.approx(curve[x - 1])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(0.52)


def test_no_two_of_many_curves_look_the_same():
    lines = rnx_plot({f"map {i}": [0.1, 0.2, 0.3] for i in range(25)}).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 25


def test_curves_below_zero_are_inside_the_frame():
    axes = rnx_plot({"worse than random": [-0.3, -0.1]}).axes[0]
    assert axes.get_ylim()[0] < -0.3


def test_no_curves_are_refused():
    with pytest.raises(DataError, match="no curves"):
        rnx_plot({})
    with pytest.raises(DataError, match="curve 'a'"):
        rnx_plot({"a": [np.nan]})
    with pytest.raises(DataError, match="curves must be a dict"):
        rnx_plot(np.linspace(0.5, 0.1, 9))


def test_the_loss_is_drawn_at_its_steps_with_the_end_of_exaggeration():
    axes = loss_plot([4, 3, 1], [0, 50, 100], exaggeration_end=50, loss_name="KL").axes[0]
    assert axes.lines[0].get_xdata().tolist() == [0, 50, 100]
    assert axes.lines[0].get_ydata().tolist() == [4, 3, 1]
    assert axes.lines[1].get_xdata() == [50, 50]
    assert texts(axes.texts) == ["end of early exaggeration"]
    assert axes.get_ylabel() == "KL"


@pytest.mark.parametrize("end", [1, 99])
def test_the_remark_on_exaggeration_is_inside_the_picture(end):
    figure = loss_plot(np.linspace(2, 1, 100), exaggeration_end=end)
    figure.canvas.draw()
    box = figure.axes[0].texts[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_without_steps_the_losses_are_numbered():
    axes = loss_plot([1.0]).axes[0]
    assert axes.lines[0].get_xdata().tolist() == [1]
    assert not axes.texts


@each(
    ("arguments", "message"),
    [
        (([],), "losses"),
        (([1.0, np.nan],), "nan at position 1"),
        (([1.0, 2.0], [1]), "steps must hold 2"),
        (([1.0, 2.0], [2, 1]), "not go back"),
    ],
)
def test_losses_that_cannot_be_drawn_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        loss_plot(*arguments)
