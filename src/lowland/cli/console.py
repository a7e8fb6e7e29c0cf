"""The only place that writes to stdout and stderr."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import faulthandler
import functools
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from lowland._base import errors

if TYPE_CHECKING:
    from lowland.trust import Trust

STDOUT = "standard output"  # what messages call it
LONGEST = 1500  # characters of a line on stderr; names may have thousands


@contextlib.contextmanager
def _named_stdout() -> Iterator[None]:
    """Failures of the block are those of standard output, unless its reader has closed it."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise OSError(error.errno, error.strerror, STDOUT) from error


def write(text: str) -> None:
    """Write a line on stdout."""
    with _named_stdout():
        if sys.stdout is None:  # closed by the caller, as in ``lowland methods >&-``
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        _write(text, sys.stdout)


def flush() -> None:
    """Pass on what was written on stdout; fail if it cannot be."""
    with _named_stdout():
        if sys.stdout is not None:
            sys.stdout.flush()


def _write(text: str, stream: TextIO) -> None:
    """Write a line; characters that the encoding of the stream lacks are escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def complain(text: str, kind: str = "error") -> None:
    """Write one line on stderr; line breaks and control characters are replaced."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    with contextlib.suppress(OSError, ValueError):  # no reader: only the exit code is left
        if sys.stderr is not None:
            _write(f"lowland: {kind}: {line}", sys.stderr)
            sys.stderr.flush()


@contextlib.contextmanager
def own_stderr() -> Iterator[None]:
    """Only our lines reach stderr; what libraries print there by themselves does not.

    Rust prints the panic of a damaged file, and HDF5 its stack of errors, before Python hears of
    them as an error, which ends in one line. The descriptor 2 leads nowhere while the block runs;
    ``sys.stderr`` leads to where it led before. With ``LOWLAND_DEBUG`` everything is shown.
    """
    is_real = sys.stderr is not None and sys.stderr is sys.__stderr__
    if not is_real or os.environ.get("LOWLAND_DEBUG"):
        yield
        return
    stderr, saved = sys.stderr, os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    stream = open(saved, "w", encoding=stderr.encoding, errors=stderr.errors, buffering=1)  # noqa: SIM115
    try:
        faulthandler.enable(stream)  # a crash would otherwise end without a word
        sys.stderr = stream
        os.dup2(nowhere, 2)
        yield
    finally:
        with contextlib.suppress(OSError):
            stream.flush()
        os.dup2(saved, 2)
        sys.stderr = stderr
        faulthandler.disable()
        with contextlib.suppress(OSError):
            stream.close()
        os.close(nowhere)


def open_descriptors() -> None:
    """Fill closed descriptors below 3, lest a file that is opened later takes the place of one.

    Libraries write to descriptor 2 without asking which file that is.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


@dataclasses.dataclass(frozen=True)
class Console:
    """How much a command prints, and in which form."""

    quiet: bool = False
    as_json: bool = False

    @property
    def shows_progress(self) -> bool:
        """Whether progress bars are shown: on a terminal, unless quiet."""
        return not self.quiet and sys.stderr is not None and sys.stderr.isatty()

    def note(self, text: str) -> None:
        """Write a note for a person on stderr."""
        if not self.quiet:
            complain(text, "note")

    def result(self, lines: Sequence[str], data: Any) -> None:
        """Write the result on stdout: lines for a person, or one JSON value for a program."""
        if self.as_json:
            write(json.dumps(data, indent=2))
        elif not self.quiet:
            write("\n".join(lines))

    @contextlib.contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Write warnings of the library as lines on stderr, without file names and source code."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)  # not once per place in the code
            warnings.showwarning = lambda message, *_, **__: (
                None if self.quiet else complain(str(message), "warning")
            )
            yield


listing = functools.partial(errors.listing, most=4, quote=False)


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines, headings first; the first column is aligned left, the others right."""
    columns = []
    for number, column in enumerate(zip(*cells, strict=True)):
        width = max(map(len, column))
        columns.append([cell.rjust(width) if number else cell.ljust(width) for cell in column])
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def preparation_lines(source: str, log: Sequence[str]) -> list[str]:
    """How a table was prepared, the first line after its name."""
    return [f"{source}: {log[0]}", *(f"  {line}" for line in log[1:])]


# Where a map can be believed, as lines for a terminal.


def beside(row: Any) -> str:
    """A measure, with that of a PCA map and of a random one."""
    others = [("PCA", row.pca), ("chance", row.random)]
    told = ", ".join(f"{who} {value:.2f}" for who, value in others if value is not None)
    return f"{row.value:.3f} ({told})"


def file_lines(written: Mapping[str, Any]) -> list[str]:
    """The files that were written, by kind."""
    width = max([WIDTH, *map(len, written)])
    return [f"  {kind:<{width}} {path}" for kind, path in written.items()]


MARKS = {"fine": "ok", "caution": "caution", "serious": "serious"}
WIDTH = 8


def trust_lines(found: Trust | None, *, reasons: bool = False) -> list[str]:
    """One line for each question, marked by how serious the answer is.

    With ``reasons``, one more states why stability or chance are not known.
    """
    if found is None:
        return []
    lines = [f"  {MARKS[each.level]:<{WIDTH}} {each.text}" for each in found.sentences]
    if reasons and found.reasons:
        parts = list(found.reasons)
        why = list(dict.fromkeys(found.reasons.values()))
        verb = "are" if len(parts) > 1 else "is"
        text = f"{' and '.join(parts)} {verb} not known: {'; '.join(why)}"
        lines.append(f"  {'-':<{WIDTH}} {text[0].upper()}{text[1:]}.")
    return lines
