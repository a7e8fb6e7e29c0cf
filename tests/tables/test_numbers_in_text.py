"""Numbers with marks, units and currencies; and what only looks like a number."""

from __future__ import annotations

import pytest

from lowland.tables import read_table
from support.cases import each


@pytest.fixture
def read(tmp_path):
    """Write columns as a file with bars between fields, and read it."""

    def write_and_read(separator="|", **columns):
        lines = [separator.join(columns), *map(separator.join, zip(*columns.values(), strict=True))]
        path = tmp_path / "t.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_table(path, allow_missing=True)

    return write_and_read


@each(
    ("values", "numbers"),
    [
        (["1,5", "2,25", "-3,0"], [1.5, 2.25, -3]),
        (["1,234.5", "12,345.0", "7"], [1234.5, 12345, 7]),
        (["1.234,5", "12.345,0", "7"], [1234.5, 12345, 7]),
        (["1 234,5", "12 345", "7"], [1234.5, 12345, 7]),
        (["1\u00a0234,5", "12\u202f345", "7"], [1234.5, 12345, 7]),
        (["1'234.5", "12\u2019345", "7"], [1234.5, 12345, 7]),
        (["1,234,567", "1,234", "12"], [1234567, 1234, 12]),
        (["12 %", "3.5%", "100 %"], [12, 3.5, 100]),
        (["€ 1.234,50", "€ 3,00", "-€ 2,50"], [1234.5, 3, -2.5]),
        (["$1,234.50", "-$3", "$0.5"], [1234.5, -3, 0.5]),
        (["CHF 12", "CHF 1'200", "CHF 3.5"], [12, 1200, 3.5]),
        (["12,50 €", "3 €", "1.000 €"], [12.5, 3, 1000]),
        (["12.5 kg", "3 kg", ".5 kg"], [12.5, 3, 0.5]),
        (["12.5kg", "3kg", "1e2kg"], [12.5, 3, 100]),
        (["3 m/s2", "4.5 m/s2", "5 m/s2"], [3, 4.5, 5]),
        (["20 °C", "\u22123,5 °C", "0 °C"], [20, -3.5, 0]),
        (["1,5e3", "2,5E-1", "3"], [1500, 0.25, 3]),
        ([" 12 ", "NA", "3 "], [12, None, 3]),
        (["1,5 kg", "?", "2 kg"], [1.5, None, 2]),
    ],
)
def test_numbers_are_read_as_they_are_written(read, values, numbers):
    table = read(a=values, b=["1", "2", "4"])
    assert table.feature_names == ("a", "b")
    assert table.features["a"].fill_nan(None).to_list() == numbers


@each(
    "values",
    [
        ["01234", "99999", "00001"],  # ZIP codes
        ["01.02.2020", "03.04.2020", "05.06.2021"],
        ["2020-01-02", "2020-01-03", "2020-01-04"],
        ["1/2/2020", "3/4/2020", "5/6/2020"],
        ["12:30", "13:30", "14:00"],
        ["12:30:15", "13:30:00", "14:00:00"],
        ["1.2.3", "1.3.0", "2.0.0"],
        ["+49 170 123 456", "+49 170 123 457", "+49 171 123 458"],
        ["555-1234", "555-1235", "555-1236"],
        ["555 123 4567", "555 123 4568", "555 123 4569"],
        ["192.168.100.200", "192.168.100.201", "192.168.100.202"],
        ["5 Jan", "6 Jan", "7 Jan"],
        ["3 pm", "4 pm", "5 pm"],
        ["1st", "2nd", "3rd"],
        ["101B", "102B", "103B"],
        ["10-20", "20-30", "30-40"],
        ["<5", ">6", "7"],
        ["0x1F", "0x2F", "0x3F"],
        ["12 Main Street", "7 Oak Avenue", "9 Elm Road"],
        ["007", "008", "012"],
        ["1,2,3", "4,5,6", "7,8,9"],
        ["1.234.5", "1.234.6", "1.234.7"],
    ],
)
def test_what_is_no_measurement_stays_text(read, values):
    table = read(a=values, b=["1", "2", "4"])
    assert table.feature_names == ("b",)
    assert table.labels["a"].to_list() == values


