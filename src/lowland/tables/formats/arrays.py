"""NPY and NPZ, and ranges of rows of NPY and Zarr: plain arrays only, no pickled objects.

numpy and zarr read them. NPZ is unpacked here member by member, because ``numpy.load`` allocates
what a header claims.
"""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, unknown_name
from lowland.tables.budget import refuse_bomb, require_for_sparse, require_for_table
from lowland.tables.contents import Contents, Request, named_matrix, unreadable
from lowland.tables.file_chunks import Look, SourceFile, stamp_of, unread
from lowland.tables.finite import as_floats
from lowland.tables.formats.sparse import compressed_rows
from lowland.tables.opening import File

# Errors that numpy and zipfile raise on truncated, damaged and forged files.
BROKEN = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
LABEL_KINDS = "biufUM"
# The arrays that scipy.sparse.save_npz writes.
PLACES = {"indices", "indptr", "row", "col", "coords", "offsets"}
SPARSE_NAMES = {"_is_array", "format", "shape", "data", *PLACES}


class Header(NamedTuple):
    """Shape and type of an array that is still on disk."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool = False  # whether it is stored column after column (Fortran order)

    @property
    def is_pickled(self) -> bool:
        return self.dtype.hasobject

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return "(pickled objects, never loaded)" if self.is_pickled else str(self.shape)


class Archive(NamedTuple):
    """The array asked for, and the other arrays of the archive."""

    matrix: Any
    where: str
    beside: dict[str, np.ndarray]
    unused: list[str]


def read_npy(file: File, request: Request) -> Contents:
    """One two-dimensional array of numbers, rows by columns."""
    return named_matrix(checked_matrix(load_npy(file), str(file)), None, {})


def load_npy(file: File) -> np.ndarray:
    """The array, whatever its shape."""
    try:
        with file.path.open("rb") as opened:
            header = _header(opened)
            _require(file, header, file.size)
            opened.seek(0)
            return np.lib.format.read_array(opened, allow_pickle=False)
    except DataError:
        raise
    except BROKEN as error:
        raise _broken(file, "NPY", error) from error


def read_npz(file: File, request: Request) -> Contents:
    """The array ``X``, the only two-dimensional one, or the ``part`` asked for.

    1-D arrays of its length are labels. What ``scipy.sparse.save_npz`` wrote is a sparse matrix.
    """
    archive = load_npz(file, request.part)
    matrix, beside = archive.matrix, dict(archive.beside)
    if isinstance(matrix, np.ndarray):
        matrix = checked_matrix(matrix, archive.where)
    names = beside.pop("feature_names", None)
    if names is not None and (names.dtype.kind != "U" or names.shape != matrix.shape[1:]):
        names = None
    unused = sorted(archive.unused)
    notes = [f"arrays that are not used: {', '.join(unused)}"] if unused else []
    return named_matrix(matrix, None if names is None else names.tolist(), beside, notes)


def load_npz(file: File, part: str | None, *, ndim: tuple[int, ...] = (2,)) -> Archive:
    """The chosen array of an archive with its labels; other arrays are not unpacked."""
    if not zipfile.is_zipfile(file.path):
        raise unreadable(file, "NPZ", "it is not a zip archive, or it is cut short")
    try:
        with zipfile.ZipFile(file.path) as archive:
            return _chosen(file, archive, part, ndim)
    except DataError:
        raise
    except BROKEN as error:
        raise _broken(file, "NPZ", error) from error


def _chosen(
    file: File, archive: zipfile.ZipFile, part: str | None, ndim: tuple[int, ...]
) -> Archive:
    headers: dict[str, Header] = {}
    for name in archive.namelist():
        if name.endswith(".npy"):
            with archive.open(name) as member:
                headers[name.removesuffix(".npy")] = _header(member)

    import scipy.sparse

    loaded: set[str] = set()

    def claim(names: Iterable[str]) -> None:
        for name in names:
            _require(file, headers[name], archive.getinfo(f"{name}.npy").file_size)
            loaded.add(name)
        # Summed up, because members may share the same few bytes.
        refuse_bomb(file, sum(headers[name].n_bytes for name in loaded), file.size)

    def load(names: Iterable[str]) -> dict[str, np.ndarray]:
        names = list(names)
        claim(names)
        return {name: _load(archive, name) for name in names}

    where = str(file)
    if part is None and {"format", "shape", "data"} <= headers.keys():
        taken = SPARSE_NAMES & headers.keys()
        _check_sparse(file, headers, load({"shape"})["shape"])
        claim(taken)
        matrix: Any = compressed_rows(scipy.sparse.load_npz(file.path), where)
    else:
        key = _matrix_key(file, headers, part, ndim)
        taken, where = {key}, f"{file}, array {key!r}"
        matrix = load(taken)[key]
    beside = load(
        name
        for name, header in headers.items()
        if name not in taken and _goes_beside(name, header, matrix.shape)
    )
    unused = [name for name in headers if name not in taken and name not in beside]
    return Archive(matrix, where, beside, unused)


def _check_sparse(file: File, headers: dict[str, Header], shape: np.ndarray) -> None:
    """Refuse a sparse matrix that does not fit, before its other arrays are unpacked."""
    if any(headers[name].dtype.kind not in "iu" for name in PLACES & headers.keys()):
        raise DataError(f"{file}: the sparse matrix has indices that are not whole numbers.")
    if shape.size == 2 and shape.dtype.kind in "iu":
        rows, columns = (int(size) for size in shape.ravel())
        require_for_sparse(file, rows, columns, math.prod(headers["data"].shape))


def _goes_beside(name: str, header: Header, shape: tuple[int, ...]) -> bool:
    """Whether an array labels the rows or holds the names of the columns."""
    if name == "feature_names" and header.dtype.kind == "U" and header.shape == shape[1:]:
        return True
    return header.shape == shape[:1] and header.dtype.kind in LABEL_KINDS


def _load(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(f"{name}.npy") as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _header(opened: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(opened)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(opened)
    return Header(shape, dtype, by_columns)


def _require(file: File, header: Header, size: int) -> None:
    """Refuse a file that is cut short, or an array that does not fit with its copy as floats."""
    if header.is_pickled:
        return  # refused later, before it is read
    if header.n_bytes > size:
        raise ValueError(f"it is cut short: {size} bytes cannot hold an array {header.shape}")
    rows = header.shape[0] if header.shape else 1
    width = math.prod(header.shape[1:])
    floats = 0 if header.dtype.kind == "f" and header.dtype.itemsize >= 4 else 8
    require_for_table(file, rows, width, width * (header.dtype.itemsize + floats))


def _matrix_key(
    file: File, headers: dict[str, Header], part: str | None, ndim: tuple[int, ...]
) -> str:
    if part is not None:
        if part not in headers:
            raise DataError(f"{file}: {unknown_name('array', part, list(headers))}")
        return part
    if "X" in headers and not headers["X"].is_pickled:
        return "X"
    for wanted in ndim:
        matrices = [
            name
            for name, header in headers.items()
            if len(header.shape) == wanted and header.dtype.kind in "biuf"
        ]
        if len(matrices) == 1 and "X" not in headers:
            return matrices[0]
        if matrices:
            break
    found = [f"{name} {header}" for name, header in headers.items()]
    raise DataError(
        f"{file}: needs an array 'X' or exactly one two-dimensional array; "
        f"found {', '.join(found) or 'none'}; name one as the part to read."
    )


def checked_matrix(matrix: np.ndarray, where: str) -> np.ndarray:
    """Rows by columns of float32 or float64, not empty."""
    _check_form(where, Header(matrix.shape, matrix.dtype))
    if 0 in matrix.shape:
        raise DataError(f"{where}: is empty, its shape is {matrix.shape}.")
    return as_floats(matrix)


def _check_form(where: str, header: Header) -> None:
    """Refuse what is not rows by columns of numbers."""
    if header.dtype.kind not in "biuf":
        raise DataError(f"{where}: holds {header.dtype}, expected real numbers.")
    if len(header.shape) != 2:
        raise DataError(
            f"{where}: the array has shape {header.shape}, expected two dimensions: rows, columns."
        )
    if not header.shape[1]:
        raise DataError(f"{where}: is empty, its shape is {header.shape}.")


def _broken(file: File, kind: str, error: BaseException) -> Exception:
    if isinstance(error, OSError) and error.filename is not None:  # could not be opened
        return error
    if "allow_pickle" in str(error) or "pickle" in str(error):
        return _pickled(file)
    return unreadable(file, kind, error)


def _pickled(where: object) -> DataError:
    return DataError(
        f"{where}: holds pickled objects, which are never loaded because they can run code; "
        "save a plain array of numbers."
    )


# Arrays on disk whose rows can be reached by their number: NPY, and Zarr with the package zarr.


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
            header = _header(opened)
            offset = opened.tell()
    except DataError:
        raise
    except BROKEN as error:
        raise unreadable(name, "NPY", error) from error
    if header.is_pickled:
        raise _pickled(name)
    _check_form(name, header)
    if stamp[0] < offset + header.n_bytes:
        raise unreadable(name, "NPY", f"it is cut short; it cannot hold an array {header.shape}")
    n, p = header.shape
    reader = NpyReader((n, p), header.dtype.str, offset, header.by_columns)
    return Look(name, path, stamp, reader, n, None, p, header.dtype)


class ZarrReader(NamedTuple):
    """Reads ranges of rows of a Zarr array; chunks of rows are read together."""

    together: bool = True
    key: str = "Zarr"

    def read(self, file: SourceFile, first: int, n_rows: int, span: tuple[int, int]) -> np.ndarray:
        return np.asarray(_opened(file.path, file.name)[first : first + n_rows])


def look_at_zarr(path: str, name: str) -> Look:
    """Shape and type of a Zarr array by its description."""
    array = _opened(path, name)
    header = Header(tuple(array.shape), np.dtype(array.dtype))
    _check_form(name, header)
    n, p = header.shape
    return Look(name, path, stamp_of(path, name), ZarrReader(), n, None, p, header.dtype)


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
