"""Columns that hold one vector per row, such as the embeddings of texts or images.

A column of lists, arrays or structs of numbers becomes one column per number: ``embedding_0``,
``embedding_1``, ..., or ``place.x``, ``place.y`` for the fields of a struct. If a table has one
column of lists, its numbers are the features, and other columns of numbers beside it are labels. A
struct is the features alone if it has at least as many numbers as stand beside it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, count, listing
from lowland.tables.budget import require_for_table
from lowland.tables.columns.guessing import described, guess_roles, is_text
from lowland.tables.contents import Contents, Request

if TYPE_CHECKING:
    import polars as pl

BLOCK = 1 << 20  # numbers that are copied at a time, so that both orders stay in the cache


def is_vector(dtype: pl.DataType) -> bool:
    """Whether each value of a column is a list, an array or a struct of numbers."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return bool(dtype.fields) and all(_is_number(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        return _is_number(dtype.inner) or dtype.inner == pl.Null
    return isinstance(dtype, pl.Array) and _is_number(_innermost(dtype))


def _is_number(dtype: Any) -> bool:
    return dtype.is_integer() or dtype.is_float()


def _innermost(dtype: Any) -> Any:
    import polars as pl

    while isinstance(dtype, pl.Array):
        dtype = dtype.inner
    return dtype


def needed_vectors(schema: Mapping[str, pl.DataType], request: Request) -> list[str]:
    """The columns of vectors that the request is about; their order is that of the table."""
    import polars as pl

    found = [name for name, dtype in schema.items() if is_vector(dtype)]
    if request.vector is not None:
        return [request.vector]
    if request.columns is not None:
        missing = [name for name in request.columns if name not in schema]
        return [
            vector
            for vector in found
            if vector in request.columns
            or any(_is_part(vector, schema[vector], name) for name in missing)
        ]
    apart = {*request.labels, *request.drop, request.id_column}
    found = [name for name in found if name not in apart]
    lists = [name for name in found if not isinstance(schema[name], pl.Struct)]
    return lists or found


def _is_part(vector: str, dtype: pl.DataType, name: str) -> bool:
    """Whether a name is that of a number of a vector."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return any(name == f"{vector}.{field.name}" for field in dtype.fields)
    return name.startswith(f"{vector}_") and name[len(vector) + 1 :].isdecimal()


def vector_bytes(dtype: Any, first: pl.Series) -> int:
    """Bytes of one vector, judged from the type or the first rows of its column."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return 8 * len(dtype.fields)
    if isinstance(dtype, pl.List):
        size = int(first.list.len().max() or 0) if len(first) else 0
    else:
        size = math.prod(dtype.shape)
    inner = _innermost(dtype.inner if isinstance(dtype, pl.List) else dtype)
    return size * (4 if inner == pl.Float32 else 8)


def expanded(source: str, contents: Contents, request: Request) -> tuple[Contents, Request]:
    """The same contents with a column for each number of the vectors that are features.

    A vector that the request names among its columns stands for its numbers.
    """
    schema = contents.frame.schema
    if contents.matrix is not None:
        return contents, request
    names = check_choice(source, schema, request)
    if not names:
        return contents, request
    frame, made = contents.frame, {}
    for name in names:
        block = _expanded_column(source, frame[name])
        both = {*block.columns} & {*frame.columns}
        if both:
            what = f"the vector {name!r} makes a column {min(both)!r}, which there is already"
            raise DataError(f"{source}: {what}; rename one of them.")
        frame = frame.drop(name).hstack(block)
        made[name] = block.columns
    contents = dataclasses.replace(contents, frame=frame)
    if request.columns is None:
        return _set_apart(contents, schema, names[0], len(made[names[0]]), request), request
    columns = [number for name in request.columns for number in made.get(name, [name])]
    if contents.id_name is None and request.id_column is None:
        taken = {*columns, *request.labels}
        rest = [name for name in schema if name not in taken]
        contents = dataclasses.replace(contents, id_name=_row_id(frame, rest))
    return contents, request._replace(columns=tuple(columns))


