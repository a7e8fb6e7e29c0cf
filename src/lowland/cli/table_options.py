"""The options about the table, declared once for all commands that read one."""

from __future__ import annotations

import enum
import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from lowland.cli.options import split

Command = Callable[..., Any]
Table = Any  # a TableOptions, whose import takes longer than --help


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


def _split_names(names: list[str] | None) -> tuple[str, ...]:
    return tuple(split(names))


def _value(member: enum.Enum | None) -> Any:
    return None if member is None else member.value


def _orders(given: list[str] | None) -> dict[str, list[str]] | None:
    """``--order size,weight=low,high --order rank=a,b`` is the order of three columns."""
    from lowland._base.errors import ParameterError

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
    from lowland._base.errors import ParameterError

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
        "The column that the method learns from; default, if it needs one, a label of classes.",
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
                metavar="refuse|drop|mean|median|neighbors|keep",
                help="What to do about missing values: drop their rows, fill or keep them.",
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
# Options about each of several tables that are aligned.
ALIGNING = (
    *("columns", "use", "drop", "labels", "categories", "one_hot", "order", "cyclic", "id_column"),
    *("scale", "missing", "missing_values", "normalize", "transpose", "part", "vector"),
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
            from lowland._base.errors import COMMAND_LINE
            from lowland.tables.options import TableOptions

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
