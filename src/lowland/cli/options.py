"""What all commands share: their options, what they print, and how they end.

The options about a table and a run come from their declarations; only those about the files and the
output of a command are written here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lowland._base.constraints import Boolean, Choice, Names, read_value
from lowland._base.errors import COMMAND_LINE
from lowland._base.interrupts import WRITTEN
from lowland._base.options import Option, Options
from lowland.cli.console import Console
from lowland.cli.failures import noted
from lowland.cli.method_options import KEY, MOST_OPTIONS, TYPED, show_all
from lowland.tables.options import TableOptions
from lowland.workflow.options import Matching, RunOptions, RunSettings

STOPPED = 1  # exit code: a partial result was written

KINDS = (
    "A bundled data set (digits, iris, ...), a file (.csv, .tsv, .txt, .parquet, .arrow, .ndjson, "
    ".npy, .npz, .mtx, .xlsx, .h5ad, also with .gz), a folder of images or of 10x Genomics, or - "
    "for standard input"
)


def argument(metavar: str, text: str, kind: Any = str) -> Any:
    """An argument that has to be given."""
    info = typer.Argument(metavar=metavar, help=text, show_default=False)
    return Annotated[kind, info]


def valued(
    usage: str, text: str, kind: Any = str, group: str = "", default: bool | str = False
) -> Any:
    """An option that may be left out; ``usage`` has its spellings and the name of its value.

    ``default`` states whether the help shows the default, or the text that it shows as the default.
    """
    *spellings, metavar = usage.split()
    shown = {"metavar": metavar, "show_default": default, "rich_help_panel": group}
    return Annotated[kind | None, typer.Option(*spellings, help=text, **shown)]


def flag(*spellings: str, text: str, group: str = "", **more: Any) -> Any:
    """An option without a value."""
    return Annotated[bool, typer.Option(*spellings, help=text, rich_help_panel=group, **more)]


Input = argument("INPUT", f"{KINDS}.")
Inputs = argument("INPUT", f"{KINDS}; several files with the same columns are stacked.", list[str])
ResultFolder = valued(
    "--output -o FOLDER", "Where the results go; default a folder in lowland-out.", Path
)
Format = valued("--format csv|parquet", "Format of the map; default as the input.", group="output")


# Options of the frame itself.
FRAME = {
    "force": flag("--force", text="Overwrite existing results."),
    "raw_text": flag(
        "--raw-text",
        text="Write text as it is; else text in a CSV file that a spreadsheet would run as a "
        "formula (after =, +, - or @) gets an apostrophe, which reading removes.",
        group="output",
    ),
    "quiet": flag("--quiet", "-q", text="Print errors only.", group="output"),
    "as_json": flag("--json", text="Print the result as JSON.", group="output"),
}
HELP_ALL = flag("--help-all", text="Show all options.", is_eager=True, callback=show_all)


@dataclasses.dataclass(frozen=True)
class Frame:
    """The facts that a command has about its call, and how it prints and ends."""

    ctx: typer.Context
    console: Console
    sources: list[str]
    table: TableOptions
    settings: RunSettings
    matching: Matching = dataclasses.field(default_factory=Matching)
    force: bool = False
    raw_text: bool = False

    @property
    def typed(self) -> str:
        """The command as it was typed."""
        return self.ctx.meta[TYPED]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the method that were typed."""
        return dict(self.ctx.meta.get(KEY, {}))

    @property
    def data(self) -> str | list[str]:
        """What a function reads: one input, or the list of several."""
        return self.sources[0] if len(self.sources) == 1 else self.sources

    @property
    def run(self) -> RunOptions:
        """Everything about a run except the data, the method and its parameters."""
        return self.settings.of(self.table, self.typed, self.console.note)

    def check(self, files: Sequence[Path], *others: str | Path) -> None:
        """Refuse to write files that exist or that are the inputs or others that are read."""
        from lowland.tables import check_free

        check_free(files, force=self.force, sources=[*others, *self.sources])

    def check_folder(self, folder: Path, files: Sequence[Path]) -> None:
        """The same for the files of a folder, which has to be writable."""
        from lowland.tables import check_writable

        self.check(files)
        check_writable(folder)

    def notes(self, notes: Iterable[str]) -> None:
        """Write notes for a person."""
        for note in notes:
            self.console.note(note)

    def result(
        self, make: Callable[[], tuple[Sequence[str], dict[str, Any]]], *, written: bool = True
    ) -> None:
        """Print the result, as lines for a person or as values for a program.

        It is made here, so that an interrupt meanwhile says that the files are in place.
        """
        with noted(WRITTEN) if written else contextlib.nullcontext():
            lines, found = make()
            self.console.result(lines, {"command": self.ctx.info_name, **found})

    def end(self, result: Any, files: Any, lines: Callable[[Any, Any], Sequence[str]]) -> int:
        """Print the result of a run and its files; the exit code."""
        self.result(lambda: (lines(result, files), {**result.to_dict(), "outputs": files.named()}))
        return STOPPED if result.stopped_early or result.not_made else 0


