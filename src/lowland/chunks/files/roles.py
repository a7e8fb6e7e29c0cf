"""Which columns of all files are taken, in which common types; files that differ are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError, count, listing, shown, unknown_name
from lowland.chunks.files.file_chunks import Layout, Look
from lowland.tables.budget import column_bytes
from lowland.tables.several import kind_of

if TYPE_CHECKING:
    import polars as pl


class Choice(NamedTuple):
    """What the caller asked for; see :func:`lowland.chunks.open_rows`."""

    columns: tuple[str, ...] | None
    labels: tuple[str, ...] | None
    id_column: str | None
    frames: bool

    @classmethod
    def of(cls, columns: Any, labels: Any, id_column: Any, frames: bool) -> Choice:
        """The choice, if it consists of names."""
        if id_column is not None and not isinstance(id_column, str):
            raise ParameterError(f"open_rows: id_column={shown(id_column)} is no name of a column.")
        given = _names("columns", columns), _names("labels", labels)
        return cls(*given, id_column, bool(frames))


def _names(parameter: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ParameterError(
            f"open_rows: {parameter}={shown(given)} is not allowed; give a list of names."
        )
    names = tuple(given)
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise ParameterError(f"open_rows: {parameter} holds {shown(odd[0])}, expected names.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ParameterError(f"open_rows: {parameter} holds {twice[0]!r} more than once.")
    return names


def layout_of(looks: Sequence[Look], choice: Choice) -> tuple[Layout, list[str] | None, str | None]:
    """The layout of all files, the names of the columns, and the column that names the rows."""
    first = looks[0]
    for look in looks[1:]:
        if (look.schema is None) != (first.schema is None):
            raise DataError(f"{look.name}: has another form than {first.name}; give one kind.")
    if first.schema is None:
        return _bare(looks, choice)
    columns, beside, id_name = _chosen(first, choice)
    wanted = list(dict.fromkeys([*columns, *beside]))
    schemas = _distinct(looks)
    for look, schema in schemas[1:]:
        _check_alike(first, look, schema, wanted, choice)
    types = _common([schema for _, schema in schemas], wanted)
    exact = all(_is_narrow(types[name]) for name in columns)
    dtype = np.dtype(object) if choice.frames else np.dtype(np.float32 if exact else np.float64)
    kept = {name: types[name] for name in (wanted if choice.frames else beside)}
    row_bytes = column_bytes(types.values())
    layout = Layout(columns, beside, dtype, kept, row_bytes, frames=choice.frames)
    return layout, columns, id_name


def _bare(looks: Sequence[Look], choice: Choice) -> tuple[Layout, list[str] | None, None]:
    """The layout of arrays, whose columns have no names unless the caller gives some."""
    first = looks[0]
    for look in looks[1:]:
        if look.width != first.width:
            raise DataError(
                f"{look.name}: has {count(look.width, 'column')}, but {first.name} has "
                f"{first.width}."
            )
    asked = [*(choice.labels or ()), *([choice.id_column] if choice.id_column else [])]
    if asked:
        raise DataError(f"{first.name}: is an array without names, so there is no {asked[0]!r}.")
    names = None if choice.columns is None else list(choice.columns)
    if names is not None and len(names) != first.width:
        raise DataError(
            f"{first.name}: has {count(first.width, 'column')} without names, and {len(names)} "
            "names were given; give one for each."
        )
    if choice.frames and names is None:
        names = [f"column_{i}" for i in range(first.width)]
    found = [np.dtype(np.float64) if look.dtype is None else look.dtype for look in looks]
    narrow = all(_is_narrow_array(dtype) for dtype in found)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    row_bytes = first.width * max(kind.itemsize for kind in found)
    layout = Layout(names or (), (), dtype, {}, row_bytes, frames=choice.frames)
    return layout, names, None


def _chosen(first: Look, choice: Choice) -> tuple[list[str], list[str], str | None]:
    """Columns, columns beside, and the id, by the first file."""
    schema = first.schema or {}
    known = list(schema)
    asked = [*(choice.columns or ()), *(choice.labels or ())]
    for name in [*asked, *([choice.id_column] if choice.id_column is not None else [])]:
        if name not in schema:
            raise DataError(f"{first.name}: {unknown_name('column', name, known)}")
    if choice.frames:
        return list(dict.fromkeys(choice.columns or known)), [], None
    id_name = choice.id_column if choice.id_column is not None else first.id_name
    if id_name in asked and choice.id_column is None:
        id_name = None  # the caller has another use for it
    taken = set(choice.columns or ())
    by_type = [name for name in known if name not in taken and _is_label(schema[name])]
    given = by_type if choice.labels is None else choice.labels
    labels = [name for name in given if name != id_name]
    apart = {id_name, *labels}
    if choice.columns is None:
        columns = [name for name in known if name not in apart and _is_number(schema[name])]
    else:
        columns = list(choice.columns)
        _check_numbers(first, columns, apart)
    if not columns:
        lists = [name for name in known if schema[name].is_nested()]
        why = f"; {lists[0]!r} holds lists: unpack it into columns" if lists else ""
        raise DataError(f"{first.name}: there are no columns of numbers{why}.")
    return columns, [*([id_name] if id_name is not None else []), *labels], id_name


def _check_numbers(first: Look, columns: Sequence[str], apart: set[str | None]) -> None:
    """Refuse columns that are no numbers, or have another role too."""
    import polars as pl

    schema = first.schema or {}
    for name in columns:
        if name in apart:
            raise DataError(f"{first.name}: column {name!r} cannot be a label or the id too.")
        if not _is_number(schema[name]) and schema[name] != pl.Null:
            kind = kind_of(schema[name])
            raise DataError(f"{first.name}: column {name!r} holds {kind}, expected numbers.")


def _distinct(looks: Sequence[Look]) -> list[tuple[Look, dict[str, Any]]]:
    """The different schemas, each with the first file that has it."""
    found: list[tuple[Look, dict[str, Any]]] = []
    for look in looks:
        schema = look.schema or {}
        if not any(schema == other and list(schema) == list(other) for _, other in found[-4:]):
            found.append((look, schema))
    return found


def _check_alike(
    first: Look, look: Look, schema: dict[str, Any], wanted: Sequence[str], choice: Choice
) -> None:
    """Refuse a file that lacks a column, has more of them, or another kind of values."""
    missing = [name for name in wanted if name not in schema]
    if missing:
        raise DataError(
            f"{look.name}: lacks {listing(missing, 4)}; files that are read together have the "
            f"columns of {first.name}."
        )
    known = first.schema or {}
    added = [name for name in schema if name not in known]
    if added and choice.columns is None:
        raise DataError(
            f"{look.name}: has {listing(added, 4)} beside the columns of {first.name}; choose "
            "columns that all files have (columns=[...])."
        )
    for name in wanted:
        kinds = [kind_of(known[name]), kind_of(schema[name])]
        if kinds[0] != kinds[1] and "nothing" not in kinds:
            raise DataError(
                f"{look.name}: column {name!r} holds {kinds[1]}, but {kinds[0]} in {first.name}."
            )


def _common(schemas: Sequence[dict[str, Any]], wanted: Sequence[str]) -> dict[str, pl.DataType]:
    """The types that hold the values of all files."""
    import polars as pl

    if len(schemas) == 1:
        return {name: schemas[0][name] for name in wanted}
    frames = [pl.DataFrame(schema={name: schema[name] for name in wanted}) for schema in schemas]
    try:
        return dict(pl.concat(frames, how="vertical_relaxed").schema)
    except pl.exceptions.PolarsError:
        return {name: _widest([schema[name] for schema in schemas]) for name in wanted}


def _widest(kinds: Sequence[Any]) -> Any:
    """The common type of one column; text where there is none."""
    import polars as pl

    try:
        parts = [pl.DataFrame(schema={"x": kind}) for kind in kinds]
        return pl.concat(parts, how="vertical_relaxed").schema["x"]
    except pl.exceptions.PolarsError:
        return pl.String()


def _is_number(dtype: Any) -> bool:
    import polars as pl

    return bool(dtype.is_numeric() or dtype == pl.Boolean)


def _is_label(dtype: Any) -> bool:
    import polars as pl

    kinds = (pl.String, pl.Categorical, pl.Enum)
    return bool(dtype.is_temporal() or any(dtype == kind for kind in kinds))


def _is_narrow(dtype: Any) -> bool:
    """Whether float32 holds the values exactly."""
    import polars as pl

    kinds = (pl.Float32, pl.Int8, pl.Int16, pl.UInt8, pl.UInt16, pl.Boolean, pl.Null)
    return any(dtype == kind for kind in kinds) or str(dtype) == "Float16"


def _is_narrow_array(dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        return dtype.itemsize <= 4
    return dtype.kind == "b" or dtype.itemsize <= 2
