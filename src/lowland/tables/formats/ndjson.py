"""NDJSON (JSON lines): one object per line; a missing key is a missing value."""

from __future__ import annotations

import json
from typing import Any

from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland.tables.contents import Contents, Request
from lowland.tables.formats.columnar import polars_reading
from lowland.tables.opening import File

GROWTH = 4  # measured: polars holds the text and its parsed form at the same time


def read_ndjson(file: File, request: Request) -> Contents:
    """One object per row, of numbers, texts and booleans; the keys are the columns."""
    import polars as pl

    require_memory(
        GROWTH * file.size,
        task=f"{file}: reading {file.size // 1_000_000} MB of JSON",
        alternative="save it as Parquet, which needs less",
    )
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
            try:
                value = json.loads(line.decode("utf-8"), parse_constant=_not_json)
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{where}: not UTF-8 text (byte 0x{line[error.start]:02x} at position "
                    f"{error.start}); save the file as UTF-8."
                ) from error
            except (ValueError, RecursionError) as error:
                reason = str(error).split(": line 1")[0]
                raise DataError(f"{where}: not JSON: {reason}.") from error
            if not isinstance(value, dict):
                raise DataError(
                    f"{where}: holds a {type(value).__name__}, expected one object such as "
                    '{"a": 1, "b": 2} per line.'
                )
    if not found:
        raise DataError(f"{file}: the file is empty.")


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number; write null")
