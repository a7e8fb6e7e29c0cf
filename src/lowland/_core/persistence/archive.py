"""The container of a model file: a zip of a manifest and stored ``.npy`` members.

Errors here and in the modules below are fragments without the file's name and the final period;
:mod:`lowland._core.persistence.model_file` makes them one sentence.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import uuid
import zipfile
import zlib
from typing import IO

import numpy as np

from lowland._core.errors import ModelFileError
from lowland._core.memory import require_memory
from lowland._core.persistence.npy import Declaration, read_array, write_array

# what zipfile is known to raise for damaged files, besides OSError and ValueError
FAILURES = (
    EOFError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
)
MANIFEST = "manifest.json"
MAX_MANIFEST = 16 << 20  # bytes; large content belongs in arrays
MEMBER_NAME = re.compile(r"arrays/[A-Za-z0-9_.-]+\.npy")


def write_archive(path: str, manifest: bytes, arrays: dict[str, np.ndarray]) -> None:
    """Write the file beside its place and move it there when it is complete and on disk."""
    target = os.path.realpath(path)  # a symbolic link stays one
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise ModelFileError(f"the folder {folder} does not exist; create it first")
    if os.path.isdir(target):
        raise ModelFileError("it is a folder; give the name of a file")
    temporary = os.path.join(folder, f".lowland-{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            _write_members(file, manifest, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:  # also Ctrl-C: never leave half a file behind
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def _write_members(file: IO[bytes], manifest: bytes, arrays: dict[str, np.ndarray]) -> None:
    def entry(name: str, size: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name)  # dated 1980-01-01, stored: equal models give equal bytes
        info.create_system = 3  # also on Windows
        info.external_attr = 0o644 << 16
        info.file_size = size  # lets zipfile use its large format when it must
        return info

    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(entry(MANIFEST, len(manifest)), manifest)
        for name, array in arrays.items():
            with archive.open(entry(name, array.nbytes), "w") as member:
                write_array(member, array)


class Archive:
    """A model file open for reading, its directory checked before anything is read."""

    def __init__(self, path: str) -> None:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            raise ModelFileError("does not exist; check the name") from None
        if stat.S_ISDIR(status.st_mode):
            raise ModelFileError("is a folder; give the name of a model file")
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
            raise ModelFileError("is not a regular file; give the name of a model file")
        self.path = path
        self.file_size = status.st_size
        self.file = open(path, "rb")  # noqa: SIM115
        try:
            self.zip = zipfile.ZipFile(self.file)
            self.members = self._check_directory()
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *details: object) -> None:
        self.zip.close()
        self.file.close()

    def _check_directory(self) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in self.zip.infolist():
            name = info.orig_filename  # zipfile cuts names at a null byte and turns backslashes
            if name != MANIFEST and not MEMBER_NAME.fullmatch(name):
                raise ModelFileError(f"has a member with the forbidden name {name[:80]!r}")
            if name in members:
                raise ModelFileError(f"has two members named {name!r}")
            if info.flag_bits & 1:
                raise ModelFileError(f"has an encrypted member, {name!r}")
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise ModelFileError(f"has a compressed member, {name!r}")
            members[name] = info
        if sum(info.file_size for info in members.values()) > self.file_size:
            raise ModelFileError("has members that claim more bytes than the file has")
        if MANIFEST not in members:
            raise ModelFileError(f"is not a lowland model file: it has no {MANIFEST}")
        return members

    def read_manifest(self) -> bytes:
        if self.members[MANIFEST].file_size > MAX_MANIFEST:
            raise ModelFileError(f"has a {MANIFEST} of more than {MAX_MANIFEST} bytes")
        return self.zip.read(self.members[MANIFEST])

    def read_arrays(self, declared: dict[str, Declaration]) -> dict[str, np.ndarray]:
        """All arrays by member name; the members have to be exactly the declared ones."""
        stored = self.members.keys() - {MANIFEST}
        if missing := sorted(declared.keys() - stored):
            raise ModelFileError(f"lacks the member {missing[0][:80]!r} that its manifest declares")
        if extra := sorted(stored - declared.keys()):
            raise ModelFileError(f"has the member {extra[0]!r} that its manifest does not declare")
        # sizes are checked first, so that a declaration cannot make us refuse or allocate too much
        for name, declaration in declared.items():
            if declaration.n_bytes > self.members[name].file_size:
                raise ModelFileError(f"has a member, {name!r}, that is smaller than its shape")
        need = sum(declaration.n_bytes for declaration in declared.values())
        require_memory(need, task=f"{self.path}: loading it", alternative="free some memory")
        return {name: self._read_array(name, declared[name]) for name in declared}

    def _read_array(self, name: str, declaration: Declaration) -> np.ndarray:
        info = self.members[name]
        with self.zip.open(info) as member:
            try:
                return read_array(member, info.file_size, declaration)
            except ModelFileError as error:
                raise ModelFileError(f"has a member, {name!r}, that {error}") from None
