"""``lowland map`` and ``lowland transform`` on tables that are read in chunks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from lowland._base.interrupts import Ended
from lowland.preparation.preparation import Preparation
from lowland.workflow import placing
from lowland.workflow.streaming import roles, rows
from support.cases import each

ROWS = 600


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Parts of at most 100 rows."""
    monkeypatch.setattr(rows, "TASK_ROWS", 100)
    monkeypatch.setattr(placing, "TASK_ROWS", 100)


@pytest.fixture
def folder(tmp_path):
    """A folder of two Parquet files of 300 rows."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, ROWS)
    X = rng.standard_normal((ROWS, 4)) + 4 * kind[:, None]
    frame = pl.DataFrame({"sample": [f"s{i}" for i in range(ROWS)]})
    frame = frame.with_columns(**{f"c{i}": X[:, i] for i in range(4)})
    frame = frame.with_columns(kind=pl.Series([f"k{i}" for i in kind]))
    home = tmp_path / "in"
    home.mkdir()
    for i in range(2):
        frame[300 * i : 300 * (i + 1)].write_parquet(home / f"p{i}.parquet")
    return home


def parts(path):
    return {part.name: part.read_bytes() for part in sorted(Path(path).glob("part-*.parquet"))}


def test_a_folder_is_mapped_with_parts_picture_report_and_model(run, folder):
    outcome = run("map", "in/*.parquet", "-m", "pca", "--engine", "stream", "-o", "out", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["engine"], found["rows"], found["fitted_rows"]) == ("stream", ROWS, ROWS)
    assert found["parts"] == {"folder": "out/map", "files": 6, "kept": 0}
    assert found["outputs"] == {
        "map": "out/map",
        "picture": "out/map.png",
        "report": "out/report.html",
        "model": "out/model.lowland",
    }
    assert all(Path(path).exists() for path in found["outputs"].values())
    quality = found["quality"]["trustworthiness"]
    assert quality["sample_size"] == ROWS
    assert quality["random"] == pytest.approx(0.5, abs=0.01)
    whole = pl.concat([pl.read_parquet(path) for path in sorted(Path("out/map").glob("part-*"))])
    memory = json.loads(run("map", "in/*.parquet", "-m", "pca", "-o", "other", "--json").out)
    expected = pl.read_parquet(memory["outputs"]["map"])
    assert whole.select("sample", "kind", "file").equals(expected.select("sample", "kind", "file"))
    np.testing.assert_allclose(whole.select("x", "y"), expected.select("x", "y"), atol=1e-6)
    assert memory["quality"]["trustworthiness"]["value"] == pytest.approx(quality["value"])
    page = Path("out/report.html").read_text()
    assert "The table was read in chunks (engine: stream)" in page


def test_auto_streams_what_does_not_fit_and_says_so(run, folder, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "12kB")
    monkeypatch.setattr(roles, "FEWEST", 20)
    outcome = run("map", "in/*.parquet", "-m", "pca", "--no-report", "-o", "out")
    assert outcome.code == 0, outcome.err
    assert (
        "note: the table needs about 32 kB, the process may use 12 kB: rows are read in chunks "
        "(--engine stream)" in outcome.err
    )
    assert "prepared as a sample of 31 of 600 rows suggests" in outcome.out
    assert "fitted on all 600 rows, which were read in chunks" in outcome.out
    assert "needs" in run("map", "in/*.parquet", "-m", "pca", "--engine", "memory").err


def test_an_interrupted_run_goes_on(run, folder, monkeypatch):
    command = ("map", "in/*.parquet", "-m", "pca", "--engine", "stream", "--no-report", "-o", "out")
    place, calls = rows.Place.__call__, []

    def interrupted(self, frame):
        if self.model is None or isinstance(self.model, Preparation):  # before the fit
            return place(self, frame)
        calls.append(1)
        if len(calls) == 4:
            raise Ended
        return place(self, frame)

    monkeypatch.setattr(rows.Place, "__call__", interrupted)
    outcome = run(*command)
    assert outcome.code == 130
    assert outcome.err.endswith("interrupted; what is finished is kept, and --resume goes on\n")
    monkeypatch.setattr(rows.Place, "__call__", place)
    assert len(parts("out/map")) == 3
    assert "exists already" in run(*command).err
    again = run(*command, "--resume", "--json")
    assert json.loads(again.out)["parts"]["kept"] == 3
    assert run(*command, "--force").code == 0


def test_new_rows_go_to_a_folder(run, folder):
    assert run("map", "in/*.parquet", "-m", "pca", "--no-report", "-o", "made").code == 0
    model = "made/model.lowland"
    outcome = run("transform", model, "in/*.parquet", "-o", "out/")
    assert outcome.code == 0, outcome.err
    assert "600 rows placed by PCA from 4 columns in" in outcome.out
    assert "out (6 parts)" in outcome.out
    before = parts("out")
    Path("out/part-000003.parquet").unlink()
    resumed = run("transform", model, "in/*.parquet", "-o", "out/", "--resume", "--json")
    assert json.loads(resumed.out)["parts"] == {"folder": "out", "files": 6, "kept": 5}
    assert parts("out") == before
    assert "is not empty" in run("transform", model, "in/*.parquet", "-o", "out/").err
    assert run("transform", model, "in/*.parquet", "-o", "out/", "--force").code == 0
    assert run("transform", model, "in/p0.parquet", "--engine", "stream").code == 0
    assert len(parts("p0-map")) == 3


@each(
    ("options", "message"),
    [
        (("--scheduler", "local:2"), "--scheduler: is for --engine dask"),
        (("--engine", "stream", "--format", "csv"), "--format: rows are read in chunks"),
        (("--engine", "stream", "--missing", "drop"), "--missing drop needs the whole table"),
        (("--engine", "stream", "--labels", "in/p0.parquet"), "--labels needs the whole table"),
        (("--resume",), "--resume: is for rows that are read in chunks; add --engine stream"),
        (("--engine", "memory", "--resume"), "--resume: is for rows that are read in chunks"),
    ],
)
def test_nonsense_ends_in_one_line(options, message, refused, folder):
    assert message in refused("map", "in/*.parquet", "-m", "pca", *options)


def test_new_rows_are_not_written_to_a_file_in_chunks(refused, run, folder):
    run("map", "in/*.parquet", "-m", "pca", "--no-report", "-o", "made")
    model = "made/model.lowland"
    to_file = ("transform", model, "in/*.parquet", "-o", "a.csv", "--engine", "stream")
    assert "give the name of a folder" in refused(*to_file)
    assert "iris is not a file" in refused("transform", model, "iris", "-o", "out/")
    resumed = refused("transform", model, "in/*.parquet", "-o", "a.csv", "--resume")
    assert "add --engine stream" in resumed
