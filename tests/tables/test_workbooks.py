"""Excel files: sheets as tables, and files that are made to do harm."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pytest

from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import read_distances, read_table
from support.cases import each
from support.workbook import MAIN, book, sheet_text

ROWS = [
    ["name", "x", "y", "day", "good"],
    ["p", 1.5, 2, datetime.date(2020, 1, 2), True],
    ["q", 2.5, 4, datetime.date(2020, 1, 3), False],
    ["r", 3.5, 8, datetime.date(2020, 1, 4), True],
]


@pytest.fixture
def write(tmp_path):
    def file(name="t.xlsx", shared=None, **sheets):
        texts = {
            key: rows if isinstance(rows, str) else sheet_text(rows) for key, rows in sheets.items()
        }
        (tmp_path / name).write_bytes(book(texts, shared))
        return tmp_path / name

    return file


@pytest.fixture
def excel():
    return pytest.importorskip("fastexcel", reason="reads Excel files")


@pytest.mark.usefixtures("excel")
def test_a_sheet_is_a_table(write):
    table = read_table(write(one=ROWS))
    assert table.feature_names == ("x", "y", "good")
    assert table.features.rows() == [(1.5, 2.0, 1.0), (2.5, 4.0, 0.0), (3.5, 8.0, 1.0)]
    assert table.labels["name"].to_list() == ["p", "q", "r"]
    assert table.labels["day"].dt.date().to_list()[0] == datetime.date(2020, 1, 2)
    assert table.notes == ()


@pytest.mark.usefixtures("excel")
def test_the_first_sheet_is_read_unless_another_one_is_named(write):
    path = write(one=ROWS, two=[["a", "b"], [1, 2], [3, 5]])
    assert "sheet 'one' is read; --part takes 'two'" in read_table(path).notes[0]
    assert read_table(path, part="two").features.rows() == [(1.0, 2.0), (3.0, 5.0)]
    with pytest.raises(DataError, match="unknown sheet 'tow'; did you mean 'two'"):
        read_table(path, part="tow")


@pytest.mark.usefixtures("excel")
def test_sheets_as_people_have_them(write):
    # Empty rows and columns, numbers in text, a gap, no header, names of rows, codes.
    table = read_table(write(s=[["a", "b"], [1, "1,5"], [None, None], [2, "2,25"]]))
    assert table.features.rows() == [(1.0, 1.5), (2.0, 2.25)]
    table = read_table(write(s=[["a", "b"], [1, None], [2, 5]]), allow_missing=True)
    assert np.isnan(table.features["b"][0])
    table = read_table(write(s=[[1, 2.5], [3, 4.5]]))
    assert table.features.rows() == [(1.0, 2.5), (3.0, 4.5)]
    assert "no header row" in table.notes[0]
    table = read_table(write(s=[[None, "a"], ["p", 1], ["q", 2]]))
    assert table.ids.to_list() == ["p", "q"]
    table = read_table(write(s=[["zip", "x"], ["01234", 1], ["12345", 2]]))
    assert table.ids.to_list() == ["01234", "12345"]
    table = read_table(write(s=[["id", "v"], [1, "[1, 2.5]"], [2, "[3, 4]"]]))
    assert table.features.rows() == [(1.0, 2.5), (3.0, 4.0)]


@pytest.mark.usefixtures("excel")
def test_distances_are_read_from_a_sheet(write):
    table = read_distances(write(s=[[None, "A", "B"], ["A", 0, 1.5], ["B", 1.5, 0]]))
    np.testing.assert_array_equal(table.features, [[0, 1.5], [1.5, 0]])
    assert table.ids.to_list() == ["A", "B"]


@pytest.mark.usefixtures("excel")
def test_an_excel_file_is_known_by_what_it_holds(write):
    table = read_table(write("t.csv", s=ROWS))
    assert table.shape == (3, 3)
    assert "read as Excel" in table.notes[0]


def test_without_the_library_the_message_tells_how_to_get_it(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(DataError, match=r"pip install 'lowland\[excel\]'"):
        read_table(write(s=ROWS))


def far_cell(last):
    first = '<row r="1"><c r="A1"><v>1</v></c></row>'
    return f"<worksheet {MAIN}><sheetData>{first}{last}</sheetData></worksheet>"


@pytest.mark.usefixtures("excel")
@each(
    "last",
    [
        '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>',
        "<row r='1048576'><c r='XFD1048576'><v>2</v></c></row>",
        '<row r = "1048576"><c s="0" r = "xfd1048576" ><v>2</v></c></row>',
        '<row><c\n r="XFD1048576"><v>2</v></c></row>',
        '<row r="1048576"><c r="A1048576"/></row><row r="2"><c r="XFD2"><v>1</v></c></row>',
    ],
)
def test_a_cell_far_away_does_not_allocate_what_lies_between(write, last):
    with pytest.raises(DataError, match=r"span 1048576 rows and 16384 columns"):
        read_table(write(s=far_cell(last)))


@pytest.mark.usefixtures("excel")
def test_one_long_text_for_many_cells_is_counted_for_each(write):
    shared = f"<sst {MAIN}><si><t>{'x' * 3_000_000}</t></si></sst>"
    cells = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(1, 3001))
    path = write(s=f"<worksheet {MAIN}><sheetData>{cells}</sheetData></worksheet>", shared=shared)
    with pytest.raises(DataError, match=r"claim to hold 9\.0 GB"):
        read_table(path)


@pytest.mark.usefixtures("excel")
def test_a_bomb_is_refused_whatever_size_it_declares(write, monkeypatch):
    path = write(s=sheet_text(ROWS) + " " * 9_000_000)
    monkeypatch.setattr("lowland.tables.formats.workbooks.HARMLESS", 2_000_000)
    with pytest.raises(DataError, match="unpack to more than"):
        read_table(path)
    whole = write(s=sheet_text(ROWS) + " " * 1_000_000).read_bytes()
    true = len(sheet_text(ROWS)) + 1_000_000
    lied = whole.replace(true.to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert lied != whole
    path.write_bytes(lied)
    with pytest.raises(DataError, match="declares 100"):
        read_table(path)
    path.write_bytes(whole)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "500kB")
    with pytest.raises(MemoryLimitError, match="unpacking it"):
        read_table(path)


@pytest.mark.usefixtures("excel")
def test_damaged_files_are_refused_in_one_line(write, damage):
    assert damage(write(s=ROWS), read_table, trials=120) > 60


@pytest.mark.usefixtures("excel")
@each(
    ("sheets", "message"),
    [
        ({"s": []}, "no rows|no column"),
        ({"s": [["a", "b"]]}, "there are no rows"),
        ({"s": [["a", "a"], [1, 2]]}, None),
        ({"s": "<worksheet"}, "t.xlsx"),
        ({"s": "no xml"}, "t.xlsx"),
    ],
)
def test_sheets_without_a_table_are_refused(write, sheets, message):
    if message is None:  # the library numbers equal names
        assert read_table(write(**sheets)).shape == (1, 2)
        return
    with pytest.raises(DataError, match=message):
        read_table(write(**sheets))
