"""The options that commands share, each described once."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

__all__ = ["Force", "Format", "Id", "Input", "Jobs", "Json", "Labels", "Quiet", "Seed"]


class Format(enum.StrEnum):
    """How a map is written."""

    CSV = "csv"
    PARQUET = "parquet"


Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A bundled data set (digits, iris, ...), a folder of images, or a file: .csv, .tsv, "
        ".parquet, .arrow, .ndjson, .npy, .npz, .mtx or .h5ad, also with .gz.",
        show_default=False,
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="A column of numbers that is a label, not a feature; may be repeated.",
        show_default=False,
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="The column that names the rows.", show_default=False
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", help="Threads; default all.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing results.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
