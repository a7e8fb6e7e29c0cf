"""A curve or a grid drawn through rows, with lines to their projections."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from lowland._base.errors import DataError
from lowland._engines.grids.lattice import Lattice
from lowland.plot import curve_through_data, grid_through_data
from lowland.plot._figure import png_bytes
from support.cases import each

RNG = np.random.default_rng(0)
ANGLE = np.sort(RNG.random(40)) * 5
ARC = np.stack([np.cos(ANGLE), np.sin(ANGLE)], axis=1)
ROWS = ARC * (1 + 0.1 * RNG.normal(size=(40, 1)))


def lines(figure):
    """The segments of each collection of lines."""
    found = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    return [collection.get_segments() for collection in found]


@each("closed", [False, True])
def test_the_curve_runs_through_its_knots_in_their_order(closed):
    figure = curve_through_data(ROWS, ARC, closed=closed)
    [[curve]] = lines(figure)
    np.testing.assert_array_equal(curve, np.vstack([ARC, ARC[:1]]) if closed else ARC)


def test_thin_lines_lead_from_rows_to_their_projections():
    residuals, _ = lines(curve_through_data(ROWS, ARC, ARC))
    np.testing.assert_array_equal(residuals, np.stack([ROWS, ARC], axis=1))
    figure = curve_through_data(ROWS, ARC, ARC, n_lines=10)
    some, _ = lines(figure)
    assert len(some) == 10
    pairs = {tuple(row): tuple(at) for row, at in zip(ROWS, ARC, strict=True)}
    assert all(pairs[tuple(start)] == tuple(end) for start, end in some)
    assert "10 rows" in figure.axes[0].get_title(loc="right")
    assert len(lines(curve_through_data(ROWS, ARC, ARC, n_lines=0))) == 1


@each("kind", ["hexagon", "rectangle"])
def test_the_grid_has_a_line_for_each_edge_and_a_point_for_each_node(kind):
    lattice = Lattice(kind, (4, 3), (False, False))
    nodes, edges = lattice.places() + 0.1 * RNG.normal(size=(12, 2)), lattice.edges()
    figure = grid_through_data(ROWS, nodes, edges, ROWS, np.arange(40) % 3, label_name="kind")
    _, drawn = lines(figure)
    np.testing.assert_array_equal(drawn, nodes[edges])
    np.testing.assert_allclose(figure.axes[0].collections[-1].get_offsets(), nodes)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["0", "1", "2"]


def test_everything_lies_in_the_frame():
    axes = curve_through_data(ROWS, 5 * ARC).axes[0]
    assert axes.get_xlim()[0] < 5 * ARC[:, 0].min()
    assert axes.get_ylim()[1] > 5 * ARC[:, 1].max()
    assert axes.get_aspect() == 1.0


@each("scale", [1e-12, 1e40, 0.0])
def test_extreme_units_are_drawn(scale):
    figure = curve_through_data(scale * ROWS, scale * ARC, scale * ARC, title="t")
    residuals, [curve] = lines(figure)
    if scale:  # one scale for all
        ratio = np.linalg.norm(curve[1] - curve[0]) / np.linalg.norm(np.diff(residuals[0], axis=0))
        wanted = np.linalg.norm(ARC[1] - ARC[0]) / np.linalg.norm(ROWS[0] - ARC[0])
        assert ratio == pytest.approx(wanted)
    png_bytes(figure, dpi=30)


def test_one_row_one_knot_and_no_edge_are_drawn():
    png_bytes(curve_through_data(ROWS[:1], ARC[:1], ARC[:1]), dpi=30)
    png_bytes(grid_through_data(ROWS[:1], ARC[:1], np.zeros((0, 2), int)), dpi=30)
    png_bytes(grid_through_data(ROWS, ARC[:1], []), dpi=30)


def test_many_rows_are_shaded():
    rows = RNG.normal(size=(1000, 2))
    figure = curve_through_data(rows, ARC, rows, density=True, axis_names=["a", "b"])
    assert "shaded" in figure.axes[0].get_title(loc="right")
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("a", "b")
    png_bytes(figure, dpi=30)


def test_what_does_not_fit_is_named():
    with pytest.raises(DataError, match="curve has 3 columns"):
        curve_through_data(ROWS, np.zeros((4, 3)))
    with pytest.raises(DataError, match="X has 1 columns"):
        curve_through_data(ROWS[:, :1], ARC)
    with pytest.raises(DataError, match="3 projections of 40 rows"):
        curve_through_data(ROWS, ARC, ARC[:3])
    with pytest.raises(DataError, match="there are 40 nodes"):
        grid_through_data(ROWS, ARC, [(0, 40)])
    with pytest.raises(DataError, match="there are 40 nodes"):
        grid_through_data(ROWS, ARC, [(-1, 2)])
    with pytest.raises(DataError, match="pairs"):
        grid_through_data(ROWS, ARC, [(0, 1, 2)])
    with pytest.raises(DataError, match="NaN"):
        curve_through_data(ROWS, ARC, np.full_like(ARC, np.nan))
