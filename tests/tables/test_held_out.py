"""A model of a file as people have it, applied to new files that are written in other ways."""

from __future__ import annotations

import numpy as np
import pytest

from lowland.io import read_table
from lowland.study import make_map, place_rows
from support.cases import each
from support.workbook import book, sheet_text

NAMES = ["height", "weight", "share", "price"]
X = np.random.default_rng(3).gamma(2.0, 40.0, size=(60, 4)).round(2)


def lines(rows, separator, shape, start=0):
    head = separator.join(["name", *NAMES])
    return "\n".join(
        [head, *(separator.join([f"r{start + i}", *map(shape, row)]) for i, row in enumerate(rows))]
    )


def comma(value):
    return f"{value:.2f}".replace(".", ",")


def german(value):
    return f"{value * 100:,.2f}".translate(str.maketrans(",.", ".,"))


WAYS = {
    "point.csv": lambda rows: lines(rows, ",", str),
    "comma.csv": lambda rows: lines(rows, ";", comma),
    "comma.tsv": lambda rows: lines(rows, "\t", comma),
    "blanks.txt": lambda rows: lines(rows, "   ", str),
    "bars.dat": lambda rows: "# a comment\n" + lines(rows, "|", comma),
    "units.csv": lambda rows: lines(rows, ";", lambda value: f"{comma(value)} kg"),
    "percent.csv": lambda rows: lines(rows, ",", lambda value: f"{value} %"),
    "currency.csv": lambda rows: lines(rows, ",", lambda value: f"€ {value}"),
    "plain": lambda rows: lines(rows, ",", str),
}


@pytest.fixture
def write(tmp_path):
    def file(way, rows, folder):
        path = tmp_path / folder / way
        path.parent.mkdir(exist_ok=True)
        path.write_text(WAYS[way](rows), encoding="utf-16" if way == "comma.tsv" else "utf-8")
        return path

    return file


@each("way", list(WAYS))
def test_a_model_places_new_rows_wherever_they_come_from(write, way):
    made = make_map(write(way, X[:40], "old"), "pca", measure=False, scale="standard")
    expected = None
    for other in WAYS:
        placed = place_rows(made.model, write(other, X[40:], "new")).coordinates
        expected = placed if expected is None else expected
        np.testing.assert_array_equal(placed, expected)
    for other in WAYS:  # the rows of the map itself
        placed = place_rows(made.model, write(other, X[:40], "new")).coordinates
        np.testing.assert_allclose(placed, made.map.select("x", "y").to_numpy(), atol=1e-9)


def test_thousands_marks_give_the_same_numbers(tmp_path):
    (tmp_path / "de.csv").write_text(lines(X, ";", german))
    (tmp_path / "us.csv").write_text(lines(X, "|", lambda value: f"{value * 100:,.2f}"))
    (tmp_path / "ch.csv").write_text(
        lines(X, "\t", lambda value: f"{value * 100:,.2f}".replace(",", "'"))
    )
    for name in ("de.csv", "us.csv", "ch.csv"):
        np.testing.assert_allclose(read_table(tmp_path / name).features, X * 100, rtol=1e-15)


def test_a_workbook_is_placed_like_a_text(write, tmp_path):
    pytest.importorskip("fastexcel", reason="reads Excel files")
    made = make_map(write("point.csv", X, "old"), "pca", measure=False)
    rows = [["name", *NAMES], *([f"r{i}", *row] for i, row in enumerate(X.tolist()))]
    (tmp_path / "t.xlsx").write_bytes(book({"rows": sheet_text(rows)}))
    placed = place_rows(made.model, tmp_path / "t.xlsx")
    assert placed.map.equals(made.map)
