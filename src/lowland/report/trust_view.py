"""What is known about the trust of a map, in words and numbers for the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland.metrics.grouping.gaps import Gap
from lowland.metrics.pointwise.home import KINDS
from lowland.report.plateau_view import plateau_view
from lowland.report.summary import Map
from lowland.report.wording import UNKNOWN, count, listing, percent
from lowland.trust.result import Chance, Contrast, Island, Stability, Trust

__all__ = ["plateau_view", "trust_view"]

MOST_SENTENCES = 6
MOST_ROWS = 40  # of a table; the least serious ones are left out
# Levels, the most serious first, with marks that differ in shape.
MARKS = {"serious": "✕", "caution": "!", "fine": "✓"}
# The section that holds the evidence for the answer to a question.
EVIDENCE = {
    "points": "distortion",
    "gaps": "islands",
    "merged": "islands",
    "contrast": "islands",
    "stability": "stability",
    "chance": "chance",
}
MEANINGS = {
    "fine": "its neighbors in the data are near it, and the other way round",
    "misplaced": "its neighbors in the data lie together, but elsewhere in the map",
    "torn": "its neighbors in the data are scattered over the map",
    "pressed": "its neighbors in the map are strangers in the data",
}
VERDICTS = ("not in the data", "unclear", "bridged", "real")  # the most serious first
STABILITIES = {
    "stable": "Comes again in other maps",
    "doubtful": "Comes again in part",
    "unstable": "Does not come again: do not build on it",
}
HOW_TO_GET = "--check (check=True) adds it."


def trust_view(entry: Map) -> dict[str, Any] | None:
    """The verdict on a map and its evidence; None if the map was not checked."""
    trust = entry.get("trust")
    if trust is None:
        return None
    sentences = [
        {
            "level": sentence.level,
            "mark": MARKS[sentence.level],
            "text": sentence.text,
            "evidence": EVIDENCE.get(sentence.question, "distortion"),
        }
        for sentence in trust.sentences[:MOST_SENTENCES]
    ]
    by_level = sorted(sentences, key=lambda sentence: list(MARKS).index(sentence["level"]))
    return {
        "sentences": sentences,
        "worst": by_level[0] if by_level else None,
        "tally": _tally(sentences),
        "points": _points(trust),
        "n_islands": len(trust.islands),
        **_gaps(trust.gaps),
        "merged": [_merged(island) for island in trust.islands if _holds_two(island)],
        "contrast": _contrast(trust.contrast),
        "stability": None if trust.stability is None else _stability(trust.stability, trust),
        "chance": None if trust.chance is None else _chance(trust.chance, trust.stability),
        "reasons": {part: _reason(part, trust) for part in ("stability", "chance", "contrast")},
    }


def _tally(sentences: Sequence[dict[str, str]]) -> str:
    """``1 serious, 2 cautions, 3 fine``."""
    words = {"serious": "serious", "caution": "cautions", "fine": "fine"}
    levels = [sentence["level"] for sentence in sentences]
    numbers = {level: levels.count(level) for level in words}
    if numbers["caution"] == 1:
        words["caution"] = "caution"
    return ", ".join(f"{number} {words[level]}" for level, number in numbers.items() if number)


def _points(trust: Trust) -> dict[str, Any]:
    points = trust.points
    kind = np.asarray(points.kind)
    measured = int((kind >= 0).sum())
    rows = [int((kind == code).sum()) for code in range(len(KINDS))]
    return {
        "measured": measured,
        "rows": len(kind),
        "kinds": [
            {
                "name": name,
                "rows": number,
                "share": percent(number / max(measured, 1)),
                "meaning": MEANINGS[name],
            }
            for name, number in zip(KINDS, rows, strict=True)
        ],
        "missing": _share(_mean(points.missing)),
        "strangers": _share(_mean(points.strangers)),
        "random": _share(points.chance),
        "n_neighbors": points.n_neighbors,
        "reach": points.reach,
        "arrows": len(trust.worst()),
    }


def _gaps(gaps: Sequence[Gap]) -> dict[str, Any]:
    """The rows of the table, the most serious first."""

    def seriousness(gap: Gap) -> tuple[int, float]:
        place = VERDICTS.index(gap.verdict) if gap.verdict in VERDICTS else len(VERDICTS)
        return place, -gap.cut if math.isfinite(gap.cut) else 0.0

    ordered = sorted((gap for gap in gaps if gap.one != gap.other), key=seriousness)
    return {
        "gaps": [{**_numbers(gap), "words": _words(gap)} for gap in ordered[:MOST_ROWS]],
        "more_gaps": max(0, len(ordered) - MOST_ROWS),
    }


def _numbers(gap: Gap) -> dict[str, Any]:
    return {
        "one": int(gap.one),
        "other": int(gap.other),
        "verdict": gap.verdict,
        "severed": _share(gap.severed),
        "reference": _share(gap.reference),
        "cut": f"{gap.cut:.2f}" if math.isfinite(gap.cut) else UNKNOWN,
    }


def _words(gap: Gap) -> str:
    if gap.through:
        islands = "island" if len(gap.through) == 1 else "islands"
        through = f"onnected through {islands} {listing(gap.through)}"
        return f"C{through}" if gap.verdict == "bridged" else f"Unclear: perhaps c{through}"
    return {
        "real": "The gap is in the data",
        "not in the data": "Not in the data: the two belong together",
        "unclear": "Unclear",
    }.get(gap.verdict, gap.verdict)


def _holds_two(island: Island) -> bool:
    return island.inner is not None and island.inner.verdict == "real"


def _merged(island: Island) -> dict[str, Any]:
    assert island.inner is not None  # _holds_two has seen it
    return {
        "number": int(island.number),
        "rows": count(int(island.rows)),
        **_numbers(island.inner),
    }


def _contrast(contrast: Contrast) -> list[dict[str, str]]:
    """What was measured; nothing for what was not."""
    said = (
        (
            "Separation of the islands in the data",
            contrast.silhouette,
            "mean silhouette: 1 far apart, 0 touching, below 0 mixed",
        ),
        (
            "Distances between islands",
            contrast.centers,
            "rank correlation of map and data: 1 if near islands are near in the data",
        ),
        (
            "Sizes and densities",
            contrast.radii,
            "correlation of local radii of map and data: 1 if dense places are dense in the data",
        ),
    )
    return [
        {"name": name, "value": f"{value:.2f}", "meaning": meaning}
        for name, value, meaning in said
        if math.isfinite(value)
    ]


def _stability(stability: Stability, trust: Trust) -> dict[str, Any]:
    rows = [
        {
            "number": int(found.island),
            "jaccard": f"{found.jaccard:.2f}",
            "interval": f"{found.low:.2f} to {found.high:.2f}",
            "value": _along(found.jaccard),
            "low": _along(found.low),
            "high": _along(found.high),
            "verdict": found.verdict,
            "words": STABILITIES.get(found.verdict, found.verdict),
        }
        for found in sorted(stability.islands, key=lambda found: found.jaccard)
    ]
    return {
        "refits": [refit.title for refit in stability.refits],
        "rows": max((len(refit.rows) for refit in stability.refits), default=0),
        "n_neighbors": trust.points.n_neighbors,
        "agreement": _share(stability.agreement),
        "random": _share(stability.chance),
        "islands": rows[:MOST_ROWS],
        "more_islands": max(0, len(rows) - MOST_ROWS),
    }


def _chance(chance: Chance, stability: Stability | None) -> dict[str, Any]:
    has_refit = stability is not None and bool(stability.refits)
    return {
        "part": "refit-0" if has_refit else "here",
        "title": "A refit of the data" if has_refit else "This map",
        "recall": _share(chance.recall),
        "null_recall": _share(chance.null_recall),
        "n_islands": _islands(chance.n_islands),
        "null_islands": _islands(chance.null_islands),
        "share_above": _share(chance.share_above),
        "rows": len(chance.null.rows),
    }


def _reason(part: str, trust: Trust) -> str:
    """One sentence on why a part is missing, and one on how to get it."""
    reason = trust.reasons.get(part)
    if reason is None:
        return f"This was not measured. {HOW_TO_GET}" if part != "contrast" else ""
    reason = reason[:1].upper() + reason[1:].rstrip(".") + "."
    is_told = part == "contrast" or "check" in reason
    return reason if is_told else f"{reason} {HOW_TO_GET}"


def _islands(number: int) -> str:
    return "1 island" if number == 1 else f"{count(number)} islands"


def _mean(values: np.ndarray) -> float:
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else math.nan


def _share(value: float) -> str:
    return percent(value) if math.isfinite(value) else UNKNOWN


def _along(value: float) -> float:
    """Position of a value on a strip of length 100 that shows values from 0 to 1."""
    return round(100 * min(max(value, 0.0), 1.0), 1) if math.isfinite(value) else 0.0
