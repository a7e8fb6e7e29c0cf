"""The picture of where a map can be believed."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import FancyArrowPatch

from lowland._base.errors import DataError, ParameterError
from lowland.metrics import Gap
from lowland.plot import save_figure, trust_map
from lowland.plot._points import DENSE
from lowland.plot.trust import CORNERS, NOT_MEASURED, SIDE, bivariate_cells, bivariate_colors
from lowland.trust import trust
from support.cases import each

N = 60


def judged(dimensions=2, n=N, scale=1.0):
    """A hand-made result: four islands in a row, gaps of all kinds, two misplaced points."""
    rng = np.random.default_rng(0)
    island_of = np.arange(n) % 4 + 1
    Y = rng.normal(size=(n, dimensions)) * 1.5
    Y[:, 0] += 10.0 * island_of
    missing, strangers = np.zeros(n), np.zeros(n)
    kind = np.zeros(n, np.int8)
    home = Y.copy()
    kind[[0, 5]], missing[[0, 5]], strangers[[0, 5]] = 1, 1.0, 1.0
    home[0], home[5] = Y[7], Y[11]
    missing[9] = strangers[9] = np.nan
    inner = Gap(2, 2, 0.0, 0.1, 0.0, "real")
    islands = [
        SimpleNamespace(
            number=i,
            rows=n // 4,
            center=Y[island_of == i].mean(axis=0) * scale,
            inner=inner if i == 2 else None,
        )
        for i in (1, 2, 3, 4)
    ]
    gaps = [
        Gap(1, 2, 0.0, 0.1, 0.0, "real"),
        Gap(2, 3, 0.1, 0.1, 1.0, "not in the data"),
        Gap(3, 4, 0.04, 0.1, 0.4, "unclear"),
        Gap(2, 4, 0.0, 0.1, 0.0, "bridged", (3,)),
    ]
    points = SimpleNamespace(
        missing=missing, strangers=strangers, home=home * scale, kind=kind, spread=np.ones(n)
    )
    return SimpleNamespace(
        coordinates=Y * scale,
        points=points,
        islands=islands,
        island_of=island_of,
        gaps=gaps,
        worst=lambda most: np.array([0, 5])[:most],
    )


def single(axes):
    """The points of a map: rasterized scatters, without those that are drawn once more."""
    scatters = [one for one in axes.collections if isinstance(one, PathCollection)]
    return [one for one in scatters if one.get_rasterized() and one.get_zorder() < 3]


def arrows(axes):
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def lines(axes):
    """Ends of the gaps' lines by verdict."""
    found = [one for one in axes.collections if isinstance(one, LineCollection)]
    return {one.get_label(): one.get_segments() for one in found}


def entries(figure):
    return [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]


def color_at(axes, place):
    """The hexadecimal color of the point at a place."""
    for scatter in single(axes):
        at = np.asarray(scatter.get_offsets())
        near = np.flatnonzero((np.abs(at - place) < 1e-12).all(axis=1))
        if near.size:
            colors = scatter.get_facecolors()
            return to_hex(colors[near[0] if len(colors) > 1 else 0])
    raise AssertionError(f"there is no point at {place}")


# --- colors --------------------------------------------------------------------------------------


def test_the_corners_of_the_square_are_the_colors_of_the_four_kinds():
    colors = bivariate_colors()
    for (missing, strangers), color in CORNERS.items():
        corner = colors[missing * (SIDE - 1), strangers * (SIDE - 1)]
        np.testing.assert_allclose(corner, to_rgb(color))
    np.testing.assert_allclose(colors[2, 2], np.mean([to_rgb(c) for c in CORNERS.values()], axis=0))


@each(
    ("missing", "strangers", "cell"),
    [(0.0, 0.0, 0), (1.0, 1.0, 24), (3 / 15, 0.0, 5), (0.0, 9 / 15, 3), (0.19, 0.99, 4)],
)
def test_a_point_has_the_cell_of_its_two_shares(missing, strangers, cell):
    assert bivariate_cells(np.array([missing]), np.array([strangers])).codes.tolist() == [cell]


def test_points_have_the_color_of_their_shares_and_unmeasured_ones_are_pale():
    found = judged()
    found.points.missing[3], found.points.strangers[3] = 1.0, 0.0
    found.points.missing[4], found.points.strangers[4] = 0.0, 1.0
    axes = trust_map(found).axes[0]
    Y = found.coordinates
    expected = {0: CORNERS[1, 1], 1: CORNERS[0, 0], 3: CORNERS[1, 0], 4: CORNERS[0, 1]}
    expected[9] = NOT_MEASURED
    assert {row: color_at(axes, Y[row]) for row in expected} == expected
    assert sum(len(scatter.get_offsets()) for scatter in single(axes)) == N


