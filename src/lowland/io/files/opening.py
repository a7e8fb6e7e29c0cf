"""A file as its reader gets it: as it is, or unpacked if it is compressed."""

from __future__ import annotations

import contextlib
import errno
import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lowland._core.errors import DataError
from lowland._core.memory import format_bytes
from lowland.io.files.budget import HARMLESS, RATIO
from lowland.io.files.kinds import sniffed_suffix
from lowland.io.files.streams import CHUNK, copy_stream, is_stream

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
def opened(path: Path) -> Iterator[File]:
    """The file itself, or an unpacked copy if its first bytes are those of gzip.

    The copy is a temporary file, so that every reader can seek and map it; it is deleted when the
    block ends. What comes from standard input or a pipe is copied, too, and gets the suffix of the
    format that its first bytes tell.
    """
    if not is_stream(path):
        with _opened(path, str(path)) as file:
            yield file
        return
    with tempfile.TemporaryDirectory(prefix="lowland-") as folder:
        copy = Path(folder) / f"stream{''.join(path.suffixes)}"
        copy_stream(path, copy)
        with _opened(copy, str(path)) as file:
            if file.suffix or path.suffix:
                yield file
                return
            told = file.path.with_name(f"told{sniffed_suffix(file.path)}")
            file.path.rename(told)
            yield File(told, str(path))


@contextlib.contextmanager
def _opened(path: Path, name: str) -> Iterator[File]:
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
    with tempfile.TemporaryDirectory(prefix="lowland-") as folder:
        stand_in = Path(folder) / f"file{format_suffix(path)}"
        if packed:
            _unpack(path, stand_in, name)
        else:
            _link(path, stand_in)
        if stand_in.stat().st_size == 0:
            raise DataError(f"{name}: the file is empty once unpacked.")
        yield File(stand_in, name)


def _link(path: Path, link: Path) -> None:
    try:
        link.symlink_to(path.absolute())
    except OSError:  # Windows allows links only to some users
        shutil.copyfile(path, link)


def _unpack(path: Path, copy: Path, name: str) -> None:
    held, unpacked = path.stat().st_size, 0
    try:
        with gzip.open(path) as packed, copy.open("wb") as out:
            while chunk := packed.read(CHUNK):
                unpacked += len(chunk)
                if unpacked > max(HARMLESS, RATIO * held):
                    raise DataError(
                        f"{name}: {format_bytes(held)} unpack to more than "
                        f"{format_bytes(unpacked)}; if you trust the file, unpack it with gunzip."
                    )
                out.write(chunk)
    except EOFError as error:
        raise DataError(f"{name}: the gzip file is cut short.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: the gzip file is damaged: {error}.") from error
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise DataError(
            f"{name}: no room to unpack it in {copy.parent.parent}; unpack it elsewhere, "
            "or set TMPDIR."
        ) from error
