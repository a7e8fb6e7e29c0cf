"""Run the program inside the test process, in an empty folder."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from lowland.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Call ``lowland`` with arguments; the current folder is ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOWLAND_DEBUG", raising=False)

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def refused(run):
    """Call ``lowland``, expect bad input, and return the one line on stderr."""

    def call(*arguments: object) -> str:
        outcome = run(*arguments)
        assert outcome.code == 2
        assert outcome.out == ""
        assert outcome.err.startswith("lowland: error: ")
        assert outcome.err.count("\n") == 1
        return outcome.err

    return call


@pytest.fixture
def cells(tmp_path):
    """A small CSV file with an id, three features and two labels."""
    lines = ["sample,height,width,depth,kind,day"]
    for i in range(12):
        row = (f"s{i}", i * 1.5, (i * 7) % 5, (i * i) % 11, "ab"[i % 2], f"2024-01-{i + 1:02}")
        lines.append(",".join(map(str, row)))
    path = tmp_path / "cells.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
