"""``lowland info --perplexity``, as a user types it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lowland.preparation.preparation import Preparation
from lowland.trust import perplexity_plateau
from lowland.workflow import describe_table
from support.cases import each


@pytest.fixture
def sheets(tmp_path):
    """A table of three columns in different units, 120 rows, one missing value."""
    rng = np.random.default_rng(2)
    t = rng.uniform(0, 3, 120)
    X = np.column_stack([t, 1000 * np.sin(2 * t), 0.01 * rng.normal(size=120)])
    lines = [",".join(repr(float(value)) for value in row) for row in X]
    lines[5] = "," + lines[5].split(",", 1)[1]
    (tmp_path / "sheets.csv").write_text("\n".join(["a,b,c", *lines]) + "\n")
    return X


def test_perplexities_are_compared_on_the_prepared_rows(run, sheets):
    outcome = run("info", "sheets.csv", "--perplexity", "--json", "--seed", 1)
    assert outcome.code == 0
    found = json.loads(outcome.out)["perplexity"]
    assert found["rows_mapped"] == 120
    assert [one["perplexity"] for one in found["values"]] == [5.0, 15.0, 30.0]
    assert found["sentence"].endswith("Missing values were filled with the means of their columns.")
    X = sheets.copy()
    X[5, 0] = np.nan
    # a file has names of columns, which are scaled to one unit
    prepared = Preparation(missing="mean", scale="standard").fit_transform(X)
    wanted = perplexity_plateau(prepared, seed=1)
    assert [one["excess"] for one in found["values"]] == wanted.excess
    assert [one["overlap"] for one in found["values"]] == wanted.overlap
    assert [one["on_plateau"] for one in found["values"]] == wanted.on_plateau
    assert found["default"] == 30.0
    text = run("info", "sheets.csv", "--perplexity", "--seed", 1).out.rstrip("\n").split("\n")
    assert any(line.startswith("  would be scaled: standard (") for line in text)
    assert text[-1] == found["sentence"]
    assert text[-6] == "maps of 120 rows by t-SNE:"
    for one, line in zip(found["values"], text[-4:-1], strict=True):
        shown = [f"{one['perplexity']:g}", f"{one['excess']:.2f}", f"{one['overlap']:.2f}"]
        assert line.split()[:3] == shown
        assert line.endswith("on the plateau") == one["on_plateau"]


def test_without_the_option_nothing_is_compared(run, sheets):
    assert "perplexity" not in json.loads(run("info", "sheets.csv", "--json").out)
    assert "perplexity" not in describe_table(sheets)


@each(
    "table, options, sentence",
    [
        (np.eye(20), [], "Perplexities cannot be compared on 20 rows"),
        (1 - np.eye(120), ["--distances"], "Perplexities are not compared on distances"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_sentence(run, tmp_path, table, options, sentence):
    np.save(tmp_path / "t.npy", table)
    outcome = run("info", tmp_path / "t.npy", "--perplexity", *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.rstrip("\n").split("\n")[-1].startswith(sentence)
    found = json.loads(run("info", tmp_path / "t.npy", "--perplexity", *options, "--json").out)[
        "perplexity"
    ]
    assert found["values"] == []
    assert found["sentence"].startswith(sentence)


def test_equal_rows_have_a_sentence_or_maps(run, tmp_path):
    np.save(tmp_path / "t.npy", np.ones((120, 3)))
    outcome = run("info", "t.npy", "--perplexity", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["perplexity"]["sentence"]
