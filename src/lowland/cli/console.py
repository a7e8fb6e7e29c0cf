"""The only place that writes to stdout and stderr."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

__all__ = ["Console", "aligned", "complain", "listing", "write"]


def write(text: str, stream: TextIO | None = None) -> None:
    """Write a line; characters that the encoding of the stream lacks are escaped."""
    stream = stream or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def complain(text: str, kind: str = "error") -> None:
    """Write one line on stderr; line breaks and control characters are replaced."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    write(f"lowland: {kind}: {line}", sys.stderr)


@dataclasses.dataclass(frozen=True)
class Console:
    """How much a command prints, and in which form."""

    quiet: bool = False
    as_json: bool = False

    @property
    def shows_progress(self) -> bool:
        """Whether progress bars are shown: on a terminal, unless quiet."""
        return not self.quiet and sys.stderr.isatty()

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


def listing(names: Sequence[str], most: int = 4) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines, headings first; the first column is aligned left, the others right."""
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
