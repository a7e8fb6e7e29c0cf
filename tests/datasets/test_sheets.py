"""The bent sheets: isometric to their truth, uniform on it, empty where there is a hole."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial import cKDTree
from scipy.stats import chisquare

from lowland.datasets import bent_sheet, s_curve, swiss_roll
from lowland.datasets.surfaces import spiral_length, spiral_parameter
from support.cases import each

# per sheet: its size and its largest curvature, both from the equation
START = 1.5 * np.pi
ROLL_CURVATURE = (START**2 + 2.0) / (START**2 + 1.0) ** 1.5
SHEETS = [
    pytest.param(
        swiss_roll,
        (quad(lambda t: np.hypot(1.0, t), START, 4.5 * np.pi)[0], 21.0),
        ROLL_CURVATURE,
        id="swiss_roll",
    ),
    pytest.param(s_curve, (3.0 * np.pi, 2.0), 1.0, id="s_curve"),
    pytest.param(bent_sheet, (3.0, 2.0), np.pi / 3.0, id="bent_sheet"),
]
sheets = each(("make", "size", "curvature"), SHEETS)


@sheets
def test_neighbors_are_as_far_apart_as_in_the_truth(make, size, curvature):
    """Schur: an arc of length s and curvature <= k has a chord in [2/k sin(k s/2), s]."""
    data = make(4000, random_state=1)
    i, j = cKDTree(data.X).query_pairs(0.4 / curvature, output_type="ndarray").T
    in_space = np.linalg.norm(data.X[i] - data.X[j], axis=1)
    along, across = np.abs(data.truth[i] - data.truth[j]).T
    chord = np.sqrt(np.maximum(in_space**2 - across**2, 0.0))
    assert len(i) > 4000
    assert np.all(curvature * along < np.pi)
    assert np.all(in_space <= np.hypot(along, across) + 1e-12)
    # chord is a difference of squares: its error is about sqrt(machine epsilon) when along is ~0
    assert np.all(chord >= 2.0 / curvature * np.sin(curvature * along / 2.0) - 1e-6)


@sheets
def test_first_coordinate_is_the_length_of_the_curve(make, size, curvature):
    """The polygon through dense points is as long as the curve, but for k^2 s^2 / 24 < 1e-5."""
    data = make(20000, random_state=2)
    order = np.argsort(data.truth[:, 0])
    curve, s = data.X[order][:, [0, 2]], data.truth[order, 0]
    length = np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))
    np.testing.assert_allclose(length, s[1:] - s[0], rtol=1e-5, atol=1e-9)


@sheets
def test_second_coordinate_is_the_middle_column(make, size, curvature):
    data = make(50, random_state=0)
    np.testing.assert_array_equal(data.X[:, 1], data.truth[:, 1])


@sheets
def test_rows_are_uniform_on_the_whole_sheet(make, size, curvature):
    truth = make(6000, random_state=3).truth
    counts, *_ = np.histogram2d(*truth.T, bins=8, range=[(0, size[0]), (0, size[1])])
    assert counts.sum() == 6000
    assert chisquare(counts.ravel()).pvalue > 0.001


@sheets
def test_hole_is_empty_and_the_rest_uniform(make, size, curvature):
    truth = make(6000, hole=True, random_state=4).truth
    counts, *_ = np.histogram2d(*truth.T, bins=9, range=[(0, size[0]), (0, size[1])])
    hole = np.zeros((9, 9), dtype=bool)
    hole[3:6, 3:6] = True
    assert counts.sum() == 6000
    assert counts[hole].sum() == 0
    assert chisquare(counts[~hole]).pvalue > 0.001


def test_swiss_roll_lies_on_the_spiral_and_its_truth_is_the_integral():
    data = swiss_roll(40, random_state=5)
    t = np.hypot(data.X[:, 0], data.X[:, 2])
    assert np.all((t >= START) & (t <= 3.0 * START))
    np.testing.assert_allclose(data.X[:, 0], t * np.cos(t), atol=1e-12)
    np.testing.assert_allclose(data.X[:, 2], t * np.sin(t), atol=1e-12)
    lengths = [quad(lambda u: np.hypot(1.0, u), START, end)[0] for end in t]
    np.testing.assert_allclose(data.truth[:, 0], lengths, rtol=1e-12)


def test_spiral_parameter_inverts_the_arc_length():
    t = np.linspace(START, 3.0 * START, 5000)
    np.testing.assert_allclose(spiral_parameter(spiral_length(t)), t, rtol=4e-16)


def test_s_curve_is_two_unit_circles_joined():
    x, _, z = s_curve(500, random_state=6).X.T
    np.testing.assert_allclose(x**2 + (z + np.sign(-z)) ** 2, 1.0, atol=1e-12)


@each("bend", [1e-6, 1.0, np.pi, 6.28])
def test_bent_sheet_lies_on_its_cylinder(bend):
    x, _, z = bent_sheet(500, bend=bend, random_state=7).X.T
    radius = 3.0 / bend
    np.testing.assert_allclose(np.hypot(x, z - radius), radius, rtol=1e-12)


def test_bent_sheet_hardly_bent_is_the_flat_sheet():
    data = bent_sheet(100, bend=1e-6, random_state=8)
    flat = np.column_stack([data.truth[:, 0] - 1.5, data.truth[:, 1], np.zeros(100)])
    np.testing.assert_allclose(data.X, flat, atol=1e-6)
