"""Parquet and Arrow IPC (Feather): only the columns asked for are read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowland._base.errors import DataError
from lowland.tables.budget import column_bytes, refuse_bomb, require_for_table
from lowland.tables.columns.guessing import speaks_of_a_role
from lowland.tables.columns.vectors import check_choice, vector_bytes
from lowland.tables.contents import Contents, Request, unreadable
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

    with file.path.open("rb") as opened:
        start = opened.read(len(ARROW_FILE))
        opened.seek(max(0, file.size - len(END_OF_STREAM)))
        end = opened.read()
    if start.startswith(FEATHER_1):
        raise DataError(f"{file}: is Feather 1, an old format; save it as Feather 2 or Parquet.")
    with polars_reading(file, "Arrow"):
        if start == ARROW_FILE:
            lazy = pl.scan_ipc(file.path)
        elif end != END_OF_STREAM:  # else rows would be lost without an error
            raise unreadable(file, "Arrow", "it is cut short, or no Arrow file")
        else:  # a stream has no directory and is read as a whole
            lazy = pl.read_ipc_stream(file.path).lazy()
        return _chosen(file, lazy, request)


@contextlib.contextmanager
def polars_reading(file: File, kind: str) -> Iterator[None]:
    """Turn every error that polars raises on a damaged file into a DataError of one line."""
    import polars as pl

    try:
        yield
    except DataError:
        raise
    except (pl.exceptions.PolarsError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise _damaged(file, kind, error) from error
    except BaseException as error:
        # Rust panics on some damaged files; PanicException is not a subclass of Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise _damaged(file, kind, error) from error


def _damaged(file: File, kind: str, error: BaseException) -> DataError:
    """The words of a panic are those of a programmer of polars."""
    panicked = type(error).__name__ == "PanicException" or "panic" in str(error).lower()
    return unreadable(file, kind, "it is damaged" if panicked else error)


def _chosen(file: File, lazy: pl.LazyFrame, request: Request) -> Contents:
    """The columns that may get a role; numbers that were not asked for are not read."""
    import polars as pl

    schema = lazy.collect_schema()
    vectors = check_choice(file, schema, request)
    wanted = schema if request.columns is None else request.columns
    asked = {*wanted, *request.labels, request.id_column, *request.use}
    unread = [
        name
        for name, dtype in schema.items()
        if (dtype.is_numeric() or dtype == pl.Boolean)
        and name not in asked
        and name != PANDAS_INDEX
        and not ((vectors or request.guess) and speaks_of_a_role(name))  # it may name the rows
    ]
    left_out = [
        name
        for name, dtype in schema.items()
        if (dtype.is_nested() or dtype in (pl.Binary, pl.Object)) and name not in vectors
    ]
    kept = [name for name in schema if name not in {*unread, *left_out}]
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
    id_name = None
    if PANDAS_INDEX in frame.columns:
        id_name = "index" if "row" in schema else "row"
        frame = frame.rename({PANDAS_INDEX: id_name})
    return Contents(frame, id_name=id_name, unread=tuple(unread), left_out=tuple(left_out))
