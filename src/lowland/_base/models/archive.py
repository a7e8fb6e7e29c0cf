"""The container of a model file: a zip of ``manifest.json`` and plain ``.npy`` arrays, versioned.

The manifest names the class, its parameters and its fitted state, and declares dtype and shape of
every array. Members are stored uncompressed with fixed dates, so that equal models are equal
files. Reading executes nothing and believes nothing: names, sizes and checksums are checked before
an array is allocated. Errors are fragments without the file's name and the final period, which
:mod:`lowland._base.models.codec` adds.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
import uuid
import zipfile
import zlib
from typing import IO, Any, NamedTuple

import numpy as np

from lowland._base.errors import ModelFileError
from lowland._base.memory import require_memory

# Plain numeric arrays as ``.npy`` bytes, read without evaluating anything.
#
# numpy's own reader parses the header as a Python literal and allocates what it claims. Here the
# header is never parsed: the manifest declares dtype and shape, and the header has to be the one
# that numpy writes for them. Nothing is allocated before the sizes agree.
#
# Measured (``benchmarks/ablations.py npy``) against ``numpy.lib.format.read_array`` with
# ``allow_pickle=False`` and a header limit: the same time for 100 MB. A header that claims 1 GB
# makes numpy allocate 1 GB before it finds no data, and an unfinished string in a header makes it
# raise ``tokenize.TokenError``. Here all of these are a ``ModelFileError`` without any
# allocation.


MAGIC = b"\x93NUMPY\x01\x00"
CHUNK = 1 << 20
# numbers whose size is the same on every machine (no long double), bool and fixed-width text
PLAIN_DTYPE = re.compile(r"\|[biu]1|[<>]([iu][248]|f[248]|c8|c16|U[1-9][0-9]{0,7})")


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this dtype can be stored."""
    return PLAIN_DTYPE.fullmatch(dtype.str) is not None


class Declaration(NamedTuple):
    """Dtype and shape of an array, as the manifest states them."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)

    def to_json(self) -> dict[str, Any]:
        return {"dtype": self.dtype.str, "shape": list(self.shape)}

    @classmethod
    def from_json(cls, entry: Any) -> Declaration:
        """Read a manifest entry; ``ValueError`` when it is anything but such an entry."""
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape"}:
            raise ValueError("an array needs exactly a dtype and a shape")
        dtype, shape = entry["dtype"], entry["shape"]
        if not isinstance(dtype, str) or not PLAIN_DTYPE.fullmatch(dtype):
            raise ValueError(f"dtype {dtype!r} is not a plain number or text")
        if not isinstance(shape, list) or len(shape) > 32:
            raise ValueError("a shape is a list of at most 32 sizes")
        if not all(type(size) is int and 0 <= size < 2**63 for size in shape):
            raise ValueError("a shape holds integers >= 0")
        return cls(np.dtype(dtype), tuple(shape))

    def header_text(self, fortran_order: bool) -> bytes:
        fields = {"descr": self.dtype.str, "fortran_order": fortran_order, "shape": self.shape}
        return f"{{{''.join(f'{key!r}: {value!r}, ' for key, value in fields.items())}}}".encode()


def write_array(file: IO[bytes], array: np.ndarray) -> None:
    """Write ``array`` as npy version 1.0; Fortran order is kept, because it decides last bits."""
    fortran_order = array.flags.f_contiguous and not array.flags.c_contiguous
    text = Declaration(array.dtype, array.shape).header_text(fortran_order)
    # padded so that the data start at a multiple of 64, as the format asks
    text = text.ljust(-(-(len(MAGIC) + 3 + len(text)) // 64) * 64 - len(MAGIC) - 3) + b"\n"
    file.write(MAGIC + len(text).to_bytes(2, "little") + text)
    flat = np.ascontiguousarray(array.T if fortran_order else array).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, CHUNK):
        file.write(flat[start : start + CHUNK].data)


def read_array(file: IO[bytes], size: int, declared: Declaration) -> np.ndarray:
    """Read an array whose npy bytes are ``size`` long; nothing is allocated before all agrees."""
    start = file.read(len(MAGIC) + 2)
    if not start.startswith(MAGIC):
        raise ModelFileError("is not an npy array of format version 1.0")
    header_size = int.from_bytes(start[len(MAGIC) :], "little")
    header = file.read(header_size)
    orders = [order for order in (False, True) if header.rstrip() == declared.header_text(order)]
    if not orders:
        raise ModelFileError("has an npy header that disagrees with the manifest")
    if len(start) + header_size + declared.n_bytes != size:
        raise ModelFileError("has a size that disagrees with its shape")
    flat = np.empty(declared.n_bytes, np.uint8)
    for offset in range(0, flat.size, CHUNK):
        part = flat[offset : offset + CHUNK]
        chunk = file.read(part.size)
        if len(chunk) != part.size:
            raise ModelFileError("is cut short")
        part[:] = np.frombuffer(chunk, np.uint8)
    if file.read(1):
        raise ModelFileError("is longer than its directory entry says")
    check_content(flat, declared.dtype)
    if declared.n_bytes == 0:
        return np.empty(declared.shape, declared.dtype)
    return flat.view(declared.dtype).reshape(declared.shape, order="F" if orders[0] else "C")


def check_content(flat: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Refuse bytes that no numpy operation could have made, and that later ones trip over."""
    if flat.size == 0:
        return
    if dtype.kind == "b" and flat.max() > 1:
        raise ModelFileError("holds a truth value other than 0 and 1")
    if dtype.kind == "U" and flat.view(f"{dtype.str[0]}u4").max() > 0x10FFFF:
        raise ModelFileError("holds text that is not Unicode")


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


