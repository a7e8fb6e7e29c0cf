"""``lowland score`` and ``lowland trust``: how far a map made by any tool can be believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lowland._base.constraints import split
from lowland._base.errors import DataError
from lowland.cli import options
from lowland.cli.console import file_lines, preparation_lines, trust_lines
from lowland.cli.options import Frame, argument, framed, valued
from lowland.tables.options import FOREIGN
from lowland.workflow.options import FITTING

MapFile = argument("MAP", "A table with the coordinates of the same rows.")
Coordinates = valued(
    "--coordinates COLUMN,...",
    "Columns of the map; default: those whose names look like coordinates: x, y; tsne_1, tsne_2; "
    "...",
    list[str],
)
Others = valued(
    "--others MAPS",
    "Other maps of the same rows, such as those of other seeds, to see what is stable.",
    list[str],
)
Report = valued("--output -o FILE", "Also write a report (.html).", Path)
MeasuredReport = valued(
    "--output -o FILE", "Also measure the map and write a report (.html).", Path
)
Points = valued("--csv FILE", "Also write a table of the points (.csv or .parquet).", Path)


@framed("force", table=FOREIGN, settings=("n_jobs",))
def score_command(
    frame: Frame,
    source: options.Input,
    map_file: MapFile,
    coordinates: Coordinates = None,
    report: Report = None,
) -> None:
    """Measure a map that any tool has made: trustworthiness and more, compared with PCA and chance.

    Rows are matched by their ids if both files have some, else by their order.
    """
    (given,), written = matched_maps(frame, source, [map_file], coordinates, report=report)
    score = given.score()
    table = score.quality
    tell(frame, score, written, str(table).split("\n"), {"quality": table.to_dict()})


@framed("force", "raw_text", table=FOREIGN, settings=FITTING)
def trust_command(
    frame: Frame,
    source: options.Input,
    map_file: MapFile,
    others: Others = None,
    coordinates: Coordinates = None,
    report: MeasuredReport = None,
    points: Points = None,
) -> None:
    """Judge where a map that any tool has made can be believed: points that are not where they
    belong, gaps that are not in the data, islands that hold two groups.

    Rows are matched by their ids if both files have some, else by their order. A map file cannot be
    made again: what is stable is known if other maps of the same rows are given with --others.
    """
    beside = split(others or ())
    outputs = {"report": report, "points": points}
    maps, written = matched_maps(frame, source, [map_file, *beside], coordinates, **outputs)
    given, *more = maps
    found = given.judge(more, frame.settings)
    if points is not None:
        found.write_points(points, force=frame.force, raw_text=frame.raw_text)
    facts = {"others": beside, "trust": found.trust.to_dict()}
    tell(frame, found, written, trust_lines(found.trust, reasons=True), facts)


def matched_maps(
    frame: Frame,
    source: str,
    maps: list[str],
    coordinates: list[str] | None,
    **outputs: Path | None,
) -> tuple[list[Any], dict[str, Path]]:
    """The maps, with their rows matched with those of the table, and the files to write."""
    from lowland.tables import check_suffix
    from lowland.workflow.foreign.judging import given_maps

    written = {kind: path for kind, path in outputs.items() if path is not None}
    if "points" in written:
        check_suffix(written["points"])
    if "report" in written and written["report"].suffix.lower() != ".html":
        raise DataError(f"{written['report']}: reports are written to files ending in .html.")
    frame.check(list(written.values()), source, *maps)
    how = (split(coordinates or ()), frame.table, frame.settings.n_jobs)
    return given_maps(source, maps, *how, frame.notes), written


def tell(
    frame: Frame, found: Any, written: dict[str, Path], lines: list[str], facts: dict[str, Any]
) -> None:
    """Write the report, if one was asked for, and print what is known of a map."""
    prepared, notes = found.prepared, found.notes
    frame.notes(note for note in notes if note.startswith("caution"))
    if "report" in written:
        found.report(written["report"], command=frame.typed, force=frame.force)
    outputs = {kind: str(path) for kind, path in written.items()}
    source, told = prepared.table.source, [n for n in notes if not n.startswith("caution")]
    frame.result(
        lambda: (
            [
                *preparation_lines(source, prepared.log),
                *preparation_lines(found.name, told),
                *lines,
                *file_lines(outputs),
            ],
            {
                "input": source,
                "map": found.name,
                "coordinates": found.columns,
                "rows": len(found.coordinates),
                "preparation": prepared.log,
                "dropped_rows": prepared.dropped,
                "notes": [*prepared.table.notes, *notes],
                "outputs": outputs,
                **facts,
            },
        ),
        written=bool(written),
    )
