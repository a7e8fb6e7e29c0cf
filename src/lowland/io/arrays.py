"""NPY and NPZ: plain arrays only, pickled objects are never loaded."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

from lowland._core.errors import DataError
from lowland.io.contents import Contents, named_matrix, unreadable

__all__ = ["read_npy", "read_npz"]

# What numpy and zipfile were seen to raise on truncated, damaged and forged files.
BROKEN = (
    EOFError,
    KeyError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npy(path: Path) -> Contents:
    """One two-dimensional array of numbers, rows by columns."""
    try:
        with path.open("rb") as file:
            matrix = np.lib.format.read_array(file, allow_pickle=False)
    except BROKEN as error:
        raise _broken(path, "NPY", error) from error
    return named_matrix(_checked(matrix, str(path)), None, {}, [])


def read_npz(path: Path) -> Contents:
    """The array ``X``, or the only two-dimensional one; 1-D arrays of its length are labels."""
    if not zipfile.is_zipfile(path):
        raise unreadable(path, "NPZ", "it is not a zip archive, or it is cut short")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays, pickled = _members(archive)
    except BROKEN as error:
        raise _broken(path, "NPZ", error) from error
    key = _matrix_key(path, arrays, pickled)
    matrix = _checked(arrays.pop(key), f"{path}, array {key!r}")
    names = arrays.pop("feature_names", None)
    if names is not None and (names.dtype.kind != "U" or names.shape != matrix.shape[1:]):
        names = None
    labels = {
        name: array
        for name, array in arrays.items()
        if array.shape == matrix.shape[:1] and array.dtype.kind in "biufUM"
    }
    unused = sorted({*arrays, *pickled} - set(labels))
    notes = [f"arrays left aside: {', '.join(unused)}"] if unused else []
    return named_matrix(matrix, None if names is None else names.tolist(), labels, notes)


def _members(archive: np.lib.npyio.NpzFile) -> tuple[dict[str, np.ndarray], list[str]]:
    """Arrays by name, and the names of those that hold pickled objects."""
    arrays, pickled = {}, []
    for name in archive.files:
        try:
            arrays[name] = archive[name]
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            pickled.append(name)
    return arrays, pickled


def _matrix_key(path: Path, arrays: dict[str, np.ndarray], pickled: list[str]) -> str:
    if "X" in arrays:
        return "X"
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) == 1 and "X" not in pickled:
        return matrices[0]
    found = [f"{name} {array.shape}" for name, array in arrays.items()]
    found += [f"{name} (pickled objects, never loaded)" for name in pickled]
    raise DataError(
        f"{path}: needs an array 'X' or exactly one two-dimensional array; "
        f"found {', '.join(found) or 'none'}."
    )


def _checked(matrix: np.ndarray, where: str) -> np.ndarray:
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"{where}: holds {matrix.dtype}, expected real numbers.")
    if matrix.ndim != 2:
        raise DataError(
            f"{where}: the array has shape {matrix.shape}, expected two dimensions: rows, columns."
        )
    if 0 in matrix.shape:
        raise DataError(f"{where}: is empty, its shape is {matrix.shape}.")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def _broken(path: Path, kind: str, error: BaseException) -> DataError:
    if isinstance(error, OSError) and error.filename is not None:  # not opened: no damage
        raise error
    if "allow_pickle" in str(error) or "pickle" in str(error):
        return DataError(
            f"{path}: holds pickled objects, which are never loaded because they can run code; "
            "save a plain array of numbers."
        )
    return unreadable(path, kind, error)