# The options that a frame holds, by the class that declares them.
HOLDERS: dict[str, type[Options]] = {
    "matching": Matching,
    "table": TableOptions,
    "settings": RunSettings,
}


def framed(
    *own: str, **holders: Sequence[str]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a command of a function of a frame.

    ``own`` are options of the frame besides those of every command. ``table=names`` gives the
    command the declared options of these names; the frame gets them as one object. Patterns such as
    ``runs/*.csv``, which the shell did not replace, become ``sources``.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        hints = typing.get_type_hints(command, include_extras=True)

        @functools.wraps(command)
        def with_frame(ctx: typer.Context, **typed: Any) -> Any:
            typed.pop("help_all", None)
            console = Console(typed.pop("quiet"), typed.pop("as_json"))
            known = {name: typed.pop(name) for name in own}
            for holder, names in holders.items():
                texts = {name: typed.pop(name) for name in names if name in typed}
                shows = {"verbose": console.shows_progress} if "verbose" in names else {}
                known[holder] = HOLDERS[holder].from_texts(texts, **shows)
            if "sources" in typed:
                from lowland.tables.several import listed_sources

                typed["sources"] = listed_sources(typed["sources"])
            frame = Frame(ctx, console, typed.get("sources", []), **known)
            with console.warnings_as_notes():
                return command(frame, **typed)

        shown = {"ctx": (typer.Context, inspect.Parameter.empty)}
        for name, parameter in list(inspect.signature(command).parameters.items())[1:]:
            shown[name] = hints[name], parameter.default
        for holder, names in holders.items():
            for declared in map(HOLDERS[holder].declared().get, names):
                if declared is not None and declared.group is not None:
                    shown[declared.name] = typer_option(declared)
        shown |= {name: (FRAME[name], False) for name in (*own, "quiet", "as_json")}
        if len(shown) > MOST_OPTIONS:
            shown["help_all"] = HELP_ALL, False
        with_frame.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
                )
                for name, (hint, default) in shown.items()
            ]
        )
        with_frame.__annotations__ = {name: hint for name, (hint, _) in shown.items()}
        return with_frame

    return decorate


def typer_option(declared: Option) -> tuple[Any, Any]:
    """The type and the default of a declared option, as typer wants them; values are read later."""
    spelling, default = COMMAND_LINE.option(declared.name), declared.default
    if isinstance(declared.constraint, Boolean):
        negated = f"/--no-{spelling[2:]}" if default else ""
        return flag(f"{spelling}{negated}", text=declared.help, group=declared.group or ""), default
    kind: Any = list[str] if isinstance(declared.constraint, Names) else str
    shown = kind is str and default is not None
    usage = " ".join([spelling, *declared.also, declared.metavar])
    hint = valued(usage, declared.help, kind, declared.group or "", shown)
    return hint, str(default) if shown else None


def table_file(sources: Sequence[str], ending: str) -> Path:
    """The default output of a command that writes one table, in the current folder."""
    from lowland.workflow.outputs import result_stem

    suffix = ".parquet" if sources[0].lower().endswith(".parquet") else ".csv"
    return Path(f"{result_stem(sources)}-{ending}{suffix}")


def map_format(asked: str | None, source: str) -> str:
    """The format of a map: as asked for, or as its input is."""
    if asked is None:
        return "parquet" if Path(source).suffix.lower() == ".parquet" else "csv"
    return read_value("--format", Choice("csv", "parquet"), asked)