def _set_apart(
    contents: Contents, schema: Mapping[str, pl.DataType], vector: str, width: int, request: Request
) -> Contents:
    """The numbers beside a vector become labels, and a column called id the row id."""
    import polars as pl

    id_name = contents.id_name
    notes = [*contents.notes, f"column {vector!r} is read as a vector of {count(width, 'number')}"]
    given = {*contents.labels, *request.labels, *request.use, id_name, request.id_column}
    beside = [name for name, dtype in schema.items() if dtype.is_numeric() and name not in given]
    if isinstance(schema[vector], pl.Struct) and width < len(beside):
        return dataclasses.replace(contents, notes=tuple(notes))
    if id_name is None and request.id_column is None:
        id_name = _row_id(contents.frame, [name for name in schema if name not in given])
        beside = [name for name in beside if name != id_name]
    if beside:
        shown = listing(beside, 4, quote=False)
        notes.append(f"numbers outside of the vector are labels: {shown} (--use maps them)")
    labels = (*contents.labels, *beside)
    return dataclasses.replace(contents, labels=labels, id_name=id_name, notes=tuple(notes))


def _row_id(frame: pl.DataFrame, names: Collection[str]) -> str | None:
    """The column whose name is that of an id and whose values all differ, if there is one."""
    known = {*frame.columns}
    free = [name for name in names if name in known]
    guesses = guess_roles(frame, free, needs_id=True, names_only=True)
    return next((guess.name for guess in guesses if guess.role == "id"), None)


def check_choice(source: object, schema: Mapping[str, pl.DataType], request: Request) -> list[str]:
    """The columns of vectors that become features; several are refused if none was chosen."""
    names = needed_vectors(schema, request)
    known = [name for name, dtype in schema.items() if is_vector(dtype)]
    if request.vector is not None and request.vector not in known:
        name, dtype = request.vector, schema.get(request.vector)
        inner = getattr(dtype, "inner", None)
        if inner is not None and inner.is_nested():
            what = f"holds lists of lists ({dtype}), expected one list of numbers per row"
            raise DataError(f"{source}: column {name!r} {what}.")
        there = "there is no such column" if dtype is None else f"its type is {dtype}"
        shown = f"columns of vectors: {listing(known)}" if known else "no column holds vectors"
        what = f"{name!r} is not a column of lists of numbers, {there}"
        raise DataError(f"{source}: {what}; {shown}.")
    if request.columns is None and len(names) > 1:
        shown = described({name: schema[name] for name in names})
        option = f"vector={names[0]!r} (--vector {names[0]})"
        raise DataError(f"{source}: {len(names)} columns hold vectors: {shown}; choose {option}.")
    return names


