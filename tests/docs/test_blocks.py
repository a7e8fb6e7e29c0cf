"""Python and shell code in the pages runs as it stands, and prints what the page shows."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from lowland.cli import main

ROOT = Path(__file__).resolve().parents[2]
FIRST = ("README.md", "docs/quickstart.md")  # what a new user reads
PYTHON = (
    *FIRST,
    "docs/python.md",
    "docs/selection.md",
    "docs/files.md",
    "docs/report.md",
    "docs/scale.md",
)
SHELL = (*FIRST, "docs/choosing.md", "docs/selection.md")


def each_page(pages: tuple[str, ...]) -> pytest.MarkDecorator:
    """All pages; those that a new user reads later are slow tests."""
    marks = {page: () if page in FIRST else pytest.mark.slow for page in pages}
    return pytest.mark.parametrize("page", [pytest.param(p, marks=m) for p, m in marks.items()])



FENCE = re.compile(
    r"^```(\w*)\n(.*?)^```\n(?:\n(?:prints\n\n)?```\n(.*?)^```)?", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """A fenced block, and the output that the page shows right after it."""

    language: str
    text: str
    output: str


def blocks(page: str, language: str) -> list[Block]:
    """The fenced blocks of a language, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(*found) for found in FENCE.findall(text) if found[0] == language]


def words(text: str) -> str:
    """Output without its numbers, some of which are times or depend on the processor."""
    return " ".join(re.sub(r"\d+(\.\d+)?", "#", text).split())


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
@each_page(PYTHON)
def test_the_python_of_a_page_runs_and_prints_what_the_page_shows(page, capsys):
    # tests/tables/test_scanpy.py runs what needs scanpy, which takes long to import
    found = [block for block in blocks(page, "python") if "import scanpy" not in block.text]
    assert found
    names: dict = {}
    for block in found:
        exec(compile(block.text, page, "exec"), names)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert not block.output or words(printed.out) == words(block.output)


@pytest.mark.usefixtures("tables")
@each_page(SHELL)
def test_the_commands_of_a_page_run_and_print_what_the_page_shows(page, capsys):
    found = blocks(page, "sh")
    assert found
    for block in found:
        for line in filter(None, block.text.splitlines()):
            program, *arguments = shlex.split(line, comments=True)
            assert program == "lowland"
            assert main(arguments) == 0, capsys.readouterr().err
        printed = capsys.readouterr().out
        assert not block.output or words(printed) == words(block.output)


def test_the_shown_output_is_found():
    shown = {page: sum(bool(each.output) for each in blocks(page, "sh")) for page in SHELL}
    assert min(shown["README.md"], shown["docs/quickstart.md"], shown["docs/selection.md"]) == 1
    assert any(each.output for each in blocks("README.md", "python"))
