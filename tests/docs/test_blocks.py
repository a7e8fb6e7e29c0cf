"""Python and shell code in the pages runs as it is printed."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from lowland.cli import main

ROOT = Path(__file__).resolve().parents[2]
PYTHON = (
    "README.md",
    "docs/quickstart.md",
    "docs/python.md",
    "docs/selection.md",
    "docs/files.md",
)
SHELL = ("README.md", "docs/quickstart.md", "docs/choosing.md", "docs/selection.md")


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder with the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, n in (("cells", 60), ("new_cells", 7)):
        rows = rng.normal(size=(n, 5)) * [1, 20, 1, 3, 1] + (np.arange(n) % 3)[:, None] * 4
        lines = ["sample,size,mass,age,length,width,type"]
        for i, row in enumerate(rows):
            lines.append(",".join([f"{name}{i}", *(f"{x:.3f}" for x in row), "abc"[i % 3]]))
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    places = rng.normal(size=(60, 2))
    lines = ["sample,x,y", *(f"cells{i},{x:.3f},{y:.3f}" for i, (x, y) in enumerate(places))]
    (tmp_path / "umap.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of_a_page_runs(page, capsys):
    found = blocks(page, "python")
    assert found
    names: dict = {}
    for block in found:
        exec(compile(block, page, "exec"), names)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("page", SHELL)
def test_the_commands_of_a_page_run(page, capsys):
    lines = [line for block in blocks(page, "sh") for line in block.splitlines() if line]
    assert lines
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "lowland"
        assert main(arguments) == 0, capsys.readouterr().err
