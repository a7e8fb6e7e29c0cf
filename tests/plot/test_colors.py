"""From labels to colors."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
from matplotlib.colors import to_rgb

from lowland.plot._style import DARK_GREY, GREY, LONG_PALETTE, OKABE_ITO, category_colors
from lowland.plot.colors import MISSING, OTHER, Categories, Continuum, encode_labels
from support.cases import each

# Machado, Oliveira & Fernandes (2009), severity 1
EYES = {
    "normal": np.eye(3),
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
}


def smallest_difference(colors, eye):
    """In OKLab, where equal distances look equal; 0.02 is about a just visible difference."""
    rgb = np.array([to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(EYES[eye]), 0, 1)
    lms = np.cbrt(
        seen @ [[0.4122, 0.2119, 0.0883], [0.5363, 0.6807, 0.2817], [0.0514, 0.1074, 0.63]]
    )
    lab = lms @ [[0.2105, 1.978, 0.0259], [0.7936, -2.4286, 0.7828], [-0.0041, 0.4506, -0.8087]]
    distances = np.linalg.norm(lab[:, None] - lab[None], axis=2)
    return distances[np.triu_indices(len(colors), 1)].min()


@each("eye", EYES)
@each(
    ("colors", "difference"),
    [(OKABE_ITO, 0.07), (LONG_PALETTE[:10], 0.09), (LONG_PALETTE, 0.05)],
    ids=["few", "ten", "many"],
)
def test_the_palettes_are_told_apart_by_color_blind_eyes(colors, difference, eye):
    assert smallest_difference(colors, eye) > difference


def test_no_color_could_be_taken_for_a_grey_that_means_no_category():
    for color in (*OKABE_ITO, *LONG_PALETTE):
        assert smallest_difference([color, GREY], "normal") > 0.1
        assert smallest_difference([color, DARK_GREY], "normal") > 0.1


@each("n", [1, 7, 8, 30])
def test_no_two_categories_look_the_same(n):
    categories = encode_labels(np.arange(n).astype(str), n)
    colors = [categories.color(code) for code in range(-2, n)]
    assert len(set(colors)) == n + 2
    assert tuple(colors[2:]) == category_colors(n)


def test_few_categories_have_the_colors_of_okabe_and_ito():
    assert category_colors(3) == ("#0072b2", "#e69f00", "#009e73")


def test_every_row_gets_the_code_of_its_name():
    labels = ["b", "a", None, "b", float("nan")]
    categories = encode_labels(labels, 5)
    assert categories.names == ("a", "b")
    assert categories.codes.tolist() == [1, 0, MISSING, 1, MISSING]
    assert [categories.name(code) for code in categories.present()] == ["a", "b", "missing"]


def test_the_most_frequent_of_many_categories_keep_their_names():
    counts = np.arange(1, 36)
    labels = np.repeat([f"c{i}" for i in range(35)], counts)
    categories = encode_labels(labels, labels.size)
    assert categories.names == tuple(f"c{i}" for i in range(5, 35))
    assert (categories.codes == OTHER).sum() == counts[:5].sum()
    assert categories.name(OTHER) == "and 5 more"


@each(
    ("labels", "names"),
    [
        ([True, False, True], ("False", "True")),
        ([10, 9, 1], ("1", "9", "10")),
        ([1.5, 1.0, float("nan")], ("1", "1.5")),
        ([2, None, 10], ("2", "10")),
        (["x10", "x9", ""], ("(empty)", "x9", "x10")),
        ([b"x", b"y", b"x"], ("x", "y")),
        (pd.array(["u", pd.NA, "v"], dtype="string"), ("u", "v")),
        (pd.Categorical(["u", None, "v"]), ("u", "v")),
        (np.array(["2020-01-02", "NaT", "2019-01-01"], "M8[D]"), ("2019-01-01", "2020-01-02")),
        ([datetime.date(2020, 1, 2), None, 3], ("3", "2020-01-02")),
        (np.ma.array(["u", "v", "w"], mask=[0, 1, 0]), ("u", "w")),
        ([1 + 2j, 1.0, 2.0], ("(1+0j)", "(1+2j)", "(2+0j)")),
        (
            ["a name that is much too long for a legend", "b", "b"],
            ("a name that is much too…", "b"),
        ),
    ],
    ids=str,
)
def test_labels_of_any_type_get_names(labels, names):
    categories = encode_labels(labels, 3)
    assert isinstance(categories, Categories)
    assert categories.names == names


def test_many_numbers_are_a_continuum_also_among_objects():
    values = [None, *np.arange(50.0)]
    continuum = encode_labels(values, 51)
    assert isinstance(continuum, Continuum)
    assert (continuum.low, continuum.high) == (0, 49)
    assert continuum.missing().tolist() == [True] + [False] * 50
    assert continuum.extend() == "neither"


def test_outliers_and_infinity_do_not_decide_the_scale():
    values = np.append(np.linspace(0, 1, 1000), [1e6, np.inf])
    continuum = encode_labels(values, 1002)
    assert continuum.high < 1.01
    assert continuum.extend() == "both"


def test_a_center_makes_the_scale_symmetric_around_it():
    continuum = encode_labels([-1.0, 0.5, 3.0], 3, center=0.0)
    assert (continuum.low, continuum.high) == (-3, 3)
    assert continuum.color_map == "coolwarm"
    assert encode_labels(np.arange(50.0), 50).color_map == "viridis"


def test_a_constant_has_a_scale_too():
    continuum = encode_labels([2.0, 2.0], 2, center=2.0)
    assert continuum.low < 2 < continuum.high


def test_infinity_alone_is_a_category():
    values = np.where(np.arange(30) % 2, np.inf, np.nan)
    categories = encode_labels(values, 30, center=0.0)
    assert [categories.name(code) for code in categories.present()] == ["infinite", "missing"]
