"""Separators, headers, comments and encodings of delimited text are found out."""

from __future__ import annotations

import numpy as np
import pytest

from lowland._base.errors import DataError
from lowland.tables import read_distances
from support.cases import each

EXPECTED = [(1.5, 2.25), (3.5, -4.0), (0.25, 1e3)]


@each(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1.5,2.25\n3.5,-4\n0.25,1e3\n"),
        ("t.csv", "a;b\n1.5;2.25\n3.5;-4\n0.25;1e3\n"),
        ("t.csv", "a;b\n1,5;2,25\n3,5;-4\n0,25;1e3\n"),
        ("t.csv", "a\tb\n1.5\t2.25\n3.5\t-4\n0.25\t1e3\n"),
        ("t.csv", "a|b\n1,5|2,25\n3,5|-4\n0,25|1e3\n"),
        ("t.tsv", "a,b\n1.5,2.25\n3.5,-4\n0.25,1e3\n"),
        ("t.tsv", "a\tb\n1,5\t2,25\n3,5\t-4\n0,25\t1e3\n"),
        ("t.txt", "a b\n1.5 2.25\n3.5 -4\n0.25 1e3\n"),
        ("t.txt", "  a    b  \n 1.5   2.25\n 3.5\t -4\n\n0.25   1e3  \n"),
        ("t.dat", "a b\n1,5 2,25\n3,5 -4\n0,25 1e3\n"),
        ("t.data", '"a" "b"\n1.5 2.25\n3.5 -4\n0.25 1e3\n'),
        ("t.csv", "a; b\r\n1,5; 2,25\r\n3,5; -4\r\n0,25; 1e3\r\n"),
        # The header alone would be split at its commas.
        ("t.csv", '"a";"b"\n"1,5";"2,25"\n"3,5";"-4"\n"0,25";"1e3"\n'),
    ],
)
def test_the_separator_and_the_decimal_mark_are_found_out(read, name, text):
    table = read(text, name)
    assert table.feature_names == ("a", "b")
    assert table.features.rows() == EXPECTED


@each(
    ("text", "names", "rows"),
    [
        # Lines, not only the first one, decide: the header has more commas than semicolons.
        ("a,b,c;d\n1;2\n3;4\n", ("a,b,c", "d"), [(1, 2), (3, 4)]),
        ('"x, y";b\n1;2\n3;4\n', ("x, y", "b"), [(1, 2), (3, 4)]),
        # Spaces inside of fields are not separators.
        ("the x,the y\n1,2\n3,4\n", ("the x", "the y"), [(1, 2), (3, 4)]),
        # A single column of decimal commas.
        ("x\n1,5\n2,25\n", ("x",), [(1.5,), (2.25,)]),
        ("1,5\n2,25\n3,5\n", ("column_0",), None),
    ],
)
def test_several_lines_decide_about_the_separator(read, text, names, rows):
    if rows is None:  # two columns of whole numbers, as a CSV file has them
        assert read(text).features.rows() == [(1.0, 5.0), (2.0, 25.0), (3.0, 5.0)]
        return
    table = read(text)
    assert table.feature_names == names
    assert table.features.rows() == [tuple(map(float, row)) for row in rows]


def test_a_separator_that_the_name_does_not_tell_is_said(read):
    assert "separated by tabs" in read("a\tb\n1\t2\n3\t4\n").notes[0]
    assert read("a\tb\n1\t2\n3\t4\n", "t.txt").notes == ()
    assert read("a;b\n1;2\n3;4\n").notes == ()


@each(
    ("name", "text", "names", "n_rows"),
    [
        ("t.csv", "# made by a machine\n# on a day\na,b\n1,2\n3,4\n", ("a", "b"), 2),
        ("t.csv", "\n# one\n\n\na,b\n1,2\n", ("a", "b"), 1),
        ("t.dat", "# a b\n1 2\n3 4\n", ("a", "b"), 2),
        ("t.dat", "# a title of four words\n# a b\n1 2\n3 4\n", ("a", "b"), 2),
        ("t.tsv", "##version\n#a\tb\n1\t2\n3\t4\n", ("a", "b"), 2),
        ("t.csv", "#,b\n1,2\n3,4\n", ("#", "b"), 2),
        ("t.dat", "# three words here\n1 2\n3 4\n", ("column_0", "column_1"), 2),
    ],
)
def test_comment_lines_at_the_top_are_skipped_or_name_the_columns(read, name, text, names, n_rows):
    table = read(text, name)
    assert table.feature_names == names
    assert table.shape[0] == n_rows
    assert any("(#)" in note for note in table.notes)


