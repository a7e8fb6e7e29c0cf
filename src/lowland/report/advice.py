"""Cautions about one map, as a pure function of the summary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland.report.payload import MOST_POINTS, SHOWN_DIMENSIONS
from lowland.report.summary import Alignment, Map, Summary
from lowland.report.wording import count, listing, percent
from lowland.trust.result import Trust

# The text of each caution, by its kind: of the serious ones, and of remarks.


SERIOUS = {
    "rows dropped": "{dropped} of {rows} rows were dropped before the map was made; if they have "
    "something in common, the map does not show it.",
    "one row dominates": "{what} carries {share} of the variance: the map shows little except this "
    "row. If it is an error or an outlier, make the map without it.",
    "one column dominates": "{what} carries {share} of the variance: the map shows little except "
    "this column. If the units of the columns differ, scale them (--scale standard, "
    "scale='standard'); if it is not a measurement, leave it out (--drop, drop=).",
    "no known pairs": "No rows are known to be the same object, so the alignment of the tables "
    "cannot be checked. If some pairs are known, give them (--match, --same-order).",
    "partners are not found": "Held-out partners are not nearer than by chance: {rank} of the "
    "other table is nearer, and 50 % would be by chance. The tables share little that this map "
    "shows; do not match rows by it.",
    "low trustworthiness of a table": "Trustworthiness of {name} is low ({value:.2f}): rows of "
    "this table that are neighbors in the map are often not neighbors in the data.",
    "stopped early": "The optimization was stopped before its end: this is a partial map, and "
    "points may still be far from their final positions.",
    "collapsed": "All points have the same position: the map shows nothing.",
    "low trustworthiness": "Trustworthiness is low ({value:.2f}): neighbors in the map are often "
    "not neighbors in the data. Do not conclude from this map alone that two points are alike.",
    "low continuity": "Continuity is low ({value:.2f}): neighbors in the data are often far apart "
    "in the map. Groups that look separate here need not be separate in the data.",
    "worse than PCA": "A PCA map, which is simpler and easier to explain, is better here: "
    "{measures}.",
    "perplexity near n": "Perplexity {value:g} is large for {rows} rows: each point is attracted "
    "by many others, and small groups merge. Try {smaller}.",
    "low perplexity": "At perplexity {value:g}, t-SNE shows small groups even in noise: do not "
    "believe them before a larger perplexity shows them too.",
    "disconnected graph": "The neighbor graph has {number} connected components. Their relative "
    "positions are not determined by the data; more neighbors may connect them.",
    "distances not kept": "A distance of neighbors that should be kept is wrong by {error}: the "
    "distances are not those of points in any space, or the fit has not converged.",
    "folded grid": "For {error} of the rows, the two nearest units are not neighbors on the grid: "
    "it is folded there, and similar rows may lie in distant places of the map. A larger final "
    "radius, fewer units or a toroidal grid make it smoother.",
    "low explained variance": "The axes shown hold {share} of the variance: most differences "
    "between rows are not visible here, and points that overlap may be far apart in the data.",
}
REMARKS = {
    "sample fitted": "The method was fitted to {fitted} of {rows} rows, drawn at random, and the "
    "others were placed in the map of these. A group of very few rows may be missing from the map.",
    "sample displayed": "The interactive map shows {shown} of {rows} points, drawn at random. "
    "Rare points may be missing from it and from exported selections; the measures and the map "
    "file are about all rows.",
    "not tried on held-out pairs": "No pairs were held out. Partners lie near each other because "
    "the method was given them; how well it finds unknown partners was not measured.",
    "layout worse than PCA": "PCA preserves the large-scale layout better ({measures}): do not "
    "interpret the distance between two groups.",
    "empty units": "{empty} of {units} units have no rows: the grid is finer than the data. With "
    "fewer units, each would describe more rows.",
    "still falling": "The loss decreased by {share} in the last recorded step: more iterations "
    "would still move points.",
    "sampled numbers": "The quality was measured on samples ({sizes} of {rows} rows); ± is half "
    "of the 95 % interval.",
    "dimensions hidden": "The map has {dimensions} dimensions; the first {shown} are shown. The "
    "measures are about all of them.",
}

# The kind of a caution from the verdict on a map, by the question that the verdict answers. The
# page states the verdict itself and leaves these out; they are for outputs that show cautions only.
KIND_OF = {
    "points": "misplaced points",
    "gaps": "fake gap",
    "merged": "merged groups",
    "stability": "unstable islands",
    "chance": "no better than chance",
    "contrast": "islands not separate",
}
TRUST_KINDS = frozenset(KIND_OF.values())
# Measures in which PCA may be better, by the kind of the caution.
BESIDE_PCA = {
    "worse than PCA": ("trustworthiness", "continuity", "neighbor_recall"),
    "layout worse than PCA": ("shepard_correlation",),
}

BEYOND_CHANCE = 2.0  # standard errors of a mean rank of independent rows
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
    map: str | None = None  # the title of the map, None for all


def advise(summary: Summary) -> list[Advice]:
    """All cautions that apply, the serious ones first.

    >>> from lowland.workflow import make_map
    >>> summary = make_map("digits", "pca").summary()
    >>> [caution.kind for caution in advise(summary) if caution.serious]
    ['misplaced points', 'fake gap', 'low trustworthiness', 'low explained variance']
    """
    streamed = summary.get("streamed")
    n = len(summary["ids"]) if streamed is None else streamed["rows"]
    found = [*_about_rows(summary, n), *_about_alignment(summary.get("alignment"))]
    for entry in summary["maps"]:
        rules = (_about_trust, _about_fit, _about_quality, _about_facts, _about_extent)
        found += [one._replace(map=entry["title"]) for rule in rules for one in rule(entry, n)]
    return sorted(found, key=lambda advice: not advice.serious)


def _caution(kind: str, **values: Any) -> Advice:
    """The caution of this kind, with its text filled in."""
    serious = kind in SERIOUS
    return Advice(kind, serious, (SERIOUS if serious else REMARKS)[kind].format(**values))


def _about_rows(summary: Summary, n: int) -> Iterator[Advice]:
    """Cautions about the rows of a run: dropped, dominating, sampled."""
    dropped = len(summary["dropped_rows"])
    if dropped:
        rows = summary["input"]["rows"]
        yield _caution("rows dropped", dropped=count(dropped), rows=count(rows))
    for kind, name, share in summary["input"].get("dominant", ()):
        what = name if name.startswith("column ") else f"{kind} {name!r}"
        what = what[0].upper() + what[1:]
        yield _caution(f"one {kind} dominates", what=what, share=percent(share))
    streamed = summary.get("streamed")
    if streamed is not None and streamed["fitted"] < n:
        yield _caution("sample fitted", fitted=count(streamed["fitted"]), rows=count(n))
    shown = min(MOST_POINTS, len(summary["ids"]))
    if n > shown:
        yield _caution("sample displayed", shown=count(shown), rows=count(n))


def _about_alignment(alignment: Alignment | None) -> Iterator[Advice]:
    """Cautions about several tables in one map."""
    if alignment is None:
        return
    tried = alignment["held_out"]
    if not alignment["objects"]:
        yield _caution("no known pairs")
    elif tried is None:
        yield _caution("not tried on held-out pairs")
    else:
        # ranks of one random row are uniform, of variance 1 / 12
        error = math.sqrt(1 / 12 / max(tried["objects"], 1))
        if not tried["rank"] < 0.5 - BEYOND_CHANCE * error:
            yield _caution("partners are not found", rank=percent(tried["rank"]))
    for one in alignment["sets"]:
        trust, name = one["quality"].get("trustworthiness"), one["name"]
        if trust is not None and trust["value"] < LOW:
            caution = _caution("low trustworthiness of a table", name=name, value=trust["value"])
            yield caution._replace(kind=f"low trustworthiness of {name}")


def _about_trust(entry: Map, n: int) -> Iterator[Advice]:
    """The answers of the verdict that are not fine."""
    trust: Trust | None = entry.get("trust")
    for sentence in () if trust is None else trust.sentences:
        if sentence.level != "fine":
            kind = KIND_OF.get(sentence.question, sentence.question)
            yield Advice(kind, sentence.level == "serious", sentence.text)


def _about_fit(entry: Map, n: int) -> Iterator[Advice]:
    if entry["stopped_early"]:
        yield _caution("stopped early")
    Y = np.asarray(entry["coordinates"])
    if n > 1 and (Y[0] == Y).all():
        yield _caution("collapsed")


def _about_quality(entry: Map, n: int) -> Iterator[Advice]:
    quality = entry["quality"]
    for name in ("trustworthiness", "continuity"):
        value = quality[name]["value"] if name in quality else math.nan
        if value < LOW:
            yield _caution(f"low {name}", value=value)
    for kind, names in BESIDE_PCA.items():
        worse = [name for name in names if name in quality and _loses(entry, name)]
        if worse and entry["name"] != "pca":
            pairs = [
                f"{name.replace('_', ' ')} {quality[name]['pca']:.2f} against "
                f"{quality[name]['value']:.2f}"
                for name in worse
            ]
            yield _caution(kind, measures=", ".join(pairs))


def _loses(entry: Map, name: str) -> bool:
    """Whether the map is worse than PCA, beyond sampling error and invisible differences."""
    measure = entry["quality"][name]
    value, pca = measure["value"], measure["pca"]
    if pca is None or not math.isfinite(value):
        return False
    behind = pca - value if measure["better"] == "higher" else value - pca
    return behind > max(DIFFERENCE, 3 * measure["standard_error"])


def _about_facts(entry: Map, n: int) -> Iterator[Advice]:
    """Cautions about what the method found, and about its perplexity."""
    facts = entry["facts"]
    perplexity = facts.get("perplexity", entry["parameters"].get("perplexity"))
    if perplexity is not None:
        value = np.asarray(perplexity, dtype=float).max()
        if value * ROWS_PER_PERPLEXITY > n:
            smaller = max(2, n // 20)
            yield _caution("perplexity near n", value=value, rows=count(n), smaller=smaller)
        elif value < SMALLEST_PERPLEXITY:
            yield _caution("low perplexity", value=value)
    components = _fact(entry, "n_connected_components")
    if components > 1:
        yield _caution("disconnected graph", number=count(int(components)))
    violation = _fact(entry, "violation_max")
    if violation > LARGE_VIOLATION:
        yield _caution("distances not kept", error=percent(violation))
    error = _fact(entry, "topographic_error")
    if error > SOMEWHAT_FOLDED:
        yield _caution("folded grid", error=percent(error))._replace(serious=error > FOLDED)
    units, empty = _fact(entry, "units"), _fact(entry, "empty_units")
    if empty > units / 2:
        yield _caution("empty units", empty=count(int(empty)), units=count(int(units)))
    shown = min(np.asarray(entry["coordinates"]).shape[1], SHOWN_DIMENSIONS)
    shares = np.asarray(facts.get("explained_variance_ratio", math.nan), dtype=float)
    share = float(shares.ravel()[:shown].sum())
    if share < LITTLE_VARIANCE:
        yield _caution("low explained variance", share=percent(share))


def _fact(entry: Map, name: str) -> float:
    """A number that the fit found; NaN, which is neither large nor small, if it found none."""
    value = entry["facts"].get(name)
    return float(value) if isinstance(value, int | float | np.number) else math.nan


def _about_extent(entry: Map, n: int) -> Iterator[Advice]:
    """Remarks on what more steps, more rows or more dimensions would show."""
    history = entry["loss_history"]
    if history is not None and len(history) > 1 and not entry["stopped_early"]:
        before, last = float(history[-2]), float(history[-1])
        if math.isfinite(before) and before > 0 and (before - last) / before > STILL_FALLING:
            yield _caution("still falling", share=percent((before - last) / before))
    sizes = sorted({measure["sample_size"] for measure in entry["quality"].values()} - {0, n})
    if sizes:
        yield _caution("sampled numbers", sizes=listing([*map(count, sizes)]), rows=count(n))
    dimensions = np.asarray(entry["coordinates"]).shape[1]
    if dimensions > SHOWN_DIMENSIONS:
        yield _caution("dimensions hidden", dimensions=dimensions, shown=SHOWN_DIMENSIONS)