def _expanded_column(source: str, column: pl.Series) -> pl.DataFrame:
    """One column per number, contiguous in memory one after another."""
    import polars as pl

    if isinstance(column.dtype, pl.Struct):
        fields = column.struct.unnest()
        return fields.rename({name: f"{column.name}.{name}" for name in fields.columns})
    where = f"{source}: column {column.name!r}"
    if isinstance(column.dtype, pl.Array):
        width = math.prod(column.dtype.shape)
    else:
        width = _common_length(where, column.name, column.list.len())
    if width == 0:
        raise DataError(f"{where} holds no numbers, only empty lists.")
    inner = _innermost(column.dtype.inner)
    dtype = np.dtype(np.float32 if inner == pl.Float32 else np.float64)
    require_for_table(where, len(column), width, width * dtype.itemsize)
    block = np.empty((len(column), width), dtype, order="F")
    step, start = max(1, BLOCK // width), 0
    for chunk in column.get_chunks():
        for some in chunk.to_frame().iter_slices(step):
            block[start : start + len(some)] = _rows(some.to_series(), width)
            start += len(some)
    names = [f"{column.name}_{i}" for i in range(width)]
    return pl.from_numpy(block, schema=names, orient="row")


def _rows(column: pl.Series, width: int) -> np.ndarray:
    """The vectors as rows of an array; NaN where a vector or a number is missing."""
    import polars as pl

    known = column.is_not_null().to_numpy()
    if not known.all():
        block = np.full((len(column), width), np.nan)
        if known.any():
            block[known] = _rows(column.drop_nulls(), width)
        return block
    while column.dtype.is_nested():
        in_list = isinstance(column.dtype, pl.List)
        how = {"empty_as_null": False, "keep_nulls": False} if in_list else {}
        column = column.explode(**how)
    if column.has_nulls():
        column = column.cast(pl.Float64).fill_null(np.nan)
    return column.to_numpy().reshape(-1, width)


def _common_length(where: str, name: str, lengths: pl.Series) -> int:
    """The length of all vectors, 0 if all are missing; different lengths are refused."""
    known = lengths.drop_nulls()
    width = int(known[0]) if len(known) else 0
    aside = f"leave such rows out, or set the column aside as a label (--label {name})"
    empty = (lengths == 0).arg_true()
    if len(empty):
        raise DataError(f"{where} holds an empty list in row {empty[0]}; {aside}.")
    other = (lengths != width).arg_true()
    if len(other):
        first, row = lengths.is_not_null().arg_true()[0], other[0]
        sizes = f"{width} numbers in row {first}, {lengths[row]} in row {row}"
        raise DataError(f"{where} holds vectors of different lengths: {sizes}; {aside}.")
    return width


# Vectors written as text, such as ``[0.1, 0.2]`` or ``0.1 0.2 0.3``, in columns of a CSV file.


FIRST = 20  # values that decide whether a column holds vectors
PARSED = 1 << 22  # numbers that are parsed at a time
MANY = 8  # whole numbers in a row that are neither a telephone number nor a date
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
    """The column as arrays of float64; what is not a vector of the same length is refused."""
    import polars as pl

    where = f"{source}: column {column.name!r}"
    text = column.str.strip_chars()
    text = text.set((text == "").fill_null(False), None)
    short = text.str.contains("...", literal=True).arg_true()
    if len(short):
        what = f"holds a shortened vector in row {short[0]} ('...'), as arrays are printed"
        raise DataError(f"{where} {what}; write all of its numbers, or save it as Parquet.")
    bare = text.str.strip_chars("[]() \t\r\n").str.replace_all(r"\s*[,;]\s*|\s+", " ")
    bare = bare.str.strip_chars(" ")
    counts = bare.str.count_matches(" ") + 1
    counts = counts.set((bare == "").fill_null(False), 0)
    width = _common_length(where, column.name, counts)
    require_for_table(where, len(column), width, 16 * width)
    block = np.full((len(column), width), np.nan)
    places = counts.is_not_null().arg_true().to_numpy()
    bare = bare.drop_nulls()
    step = max(1, PARSED // width)
    for start in range(0, len(bare), step):
        parts = bare.slice(start, step).str.split(" ").explode()
        missing = parts.str.to_lowercase().is_in(["nan", "null", "none", "na"])
        numbers = parts.set(missing, None).cast(pl.Float64, strict=False)
        odd = (numbers.is_null() & ~missing).arg_true()
        if len(odd):
            value, row = parts[odd[0]], places[start + odd[0] // width]
            raise DataError(f"{where} holds {value!r} in the vector of row {row}, not a number.")
        rows = places[start : start + step]
        block[rows] = numbers.fill_null(np.nan).to_numpy().reshape(-1, width)
    return pl.Series(column.name, block)


def with_vectors(file: object, frame: pl.DataFrame, request: Request) -> pl.DataFrame:
    """Parse vectors that are written as text, unless their column is only carried along."""
    apart = {*request.labels, *request.drop, request.id_column}
    for name, dtype in frame.schema.items():
        if not is_text(dtype) or name in apart or not looks_like_vectors(frame[name]):
            continue
        columns = request.columns
        if columns is None or any(c == name or c.startswith(f"{name}_") for c in columns):
            frame = frame.with_columns(parsed_vectors(file, frame[name]))
    return frame
