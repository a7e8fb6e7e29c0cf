"""Text that a spreadsheet would run is written as text, and read back as it was."""

from __future__ import annotations

import csv
import json

import numpy as np
import polars as pl
import pytest

from lowland.cli import main
from lowland.tables import read_table, write_frame
from support.cases import each

RUN = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "=",
    "'=1",
    "''+x y",
    "\uff1d1",
]
PLAIN = ["a", "-3.5", "+1e-5", "-.5", "'quoted'", "a=b", "-", "it's", "", "x\ty"]


def cells(path):
    """The cells as a program sees them that knows nothing of us."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def table():
    texts = [*RUN, *PLAIN]
    return pl.DataFrame(
        {
            "=id": [f"{text}{i}" for i, text in enumerate(texts)],
            "label": texts,
            "kind": pl.Series(texts, dtype=pl.Categorical),
            "-3.5": np.linspace(-1, 1, len(texts)),
            "b": np.cos(np.arange(len(texts))),
        }
    )


def test_no_cell_begins_a_formula_and_numbers_are_left_alone(tmp_path):
    frame = table()
    write_frame(frame, tmp_path / "t.csv")
    header, *rows = cells(tmp_path / "t.csv")
    assert header == ["'=id", "label", "kind", "-3.5", "b"]
    for (_, label, kind, *numbers), row in zip(rows, frame.rows(), strict=True):
        text = row[1]
        expected = f"'{text}" if text in RUN and len(text) > 1 else text
        assert (label, kind) == (expected, expected)
        assert [float(number) for number in numbers] == list(row[3:])


@each("suffix", [".csv", ".parquet"])
@each("raw", [False, True])
def test_reading_gives_back_what_was_written(tmp_path, suffix, raw):
    frame = table().filter(pl.col("label") != "")  # an empty text is a missing value in CSV
    if raw:  # then an apostrophe before a formula may be ours or not
        frame = frame.filter(~pl.col("label").str.starts_with("'"))
    write_frame(frame, tmp_path / f"t{suffix}", raw_text=raw)
    found = read_table(tmp_path / f"t{suffix}", columns=["b"], id_column="=id")
    assert found.ids.to_list() == frame["=id"].to_list()
    assert found.labels["label"].to_list() == frame["label"].to_list()
    assert found.labels["kind"].cast(pl.String).to_list() == frame["label"].to_list()
    if raw and suffix == ".csv":
        assert [row[1] for row in cells(tmp_path / "t.csv")[1:]] == frame["label"].to_list()


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pl.from_numpy(rng.normal(size=(20, 3)), schema=["=a", "b", "c"])
    names = pl.Series("name", [f"=HYPERLINK(A{i})" for i in range(20)])
    kinds = pl.Series("kind", ["=1", "@x"] * 10)
    frame.with_columns(names, kinds).write_csv("t.csv")
    return frame


def dangerous(path):
    return [cell for row in cells(path) for cell in row if cell[:1] in ("=", "@")]


def test_every_command_guards_the_tables_it_writes(hostile, capsys):
    told = ["t.csv", "--id", "name", "-q"]
    commands = [
        (["map", *told, "-m", "pca", "--no-report", "-o", "m"], "m/map.csv"),
        (["compare", *told, "-m", "pca", "-o", "c"], "c/map-pca.csv"),
        (["transform", "m/model.lowland", *told, "-o", "p.csv"], "p.csv"),
        (["select", *told, "--target", "kind", "-o", "s.csv"], "s.csv"),
    ]
    for arguments, path in commands:
        assert main(arguments) == 0, capsys.readouterr().err
        assert not dangerous(path)
        assert "'=HYPERLINK(A3)" in [cell for row in cells(path) for cell in row]
        assert main([*arguments, "--raw-text", "--force"]) == 0, capsys.readouterr().err
        assert "=HYPERLINK(A3)" in dangerous(path)
    assert "--raw-text" not in capsys.readouterr().err


def test_rows_of_a_guarded_map_are_found_by_name(hostile, capsys):
    assert main(["map", "t.csv", "--id", "name", "-m", "pca", "-o", "m", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert main(["score", "t.csv", "m/map.csv", "--id", "name", "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    name = "trustworthiness"
    assert scored["quality"][name]["value"] == pytest.approx(made["quality"][name]["value"])
