"""NPY, NPZ and MatrixMarket, and ranges of rows of NPY and Zarr; pickled objects are never loaded.

numpy, scipy and zarr read them. NPZ is unpacked here member by member, because ``numpy.load``
allocates what a header claims.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import shutil
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, unknown_name
from lowland._base.sparse_input import as_csr, well_formed
from lowland.tables.budget import refuse_bomb, require_for_sparse, require_for_table
from lowland.tables.contents import (
    PICKLED,
    Contents,
    Request,
    named_matrix,
    one_line,
    reading,
    unreadable,
)
from lowland.tables.file_chunks import Look, SourceFile, stamp_of, unread
from lowland.tables.finite import as_floats, float_type
from lowland.tables.opening import File, temporary

if TYPE_CHECKING:
    import scipy.sparse

# Errors that numpy and zipfile raise on truncated, damaged and forged files.
BROKEN = (
    *(EOFError, KeyError, NotImplementedError, OSError, OverflowError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
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
    with reading(file, "NPY", *BROKEN), file.path.open("rb") as opened:
        _require(file, _header(opened), file.size)
        opened.seek(0)
        return np.lib.format.read_array(opened, allow_pickle=False)


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
    with reading(file, "NPZ", *BROKEN), zipfile.ZipFile(file.path) as archive:
        return _chosen(file, archive, part, ndim)


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

    def claim(names: Iterable[str]) -> list[str]:
        for name in names:
            _require(file, headers[name], archive.getinfo(f"{name}.npy").file_size)
            loaded.add(name)
        # Summed up, because members may share the same few bytes.
        refuse_bomb(file, sum(headers[name].n_bytes for name in loaded), file.size)
        return [*names]

    where = str(file)
    if part is None and {"format", "shape", "data"} <= headers.keys():
        taken = SPARSE_NAMES & headers.keys()
        shape = _load(archive, *claim(["shape"]))
        if any(headers[name].dtype.kind not in "iu" for name in PLACES & headers.keys()):
            raise DataError(f"{file}: the sparse matrix has indices that are not whole numbers.")
        if shape.size == 2 and shape.dtype.kind in "iu":
            rows, columns = (int(size) for size in shape.ravel())
            require_for_sparse(file, rows, columns, math.prod(headers["data"].shape))
        claim(taken)
        matrix: Any = compressed_rows(scipy.sparse.load_npz(file.path), where)
    else:
        key = _matrix_key(file, headers, part, ndim)
        taken, where = {key}, f"{file}, array {key!r}"
        matrix = _load(archive, *claim([key]))
    rest = [name for name in headers if name not in taken]
    labels = [name for name in rest if _goes_beside(name, headers[name], matrix.shape)]
    beside = {name: _load(archive, name) for name in claim(labels)}
    return Archive(matrix, where, beside, [name for name in rest if name not in beside])


def _goes_beside(name: str, header: Header, shape: tuple[int, ...]) -> bool:
    """Whether an array labels the rows or holds the names of the columns."""
    if name == "feature_names" and header.dtype.kind == "U" and header.shape == shape[1:]:
        return True
    return header.shape == shape[:1] and header.dtype.kind in LABEL_KINDS


def _load(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(f"{name}.npy") as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _header(opened: IO[bytes]) -> Header:
    first = np.lib.format.read_magic(opened) == (1, 0)
    form = np.lib.format
    read = form.read_array_header_1_0 if first else form.read_array_header_2_0
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
        numbers = [name for name, header in headers.items() if header.dtype.kind in "biuf"]
        matrices = [name for name in numbers if len(headers[name].shape) == wanted]
        if len(matrices) == 1 and "X" not in headers:
            return matrices[0]
        if matrices:
            break
    found = ", ".join(f"{name} {header}" for name, header in headers.items()) or "none"
    needs = "needs an array 'X' or exactly one two-dimensional array"
    raise DataError(f"{file}: {needs}; found {found}; name one as the part to read.")


def checked_matrix(matrix: np.ndarray, where: str) -> np.ndarray:
    """Rows by columns of float32 or float64, not empty."""
    _check_form(where, Header(matrix.shape, matrix.dtype))
    if 0 in matrix.shape:
        raise DataError(f"{where}: is empty, its shape is {matrix.shape}.")
    return as_floats(matrix)


def _check_form(where: str, header: Header) -> None:
    """Refuse what is not rows by columns of numbers."""
    check_real(where, header.dtype)
    if len(header.shape) != 2:
        raise DataError(f"{where}: the array has shape {header.shape}, expected two dimensions.")
    if not header.shape[1]:
        raise DataError(f"{where}: is empty, its shape is {header.shape}.")


def check_real(where: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf":
        raise DataError(f"{where}: holds {dtype}, expected real numbers.")


# Sparse matrices: MatrixMarket, and CSR of any of them.


def read_matrix_market(file: File, request: Request) -> Contents:
    """MatrixMarket: a sparse matrix (coordinate) or a dense one (array) of real numbers."""
    import scipy.io

    try:
        rows, columns, stored, layout, field, symmetry = scipy.io.mminfo(file.path)
        if field == "complex":
            raise DataError(f"{file}: holds complex numbers, expected real ones.")
        # "1 1\n" is the shortest entry, and "1\n" the shortest number of an array.
        listed = stored if layout == "coordinate" else rows * columns // 2
        if listed * (4 if layout == "coordinate" else 2) > file.size + 2:
            raise ValueError(f"it is cut short: {file.size} bytes cannot hold {stored} entries")
        if layout == "coordinate":
            stored = stored if symmetry == "general" else 2 * stored
            require_for_sparse(file, rows, columns, stored)
        else:
            require_for_table(file, rows, columns, 16 * columns)
        with _terminated(file) as path:
            matrix = scipy.io.mmread(path)
    except DataError:
        raise
    except (ArithmeticError, OSError, TypeError, ValueError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        reason = one_line(error)
        if reason.startswith("Line "):
            place, _, what = reason.partition(": ")
            raise DataError(f"{file}, {place.lower()}: {what}.") from error
        raise unreadable(file, "MatrixMarket", reason) from error
    if isinstance(matrix, np.ndarray):
        return named_matrix(np.asarray(matrix, np.float64), None, {})
    return named_matrix(compressed_rows(matrix, str(file)), None, {})


@contextlib.contextmanager
def _terminated(file: File) -> Iterator[Path]:
    """A path to the same text that ends in a line feed.

    The parser of SciPy reads beyond the text where a number ends at its end or at a null byte, and
    may crash.
    """
    with (
        file.path.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text,
    ):
        if text.find(b"\0") >= 0:
            raise unreadable(file, "MatrixMarket", "it holds a null byte")
        end = text[-200:]
    if end.endswith(b"\n"):
        yield file.path
        return
    try:
        float(end.split()[-1])
    except (IndexError, ValueError):
        raise unreadable(file, "MatrixMarket", "it is cut short within a number") from None
    with temporary("file.mtx") as copy:
        shutil.copyfile(file.path, copy)
        with copy.open("ab") as text_file:
            text_file.write(b"\n")
        yield copy


def compressed_rows(matrix: Any, where: str) -> scipy.sparse.csr_matrix:
    """CSR of float32 or float64, each entry stored once, its columns in order."""
    import scipy.sparse

    check_real(where, matrix.dtype)
    if 0 in matrix.shape:
        raise DataError(f"{where}: is empty, its shape is {matrix.shape}.")
    well_formed(matrix, where)
    # Converted before entries are summed, because sums of small integers overflow.
    numbers = np.empty(0, matrix.dtype) if matrix.format in ("lil", "dok") else matrix.data
    matrix = matrix.astype(float_type(numbers), copy=False)
    return scipy.sparse.csr_matrix(as_csr(matrix))


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

    key = "NPY"  # see ``Look``

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
    with unread(name), reading(name, "NPY", *BROKEN), open(path, "rb") as opened:
        header = _header(opened)
        offset = opened.tell()
    if header.is_pickled:
        raise DataError(f"{name}: {PICKLED}")
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
        return _zarr(file.path, file.name, lambda array: np.asarray(array[first : first + n_rows]))


def look_at_zarr(path: str, name: str) -> Look:
    """Shape and type of a Zarr array by its description."""
    header = _zarr(path, name, lambda array: Header(tuple(array.shape), np.dtype(array.dtype)))
    _check_form(name, header)
    n, p = header.shape
    return Look(name, path, stamp_of(path, name), ZarrReader(), n, None, p, header.dtype)


def _zarr(path: str, name: str, read: Callable[[Any], Any]) -> Any:
    """What a function reads of a Zarr array; errors name the file."""
    try:
        import zarr
    except ImportError as error:
        needs = "reading Zarr needs the package zarr (pip install zarr)"
        raise DataError(f"{name}: {needs}; or save it as NPY.") from error
    try:
        return read(zarr.open_array(path, mode="r"))
    except Exception as error:  # codecs raise what they like
        raise unreadable(name, "a Zarr array", error) from error
