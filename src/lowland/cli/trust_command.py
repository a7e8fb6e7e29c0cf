"""``lowland trust``: where a map made by any tool can be believed."""

from __future__ import annotations

from pathlib import Path

from lowland._base.constraints import split
from lowland.cli import options
from lowland.cli.console import trust_lines
from lowland.cli.options import Frame, framed, valued
from lowland.cli.score_command import checked_outputs, facts, lines
from lowland.tables.options import FOREIGN, TableOptions
from lowland.workflow.options import FITTING, RunSettings

Others = valued(
    list[str],
    "--others",
    metavar="MAPS",
    text="Other maps of the same rows, such as those of other seeds, to see what is stable.",
)
Report = options.output_file("Also measure the map and write a report (.html).")
Points = valued(
    Path,
    "--csv",
    metavar="FILE",
    text="Also write what is known of each point (.csv or .parquet).",
)


@framed("force", "raw_text", table=(TableOptions, FOREIGN), settings=(RunSettings, FITTING))
def trust_command(
    frame: Frame,
    source: options.Input,
    map_file: options.MapFile,
    others: Others = None,
    coordinates: options.Coordinates = None,
    report: Report = None,
    points: Points = None,
    *,
    table: TableOptions,
    settings: RunSettings,
) -> None:
    """Judge where a map that any tool has made can be believed: points that are not where they
    belong, gaps that are not in the data, islands that hold two groups.

    Rows are matched by their ids if both files have some, else by their order. A map file cannot be
    made again: what is stable is known if other maps of the same rows are given with --others.
    """
    from lowland.tables import check_suffix
    from lowland.workflow.foreign.judging import given_maps

    beside = split(others or ())
    if points is not None:
        check_suffix(points)
    maps = [map_file, *beside]
    written = checked_outputs(frame, {"report": report, "points": points}, [source, *maps])
    given, *more = given_maps(
        *(source, maps, split(coordinates or ()), table, settings.n_jobs), frame.notes
    )
    found = given.judge(more, settings)
    frame.notes(note for note in found.notes if note.startswith("caution"))
    if report is not None:
        found.report(report, command=frame.typed, force=frame.force)
    if points is not None:
        found.write_points(points, force=frame.force, raw_text=frame.raw_text)
    frame.result(
        lambda: (
            lines(found, trust_lines(found.trust, reasons=True), written),
            {**facts(found, written), "others": beside, "trust": found.trust.to_dict()},
        ),
        written=bool(written),
    )
