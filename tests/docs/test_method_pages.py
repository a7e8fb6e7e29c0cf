"""The pages of the methods show the documentation of each parameter."""

import re
from pathlib import Path

from lowland._base import registry

ROOT = Path(__file__).resolve().parents[2]


def test_no_two_parameters_of_a_page_have_the_same_text():
    for cls in registry.all_methods():
        page = ROOT / f"docs/methods/{registry.snake_case(cls.__name__)}.md"
        table = page.read_text(encoding="utf-8").partition("## Parameters")[2].partition("## ")[0]
        texts = re.findall(r"^\| `\w+` \|.*\| (.+) \|$", table, re.MULTILINE)
        assert len(texts) == len(cls.parameters()), cls
        assert len(set(texts)) == len(texts), cls
