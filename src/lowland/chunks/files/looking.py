"""Which files a source means, and what each of them is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lowland._base.errors import DataError, listing
from lowland.chunks.files.columnar import (
    is_address,
    listed_addresses,
    look_at_address,
    look_at_columns,
    look_at_npy,
    look_at_zarr,
)
from lowland.chunks.files.file_chunks import Look, unread
from lowland.chunks.files.text import TextReader
from lowland.chunks.files.text_look import look_at_text
from lowland.tables.contents import unreadable
from lowland.tables.opening import FORMATS, GZIP_MAGIC, TEXTS, is_stream, is_text, told_suffix
from lowland.tables.several import listed_sources

PARQUET, ARROW, NPY, ZARR, DELIMITED = "Parquet", "Arrow", "NPY", "Zarr", "delimited text"
KINDS = {
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".arrow": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
    ".npy": NPY,
    ".zarr": ZARR,
    **dict.fromkeys(TEXTS, DELIMITED),
}
STREAMED = "Parquet, Arrow, delimited text, NPY and Zarr"
THREADS = 8  # files that are looked at together: waiting for disks takes longer than reading


def may_be_streamed(path: str) -> bool:
    """Whether the name of a file does not speak against reading it in parts."""
    suffix = os.path.splitext(path)[1].lower()
    return suffix in KINDS or suffix not in {*FORMATS, ".gz"}


def source_paths(source: Any) -> list[str]:
    """The files of a source in order: files, patterns, folders and addresses, each file once."""
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    paths: list[str] = []
    for each in given:
        text = os.fspath(each)
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{text!r}: is no name of a file, a folder or a pattern.")
        if is_address(text):
            paths += listed_addresses(text)
        elif os.path.isdir(text) and not text.rstrip("/\\").lower().endswith(".zarr"):
            paths += _in_folder(text)
        else:
            paths += _listed(text)
    if not paths:
        raise DataError("the list of inputs is empty; give at least one file.")
    return paths


def _listed(text: str) -> list[str]:
    """A file, or those that match a pattern."""
    try:
        return listed_sources(text)
    except ValueError as error:  # a null character
        if isinstance(error, DataError):
            raise
        raise DataError(f"{text!r}: is no name of a file: {error}.") from error


def _in_folder(folder: str) -> list[str]:
    """The files of the one kind that a folder holds, by name; hidden ones are left out."""
    with unread(folder), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name[0] not in "._")
    kinds: dict[str, list[str]] = {}
    for name in names:
        kind = KINDS.get(os.path.splitext(name)[1].lower())
        path = os.path.join(folder, name)
        if kind is not None and (os.path.isfile(path) or kind == ZARR):
            kinds.setdefault(kind, []).append(path)
    if len(kinds) > 1:
        found = " and ".join(f"{kind} ({Path(paths[0]).name})" for kind, paths in kinds.items())
        raise DataError(
            f"{folder}: holds files of several kinds: {found}; choose some with a pattern, such "
            f"as {os.path.join(folder, '*' + Path(next(iter(kinds.values()))[0]).suffix)}."
        )
    if not kinds:
        deeper = f"; for files in its folders, use {os.path.join(folder, '**', '*.parquet')}"
        below = any(os.path.isdir(os.path.join(folder, name)) for name in names)
        found = f" (it holds {listing(names, 3)})" if names else ""
        raise DataError(
            f"{folder}: holds no files that can be read in parts{found}; these are {STREAMED}"
            f"{deeper if below else ''}."
        )
    return next(iter(kinds.values()))


def looked_at(paths: Sequence[str]) -> Iterator[Look]:
    """What each file is, in order; the first file with a problem raises its error."""
    _refuse_twice(paths)
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


def _refuse_twice(paths: Sequence[str]) -> None:
    """Refuse a file that is given twice, also under two names."""
    seen: dict[Any, str] = {}
    for path in paths:
        key: Any = path
        if not is_address(path):
            with unread(path):
                facts = os.stat(path)
            key = (facts.st_dev, facts.st_ino) if facts.st_ino else os.path.realpath(path)
        if key in seen:
            known = "" if seen[key] == path else f", as {seen[key]} too"
            raise DataError(f"{path}: is given more than once{known}.")
        seen[key] = path


def _look(text: str, first: Look | None) -> Look:
    """What one file is."""
    if is_address(text):
        return _with_rows(look_at_address(text))
    path = os.path.abspath(text)
    kind = _kind(text)
    if kind in (PARQUET, ARROW):
        return _with_rows(look_at_columns(path, text, kind))
    if kind in (NPY, ZARR):
        return _with_rows(look_at_npy(path, text) if kind == NPY else look_at_zarr(path, text))
    like = first if first is not None and isinstance(first.reader, TextReader) else None
    return look_at_text(path, text, like)


def _with_rows(look: Look) -> Look:
    if not look.n_rows:
        raise DataError(f"{look.name}: there are no rows.")
    return look


def _kind(text: str) -> str:
    """The kind of a file by its first bytes and by its name."""
    path = Path(text)
    suffix = path.suffix.lower()
    with unread(text):
        if path.is_dir():
            return ZARR
        if is_stream(path):
            raise DataError(
                f"{text}: is a stream, which can be read only once; write it to a file first."
            )
        with path.open("rb") as opened:
            start = opened.read(len(GZIP_MAGIC))
        if not start:
            raise DataError(f"{text}: the file is empty.")
        if start == GZIP_MAGIC:
            raise DataError(
                f"{text}: is compressed by gzip as a whole, so that its rows cannot be reached one "
                f"by one; unpack it first (gunzip {path.name}), or save it as Parquet."
            )
        told = told_suffix(path)
        plain = not told and is_text(path)
    named = KINDS.get(suffix)
    if told in KINDS:
        return KINDS[told]
    if told or not plain or (named is None and suffix in (".json", ".jsonl", ".ndjson")):
        if named is not None and not told:
            raise unreadable(text, named, "it is damaged, or something else")
        kind = FORMATS.get(told) or (f"files ending in {suffix}" if suffix else "such files")
        raise DataError(
            f"{text}: {kind} cannot be read in parts; formats that can are {STREAMED}. Save the "
            "table as Parquet."
        )
    if named in (None, DELIMITED):
        return DELIMITED
    raise unreadable(text, named, "it is damaged, or something else")
