"""The verdict on a map and its evidence, in words and numbers for the templates."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from lowland.metrics.gaps import Gap
from lowland.metrics.home import KINDS
from lowland.report import payload, wording
from lowland.report.summary import Map, Summary
from lowland.trust.result import Contrast, Island, OtherMap, Plateau, Trust

# What the script on the page reads about the trust of each map; :mod:`payload` packs the rest.


MOST_IN_PART = 5_000  # points of a small map
NOT_MEASURED = 255  # code of a share that is not known; the others are 254 times the share
FINEST = 2**16 - 1  # steps of a coordinate of a small map, from one edge to the other


def pack_trust(summary: Summary) -> dict[str, Any]:
    """An entry ``trust`` for the data of the page; none if nothing is known about any map."""
    rows = payload.display_rows(len(summary["ids"]))
    packed = [_pack_entry(entry, rows) for entry in summary["maps"]]
    return {} if packed == [None] * len(packed) else {"trust": packed}


def other_maps(trust: Trust | None, plateau: Plateau | None) -> dict[str, OtherMap]:
    """The small maps by the name that the page gives them.

    ``here`` is the map itself at the rows of the first refit, or of the map without structure.
    """
    found: dict[str, OtherMap] = {}
    if trust is not None:
        refits = [] if trust.stability is None else trust.stability.refits
        found |= {f"refit-{number}": refit for number, refit in enumerate(refits)}
        if trust.chance is not None:
            found["null"] = trust.chance.null
        for beside in list(found.values())[:1]:
            found["here"] = OtherMap("this map", beside.rows, trust.coordinates[beside.rows])
    if plateau is not None:
        found |= {f"plateau-{number}": made for number, made in enumerate(plateau.maps)}
    return found


def _pack_entry(entry: Map, rows: np.ndarray) -> dict[str, Any] | None:
    trust, plateau = entry.get("trust"), entry.get("plateau")
    if trust is None and plateau is None:
        return None
    parts = {
        name: _pack_part(other, None if name == "null" else rows)
        for name, other in other_maps(trust, plateau).items()
    }
    if trust is None:
        return {"points": None, "arrows": None, "islands": None, "parts": parts}
    points, stability = trust.points, trust.stability
    kinds = np.asarray(points.kind, dtype=np.int64)[rows] + 1
    packed = {
        "missing": _shares(points.missing, rows),
        "strangers": _shares(points.strangers, rows),
        "stability": None if stability is None else _shares(stability.points, rows),
        "kind": payload.pack_codes("kind", kinds, list(KINDS), missing="not measured"),
    }
    arrows, islands = _pack_arrows(trust, rows), _pack_islands(trust, rows)
    return {"points": packed, "arrows": arrows, "islands": islands, "parts": parts}


def _shares(values: np.ndarray, rows: np.ndarray) -> str:
    """Values from 0 to 1 as one byte each."""
    values = np.asarray(values, dtype=np.float64)[rows]
    known = np.isfinite(values)
    codes = np.full(len(values), NOT_MEASURED, dtype=np.uint8)
    codes[known] = np.round(np.clip(values[known], 0.0, 1.0) * (NOT_MEASURED - 1))
    return payload.pack_array(codes, "<u1")


def _pack_arrows(trust: Trust, rows: np.ndarray) -> dict[str, Any]:
    """From where to where, in the units of the packed map, and the points that are shown."""
    worst = trust.worst()
    place, shown = _places(worst, rows)
    return {
        "points": np.where(shown, place, -1).tolist(),
        "starts": _in_frame(trust, trust.coordinates[worst], rows),
        "homes": _in_frame(trust, trust.points.home[worst], rows),
    }


def _pack_islands(trust: Trust, rows: np.ndarray) -> dict[str, Any]:
    centers = [island.center for island in trust.islands]
    q = trust.coordinates.shape[1]
    return {
        "codes": payload.pack_array(np.asarray(trust.island_of)[rows], "<u2"),
        "numbers": [int(island.number) for island in trust.islands],
        "centers": _in_frame(trust, np.reshape(centers, (-1, q)), rows),
        "double": [_holds_two(island) for island in trust.islands],
        "gaps": [
            {"one": int(gap.one), "other": int(gap.other), "verdict": gap.verdict}
            for gap in trust.gaps
            if gap.one != gap.other
        ],
    }


def _in_frame(trust: Trust, places: np.ndarray, rows: np.ndarray) -> list[list[float]]:
    """Places of the map in the units in which :func:`payload.pack_map` packs it."""
    middle, reach = payload.frame_of(trust.coordinates, rows)
    places = np.asarray(places, dtype=np.float64)[:, : payload.SHOWN_DIMENSIONS]
    return [[round(float(value), 5) for value in place] for place in (places - middle) / reach]


def _pack_part(other: OtherMap, shown_rows: np.ndarray | None) -> dict[str, Any]:
    """A small map of those of its rows that the page shows; without them, rows have no meaning."""
    Y, points = np.asarray(other.coordinates), None
    if shown_rows is not None:
        points, shown = _places(np.asarray(other.rows), shown_rows)
        Y, points = Y[shown], points[shown]
    drawn = payload.some_rows(len(Y), MOST_IN_PART)
    Y, points = Y[drawn], None if points is None else points[drawn]
    if len(Y):
        middle, reach = payload.frame_of(Y, np.arange(len(Y)))
        Y = (Y[:, : payload.SHOWN_DIMENSIONS] - middle) / reach
    return {
        "title": other.title,
        "dimensions": min(Y.shape[1], payload.SHOWN_DIMENSIONS),
        "points": None if points is None else payload.pack_array(points, "<u4"),
        "coordinates": payload.pack_array(np.round((Y + 1) / 2 * FINEST), "<u2"),
    }


def _places(wanted: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each wanted row among the ascending rows, and whether it is there."""
    place = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    return place, rows[place] == wanted


