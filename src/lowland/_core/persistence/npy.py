"""Plain numeric arrays as ``.npy`` bytes, read without evaluating anything.

numpy's own reader parses the header as a Python literal and allocates what it claims. Here the
header is never parsed: the manifest declares dtype and shape, and the header has to be the one that
numpy writes for them. Nothing is allocated before the sizes agree.

Measured (``benchmarks/ablations.py npy``) against ``numpy.lib.format.read_array`` with
``allow_pickle=False`` and a header limit: the same time for 100 MB. A header that claims 1 GB makes
numpy allocate 1 GB before it finds no data, and an unfinished string in a header makes it raise
``tokenize.TokenError``. Here all of these are a ``ModelFileError`` without any allocation.
"""

from __future__ import annotations

import math
import re
from typing import IO, Any, NamedTuple

import numpy as np

from lowland._core.errors import ModelFileError

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
