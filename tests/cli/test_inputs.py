"""Several inputs and patterns on the command line."""

from __future__ import annotations

import json
import os

import numpy as np
import polars as pl
import pytest

from support.cases import each

ROWS = np.random.default_rng(5).normal(size=(40, 4)).round(3)


@pytest.fixture(autouse=True)
def files(tmp_path):
    """Two files of the same columns, which are written in two ways."""
    for name, rows, separator, comma in [("a", ROWS[:25], ",", False), ("b", ROWS[25:], ";", True)]:
        kinds = pl.Series("kind", ["u", "v"] * 20).head(len(rows))
        frame = pl.DataFrame(rows, schema=list("pqrs")).with_columns(kinds)
        frame.write_csv(tmp_path / f"{name}.csv", separator=separator, decimal_comma=comma)


def test_every_command_takes_several_inputs(run):
    files = ("a.csv", "b.csv")
    code, _, err = run("map", *files, "-m", "pca", "--no-report", "-o", "out")
    assert code == 0
    assert "note: rows of 2 files" in err
    made = pl.read_csv("out/map.csv")
    assert made["file"].to_list() == ["a.csv"] * 25 + ["b.csv"] * 15
    assert run("transform", "out/model.lowland", *files, "-o", "out/new.csv")[0] == 0
    assert pl.read_csv("out/new.csv").equals(made)
    assert run("compare", *files, "-m", "pca,classical_mds", "-o", "both")[0] == 0
    assert pl.read_csv("both/map-pca.csv").height == 40
    assert run("select", *files, "--target", "kind", "-k", 2, "-o", "out/s.csv")[0] == 0
    assert pl.read_csv("out/s.csv").height == 40


@each("inputs", [("*.csv",), ("a.csv", "b*")])
def test_patterns_that_the_shell_did_not_replace_are_replaced(run, inputs):
    code, out, _ = run("info", *inputs, "--json")
    assert (code, json.loads(out)["rows"]) == (0, 40)


def test_results_are_named_after_the_first_file(run):
    assert run("map", "a.csv", "b.csv", "-m", "pca", "--no-report")[0] == 0
    assert os.path.exists("lowland-out/a-and-1-more-pca/map.csv")


@each(
    ("arguments", "message"),
    [
        (("info", "a.csv", "a.csv"), "more than once"),
        (("info", "a.csv", "b.csv", "--distances"), "one file, not several"),
        (("info", "a.csv", "--vector", "p"), "'p' is not a column of lists of numbers"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_in_one_line(refused, arguments, message):
    assert message in refused(*arguments)


def test_standard_input_takes_every_kind_of_text_and_several_inputs(run):
    for name, others in [("b.csv", []), ("b.csv", ["a.csv"])]:
        with open(name, "rb") as stream:
            saved = os.dup(0)
            try:
                os.dup2(stream.fileno(), 0)
                code, out, _ = run("info", "-", *others, "--json")
            finally:
                os.dup2(saved, 0)
                os.close(saved)
        assert code == 0
        assert json.loads(out)["rows"] == (40 if others else 15)
