"""Standard input and pipes: copied to a file, because readers seek and map what they read."""

from __future__ import annotations

import codecs
import contextlib
import errno
import gzip
import json
import os
import select
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from lowland._base.errors import DataError
from lowland._base.memory import available_memory, format_bytes
from lowland.tables.budget import HARMLESS, RATIO

STDIN = "-"
STANDARD = (STDIN, "/dev/stdin", "/dev/fd/0")
FOLDERS = ("/dev", "/dev/fd", "/proc/self/fd")
CHUNK = 1 << 20
ENDLESS = "is a device, which has no end; give the name of a file."
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
        if str(path) in STANDARD:
            return True
        raise DataError(f"{path}: {ENDLESS}")
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or str(path.parent) in FOLDERS


def copy_stream(path: Path, copy: Path) -> None:
    """Copy all that a stream delivers; at most as much as the process may use of memory."""
    most, copied = available_memory(), 0
    if str(path) in STANDARD:
        descriptor = os.dup(0)
    else:  # without O_NONBLOCK, opening a pipe waits until somebody opens it for writing
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb", buffering=0) as source, copy.open("wb") as out:
        if os.isatty(source.fileno()):
            raise DataError(f"{path}: is a terminal; give a file, or a command that writes to it.")
        if stat.S_ISCHR(os.fstat(source.fileno()).st_mode) and source.read(1):
            raise DataError(f"{path}: {ENDLESS}")
        chunk = _first_byte(path, source) or source.read(CHUNK)
        while chunk:
            copied += len(chunk)
            if copied > most:
                limit = f"the {format_bytes(most)} that the process may use"
                raise DataError(f"{path}: delivers more than {limit}; give fewer rows or columns.")
            out.write(chunk)
            chunk = source.read(CHUNK)
    if not copied:
        raise DataError(f"{path}: delivers nothing; is there a command that writes to it?")


def _first_byte(path: Path, source: IO[bytes]) -> bytes:
    """Wait for a writer; refuse a pipe that no program opens for writing. May read one byte."""
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
                raise DataError(f"{path}: is a pipe to which no program writes; give a file.")
    finally:
        os.set_blocking(descriptor, True)
    return b""


# What a file holds, by its first bytes; its suffix may be wrong or missing.


class Format(NamedTuple):
    """What files of a format are called, how their names end and how the files begin."""

    name: str
    suffixes: tuple[str, ...]
    starts: tuple[bytes, ...] = ()
    in_parts: bool = False  # whether ranges of rows can be read


