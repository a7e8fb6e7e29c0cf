"""``lowland transform``: place new rows in a map that was made before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lowland.cli import options
from lowland.cli.failures import resumable
from lowland.cli.options import Frame, argument, framed, valued
from lowland.tables.options import PLACING, TableOptions
from lowland.workflow.options import RunSettings

Model = argument(Path, "MODEL", "A model.lowland file.")
Output = valued(
    str,
    *("--output", "-o"),
    metavar="FILE",
    text="A .csv or .parquet file, or a folder/ for parts; default INPUT-map.csv.",
)
Domain = valued(
    str,
    "--domain",
    metavar="SET",
    text="For a model of 'lowland align': the set that the rows belong to.",
)


@framed(
    *("force", "raw_text"),
    table=(TableOptions, PLACING),
    settings=(RunSettings, ("engine", "scheduler", "resume", "n_jobs", "verbose")),
)
def transform_command(
    frame: Frame,
    model: Model,
    sources: options.Inputs,
    output: Output = None,
    domain: Domain = None,
    *,
    table: TableOptions,
    settings: RunSettings,
) -> None:
    """Place the rows of a table in a map that was made before.

    If the model knows the names of its columns, they are found by name, in any order. A table
    larger than memory is read in chunks, and its rows are written to a folder of Parquet files.
    """
    from lowland._base.errors import count
    from lowland.tables import check_free, check_suffix, staged_outputs, write_frame
    from lowland.workflow.placing import run_placement

    folder = folder_of_parts(sources, output, table, settings, frame)
    if folder is not None:
        place_parts(model, sources, folder, table, settings, domain, frame)
        return
    target = Path(output) if output else options.table_file(sources, "map")
    check_suffix(target)
    check_free([target], force=frame.force, sources=[model, *sources])
    placed = run_placement(model, options.as_data(sources), table, settings, domain)
    frame.notes(placed.notes)
    with staged_outputs([target], force=frame.force) as [staged]:
        write_frame(placed.map, staged, raw_text=frame.raw_text)
    rows, columns = placed.table.shape
    frame.result(
        lambda: (
            [
                f"{placed.table.source}: {count(rows, 'row')} placed by {placed.method} "
                f"from {count(columns, 'column')} in {placed.seconds:.2f} s",
                f"  map      {target}",
            ],
            {"model": str(model), **placed.to_dict(), "outputs": {"map": str(target)}},
        )
    )


def folder_of_parts(
    sources: list[str], output: str | None, table: Any, settings: RunSettings, frame: Frame
) -> Path | None:
    """The folder that parts go to, if rows are read in chunks; None if they are not."""
    from lowland._base.errors import DataError, ParameterError
    from lowland.workflow.making import size_note, why_not_streamed
    from lowland.workflow.outputs import result_stem

    asks = output is not None and (output.endswith(("/", os.sep)) or Path(output).is_dir())
    data = options.as_data(sources)
    if settings.asks_for_chunks or asks:
        unable = why_not_streamed(data, table, settings)
        if unable is not None:
            option = f"-o {output}" if asks else f"--engine {settings.engine}"
            raise DataError(f"{option}: rows cannot be read in chunks: {unable}.")
    else:
        note = size_note(data, None, table, settings)
        if note is None:
            if settings.resume:
                raise ParameterError(
                    "--resume: is for rows that are read in chunks; add --engine stream."
                )
            return None
        frame.notes([note])
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
    settings: RunSettings,
    domain: str | None,
    frame: Frame,
) -> None:
    """Place rows that are read in chunks, and say where they are."""
    from lowland._base.errors import count
    from lowland._base.rows.parts import MANIFEST
    from lowland.tables import check_writable
    from lowland.workflow._display import grouped
    from lowland.workflow.placing import stream_placement

    check_writable(folder)
    with resumable(folder / MANIFEST):
        placed = stream_placement(
            *(model, sources, folder, table, settings), domain=domain, force=frame.force
        )
    frame.notes(placed.notes)
    parts = placed.parts
    kept = f", {parts.n_kept} kept by --resume" if parts.n_kept else ""
    frame.result(
        lambda: (
            [
                f"{placed.source}: {grouped(parts.n_rows)} rows placed by {placed.method} from "
                f"{count(placed.columns, 'column')} in {placed.seconds:.2f} s",
                f"  map      {parts.folder} ({count(len(parts.files), 'part')}{kept})",
            ],
            {"model": str(model), **placed.to_dict(), "outputs": {"map": str(parts.folder)}},
        )
    )
