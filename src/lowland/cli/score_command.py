"""``lowland score``: how far a map made by any tool can be believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lowland._base.constraints import split
from lowland.cli import options
from lowland.cli.console import file_lines
from lowland.cli.options import Frame, framed
from lowland.tables.options import FOREIGN, TableOptions
from lowland.workflow.options import RunSettings

Report = options.output_file("Also write a report (.html).")


@framed("force", table=(TableOptions, FOREIGN), settings=(RunSettings, ("n_jobs",)))
def score_command(
    frame: Frame,
    source: options.Input,
    map_file: options.MapFile,
    coordinates: options.Coordinates = None,
    report: Report = None,
    *,
    table: TableOptions,
    settings: RunSettings,
) -> None:
    """Measure a map that any tool has made: trustworthiness and more, beside PCA and chance.

    Rows are matched by their ids if both files have some, else by their order.
    """
    from lowland.workflow.foreign.judging import given_maps

    written = checked_outputs(frame, {"report": report}, [source, map_file])
    (given,) = given_maps(
        *(source, [map_file], split(coordinates or ()), table, settings.n_jobs), frame.notes
    )
    score = given.score()
    frame.notes(note for note in score.notes if note.startswith("caution"))
    if report is not None:
        score.report(report, command=frame.typed, force=frame.force)
    frame.result(
        lambda: (
            lines(score, str(score.quality).split("\n"), written),
            {**facts(score, written), "quality": score.quality.to_dict()},
        ),
        written=bool(written),
    )


def checked_outputs(
    frame: Frame, files: dict[str, Path | None], sources: list[str]
) -> dict[str, Path]:
    """The files to write, if they may be written."""
    from lowland._base.errors import DataError
    from lowland.tables import check_free

    written = {kind: path for kind, path in files.items() if path is not None}
    report = written.get("report")
    if report is not None and report.suffix.lower() != ".html":
        raise DataError(f"{report}: reports are written to files ending in .html.")
    check_free(list(written.values()), force=frame.force, sources=sources)
    return written


def lines(found: Any, results: list[str], written: dict[str, Path]) -> list[str]:
    """What is known of a map, for a person."""
    prepared, notes = found.prepared, found.notes
    return [
        f"{prepared.table.source}: {prepared.log[0]}",
        *(f"  {line}" for line in prepared.log[1:]),
        f"{found.name}: {notes[0]}",
        *(f"  {note}" for note in notes[1:] if not note.startswith("caution")),
        *results,
        *file_lines(written),
    ]


def facts(found: Any, written: dict[str, Path]) -> dict[str, Any]:
    """What is known of a map and its rows, for a program."""
    prepared = found.prepared
    return {
        "input": prepared.table.source,
        "map": found.name,
        "coordinates": found.columns,
        "rows": len(found.coordinates),
        "preparation": prepared.log,
        "dropped_rows": prepared.dropped,
        "notes": [*prepared.table.notes, *found.notes],
        "outputs": {kind: str(path) for kind, path in written.items()},
    }
