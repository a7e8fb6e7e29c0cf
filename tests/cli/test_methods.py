"""``lowland methods``: the registry, shown."""

from __future__ import annotations

import json

import pytest

from lowland._base import registry
from lowland.cli.method_options import method_options


def test_the_table_names_every_method_with_family_summary_and_paper(run):
    outcome = run("methods")
    assert outcome.code == 0
    for cls in registry.all_methods():
        assert cls.summary().split()[0] in outcome.out
        assert cls.reference.split()[0] in outcome.out
    listed = json.loads(run("methods", "--json").out)
    assert [method["name"] for method in listed] == registry.names()
    assert all(method["family"] in registry.FAMILIES for method in listed)
    assert all(method["summary"] and method["paper"] for method in listed)


@pytest.mark.parametrize("method", registry.names())
def test_a_card_shows_every_option_with_default_and_allowed_values(run, method):
    cls = registry.get(method)
    outcome = run("methods", method)
    assert outcome.code == 0
    text = " ".join(outcome.out.split())
    for option in method_options(cls).values():
        assert option.name in text
        assert option.doc in text
        assert f"{option.constraint.describe()}; default {option.default}" in text
    assert " ".join(cls.reference.split()) in text
    assert "----" not in text
    card = json.loads(run("methods", method, "--json").out)
    assert card["name"] == method
    assert len(card["options"]) == len({o.parameter for o in method_options(cls).values()})


def test_a_card_says_whether_the_method_learns_from_a_column(run):
    said = {}
    for method in ("lda", "umap", "pca"):
        card = json.loads(run("methods", method, "--json").out)
        text = " ".join(run("methods", method).out.split())
        said[method] = card["needs_target"], card["uses_target"]
        assert ("learns from labels (--target)" in text) == card["needs_target"]
        assert ("learns from a column if one is named (--target)" in text) == card["uses_target"]
    assert said == {"lda": (True, False), "umap": (False, True), "pca": (False, False)}


def test_an_unknown_method_gets_the_nearest_name(refused):
    assert "unknown method 'pcs'; did you mean 'pca'?" in refused("methods", "pcs")
