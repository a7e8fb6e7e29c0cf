"""Arrays on disk whose rows can be reached by their number: NPY, and Zarr with the package zarr."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland.distributed.files.leaves import Look, SourceFile, stamp_of, unread
from lowland.io.contents import unreadable
from lowland.io.formats.arrays import BROKEN


class NpyReader(NamedTuple):
    """Reads ranges of rows of an NPY file. They are read, not mapped: a mapped file that is cut
    short while it is in use ends the process.
    """

    shape: tuple[int, int]
    dtype: str
    offset: int  # of the first number in the file
    by_columns: bool = False  # whether it is stored column after column (Fortran order)

    @property
    def together(self) -> bool:
        return self.by_columns

    @property
    def key(self) -> str:
        return "NPY"

    def read(self, file: SourceFile, first: int, n_rows: int, span: tuple[int, int]) -> np.ndarray:
        dtype, (height, width) = np.dtype(self.dtype), self.shape
        with unread(file.name), open(file.path, "rb") as opened:
            if not self.by_columns:
                opened.seek(self.offset + first * width * dtype.itemsize)
                found = np.fromfile(opened, dtype, n_rows * width)
                return found[: found.size // width * width].reshape(-1, width)
            X = np.empty((n_rows, width), dtype)
            for i in range(width):
                opened.seek(self.offset + (i * height + first) * dtype.itemsize)
                found = np.fromfile(opened, dtype, n_rows)
                if len(found) < n_rows:
                    return X[:0]
                X[:, i] = found
            return X


def look_at_npy(path: str, name: str) -> Look:
    """Shape and type by the header; a file that is cut short is refused."""
    stamp = stamp_of(path, name)
    try:
        with unread(name), open(path, "rb") as opened:
            version = np.lib.format.read_magic(opened)
            if version == (1, 0):
                shape, by_columns, dtype = np.lib.format.read_array_header_1_0(opened)
            else:
                shape, by_columns, dtype = np.lib.format.read_array_header_2_0(opened)
            offset = opened.tell()
    except DataError:
        raise
    except BROKEN as error:
        raise unreadable(name, "NPY", error) from error
    _check(name, shape, dtype)
    if stamp[0] < offset + math.prod(shape) * dtype.itemsize:
        raise unreadable(name, "NPY", f"it is cut short; it cannot hold an array {shape}")
    reader = NpyReader((shape[0], shape[1]), dtype.str, offset, by_columns)
    return Look(name, path, stamp, reader, shape[0], None, shape[1], dtype)


class ZarrReader(NamedTuple):
    """Reads ranges of rows of a Zarr array; chunks of rows are read together."""

    together: bool = True
    key: str = "Zarr"

    def read(self, file: SourceFile, first: int, n_rows: int, span: tuple[int, int]) -> np.ndarray:
        return np.asarray(_opened(file.path, file.name)[first : first + n_rows])


def look_at_zarr(path: str, name: str) -> Look:
    """Shape and type of a Zarr array by its description."""
    array = _opened(path, name)
    shape, dtype = tuple(array.shape), np.dtype(array.dtype)
    _check(name, shape, dtype)
    return Look(name, path, stamp_of(path, name), ZarrReader(), shape[0], None, shape[1], dtype)


class _Sliced:
    """A Zarr array whose errors name the file."""

    def __init__(self, array: Any, name: str) -> None:
        self.array, self.name = array, name
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, rows: slice) -> Any:
        try:
            return self.array[rows]
        except Exception as error:  # codecs raise what they like
            raise unreadable(self.name, "Zarr", error) from error


def _opened(path: str, name: str) -> _Sliced:
    try:
        import zarr
    except ImportError as error:
        raise DataError(
            f"{name}: reading Zarr needs the package zarr (pip install zarr); or save the array "
            "as NPY."
        ) from error
    try:
        return _Sliced(zarr.open_array(path, mode="r"), name)
    except Exception as error:
        raise unreadable(name, "a Zarr array", error) from error


def _check(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise DataError(
            f"{name}: holds pickled objects, which are never loaded because they can run code; "
            "save a plain array of numbers."
        )
    if dtype.kind not in "biuf":
        raise DataError(f"{name}: holds {dtype}, expected real numbers.")
    if len(shape) != 2:
        raise DataError(
            f"{name}: the array has shape {shape}, expected two dimensions: rows, columns."
        )
    if shape[1] < 1:
        raise DataError(f"{name}: is empty, its shape is {shape}.")
