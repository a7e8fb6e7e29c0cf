"""The page: complete, well formed, self-contained, and text stays text."""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowland.errors import DataError
from lowland.report import render, write_report
from support.pages import Page

HOSTILE = "<script>alert(1)</script>"


class Reader(Page):
    @property
    def text(self) -> str:
        return re.sub(r"[ \n]+", " ", " ".join(self.texts))

    @property
    def data(self):
        return json.loads(self.contents["script"][0])


def test_the_page_has_every_section(summary):
    page = Reader(render(summary))
    ids = {value for name, value in page.attributes if name == "id"}
    assert ids >= {"map", "quality", "distortion", "reading", "method", "preparation", "reproduce"}
    for text in (
        "cells: t-SNE of 300 rows",
        "The map keeps 87\u202f% of each point's nearest neighbors; "
        "PCA keeps 45\u202f%, chance 0.1\u202f%.",
        "Distances between groups mean little",
        "van der Maaten & Hinton (2008)",
        "perplexity 30.0",
        "They were standardized.",
        "lowland map cells.csv --seed 7",
    ):
        assert text in page.text


def test_the_page_is_the_same_each_time_and_leaves_the_summary_alone(summary):
    before = copy.deepcopy(summary)
    assert render(summary) == render(summary)
    np.testing.assert_equal(summary, before)


def test_the_file_holds_the_page(summary, tmp_path):
    write_report(summary, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == render(summary).encode()


def test_nothing_is_loaded_from_anywhere(summary):
    summary["maps"][0]["pictures"] = {"scree": b"\x89PNG..."}
    page = Reader(render(summary))
    loaded = [value for name, value in page.attributes if name in ("src", "href")]
    assert loaded
    assert all(value.startswith(("#", "data:image/png;base64,")) for value in loaded)
    assert "link" not in page.tags


def test_pictures_of_a_method_have_a_section_with_their_captions(summary):
    assert 'id="pictures"' not in render(summary)
    captions = ["U-matrix: dark cells are <far> & alone.", "Hits: rows of each unit."]
    summary["maps"][0]["pictures"] = dict.fromkeys(captions, b"\x89PNG...")
    text = render(summary)
    section = text[text.index('<section id="pictures"') : text.index('<section id="reading"')]
    page = Reader(section)
    assert page.tags.count("img") == page.tags.count("figcaption") == 2
    assert [value for name, value in page.attributes if name == "alt"] == captions
    for caption in captions:
        assert f"<figcaption>{html.escape(caption)}</figcaption>" in section
    assert "far" not in page.tags


def test_facts_of_grids_and_curves_have_words(summary):
    summary["maps"][0]["facts"] = {"topographic_error": 0.0625, "log_likelihood": -12.5}
    text = html.unescape(render(summary))
    words = "Topographic error (rows whose two nearest units do not touch)"
    assert f"<dt>{words}</dt><dd>0.0625</dd>" in text
    assert "<dt>Log-likelihood</dt><dd>-12.5</dd>" in text


def test_the_policy_allows_our_script_and_style_and_no_other(summary):
    page = Reader(render(summary))
    (policy,) = (v for k, v in page.attributes if k == "content" and "default-src" in v)
    for kind, text in (
        ("script", page.contents["script"][1]),
        ("style", page.contents["style"][0]),
    ):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def hostile(summary, text):
    """The text in every place where a text can be."""
    n = len(summary["ids"])
    for key in ("title", "version", "created", "command"):
        summary[key] = text
    summary["input"] |= {"source": text, "features": [text]}
    summary |= {"preparation": [text], "dropped_rows": [text], "ids": [text] * n, "color": text}
    summary["labels"] = {text: [text] * n}
    entry = summary["maps"][0]
    entry |= {"name": text, "title": text, "seed": text}
    entry["card"] = dict.fromkeys(entry["card"], text)
    entry["parameters"] = entry["facts"] = {text: text}
    entry["quality"] = {text: entry["quality"]["continuity"] | {"meaning": text, "better": text}}
    entry["per_point"] = {text: entry["per_point"]["continuity"]}
    entry["pictures"] = {text: b"image"}
    return summary


def check_that_it_stays_text(summary, text):
    calm = Reader(render(hostile(copy.deepcopy(summary), "x")))
    page = Reader(render(hostile(summary, text)))
    assert page.tags == calm.tags
    assert [name for name, _ in page.attributes] == [name for name, _ in calm.attributes]
    assert page.data["columns"][0]["name"] == text
    assert page.data["maps"][0]["title"] == text
    assert set(page.data["ids"]["texts"]) == {text}
    return page


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "</script><script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "' onmouseover='alert(1)",
        "<!-- <script> -->",
        "{{ 7 * 7 }}{% raw %}",
        "]]>\u2028\u2029\\u003c",
    ],
)
def test_text_stays_text_wherever_it_stands(summary, text):
    page = check_that_it_stays_text(summary, text)
    assert page.data["columns"][0]["names"] == [text]
    if "\u2028" not in text:
        assert page.text.count(text) >= 15
    assert "\u2028" not in page.contents["script"][0]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1))
