"""The options that several commands share, each described once."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lowland.study.preparing import TableOptions

__all__ = [
    "Color",
    "Columns",
    "Distances",
    "Drop",
    "Force",
    "Format",
    "Id",
    "Impute",
    "Imputing",
    "Input",
    "Jobs",
    "Json",
    "Labels",
    "OneHot",
    "Part",
    "Pca",
    "Quiet",
    "RawText",
    "ResultFolder",
    "Scale",
    "Scaling",
    "Seed",
    "Target",
    "split",
    "table_file",
    "table_options",
]


MOST_JOBS = 1024  # as in _core/threads.py, whose import takes longer than --help


class Format(enum.StrEnum):
    """How a map is written."""

    CSV = "csv"
    PARQUET = "parquet"


class Scaling(enum.StrEnum):
    """How columns are scaled."""

    AUTO = "auto"
    NONE = "none"
    STANDARD = "standard"
    ROBUST = "robust"


class Imputing(enum.StrEnum):
    """What to do about missing values."""

    MEAN = "mean"
    MEDIAN = "median"
    DROP_ROWS = "drop-rows"


def split(names: list[str] | None) -> list[str]:
    """``--columns a,b --columns c`` names three columns; a name with a comma is quoted."""
    import csv
    import io

    from lowland._core.errors import ParameterError

    # A line break separates names as a comma does, unless it is quoted.
    records = [csv.reader(io.StringIO(text, newline="")) for text in names or ()]
    try:
        given = [name for reader in records for record in reader for name in record]
    except csv.Error as error:
        raise ParameterError(f"{names}: not names of columns: {error}.") from error
    return list(dict.fromkeys(name.strip() for name in given if name.strip()))


def table_options(
    columns: list[str] | None = None,
    drop: list[str] | None = None,
    labels: list[str] | None = None,
    one_hot: list[str] | None = None,
    id_column: str | None = None,
    target: str | None = None,
    scale: Scaling = Scaling.AUTO,
    impute: Imputing | None = None,
    distances: bool = False,
    part: str | None = None,
) -> TableOptions:
    """Options about the table as a run takes them."""
    from lowland.study._spelling import COMMAND_LINE
    from lowland.study.preparing import TableOptions

    return TableOptions(
        columns=tuple(split(columns)),
        drop=tuple(split(drop)),
        labels=tuple(split(labels)),
        one_hot=tuple(split(one_hot)),
        id_column=id_column,
        target=target,
        scale=scale.value,
        impute=None if impute is None else impute.value,
        distances=distances,
        part=part,
        spelling=COMMAND_LINE,
    )


def table_file(source: str, ending: str) -> Path:
    """The default output of a command that writes one table, in the current folder."""
    from lowland.study.outputs import result_stem

    suffix = ".parquet" if source.lower().endswith(".parquet") else ".csv"
    return Path(f"{result_stem(source)}-{ending}{suffix}")


def _names(option: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(option, metavar="COLUMNS", help=text, show_default=False)


Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A bundled data set (digits, iris, ...), a file (.csv, .tsv, .parquet, .arrow, "
        ".ndjson, .npy, .npz, .mtx, .h5ad, also with .gz) or a folder of images.",
        show_default=False,
    ),
]
Color = Annotated[
    str | None,
    typer.Option(
        "--color",
        metavar="COLUMN",
        help="The column that colors the pictures; default the first label.",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None, _names("--columns", "The columns to reduce, comma-separated; default all.")
]
Drop = Annotated[list[str] | None, _names("--drop", "Columns to leave out.")]
Labels = Annotated[
    list[str] | None,
    _names("--label", "Columns of numbers that are labels, not features; may be repeated."),
]
OneHot = Annotated[
    list[str] | None,
    _names("--one-hot", "Columns of text to reduce as 0/1 columns, one per value."),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="The column that names the rows.", show_default=False
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="The classes that a supervised method learns; default the first label.",
        show_default=False,
    ),
]
Scale = Annotated[
    Scaling,
    typer.Option("--scale", help="How to scale columns; auto: standard if units seem to differ."),
]
Impute = Annotated[
    Imputing | None,
    typer.Option(
        "--impute", help="What missing values become; default: refuse them.", show_default=False
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
Distances = Annotated[
    bool, typer.Option("--distances", help="INPUT is a square matrix of distances.")
]
Part = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="NAME",
        help="What to take from a container: an array of an NPZ; layers/NAME or obsm/NAME of an "
        "H5AD.",
        show_default=False,
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
