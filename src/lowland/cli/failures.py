"""Every failure ends in one line on stderr and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from lowland._base.errors import LowlandError, StoppedError
from lowland._base.interrupts import Ended, farewell
from lowland.cli.console import STDOUT, complain

BAD_INPUT, DEFECT, CLOSED = 2, 3, 141


class OutputClosed(Exception):  # noqa: N818
    """The reader of our output has closed it, as in ``lowland methods | head -1``."""


@contextlib.contextmanager
def noted(remark: str, begun: Path | None = None) -> Iterator[None]:
    """While the block runs, an interrupt gets a remark, if the file ``begun`` is there by then."""
    try:
        yield
    except Ended as error:
        if begun is None or begun.exists():
            error.add_note(remark)
        raise


def report(error: BaseException) -> int:
    """Write what went wrong in one line and return the exit code."""
    if isinstance(error, OutputClosed | BrokenPipeError | SystemExit):
        _silence_stdout()  # the interpreter would report an error when it flushes on exit
        return CLOSED
    if os.environ.get("LOWLAND_DEBUG"):
        traceback.print_exception(error)
    gone = isinstance(error, KeyboardInterrupt | StoppedError)
    if gone or type(error).__name__ == "Abort":
        return farewell(Ended())
    if isinstance(error, LowlandError):
        complain(str(error))
    elif hasattr(error, "format_message"):  # typer's usage errors, whichever class they are
        complain(_reworded(error.format_message()))
    elif isinstance(error, OSError):
        if error.filename == STDOUT:
            _silence_stdout()
        complain(f"{error.filename}: {error.strerror}." if error.filename else str(error))
    elif _lacks_memory(error):
        complain(
            f"not enough memory: {str(error) or 'an allocation failed'}; use fewer rows or columns,"
            " or a method that 'lowland info' shows to need less."
        )
    else:
        complain(f"{type(error).__name__}: {error} (set LOWLAND_DEBUG=1 for the traceback)")
        return DEFECT
    return BAD_INPUT


def _lacks_memory(error: BaseException) -> bool:
    """Whether memory ran out, in the words of Python, of the loader of libraries or of polars."""
    said = str(error).lower()
    signs = (
        *("failed to map segment", "cannot allocate memory", "can't start new thread"),
        "resource temporarily unavailable",
    )
    return isinstance(error, MemoryError) or any(sign in said for sign in signs)


def _reworded(message: str) -> str:
    """A message of typer without its technical terms."""
    message = message.replace("Value error, ", "").replace("Input should be", "it should be")
    return f"{message} See --help." if message.startswith("Missing argument") else message


def _silence_stdout() -> None:
    with open(os.devnull, "w") as nowhere:
        try:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        except (AttributeError, OSError, ValueError):  # closed, or not a real file
            sys.stdout = sys.__stdout__
