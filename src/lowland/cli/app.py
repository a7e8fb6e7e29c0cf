"""The program: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lowland._base.errors import MemoryLimitError
from lowland._base.interrupts import Ended
from lowland._base.memory import format_bytes, left_for_process
from lowland.cli import failures
from lowland.cli.align_command import AlignCommand, align_command
from lowland.cli.compare_command import compare_command
from lowland.cli.console import flush, open_descriptors, own_stderr, write
from lowland.cli.foreign_commands import score_command, trust_command
from lowland.cli.info_command import info_command
from lowland.cli.map_command import map_command
from lowland.cli.method_options import HelpedCommand, MethodCommand
from lowland.cli.methods_command import methods_command
from lowland.cli.select_command import SelectCommand, select_command
from lowland.cli.transform_command import transform_command

# What the libraries cannot work with: limits of the process, and the environment.


# Address space of a run on two cores: 1.7 GB, measured. Each thread has a stack and an arena.
LIBRARIES, LIBRARIES_PER_CORE = 1_500_000_000, 150_000_000


def check_limits(arguments: Sequence[str]) -> None:
    """Refuse a limit (``ulimit -v``) so low that the libraries could not even be loaded.

    They end the process where they cannot get memory, without an error that could be reported. An
    instruction set that the processor lacks is refused before anything is read, too.
    """
    if {"--help", "--version"} & {*arguments} or arguments[:1] in ([], ["methods"]):
        return
    need = LIBRARIES + LIBRARIES_PER_CORE * (os.cpu_count() or 1)
    left = left_for_process().get("RLIMIT_AS", need)
    if left < need:
        raise MemoryLimitError(
            f"the limit of memory leaves {format_bytes(left)} to the process, and the libraries "
            f"need {format_bytes(need)} of address space; raise it with 'ulimit -v'."
        )
    from lowland._base.threads import check_instruction_set

    check_instruction_set()


class Program(TyperGroup):
    """A group that passes an interrupt or a closed pipe on to :func:`main`."""

    def invoke(self, ctx: typer.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:  # polars raises it by itself
            raise Ended from error
        except BrokenPipeError as error:
            raise failures.OutputClosed from error


app = typer.Typer(cls=Program, add_completion=False, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        from lowland import __version__

        write(f"lowland {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def program(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Maps of high-dimensional data."""
    if ctx.invoked_subcommand is None:
        write(ctx.get_help())


COMMANDS = (
    (map_command, MethodCommand, "Reduce a table to a map."),
    (transform_command, HelpedCommand, "Place new rows in a map."),
    (compare_command, HelpedCommand, "Map a table by several methods."),
    (align_command, AlignCommand, "Put several tables into one map."),
    (score_command, HelpedCommand, "Measure a map made by any tool."),
    (trust_command, HelpedCommand, "Judge where a map can be believed."),
    (info_command, HelpedCommand, "Describe a table."),
    (select_command, SelectCommand, "Keep the columns that matter."),
    (methods_command, HelpedCommand, "List the methods, or show one."),
)
for command, kind, about in COMMANDS:
    name = command.__name__.removesuffix("_command")
    app.command(name, cls=kind, short_help=about)(command)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; only an interrupt is left to the caller."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    open_descriptors()
    with own_stderr():
        try:
            check_limits(arguments)
            command = typer.main.get_command(app)
            code = command.main(args=arguments, prog_name="lowland", standalone_mode=False)
            flush()
        except Ended:
            raise
        except BaseException as error:  # also the panics of Rust, which are no Exception
            return failures.report(error)
        return code if isinstance(code, int) else 0
