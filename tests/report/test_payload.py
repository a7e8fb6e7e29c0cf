"""What the page's script reads is what the summary said."""

from __future__ import annotations

import base64
import datetime
import json

import numpy as np
import polars as pl
import pytest

from lowland.report import payload
from lowland.report.page import render
from lowland.report.payload import (
    MOST_POINTS,
    OWN_ELEMENT,
    Packed,
    as_times,
    display_rows,
    pack,
    pack_array,
    pack_column,
    pack_ids,
    pack_values,
    separate,
    to_json,
)
from support.cases import each


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def numbers_of(packed):
    """What the page makes of packed numbers."""
    if "values" in packed:
        return unpacked(packed["values"], f"<f{packed['bytes']}").astype(float)
    codes = unpacked(packed["codes"], f"<u{packed['bytes']}").astype(float)
    return np.where(codes == 0, np.nan, packed["offset"] + (codes - 1) * packed["step"])


def places_of(packed):
    """Coordinates of a map: three bytes each, from -1 to 1."""
    steps = unpacked(packed["coordinates"], "u1").reshape(-1, 3) @ [1, 2**8, 2**16]
    return (steps * 2 / (2**24 - 1) - 1).reshape(-1, packed["dimensions"])


def ids_of(packed, n):
    if "texts" in packed:
        return packed["texts"]
    if "first" in packed:
        return [str(packed["first"] + row) for row in range(n)]
    return [f"{number:.0f}" for number in numbers_of(packed["numbers"])]


def category_texts(column):
    names = [None, *column["names"]]
    return [names[code] for code in unpacked(column["codes"], f"<u{column['bytes']}")]


def test_the_map_keeps_its_shape_and_digits_wherever_it_lies(summary):
    Y = summary["maps"][0]["coordinates"]
    for shift in (0.0, 1e9):
        summary["maps"][0]["coordinates"] = Y + shift
        packed = pack(summary)["maps"][0]
        back = places_of(packed)
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
    back = numbers_of(column)
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
    "ids",
    [
        np.arange(300) * 7,
        np.arange(300),
        range(5, 305),
        list(range(1, 301)),
        [2**40 * i for i in range(300)],
        [2**60 + i for i in range(300)],
        [2**70 + i for i in range(300)],
        [-(2**34), *range(299)],
        [True, False] * 150,
        list("abc") * 100,
    ],
)
def test_ids_come_back_as_they_were(summary, ids):
    packed = pack(summary | {"ids": ids})["ids"]
    assert ids_of(packed, 300) == [str(entry) for entry in ids]


def test_ids_that_count_upwards_need_no_bytes():
    assert pack_ids(np.arange(300), np.arange(300)) == {"first": 0}
    assert pack_ids(list(range(7, 307)), np.arange(300)) == {"first": 7}
    assert "first" not in pack_ids(np.arange(300)[::-1], np.arange(300))


def test_ids_that_are_too_long_together_become_numbers_of_rows(summary, monkeypatch):
    ids = [f"cell-{i}" for i in range(300)]
    total = sum(map(len, ids)) + 3 * 300
    monkeypatch.setattr(payload, "MOST_ID_TEXT", total)
    assert pack_ids(ids, np.arange(300)) == {"texts": ids}
    monkeypatch.setattr(payload, "MOST_ID_TEXT", total - 1)
    assert pack_ids(ids, np.arange(300)) == {"first": 0, "omitted": True}
    rows = np.array([3, 7, 11])
    monkeypatch.setattr(payload, "MOST_ID_TEXT", 20)
    assert ids_of(pack_ids(ids, rows), 3) == ["3", "7", "11"]
    assert "the page shows row numbers, from 0, instead" in render(summary)
    monkeypatch.setattr(payload, "MOST_ID_TEXT", total)
    assert "numbers of rows" not in render(summary)


def test_different_labels_that_are_too_long_together_are_cut_but_stay_different(monkeypatch):
    monkeypatch.setattr(payload, "MOST_NAME_TEXT", 60)
    values = [f"{i} is a long text" for i in range(10)]
    column = pack_column("a", values)
    assert column["names"] == [f"{i} is …"[:6] for i in range(10)]
    assert unpacked(column["codes"], "<u1").tolist() == list(range(1, 11))


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([0, 254, np.nan], 1),
        ([-3, 252], 2),
        ([-3, -3 + 65_534], 2),
        ([0, 65_535], 4),
        ([2**40, 2**40 + 7], 1),
        ([2**40, 2**40 + 2**32 - 2, np.nan], 4),
        ([0, 2**50], 8),
        ([0.5, np.nan, np.inf], 4),
        ([1e300, -1e300, 0.5], 8),
        ([np.nan], 4),
    ],
)
def test_numbers_get_as_many_bytes_as_they_need(values, size):
    packed = pack_values(np.array(values, dtype=float))
    assert packed["bytes"] == size
    np.testing.assert_array_equal(numbers_of(packed), np.array(values, dtype=float))


def test_compact_numbers_have_65534_steps():
    values = np.random.default_rng(0).uniform(0.8, 1.0, 1000)
    values[[3, 5]] = np.nan
    packed = pack_values(values, compact=True)
    assert packed["bytes"] == 2
    back = numbers_of(packed)
    assert np.array_equal(np.isnan(back), np.isnan(values))
    assert (
        np.nanmax(np.abs(back - values)) <= 0.5 * np.ptp(values[~np.isnan(values)]) / 65_534 + 1e-9
    )
    # What has no range, or no finite one, is kept as it is.
    for exact in ([0.1, 0.1], [0.1, np.inf]):
        stored = numbers_of(pack_values(np.array(exact), compact=True))
        np.testing.assert_allclose(stored, exact, rtol=1e-7)


