"""Cautions about one map, as a pure function of the summary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland.report.payload import MOST_POINTS, SHOWN_DIMENSIONS
from lowland.report.summary import Alignment, HeldOut, Map, Summary
from lowland.report.wording import count, listing, percent
from lowland.trust.result import Trust

# Cautions about the rows of a run: dropped, dominating, sampled.


def about_rows(summary: Summary, n: int) -> Iterator[tuple[str, bool, str]]:
    """Kind, whether it is serious, and text of each caution about the n rows."""
    dropped = summary["dropped_rows"]
    if len(dropped):
        text = (
            f"{count(len(dropped))} of {count(summary['input']['rows'])} rows were dropped before "
            "the map was made; if they have something in common, the map does not show it."
        )
        yield "rows dropped", True, text
    for kind, name, share in summary["input"].get("dominant", ()):
        yield f"one {kind} dominates", True, _dominance(kind, name, share)
    streamed = summary.get("streamed")
    if streamed is not None and streamed["fitted"] < n:
        text = (
            f"The method was fitted to {count(streamed['fitted'])} of {count(n)} rows, drawn at "
            "random, and the others were placed in the map of these. A group of very few rows may "
            "have no place of its own."
        )
        yield "sample fitted", False, text
    shown = min(MOST_POINTS, len(summary["ids"]))
    if n > shown:
        text = (
            f"The interactive map shows {count(shown)} of {count(n)} points, drawn at "
            "random. Rare points may be missing from it and from exported selections; the measures "
            "and the map file are about all rows."
        )
        yield "sample displayed", False, text


def _dominance(kind: str, name: str, share: float) -> str:
    what = name if name.startswith("column ") else f"{kind.capitalize()} {name!r}"
    text = (
        f"{what[0].upper()}{what[1:]} carries {percent(share)} of the variance: the map shows "
        f"little else than this {kind}."
    )
    if kind == "row":
        return f"{text} If it is an error or an outlier, make the map without it."
    return (
        f"{text} If the units of the columns differ, scale them (--scale standard, "
        "scale='standard'); if it is not a measurement, leave it out (--drop, drop=)."
    )


# Cautions from the verdict on a map.
#
# The page states the verdict itself and leaves these out; they are for outputs that show cautions
# only.


# The kind of a caution, by the question that the verdict answers.
KIND_OF = {
    "points": "misplaced points",
    "gaps": "fake gap",
    "merged": "merged groups",
    "stability": "unstable islands",
    "chance": "no better than chance",
    "contrast": "islands not separate",
}
TRUST_KINDS = frozenset(KIND_OF.values())


def about_trust(trust: Trust | None) -> Iterator[tuple[str, bool, str]]:
    """Kind, whether it is serious, and text of each answer of the verdict that is not fine."""
    for sentence in () if trust is None else trust.sentences:
        if sentence.level != "fine":
            kind = KIND_OF.get(sentence.question, sentence.question)
            yield kind, sentence.level == "serious", sentence.text


# Cautions about several tables in one map.


BEYOND_CHANCE = 2.0  # standard errors of a mean rank of independent rows


def about_alignment(alignment: Alignment | None, low: float) -> Iterator[tuple[str, bool, str]]:
    """Kind, seriousness and text of each caution; a trustworthiness below ``low`` is low."""
    if alignment is None:
        return
    if not alignment["objects"]:
        yield (
            "no known pairs",
            True,
            "No rows are known to be the same object, so the alignment of the tables cannot be "
            "checked. If some pairs are known, give them (--match, --same-order).",
        )
    elif alignment["held_out"] is None:
        yield (
            "not tried on held-out pairs",
            False,
            "No pairs were held out. Partners lie near each other because the method was given "
            "them; how well it finds unknown partners was not measured.",
        )
    else:
        yield from _about_held_out(alignment["held_out"])
    for one in alignment["sets"]:
        trust = one["quality"].get("trustworthiness")
        if trust is not None and trust["value"] < low:
            yield (
                f"low trustworthiness of {one['name']}",
                True,
                f"Trustworthiness of {one['name']} is low ({trust['value']:.2f}): rows of this "
                "table that are neighbors in the map are often not neighbors in the data.",
            )


def _about_held_out(tried: HeldOut) -> Iterator[tuple[str, bool, str]]:
    # ranks of one random row are uniform, of variance 1 / 12
    error = math.sqrt(1 / 12 / max(tried["objects"], 1))
    if not tried["rank"] < 0.5 - BEYOND_CHANCE * error:
        yield (
            "partners are not found",
            True,
            f"Held-out partners are not nearer than by chance: {percent(tried['rank'])} of the "
            "other table is nearer, and 50 % would be by chance. The tables share little that this "
            "map shows; do not match rows by it.",
        )


LOW = 0.85  # trustworthiness or continuity below this is low
DIFFERENCE = 0.02  # smaller differences from PCA are not visible in a map
LITTLE_VARIANCE = 0.5
ROWS_PER_PERPLEXITY = 5
SMALLEST_PERPLEXITY = 5
LARGE_VIOLATION = 0.05  # relative error of a distance that a method promises to keep
FOLDED = 0.2  # topographic error of a grid that is folded
SOMEWHAT_FOLDED = 0.1
STILL_FALLING = 0.01  # relative decrease of the loss in the last step of its history


class Advice(NamedTuple):
    """One caution: the fact, and what to do or what not to conclude."""

    kind: str  # for programs and tests
    serious: bool  # False for a remark
    text: str
    map: str | None  # the title of the map, None for all


def advise(summary: Summary) -> list[Advice]:
    """All cautions that apply, the serious ones first.

    >>> from lowland.workflow import make_map
    >>> summary = make_map("digits", "pca").summary()
    >>> [caution.kind for caution in advise(summary) if caution.serious]
    ['misplaced points', 'fake gap', 'low trustworthiness', 'low explained variance']
    """
    streamed = summary.get("streamed")
    n = len(summary["ids"]) if streamed is None else streamed["rows"]
    found = [Advice(*said, None) for said in about_rows(summary, n)]
    found += [Advice(*said, None) for said in about_alignment(summary.get("alignment"), LOW)]
    for entry in summary["maps"]:
        for rule in RULES:
            found += [
                Advice(kind, serious, text, entry["title"])
                for kind, serious, text in rule(entry, n)
            ]
    return sorted(found, key=lambda advice: not advice.serious)


Cautions = Iterator[tuple[str, bool, str]]


def _trust(entry: Map, n: int) -> Cautions:
    yield from about_trust(entry.get("trust"))


def _stopped(entry: Map, n: int) -> Cautions:
    if entry["stopped_early"]:
        yield (
            "stopped early",
            True,
            "The optimization was stopped before its end: this is a partial map, and points may "
            "still be far from their final positions.",
        )


def _collapsed(entry: Map, n: int) -> Cautions:
    Y = np.asarray(entry["coordinates"])
    if n > 1 and (Y[0] == Y).all():
        yield "collapsed", True, "All points have the same position: the map shows nothing."


def _low_quality(entry: Map, n: int) -> Cautions:
    trust, continuity = _value(entry, "trustworthiness"), _value(entry, "continuity")
    if trust is not None and trust < LOW:
        yield (
            "low trustworthiness",
            True,
            f"Trustworthiness is low ({trust:.2f}): neighbors in the map are often not "
            "neighbors in the data. Do not conclude from this map alone that two points are alike.",
        )
    if continuity is not None and continuity < LOW:
        yield (
            "low continuity",
            True,
            f"Continuity is low ({continuity:.2f}): neighbors in the data are often far apart "
            "in the map. Groups that look separate here need not be separate in the data.",
        )


def _worse_than_pca(entry: Map, n: int) -> Cautions:
    if entry["name"] == "pca":
        return
    worse = [
        name for name in ("trustworthiness", "continuity", "neighbor_recall") if _loses(entry, name)
    ]
    if worse:
        yield (
            "worse than PCA",
            True,
            f"A PCA map, which is simpler and easier to explain, is better here: "
            f"{_beside_pca(entry, worse)}.",
        )
    layout = [name for name in ("shepard_correlation",) if _loses(entry, name)]
    if layout:
        yield (
            "layout worse than PCA",
            False,
            f"PCA preserves the large-scale layout better ({_beside_pca(entry, layout)}): "
            "do not interpret the distance between two groups.",
        )


def _perplexity(entry: Map, n: int) -> Cautions:
    given = entry["facts"].get("perplexity", entry["parameters"].get("perplexity"))
    if given is None:
        return
    values = np.atleast_1d(np.asarray(given, dtype=float))
    if values.max() * ROWS_PER_PERPLEXITY > n:
        yield (
            "perplexity near n",
            True,
            f"Perplexity {values.max():g} is large for {count(n)} rows: each point is attracted by "
            f"many others, and small groups merge. Try {max(2, n // 20)}.",
        )
    elif values.max() < SMALLEST_PERPLEXITY:
        yield (
            "low perplexity",
            True,
            f"At perplexity {values.max():g}, t-SNE shows small groups even in noise: do not "
            "believe them before a larger perplexity shows them too.",
        )


def _disconnected(entry: Map, n: int) -> Cautions:
    components = entry["facts"].get("n_connected_components")
    if components is not None and components > 1:
        yield (
            "disconnected graph",
            True,
            f"The neighbor graph has {count(int(components))} connected components. Their relative "
            "positions are not determined by the data; more neighbors may connect them.",
        )


def _violated(entry: Map, n: int) -> Cautions:
    worst = entry["facts"].get("violation_max")
    if worst is not None and worst > LARGE_VIOLATION:
        yield (
            "distances not kept",
            True,
            f"A distance of neighbors that should be kept is wrong by {percent(float(worst))}: the "
            "distances are not those of points in any space, or the fit has not converged.",
        )


def _folded(entry: Map, n: int) -> Cautions:
    error = _fact(entry, "topographic_error")
    if error is not None and error > SOMEWHAT_FOLDED:
        yield (
            "folded grid",
            error > FOLDED,
            f"For {percent(error)} of the rows, the two nearest units are not neighbors on the "
            "grid: it is folded there, and similar rows may lie in distant places of the map. A "
            "larger final radius, fewer units or a toroidal grid make it smoother.",
        )


def _empty_units(entry: Map, n: int) -> Cautions:
    units, empty = _fact(entry, "units"), _fact(entry, "empty_units")
    if units is not None and empty is not None and empty > units / 2:
        yield (
            "empty units",
            False,
            f"{count(int(empty))} of {count(int(units))} units have no rows: the grid is finer "
            "than the data. With fewer units, each would describe more rows.",
        )


def _little_variance(entry: Map, n: int) -> Cautions:
    shares = entry["facts"].get("explained_variance_ratio")
    if shares is None:
        return
    d = min(np.asarray(entry["coordinates"]).shape[1], SHOWN_DIMENSIONS)
    shown = float(np.sum(np.asarray(shares, dtype=float)[:d]))
    if shown < LITTLE_VARIANCE:
        yield (
            "low explained variance",
            True,
            f"The axes shown hold {percent(shown)} of the variance: most differences between rows "
            "are not visible here, and points that overlap may be far apart in the data.",
        )


def _still_falling(entry: Map, n: int) -> Cautions:
    history = entry["loss_history"]
    if history is None or len(history) < 2 or entry["stopped_early"]:
        return
    before, last = float(history[-2]), float(history[-1])
    if math.isfinite(before) and before > 0 and (before - last) / before > STILL_FALLING:
        yield (
            "still falling",
            False,
            f"The loss decreased by {percent((before - last) / before)} in the last recorded step: "
            "more iterations would still move points.",
        )


def _sampled(entry: Map, n: int) -> Cautions:
    sizes = sorted({measure["sample_size"] for measure in entry["quality"].values()} - {0, n})
    if sizes:
        yield (
            "sampled numbers",
            False,
            f"The quality was measured on samples ({listing([count(size) for size in sizes])} of "
            f"{count(n)} rows); ± is half of the 95 % interval.",
        )


def _more_dimensions(entry: Map, n: int) -> Cautions:
    d = np.asarray(entry["coordinates"]).shape[1]
    if d > SHOWN_DIMENSIONS:
        yield (
            "dimensions hidden",
            False,
            f"The map has {d} dimensions; the first {SHOWN_DIMENSIONS} are shown. The measures are "
            "about all of them.",
        )


RULES: tuple[Any, ...] = (
    _trust,
    _stopped,
    _collapsed,
    _low_quality,
    _worse_than_pca,
    _perplexity,
    _disconnected,
    _violated,
    _folded,
    _empty_units,
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


def _fact(entry: Map, name: str) -> float | None:
    """A number that the fit found; None if it found none."""
    value = entry["facts"].get(name)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _loses(entry: Map, name: str) -> bool:
    """Whether the map is worse than PCA, beyond sampling error and invisible differences."""
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
