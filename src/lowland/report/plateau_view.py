"""Maps for several values of one parameter: the strip of maps and the line chart."""

from __future__ import annotations

import math
from typing import Any

from lowland.report.summary import Map
from lowland.report.wording import UNKNOWN, number

# The box of the chart, in its own units: where the lines are, and how far apart the values.
LEFT, TOP, HEIGHT, STEP = 30.0, 10.0, 130.0, 80.0


def plateau_view(entry: Map) -> dict[str, Any] | None:
    """The values of the parameter with their measures, and the chart; None if there are none."""
    plateau = entry.get("plateau")
    if plateau is None or not plateau.values:
        return None
    values = [
        {
            "text": number(_short(value)),
            "excess": _text(excess),
            "overlap": _text(overlap),
            "is_on": bool(is_on),
            "is_default": value == plateau.default,
            "is_recommended": value == plateau.recommended,
        }
        for value, excess, overlap, is_on in zip(
            plateau.values, plateau.excess, plateau.overlap, plateau.on_plateau, strict=True
        )
    ]
    return {
        "parameter": plateau.parameter,
        "sentence": plateau.sentence,
        "steps": values,
        "default": number(_short(plateau.default)),
        "recommended": number(_short(plateau.recommended)),
        "has_maps": len(plateau.maps) == len(plateau.values),
        "chart": _chart(plateau.excess, plateau.overlap, values),
    }


def _chart(
    excess: list[float], overlap: list[float], values: list[dict[str, Any]]
) -> dict[str, Any]:
    """Two lines over the values, which stand at equal steps; NaN leaves a point out."""
    known = [value for value in (*excess, *overlap) if math.isfinite(value)]
    low = min(0.0, *known) if known else 0.0
    high = max(0.2, *known) if known else 1.0

    def across(place: float) -> float:
        return round(LEFT + STEP * (place + 0.5), 1)

    def down(value: float) -> float:
        return round(TOP + HEIGHT * (high - value) / (high - low), 1)

    def line(measure: list[float]) -> dict[str, Any]:
        found = [(across(i), down(v)) for i, v in enumerate(measure) if math.isfinite(v)]
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
        "labels": [
            {"x": across(i), "text": value["text"], "is_default": value["is_default"]}
            for i, value in enumerate(values)
        ],
        "ticks": [
            {"y": down(value), "text": f"{value:.1f}"}
            for value in (step / 10 for step in range(math.ceil(10 * low), int(10 * high) + 1, 2))
        ],
    }


def _short(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)


def _text(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else UNKNOWN
