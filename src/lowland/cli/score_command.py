"""``lowland score``: how far a map made by any tool can be believed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lowland.cli import options, study
from lowland.cli.console import Console, count, listing
from lowland.cli.method_options import typed_command
from lowland.cli.preparing import Choices, Ready, make_ready

if TYPE_CHECKING:
    import numpy as np

    from lowland.io import Table

__all__ = ["score_command"]


def score_command(
    ctx: typer.Context,
    source: options.Input,
    map_file: Annotated[
        str,
        typer.Argument(
            metavar="MAP",
            help="A table with the coordinates of the same rows.",
            show_default=False,
        ),
    ],
    coordinates: Annotated[
        list[str] | None,
        typer.Option(
            "--coordinates",
            metavar="COLUMNS",
            help="Columns of MAP; default x, y, z or x1, x2, ..., or all of numbers.",
            show_default=False,
        ),
    ] = None,
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
    columns: options.Columns = None,
    drop: options.Drop = None,
    labels: options.Labels = None,
    one_hot: options.OneHot = None,
    id_column: options.Id = None,
    scale: options.Scale = options.Scaling.AUTO,
    impute: options.Impute = None,
    distances: options.Distances = False,
    part: options.Part = None,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Measure a map that any tool has made: trustworthiness and more, beside PCA and chance.

    Rows are matched by --id if both files have that column, else by their order.
    """
    from lowland._core.errors import DataError
    from lowland.io import check_free

    console = Console(quiet=quiet, as_json=as_json)
    if report is not None:
        if report.suffix.lower() != ".html":
            raise DataError(f"{report}: reports are written to files ending in .html.")
        check_free([report], force=force, sources=[source, map_file])
    choices = Choices(
        source, columns, drop, labels, one_hot, id_column, None, scale, impute, distances, part
    )
    with console.warnings_as_notes():
        ready = make_ready(choices)
        for note in ready.table.notes:
            console.note(note)
        Y, names = read_map(map_file, options.split(coordinates), ready, id_column)
        label = study.first_class(ready.table)
        measures = study.measure(ready, Y, label, jobs)
        if measures.table is None:
            raise DataError(f"{source}: {count(len(Y), 'row')} are too few to measure a map.")
        if report is not None:
            write_report_of(report, ready, map_file, Y, measures, typed_command(ctx), force=force)
    lines = [
        f"{source}: {ready.log[0]}",
        *(f"  {line}" for line in ready.log[1:]),
        f"{map_file}: {listing(names)}",
        *str(measures.table).split("\n"),
        *([f"  report   {report}"] if report is not None else []),
    ]
    console.result(
        lines,
        {
            "command": "score",
            "input": source,
            "map": map_file,
            "coordinates": names,
            "rows": len(Y),
            "preparation": ready.log,
            "dropped_rows": ready.dropped,
            "quality": measures.table.to_dict(),
            "outputs": {} if report is None else {"report": str(report)},
        },
    )


def read_map(
    source: str, asked: list[str], ready: Ready, id_column: str | None
) -> tuple[np.ndarray, list[str]]:
    """Coordinates of the kept rows, in their order, and the names of the columns."""
    import numpy as np

    from lowland._core.errors import DataError
    from lowland.io import read_table

    table = read_table(source, columns=asked or None)
    names = asked or coordinate_columns(table)
    features = table.features
    Y = np.asarray(features if table.feature_names is None else features.select(names))
    rows = matched_rows(source, table, ready, id_column)
    if rows is None:
        expected = ready.rows_read
        if len(Y) == expected and ready.dropped:
            raise DataError(
                f"{source}: {count(len(ready.dropped), 'row')} of the data were dropped, so rows "
                "can be matched only by name; give --id with a column that both files have."
            )
        if len(Y) != ready.table.shape[0]:
            raise DataError(
                f"{source}: has {count(len(Y), 'row')}, but {ready.table.source} has "
                f"{ready.table.shape[0]}; a map has one row for each, in the same order, or give "
                "--id with a column that both files have."
            )
        return Y, names
    return np.ascontiguousarray(Y[rows]), names


def coordinate_columns(table: Table) -> list[str]:
    """x, y, z or x1, x2, ... if there are such; else all columns of numbers but a row number."""
    names = list(table.feature_names or [f"column {i}" for i in range(table.shape[1])])
    for usual in (list("xyz"), [f"x{i}" for i in range(1, len(names) + 1)]):
        found = [name for name in usual if name in names]
        if found and found == usual[: len(found)]:
            return found
    rest = [name for name in names if name != "row"]
    return rest or names


def matched_rows(
    source: str, table: Table, ready: Ready, id_column: str | None
) -> np.ndarray | None:
    """For each kept row of the data, its row in the map; None if rows go by their order."""
    import numpy as np

    from lowland._core.errors import DataError

    if id_column is None:
        return None
    known = [*table.labels.columns, *(table.feature_names or ()), table.ids.name]
    if id_column not in known:
        raise DataError(f"{source}: has no column {id_column!r} to match rows by.")
    there = table.ids if table.ids.name == id_column else table.column(id_column)
    place = {str(name): i for i, name in enumerate(there.to_list())}
    if len(place) < len(there):
        raise DataError(f"{source}: column {id_column!r} names some rows twice.")
    wanted = [str(name) for name in ready.table.ids.to_list()]
    lost = [name for name in wanted if name not in place]
    if lost:
        raise DataError(f"{source}: has no row {lost[0]!r} in column {id_column!r}.")
    return np.array([place[name] for name in wanted])


def write_report_of(
    path: Path,
    ready: Ready,
    map_file: str,
    Y: np.ndarray,
    measures: study.Measures,
    command: str,
    *,
    force: bool,
) -> None:
    """A report on a map whose making we know nothing about."""
    from lowland.cli.summary import summarize
    from lowland.io import staged_outputs
    from lowland.report import write_report

    nothing = dict.fromkeys(("keeps", "use", "avoid", "cost", "reference"), "")
    entry: dict[str, Any] = {
        "name": "map",
        "title": Path(map_file).name,
        "coordinates": Y,
        "seconds": None,
        "peak_bytes": None,
        "stopped_early": False,
        "card": {"summary": "A map that was made elsewhere.", **nothing},
        "parameters": {},
        "seed": None,
        "quality": measures.table.to_dict() if measures.table else {},
        "per_point": measures.per_point,
        "loss_history": None,
        "facts": {},
        "pictures": {},
    }
    color = study.first_class(ready.table)
    with staged_outputs([path], force=force) as [staged]:
        write_report(summarize(ready, [entry], [], command, color), staged)
