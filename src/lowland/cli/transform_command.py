"""``lowland transform``: place new rows in a map that was made before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lowland.cli import options
from lowland.cli.console import Console
from lowland.cli.failures import after_writing

__all__ = ["transform_command"]


def transform_command(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model.lowland file.", show_default=False),
    ],
    source: options.Input,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .csv or .parquet file; default INPUT-map.csv.",
            show_default=False,
        ),
    ] = None,
    labels: options.Labels = None,
    id_column: options.Id = None,
    part: options.Part = None,
    jobs: options.Jobs = None,
    force: options.Force = False,
    raw_text: options.RawText = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Place the rows of a table in a map that was made before.

    If the model knows the names of its columns, they are found by name, in any order.
    """
    from lowland._core import registry
    from lowland._core.wording import count
    from lowland.io import check_free, check_suffix, staged_outputs, write_frame
    from lowland.study import place_rows
    from lowland.study._spelling import COMMAND_LINE

    console = Console(quiet=quiet, as_json=as_json)
    output = output or options.table_file(source, "map")
    check_suffix(output)
    check_free([output], force=force, sources=[model, source])
    with console.warnings_as_notes():
        placed = place_rows(
            model,
            source,
            labels=options.split(labels),
            id_column=id_column,
            part=part,
            n_jobs=jobs,
            verbose=console.shows_progress,
            spelling=COMMAND_LINE,
        )
        for note in placed.notes:
            console.note(note)
        with staged_outputs([output], force=force) as [staged]:
            write_frame(placed.map, staged, raw_text=raw_text)
    with after_writing():
        table = placed.table
        rows, columns = table.shape
        console.result(
            [
                f"{source}: {count(rows, 'row')} placed by {placed.method} "
                f"from {count(columns, 'column')} in {placed.seconds:.2f} s",
                f"  map      {output}",
            ],
            {
                "command": "transform",
                "model": str(model),
                "input": source,
                "rows": rows,
                "columns": columns,
                "labels": table.labels.columns,
                "unused": list(table.unused),
                "id": table.ids.name,
                "method": registry.snake_case(placed.method),
                "dimensions": placed.coordinates.shape[1],
                "seconds": placed.seconds,
                "outputs": {"map": str(output)},
                "notes": placed.notes,
            },
        )
