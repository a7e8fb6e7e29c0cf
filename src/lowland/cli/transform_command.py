"""``lowland transform``: place new rows in a map that was made before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lowland._base.errors import DataError, ParameterError, count
from lowland._base.interrupts import KEPT
from lowland.cli import options
from lowland.cli.failures import noted
from lowland.cli.options import Frame, argument, framed, valued
from lowland.tables.options import PLACING

if TYPE_CHECKING:
    from lowland.workflow import PlacedParts, PlacedRows

Model = argument("MODEL", "A model.lowland file.", Path)
Output = valued(
    "--output -o FILE", "A .csv or .parquet file, or a folder/ for parts; default INPUT-map.csv."
)
Domain = valued("--domain SET", "For a model of 'lowland align': the set that the rows belong to.")


@framed(
    "force",
    "raw_text",
    table=PLACING,
    settings=("engine", "scheduler", "resume", "n_jobs", "verbose"),
)
def transform_command(
    frame: Frame,
    model: Model,
    sources: options.Inputs,
    output: Output = None,
    domain: Domain = None,
) -> None:
    """Place the rows of a table in a map that was made before.

    If the model has names of columns, they are found by name, in any order. A table
    larger than memory is read in chunks, and its rows are written to a folder of Parquet files.
    """
    from lowland.workflow._display import grouped

    folder = folder_of_parts(frame, output)
    target = Path(output) if output else options.table_file(sources, "map")
    if folder is None:
        placed: PlacedRows | PlacedParts = place_in_memory(frame, model, domain, target)
    else:
        placed = place_parts(frame, model, domain, folder)
    frame.notes(placed.notes)
    found = placed.to_dict()
    rows = f"{grouped(found['rows'])} row{'' if found['rows'] == 1 else 's'}"
    parts, where = found.get("parts"), str(folder or target)
    about = ""
    if parts is not None:
        kept = f", {parts['kept']} kept by --resume" if parts["kept"] else ""
        about = f" ({count(parts['files'], 'part')}{kept})"
    frame.result(
        lambda: (
            [
                f"{found['input']}: {rows} placed by {placed.method} from "
                f"{count(found['columns'], 'column')} in {placed.seconds:.2f} s",
                f"  map      {where}{about}",
            ],
            {"model": str(model), **found, "outputs": {"map": where}},
        )
    )


def place_in_memory(frame: Frame, model: Path, domain: str | None, target: Path) -> PlacedRows:
    """Place the rows, and write them to one file."""
    from lowland.tables import check_suffix, staged_outputs, write_frame
    from lowland.workflow.placing import run_placement

    check_suffix(target)
    frame.check([target], model)
    placed = run_placement(model, frame.data, frame.table, frame.settings, domain)
    with staged_outputs([target], force=frame.force) as [staged]:
        write_frame(placed.map, staged, raw_text=frame.raw_text)
    return placed


def place_parts(frame: Frame, model: Path, domain: str | None, folder: Path) -> PlacedParts:
    """Place rows that are read in chunks, and write them to a folder of files."""
    from lowland._base.rows.parts import MANIFEST
    from lowland.workflow.placing import stream_placement

    frame.check_folder(folder, [])
    with noted(KEPT, folder / MANIFEST):
        told = (model, frame.sources, folder, frame.table, frame.settings)
        return stream_placement(*told, domain=domain, force=frame.force)


def folder_of_parts(frame: Frame, output: str | None) -> Path | None:
    """The folder that parts go to, if rows are read in chunks; None if they are not."""
    from lowland.workflow.making import size_note, why_not_streamed
    from lowland.workflow.outputs import result_stem

    table, settings = frame.table, frame.settings
    asks = output is not None and (output.endswith(("/", os.sep)) or Path(output).is_dir())
    if settings.asks_for_chunks or asks:
        unable = why_not_streamed(frame.data, table, settings)
        if unable is not None:
            option = f"-o {output}" if asks else f"--engine {settings.engine}"
            raise DataError(f"{option}: rows cannot be read in chunks: {unable}.")
    else:
        note = size_note(frame.data, None, table, settings)
        if note is None:
            if settings.resume:
                raise ParameterError(
                    "--resume: is for rows that are read in chunks; add --engine stream."
                )
            return None
        frame.notes([note])
    folder = Path(output) if output else Path(f"{result_stem(frame.sources)}-map")
    if folder.is_file() or folder.suffix.lower() in (".csv", ".parquet"):
        raise ParameterError(
            f"-o {folder}: rows are read in chunks, and written to a folder of Parquet files; "
            "give the name of a folder."
        )
    return folder
