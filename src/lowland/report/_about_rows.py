"""Cautions about the rows of a run: dropped, dominating, sampled."""

from __future__ import annotations

from collections.abc import Iterator

from lowland.report.payload import MOST_POINTS
from lowland.report.summary import Summary
from lowland.report.wording import count, percent


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
        "scale='standard'); if it is no measurement, leave it out (--drop, drop=)."
    )
