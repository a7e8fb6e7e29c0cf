"""Every failure is one line on stderr and an exit code; input that cannot be read is named."""

from __future__ import annotations

import os

import numpy as np
import pytest

from lowland._core import registry
from lowland._core.errors import MemoryLimitError


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", None, "t.csv: no such file"),
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", b"a,b\nx,y\n", "no column of numbers"),
        ("t.csv", b"a,b\n1,\n2,3\n", "1 missing value in 1 column"),
        ("t.csv", b"a,b\n1,inf\n2,3\n", "infinite values"),
        ("t.csv", b"a,b\n1,2,3\n", "line 2: 3 fields"),
        ("t.csv", b"a,\x81\n1,2\n", "not UTF-8"),
        ("t.parquet", b"PAR1", "cannot be read as Parquet"),
        ("t.npy", b"x", "cannot be read as NPY"),
        ("t.npz", b"x", "cannot be read as NPZ"),
        ("t.docx", b"x", "'.docx' are not read"),
        ("digitz", None, "did you mean 'digits'?"),
        ("t\n\x1b[2J.csv", None, "t \\x1b[2J.csv: no such file"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(refused, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = list(tmp_path.iterdir())
    assert message in refused("map", name)
    assert list(tmp_path.iterdir()) == before


def test_more_dimensions_than_the_data_have_is_one_line(refused):
    assert "n_components" in refused("map", "iris", "-m", "pca", "--n-components", "5")


def test_one_row_is_too_few_and_says_so(refused, tmp_path):
    np.save(tmp_path / "t.npy", np.ones((1, 3)))
    assert "1 sample" in refused("map", "t.npy")


def test_an_output_that_is_a_file_is_refused(refused, tmp_path):
    (tmp_path / "out").write_text("mine")
    assert "out" in refused("map", "iris", "-o", "out")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read and write anything")
def test_permissions_are_one_line(refused, tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "t.csv").chmod(0)
    assert "t.csv: Permission denied" in refused("map", "t.csv")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryLimitError("needs 37 GB"), 2, "needs 37 GB"),
        (MemoryError("Unable to allocate"), 2, "not enough memory: Unable to allocate"),
        (PermissionError(13, "Permission denied", "x.csv"), 2, "x.csv: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (RuntimeError("a\nbug"), 3, "RuntimeError: a bug (set LOWLAND_DEBUG=1"),
    ],
)
def test_each_kind_of_failure_has_its_exit_code(run, monkeypatch, tmp_path, error, code, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(registry.get("pca"), "fit_transform", fail)
    outcome = run("map", "iris", "-m", "pca")
    assert outcome.code == code
    assert outcome.out == ""
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_debugging_shows_the_traceback(run, monkeypatch):
    monkeypatch.setenv("LOWLAND_DEBUG", "1")
    assert "Traceback" in run("map", "absent.csv").err