TEXTS = (".csv", ".dat", ".data", ".tab", ".tsv", ".txt")
DELIMITED = "delimited text"
ARROW = (b"ARROW1", b"\xff\xff\xff\xff", b"FEA1")  # a file, a stream, the old Feather
FORMATS = (
    Format("Parquet", (".parquet", ".pq"), (b"PAR1",), in_parts=True),
    Format("Arrow", (".arrow", ".feather", ".ipc"), ARROW, in_parts=True),
    Format(DELIMITED, TEXTS, in_parts=True),
    Format("NPY", (".npy",), (b"\x93NUMPY",), in_parts=True),
    Format("Zarr", (".zarr",), in_parts=True),
    Format("H5AD", (".h5ad",), (b"\x89HDF",)),
    Format("MatrixMarket", (".mtx",), (b"%%MatrixMarket",)),
    Format("NDJSON", (".ndjson", ".jsonl")),
    Format("NPZ", (".npz",)),
    Format("Excel", (".xlsx", ".xlsm")),
)
KNOWN = {suffix: each for each in FORMATS for suffix in each.suffixes}
# The mark of UTF-32 in little-endian order begins with that of UTF-16.
MARKS = (
    *((mark, "utf-32") for mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
    *((mark, "utf-16") for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)
LOOKED_AT = 4096


def told_suffix(path: Path) -> str:
    """The suffix of the format that the first bytes tell; "" for text and for what is unknown."""
    with path.open("rb") as file:
        start = file.read(LOOKED_AT)
        rest = b"" if b"\n" in start else file.readline(1 << 24)
    for each in FORMATS:
        if each.starts and start.lstrip(b" \r\n").startswith(each.starts):
            return each.suffixes[0]
    if start.startswith(b"PK"):
        try:
            with zipfile.ZipFile(path) as archive:
                is_book = any(name.startswith("xl/") for name in archive.namelist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            is_book = False  # the reader of NPZ reports what is wrong
        return ".xlsx" if is_book else ".npz"
    first = (start + rest).lstrip().split(b"\n")[0]
    try:
        is_object = first.startswith(b"{") and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        is_object = False
    return ".ndjson" if is_object else ""


def sniffed_suffix(path: Path) -> str:
    """The suffix of what a stream delivered; text is CSV, or TSV if its first line has tabs."""
    told = told_suffix(path)
    if told:
        return told
    start = _start(path).lstrip(b" \r\n")
    if start.startswith(b"{"):
        return ".ndjson"  # its reader reports what is wrong
    return ".tsv" if b"\t" in start.split(b"\n")[0] else ".csv"


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LOOKED_AT)


def is_text(path: Path) -> bool:
    """Whether the first bytes of a file are those of a text in an encoding that is read."""
    start = _start(path)
    if any(start.startswith(mark) for mark, _ in MARKS):
        return True
    control = start.translate(None, delete=bytes([*range(32, 256), *b"\t\n\v\f\r"]))
    return bool(start) and not control


def same_kind(one: str, other: str) -> bool:
    """Whether two suffixes name the same format."""
    return one == other or (one in KNOWN and KNOWN[one] is KNOWN.get(other))


# A file as its reader gets it: as it is, or unpacked if it is compressed.


GZIP_MAGIC = b"\x1f\x8b\x08"
PATTERN = set("*?[")  # polars would read a name with one of these as a pattern of names


class File(NamedTuple):
    """The path of the bytes, and the name that the user gave, which messages show."""

    path: Path
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        return format_suffix(self.path)

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def format_suffix(path: Path) -> str:
    """The suffix that names the format: ``.csv`` of ``table.csv`` and of ``table.csv.gz``.

    >>> format_suffix(Path("a.b/table.CSV.gz"))
    '.csv'
    """
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


@contextlib.contextmanager
def temporary(name: str) -> Iterator[Path]:
    """The path of a file that is deleted when the block ends."""
    with tempfile.TemporaryDirectory(prefix="lowland-") as folder:
        yield Path(folder) / name


@contextlib.contextmanager
def opened(path: Path) -> Iterator[File]:
    """The file itself, or an unpacked copy if its first bytes are those of gzip.

    The copy is a temporary file, so that every reader can seek and map it; it is deleted when the
    block ends. What comes from standard input or a pipe is copied, too, and gets the suffix of the
    format that its first bytes tell.
    """
    if not is_stream(path):
        with _open_file(path, str(path)) as file:
            yield file
        return
    with temporary(f"stream{''.join(path.suffixes)}") as copy:
        copy_stream(path, copy)
        with _open_file(copy, str(path)) as file:
            if file.suffix or path.suffix:
                yield file
                return
            told = file.path.with_name(f"told{sniffed_suffix(file.path)}")
            file.path.rename(told)
            yield File(told, str(path))


@contextlib.contextmanager
def _open_file(path: Path, name: str) -> Iterator[File]:
    with path.open("rb") as file:
        start = file.read(len(GZIP_MAGIC))
    if not start:
        raise DataError(f"{name}: the file is empty.")
    packed = start == GZIP_MAGIC
    if path.suffix.lower() == ".gz" and not packed:
        raise DataError(f"{name}: ends in .gz, but is not compressed by gzip.")
    if not packed and not PATTERN & set(str(path.absolute())):
        yield File(path.absolute(), name)
        return
    with temporary(f"file{format_suffix(path)}") as stand_in:
        if packed:
            _unpack(path, stand_in, name)
        else:
            try:
                stand_in.symlink_to(path.absolute())
            except OSError:  # Windows allows links only to some users
                shutil.copyfile(path, stand_in)
        if stand_in.stat().st_size == 0:
            raise DataError(f"{name}: the file is empty once unpacked.")
        yield File(stand_in, name)


def _unpack(path: Path, copy: Path, name: str) -> None:
    held, unpacked = path.stat().st_size, 0
    try:
        with gzip.open(path) as packed, copy.open("wb") as out:
            while chunk := packed.read(CHUNK):
                unpacked += len(chunk)
                if unpacked > max(HARMLESS, RATIO * held):
                    sizes = f"{format_bytes(held)} unpack to more than {format_bytes(unpacked)}"
                    raise DataError(f"{name}: {sizes}; if you trust it, unpack it with gunzip.")
                out.write(chunk)
    except EOFError as error:
        raise DataError(f"{name}: the gzip file is cut short.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: the gzip file is damaged: {error}.") from error
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        what = f"no room to unpack it in {copy.parent.parent}"
        raise DataError(f"{name}: {what}; unpack it elsewhere, or set TMPDIR.") from error