def test_any_text_stays_text(summary, text):
    check_that_it_stays_text(copy.deepcopy(summary), text)


@pytest.mark.parametrize(
    "key", ["title", "ids", "maps", "labels", "input", "dropped_rows", "command"]
)
def test_a_missing_key_is_named(summary, key):
    del summary[key]
    with pytest.raises(DataError, match=f"the summary lacks '{key}'"):
        render(summary)


@pytest.mark.parametrize("key", ["coordinates", "quality", "card", "per_point", "seed", "facts"])
def test_a_missing_key_of_a_map_is_named(summary, key):
    del summary["maps"][0][key]
    with pytest.raises(DataError, match=rf"maps\[0\] lacks '{key}'"):
        render(summary)


def test_what_does_not_fit_is_named(summary):
    entry = summary["maps"][0]

    def refused(message, **change):
        with pytest.raises(DataError, match=message):
            render({**summary, **change})

    refused("'maps' is empty", maps=[])
    refused(r"labels\['a'\] has 2 values, but there are 300 ids", labels={"a": [1, 2]})
    refused(r"shape \(299, 2\)", maps=[{**entry, "coordinates": entry["coordinates"][1:]}])
    refused(r"'per_point'\]\['t'\] has 1", maps=[{**entry, "per_point": {"t": [1.0]}}])
    refused("'color' is 'taste', but the labels are: 'type', 'size'", color="taste")
    broken = entry["coordinates"].copy()
    broken[7, 1] = np.nan
    refused("NaN or infinity, first in row 7", maps=[{**entry, "coordinates": broken}])
    del entry["card"]["cost"]
    refused(r"maps\[0\]\['card'\] lacks 'cost'")


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 2), (2, 3), (300, 1), (300, 3), (300, 7)])
def test_maps_of_any_size_and_dimension(summary, n, d):
    summary |= {"ids": list(range(n)), "labels": {"nothing": [None] * n, "nan": np.full(n, np.nan)}}
    entry = summary["maps"][0]
    entry["coordinates"] = np.random.default_rng(1).normal(size=(n, d))
    entry |= {
        "per_point": {"trustworthiness": np.full(n, np.nan)},
        "quality": {},
        "loss_history": None,
    }
    page = Reader(render(summary))
    assert page.data["maps"][0]["dimensions"] == min(d, 3)
    assert "The quality was not measured." in page.text


def test_numbers_that_could_not_be_measured_do_not_break_the_page(summary):
    measure = summary["maps"][0]["quality"]["trustworthiness"]
    measure |= {"value": float("nan"), "pca": float("nan"), "random": None}
    text = Reader(render(summary)).text
    assert "This could not be measured here." in text
    assert "nan" not in re.findall(r"\w+", text)


def test_several_maps_stand_in_one_table_with_the_best_marked(summary):
    first = summary["maps"][0]
    second = copy.deepcopy(first) | {"name": "pca", "title": "PCA", "seconds": 0.25}
    for measure in second["quality"].values():
        measure |= {"value": measure["pca"], "standard_error": 0.001}
    summary["maps"] = [first, second]
    text = render(summary)
    page = Reader(text)
    assert page.tags.count("figure") == 2 + 4 + 2  # maps, distortion, losses
    assert "250 ms" in page.text
    assert "± 0.002" in page.text
    best = [
        re.sub("<svg.*?</svg>|<.*?>", " ", cell, flags=re.DOTALL).split()[0]
        for cell in re.findall(r'class="number best">(.*?)</td>', text, re.DOTALL)
    ]
    assert best == ["0.980", "0.970", "0.870", "250"]


def test_maps_that_sampling_cannot_tell_apart_are_both_best(summary):
    maps = [copy.deepcopy(summary["maps"][0]) for _ in range(2)]
    for value, entry in zip((0.90, 0.91), maps, strict=True):
        entry["quality"] = {"continuity": entry["quality"]["continuity"] | {"value": value}}
        entry["quality"]["continuity"]["standard_error"] = 0.01
    assert render(summary | {"maps": maps}).count('number best">\n') == 2


def test_seventy_thousand_points_make_a_small_page(summary, tmp_path):
    n = 70_000
    rng = np.random.default_rng(0)
    entry = summary["maps"][0] | {"coordinates": rng.normal(size=(n, 2)) * [1, 3]}
    entry["per_point"] = {"trustworthiness": rng.random(n), "continuity": rng.random(n)}
    labels = {"digit": rng.integers(10, size=n), "name": [f"row {i}" for i in range(n)]}
    summary |= {"ids": np.arange(n), "labels": labels, "maps": [entry]}

    write_report(summary, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
