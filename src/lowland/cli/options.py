"""The options that several commands share, each described once."""

from __future__ import annotations

import enum
import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

__all__ = [
    "Color",
    "Force",
    "Format",
    "Input",
    "Inputs",
    "Jobs",
    "Json",
    "Pca",
    "Quiet",
    "RawText",
    "ResultFolder",
    "Scaling",
    "Seed",
    "Table",
    "about_table",
    "as_data",
    "found",
    "split",
    "table_file",
]


Command = Callable[..., Any]
Table = Any  # a TableOptions, whose import takes longer than --help
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


class Categories(enum.StrEnum):
    """What becomes of columns of text."""

    AUTO = "auto"
    ONE_HOT = "one-hot"
    LABEL = "label"
    DROP = "drop"


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


def _split_names(names: list[str] | None) -> tuple[str, ...]:
    return tuple(split(names))


def _value(member: enum.Enum | None) -> Any:
    return None if member is None else member.value


def _orders(given: list[str] | None) -> dict[str, list[str]] | None:
    """``--order size,weight=low,high --order rank=a,b`` is the order of three columns."""
    from lowland._core.errors import ParameterError

    found: dict[str, list[str]] = {}
    for text in given or ():
        names, equals, values = text.partition("=")
        if not names.strip() or not equals or len(split([values])) < 2:
            raise ParameterError(
                f"--order: {text!r} is not allowed; expected a column and its values in their "
                "order, such as 'size=low,medium,high'."
            )
        found |= dict.fromkeys(split([names]), split([values]))
    return found or None


def _cycles(given: list[str] | None) -> dict[str, Any] | None:
    """``--cyclic hour=24,when=week`` are the periods of two columns."""
    from lowland._core.errors import ParameterError

    found: dict[str, Any] = {}
    for text in split(given):
        name, equals, period = (part.strip() for part in text.rpartition("="))
        if not name or not equals or not period:
            raise ParameterError(
                f"--cyclic: {text!r} is not allowed; expected a column and its period, such as "
                "'hour=24' or 'when=week'."
            )
        try:
            found[name] = float(period)
        except ValueError:
            found[name] = period
    return found or None


def _as_it_is(value: Any) -> Any:
    return value


def table_file(sources: Sequence[str], ending: str) -> Path:
    """The default output of a command that writes one table, in the current folder."""
    from lowland.study.outputs import result_stem

    suffix = ".parquet" if sources[0].lower().endswith(".parquet") else ".csv"
    return Path(f"{result_stem(sources)}-{ending}{suffix}")


def found(sources: Sequence[str]) -> list[str]:
    """The inputs; a pattern such as ``runs/*.csv`` that the shell did not replace is replaced."""
    from lowland.io.several import listed_sources

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


class TableOption(NamedTuple):
    """One option about the table, and how its value is read."""

    declared: Any
    default: Any = None
    read: Callable[[Any], Any] = _as_it_is


def _names(option: str, text: str) -> TableOption:
    info = typer.Option(option, metavar="COLUMNS", help=text, show_default=False)
    return TableOption(Annotated[list[str] | None, info], read=_split_names)


def _text(option: str, metavar: str, text: str) -> TableOption:
    info = typer.Option(option, metavar=metavar, help=text, show_default=False)
    return TableOption(Annotated[str | None, info])


def _several(option: str, metavar: str, text: str, read: Callable[[Any], Any]) -> TableOption:
    info = typer.Option(option, metavar=metavar, help=text, show_default=False)
    return TableOption(Annotated[list[str] | None, info], read=read)


def _flag(option: str, text: str) -> TableOption:
    return TableOption(Annotated[bool, typer.Option(option, help=text)], default=False)