# Maps for several values of one parameter: the strip of maps and the line chart.


# The box of the chart, in its own units: where the lines are, and how far apart the values.
LEFT, TOP, HEIGHT, STEP = 30.0, 10.0, 130.0, 80.0


def plateau_view(entry: Map) -> dict[str, Any] | None:
    """The values of the parameter with their measures, and the chart; None if there are none."""
    plateau = entry.get("plateau")
    if plateau is None or not plateau.values:
        return None
    columns = zip(plateau.values, plateau.excess, plateau.overlap, plateau.on_plateau, strict=True)
    values = [
        {
            "x": _across(number),
            "text": _value_text(value),
            "excess": excess,
            "overlap": overlap,
            "is_on": bool(is_on),
            "is_default": value == plateau.default,
            "is_recommended": value == plateau.recommended,
        }
        for number, (value, excess, overlap, is_on) in enumerate(columns)
    ]
    return {
        **plateau._asdict(),
        "steps": values,
        "default": _value_text(plateau.default),
        "has_maps": len(plateau.maps) == len(plateau.values),
        "chart": _chart(plateau.excess, plateau.overlap, values),
    }


def _across(place: int) -> float:
    return round(LEFT + STEP * (place + 0.5), 1)


def _chart(
    excess: list[float], overlap: list[float], values: list[dict[str, Any]]
) -> dict[str, Any]:
    """Two lines over the values, which stand at equal steps; NaN leaves a point out."""
    known = [value for value in (*excess, *overlap) if math.isfinite(value)]
    low = min(0.0, *known) if known else 0.0
    high = max(0.2, *known) if known else 1.0

    def down(value: float) -> float:
        return round(TOP + HEIGHT * (high - value) / (high - low), 1)

    def line(measure: list[float]) -> dict[str, Any]:
        found = [(_across(i), down(v)) for i, v in enumerate(measure) if math.isfinite(v)]
        return {"marks": found, "points": " ".join(f"{x},{y}" for x, y in found)}

    return {
        "width": LEFT + STEP * len(values) + 6,
        "height": TOP + HEIGHT + 26,
        "left": LEFT,
        "right": LEFT + STEP * len(values),
        "top": TOP,
        "bottom": TOP + HEIGHT,
        "step": STEP,
        "excess": line(excess),
        "overlap": line(overlap),
        "bands": [round(LEFT + STEP * i, 1) for i, value in enumerate(values) if value["is_on"]],
        "ticks": [
            {"y": down(value), "text": f"{value:.1f}"}
            for value in (step / 10 for step in range(math.ceil(10 * low), int(10 * high) + 1, 2))
        ],
    }


def _value_text(value: float) -> str:
    return wording.number(int(value) if float(value).is_integer() else float(value))


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
    "stable": "Found again in other maps",
    "doubtful": "Found again in part",
    "unstable": "Not found again: do not rely on it",
}
# What the numbers about the contrast of a map are, by their fields.
CONTRASTS = {
    "silhouette": (
        "Separation of the islands in the data",
        "mean silhouette: 1 far apart, 0 touching, below 0 mixed",
    ),
    "centers": (
        "Distances between islands",
        "rank correlation of map and data: 1 if near islands are near in the data",
    ),
    "radii": (
        "Sizes and densities",
        "correlation of local radii of map and data: 1 if dense places are dense in the data",
    ),
}
HOW_TO_GET = "--check (check=True) adds it."


