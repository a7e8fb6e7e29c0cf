"""The options that several commands share, each described once."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

MOST_JOBS = 1024  # as in _base/threads.py, whose import takes longer than --help


class Format(enum.StrEnum):
    """How a map is written."""

    CSV = "csv"
    PARQUET = "parquet"


class Engines(enum.StrEnum):
    """What goes through the rows of a table."""

    AUTO = "auto"
    MEMORY = "memory"
    STREAM = "stream"
    DASK = "dask"


def split(names: list[str] | None) -> list[str]:
    """``--columns a,b --columns c`` names three columns; a name with a comma is quoted."""
    import csv
    import io

    from lowland._base.errors import ParameterError

    # A line break separates names as a comma does, unless it is quoted.
    records = [csv.reader(io.StringIO(text, newline="")) for text in names or ()]
    try:
        given = [name for reader in records for record in reader for name in record]
    except csv.Error as error:
        raise ParameterError(f"{names}: not names of columns: {error}.") from error
    return list(dict.fromkeys(name.strip() for name in given if name.strip()))


def table_file(sources: Sequence[str], ending: str) -> Path:
    """The default output of a command that writes one table, in the current folder."""
    from lowland.workflow.outputs import result_stem

    suffix = ".parquet" if sources[0].lower().endswith(".parquet") else ".csv"
    return Path(f"{result_stem(sources)}-{ending}{suffix}")


def found(sources: Sequence[str]) -> list[str]:
    """The inputs; a pattern such as ``runs/*.csv`` that the shell did not replace is replaced."""
    from lowland.tables.several import listed_sources

    return listed_sources(sources)


def as_data(sources: list[str]) -> str | list[str]:
    """What a function reads: one input, or the list of several."""
    return sources[0] if len(sources) == 1 else sources


KINDS = (
    "A bundled data set (digits, iris, ...), a file (.csv, .tsv, .txt, .parquet, .arrow, .ndjson, "
    ".npy, .npz, .mtx, .xlsx, .h5ad, also with .gz), a folder of images or of 10x Genomics, or - "
    "for standard input"
)
Input = Annotated[str, typer.Argument(metavar="INPUT", help=f"{KINDS}.", show_default=False)]
Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help=f"{KINDS}; several files with the same columns are stacked.",
        show_default=False,
    ),
]
Color = Annotated[
    str | None,
    typer.Option(
        "--color",
        metavar="COLUMN",
        help="The column that colors the pictures; default a label of classes.",
        show_default=False,
    ),
]
Pca = Annotated[
    str,
    typer.Option(
        "--pca",
        metavar="N",
        help="Reduce to N columns by PCA first; 'none' does not; auto: 50 for neighbor methods.",
    ),
]
ResultFolder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="Where the results go; default a folder in lowland-out.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", max=MOST_JOBS, help="Threads; default all.", show_default=False
    ),
]
Engine = Annotated[
    Engines,
    typer.Option(
        "--engine",
        help="Read the whole table, or rows in chunks (stream; dask: by workers); auto: stream "
        "if the table does not fit in memory.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="For --engine dask: tcp://HOST:8786, or local:4 for four processes here.",
        show_default=False,
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        metavar="N",
        help="Read rows in chunks and fit the method to N of them; all are placed.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with a run that was stopped while it placed rows."),
]
MapFile = Annotated[
    str,
    typer.Argument(
        metavar="MAP", help="A table with the coordinates of the same rows.", show_default=False
    ),
]
Coordinates = Annotated[
    list[str] | None,
    typer.Option(
        "--coordinates",
        metavar="COLUMNS",
        help="Columns of the map; default what looks like coordinates: x, y; tsne_1, tsne_2; ...",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing results.")]
RawText = Annotated[
    bool,
    typer.Option(
        "--raw-text",
        help="Write text as it is; else text in a CSV file that a spreadsheet would run as a "
        "formula (after =, +, - or @) gets an apostrophe, which reading removes.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
