"""What a reader of this very map must be warned of: a pure function of the summary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland.report.payload import MOST_POINTS, SHOWN_DIMENSIONS
from lowland.report.summary import Map, Summary
from lowland.report.wording import count, listing, percent

__all__ = ["Advice", "advise"]

LOW = 0.85  # trustworthiness or continuity below this: one point in several lies among strangers
DIFFERENCE = 0.02  # from PCA, below which nobody would see it
LITTLE_VARIANCE = 0.5
ROWS_PER_PERPLEXITY = 5
SMALLEST_PERPLEXITY = 5
STILL_FALLING = 0.01  # of the loss, in the last step of its history


class Advice(NamedTuple):
    """One caution: what is the case, and what to do or not to conclude."""

    kind: str  # for programs and tests
    serious: bool  # False: good to know
    text: str
    map: str | None  # the title of the map, None for all


def advise(summary: Summary) -> list[Advice]:
    """All cautions that apply, serious ones first."""
    n = len(summary["ids"])
    found = list(_about_rows(summary, n))
    for entry in summary["maps"]:
        for rule in RULES:
            found += [
                Advice(kind, serious, text, entry["title"])
                for kind, serious, text in rule(entry, n)
            ]
    return sorted(found, key=lambda advice: not advice.serious)


Found = Iterator[tuple[str, bool, str]]


def _about_rows(summary: Summary, n: int) -> Iterator[Advice]:
    dropped = summary["dropped_rows"]
    if len(dropped):
        text = (
            f"{count(len(dropped))} of {count(summary['input']['rows'])} rows were dropped before "
            "the map was made; if they have something in common, the map does not show it."
        )
        yield Advice("rows dropped", True, text, None)
    if n > MOST_POINTS:
        text = (
            f"The interactive map draws {count(MOST_POINTS)} of {count(n)} points, chosen by lot. "
            "Rare points may be missing from it and from exported selections; the numbers and the "
            "map file are about all rows."
        )
        yield Advice("sample displayed", False, text, None)


def _stopped(entry: Map, n: int) -> Found:
    if entry["stopped_early"]:
        yield (
            "stopped early",
            True,
            "The optimization was stopped before its end: this is a partial map, and points may "
            "still be far from their places.",
        )


def _collapsed(entry: Map, n: int) -> Found:
    Y = np.asarray(entry["coordinates"])
    if n > 1 and (Y[0] == Y).all():
        yield "collapsed", True, "All points lie on one place: the map shows nothing."


def _low_quality(entry: Map, n: int) -> Found:
    trust, continuity = _value(entry, "trustworthiness"), _value(entry, "continuity")
    if trust is not None and trust < LOW:
        yield (
            "low trustworthiness",
            True,
            f"Trustworthiness is low ({trust:.2f}): points that lie together are often strangers "
            "in the data. Do not conclude from this map alone that two points are alike.",
        )
    if continuity is not None and continuity < LOW:
        yield (
            "low continuity",
            True,
            f"Continuity is low ({continuity:.2f}): points that belong together were torn apart. "
            "Groups that look separate here need not be.",
        )


def _worse_than_pca(entry: Map, n: int) -> Found:
    if entry["name"] == "pca":
        return
    worse = [
        name for name in ("trustworthiness", "continuity", "neighbor_recall") if _loses(entry, name)
    ]
    if worse:
        yield (
            "worse than PCA",
            True,
            f"A PCA map, which is simpler and can be explained, keeps more: "
            f"{_beside_pca(entry, worse)}.",
        )
    layout = [name for name in ("shepard_correlation",) if _loses(entry, name)]
    if layout:
        yield (
            "layout worse than PCA",
            False,
            f"The gross layout is kept less well than by PCA ({_beside_pca(entry, layout)}): "
            "do not read anything from how far apart two groups lie.",
        )


def _perplexity(entry: Map, n: int) -> Found:
    given = entry["facts"].get("perplexity", entry["parameters"].get("perplexity"))
    if given is None:
        return
    values = np.atleast_1d(np.asarray(given, dtype=float))
    if values.max() * ROWS_PER_PERPLEXITY > n:
        yield (
            "perplexity near n",
            True,
            f"Perplexity {values.max():g} is large for {count(n)} rows: each point is drawn to a "
            f"good part of all others, and small groups melt together. Try {max(2, n // 20)}.",
        )
    elif values.max() < SMALLEST_PERPLEXITY:
        yield (
            "low perplexity",
            True,
            f"At perplexity {values.max():g} t-SNE shows crumbs even in noise: do not take small "
            "groups for real before a larger perplexity shows them too.",
        )


def _disconnected(entry: Map, n: int) -> Found:
    components = entry["facts"].get("n_connected_components")
    if components is not None and components > 1:
        yield (
            "disconnected graph",
            True,
            f"The neighbor graph falls into {count(int(components))} pieces. Where the pieces lie "
            "relative to each other was not learned from the data; more neighbors may join them.",
        )


def _little_variance(entry: Map, n: int) -> Found:
    shares = entry["facts"].get("explained_variance_ratio")
    if shares is None:
        return
    d = min(np.asarray(entry["coordinates"]).shape[1], SHOWN_DIMENSIONS)
    shown = float(np.sum(np.asarray(shares, dtype=float)[:d]))
    if shown < LITTLE_VARIANCE:
        yield (
            "low explained variance",
            True,
            f"The axes shown hold {percent(shown)} of the variance: most of what distinguishes the "
            "rows cannot be seen here, and points that overlap may be far apart.",
        )


def _still_falling(entry: Map, n: int) -> Found:
    history = entry["loss_history"]
    if history is None or len(history) < 2 or entry["stopped_early"]:
        return
    before, last = float(history[-2]), float(history[-1])
    if math.isfinite(before) and before > 0 and (before - last) / before > STILL_FALLING:
        yield (
            "still falling",
            False,
            f"The loss fell by {percent((before - last) / before)} in the last step of its record: "
            "more iterations would still move points.",
        )


def _sampled(entry: Map, n: int) -> Found:
    sizes = sorted({measure["sample_size"] for measure in entry["quality"].values()} - {0, n})
    if sizes:
        yield (
            "sampled numbers",
            False,
            f"The quality was measured on samples ({listing([count(size) for size in sizes])} of "
            f"{count(n)} rows); ± is half of the 95 % interval.",
        )


def _more_dimensions(entry: Map, n: int) -> Found:
    d = np.asarray(entry["coordinates"]).shape[1]
    if d > SHOWN_DIMENSIONS:
        yield (
            "dimensions hidden",
            False,
            f"The map has {d} dimensions; the first {SHOWN_DIMENSIONS} are drawn, the numbers are "
            "about all of them.",
        )


RULES: tuple[Any, ...] = (
    _stopped,
    _collapsed,
    _low_quality,
    _worse_than_pca,
    _perplexity,
    _disconnected,
    _little_variance,
    _still_falling,
    _sampled,
    _more_dimensions,
)


def _value(entry: Map, name: str) -> float | None:
    measure = entry["quality"].get(name)
    if measure is None or not math.isfinite(measure["value"]):
        return None
    return measure["value"]


def _loses(entry: Map, name: str) -> bool:
    """Worse than PCA by more than what sampling or an eye could miss."""
    value, measure = _value(entry, name), entry["quality"].get(name)
    if value is None or measure is None or measure["pca"] is None:
        return False
    behind = measure["pca"] - value if measure["better"] == "higher" else value - measure["pca"]
    return behind > max(DIFFERENCE, 3 * measure["standard_error"])


def _beside_pca(entry: Map, names: list[str]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {entry['quality'][name]['pca']:.2f} against "
        f"{entry['quality'][name]['value']:.2f}"
        for name in names
    )
