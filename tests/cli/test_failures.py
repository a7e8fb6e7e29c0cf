"""Every failure is one line on stderr and an exit code."""

from __future__ import annotations

import os

import pytest

from lowland._base import registry
from lowland._base.errors import MemoryLimitError


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
