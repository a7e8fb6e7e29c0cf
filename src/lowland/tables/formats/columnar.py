"""Parquet, Arrow IPC (Feather) and NDJSON; the first two also in ranges of rows.

polars reads them, Parquet also at an address. Only the columns asked for are read. What is done
here beside is to check the need of memory, and to read a large row group some columns at a time,
because polars fetches all chosen columns of a row group for any number of its rows.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland.tables.budget import column_bytes, refuse_bomb, require_for_table
from lowland.tables.columns.guessing import holds_no_values, is_number, speaks_of_a_role
from lowland.tables.columns.vectors import check_choice, vector_bytes
from lowland.tables.contents import Contents, Request, free_id, reading, unreadable
from lowland.tables.file_chunks import Look, SourceFile, stamp_of, unread
from lowland.tables.formats.dialect import require_decoded
from lowland.tables.opening import File

if TYPE_CHECKING:
    import polars as pl

PANDAS_INDEX = "__index_level_0__"
ARROW_FILE, FEATHER_1 = b"ARROW1", b"FEA1"
LOOKED_AT = 100  # rows that tell how long the lists of a column are
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def read_parquet(file: File, request: Request) -> Contents:
    """Parquet; pandas' stored index becomes the row id."""
    import polars as pl

    with polars_reading(file, "Parquet"):
        return _chosen(file, pl.scan_parquet(file.path), request)


def read_arrow(file: File, request: Request) -> Contents:
    """Arrow IPC, as a file (also called Feather 2) or as a stream."""
    import polars as pl

    with polars_reading(file, "Arrow"):
        if not _is_stream(file):
            return _chosen(file, pl.scan_ipc(file.path), request)
        with file.path.open("rb") as opened:
            opened.seek(max(0, file.size - len(END_OF_STREAM)))
            if opened.read() != END_OF_STREAM:  # else rows would be lost without an error
                raise unreadable(file, "Arrow", "it is cut short, or no Arrow file")
        # a stream has no directory and is read as a whole
        return _chosen(file, pl.read_ipc_stream(file.path).lazy(), request)


def _is_stream(file: File) -> bool:
    """Whether an Arrow file has no directory of its rows; an old format is refused."""
    with file.path.open("rb") as opened:
        start = opened.read(len(ARROW_FILE))
    if start.startswith(FEATHER_1):
        raise DataError(f"{file}: is Feather 1, an old format; save it as Feather 2 or Parquet.")
    return start != ARROW_FILE


def _index_name(names: Any) -> str | None:
    """What the index that pandas stored is called, if there is one."""
    return free_id(names) if PANDAS_INDEX in names else None


def polars_reading(file: File, kind: str) -> contextlib.AbstractContextManager[None]:
    """Turn every error that polars raises on a damaged file into a DataError of one line."""
    import polars as pl

    return reading(file, kind, pl.exceptions.PolarsError, OSError, RuntimeError, ValueError)


def _chosen(file: File, lazy: pl.LazyFrame, request: Request) -> Contents:
    """The columns that may get a role; numbers that were not asked for are not read."""
    import polars as pl

    schema = lazy.collect_schema()
    vectors = check_choice(file, schema, request)
    wanted = schema if request.columns is None else request.columns
    asked = {*wanted, *request.labels, request.id_column, *request.use}
    asked.add(PANDAS_INDEX)
    looks = bool(vectors) or request.guess  # for a column that may name the rows
    unread = [
        name
        for name, dtype in schema.items()
        if is_number(dtype) and name not in asked and not (looks and speaks_of_a_role(name))
    ]
    left_out = [n for n, dtype in schema.items() if holds_no_values(dtype) and n not in vectors]
    apart = {*unread, *left_out}
    kept = [name for name in schema if name not in apart]
    rows = lazy.select(pl.len()).collect().item()
    as_floats = 8 * sum(schema[name].is_numeric() for name in kept)
    row_bytes = column_bytes(schema[name] for name in kept) + as_floats
    for name in vectors:  # as lists, and as one block
        first = lazy.select(name).head(LOOKED_AT).collect()[name]
        row_bytes += 2 * vector_bytes(schema[name], first)
    refuse_bomb(file, rows * row_bytes, file.size)
    require_for_table(file, rows, len(kept), row_bytes, advice="choose fewer columns")
    frame = lazy.select(kept).collect()
    if frame.height != rows:  # polars may return no rows for a frame without columns
        raise unreadable(file, "a table", f"{frame.height} of {rows} rows were found")
    id_name = _index_name(frame.columns)
    if id_name is not None:
        frame = frame.rename({PANDAS_INDEX: id_name})
    return Contents(frame, id_name=id_name, unread=tuple(unread), left_out=tuple(left_out))


