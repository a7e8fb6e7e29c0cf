"""Each caution is given when it applies, and only then."""

from __future__ import annotations

import numpy as np
import pytest

from lowland.report import advise
from support.cases import each


def kinds(summary):
    return [advice.kind for advice in advise(summary)]


def test_a_good_map_needs_no_caution(summary):
    assert kinds(summary) == []


def change_measure(name, **values):
    def change(summary):
        measure = summary["maps"][0]["quality"].setdefault(
            name, dict(summary["maps"][0]["quality"]["continuity"])
        )
        measure |= values

    return change


def change_map(**values):
    return lambda summary: summary["maps"][0].update(values)


def change_fact(**values):
    return lambda summary: summary["maps"][0]["facts"].update(values)


@each(
    ("change", "kind", "serious", "words"),
    [
        (
            change_measure("trustworthiness", value=0.84, pca=0.8),
            "low trustworthiness",
            True,
            "0.84",
        ),
        (change_measure("continuity", value=0.8, pca=0.8), "low continuity", True, "far apart"),
        (change_measure("neighbor_recall", pca=0.95), "worse than PCA", True, "0.95 against 0.87"),
        (
            change_measure("shepard_correlation", value=0.4, pca=0.7),
            "layout worse than PCA",
            False,
            "0.70 against 0.40",
        ),
        (change_fact(perplexity=61), "perplexity near n", True, "61 is large for 300 rows"),
        (change_fact(perplexity=[10, 90.0]), "perplexity near n", True, "90"),
        (change_map(parameters={"perplexity": 2}), "low perplexity", True, "even in noise"),
        (change_fact(topographic_error=0.25), "folded grid", True, "For 25\u202f% of the rows"),
        (change_fact(topographic_error=0.15), "folded grid", False, "larger final radius"),
        (change_fact(units=90, empty_units=50), "empty units", False, "50 of 90 units"),
        (
            change_fact(n_connected_components=3),
            "disconnected graph",
            True,
            "3 connected components",
        ),
        (change_fact(violation_max=0.07), "distances not kept", True, "7\u202f%"),
        (
            change_fact(explained_variance_ratio=[0.3, 0.1, 0.6]),
            "low explained variance",
            True,
            "40",
        ),
        (change_map(stopped_early=True), "stopped early", True, "partial"),
        (change_map(loss_history=[2.0, 1.0, 0.9]), "still falling", False, "10\u202f%"),
        (change_map(coordinates=np.ones((300, 2))), "collapsed", True, "same position"),
        (change_map(coordinates=np.eye(300, 5)), "dimensions hidden", False, "5 dimensions"),
        (
            change_measure("continuity", sample_size=200, standard_error=0.001),
            "sampled numbers",
            False,
            "200 of 300 rows",
        ),
        (lambda s: s.update(dropped_rows=["a", "b"]), "rows dropped", True, "2 of 300 rows"),
    ],
)
def test_a_caution_is_given_when_it_applies(summary, change, kind, serious, words):
    change(summary)
    (advice,) = advise(summary)
    assert (advice.kind, advice.serious) == (kind, serious)
    assert words in advice.text
    assert advice.map == (None if kind == "rows dropped" else "t-SNE")


@pytest.mark.parametrize(
    "change",
    [
        change_measure("neighbor_recall", pca=0.88),  # nobody would see it
        change_measure("neighbor_recall", pca=0.93, standard_error=0.03),  # sampling cannot tell
        change_measure("trustworthiness", value=float("nan")),
        change_measure("trustworthiness", pca=None),
        change_fact(perplexity=30, n_connected_components=1, explained_variance_ratio=[0.4, 0.2]),
        change_fact(violation_max=0.04),
        change_fact(topographic_error=0.09, units=90, empty_units=45),
        change_fact(topographic_error=None, units="many", empty_units=float("nan")),
        change_map(loss_history=[1.0, 0.995]),
        change_map(loss_history=[1.0]),
    ],
)
def test_no_caution_without_a_reason(summary, change):
    change(summary)
    assert kinds(summary) == []


def test_pca_is_not_compared_with_itself(summary):
    summary["maps"][0]["name"] = "pca"
    change_measure("neighbor_recall", pca=0.95)(summary)
    assert kinds(summary) == []


def test_a_displayed_sample_is_said(summary):
    n = 1_000_001
    summary["maps"][0]["coordinates"] = np.random.default_rng(0).normal(size=(n, 2))
    summary |= {"ids": np.arange(n), "labels": {}}
    summary["maps"][0] |= {"quality": {}, "per_point": {}}
    (advice,) = advise(summary)
    assert advice.kind == "sample displayed"
    assert "1\u202f000\u202f000 of 1\u202f000\u202f001 points" in advice.text


def test_serious_cautions_come_first(summary):
    change_measure("shepard_correlation", value=0.4, pca=0.7)(summary)
    change_fact(n_connected_components=2)(summary)
    assert kinds(summary) == ["disconnected graph", "layout worse than PCA"]