def test_the_square_legend_shows_the_same_colors_with_missing_upward():
    (legend,) = trust_map(judged()).axes[-1].child_axes
    assert (legend.get_xlabel(), legend.get_ylabel()) == ("strangers", "missing")
    (image,) = legend.images
    assert image.origin == "lower"
    np.testing.assert_allclose(image.get_array(), bivariate_colors())


# --- arrows, gaps, islands -----------------------------------------------------------------------


def test_arrows_lead_from_misplaced_points_to_their_homes():
    found = judged()
    drawn = [patch._posA_posB for patch in arrows(trust_map(found).axes[0])]
    for row, (start, end) in zip([0, 5], drawn, strict=True):
        np.testing.assert_allclose(start, found.coordinates[row])
        np.testing.assert_allclose(end, found.points.home[row])
    assert len(arrows(trust_map(found, arrows=1).axes[0])) == 1
    assert not arrows(trust_map(found, arrows=0).axes[0])


def test_the_points_with_arrows_are_drawn_once_more_above_all_lines():
    found = judged()
    axes = trust_map(found).axes[0]
    above = [one for one in axes.collections if one.get_zorder() == 3.5]
    drawn = np.vstack([one.get_offsets() for one in above])
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, found.coordinates[[0, 5]]))
    assert arrows(axes)[0].get_zorder() < 3.5


def test_gaps_are_lines_by_verdict_and_real_ones_are_not_drawn():
    found = judged()
    figure = trust_map(found)
    drawn = lines(figure.axes[0])
    pairs = {"not in the data": (2, 3), "unclear": (3, 4), "bridged": (2, 4)}
    assert set(drawn) == set(pairs)
    for verdict, ends in pairs.items():
        (segment,) = drawn[verdict]
        np.testing.assert_allclose(segment, [found.islands[i - 1].center for i in ends])
    styles = {
        one.get_label(): one.get_linestyle()[0]
        for one in figure.axes[0].collections
        if isinstance(one, LineCollection)
    }
    assert styles["not in the data"][1] is None
    assert styles["unclear"][1]
    assert styles["bridged"][1]
    assert styles["unclear"] != styles["bridged"]


def test_islands_have_numbers_at_their_centers_and_a_second_ring_where_they_hold_two_groups():
    found = judged()
    axes = trust_map(found).axes[0]
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3", "4"]
    for text, island in zip(axes.texts, found.islands, strict=True):
        np.testing.assert_allclose(text.get_position(), island.center)
    rings = [one for one in axes.collections if one.get_zorder() == 4]
    centers = [tuple(np.asarray(one.get_offsets())[0]) for one in rings]
    twice = [center for center in set(centers) if centers.count(center) == 2]
    assert len(rings) == 5
    assert twice == [tuple(found.islands[1].center)]


def test_the_number_of_an_island_that_it_would_cover_stands_above_it():
    found = judged()
    found.coordinates[found.island_of == 3] = found.islands[2].center
    axes = trust_map(found).axes[0]
    above = [text.get_transform().transform(text.get_position())[1] for text in axes.texts]
    center = axes.transData.transform(found.islands[2].center)
    assert above[2] > center[1] + 5
    assert above[0] == pytest.approx(axes.transData.transform(found.islands[0].center)[1])


def test_the_legend_names_only_what_is_drawn():
    found = judged()
    names = ["to its neighbors", "not in the data", "unclear", "bridged", "holds two groups"]
    assert entries(trust_map(found)) == [*names, "not measured"]
    found.gaps = found.gaps[:1]
    found.points.missing[9] = found.points.strangers[9] = 0.0
    assert entries(trust_map(found, arrows=0)) == ["holds two groups"]
    found.islands[1].inner = None
    assert trust_map(found, arrows=0).axes[-1].get_legend() is None


# --- dimensions ----------------------------------------------------------------------------------


