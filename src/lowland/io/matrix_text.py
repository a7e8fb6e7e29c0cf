"""The text of a MatrixMarket file, in a form that SciPy's reader can read safely.

The reader (SciPy 1.12 to 1.17) looks for the next line break without minding where the text ends.
It reads beyond the end, and the process may crash, if the last line ends in blanks without a line
break, or if there is a null byte.
"""

from __future__ import annotations

import io
import os
from typing import Any

from lowland._core.errors import DataError
from lowland.io.opening import File

__all__ = ["matrix_text"]

CHUNK = 1 << 20


def matrix_text(file: File) -> Any:
    """The path of the file, or a stream with the missing line break; null bytes are refused."""
    last = b""
    with file.path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            if b"\0" in chunk:
                place = stream.tell() - len(chunk) + chunk.index(b"\0")
                raise DataError(f"{file}: has a null byte at byte {place}, so it is not text.")
            last = chunk[-1:]
    return os.fspath(file.path) if last == b"\n" else Ended(file)


class Ended(io.RawIOBase):
    """The bytes of a file and a line break."""

    def __init__(self, file: File) -> None:
        super().__init__()
        self.bytes = file.path.open("rb")
        self.ended = False

    def read(self, size: int = -1) -> bytes:
        chunk = self.bytes.read(size)
        if chunk or self.ended:
            return chunk
        self.ended = True
        return b"\n"

    def close(self) -> None:
        self.bytes.close()
        super().close()