DAYS = [datetime.date(1960, 2, 29) + datetime.timedelta(days=37 * k) for k in range(30)]
MOMENTS = [datetime.datetime(2024, 1, 1, 12, 0, k) for k in range(30)]


def milliseconds(moments):
    return np.array(moments, dtype="datetime64[ms]").astype(np.int64)


LATER = [moment + datetime.timedelta(milliseconds=5) for moment in MOMENTS]
CENTURIES = [datetime.datetime(1000 + 30 * k, 1, 1, 0, 0, 0, 1000) for k in range(30)]
EARLIER = [moment - datetime.timedelta(hours=1) for moment in MOMENTS]


@pytest.mark.parametrize(
    ("values", "expected", "step", "zone"),
    [
        (DAYS, DAYS, 86_400_000, ""),
        ([*DAYS, None], [*DAYS, None], 86_400_000, ""),
        (pl.Series(DAYS).to_list(), DAYS, 86_400_000, ""),
        ([str(day) for day in DAYS], DAYS, 86_400_000, ""),
        (MOMENTS, MOMENTS, 1000, ""),
        ([moment.isoformat() for moment in MOMENTS], MOMENTS, 1000, ""),
        (np.array([str(moment) for moment in MOMENTS]), MOMENTS, 1000, ""),
        ([f"{moment}+01:00" for moment in MOMENTS], EARLIER, 1000, "UTC"),
        (np.array(MOMENTS, dtype="datetime64[ns]"), MOMENTS, 1000, ""),
        (LATER, LATER, 1, ""),
        (CENTURIES, CENTURIES, 1, ""),  # more milliseconds than four bytes count
    ],
)
def test_dates_and_times_are_a_column_of_time(values, expected, step, zone):
    column = pack_column("when", values)
    assert (column["kind"], column["step"], column["zone"]) == ("time", step, zone)
    back = numbers_of(column)
    known = ~np.isnan(back)
    assert known.tolist() == [moment is not None for moment in expected]
    assert np.array_equal(back[known], milliseconds(expected)[known])
    assert back[known].min() <= column["low"] < column["high"] <= back[known].max()


@pytest.mark.parametrize(
    "values",
    [
        DAYS[:10],  # few different values
        [*(str(day) for day in DAYS), "unknown"],
        [*(str(day) for day in DAYS), "2024-13-01"],
        [*MOMENTS, datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)],
        [*DAYS, "a"],
        ["2024-01"] * 30,
        [f"2024-01-{k:02}-x" for k in range(1, 30)],
        [datetime.time(k) for k in range(20)],
        np.array(DAYS[:5], dtype="datetime64[ns]"),
    ],
)
def test_other_labels_stay_categories(values):
    column = pack_column("when", values)
    assert column["kind"] == "category"
    expected = (
        values.astype("datetime64[us]").tolist() if isinstance(values, np.ndarray) else values
    )
    assert category_texts(column) == [str(value) for value in expected]


def test_missing_times_of_other_libraries_are_missing():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(pandas.to_datetime([*MOMENTS, None]))
    for values in (series.to_numpy(), list(series), series.astype(object).to_numpy()):
        times = as_times(values)
        assert np.isnan(times.milliseconds).tolist() == [False] * 30 + [True]
        assert np.array_equal(times.milliseconds[:30], milliseconds(MOMENTS))


def test_beyond_the_limit_a_sample_is_packed_with_its_own_labels_and_clusters(summary, monkeypatch):
    n = MOST_POINTS + 5000
    rows = display_rows(n)
    assert len(rows) == len(set(rows.tolist())) == MOST_POINTS
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(display_rows(MOST_POINTS), np.arange(MOST_POINTS))
    monkeypatch.setattr(payload, "MOST_POINTS", 100_000)
    n = 105_000
    rows = display_rows(n)
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
    assert packed["points"] == 100_000
    assert np.array_equal(numbers_of(packed["ids"]["numbers"]), rows)
    assert np.array_equal(numbers_of(packed["columns"][0]), rows)
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


@pytest.mark.slow
def test_a_million_rows_need_few_bytes(summary):
    n = 1_000_000
    rng = np.random.default_rng(0)
    summary |= {
        "ids": np.arange(n),
        "labels": {"group": [f"group {k}" for k in rng.integers(0, 30, n)]},
    }
    summary["maps"][0] |= {
        "coordinates": rng.normal(size=(n, 2)),
        "per_point": {"trustworthiness": rng.uniform(size=n)},
    }
    page = render(summary)
    # Six bytes of coordinates, one of the group, one of the cluster, two of the measure.
    assert len(page) < 1e6 * 10 * 4 / 3 + 300_000
    assert page.count('type="text/plain"') == 4


def test_long_arrays_are_taken_out_of_the_json_wherever_they_are():
    long, short = np.arange(OWN_ELEMENT), np.arange(4)
    data = {"a": [{"b": pack_array(long, "<u4")}], "c": pack_array(short, "<u4"), "d": ["#0", "x"]}
    kept, arrays = separate(data)
    assert kept == {"a": [{"b": "#0"}], "c": data["c"], "d": ["#0", "x"]}
    assert arrays == [data["a"][0]["b"]]
    assert isinstance(arrays[0], Packed)
    assert separate(kept) == (kept, [])
    # A long text is not an array: it might end the element.
    text = "</script>" * OWN_ELEMENT
    assert separate({"a": text}) == ({"a": text}, [])


def test_json_cannot_end_a_script_element():
    text = to_json({"</script>": "<!--&\u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"</script>": "<!--&\u2028\u2029"}
