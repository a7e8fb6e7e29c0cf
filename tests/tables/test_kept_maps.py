"""A finished map is never lost: what fails after the fit is missing, and said to be."""

from __future__ import annotations

import html
import importlib
import json
import os
import signal

import numpy as np
import polars as pl
import pytest

import lowland
from lowland.cli import main
from lowland.errors import DataError, MemoryLimitError
from lowland.tables.options import TableOptions
from lowland.workflow import compare_methods, make_map
from lowland.workflow.comparing.entries import comparison_entries
from lowland.workflow.comparing.running import run_comparison
from lowland.workflow.options import RunOptions, RunSettings
from support.cases import each

MEASURING = importlib.import_module("lowland.metrics.quality_table")
TABLE = "height,width,depth\n" + "".join(
    f"{i * 1.5},{(i * 7) % 5},{(i * i) % 11}\n" for i in range(12)
)
FILES = ("map.csv", "map.png", "model.lowland", "report.html", "trust.csv")
FAILURES = [
    MemoryLimitError("measuring needs 37 GB"),
    DataError("these distances cannot be measured."),
    RuntimeError("a\ndefect"),
    np.linalg.LinAlgError("no convergence"),
    MemoryError("Unable to allocate"),
]


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def interrupting(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("the signal did not arrive")


def folder(path):
    return sorted(file.name for file in path.iterdir())


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    return tmp_path


@each("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_measure_that_fails_leaves_the_others(table, error, monkeypatch, capsys):
    monkeypatch.setattr(MEASURING, "quality", failing(error))
    assert main(["map", "t.csv", "-m", "pca", "-o", "out", "--force"]) == 1
    out, err = capsys.readouterr()
    reason = " ".join(str(error).split()).rstrip(".")
    assert err.startswith("lowland: warning: the map was not measured: ")
    assert f"{reason}; the map is kept" in err
    assert err.count("\n") == 1
    assert folder(table / "out") == [*FILES]
    assert "out/model.lowland" in out
    page = html.unescape((table / "out" / "report.html").read_text())
    assert f"the map was not measured: {type(error).__name__}: {reason}" in page or (
        f"the map was not measured: {reason}" in page
    )


@each(
    ("place", "kind", "file"),
    [
        ("lowland.workflow.result.picture_of", "picture", "map.png"),
        ("lowland.report.write_report", "report", "report.html"),
    ],
)
def test_a_picture_or_report_that_fails_leaves_the_rest_also_of_an_earlier_run(
    table, place, kind, file, monkeypatch, capsys
):
    command = ["map", "t.csv", "-m", "pca", "-o", kind, "--json"]
    assert main(command) == 0
    monkeypatch.setattr(place, failing(ValueError("no ink")))
    capsys.readouterr()
    assert main([*command, "--force"]) == 1
    out, err = capsys.readouterr()
    assert "ValueError: no ink; the map is kept" in err
    left = {*FILES} - {file}
    assert set(folder(table / kind)) == left
    found = json.loads(out)
    assert {os.path.basename(path) for path in found["outputs"].values()} == left
    assert found["not_made"] == {kind: "ValueError: no ink"}


def test_a_model_that_cannot_be_saved_leaves_the_map(table, monkeypatch, capsys):
    def half(self, path):
        with open(path, "w") as file:
            file.write("half")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(lowland.PCA, "save", half)
    assert main(["map", "t.csv", "-m", "pca", "-o", "out"]) == 1
    assert "the model was not saved" in capsys.readouterr().err
    assert folder(table / "out") == ["map.csv", "map.png", "report.html", "trust.csv"]
    assert pl.read_csv("out/map.csv").height == 12


def test_a_map_that_cannot_be_written_leaves_the_folder_as_it_was(table, monkeypatch):
    assert main(["map", "t.csv", "-m", "pca", "-o", "out", "-q"]) == 0
    before = (table / "out" / "map.csv").read_bytes()
    monkeypatch.setattr(
        "lowland.workflow.outputs.write_frame", failing(OSError(28, "No space left"))
    )
    assert main(["map", "t.csv", "-m", "pca", "-o", "out", "-q", "--force"]) == 2
    assert len(folder(table / "out")) == 5
    assert (table / "out" / "map.csv").read_bytes() == before


def test_ctrl_c_while_the_map_is_measured_keeps_everything_else(table, monkeypatch, capsys):
    monkeypatch.setattr(MEASURING, "quality", interrupting)
    assert main(["map", "t.csv", "-m", "pca", "-o", "out"]) == 1
    err = capsys.readouterr().err
    assert err == (
        "lowland: warning: the map was not measured: it was stopped by Ctrl-C; the map is kept\n"
    )
    assert folder(table / "out") == ["map.csv", "map.png", "model.lowland", "report.html"]


def test_ctrl_c_while_files_are_written_keeps_map_and_model(table, monkeypatch, capsys):
    monkeypatch.setattr("lowland.workflow.result.picture_of", interrupting)
    assert main(["map", "t.csv", "-m", "pca", "-o", "a"]) == 1
    assert "the picture was not drawn: it was stopped by Ctrl-C" in capsys.readouterr().err
    assert folder(table / "a") == ["map.csv", "model.lowland", "report.html", "trust.csv"]
    monkeypatch.undo()
    monkeypatch.chdir(table)
    save = lowland.PCA.save

    def slow_save(self, path):
        os.kill(os.getpid(), signal.SIGINT)
        save(self, path)

    monkeypatch.setattr(lowland.PCA, "save", slow_save)
    assert main(["map", "t.csv", "-m", "pca", "-o", "b"]) == 1
    assert folder(table / "b") == ["map.csv", "model.lowland"]


def test_from_python_the_result_says_what_is_missing(table, monkeypatch):
    monkeypatch.setattr(MEASURING, "quality", failing(MemoryLimitError("37 GB.")))
    with pytest.warns(UserWarning, match="the map was not measured: 37 GB; the map is kept"):
        made = make_map("t.csv", "pca")
    assert made.quality is None
    assert made.not_made == {"measures": "37 GB."}
    assert made.log[-1] == "the map was not measured: 37 GB."
    assert made.coordinates.shape == (12, 2)
    monkeypatch.setattr("lowland.report.write_report", failing(ValueError("no")))
    with pytest.warns(UserWarning, match="the report was not written"):
        files = made.write("out")
    assert files.report is None
    assert files.map.exists()
    assert files.model.exists()
    monkeypatch.undo()
    assert made.write(table / "again").report.exists()
    assert list(made.not_made) == ["measures"]


def test_a_folder_that_cannot_be_written_is_noticed_before_the_fit(table, monkeypatch, capsys):
    monkeypatch.setattr(lowland.PCA, "fit_transform", failing(AssertionError("too late")))
    mkdir = os.mkdir

    def readonly(path, *arguments, **named):
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, *arguments, **named)

    (table / "locked").mkdir()
    (table / "file").write_text("")
    monkeypatch.setattr(os, "mkdir", readonly)
    for command in ("map", "compare"):
        for output in ("locked", "locked/deep/out"):
            assert main([command, "t.csv", "-m", "pca", "-o", output]) == 2
            err = capsys.readouterr().err
            assert f"{output}: cannot be written: Permission denied" in err
        assert main([command, "t.csv", "-m", "pca", "-o", "file/out"]) == 2
        assert "file/out: cannot be made" in capsys.readouterr().err
    assert folder(table) == ["file", "locked", "t.csv"]


def test_compare_keeps_maps_whose_measure_picture_or_report_fails(table, monkeypatch, capsys):
    original, calls = MEASURING.quality, []

    def second_fails(*arguments, **named):
        calls.append(1)
        if len(calls) == 2:
            raise MemoryLimitError("too large.")
        return original(*arguments, **named)

    monkeypatch.setattr(MEASURING, "quality", second_fails)
    monkeypatch.setattr("lowland.plot.compare_maps", failing(ValueError("no ink")))
    code = main(["compare", "t.csv", "-m", "pca,mds", "-o", "out", "--json"])
    out, err = capsys.readouterr()
    assert code == 1
    assert "mds was not measured: too large; the map is kept" in err
    assert "the picture was not drawn: ValueError: no ink" in err
    assert folder(table / "out") == ["comparison.csv", "map-mds.csv", "map-pca.csv", "report.html"]
    found = json.loads(out)
    assert [row["not_measured"] for row in found["methods"]] == [None, "too large."]
    assert "picture" not in found["outputs"]
    assert pl.read_csv("out/comparison.csv")["trustworthiness"].is_null().to_list() == [False, True]


def test_a_defect_in_the_second_method_keeps_the_first_map(table, monkeypatch, capsys):
    monkeypatch.setattr(lowland.MDS, "fit_transform", failing(RuntimeError("a defect")))
    assert main(["compare", "t.csv", "-m", "pca,mds", "-o", "out"]) == 1
    assert "mds: RuntimeError: a defect" in capsys.readouterr().err
    assert "map-pca.csv" in folder(table / "out")
    assert main(["compare", "t.csv", "-m", "mds,pca", "-o", "other"]) == 3


def test_ctrl_c_during_compare_says_what_is_kept(table, monkeypatch, capsys):
    # of the method that runs there is no map yet: the comparison ends, earlier maps are kept
    monkeypatch.setattr(lowland.MDS, "fit_transform", interrupting)
    assert main(["compare", "t.csv", "-m", "pca,mds,classical_mds", "-o", "a"]) == 1
    err = capsys.readouterr().err
    assert "mds: it was stopped by Ctrl-C, and has no map yet" in err
    assert "the comparison was ended by Ctrl-C; these maps are kept: pca" in err
    assert "map-pca.csv" in folder(table / "a")
    assert main(["compare", "t.csv", "-m", "mds,pca", "-o", "b"]) == 130
    err = capsys.readouterr().err
    assert "lowland: error: interrupted; nothing was written" in err
    assert not (table / "b").exists()


def test_an_optimization_that_is_stopped_keeps_its_map_and_the_next_method_runs(table):
    notes = []

    def stop(step, Y, loss):
        if step == 30:
            os.kill(os.getpid(), signal.SIGINT)

    entries = comparison_entries([("tsne", {"callback": stop}), "pca"])
    options = run_options_with(notes.append)
    found = run_comparison("t.csv", entries, options)
    assert notes == ["tsne:callback=stop: stopped; the map computed so far is kept"]
    assert found.stopped_early
    assert list(found.maps) == ["tsne:callback=stop", "pca"]


def run_options_with(note):
    return RunOptions(TableOptions(), RunSettings(), note=note)


def test_comparisons_from_python_keep_what_there_is(table, monkeypatch):
    monkeypatch.setattr(MEASURING, "quality", failing(DataError("no.")))
    with pytest.warns(UserWarning, match="pca was not measured: no; the map is kept"):
        found = compare_methods("t.csv", ["pca"])
    assert found.not_made == {"measures of pca": "no."}
    monkeypatch.setattr("lowland.plot.compare_maps", failing(ValueError("no ink")))
    with pytest.warns(UserWarning, match="the picture was not drawn"):
        files = found.write("out")
    assert files.picture is None
    assert files.maps["pca"].exists()
