"""Parquet and Arrow files, and Parquet at an address, of which polars reads some rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._core.errors import DataError
from lowland.distributed.files.leaves import Look, SourceFile, stamp_of, unread
from lowland.io.contents import unreadable
from lowland.io.files.opening import File
from lowland.io.formats.columnar import PANDAS_INDEX, polars_reading

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
