"""The generator of the method pages reads docstrings and declarations correctly."""

import re
import sys
from pathlib import Path

import pytest

from lowland._core import registry

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def docstrings(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.delitem(sys.modules, "docstrings", raising=False)
    import docstrings

    return docstrings


def test_an_entry_for_several_names_describes_the_first_of_them(docstrings):
    section = "\n".join(["metric, metric_params", "    Distance.", "tol : float", "    Stop."])
    assert docstrings.long_texts(section) == {"metric": "Distance.", "tol": "Stop."}


def test_an_entry_without_text_leaves_the_declared_one(docstrings):
    assert docstrings.long_texts("tol : float, default=0") == {}


def test_no_two_parameters_of_a_page_have_the_same_text():
    for cls in registry.all_methods():
        page = ROOT / f"docs/methods/{registry.snake_case(cls.__name__)}.md"
        table = page.read_text(encoding="utf-8").partition("## Parameters")[2].partition("## ")[0]
        texts = re.findall(r"^\| `\w+` \|.*\| (.+) \|$", table, re.MULTILINE)
        assert len(texts) == len(cls.parameters()), cls
        assert len(set(texts)) == len(texts), cls
