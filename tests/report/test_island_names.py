"""Names of islands say what was planted in them, and nothing where nothing was."""

from __future__ import annotations

import numpy as np
import pytest

from lowland.errors import DataError
from lowland.report.viewer_data import island_names
from support.cases import each

HOSTILE = "<script>document.title = 'hacked'</script>"


@pytest.fixture
def planted():
    """Four islands of 200, 150, 100 and 50 rows, and 30 rows outside of all, in random order."""
    rng = np.random.default_rng(0)
    clusters = rng.permutation(np.repeat([1, 2, 3, 4, 0], [200, 150, 100, 50, 30]))
    n = len(clusters)
    kind = np.where(clusters == 1, "cat", np.array(["hen", "cow", "pig"])[rng.integers(0, 3, n)])
    kind[(clusters == 2) & (rng.random(n) < 0.9)] = "dog"
    numbers = rng.normal(size=(n, 5))
    numbers[clusters == 3, 2] += 4.0
    numbers[clusters == 3, 4] -= 2.0
    numbers[clusters == 2, 0] += 1.5
    names = ["age", "height", "petal_length (cm)", "noise", "salt"]
    return clusters, {"kind": kind}, {"names": names, "numbers": numbers}


def test_the_planted_category_comes_first_then_the_planted_columns(planted):
    found = island_names(*planted)
    assert found == [
        ["cat", "island 1"],
        ["dog", "high age", "island 2"],
        ["high petal length", "low salt", "island 3"],
        ["island 4"],
    ]


def test_rows_and_units_may_be_permuted_and_scaled(planted):
    clusters, labels, values = planted
    order = np.random.default_rng(1).permutation(len(clusters))
    scaled = {"names": values["names"], "numbers": 1e300 * values["numbers"][order] - 5e300}
    again = island_names(clusters[order], {"kind": labels["kind"][order].tolist()}, scaled)
    assert again == island_names(*planted)


def test_a_category_must_be_common_inside_and_rare_outside(planted):
    clusters, _, _ = planted
    inside = clusters == 4  # 50 of 530 rows
    half = np.zeros(len(clusters), dtype=bool)
    half[np.flatnonzero(inside)[:25]] = True
    everywhere = np.where(np.arange(len(clusters)) % 10 < 6, "usual", "rare")
    everywhere[inside] = "usual"  # 100 % against about 60 %: no lift
    for label, expected in (
        (np.where(half, "half", "none"), ["island 4"]),
        (everywhere, ["island 4"]),
        (np.where(inside, "all", "none"), ["all", "island 4"]),
    ):
        assert island_names(clusters, {"label": label})[3] == expected


@each(
    ("label", "expected"),
    [
        ([f"row {i}" for i in range(120)], "island 1"),  # ids
        ([f"text {i // 2 if i < 60 else i}" for i in range(120)], "island 1"),  # nearly ids
        ([None] * 120, "island 1"),
        ([" "] * 60 + ["a"] * 60, "island 1"),
        (["same"] * 120, "island 1"),
        ([3] * 60 + [7] * 60, "code 3"),
        ([True] * 60 + [False] * 60, "code True"),
        ([HOSTILE] * 60 + ["b"] * 60, HOSTILE[:39] + "…"),
        (["two\nlines\t of it"] * 60 + ["b"] * 60, "two lines of it"),
        (["a"] * 58 + [None, float("nan")] + ["b"] * 60, "a"),
        ([float(i) for i in range(120)], "low code"),
    ],
)
def test_what_a_label_makes_of_a_name(label, expected):
    clusters = np.repeat([1, 2], 60)
    assert island_names(clusters, {"code": label})[0][0] == expected


def test_columns_without_values_or_differences_name_nothing():
    clusters = np.repeat([1, 2], 50)
    alone = np.full(100, np.nan)
    alone[[0, 60]] = [1.0, 2.0]
    numbers = np.column_stack(
        [np.full(100, np.nan), np.ones(100), alone, np.repeat([0.0, 1.0], 50)]
    )
    values = {"names": ["empty", "constant", "two", "exact"], "numbers": numbers}
    assert island_names(clusters, {}, values) == [
        ["low exact", "island 1"],
        ["high exact", "island 2"],
    ]


def test_no_islands_and_one_island():
    assert island_names(np.zeros(5, dtype=int), {}) == []
    assert island_names(np.ones(5, dtype=int), {"a": list("xxxyy")}) == [["island 1"]]


def test_small_islands_of_large_tables_are_seen():
    rng = np.random.default_rng(0)
    clusters = np.ones(300_000, dtype=np.int32)
    clusters[rng.choice(300_000, 600, replace=False)] = 2
    label = np.where(clusters == 2, "needle", "hay").tolist()
    numbers = rng.normal(size=(300_000, 2)) + 2.0 * (clusters == 2)[:, None] * [0, 1]
    found = island_names(clusters, {"what": label}, {"names": ["a", "b"], "numbers": numbers})
    assert found[1] == ["needle", "high b", "island 2"]
    assert found[0][0] == "hay"


def test_labels_of_another_length_are_refused():
    with pytest.raises(DataError, match=r"labels\['a'\] has 2 values, but there are 3 clusters"):
        island_names(np.ones(3, dtype=int), {"a": [1, 2]})