@each(
    ("text", "names"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n", ("column_0", "column_1")),
        ("39, State, 77\n50, State, 83\n38, Private, 21\n", ("column_0", "column_2")),
        # Years, wavelengths and numbered pixels are names.
        ("country,2000,2001,2002\nFR,1,2,3\nDE,3,4,5\n", ("2000", "2001", "2002")),
        ("sample,1100.5,1102.5,1104.5\nA,1,2,3\nB,3,4,5\n", ("1100.5", "1102.5", "1104.5")),
        ("label,0,1,2\na,1,2,3\na,3,4,5\n", ("0", "1", "2")),
    ],
)
def test_a_first_line_like_the_others_is_a_row(read, text, names):
    assert read(text, "t.data").feature_names == names


def test_a_header_without_a_name_for_the_row_names_is_read_as_r_writes_it(read):
    for name, text in [
        ("t.txt", '"a" "b"\n"first row" 1 2\n"second row" 3 4\n'),
        ("t.tsv", "a\tb\nfirst row\t1\t2\nsecond row\t3\t4\n"),
    ]:
        table = read(text, name)
        assert table.feature_names == ("a", "b")
        assert table.ids.to_list() == ["first row", "second row"]
    with pytest.raises(DataError, match="line 2: 3 fields where the first line has 2"):
        read("a,b\nonly row,1,2\n")  # one row is too few to tell


@each("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings_are_told_apart(read, encoding):
    table = read("größe;art\n1,5;käse\n2,5;öl\n".encode(encoding))
    assert table.feature_names == ("größe",)
    assert table.labels["art"].to_list() == ["käse", "öl"]
    assert any("no UTF-8" in note for note in table.notes) == (not encoding.startswith("utf-8"))


def test_a_byte_of_latin_1_late_in_a_large_file_is_read(read):
    text = b"a,b\n" + b"1.5,x\n" * 300_000 + b"2.5,\xe9\n"
    table = read(text)
    assert table.labels["b"][-1] == "é"
    assert table.shape == (300_001, 1)


def test_no_temporary_file_is_left(read, tmp_path_factory, monkeypatch):
    import tempfile

    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    read("a b\n1 2\n3 4\n".encode("utf-16"), "t.txt")
    with pytest.raises(DataError):
        read("a b\n1 2\n3 4 5\n", "t.txt")
    assert list(folder.iterdir()) == []


@each(
    ("name", "text"),
    [
        ("d.csv", ";A;B;C\nA;0;1,5;2\nB;1,5;0;2,5\nC;2;2,5;0\n"),
        ("d.txt", "0 1.5 2\n1.5 0 2.5\n2 2.5 0\n"),
        ("d.dat", "0 1,5 2\n1,5 0 2,5\n2 2,5 0\n"),
        ("d.csv", "# km\n0\t1.5\t2\n1.5\t0\t2.5\n2\t2.5\t0\n"),
    ],
)
def test_distances_are_read_by_the_same_rules(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    D = read_distances(tmp_path / name).features
    np.testing.assert_array_equal(D, [[0, 1.5, 2], [1.5, 0, 2.5], [2, 2.5, 0]])


@each(
    ("name", "text", "message"),
    [
        ("t.txt", "a b c\n1 2 3\n4 5\n6 7 8\n", "line 3: 2 fields where the first line has 3"),
        ("t.txt", "# nothing\n", "there are no rows|the file is empty"),
        ("t.dat", "# a\n# b\n", "the file is empty"),
    ],
)
def test_a_broken_text_is_refused_with_its_line(read, name, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read(text, name)
    assert name in str(caught.value)
