"""Several inputs, patterns, vectors and other kinds of files on the command line."""

from __future__ import annotations

import json
import os

import numpy as np
import polars as pl
import pytest

from lowland.cli import main
from support.cases import each

ROWS = np.random.default_rng(5).normal(size=(40, 4)).round(3)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Call ``lowland`` in an empty folder; the exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name, rows, separator, comma in [("a", ROWS[:25], ",", False), ("b", ROWS[25:], ";", True)]:
        frame = pl.DataFrame(rows, schema=list("pqrs")).with_columns(
            kind=pl.Series(["u", "v"] * 20).head(len(rows))
        )
        frame.write_csv(f"{name}.csv", separator=separator, decimal_comma=comma)

    def call(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


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
        (("info", "https://a.b/c.csv"), "download it first"),
        (("info", "x*.csv"), "none matches this pattern"),
        (("info", "a.csv", "a.csv"), "more than once"),
        (("info", "a.csv", "iris"), "lacks 'p'"),
        (("info", "a.csv", "b.csv", "--distances"), "one file, not several"),
        (("info", "a.csv", "--vector", "p"), "'p' is no column of lists of numbers"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_in_one_line(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_conversion_is_said_and_the_map_is_that_of_the_plain_file(run):
    plain = pl.DataFrame(ROWS[25:], schema=list("pqrs"))
    plain.write_csv("plain.csv")
    _, _, err = run("map", "b.csv", "-m", "pca", "--no-report", "-o", "one")
    assert "note: numbers in text: decimal commas in p, q, r, s" in err
    assert run("map", "plain.csv", "-m", "pca", "--no-report", "-o", "two")[0] == 0
    maps = [pl.read_csv(f"{folder}/map.csv").select("x", "y") for folder in ("one", "two")]
    assert maps[0].equals(maps[1])


def test_a_vector_is_chosen_and_placed(run):
    vectors = pl.DataFrame({"id": range(40), "e": pl.Series(ROWS), "f": pl.Series(ROWS[:, :2])})
    vectors.write_parquet("v.parquet")
    code, _, err = run("map", "v.parquet", "-m", "pca", "--no-report", "-o", "out")
    assert code == 2
    assert "--vector e" in err
    assert run("map", "v.parquet", "--vector", "e", "-m", "pca", "--no-report", "-o", "out")[0] == 0
    made = pl.read_parquet("out/map.parquet")
    assert run("transform", "out/model.lowland", "v.parquet", "-o", "new.parquet")[0] == 0
    new = pl.read_parquet("new.parquet")
    np.testing.assert_allclose(new.select("x", "y"), made.select("x", "y"), atol=1e-9)
    assert run("info", "v.parquet", "--drop", "f")[0] == 0


def test_standard_input_takes_every_kind_of_text_and_several_inputs(run, monkeypatch, tmp_path):
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