def test_telephone_numbers_are_known_by_their_name(read):
    table = read(phone=["170 123 456", "170 123 457"], tel_no=["1,234", "2,345"], x=["1", "2"])
    assert table.feature_names == ("x",)


def test_a_leading_zero_after_many_rows_keeps_the_codes_as_text(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{10000 + i},{i / 7:.3f}" for i in range(20_000)]
    path.write_text("\n".join(["zip,x", *rows, "01234,1.5"]) + "\n")
    table = read_table(path)
    assert table.feature_names == ("x",)
    assert table.ids[-1] == "01234"
    assert table.ids[0] == "10000"
    path.write_text("\n".join(["zip,x", *rows, "234,1.5"]) + "\n")  # fewer digits, no zero
    assert read_table(path, use=["zip"]).feature_names == ("zip", "x")


@each(
    ("separator", "a", "b", "expected"),
    [
        # The other column decides.
        (";", ["1,234", "5,678"], ["1,5", "2,5"], [1.234, 5.678]),
        (";", ["1,234", "5,678"], ["1.5", "2.5"], [1234, 5678]),
        (";", ["1.234", "5.678"], ["1,5", "2,5"], [1234, 5678]),
        (";", ["1.234", "5.678"], ["1.5", "2.5"], [1.234, 5.678]),
        ("\t", ["1,234", "5,678"], ["1,5", "2,5"], [1.234, 5.678]),
        # The separator decides: a semicolon stands where the comma is taken.
        (";", ["1,234", "5,678"], ["1", "2"], [1.234, 5.678]),
        ("\t", ["1,234", "5,678"], ["1", "2"], [1234, 5678]),
        (";", ["1.234", "5.678"], ["1", "2"], [1.234, 5.678]),
        # Its own values decide: a number does not begin with 0, and has one decimal mark.
        ("\t", ["1,234", "0,678"], ["1", "2"], [1.234, 0.678]),
        (";", ["1,234", "1,005,678"], ["1", "2"], [1234, 1005678]),
    ],
)
def test_a_column_that_can_be_read_in_two_ways_is_decided_by_the_file(
    read, separator, a, b, expected
):
    assert read(separator, a=a, b=b).features["a"].to_list() == expected


def test_evidence_after_the_first_rows_counts_for_the_whole_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "1.234;5\n" * 30_000 + "2.345;6,5\n")
    table = read_table(path)
    assert table.features["a"][0] == 1234.0
    assert table.features["b"][-1] == 6.5


def test_conversions_are_said_in_one_line(read):
    table = read(
        w=["12 kg", "13 kg"], p=["3 %", "4 %"], d=["1,5", "2,5"], t=["1.234", "2.345"], n=["1", "2"]
    )
    assert len(table.notes) == 2  # the first is about the separator
    for part in (
        "decimal commas in d",
        "thousands marks removed in t ('1.234' is 1234)",
        "unit kg removed from w",
        "unit % removed from p",
        "t can be read in two ways, and the file has a decimal comma",
    ):
        assert part in table.notes[1]


def test_plain_files_need_no_note(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1.234,2,x\n2.345,NA,y\n")
    assert read_table(path, allow_missing=True).notes == ()


@each(
    ("values", "parts"),
    [
        (["12 kg", "500 g", "3 kg"], ["units differ (kg, g)", "row 1 holds '500 g'"]),
        (["12 kg", "13", "3 kg"], ["units differ (kg, none)", "row 1 holds '13'"]),
        (["1,5", "2.5", "3"], ["points and commas", "row 0 holds '1,5'"]),
        (["1", "2", "low"], ["not all of it is numbers", "row 2 holds 'low'"]),
        (["1,5", "2,5", "x"], ["not all of it is numbers", "row 2 holds 'x'"]),
        (["01234", "12345", "23456"], ["begin with 0", "row 0 holds '01234'"]),
    ],
)
def test_a_column_that_looks_like_numbers_is_named_with_its_first_odd_value(read, values, parts):
    table = read(a=values, b=["1", "2", "4"])
    assert table.labels["a"].to_list() == values
    told = [note for note in table.notes if "'a'" in note]
    assert len(told) == 1
    assert all(part in told[0] for part in parts)
