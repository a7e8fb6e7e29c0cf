"""The encoding of a text file: UTF-8, UTF-16 or UTF-32 with a mark, or Windows-1252.

Readers of text get UTF-8. A file in another encoding is copied to a temporary file in UTF-8, and a
note says so.
"""

from __future__ import annotations

import codecs
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lowland._core.errors import DataError
from lowland.io.files.kinds import MARKS
from lowland.io.files.opening import File

CHUNK = 1 << 20
FALLBACK = "cp1252"


@contextlib.contextmanager
def utf8(file: File) -> Iterator[tuple[File, list[str]]]:
    """The file, or a copy of it in UTF-8, and a note if it had to be converted."""
    encoding = _encoding(file)
    if encoding == "utf-8":
        yield file, []
        return
    with tempfile.TemporaryDirectory(prefix="lowland-") as folder:
        copy = Path(folder) / f"text{file.suffix}"
        _convert(file, encoding, copy)
        shown = "Windows-1252 (Western European)" if encoding == FALLBACK else encoding.upper()
        note = f"the file is no UTF-8 text and is read as {shown}"
        yield File(copy, file.name), [note]


def _encoding(file: File) -> str:
    with file.path.open("rb") as opened:
        start = opened.read(4)
        for mark, encoding in MARKS:
            if start.startswith(mark):
                return encoding
        opened.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        valid = True
        while chunk := opened.read(CHUNK):
            if b"\0" in chunk:
                raise DataError(
                    f"{file}: holds a null byte, so it is no text in UTF-8; "
                    "save the table as UTF-8 text."
                )
            pending = decoder.getstate()[0]
            if valid and (pending or not chunk.isascii()):  # ASCII is by far the most common
                valid = _decodes(decoder, chunk)
        return "utf-8" if valid and not decoder.getstate()[0] else FALLBACK


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes) -> bool:
    try:
        decoder.decode(chunk)
    except UnicodeDecodeError:
        return False
    return True


def _convert(file: File, encoding: str, copy: Path) -> None:
    """Write a copy in UTF-8; bytes that the encoding does not know are refused with their line."""
    line = 1
    try:
        with (
            file.path.open(encoding=encoding, newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as out,
        ):
            while chunk := text.read(CHUNK):
                if "\0" in chunk:
                    raise DataError(f"{file}: holds a null character; save it as UTF-8 text.")
                line += chunk.count("\n")
                out.write(chunk)
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise _undecodable(file, encoding, line) from error


def _undecodable(file: File, encoding: str, line: int) -> DataError:
    if encoding != FALLBACK:
        return DataError(f"{file}, line {line}: no valid {encoding.upper()}; save it as UTF-8.")
    with file.path.open("rb") as lines:
        for number, content in enumerate(lines, start=1):
            try:
                content.decode(FALLBACK)
            except UnicodeDecodeError as error:
                return DataError(
                    f"{file}, line {number}: not UTF-8 text (byte 0x{content[error.start]:02x} at "
                    f"position {error.start}); save the file as UTF-8."
                )
    return DataError(f"{file}: not UTF-8 text; save the file as UTF-8.")
