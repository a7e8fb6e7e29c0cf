"""Standard input and pipes: copied to a file, because readers seek and map what they read."""

from __future__ import annotations

import os
import select
import stat
import time
from pathlib import Path
from typing import IO

from lowland._core.errors import DataError
from lowland._core.memory import available_memory, format_bytes

STDIN = "-"
FOLDERS = ("/dev", "/dev/fd", "/proc/self/fd")
CHUNK = 1 << 20
PATIENCE = 3.0  # seconds until a pipe has to have somebody who writes to it


def is_stream(path: Path) -> bool:
    """Whether a source is standard input, a pipe, or a descriptor such as ``/dev/fd/63``.

    A shell puts such a descriptor in the place of ``<(command)``. Other devices are refused.
    """
    if str(path) == STDIN:
        return not path.exists()
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        if str(path) in ("/dev/stdin", "/dev/fd/0"):
            return True
        raise _endless(path)
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or str(path.parent) in FOLDERS


def _endless(path: Path) -> DataError:
    return DataError(f"{path}: is a device, which has no end; give the name of a file.")


def copy_stream(path: Path, copy: Path) -> None:
    """Copy all that a stream delivers; at most as much as the process may use of memory."""
    most, copied = available_memory(), 0
    with _opened(path) as source, copy.open("wb") as out:
        if os.isatty(source.fileno()):
            raise DataError(f"{path}: is a terminal; give a file, or a command that writes to it.")
        if stat.S_ISCHR(os.fstat(source.fileno()).st_mode) and source.read(1):
            raise _endless(path)
        chunk = _first_byte(path, source) or source.read(CHUNK)
        while chunk:
            copied += len(chunk)
            if copied > most:
                raise DataError(
                    f"{path}: delivers more than the {format_bytes(most)} that the process may "
                    "use; give fewer rows or columns."
                )
            out.write(chunk)
            chunk = source.read(CHUNK)
    if not copied:
        raise DataError(f"{path}: delivers nothing; is there a command that writes to it?")


def _opened(path: Path) -> IO[bytes]:
    if str(path) == STDIN or str(path) in ("/dev/stdin", "/dev/fd/0"):
        return os.fdopen(os.dup(0), "rb", buffering=0)
    # Without O_NONBLOCK, opening a pipe waits until somebody opens it for writing.
    return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb", buffering=0)


def _first_byte(path: Path, source: IO[bytes]) -> bytes:
    """Wait for a writer; refuse a pipe that nobody opens for writing. May read one byte."""
    descriptor = source.fileno()
    if os.name == "nt" or not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return b""
    watch = select.poll()
    watch.register(descriptor, select.POLLIN)
    patience = time.monotonic() + PATIENCE
    os.set_blocking(descriptor, False)
    try:
        while not watch.poll(100):  # neither bytes nor the end of a writer
            try:
                if byte := os.read(descriptor, 1):
                    return byte
            except BlockingIOError:
                continue  # there is a writer, which takes its time
            if time.monotonic() > patience:
                raise DataError(f"{path}: is a pipe that nobody writes to; give a file.")
    finally:
        os.set_blocking(descriptor, True)
    return b""
