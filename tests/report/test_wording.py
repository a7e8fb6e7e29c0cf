"""Numbers in words."""

from __future__ import annotations

import numpy as np
import pytest

from lowland._base import registry
from lowland.report import wording
from lowland.report.page import EVERY_MAP, how_to_read
from support.cases import each


def measure(value, pca=None, random=None):
    return {
        "value": value,
        "standard_error": 0.0,
        "sample_size": 10,
        "pca": pca,
        "random": random,
        "better": "higher",
        "meaning": "how green it is.",
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.99, "almost always near"),
        (0.90, "mostly near"),
        (0.70, "are not near"),
        (0.55, "almost unrelated"),
    ],
)
def test_trust_is_judged_by_its_way_from_chance_to_perfect(value, words):
    assert words in wording.sentence("trustworthiness", measure(value, 0.8, 0.5))


def test_recall_stands_beside_pca_and_chance_where_they_are_known():
    assert (
        wording.sentence("neighbor_recall", measure(0.5, random=0.0004))
        == "The map keeps 50\u202f% of each point's nearest neighbors; chance 0.0\u202f%."
    )
    assert wording.sentence("neighbor_recall", measure(0.5)).endswith("nearest neighbors.")


def test_a_measure_without_words_of_its_own_says_what_it_means():
    assert wording.sentence("greenness", measure(0.5)) == "How green it is."


def test_every_measure_of_the_quality_table_has_its_own_sentence():
    from lowland.metrics import quality

    X = np.random.default_rng(0).normal(size=(60, 5))
    for name, row in quality(X, X[:, :2], np.arange(60) % 2).to_dict().items():
        text = wording.sentence(name, row)
        assert text != row["meaning"][:1].upper() + row["meaning"][1:], name


@each(
    ("made", "text"),
    [
        (wording.percent(0.874), "87\u202f%"),
        (wording.percent(0.997), "99.7\u202f%"),
        (wording.percent(1.0), "100\u202f%"),
        (wording.percent(0.0012), "0.1\u202f%"),
        (wording.count(70000), "70\u202f000"),
        (wording.count(1797), "1797"),
        (wording.seconds(0.0021), "2.1 ms"),
        (wording.seconds(0.21), "210 ms"),
        (wording.seconds(59.94), "59.9 s"),
        (wording.seconds(3599.7), "1 h 0 min"),
        (wording.seconds(150), "2 min 30 s"),
        (wording.memory(None), "\u2013"),
        (wording.memory(2_480_000_000), "2.5 GB"),
        (wording.memory(312_000_000), "312 MB"),
        (wording.number(np.array([0.44721, 0.16])), "0.4472, 0.16"),
        (wording.number(list(range(20))), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"),
        (wording.number(np.True_), "yes"),
        (wording.number(None), "\u2013"),
    ],
)
def test_numbers_are_short(made, text):
    assert made == text


@each("method", registry.names())
def test_every_method_is_told_how_to_be_read(method):
    assert len(how_to_read(method)) > len(EVERY_MAP)


def test_every_family_has_words_and_an_unknown_map_gets_the_general_ones():
    assert len(how_to_read("pca")) == len(EVERY_MAP) + 5
    assert how_to_read("some_map") == list(EVERY_MAP)


def test_a_method_that_was_given_a_column_says_so():
    told = how_to_read("umap", "kind")
    assert "was given the column kind" in told[0]
    assert told[1:] == how_to_read("umap")
    assert how_to_read("lda", "kind") == how_to_read("lda")  # it always is, and says it itself
