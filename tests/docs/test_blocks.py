"""Python and shell code in the pages runs as it stands, and prints what the page shows."""

import inspect
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from lowland.cli import main
from lowland.trust import sentences

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


# How a line on where a map can be believed begins, and words of the answers to each question.
VERDICT = re.compile(r"^ +(ok|caution|serious) ", re.MULTILINE)
QUESTIONS = {
    "points": r"\bpoints\b.*\b(belong|neighbors|dissimilar|misplaced)\b",
    "gaps": r"\bgaps?\b",
    "merged": r"\bholds? two groups\b",
    "contrast": r"^In the data, the islands are\b",
}


def words(text: str) -> str:
    """Output without what depends on the processor: numbers, some of which are times, and verdicts.

    An iterated map differs a little on another processor, so that a gap that was unclear may be in
    the data. Of such lines only the question is kept that they answer.
    """
    lines = []
    for line in text.splitlines():
        verdict = VERDICT.match(line)
        lines.append(f"verdict on {question(line[verdict.end() :])}" if verdict else line)
    return " ".join(re.sub(r"\d+(\.\d+)?", "#", "\n".join(lines)).split())


def question(sentence: str) -> str:
    """The question that a sentence about a map answers."""
    (found,) = [name for name, sign in QUESTIONS.items() if re.search(sign, sentence.strip())]
    return found


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


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_verdicts_of_a_page_are_worded_as_the_program_does(page):
    """The program may judge its map otherwise here, so words are looked up where it has them."""
    known = set(re.findall(r"[a-z]+", inspect.getsource(sentences).lower()))
    shown = [line for block in blocks(page, "sh") for line in block.output.splitlines()]
    verdicts = [line for line in shown if VERDICT.match(line)]
    assert [question(VERDICT.sub("", line)) for line in verdicts] == list(QUESTIONS)
    assert set(re.findall(r"[a-z]+", " ".join(verdicts).lower())) <= known | {"ok"}
