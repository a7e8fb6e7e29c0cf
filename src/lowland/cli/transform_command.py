"""``lowland transform``: place new rows in a map that was made before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lowland.cli import options, table_options
from lowland.cli.console import Console
from lowland.cli.failures import after_writing, resumable

if TYPE_CHECKING:
    from lowland.workflow.choosing import StreamOptions


@table_options.about_table(["labels", "label_file", "id_column", "part", "vector", "transpose"])
def transform_command(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model.lowland file.", show_default=False),
    ],
    sources: options.Inputs,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .csv or .parquet file, or a folder/ for parts; default INPUT-map.csv.",
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
    engine: options.Engine = options.Engines.AUTO,
    scheduler: options.Scheduler = None,
    resume: options.Resume = False,
    jobs: options.Jobs = None,
    force: options.Force = False,
    raw_text: options.RawText = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Place the rows of a table in a map that was made before.

    If the model knows the names of its columns, they are found by name, in any order. A table
    larger than memory is read in chunks, and its rows are written to a folder of Parquet files.
    """
    from lowland._base import registry
    from lowland._base.errors import COMMAND_LINE, count
    from lowland.tables import check_free, check_suffix, staged_outputs, write_frame
    from lowland.workflow.choosing import StreamOptions
    from lowland.workflow.placing import run_placement

    console = Console(quiet=quiet, as_json=as_json)
    sources = options.found(sources)
    stream = StreamOptions(engine.value, scheduler, None, resume, None, COMMAND_LINE)
    folder = folder_of_parts(sources, output, table, stream, console)
    if folder is not None:
        place_parts(model, sources, folder, table, stream, jobs, domain, force, console)
        return
    target = Path(output) if output else options.table_file(sources, "map")
    check_suffix(target)
    check_free([target], force=force, sources=[model, *sources])
    with console.warnings_as_notes():
        data = options.as_data(sources)
        placed = run_placement(model, data, table, jobs, console.shows_progress, domain)
        for note in placed.notes:
            console.note(note)
        with staged_outputs([target], force=force) as [staged]:
            write_frame(placed.map, staged, raw_text=raw_text)
    with after_writing():
        rows, columns = placed.table.shape
        console.result(
            [
                f"{placed.table.source}: {count(rows, 'row')} placed by {placed.method} "
                f"from {count(columns, 'column')} in {placed.seconds:.2f} s",
                f"  map      {target}",
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
                "outputs": {"map": str(target)},
                "notes": placed.notes,
            },
        )


def folder_of_parts(
    sources: list[str], output: str | None, table: Any, stream: StreamOptions, console: Console
) -> Path | None:
    """The folder that parts go to, if rows are read in chunks; None if they are not."""
    from lowland._base.errors import DataError, ParameterError
    from lowland.workflow.choosing import size_note, why_not_streamed
    from lowland.workflow.outputs import result_stem

    asks = output is not None and (output.endswith(("/", os.sep)) or Path(output).is_dir())
    data = options.as_data(sources)
    if stream.asked or asks:
        unable = why_not_streamed(data, table)
        if unable is not None:
            option = f"-o {output}" if asks else f"--engine {stream.engine}"
            raise DataError(f"{option}: rows cannot be read in chunks: {unable}.")
    else:
        note = size_note(data, None, table, stream)
        if note is None:
            if stream.resume:
                raise ParameterError(
                    "--resume: is for rows that are read in chunks; add --engine stream."
                )
            return None
        console.note(note)
    folder = Path(output) if output else Path(f"{result_stem(sources)}-map")
    if folder.is_file() or folder.suffix.lower() in (".csv", ".parquet"):
        raise ParameterError(
            f"-o {folder}: rows are read in chunks, and written to a folder of Parquet files; "
            "give the name of a folder."
        )
    return folder


def place_parts(
    model: Path,
    sources: list[str],
    folder: Path,
    table: Any,
    stream: StreamOptions,
    jobs: int | None,
    domain: str | None,
    force: bool,
    console: Console,
) -> None:
    """Place rows that are read in chunks, and say where they are."""
    from lowland._base import registry
    from lowland._base.errors import count
    from lowland._base.rows.parts import MANIFEST
    from lowland.tables import check_writable
    from lowland.workflow._display import grouped
    from lowland.workflow.streaming.placing import stream_placement

    check_writable(folder)
    with console.warnings_as_notes(), resumable(folder / MANIFEST):
        placed = stream_placement(
            *(model, sources, folder, table, stream),
            n_jobs=jobs,
            verbose=console.shows_progress,
            domain=domain,
            force=force,
        )
    for note in placed.notes:
        console.note(note)
    parts = placed.parts
    kept = f", {parts.n_kept} kept by --resume" if parts.n_kept else ""
    with after_writing():
        console.result(
            [
                f"{placed.source}: {grouped(parts.n_rows)} rows placed by {placed.method} from "
                f"{count(placed.columns, 'column')} in {placed.seconds:.2f} s",
                f"  map      {parts.folder} ({count(len(parts.files), 'part')}{kept})",
            ],
            {
                "command": "transform",
                "model": str(model),
                "input": placed.source,
                "rows": parts.n_rows,
                "columns": placed.columns,
                "labels": placed.labels,
                "unused": placed.unused,
                "id": placed.id_name,
                "method": registry.snake_case(placed.method),
                "dimensions": placed.dimensions,
                "seconds": placed.seconds,
                "engine": placed.engine,
                "parts": {
                    "folder": str(parts.folder),
                    "files": len(parts.files),
                    "kept": parts.n_kept,
                },
                "outputs": {"map": str(parts.folder)},
                "notes": placed.notes,
            },
        )