def trust_view(entry: Map) -> dict[str, Any] | None:
    """The verdict on a map and its evidence; None if the map was not checked."""
    trust = entry.get("trust")
    if trust is None:
        return None
    sentences = [
        {
            **sentence._asdict(),
            "mark": MARKS[sentence.level],
            "evidence": EVIDENCE.get(sentence.question, "distortion"),
        }
        for sentence in trust.sentences[:MOST_SENTENCES]
    ]
    gaps = sorted((gap for gap in trust.gaps if gap.one != gap.other), key=_seriousness)
    return {
        "sentences": sentences,
        "worst": min(sentences, key=lambda said: list(MARKS).index(said["level"]), default=None),
        "tally": _tally(Counter(said["level"] for said in sentences)),
        "points": _points(trust),
        "n_islands": len(trust.islands),
        "gaps": [{**gap._asdict(), "words": _words(gap)} for gap in gaps[:MOST_ROWS]],
        "more_gaps": max(0, len(gaps) - MOST_ROWS),
        "merged": [island for island in trust.islands if _holds_two(island)],
        "contrast": _contrast(trust.contrast),
        "stability": _stability(trust),
        "chance": _chance(trust),
        "reasons": {part: _reason(part, trust) for part in ("stability", "chance", "contrast")},
    }


def _tally(numbers: Counter[str]) -> str:
    """``1 serious, 2 cautions, 3 fine``."""
    cautions = "caution" if numbers["caution"] == 1 else "cautions"
    words = {"serious": "serious", "caution": cautions, "fine": "fine"}
    return ", ".join(f"{numbers[level]} {word}" for level, word in words.items() if numbers[level])


def _points(trust: Trust) -> dict[str, Any]:
    points = trust.points
    counts = points.counts()
    measured = sum(counts.values())
    kinds = [
        {"name": name, "rows": rows, "share": rows / max(measured, 1), "meaning": MEANINGS[name]}
        for name, rows in counts.items()
    ]
    return {
        **points._asdict(),
        "measured": measured,
        "rows": len(points.kind),
        "kinds": kinds,
        "missing": _mean(points.missing),
        "strangers": _mean(points.strangers),
        "arrows": len(trust.worst()),
    }


def _seriousness(gap: Gap) -> tuple[int, float]:
    """A sort key that puts the most serious gap first."""
    place = VERDICTS.index(gap.verdict) if gap.verdict in VERDICTS else len(VERDICTS)
    return place, -gap.cut if math.isfinite(gap.cut) else 0.0


def _words(gap: Gap) -> str:
    if gap.through:
        islands = "island" if len(gap.through) == 1 else "islands"
        through = f"onnected through {islands} {wording.listing(gap.through)}"
        return f"C{through}" if gap.verdict == "bridged" else f"Unclear: perhaps c{through}"
    return {
        "real": "The gap is in the data",
        "not in the data": "Not in the data: the two belong together",
        "unclear": "Unclear",
    }.get(gap.verdict, gap.verdict)


def _holds_two(island: Island) -> bool:
    return island.inner is not None and island.inner.verdict == "real"


def _contrast(contrast: Contrast) -> list[dict[str, Any]]:
    """What was measured; nothing for what was not."""
    lines = [
        {"name": name, "value": getattr(contrast, field), "meaning": meaning}
        for field, (name, meaning) in CONTRASTS.items()
    ]
    return [line for line in lines if math.isfinite(line["value"])]


def _stability(trust: Trust) -> dict[str, Any] | None:
    stability = trust.stability
    if stability is None:
        return None
    islands = sorted(stability.islands, key=lambda found: found.jaccard)
    return {
        **stability._asdict(),
        "refits": [refit.title for refit in stability.refits],
        "rows": max((len(refit.rows) for refit in stability.refits), default=0),
        "n_neighbors": trust.points.n_neighbors,
        "islands": [
            {**found._asdict(), "words": STABILITIES.get(found.verdict, found.verdict)}
            for found in islands[:MOST_ROWS]
        ],
        "more_islands": max(0, len(islands) - MOST_ROWS),
    }


def _chance(trust: Trust) -> dict[str, Any] | None:
    if trust.chance is None:
        return None
    has_refit = trust.stability is not None and bool(trust.stability.refits)
    part, title = ("refit-0", "A refit of the data") if has_refit else ("here", "This map")
    rows = len(trust.chance.null.rows)
    return {**trust.chance._asdict(), "part": part, "title": title, "rows": rows}


def _reason(part: str, trust: Trust) -> str:
    """One sentence on why a part is missing, and one on how to get it."""
    reason = trust.reasons.get(part)
    if reason is None:
        return f"This was not measured. {HOW_TO_GET}" if part != "contrast" else ""
    reason = reason[:1].upper() + reason[1:].rstrip(".") + "."
    is_told = part == "contrast" or "check" in reason
    return reason if is_told else f"{reason} {HOW_TO_GET}"


def _mean(values: np.ndarray) -> float:
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else math.nan