def test_three_and_more_dimensions_give_the_three_views_of_the_first_three():
    found = judged(dimensions=4)
    *views, _ = trust_map(found).axes
    names = [(axes.get_xlabel(), axes.get_ylabel()) for axes in views]
    assert names == [("axis 1", "axis 2"), ("axis 1", "axis 3"), ("axis 2", "axis 3")]
    for axes, view in zip(views, [(0, 1), (0, 2), (1, 2)], strict=True):
        start, end = arrows(axes)[0]._posA_posB
        np.testing.assert_allclose(start, found.coordinates[0, view])
        np.testing.assert_allclose(end, found.points.home[0, view])
        np.testing.assert_allclose(
            axes.texts[0].get_position(), found.islands[0].center[list(view)]
        )


def test_one_dimension_is_a_strip_with_level_arrows_and_arcs_between_islands():
    found = judged(dimensions=1)
    axes = trust_map(found, axis_names=["length"]).axes[0]
    assert axes.get_xlabel() == "length"
    drawn = np.vstack([one.get_offsets() for one in single(axes)])
    assert sorted(drawn[:, 0]) == pytest.approx(sorted(found.coordinates[:, 0]))
    assert np.abs(drawn[:, 1]).max() <= 0.35
    for arrow, row in zip(arrows(axes), [0, 5], strict=True):
        start, end = arrow._posA_posB
        assert start[1] == end[1]
        assert (start[0], end[0]) == (found.coordinates[row, 0], found.points.home[row, 0])
    (arc,) = lines(axes)["bridged"]
    assert arc[0, 1] == arc[-1, 1] > 0.35
    assert axes.get_ylim()[1] > arc[:, 1].max() > arc[0, 1]


@each("dimensions", [1, 2, 3])
def test_extreme_units_change_nothing(dimensions):
    """Homes and centers are scaled as the points are."""
    usual, huge = (trust_map(judged(dimensions, scale=scale)).axes[0] for scale in (1.0, 2.0**120))
    for one, other in zip(arrows(usual), arrows(huge), strict=True):
        ratio = np.array(one._posA_posB)[:, 0] / np.array(other._posA_posB)[:, 0]
        np.testing.assert_allclose(ratio, ratio[0])
    assert np.abs(huge.texts[0].get_position()[0]) <= 1


# --- as a picture --------------------------------------------------------------------------------


@each("dimensions", [1, 2, 3])
def test_real_results_are_drawn_and_nothing_is_changed(dimensions, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[100:, 0] += 8
    Y = X[:, :dimensions].copy()
    found = trust(X, Y)
    before = [found.coordinates.copy(), found.points.missing.copy(), found.points.home.copy()]
    settings = dict(matplotlib.rcParams)
    figure = trust_map(found, title="a & $b$")
    save_figure(figure, tmp_path / "one.png")
    save_figure(trust_map(found, title="a & $b$"), tmp_path / "other.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()
    after = [found.coordinates, found.points.missing, found.points.home]
    for was, is_ in zip(before, after, strict=True):
        np.testing.assert_array_equal(was, is_)
    assert dict(matplotlib.rcParams) == settings
    assert figure.get_suptitle() == "a & $b$"


def test_the_legend_lies_inside_the_picture():
    figure = trust_map(judged())
    figure.canvas.draw()
    beside = figure.axes[-1]
    for part in [beside.get_legend(), *beside.child_axes]:
        box = part.get_tightbbox(figure.canvas.get_renderer())
        assert box.x0 > figure.axes[0].get_window_extent().x1
        assert box.x1 <= figure.bbox.width
        assert box.y1 <= figure.bbox.height


def test_very_many_points_are_shaded():
    found = judged(n=DENSE + 4)
    axes = trust_map(found).axes[0]
    assert len(axes.images) == 1
    assert len(arrows(axes)) == 2
    shade = np.asarray(axes.images[0].get_array()).reshape(-1, 3)
    colored = shade[(shade < 1).any(axis=1)]
    assert (colored[:, 2] >= colored[:, 0]).mean() > 0.99  # nearly all points are fine: bluish grey


def test_a_map_without_islands_is_only_points():
    found = judged()
    found.islands, found.gaps, found.island_of = [], [], np.zeros(N, int)
    axes = trust_map(found, arrows=0).axes[0]
    assert not axes.texts
    assert not lines(axes)


def test_what_is_no_result_is_refused():
    with pytest.raises(
        ParameterError, match=r"trust=array of shape \(60, 2\).*lowland.trust.trust"
    ):
        trust_map(np.zeros((60, 2)))
    with pytest.raises(ParameterError, match="arrows=-1"):
        trust_map(judged(), arrows=-1)
    with pytest.raises(DataError, match="there are 1 axis_names for 2 axes"):
        trust_map(judged(), axis_names=["one"])
