"""Parquet and Arrow files, and Parquet at an address, of which polars reads some rows."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland.chunks.files.file_chunks import Look, SourceFile, stamp_of, unread
from lowland.tables.contents import unreadable
from lowland.tables.formats.arrays import BROKEN
from lowland.tables.formats.columnar import PANDAS_INDEX, polars_reading
from lowland.tables.opening import File

if TYPE_CHECKING:
    import polars as pl

ARROW_FILE, FEATHER_1 = b"ARROW1", b"FEA1"
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
STORES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")
PATTERN = set("*?[")
# polars fetches all chunks of the chosen columns in a row group, for any number of its rows, and a
# file may be one row group. So the columns of a large file are read some at a time.
GROUP_BYTES, FEWEST = 1 << 28, 4
CHUNK_ENTRY = 400  # bytes in the directory for a column and a group of rows, with its schema


class ColumnarReader(NamedTuple):
    """Reads ranges of rows; ``index_name`` is what pandas' stored index is called."""

    kind: str
    index_name: str | None = None
    n_groups: int = 1  # of rows in the file, at least

    @property
    def together(self) -> bool:
        return True

    @property
    def key(self) -> str:
        return self.kind

    def read(self, file: SourceFile, first: int, n_rows: int, span: tuple[int, int]) -> Any:
        with unread(file.name), polars_reading(File(Path(file.path), file.name), self.kind):
            import polars as pl

            lazy = self.scan(file.path).slice(first, n_rows)
            wanted = file.layout.wanted
            size = 0 if file.stamp is None or self.kind == "Arrow" else file.stamp[0]
            size //= self.n_groups
            step = max(FEWEST, len(wanted) * GROUP_BYTES // max(size, 1))
            parts = [
                lazy.select(wanted[i : i + step]).collect() for i in range(0, len(wanted), step)
            ]
            return parts[0] if len(parts) == 1 else pl.concat(parts, how="horizontal")

    def scan(self, path: str) -> pl.LazyFrame:
        import polars as pl

        if self.kind == "Arrow":
            plain: Any = {"glob": False} if PATTERN & set(path) else {}  # not in older releases
            lazy = pl.scan_ipc(path, hive_partitioning=False, **plain)
        else:
            lazy = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        return lazy if self.index_name is None else lazy.rename({PANDAS_INDEX: self.index_name})


def look_at_columns(path: str, name: str, kind: str) -> Look:
    """Columns and rows by the directory of a file."""
    stamp = stamp_of(path, name)
    if kind == "Arrow":
        with unread(name), open(path, "rb") as opened:
            start = opened.read(len(ARROW_FILE))
        if start.startswith(FEATHER_1):
            raise DataError(f"{name}: is Feather 1, an old format; save it as Parquet.")
        if start != ARROW_FILE:
            raise DataError(
                f"{name}: is an Arrow stream, which has no directory of its rows; save it as an "
                "Arrow file or as Parquet."
            )
    return _look(path, name, kind, stamp)


def _look(path: str, name: str, kind: str, stamp: tuple[int, int] | None) -> Look:
    import polars as pl

    reader = ColumnarReader(kind)
    n_groups = 1
    with unread(name), polars_reading(File(Path(path), name), kind):
        lazy = reader.scan(path)
        schema = dict(lazy.collect_schema())
        n_rows = int(lazy.select(pl.len()).collect().item())
        if kind == "Parquet" and stamp is not None:
            n_groups = _row_groups(path, stamp[0], len(schema))
    if PANDAS_INDEX in schema:
        index = "index" if "row" in schema else "row"
        schema = {index if key == PANDAS_INDEX else key: kind for key, kind in schema.items()}
        reader = ColumnarReader(reader.kind, index, n_groups)
        return Look(name, path, stamp, reader, n_rows, schema, id_name=index)
    return Look(name, path, stamp, reader._replace(n_groups=n_groups), n_rows, schema)


def _row_groups(path: str, size: int, n_columns: int) -> int:
    """At least so many groups of rows has a Parquet file, by the length of its directory."""
    with open(path, "rb") as opened:
        opened.seek(max(0, size - 8))
        length = int.from_bytes(opened.read(4), "little")
    return max(1, length // (CHUNK_ENTRY * max(1, n_columns)))


def is_address(text: str) -> bool:
    """Whether a source is an address of an object store; other addresses are refused."""
    found = ADDRESS.match(text)
    if found is None:
        return False
    if found[1].lower() not in STORES:
        raise DataError(
            f"{text}: addresses of this kind are not read; expected s3://, gs:// or az://, or a "
            "file: download it first (curl -O ADDRESS)."
        )
    return True


def listed_addresses(text: str) -> list[str]:
    """The address, or all addresses that match a pattern, in the order of their names."""
    import polars as pl

    if not PATTERN & set(text):
        return [text]
    with polars_reading(File(Path(text), text), "Parquet"):
        paths = pl.scan_parquet(text, include_file_paths="path", hive_partitioning=False)
        found = paths.select(pl.col("path").unique(maintain_order=True)).collect()["path"]
    if not len(found):
        raise unreadable(text, "Parquet", "nothing matches this pattern")
    return sorted(found.to_list())


def look_at_address(text: str) -> Look:
    """Columns and rows of Parquet in an object store.

    An object has neither a size nor a time that polars would tell; its address stands for it.
    """
    return _look(text, text, "Parquet", None)


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
