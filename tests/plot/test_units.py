"""Pictures of a grid of units: cells touch, colors follow the values, names are shown."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from lowland._base.errors import DataError, ParameterError
from lowland._engines.grids.lattice import Lattice
from lowland.plot import component_planes, hits, labeled_units, save_figure, u_matrix
from lowland.plot._figure import png_bytes
from lowland.plot._style import GREY, category_colors
from support.cases import each

RNG = np.random.default_rng(0)


def places_of(kind, sides):
    return Lattice(kind, sides, (False, False)).places()


def cells(figure, panel=0, layer=0):
    """The corners and the colors of the cells."""
    collection = figure.axes[panel].collections[layer]
    corners = [path.vertices[:-1] for path in collection.get_paths()]
    colors = collection.get_facecolors()
    return corners, np.resize(colors, (len(corners), 4)) if len(colors) == 1 else colors


def area(corners):
    x, y = corners.T
    return 0.5 * abs(x @ np.roll(y, 1) - y @ np.roll(x, 1))


def brightness(colors):
    return colors[:, :3] @ [0.299, 0.587, 0.114]


@each("kind", ["hexagon", "rectangle"])
def test_cells_fill_the_plane_without_overlap(kind):
    places = places_of(kind, (6, 5))
    corners, _ = cells(u_matrix(places, np.arange(30.0), kind))
    assert len(corners) == 30
    assert {len(points) for points in corners} == {6 if kind == "hexagon" else 4}
    np.testing.assert_allclose([points.mean(axis=0) for points in corners], places, atol=1e-9)
    # the area of a cell is that of one unit of the lattice, and an inner corner has three cells
    step = np.sqrt(3) / 2 if kind == "hexagon" else 1.0
    np.testing.assert_allclose([area(points) for points in corners], step)
    _, times = np.unique(np.round(np.concatenate(corners), 6), axis=0, return_counts=True)
    assert times.max() == (3 if kind == "hexagon" else 4)


@each("scale", [1.0, 0.01, 1000.0])
def test_the_size_of_a_cell_is_that_of_the_step(scale):
    places = places_of("rectangle", (4, 3)) * scale
    corners, _ = cells(u_matrix(places, np.arange(12.0), "rectangle"))
    np.testing.assert_allclose([area(points) for points in corners], scale**2)


def test_the_darker_a_cell_of_the_u_matrix_the_farther_are_its_neighbors():
    values = RNG.permutation(20).astype(float)
    values[3] = np.nan
    figure = u_matrix(places_of("hexagon", (5, 4)), values)
    _, colors = cells(figure)
    known = ~np.isnan(values)
    assert (np.diff(brightness(colors[known])[np.argsort(values[known])]) < 0).all()
    np.testing.assert_allclose(colors[3, :3], to_rgb(GREY))
    assert "dark: far" in figure.axes[-1].get_ylabel()
    assert figure.axes[-1].get_legend().get_texts()[0].get_text() == "missing"


def test_each_column_has_a_plane_with_its_name_and_range():
    places = places_of("rectangle", (4, 3))
    codebook = np.stack([np.arange(12.0), -np.arange(12.0) / 4, np.full(12, 7.0)], axis=1)
    figure = component_planes(places, codebook, ["up", "$down_$", "flat"], "rectangle", title="t")
    panels = [axes for axes in figure.axes if axes.collections and axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["up", "$down_$", "flat"]
    assert [axes.texts[0].get_text() for axes in panels] == ["0.0 to 11.0", "-2.75 to 0.00", "7"]
    up, down = cells(figure, 0)[1], cells(figure, 1)[1]
    assert (np.diff(brightness(up)) > 0).all()
    assert (np.diff(brightness(down)) < 0).all()
    assert len({tuple(color) for color in cells(figure, 2)[1]}) == 1
    png_bytes(figure, dpi=40)


def test_of_many_columns_the_most_varying_come_first_and_the_others_are_named():
    places = places_of("hexagon", (5, 4))
    spread = RNG.permutation(40) + 1.0
    codebook = np.linspace(-1, 1, 20)[:, None] * spread
    names = [f"c{i}" for i in range(40)]
    figure = component_planes(places, codebook, names)
    shown = [axes.get_title() for axes in figure.axes if axes.get_title()]
    order = np.argsort(-spread)
    assert shown == [names[i] for i in order[:16]]
    left_out = figure.get_supxlabel().replace("\n", " ")
    assert left_out.endswith("and 16 more")
    assert ": " + ", ".join(names[i] for i in order[16:24]) + " and" in left_out
    weighted = component_planes(places, codebook, names, variation=-spread, most=3)
    shown = [axes.get_title() for axes in weighted.axes if axes.get_title()]
    assert shown == [names[i] for i in order[::-1][:3]]


def test_the_area_of_a_hit_is_proportional_to_its_rows():
    counts = np.array([0, 1, 4, 9, 16, 2])
    places = places_of("rectangle", (3, 2))
    figure = hits(places, counts, "rectangle")
    whole, _ = cells(figure, layer=0)
    filled, _ = cells(figure, layer=1)
    np.testing.assert_allclose([area(points) for points in whole], 1.0)
    np.testing.assert_allclose([area(points) for points in filled], counts / 16, atol=1e-12)
    assert [text.get_text() for text in figure.axes[0].texts] == ["1", "4", "9", "16", "2"]
    assert figure.axes[0].get_title(loc="right") == "a full cell: 16 rows; 1 of 6 units is empty"


def test_units_have_the_color_of_their_label_and_empty_ones_are_blank():
    places = places_of("hexagon", (3, 2))
    labels = ["c", "a", None, "a", "c", float("nan")]
    figure = labeled_units(places, labels, classes=["a", "b", "c"], label_name="kind")
    _, colors = cells(figure)
    a, _, c = (to_rgb(color) for color in category_colors(3))
    for found, wanted in zip(colors, [c, a, (1, 1, 1), a, c, (1, 1, 1)], strict=True):
        np.testing.assert_allclose(found[:3], wanted)
    assert [text.get_text() for text in figure.axes[0].texts] == ["c", "a", "a", "c"]
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]
    assert legend.get_title().get_text() == "kind"


def test_a_lower_share_is_paler_and_the_picture_says_so():
    places = places_of("rectangle", (4, 1))
    shares = np.array([1.0, 0.7, 0.4, np.nan])
    figure = labeled_units(places, ["a", "a", "a", None], shares, "rectangle")
    _, colors = cells(figure)
    assert (np.diff(brightness(colors)[:3]) > 0).all()
    np.testing.assert_allclose(colors[0, :3], to_rgb(category_colors(1)[0]))
    np.testing.assert_allclose(colors[3], 1.0)
    assert "paler" in figure.axes[0].get_title(loc="right")
    plain = labeled_units(places, ["a"] * 4, [1.0] * 4, "rectangle")
    assert plain.axes[0].get_title(loc="right") == ""


def test_text_in_a_cell_differs_from_its_color():
    places = places_of("rectangle", (10, 1))
    figure = labeled_units(places, np.arange(10), kind="rectangle")
    _, colors = cells(figure)
    texts = figure.axes[0].texts
    assert len(texts) == 10
    for text, color in zip(texts, brightness(colors), strict=True):
        assert abs(brightness(np.array([to_rgb(text.get_color())]))[0] - color) > 0.4


def test_numbers_as_labels_get_a_scale():
    figure = labeled_units(places_of("rectangle", (5, 5)), np.linspace(0, 1, 25), kind="rectangle")
    assert (np.diff(brightness(cells(figure)[1])) > 0).all()
    assert not figure.legends


@pytest.mark.slow
@each(
    ("kind", "sides"),
    [
        *(("hexagon", sides) for sides in [(1, 1), (1, 7), (7, 1), (2, 40), (40, 25)]),
        *(("rectangle", sides) for sides in [(1, 1), (1, 7), (60, 1)]),
    ],
)
def test_grids_of_any_shape_are_drawn(kind, sides, tmp_path):
    places = places_of(kind, sides)
    m = len(places)
    values = RNG.random(m)
    values[0] = np.nan
    names = ["a name that is much longer than there is room for", "$x$ <b>", "\n"]
    figures = [
        u_matrix(places, values, kind, title="a long title " * 9),
        component_planes(places, RNG.random((m, 3)), names, kind),
        hits(places, np.arange(m), kind, title="t"),
        labeled_units(places, [None, *["x", "yy"] * m][:m], values, kind),
    ]
    for figure in figures:
        width, height = figure.get_size_inches()
        assert 0.9 < height < 9
        assert 2 < width < 14
        png_bytes(figure, dpi=30)
    save_figure(figures[0], tmp_path / "u.svg")


@each(
    "values", [np.zeros(6), np.full(6, np.nan), np.full(6, 1e300), 1e-310 * np.arange(6.0),
               np.array([-1e307, 1e307, 0, 0, 0, np.inf]), np.array([0, 0, 0, 0, 0, 1e9])],
)  # fmt: skip
def test_constant_missing_and_extreme_values_are_drawn(values):
    places = places_of("hexagon", (3, 2))
    for figure in (
        u_matrix(places, values),
        component_planes(places, np.stack([values, values[::-1]], axis=1), most=1),
    ):
        assert len(cells(figure)[0]) == 6
        png_bytes(figure, dpi=30)


def test_empty_units_only():
    places = places_of("hexagon", (3, 2))
    png_bytes(labeled_units(places, [None] * 6, [np.nan] * 6), dpi=30)
    figure = hits(places, np.full(6, np.nan))
    assert "6 of 6 units are empty" in figure.axes[0].get_title(loc="right")
    png_bytes(figure, dpi=30)


def test_a_chain_of_units_may_have_one_coordinate():
    figure = u_matrix(np.arange(5.0)[:, None], np.arange(5.0), "hexagon")
    corners, _ = cells(figure)
    np.testing.assert_allclose([area(points) for points in corners], 1.0)


def test_what_does_not_fit_is_named():
    places = places_of("hexagon", (3, 2))
    with pytest.raises(ParameterError, match="hexagon"):
        u_matrix(places, np.arange(6.0), "hexagonal")
    with pytest.raises(DataError, match="6 numbers"):
        u_matrix(places, np.arange(5.0))
    with pytest.raises(DataError, match="2 dimensions"):
        hits(np.zeros((6, 3)), np.arange(6))
    with pytest.raises(DataError, match="below 0"):
        hits(places, [-1, 0, 0, 0, 0, 0])
    with pytest.raises(DataError, match="shape \\(5, 2\\)"):
        component_planes(places, np.zeros((5, 2)))
    with pytest.raises(DataError, match="3 names"):
        component_planes(places, np.zeros((6, 2)), ["a", "b", "c"])
    with pytest.raises(ParameterError, match="most=0"):
        component_planes(places, np.zeros((6, 2)), most=0)
    with pytest.raises(DataError, match="labels"):
        labeled_units(places, ["a"])
