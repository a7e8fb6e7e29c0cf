"""CSV and TSV files, whole and broken."""

from __future__ import annotations

import pytest

from lowland._base.errors import DataError
from support.cases import each


def test_numbers_and_booleans_are_features_and_text_is_a_label(read):
    table = read("a,b,c,day\n1,true,x,2020-01-01\n2.5,false,y,2020-01-02\n")
    assert table.feature_names == ("a", "b")
    assert table.features.rows() == [(1.0, 1.0), (2.5, 0.0)]
    assert table.labels.columns == ["c", "day"]


def test_rows_are_numbered_from_zero_without_an_id_column(read):
    table = read("a,b\n1,2\n3,4\n")
    assert table.ids.name == "row"
    assert table.ids.to_list() == [0, 1]


def test_id_and_label_columns_are_no_features(read):
    table = read("a,kind,sample\n1,0,10\n2,1,11\n", labels=["kind"], id_column="sample")
    assert table.feature_names == ("a",)
    assert table.labels["kind"].to_list() == [0, 1]
    assert table.ids.to_list() == [10, 11]


def test_blank_lines_are_no_rows(read):
    assert read("a,b\n1,2\n\n3,4\n\n").shape == (2, 2)
    assert read("a\n1\n\n3\n").shape == (2, 1)


def test_a_line_of_empty_fields_is_a_row_of_missing_values(read):
    with pytest.raises(DataError, match=r"in 2 columns: 'a' \(1, first in row 1\)"):
        read("a,b\n1,2\n,\n3,4\n")


def test_a_first_line_of_numbers_is_data_and_the_table_says_so(read):
    table = read("1,2\n3,4\n")
    assert table.feature_names == ("column_0", "column_1")
    assert table.shape == (2, 2)
    assert "no header line" in table.notes[0]


def test_an_unnamed_first_column_is_never_a_feature(read):
    table = read(",a,key\n7,1,5\n8,2,6\n", id_column="key")
    assert table.feature_names == ("a",)
    assert table.labels.columns == ["row"]


def test_a_type_that_changes_late_in_the_file_is_read(read):
    table = read("a,b\n" + "1,2\n" * 10_500 + "1.5,2\n")
    assert table.features["a"][-1] == 1.5


@each(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("a,b\n", "there are no rows"),
        ("a,b\n1,2\n3\n", "line 3: 1 fields where the first line has 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3: 3 fields where the first line has 2"),
        ("a,b,a\n1,2,3\n", "several columns are called 'a'"),
        ("a,b\nx,y\n", r"no column of numbers; found 'a' \(String\), 'b' \(String\)"),
        ("a,b\nnan,1\n2,\n", r"in 2 columns: 'a' \(1, first in row 0\), 'b' \(1, first in row 1\)"),
        ("a,b\n1,2\n2,inf\n", r"infinite values in 1 column: 'b' \(1, first in row 1\)"),
        ('a,b\n1,x\n2,"y\n', "line 3: a quotation mark is opened and never closed"),
        (b"a,b\n1,caf\x81\n", "line 2: not UTF-8 text .byte 0x81"),
        (b"caf\x81,b\n1,2\n", "line 1: not UTF-8 text"),
        (b"a,b\n1,\0\n", "null byte"),
        ("a,b\n1,2\n".encode("utf-16-le"), "null byte"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "not valid UTF-16"),
        ("a,b\r1,2\r3,4\r", "cannot be read as CSV"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_the_place(read, content, message):
    with pytest.raises(DataError, match=message) as caught:
        read(content)
    assert "table.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@each("text", ["version,b\n1.100,1\n2.200,2\nNA,3\n", "v,b\n1.234,1\ninf,2\ninf,3\nNA,4\n"])
def test_numbers_that_can_be_read_in_two_ways_stay_text_if_they_may_be_codes(read, text):
    table = read(text)
    assert table.labels.columns == [text.partition(",")[0]]
    assert table.feature_names == ("b",)