# Every option about the table, by the field of TableOptions that it sets.
TABLE = {
    "columns": _names("--columns", "The columns to reduce, comma-separated; default all."),
    "use": _names("--use", "Columns to map although they look like ids, classes or dates."),
    "drop": _names("--drop", "Columns to leave out."),
    "labels": _names(
        "--label", "Columns of numbers that are labels, not features; may be repeated."
    ),
    "label_file": _text(
        "--labels", "FILE", "A table of labels, joined by the row ids, or by order without ids."
    ),
    "categories": TableOption(
        Annotated[
            Categories,
            typer.Option(
                "--categories",
                help="What to do with text of few values; auto: label if there are two columns of "
                "numbers.",
            ),
        ],
        Categories.AUTO,
        _value,
    ),
    "one_hot": _names("--one-hot", "Columns to reduce as 0/1 columns, one per value."),
    "order": _several(
        "--order",
        "ORDER",
        "Text in order: 'size,weight=low,medium,high'; may be repeated.",
        _orders,
    ),
    "cyclic": _several(
        "--cyclic", "PERIODS", "Columns that repeat: 'hour=24', or dates 'when=week'.", _cycles
    ),
    "id_column": _text(
        "--id", "COLUMN", "The column that names the rows; default what looks like an id."
    ),
    "target": _text(
        "--target",
        "COLUMN",
        "The column that the method learns; default a label of classes.",
    ),
    "scale": TableOption(
        Annotated[
            Scaling,
            typer.Option(
                "--scale", help="How to scale columns; auto: standard if units seem to differ."
            ),
        ],
        Scaling.AUTO,
        _value,
    ),
    "missing": TableOption(
        Annotated[
            str,
            typer.Option(
                "--missing",
                "--impute",
                metavar="refuse|drop|mean|median|neighbors",
                help="What to do about missing values: drop their rows, or fill them.",
            ),
        ],
        "refuse",
        lambda given: "drop" if given == "drop-rows" else given,
    ),
    "missing_values": TableOption(
        Annotated[
            list[str] | None,
            typer.Option(
                "--missing-values",
                metavar="VALUES",
                help="Values that mean missing, comma-separated: -999,? or, in one column, age=-1.",
                show_default=False,
            ),
        ],
        read=_split_names,
    ),
    "normalize": TableOption(
        Annotated[
            list[str] | None,
            typer.Option(
                "--normalize",
                metavar="STEPS",
                help="Normalize each row: cpm (to the sum 1e6), log1p, l2 (to the length 1), "
                "comma-separated, in the order given; or none.",
                show_default=False,
            ),
        ],
        read=_split_names,
    ),
    "transpose": _flag("--transpose", "Rows of INPUT are the columns to reduce (genes in rows)."),
    "similarities": _flag(
        "--similarities", "INPUT is a square matrix of similarities, such as correlations."
    ),
    "distances": _flag("--distances", "INPUT is a square matrix of distances."),
    "part": _text(
        "--part",
        "NAME",
        "What to take from a container: an array of an NPZ; a sheet of an Excel file; layers/NAME "
        "or obsm/NAME of an H5AD.",
    ),
    "vector": _text(
        "--vector", "COLUMN", "The column whose lists of numbers are reduced, if there are several."
    ),
}
READING = (
    *("columns", "use", "drop", "labels", "label_file", "id_column", "distances", "part"),
    *("vector", "missing_values", "transpose", "similarities"),
)
SELECTING = ("target", *(name for name in READING if name not in ("distances", "similarities")))


def about_table(names: Sequence[str] = tuple(TABLE)) -> Callable[[Command], Command]:
    """Give a command the options about the table in place of its parameter ``table``.

    The command gets them as one TableOptions. Its signature and annotations, which the program and
    the documentation are made of, show each option.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command)
        hints = typing.get_type_hints(command, include_extras=True)

        @functools.wraps(command)
        def with_options(*args: Any, **keywords: Any) -> Any:
            from lowland.study._spelling import COMMAND_LINE
            from lowland.study.table_options import TableOptions

            given = {name: TABLE[name].read(keywords.pop(name)) for name in names}
            table = TableOptions(**given, spelling=COMMAND_LINE)
            return command(*args, table=table, **keywords)

        shown = []
        for name, parameter in own.parameters.items():
            if name != "table":
                shown.append(parameter.replace(annotation=hints[name]))
                continue
            for option in names:
                declared, default, _ = TABLE[option]
                added = parameter.replace(name=option, annotation=declared, default=default)
                shown.append(added)
        with_options.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
        with_options.__annotations__ = {each.name: each.annotation for each in shown}
        return with_options

    return decorate
