"""``lowland transform``: place new rows in a map that was made before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lowland.cli import options, table_options
from lowland.cli.console import Console
from lowland.cli.failures import after_writing

__all__ = ["transform_command"]


@table_options.about_table(["labels", "label_file", "id_column", "part", "vector", "transpose"])
def transform_command(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model.lowland file.", show_default=False),
    ],
    sources: options.Inputs,
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
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain",
            metavar="SET",
            help="For a model of 'lowland align': the set that the rows belong to.",
            show_default=False,
        ),
    ] = None,
    *,
    table: table_options.Table,
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
    from lowland.study.placing import run_placement

    console = Console(quiet=quiet, as_json=as_json)
    sources = options.found(sources)
    output = output or options.table_file(sources, "map")
    check_suffix(output)
    check_free([output], force=force, sources=[model, *sources])
    with console.warnings_as_notes():
        data = options.as_data(sources)
        placed = run_placement(model, data, table, jobs, console.shows_progress, domain)
        for note in placed.notes:
            console.note(note)
        with staged_outputs([output], force=force) as [staged]:
            write_frame(placed.map, staged, raw_text=raw_text)
    with after_writing():
        rows, columns = placed.table.shape
        console.result(
            [
                f"{placed.table.source}: {count(rows, 'row')} placed by {placed.method} "
                f"from {count(columns, 'column')} in {placed.seconds:.2f} s",
                f"  map      {output}",
            ],
            {
                "command": "transform",
                "model": str(model),
                "input": placed.table.source,
                "rows": rows,
                "columns": columns,
                "labels": placed.table.labels.columns,
                "unused": list(placed.table.unused),
                "id": placed.table.ids.name,
                "method": registry.snake_case(placed.method),
                "dimensions": placed.coordinates.shape[1],
                "seconds": placed.seconds,
                "outputs": {"map": str(output)},
                "notes": placed.notes,
            },
        )
