"""``lowland transform``: place new rows in a map made before."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lowland.cli import options
from lowland.cli.console import Console, count, listing
from lowland.cli.map_command import result_stem

if TYPE_CHECKING:
    from lowland.io import Table

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
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Place the rows of a table in a map made before.

    Where the model knows the names of its columns they are found by name, in any order.
    """
    import lowland
    from lowland._core import registry
    from lowland._core.chain import Chain
    from lowland.io import check_free, check_suffix, map_frame, staged_outputs, write_frame

    console = Console(quiet=quiet, as_json=as_json)
    output = output or default_output(source)
    check_suffix(output)
    check_free([output], force=force, sources=[model, source])

    with console.warnings_as_notes():
        estimator = lowland.load(model).set_params(n_jobs=jobs, verbose=console.shows_progress)
        method = type(estimator.last if isinstance(estimator, Chain) else estimator).__name__
        table = read_for(estimator, source, options.split(labels), id_column, part)
        for note in notes_on(table):
            console.note(note)
        start = time.perf_counter()
        Y = estimator.transform(table.features)
        seconds = time.perf_counter() - start
        with staged_outputs([output], force=force) as [staged]:
            write_frame(map_frame(table, Y), staged)

    rows, columns = table.shape
    console.result(
        [
            f"{source}: {count(rows, 'row')} placed by {method} "
            f"from {count(columns, 'column')} in {seconds:.2f} s",
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
            "method": registry.snake_case(method),
            "dimensions": Y.shape[1],
            "seconds": seconds,
            "outputs": {"map": str(output)},
            "notes": notes_on(table),
        },
    )


def default_output(source: str) -> Path:
    """A file in the current folder, named and typed like the input."""
    suffix = ".parquet" if source.lower().endswith(".parquet") else ".csv"
    return Path(f"{result_stem(source)}-map{suffix}")


def read_for(
    model: Any, source: str, labels: list[str], id_column: str | None, part: str | None
) -> Table:
    """The table with the model's columns as features, or one with as many columns."""
    from lowland._core.chain import Chain
    from lowland._core.errors import DataError
    from lowland.io import read_table

    names = getattr(model, "feature_names_in_", None)
    first = model.steps[0] if isinstance(model, Chain) else model
    fills = getattr(first, "fill_", None) is not None
    misses = getattr(first, "may_miss", False) and getattr(first, "metric", "") == "precomputed"
    how: dict[str, Any] = {"id_column": id_column, "part": part, "allow_missing": fills or misses}
    if names is not None:
        texts = list(dict.fromkeys(getattr(first, "level_columns_", ())))
        numbers = [name for name in names if name not in texts]
        table = read_table(source, columns=numbers, labels=labels, **how)
        return _with_texts(table, texts, list(names)) if texts else table
    table = read_table(source, labels=labels, **how)
    if table.shape[1] != model.n_features_in_:
        raise DataError(
            f"{source}: has {count(table.shape[1], 'column')} of numbers, but the model was made "
            f"from {model.n_features_in_}; --label takes a column out."
        )
    return table.without_names()


def _with_texts(table: Table, texts: list[str], names: list[str]) -> Table:
    """The table with the columns of text that the model turns into numbers among its features."""
    import polars as pl

    from lowland._core.errors import DataError
    from lowland._core.wording import listing

    missing = [name for name in texts if name not in table.labels.columns]
    if missing:
        raise DataError(f"{table.source}: needed columns are missing: {listing(missing)}.")
    columns = table.labels.select(pl.col(texts).cast(pl.String))
    return dataclasses.replace(table, features=table.features.hstack(columns).select(names))


def notes_on(table: Table) -> list[str]:
    """What happened to columns that a person may miss."""
    notes = list(table.notes)
    if table.unused:
        notes.append(f"columns that the model does not know are left out: {listing(table.unused)}")
    return notes
