"""Files as one table in chunks: which files a source means, what each is, which columns it has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError, count, listing, shown
from lowland.tables.budget import column_bytes
from lowland.tables.columns.roles import Roles, check_names
from lowland.tables.contents import Contents, Request, unreadable
from lowland.tables.file_chunks import Layout, Look, unread
from lowland.tables.finite import is_narrow
from lowland.tables.formats import columnar
from lowland.tables.formats.arrays import look_at_npy, look_at_zarr
from lowland.tables.formats.delimited import look_at_text
from lowland.tables.formats.text_chunks import TextReader
from lowland.tables.opening import DELIMITED, GZIP_MAGIC, KNOWN, is_stream, is_text, told_suffix
from lowland.tables.several import check_columns_alike, listed_sources

KINDS = {suffix: each.name for suffix, each in KNOWN.items() if each.in_parts}
JSON = (".json", ".jsonl", ".ndjson")
*_MOST, _LAST = dict.fromkeys(KINDS.values())
STREAMED = f"{', '.join(_MOST)} and {_LAST}"
THREADS = 8  # files that are looked at together: waiting for disks takes longer than reading


def may_be_streamed(path: str) -> bool:
    """Whether the name of a file does not speak against reading it in parts."""
    suffix = os.path.splitext(path)[1].lower()
    return suffix in KINDS or suffix not in {*KNOWN, ".gz"}


def source_paths(source: Any) -> list[str]:
    """The files of a source in order: files, patterns, folders and addresses, each file once."""
    given = [source] if not isinstance(source, Iterable) or isinstance(source, str) else source
    paths: list[str] = []
    for each in given:
        text = os.fspath(each) if isinstance(each, str | bytes | os.PathLike) else each
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise DataError(f"{shown(text)}: is not the name of a file, a folder or a pattern.")
        if columnar.is_address(text):
            paths += columnar.listed_addresses(text)
        elif os.path.isdir(text) and not text.rstrip("/\\").lower().endswith(".zarr"):
            paths += _in_folder(text)
        else:
            paths += listed_sources(text)
    if not paths:
        raise DataError("the list of inputs is empty; give at least one file.")
    return paths


def _in_folder(folder: str) -> list[str]:
    """The files of the one kind that a folder holds, by name; hidden ones are left out."""
    with unread(folder), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name[0] not in "._")
    kinds: dict[str, list[str]] = {}
    for name in names:
        kind = KINDS.get(os.path.splitext(name)[1].lower())
        path = os.path.join(folder, name)
        if kind is not None and (os.path.isfile(path) or kind == "Zarr"):
            kinds.setdefault(kind, []).append(path)
    if not kinds:
        deeper = f"; for files in its folders, use {os.path.join(folder, '**', '*.parquet')}"
        below = any(os.path.isdir(os.path.join(folder, name)) for name in names)
        found = f" (it holds {listing(names, 3)})" if names else ""
        what = f"holds no files that can be read in parts{found}; these are {STREAMED}"
        raise DataError(f"{folder}: {what}{deeper if below else ''}.")
    chosen = next(iter(kinds.values()))
    if len(kinds) > 1:
        found = " and ".join(f"{kind} ({Path(paths[0]).name})" for kind, paths in kinds.items())
        pattern = os.path.join(folder, f"*{Path(chosen[0]).suffix}")
        found = f"files of several kinds: {found}"
        raise DataError(f"{folder}: holds {found}; choose some, such as {pattern}.")
    return chosen


def looked_at(paths: Sequence[str]) -> Iterator[Look]:
    """What each file is, in order; the first file with a problem raises its error."""
    seen: dict[Any, str] = {}
    for path in paths:  # a file may be given twice under two names
        key: Any = path
        if not columnar.is_address(path):
            with unread(path):
                facts = os.stat(path)
            key = (facts.st_dev, facts.st_ino) if facts.st_ino else os.path.realpath(path)
        if key in seen:
            known = "" if seen[key] == path else f", as {seen[key]} too"
            raise DataError(f"{path}: is given more than once{known}.")
        seen[key] = path
    first = _look(paths[0], None)
    yield first
    with ThreadPoolExecutor(THREADS) as threads:
        pending = [threads.submit(_look, path, first) for path in paths[1:]]
        try:
            for future in pending:
                yield future.result()
        finally:
            for future in pending:
                future.cancel()


def _look(text: str, first: Look | None) -> Look:
    """What one file is."""
    path, kind = os.path.abspath(text), "" if columnar.is_address(text) else _kind(text)
    if kind == DELIMITED:
        like = first if first is not None and isinstance(first.reader, TextReader) else None
        return look_at_text(path, text, like)
    if kind in ("NPY", "Zarr"):
        look = look_at_npy(path, text) if kind == "NPY" else look_at_zarr(path, text)
    else:
        where = (path, text, kind) if kind else (text, text, "Parquet")
        look = columnar.look_at_columns(*where, remote=not kind)
    if not look.n_rows:
        raise DataError(f"{text}: there are no rows.")
    return look


def _kind(text: str) -> str:
    """The kind of a file by its first bytes and by its name."""
    path = Path(text)
    suffix = path.suffix.lower()
    with unread(text):
        if path.is_dir():
            return "Zarr"
        if is_stream(path):
            raise DataError(f"{text}: is a stream, which is read only once; write it to a file.")
        with path.open("rb") as opened:
            start = opened.read(len(GZIP_MAGIC))
        if not start:
            raise DataError(f"{text}: the file is empty.")
        if start == GZIP_MAGIC:
            what = "is compressed by gzip as a whole, so rows cannot be reached one by one"
            advice = f"unpack it (gunzip {path.name}), or save it as Parquet"
            raise DataError(f"{text}: {what}; {advice}.")
        told = told_suffix(path)
        plain = not told and is_text(path)
    if told in KINDS:
        return KINDS[told]
    named = KINDS.get(suffix, "")
    if plain and (named == DELIMITED or (not named and suffix not in JSON)):
        return DELIMITED
    if named and not told:
        raise unreadable(text, named, "it is damaged, or something else")
    unknown = f"files ending in {suffix}" if suffix else "such files"
    kind = KNOWN[told].name if told else unknown
    what = f"{kind} cannot be read in parts; formats that can are {STREAMED}"
    raise DataError(f"{text}: {what}. Save the table as Parquet.")


# Which columns of all files are taken, in which common types; files that differ are refused.


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
            raise ParameterError(f"open_rows: id_column={shown(id_column)} is not a name.")
        given = _names("columns", columns), _names("labels", labels)
        return cls(*given, id_column, bool(frames))


def _names(parameter: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        advice = "give a list of names, none of them more than once"
        raise ParameterError(f"open_rows: {parameter}={shown(given)} is not allowed; {advice}.")
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
    schemas: list[dict[str, Any]] = []  # the different ones
    for look in looks:
        schema = look.schema or {}
        if any(schema == other and list(schema) == list(other) for other in schemas[-4:]):
            continue
        exact = choice.columns is None
        check_columns_alike(first.name, first.schema, look.name, schema, wanted, exact=exact)
        schemas.append(schema)
    types = {name: _widest([schema[name] for schema in schemas]) for name in wanted}
    narrow = all(is_narrow(types[name]) for name in columns)
    dtype = np.dtype(object) if choice.frames else np.dtype(np.float32 if narrow else np.float64)
    kept = {name: types[name] for name in (wanted if choice.frames else beside)}
    row_bytes = column_bytes(types.values())
    layout = Layout(columns, beside, dtype, kept, row_bytes, frames=choice.frames)
    return layout, columns, id_name


def _bare(looks: Sequence[Look], choice: Choice) -> tuple[Layout, list[str] | None, None]:
    """The layout of arrays, whose columns have no names unless the caller gives some."""
    first = looks[0]
    for look in looks[1:]:
        if look.width != first.width:
            columns = count(look.width, "column")
            raise DataError(f"{look.name}: has {columns}, but {first.name} has {first.width}.")
    check_names(first.name, [], [*(choice.labels or ()), *filter(None, [choice.id_column])])
    names = None if choice.columns is None else list(choice.columns)
    if names is not None and len(names) != first.width:
        columns = f"{count(first.width, 'column')} without names, and {len(names)} names were given"
        raise DataError(f"{first.name}: has {columns}; give one for each.")
    if choice.frames and names is None:
        names = [f"column_{i}" for i in range(first.width)]
    found = [np.dtype(np.float64) if look.dtype is None else look.dtype for look in looks]
    narrow = all(map(is_narrow, found))
    dtype = np.dtype(np.float32 if narrow else np.float64)
    row_bytes = first.width * max(kind.itemsize for kind in found)
    layout = Layout(names or (), (), dtype, {}, row_bytes, frames=choice.frames)
    return layout, names, None


def _chosen(first: Look, choice: Choice) -> tuple[list[str], list[str], str | None]:
    """Columns, columns beside, and the id, by the first file; roles are those of any table."""
    import polars as pl

    name, schema = first.name, first.schema or {}
    asked = [*(choice.columns or ()), *(choice.labels or ())]
    if choice.frames:
        check_names(name, list(schema), [*asked, *filter(None, [choice.id_column])])
        return list(choice.columns or schema), [], None
    twice = {*(choice.columns or ())} & {*(choice.labels or ()), choice.id_column}
    if twice:
        raise DataError(f"{name}: column {min(twice)!r} cannot be a label or the id too.")
    # A column of nulls that is asked for has numbers in other files.
    empty = [column for column in choice.columns or () if schema.get(column) == pl.Null]
    frame = pl.DataFrame(schema={**schema, **dict.fromkeys(empty, pl.Float64)})
    id_name = None if first.id_name in asked else first.id_name  # the caller has another use for it
    wanted = Request(choice.columns, choice.labels or (), choice.id_column, guess=False)
    roles = Roles.assign(name, Contents(frame, id_name=id_name), wanted)
    labels = roles.labels if choice.labels is None else choice.labels
    first_of_all = [] if roles.id_name is None else [roles.id_name]
    return roles.features, list(dict.fromkeys([*first_of_all, *labels])), roles.id_name


def _widest(kinds: Sequence[Any]) -> Any:
    """The type that holds the values of a column of all files; text where there is none."""
    import polars as pl

    if len({*kinds}) == 1:
        return kinds[0]
    try:
        parts = [pl.DataFrame(schema={"x": kind}) for kind in kinds]
        return pl.concat(parts, how="vertical_relaxed").schema["x"]
    except pl.exceptions.PolarsError:
        return pl.String()
