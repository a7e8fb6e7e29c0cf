"""``lowland score``: how far a map made by any tool can be believed."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from lowland.cli import options, table_options
from lowland.cli.console import Console
from lowland.cli.failures import after_writing
from lowland.cli.method_options import typed_command


@table_options.about_table([name for name in table_options.TABLE if name != "target"])
def score_command(
    ctx: typer.Context,
    source: options.Input,
    map_file: options.MapFile,
    coordinates: options.Coordinates = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write a report (.html).",
            show_default=False,
        ),
    ] = None,
    *,
    table: table_options.Table,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Measure a map that any tool has made: trustworthiness and more, beside PCA and chance.

    Rows are matched by their ids if both files have some, else by their order.
    """
    from lowland._base.errors import DataError
    from lowland.tables import check_free
    from lowland.tables.preparing import prepare, read
    from lowland.workflow.foreign.scoring import run_score

    console = Console(quiet=quiet, as_json=as_json)
    if report is not None:
        if report.suffix.lower() != ".html":
            raise DataError(f"{report}: reports are written to files ending in .html.")
        check_free([report], force=force, sources=[source, map_file])
    table = table.for_data(source)
    with console.warnings_as_notes():
        prepared = prepare(read(source, table), table)
        for note in prepared.table.notes:
            console.note(note)
        score = run_score(prepared, map_file, options.split(coordinates), table, jobs)
        for note in score.notes:
            if note.startswith("caution"):
                console.note(note)
        if report is not None:
            score.report(report, command=typed_command(ctx), force=force)
    with after_writing() if report is not None else contextlib.nullcontext():
        lines = [
            f"{source}: {prepared.log[0]}",
            *(f"  {line}" for line in prepared.log[1:]),
            f"{map_file}: {score.notes[0]}",
            *(f"  {note}" for note in score.notes[1:] if not note.startswith("caution")),
            *str(score.quality).split("\n"),
            *([f"  report   {report}"] if report is not None else []),
        ]
        console.result(
            lines,
            {
                "command": "score",
                "input": source,
                "map": map_file,
                "coordinates": score.columns,
                "rows": len(score.coordinates),
                "preparation": prepared.log,
                "dropped_rows": prepared.dropped,
                "notes": [*prepared.table.notes, *score.notes],
                "quality": score.quality.to_dict(),
                "outputs": {} if report is None else {"report": str(report)},
            },
        )
