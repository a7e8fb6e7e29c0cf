"""``lowland info``: what a table is like, and which methods suit it."""

from __future__ import annotations

import dataclasses
from typing import Any

from lowland._base.errors import count
from lowland._base.memory import format_bytes
from lowland.cli import options
from lowland.cli.console import aligned, listing
from lowland.cli.options import Frame, flag, framed
from lowland.tables.options import DESCRIBING
from lowland.workflow.options import FITTING

FLAT = 1.5  # if mean distance / nearest distance is below this, neighbors hardly stand out
Perplexity = flag(
    "--perplexity",
    text="Compare perplexities of t-SNE on at most 5 000 rows, which takes some 20 maps.",
)


@framed(table=DESCRIBING, settings=FITTING)
def info_command(frame: Frame, sources: options.Inputs, perplexity: Perplexity = False) -> None:
    """Describe a table: size, missing values, dimensions, and what each method would need.

    Time and memory are estimates from the cost model of each method, for two cores.
    """
    from lowland.tables.preparing import read
    from lowland.workflow.describing import description_of

    choices = dataclasses.replace(frame.table, missing_distances=True).for_data(frame.data)
    table = read(frame.data, choices)
    frame.notes(table.notes)
    found = description_of(table, choices, frame.settings, perplexity=perplexity)
    if found["refused"]:
        frame.notes([f"'lowland map' refuses this table as it is: {found['refused']}"])
    frame.result(lambda: (lines(found), found), written=False)


def lines(found: dict[str, Any]) -> list[str]:
    """The description for a person."""
    names = f" ({listing(found['features'])})" if found["features"] else ""
    kind = "sparse columns" if found["sparse"] else "columns of numbers"
    what = f"{found['columns']} {kind}{names}"
    if found["distances"]:
        what = f"{'sparse ' if found['sparse'] else ''}distances between them"
    roles, apart = found["roles"], found["roles"]["set_aside"]
    holes = [f"{name} ({number})" for name, number in found["missing"].items()]
    told = [
        f"{found['input']}: {count(found['rows'], 'row')}, {what}",
        *_named("row id", [roles["id"]] if roles["id"] else []),
        *_named("labels", roles["labels"]),
        *(f"  set aside: {each['column']}, because {each['reason']}" for each in apart),
        *_named("not used", roles["not_used"]),
        *_named("nested or binary, left out", roles["left_out"]),
        *_named("taking part", found["taking_part"]),
        *(f"  {line}" for line in found["choices"]),
        *_named("missing values", holes or ["none"]),
        *_named("constant columns, which carry no information", found["constant"]),
    ]
    scale = "not scaled" if found["scale"] == "none" else f"scaled: {found['scale']}"
    told.append(f"  would be {scale} ({found['scale_reason']})")
    if found["concentration"] is not None:
        told += _dimension_lines(found)
    cells = [["method", "about", "memory", ""]]
    for method in found["methods"]:
        need = [duration(method["estimated_seconds"]), format_bytes(method["estimated_bytes"])]
        cells.append([method["method"], *need, "" if method["fits"] else "more than is available"])
    told += ["estimates, right within a factor of about 3:", *aligned(cells)]
    return [*told, *_perplexity_lines(found["perplexity"])] if "perplexity" in found else told


def _perplexity_lines(found: dict[str, Any]) -> list[str]:
    """One line for each perplexity, and the sentence."""
    if not found["values"]:
        return [found["sentence"]]
    cells = [["perplexity", "neighbors kept beyond chance", "agreement of two halves", ""]]
    for one in found["values"]:
        numbers = [f"{one['perplexity']:g}", f"{one['excess']:.2f}", f"{one['overlap']:.2f}"]
        cells.append([*numbers, "on the plateau" if one["on_plateau"] else ""])
    title = f"maps of {found['rows_mapped']} rows by t-SNE:"
    return [title, *aligned(cells), found["sentence"]]


def _named(what: str, names: list[str]) -> list[str]:
    """A line that lists columns, if there are some."""
    return [f"  {what}: {listing(names)}"] if names else []


def _dimension_lines(found: dict[str, Any]) -> list[str]:
    sampled = found["rows_measured"] < found["rows"]
    where = f" (of {found['rows_measured']} sampled rows)" if sampled else ""
    needed = ", ".join(f"{number} for {share}" for share, number in found["components"].items())
    dimension = found["intrinsic_dimension"]
    return [
        *([f"  intrinsic dimension about {dimension:.1f}{where}"] if dimension else []),
        *([f"  principal components needed: {needed} of the variance"] if needed else []),
        f"  other rows are on average {found['concentration']:.1f} times as far as the nearest one"
        + (
            "; distances that differ so little carry little information"
            if found["concentration"] < FLAT
            else ""
        ),
    ]


def duration(seconds: float) -> str:
    """A time for people: ``0.2 s``, ``3 min``, ``5 h``."""
    for limit, unit, size in ((120, "s", 1.0), (7200, "min", 60.0), (172_800, "h", 3600.0)):
        if seconds < limit:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds / 86_400:.2g} days"
