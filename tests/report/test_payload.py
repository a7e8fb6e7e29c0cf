"""What the page's script reads is what the summary said."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from lowland.report import payload
from lowland.report.payload import MOST_POINTS, display_rows, pack, pack_column, to_json
from support.cases import each


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def category_texts(column):
    names = [None, *column["names"]]
    return [names[code] for code in unpacked(column["codes"], f"<u{column['bytes']}")]


def test_the_map_keeps_its_shape_and_digits_wherever_it_lies(summary):
    Y = summary["maps"][0]["coordinates"]
    for shift in (0.0, 1e9):
        summary["maps"][0]["coordinates"] = Y + shift
        packed = pack(summary)["maps"][0]
        back = unpacked(packed["coordinates"], "<f4").reshape(-1, 2)
        assert np.abs(back).max() == pytest.approx(1.0)
        scale = np.ptp(Y[:, 0]) / np.ptp(back[:, 0])
        np.testing.assert_allclose(scale * (back - back[0]), Y - Y[0], atol=1e-5)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["b", None, "a"], ["b", None, "a"]),
        (np.array(["b", "a", "b"]), ["b", "a", "b"]),
        (np.array([True, False, True]), ["True", "False", "True"]),
        (np.array([3, 1, 3]), ["3", "1", "3"]),
        ([1.5, float("nan"), None], ["1.5", None, None]),
        (np.array(["x", None, 2.5], dtype=object), ["x", None, "2.5"]),
        ([2**60, 2**60 + 1, None], [str(2**60), str(2**60 + 1), None]),
        (["é", "日本", ""], ["é", "日本", ""]),
    ],
)
def test_few_values_are_categories(values, texts):
    column = pack_column("a", values)
    assert column["kind"] == "category"
    assert category_texts(column) == texts


def test_categories_are_in_natural_order():
    assert pack_column("a", ["type 10", "type 2", "10", "-3", "2"])["names"] == [
        *("-3", "2", "10"),
        *("type 2", "type 10"),
    ]


# code 0 means missing, so that a byte counts up to 255 names
@pytest.mark.parametrize(("distinct", "size"), [(255, 1), (256, 2), (65_535, 2), (65_536, 4)])
def test_many_names_get_wider_codes(distinct, size):
    values = [f"row {i}" for i in range(distinct)]
    column = pack_column("a", values)
    assert column["bytes"] == size
    assert category_texts(column) == values


@pytest.mark.parametrize(
    "values",
    [
        np.arange(21),
        np.linspace(0, 1, 11),
        [*map(float, np.linspace(-5, 5, 30)), None],
        np.array([*np.linspace(0, 1, 30), np.inf]),
        np.arange(2**40, 2**40 + 100),
    ],
)
def test_many_numbers_are_a_continuum(values):
    column = pack_column("a", values)
    assert column["kind"] == "number"
    back = unpacked(column["values"], f"<f{column['bytes']}")
    expected = np.array([np.nan if value is None else value for value in values], dtype=float)
    np.testing.assert_allclose(back, expected, rtol=1e-7)
    assert np.nanmin(expected) <= column["low"] < column["high"] < np.inf


def test_long_texts_are_cut_but_ids_are_not(summary):
    long = "x" * 1000
    summary |= {"labels": {"text": [long] * 300}, "ids": [long] * 300}
    packed = pack(summary)
    assert [len(name) for name in packed["columns"][0]["names"]] == [200]
    assert packed["ids"]["texts"][0] == long


@pytest.mark.parametrize(
    "ids", [np.arange(300) * 7, [2**60 + i for i in range(300)], list("abc") * 100]
)
def test_ids_come_back_as_they_were(summary, ids):
    packed = pack(summary | {"ids": ids})["ids"]
    back = packed["texts"] if "texts" in packed else unpacked(packed["numbers"], "<f8").astype(int)
    assert [str(entry) for entry in back] == [str(entry) for entry in ids]


def test_beyond_the_limit_a_sample_is_packed_with_its_own_labels_and_clusters(summary):
    n = MOST_POINTS + 5000
    rows = display_rows(n)
    assert len(rows) == len(set(rows.tolist())) == MOST_POINTS
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(display_rows(MOST_POINTS), np.arange(MOST_POINTS))
    group = np.arange(n) % 2
    entry = summary["maps"][0] | {
        "coordinates": np.random.default_rng(0).normal(size=(n, 2)) + 20 * group[:, None]
    }
    entry["per_point"] = {"trustworthiness": np.arange(n) / n}
    summary |= {
        "ids": np.arange(n),
        "labels": {"row": np.arange(n), "group": group},
        "maps": [entry],
    }
    packed = pack(summary)
    assert packed["points"] == MOST_POINTS
    assert np.array_equal(unpacked(packed["ids"]["numbers"], "<f8"), rows)
    assert np.array_equal(unpacked(packed["columns"][0]["values"], "<f4"), rows)
    groups = unpacked(packed["columns"][1]["codes"], "<u1")
    assert np.array_equal(groups, 1 + group[rows])
    measured = unpacked(packed["maps"][0]["measures"][0]["values"], "<f4")
    np.testing.assert_allclose(measured, rows / n, rtol=1e-6)
    clusters = unpacked(packed["maps"][0]["clusters"]["codes"], "<u1")
    for cluster in (1, 2):  # each cluster lies in one group
        assert len(set(groups[clusters == cluster].tolist())) == 1


@each("kind", ["text", "large numbers", "mixed"])
def test_ids_beyond_the_limit_are_those_of_the_drawn_rows(summary, monkeypatch, kind):
    monkeypatch.setattr(payload, "MOST_POINTS", 40)
    rows = display_rows(300)
    assert len(rows) == 40
    assert rows.tolist() != list(range(40))
    ids = {
        "text": [f"cell-{i * i}" for i in range(300)],
        "large numbers": [2**60 + i for i in range(300)],
        "mixed": [i if i % 2 else f"cell-{i}" for i in range(300)],
    }[kind]
    summary |= {"ids": ids, "labels": {"name": [f"n{i}" for i in range(300)]}}
    packed = pack(summary)
    assert packed["points"] == 40
    assert packed["ids"] == {"texts": [str(ids[row]) for row in rows]}
    assert category_texts(packed["columns"][0]) == [f"n{row}" for row in rows]


def test_json_cannot_end_a_script_element():
    text = to_json({"</script>": "<!--&\u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"</script>": "<!--&\u2028\u2029"}
