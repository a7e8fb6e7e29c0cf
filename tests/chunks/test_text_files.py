"""Delimited text in chunks: rows found by one pass, columns read by one rule in all chunks."""

from __future__ import annotations

import csv
import io

import numpy as np
import polars as pl
import pytest

import lowland.chunks.opening as opening
import lowland.tables.formats.delimited as delimited
import lowland.tables.formats.text_chunks as records
from lowland.chunks import open_rows
from lowland.errors import DataError
from lowland.tables import read_table
from support.cases import each


def table(text, folder, name="a.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def numbers(rows):
    return np.concatenate([block.X for block in rows.blocks()])


def check(path, task_rows):
    """The chunks hold what the whole table holds."""
    whole = read_table(path, guess=False, allow_missing=True)
    rows = open_rows(path, task_rows=task_rows)
    assert rows.names == tuple(whole.feature_names)
    np.testing.assert_array_equal(numbers(rows), np.asarray(whole.features))
    assert set(rows.beside) == {*whole.labels.columns, *([rows.id_name] if rows.id_name else [])}
    if rows.beside:
        along = pl.concat([block.beside for block in rows.blocks()])
        assert along.select(whole.labels.columns).equals(whole.labels)
        if rows.id_name:
            assert along[rows.id_name].to_list() == whole.ids.to_list()
    return rows


QUOTED = 'a,t,b\n1,"x\ny",2\n3,"say ""hi"", you\n\n",4\n5,plain,6\n7,"",8\n'
TEXTS = {
    "plain": "a,b\n1,2\n3,4.5\n5,6\n7,8\n",
    "no last line feed": "a,b\n1,2\n3,4\n5,6",
    "CRLF": "a,b\r\n1,2\r\n3,4\r\n5,6\r\n",
    "CRLF, quoted": QUOTED.replace("\n", "\r\n"),
    "BOM": "\ufeffa,b\n1,2\n3,4\n5,6\n",
    "BOM without header": "\ufeff1,2\n3,4\n5,6\n",
    "no header": "1.5,2\n3,4\n5,6\n",
    "blank lines": "a,b\n\n1,2\n\n\n3,4\n5,6\n\n",
    "blank lines, CRLF": "a,b\r\n1,2\r\n\r\n\r\n3,4\r\n5,6\r\n",
    "comments": '# made by 5" pipe\n# more\na,b\n1,2\n3,4\n5,6\n',
    "header in a comment": "#a b c\n1 2 3\n4 5 6\n7 8 9\n",
    "semicolons, decimal commas": "a;b;t\n1,5;2;x\n3,25;4;y\n5,0;6;z\n",
    "semicolons, points": "a;b\n1.5;2\n3.25;4\n5.0;6\n",
    "tabs": "a\tb\n1\t2\n3\t4\n5\t6\n",
    "bars": "a|b|t\n1|2|x\n3|4|y\n",
    "white space": "a  b   c\n1  2   3\n 4 5 6\n7 8.5    9\n",
    "one column": "a\n1\n2\n3.5\n4\n",
    "quoted line feeds": QUOTED,
    "quoted numbers": '"a","b"\n"1","2"\n"3.5","4"\n',
    "missing words": "a,b,t\n1,NA,NA\n?,2,x\n-,,y\n3,4,none\n",
    "missing at the end": "a,b\n1,\n2,\n3,4\n",
    "blanks around": "a,b\n 1, 2 \n 3,4\n5 ,6\n",
    "thousands": 'a,b\n"1,234.5",1\n"12,345.25",2\n"7",3\n',
    "thousands by points": "a;b\n1.234,5;1\n12.345,25;2\n7,5;3\n",
    "units": "a,b\n1.5 kg,$3\n2.5 kg,$4.50\n3 kg,$5\n",
    "percent": "a,b\n10%,1\n20.5%,2\n30%,3\n",
    "truth": "a,ok\n1,true\n2,false\n3,true\n",
    "codes": "zip,a\n01234,1\n56789,2\n00001,3\n",
    "row names": '"a" "b"\n"r1" 1 2\n"r2" 3 4\n"r3" 5 6\n',
    "unnamed first column": ",a,b\nr1,1,2\nr2,3,4\nr3,5,6\n",
    "quoted header": '"a\nb",c\n1,2\n3,4\n',
    "formulas": "a,t\n1,'=x\n2,'+y\n3,z\n",
    "exponents": "a,b\n1e3,-2E-5\n+3,.5\ninf,1\n",
    "large": "a,b\n12345678901234567,1\n2,3\n",
    "letters": "größe,b\n1,ä\n2,ß\n3,ü\n",
    "odd names": 'a,"b, c",a[*]\n1,2,3\n4,5,6\n',
    "accents without UTF-8": "größe,b\n1,ä\n2,ß\n3,é\n".encode("latin-1"),
}


@each("kind", TEXTS)
@each("task_rows", [1, 2, 3, 1 << 18])
def test_chunks_hold_what_the_whole_text_holds(tmp_path, monkeypatch, kind, task_rows):
    if "inf" in TEXTS[kind] if isinstance(TEXTS[kind], str) else False:
        rows = open_rows(table(TEXTS[kind], tmp_path), task_rows=task_rows)
        assert numbers(rows)[2, 0] == np.inf
        return
    suffix = {"tabs": ".tsv", "white space": ".txt"}.get(kind, ".csv")
    check(table(TEXTS[kind], tmp_path, f"a{suffix}"), task_rows)


@each("seed", range(12))
def test_any_text_is_cut_at_the_same_rows_in_pieces_of_any_size(tmp_path, monkeypatch, seed):
    """Rows by the csv module; the pass looks at a few bytes at a time."""
    rng = np.random.default_rng(seed)
    fields = ["x", "two\nlines", 'a "quote"', "a, comma", "", "\r\n", "é", '"', "\n\n"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=rng.choice(["\n", "\r\n"]))
    expected = []
    for i in range(700):
        row = [str(i), str(rng.choice(fields)), f"{rng.standard_normal():.3f}"]
        expected.append(row)
        writer.writerow(row)
        if rng.random() < 0.1:
            text.write(writer.dialect.lineterminator)
    body = text.getvalue().encode()
    path = table(body, tmp_path)
    monkeypatch.setattr(records, "CHUNK", int(rng.integers(1, 40)))
    marks = records.count_records(str(path), "a.csv", 0)
    assert marks.n_rows == 700
    starts = [marks.begin(str(path), "a.csv", row) for row in range(701)]
    assert starts[-1] == len(body)
    for row in rng.integers(0, 700, 60):
        record = body[starts[row] : starts[row + 1]].decode()
        assert next(csv.reader(io.StringIO(record, newline=""))) == expected[row]


@each("seed", range(3))
def test_text_of_many_rows_is_read_as_a_whole_is(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    n = 900
    frame = pl.DataFrame(
        {
            "x": rng.standard_normal(n),
            "t": rng.choice(["a", "b\nc", 'd"e', None], n),
            "i": rng.integers(-5, 5, n),
            "h": [None if value < 0.2 else value for value in rng.random(n)],
        }
    )
    frame.write_csv(tmp_path / "a.csv", quote_style="necessary")
    rows = check(tmp_path / "a.csv", int(rng.integers(1, 600)))
    assert np.array_equal(numbers(rows), frame.select("x", "i", "h").to_numpy(), equal_nan=True)


@pytest.fixture
def short_samples(monkeypatch):
    """Types are decided by the first rows and a few others."""
    monkeypatch.setattr(delimited, "HEAD", 1000)
    monkeypatch.setattr(delimited, "PLACE", 100)


def later(value, *, row):
    """A long text whose one value, far from the rows of the sample, is another one."""
    lines = [f"{i}.5,{i % 7},w{i % 5}" for i in range(4000)]
    lines[row] = f"{row}.5,{value},w"
    return "x,i,t\n" + "\n".join(lines) + "\n"


def test_types_hold_for_the_whole_text(tmp_path, short_samples):
    row = 3000
    path = table(later("many", row=row), tmp_path)
    rows = open_rows(path)
    with pytest.raises(DataError, match=rf"a\.csv, line {row + 2}: column 'i' holds 'many'"):
        numbers(rows)
    path = table(later("2.75", row=row), tmp_path)  # fits a float, and no whole number
    assert numbers(open_rows(path))[row, 1] == 2.75
    with pytest.raises(DataError, match=rf"line {row + 2}: column 'i' holds '2.75'"):
        list(open_rows(path, labels=["i"], columns=["x"]).blocks())
    path = table(later("NA", row=row), tmp_path)
    found = numbers(open_rows(path))
    assert np.isnan(found[row, 1])
    assert np.isnan(found).sum() == 1
    assert found[row - 1, 1] == (row - 1) % 7


def test_numbers_are_read_by_one_rule_in_all_chunks(tmp_path, short_samples):
    """1,234 alone can be read in two ways; another chunk must not decide anew."""
    path = table("a;b\n1,5;1\n2,25;2\n1,234;3\n7,123;4\n", tmp_path)
    expected = [1.5, 2.25, 1.234, 7.123]
    assert numbers(open_rows(path, task_rows=1))[:, 0].tolist() == expected
    path = table('a,b\n"1,234,567",1\n"2,500",2\n"1,234",3\n12,4\n', tmp_path)
    assert numbers(open_rows(path, task_rows=1))[:, 0].tolist() == [1234567, 2500, 1234, 12]
    rows = [f"{i} kg,1" for i in range(3000)]
    rows[2900] = "2900 lb,1"
    path = table("a,b\n" + "\n".join(rows) + "\n", tmp_path)
    with pytest.raises(DataError, match=r"a\.csv, line 2902: column 'a' holds '2900 lb'"):
        numbers(open_rows(path))


def test_types_are_decided_by_rows_from_all_over_the_text(tmp_path, short_samples):
    """Whole numbers at first and decimals later are decimals, beside the table too."""
    lines = [f"{i},{i if i < 1000 else i + 0.5}" for i in range(4000)]
    path = table("x,i\n" + "\n".join(lines) + "\n", tmp_path)
    rows = open_rows(path, columns=["x"], labels=["i"])
    along = pl.concat([block.beside for block in rows.blocks()])["i"]
    assert along.to_list() == [i if i < 1000 else i + 0.5 for i in range(4000)]


def test_chunks_of_long_rows_are_short(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "TEXT_BYTES", 1000)
    path = table("a,t\n" + "".join(f"{i},{'long ' * 9}\n" for i in range(100)), tmp_path)
    rows = open_rows(path)
    assert max(chunk.span[1] - chunk.span[0] for chunk in rows.chunks) <= 1000
    assert numbers(rows)[:, 0].tolist() == [*range(100)]


REFUSED = {
    "too few fields": ("a,b,c\n" + "1,2,3\n" * 50 + "1,2\n" + "1,2,3\n" * 50, "line 52: 2 fields"),
    "too many fields": ("a,b,c\n" + "1,2,3\n" * 50 + "1,2,3,4\n", "line 52: 4 fields"),
    "open quotation mark": ('a,t\n1,x\n2,"y\n3,z\n', "quotation mark is opened and never closed"),
    "stray quotation marks": ('a,t\n1,5" x\n2,6" x\n3,z\n', "quotation marks|CSV malformed"),
    "two names": ("a,a\n1,2\n", "several columns are called 'a'"),
    "null byte": ("a,b\n" + "1,2\n" * 9000 + "\0,3\n", "null byte"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "iconv"),
    "only a header": ("a,b\n", "there are no rows"),
    "only blank lines": ("\n\n\n", "empty"),
    "carriage returns": ("a,b\r1,2\r3,4\r", "line feed"),
    "text only": ("a,b\nx,y\nz,w\n", "no column of numbers"),
}


@each("kind", REFUSED)
def test_bad_texts_are_refused_and_named(tmp_path, kind):
    text, message = REFUSED[kind]
    path = table(text, tmp_path, "bad.csv")
    with pytest.raises(DataError, match=message) as caught:
        numbers(open_rows(path))
    assert "bad.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@each("line", ["1,2\n", "1,2,3,4\n"])
def test_rows_of_another_width_are_found_in_columns_that_are_not_read(
    tmp_path, short_samples, line
):
    other = "1,2,3,4\n" if line == "1,2\n" else "1,2\n"
    text = "a,b,c\n" + "1,2,3\n" * 3_000 + line + "1,2,3\n" * 7 + other + "1,2,3\n" * 3_000
    rows = open_rows(table(text, tmp_path), columns=["a"])
    with pytest.raises(DataError, match=r"line 3002: \d fields"):
        numbers(rows)


def test_files_that_are_written_in_other_ways_fit_together(tmp_path):
    first = table("a,b,t\n1,2,x\n3,4,y\n", tmp_path, "1.csv")
    paths = [
        first,
        table("b;a;t\n2,5;1;x\n4;3;y\n", tmp_path, "2.csv"),
        table("\ufeffa,b,t\r\n7,8.5,x\r\n9,NA,y\r\n", tmp_path, "3.csv"),
        table("a,b,t\n1.5,2,x\n", tmp_path, "4.csv"),
        table("a\tb\tt\n5\t6\tz\n", tmp_path, "5.tsv"),
    ]
    expected = [[1, 2], [3, 4], [1, 2.5], [3, 4], [7, 8.5], [9, np.nan], [1.5, 2], [5, 6]]
    for task_rows in (1, 100):
        rows = open_rows(paths, task_rows=task_rows)
        np.testing.assert_array_equal(numbers(rows), expected)
    assert pl.concat([block.beside for block in rows.blocks()])["t"].to_list() == list("xyxyxyxz")


CHANGED = [
    ("a,t\n1,x\n", "lacks 'b'"),
    ("a,b,t\n1,two,x\n2,three,y\n", "column 'b' holds text"),
    ("a,b,t,c\n1,2,x,3\n", "has 'c' in addition"),
    ("", "is empty"),
]


@each("text, message", CHANGED)
def test_a_changed_schema_is_found_when_files_are_opened(tmp_path, text, message):
    good = table("a,b,t\n1,2,x\n3,4,y\n", tmp_path, "1.csv")
    bad = table(text, tmp_path, "2.csv")
    with pytest.raises(DataError, match=rf"2\.csv: .*{message}"):
        open_rows([good, bad])