# NDJSON (JSON lines): one object per line; a missing key is a missing value.


GROWTH = 4  # measured: polars holds the text and its parsed form at the same time


def read_ndjson(file: File, request: Request) -> Contents:
    """One object per row, of numbers, texts and booleans; the keys are the columns."""
    import polars as pl

    task = f"{file}: reading {file.size // 1_000_000} MB of JSON"
    advice = "save it as Parquet, which needs less"
    require_memory(GROWTH * file.size, task=task, alternative=advice)
    try:
        # Types are inferred from all lines, because polars drops a key that it did not expect.
        frame = pl.read_ndjson(file.path, infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        _diagnose(file)
        with polars_reading(file, "NDJSON"):
            raise error
    return Contents(frame)


def _diagnose(file: File) -> None:
    """Raise for the first line that is not an object in JSON."""
    with file.path.open("rb") as lines:
        found = False
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            found = True
            where = f"{file}, line {number}"
            text = require_decoded(line, "utf-8", where)
            try:
                value = json.loads(text, parse_constant=_not_json)
            except (ValueError, RecursionError) as error:
                reason = str(error).split(": line 1")[0]
                raise DataError(f"{where}: not JSON: {reason}.") from error
            if not isinstance(value, dict):
                what = f"holds a {type(value).__name__}, expected an object per line"
                raise DataError(f'{where}: {what}, such as {{"a": 1, "b": 2}}.')
    if not found:
        raise DataError(f"{file}: the file is empty.")


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number; write null")


# Ranges of rows.


ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
STORES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")
PATTERN = set("*?[")
GROUP_BYTES, FEWEST = 1 << 28, 4  # of the columns of a row group that are read at a time
CHUNK_ENTRY = 400  # bytes in the directory for a column and a group of rows, with its schema


class ColumnarReader(NamedTuple):
    """Reads ranges of rows; ``index_name`` is what pandas' stored index is called."""

    kind: str
    index_name: str | None = None
    n_groups: int = 1  # of rows in the file, at least

    together = True  # see ``Look``

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


def look_at_columns(path: str, name: str, kind: str, *, remote: bool = False) -> Look:
    """Columns and rows by the directory of a file.

    An object in a store has neither a size nor a time that polars would tell; its address stands
    for it.
    """
    import polars as pl

    stamp = None if remote else stamp_of(path, name)
    with unread(name):
        if kind == "Arrow" and _is_stream(File(Path(path), name)):
            what = "is an Arrow stream, which has no directory of its rows"
            raise DataError(f"{name}: {what}; save it as an Arrow file or as Parquet.")
    reader = ColumnarReader(kind)
    n_groups = 1
    with unread(name), polars_reading(File(Path(path), name), kind):
        lazy = reader.scan(path)
        schema = dict(lazy.collect_schema())
        n_rows = int(lazy.select(pl.len()).collect().item())
        if kind == "Parquet" and stamp is not None:
            with open(path, "rb") as opened:  # the length of the directory tells about the groups
                opened.seek(max(0, stamp[0] - 8))
                length = int.from_bytes(opened.read(4), "little")
            n_groups = max(1, length // (CHUNK_ENTRY * max(1, len(schema))))
    index = _index_name(schema)
    if index is not None:
        schema = {index if key == PANDAS_INDEX else key: of for key, of in schema.items()}
    reader = ColumnarReader(kind, index, n_groups)
    return Look(name, path, stamp, reader, n_rows, schema, id_name=index)


def is_address(text: str) -> bool:
    """Whether a source is an address of an object store; other addresses are refused."""
    found = ADDRESS.match(text)
    if found is None:
        return False
    if found[1].lower() not in STORES:
        what = "addresses of this kind are not read; expected s3://, gs:// or az://"
        raise DataError(f"{text}: {what}, or a file: download it first (curl -O ADDRESS).")
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
