"""Whether a table is read as a whole or in chunks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.base import Reducer
from lowland._base.errors import DataError, MemoryLimitError, ParameterError
from lowland._base.memory import available_memory, format_bytes
from lowland.tables import holds_distances
from lowland.tables.in_memory import is_path
from lowland.tables.options import TableOptions
from lowland.tables.several import listed_sources
from lowland.workflow.options import RunOptions, RunSettings

if TYPE_CHECKING:
    from lowland.workflow.outputs import RunFolder
    from lowland.workflow.result import MapResult

# What cannot be read in chunks, and why.


def why_not_streamed(data: Any, table: TableOptions, settings: RunSettings) -> str | None:
    """Why the rows cannot be read in chunks, as the end of a sentence; None if they can."""
    say = table.spelling.option
    if not is_path(data):
        return "data in memory are not read in chunks"
    from lowland.tables.formats.columnar import is_address
    from lowland.tables.in_chunks import STREAMED, may_be_streamed

    paths = listed_sources(data)
    other = next((p for p in paths if not (is_address(p) or os.path.isfile(p))), None)
    if other is not None:
        return f"{other} is no file"
    if table.distances or holds_distances(data):
        return "a matrix of distances is needed as a whole"
    given = {
        "similarities": table.similarities,
        "transpose": table.transpose,
        "label_file": table.label_file,
        "vector": table.vector,
        "part": table.part,
        "labels": table.beside,
        "orient": settings.orient,
    }
    for name, value in given.items():
        is_empty = isinstance(value, Mapping) and not value
        if not (value is None or value is False or is_empty):
            return f"{say(name)} needs the whole table"
    if table.missing == "drop":
        return (
            f"{say('missing', 'drop')} needs the whole table; fill missing values, such as with "
            f"{say('missing', 'mean')}, or leave their rows out of the files"
        )
    other = next((path for path in paths if not may_be_streamed(path)), None)
    return None if other is None else f"{other} is none of {STREAMED}"


INFLATION = 20  # bytes in memory that a byte of a file rarely exceeds
SHARE = 8  # a table below 1 / SHARE of the memory is read as a whole
VALUE = 8.8  # bytes of a value, and a tenth for what is beside


class Choice(NamedTuple):
    """How a table is read."""

    streamed: bool
    note: str | None = None  # why it is read in chunks, unless the user asked for it


def choose(data: Any, cls: type[Reducer], options: RunOptions) -> Choice:
    """The engine that was asked for, or that the size of the table calls for."""
    settings, table = options.settings, options.table
    say = settings.spelling.option
    if settings.asks_for_chunks:
        unable = why_not_streamed(data, table, settings)
        if unable is not None:
            engine = settings.engine
            asked = say("engine", engine) if engine in ("stream", "dask") else say("sample")
            raise DataError(f"{asked}: rows cannot be read in chunks: {unable}.")
        return Choice(True)
    note = size_note(data, cls, table, settings)
    if note is not None:
        return Choice(True, note)
    for name in ("resume", "refine"):
        if getattr(settings, name):
            raise ParameterError(
                f"{say(name)}: is for rows that are read in chunks; add {say('engine', 'stream')}."
            )
    return Choice(False)


def size_note(
    data: Any, cls: type[Reducer] | None, table: TableOptions, settings: RunSettings
) -> str | None:
    """Why a table is read in chunks although nobody asked for it; None if it is read as a whole.

    The table is held against the memory first. Where it takes a large part of it, the estimate of
    the method counts, too.
    """
    if settings.engine == "memory" or is_small(data):
        return None
    if why_not_streamed(data, table, settings) is not None:
        return None
    from lowland.chunks.opening import open_rows
    from lowland.tables.formats.columnar import is_address

    paths, option = listed_sources(data), settings.spelling.option("engine", "stream")
    if any(map(is_address, paths)):
        return f"rows at an address are read in chunks ({option})"
    have = available_memory()
    n, p = open_rows(paths, frames=True).shape
    need = of_table = int(VALUE * n * p)
    if cls is not None and of_table * SHARE > have:
        need += int(cls.estimate(n, p).n_bytes)
    if need <= have:
        return None
    too_large = of_table > have
    what = "the table needs" if too_large else "the table and its map need"
    return (
        f"{what} about {format_bytes(of_table if too_large else need)}, the process may use "
        f"{format_bytes(have)}: rows are read in chunks ({option})"
    )


def is_small(data: Any) -> bool:
    """Whether a table is in memory, or surely fits: then nobody asks how to read it in chunks."""
    if not is_path(data):
        return True
    paths = listed_sources(data)
    if any("://" in path for path in paths):
        return False
    size = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    return size * INFLATION * SHARE < available_memory()


def make_by_choice(
    choice: Choice,
    data: Any,
    cls: type[Reducer],
    parameters: dict[str, Any],
    options: RunOptions,
    home: RunFolder | None = None,
) -> MapResult:
    """One map. A run in memory that is refused for lack of it goes on in chunks, if it can."""
    # Imported here: who only asks how a table is read needs neither measures nor a report.
    from lowland.workflow.run import MemoryRows, run_map

    note = choice.note
    if not choice.streamed:
        try:
            return run_map(MemoryRows(data, options), cls, parameters)
        except MemoryLimitError as error:
            if options.settings.engine == "memory":
                raise
            unable = why_not_streamed(data, options.table, options.settings)
            if unable is not None:
                if not is_path(data) or not all(map(os.path.exists, listed_sources(data))):
                    raise  # it is not a file: nobody expects it to be read in chunks
                raise MemoryLimitError(
                    f"{str(error).rstrip('.')}; rows cannot be read in chunks: {unable}."
                ) from error
            option = options.settings.spelling.option("engine", "stream")
            note = f"{str(error).partition(';')[0]}: rows are read in chunks ({option})"
    if note is not None:
        options.note(note)
    from lowland.workflow.streaming.rows import ChunkRows

    return run_map(ChunkRows(listed_sources(data), options, home), cls, parameters)
