"""Vectors written as text, such as ``[0.1, 0.2]`` or ``0.1 0.2 0.3``, in columns of a CSV file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from lowland._base.errors import DataError
from lowland.tables.budget import require_for_table
from lowland.tables.contents import Request

if TYPE_CHECKING:
    import polars as pl

FIRST = 20  # values that decide whether a column holds vectors
BLOCK = 1 << 22  # numbers that are parsed at a time
MANY = 8  # whole numbers in a row that are no telephone number and no date
NUMBER = r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
INNER = rf"(?:{NUMBER}|nan|null|None)"
BRACKETED = re.compile(rf"\s*[\[(]\s*(?:{INNER}(?:\s*[,;]\s*|\s+))*(?:{INNER})?\s*[\])]\s*", re.I)
PLAIN = re.compile(rf"\s*{NUMBER}(?:\s+{NUMBER})+\s*")
SHORTENED = re.compile(r"\s*[\[(][^\[\]]*\.\.\.[^\[\]]*[\])]\s*")


def looks_like_vectors(column: pl.Series) -> bool:
    """Whether the first values of a column of text are vectors."""
    head = column.head(FIRST) if column.head(FIRST).count() else column.drop_nulls().head(FIRST)
    values = [value for value in head.to_list() if value is not None and value.strip()]
    if not values or not re.search(r"\d", values[0]):
        return False
    listed = [bool(BRACKETED.fullmatch(v) or SHORTENED.fullmatch(v)) for v in values]
    if 2 * sum(listed) >= len(values):  # a list that is not like the others is an error
        return any(re.search(r"\d", value) for value in values)
    if not all(PLAIN.fullmatch(value) for value in values):
        return False
    return all("." in value or len(value.split()) >= MANY for value in values)


def parsed_vectors(source: object, column: pl.Series) -> pl.Series:
    """The column as arrays of float64; what is no vector of the same length is refused."""
    import polars as pl

    where = f"{source}: column {column.name!r}"
    text = column.str.strip_chars()
    text = text.set((text == "").fill_null(False), None)
    short = text.str.contains("...", literal=True).fill_null(False)
    if short.any():
        row = int(short.arg_true()[0])
        raise DataError(
            f"{where} holds a shortened vector in row {row} ('...'), as arrays are printed; "
            "write all of its numbers, or save the table as Parquet."
        )
    bare = text.str.strip_chars("[]() \t\r\n").str.replace_all(r"\s*[,;]\s*|\s+", " ")
    bare = bare.str.strip_chars(" ")
    counts = bare.str.count_matches(" ") + 1
    counts = counts.set((bare == "").fill_null(False), 0)
    known = counts.is_not_null()
    width = int(counts.drop_nulls()[0])
    other = (counts != width).fill_null(False)
    if other.any() or width == 0:
        row = int(other.arg_true()[0]) if other.any() else int(known.arg_true()[0])
        raise DataError(
            f"{where} holds vectors of different lengths: {width} numbers in row "
            f"{int(known.arg_true()[0])}, {counts[row]} in row {row}; make them equally long, or "
            f"set the column aside as a label (--label {column.name})."
        )
    require_for_table(where, len(column), width, 16 * width)
    block = np.full((len(column), width), np.nan)
    places = known.arg_true().to_numpy()
    bare = bare.drop_nulls()
    step = max(1, BLOCK // width)
    for start in range(0, len(bare), step):
        parts = bare.slice(start, step).str.split(" ").explode()
        missing = parts.str.to_lowercase().is_in(["nan", "null", "none", "na"])
        numbers = parts.set(missing, None).cast(pl.Float64, strict=False)
        odd = numbers.is_null() & ~missing
        if odd.any():
            place = int(odd.arg_true()[0])
            row = int(places[start + place // width])
            raise DataError(
                f"{where} holds {parts[place]!r} in the vector of row {row}, expected a number."
            )
        rows = places[start : start + step]
        block[rows] = numbers.fill_null(np.nan).to_numpy().reshape(-1, width)
    return pl.Series(column.name, block)


def with_vectors(file: object, frame: pl.DataFrame, request: Request) -> pl.DataFrame:
    """Parse vectors that are written as text, unless their column is only carried along."""
    import polars as pl

    apart = {*request.labels, *request.drop, request.id_column}
    for name, dtype in frame.schema.items():
        if dtype != pl.String or name in apart or not looks_like_vectors(frame[name]):
            continue
        asked = request.columns is None or any(
            column == name or column.startswith(f"{name}_") for column in request.columns
        )
        if asked:
            frame = frame.with_columns(parsed_vectors(file, frame[name]))
    return frame
