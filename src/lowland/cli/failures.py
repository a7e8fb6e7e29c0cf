"""Every failure ends in one line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
import traceback

from lowland._core.errors import LowlandError, StoppedError
from lowland.cli.console import complain

__all__ = ["Interrupted", "OutputClosed", "report"]

BAD_INPUT, DEFECT, INTERRUPTED, CLOSED = 2, 3, 130, 141


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C, as an ordinary exception, because typer handles KeyboardInterrupt itself."""


class OutputClosed(Exception):  # noqa: N818
    """The reader of our output has closed it, as in ``lowland methods | head -1``."""


def report(error: BaseException) -> int:
    """Write what went wrong in one line and return the exit code."""
    if isinstance(error, OutputClosed | BrokenPipeError | SystemExit):
        _silence_stdout()  # the interpreter would report an error when it flushes on exit
        return CLOSED
    if os.environ.get("LOWLAND_DEBUG"):
        traceback.print_exception(error)
    gone = (Interrupted, KeyboardInterrupt, StoppedError)
    if isinstance(error, gone) or type(error).__name__ == "Abort":
        complain("interrupted; nothing was written")
        return INTERRUPTED
    if isinstance(error, LowlandError):
        complain(str(error))
    elif hasattr(error, "format_message"):  # typer's usage errors, whichever class they are
        complain(_reworded(error.format_message()))
    elif isinstance(error, OSError):
        complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    elif isinstance(error, MemoryError):
        complain(f"not enough memory: {error}")
    else:
        complain(f"{type(error).__name__}: {error} (set LOWLAND_DEBUG=1 for the traceback)")
        return DEFECT
    return BAD_INPUT


def _reworded(message: str) -> str:
    """A message of typer without its technical terms."""
    message = message.replace("Value error, ", "").replace("Input should be", "it should be")
    return f"{message} See --help." if message.startswith("Missing argument") else message


def _silence_stdout() -> None:
    with open(os.devnull, "w") as nowhere:
        try:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        except (OSError, ValueError):  # not a real file, as under a test
            sys.stdout = sys.__stdout__