FORMAT = "lowland-model"
FORMAT_VERSION = 2
OLDEST_VERSION = 2  # format 1 was never released
KINDS = {
    "format": str,
    "format_version": int,
    "lowland_version": str,
    "class": str,
    "params": dict,
    "state": dict,
    "arrays": dict,
}


def write_archive(path: str, contents: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write the file next to its final place and move it there when it is complete and on disk.

    ``contents`` has the entries of the manifest that identify the model.
    """
    declared = {
        name: Declaration(array.dtype, array.shape).to_json() for name, array in arrays.items()
    }
    entries = {"format": FORMAT, "format_version": FORMAT_VERSION, **contents, "arrays": declared}
    manifest = json.dumps(entries, allow_nan=False, indent=1).encode("ascii")
    if len(manifest) > MAX_MANIFEST:
        raise ModelFileError("its lists and texts are too long; keep them in numeric arrays")
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


def read_archive(path: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest, its outer form checked, and the arrays by member name."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFileError("does not exist; check the name") from None
    if stat.S_ISDIR(status.st_mode):
        raise ModelFileError("is a folder; give the name of a model file")
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
        raise ModelFileError("is not a regular file; give the name of a model file")
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        members = _members(archive, status.st_size)
        if members[MANIFEST].file_size > MAX_MANIFEST:
            raise ModelFileError(f"has a {MANIFEST} of more than {MAX_MANIFEST} bytes")
        manifest = _parse(archive.read(members.pop(MANIFEST)))
        declared = _declarations(manifest["arrays"])
        _check_members(members, declared)
        need = sum(declaration.n_bytes for declaration in declared.values())
        require_memory(need, task=f"{path}: loading it", alternative="free some memory")
        return manifest, {
            name: _read_member(archive, members[name], declaration)
            for name, declaration in declared.items()
        }


def _members(archive: zipfile.ZipFile, file_size: int) -> dict[str, zipfile.ZipInfo]:
    """The directory, checked before anything is read."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
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
    if sum(info.file_size for info in members.values()) > file_size:
        raise ModelFileError("has members that claim more bytes than the file has")
    if MANIFEST not in members:
        raise ModelFileError(f"is not a lowland model file: it has no {MANIFEST}")
    return members


def _check_members(members: dict[str, zipfile.ZipInfo], declared: dict[str, Declaration]) -> None:
    """Refuse members that are not exactly the declared arrays."""
    if missing := sorted(declared.keys() - members.keys()):
        raise ModelFileError(f"lacks the member {missing[0][:80]!r} that its manifest declares")
    if extra := sorted(members.keys() - declared.keys()):
        raise ModelFileError(f"has the member {extra[0]!r} that its manifest does not declare")
    # sizes are checked first, so that a declaration cannot make us refuse or allocate too much
    for name, declaration in declared.items():
        if declaration.n_bytes > members[name].file_size:
            raise ModelFileError(f"has a member, {name!r}, that is smaller than its shape")


def _read_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, declared: Declaration
) -> np.ndarray:
    with archive.open(info) as member:
        try:
            return read_array(member, info.file_size, declared)
        except ModelFileError as error:
            raise ModelFileError(f"has a member, {info.orig_filename!r}, that {error}") from None


def _parse(text: bytes) -> dict[str, Any]:
    """The manifest, its outer structure checked."""
    try:
        manifest = json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"has a manifest that is not valid JSON ({error})") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"is not a lowland model file: its manifest is not {FORMAT!r}")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"has a manifest with the impossible format version {version!r}")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"was made by a newer lowland (format {version}, this one reads up to "
            f"{FORMAT_VERSION}); upgrade lowland"
        )
    if version < OLDEST_VERSION:
        raise ModelFileError(
            f"was made by an unreleased lowland (format {version}, this one reads from "
            f"{OLDEST_VERSION} on); fit the model again"
        )
    if wrong := sorted(manifest.keys() ^ KINDS.keys()):
        raise ModelFileError(f"has a manifest with a missing or unknown entry, {wrong[0][:80]!r}")
    for name, kind in KINDS.items():
        if type(manifest[name]) is not kind:
            raise ModelFileError(f"has a manifest whose entry {name!r} is not a {kind.__name__}")
    return manifest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(entries := dict(pairs)) != len(pairs):
        raise ValueError("an entry occurs twice")
    return entries


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _declarations(entries: dict[str, Any]) -> dict[str, Declaration]:
    declared = {}
    for name, entry in entries.items():
        try:
            declared[name] = Declaration.from_json(entry)
        except ValueError as error:
            raise ModelFileError(
                f"has a manifest that misdeclares {name[:80]!r}: {error}"
            ) from None
    return declared
