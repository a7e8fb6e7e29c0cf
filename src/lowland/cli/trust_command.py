"""``lowland trust``: where a map made by any tool can be believed."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from lowland.cli import options, table_options
from lowland.cli.console import Console, trust_lines
from lowland.cli.failures import after_writing
from lowland.cli.method_options import typed_command


@table_options.about_table([name for name in table_options.TABLE if name != "target"])
def trust_command(
    ctx: typer.Context,
    source: options.Input,
    map_file: options.MapFile,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--others",
            metavar="MAPS",
            help="Other maps of the same rows, such as those of other seeds, to see what is "
            "stable.",
            show_default=False,
        ),
    ] = None,
    coordinates: options.Coordinates = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also measure the map and write a report (.html).",
            show_default=False,
        ),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Also write what is known of each point (.csv or .parquet).",
            show_default=False,
        ),
    ] = None,
    *,
    table: table_options.Table,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    raw_text: options.RawText = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Judge where a map that any tool has made can be believed: points that are not where they
    belong, gaps that are not in the data, islands that hold two groups.

    Rows are matched by their ids if both files have some, else by their order. A map file cannot be
    made again: what is stable is known if other maps of the same rows are given with --others.
    """
    from lowland._base.errors import DataError
    from lowland.tables import check_free, check_suffix
    from lowland.tables.preparing import prepare, read
    from lowland.workflow.foreign.trusting import run_trust

    console = Console(quiet=quiet, as_json=as_json)
    beside = options.split(others)
    if report is not None and report.suffix.lower() != ".html":
        raise DataError(f"{report}: reports are written to files ending in .html.")
    if points is not None:
        check_suffix(points)
    files = {"report": report, "points": points}
    written = {kind: path for kind, path in files.items() if path is not None}
    check_free(list(written.values()), force=force, sources=[source, map_file, *beside])
    table = table.for_data(source)
    with console.warnings_as_notes():
        prepared = prepare(read(source, table), table)
        for note in prepared.table.notes:
            console.note(note)
        found = run_trust(
            *(prepared, map_file, beside, options.split(coordinates), table),
            seed=seed,
            n_jobs=jobs,
            verbose=console.shows_progress,
        )
        for note in found.notes:
            if note.startswith("caution"):
                console.note(note)
        if report is not None:
            found.report(report, command=typed_command(ctx), force=force)
        if points is not None:
            found.write_points(points, force=force, raw_text=raw_text)
    with after_writing() if written else contextlib.nullcontext():
        lines = [
            f"{source}: {prepared.log[0]}",
            *(f"  {line}" for line in prepared.log[1:]),
            f"{map_file}: {found.notes[0]}",
            *(f"  {note}" for note in found.notes[1:] if not note.startswith("caution")),
            *trust_lines(found.trust, reasons=True),
            *(f"  {kind:<8} {path}" for kind, path in written.items()),
        ]
        console.result(
            lines,
            {
                "command": "trust",
                "input": source,
                "map": map_file,
                "others": beside,
                "coordinates": found.columns,
                "rows": len(found.coordinates),
                "preparation": prepared.log,
                "dropped_rows": prepared.dropped,
                "notes": [*prepared.table.notes, *found.notes],
                "trust": found.trust.to_dict(),
                "outputs": {kind: str(path) for kind, path in written.items()},
            },
        )
