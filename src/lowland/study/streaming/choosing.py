"""Whether a table is read as a whole or leaf by leaf."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._core.base import Reducer
from lowland._core.errors import DataError, MemoryLimitError, ParameterError
from lowland._core.memory import available_memory, format_bytes
from lowland.distributed.files.columnar import is_address
from lowland.io.in_memory import is_path
from lowland.io.several import listed_sources
from lowland.study.streaming.options import StreamOptions
from lowland.study.streaming.unable import why_not_streamed

if TYPE_CHECKING:
    from lowland.study.result import MapResult
    from lowland.study.run import RunOptions
    from lowland.study.streaming.saving import Home

INFLATION = 20  # bytes in memory that a byte of a file rarely exceeds
SHARE = 8  # a table below 1 / SHARE of the memory is read as a whole
VALUE = 8.8  # bytes of a value, and a tenth for what is beside


class Choice(NamedTuple):
    """How a table is read."""

    streamed: bool
    unable: str | None = None  # why it cannot be read leaf by leaf
    note: str | None = None  # why it is, unless the user asked for it


def choose(data: Any, cls: type[Reducer], options: RunOptions, stream: StreamOptions) -> Choice:
    """The engine that was asked for, or that the size of the table calls for."""
    unable = why_not_streamed(data, options.table, options.orient)
    if stream.asked:
        if unable is not None:
            raise DataError(f"{_asked(stream)}: rows cannot be read leaf by leaf: {unable}.")
        return Choice(True)
    if stream.engine == "auto" and unable is None:
        note = memory_note(listed_sources(data), cls, stream)
        if note is not None:
            return Choice(True, None, note)
    for name in ("resume", "refine"):
        if getattr(stream, name):
            say = stream.spelling.option
            raise ParameterError(
                f"{say(name)}: is for rows that are read leaf by leaf; add "
                f"{say('engine', 'stream')}."
            )
    return Choice(False, unable)


def _asked(stream: StreamOptions) -> str:
    """The option that asks for rows to be read leaf by leaf."""
    by_engine = stream.engine in ("stream", "dask")
    return stream.spelling.option(*(("engine", stream.engine) if by_engine else ("sample",)))


def make_by_choice(
    choice: Choice,
    data: Any,
    cls: type[Reducer],
    parameters: dict[str, Any],
    options: RunOptions,
    stream: StreamOptions,
    home: Home | None = None,
) -> MapResult:
    """One map. A run in memory that is refused for lack of it goes on leaf by leaf, if it can."""
    # Imported here: who only asks how a table is read needs neither measures nor a report.
    from lowland.study.run import run_map
    from lowland.study.streaming.running import stream_map

    note = choice.note
    if not choice.streamed:
        try:
            return run_map(data, cls, parameters, options)
        except MemoryLimitError as error:
            if stream.engine == "memory":
                raise
            if choice.unable is not None:
                if not is_path(data) or not all(map(os.path.exists, listed_sources(data))):
                    raise  # it is no file: nobody expects it to be read leaf by leaf
                raise MemoryLimitError(
                    f"{str(error).rstrip('.')}; rows cannot be read leaf by leaf: {choice.unable}."
                ) from error
            option = stream.spelling.option("engine", "stream")
            note = f"{str(error).partition(';')[0]}: rows are read leaf by leaf ({option})"
    if note is not None:
        options.note(note)
    return stream_map(listed_sources(data), cls, parameters, options, stream, home)


def memory_note(paths: list[str], cls: type[Reducer] | None, stream: StreamOptions) -> str | None:
    """Why a table is not read as a whole, in a note for a person; None if it is.

    The table is held against the memory first, which its files tell without being read. Where it
    takes a large part of it, the estimate of the method counts, too.
    """
    if any(map(is_address, paths)):
        option = stream.spelling.option("engine", "stream")
        return f"rows at an address are read leaf by leaf ({option})"
    have = available_memory()
    if sum(os.path.getsize(path) for path in paths) * INFLATION * SHARE < have:
        return None
    from lowland.distributed.opening import open_rows

    n, p = open_rows(paths, frames=True).shape
    table = int(VALUE * n * p)
    need = table
    if cls is not None and table * SHARE > have:
        need += int(cls.estimate(n, p).n_bytes)
    if need <= have:
        return None
    what = "the table needs" if table > have else "the table and its map need"
    option = stream.spelling.option("engine", "stream")
    return (
        f"{what} about {format_bytes(table if table > have else need)}, the process may use "
        f"{format_bytes(have)}: rows are read leaf by leaf ({option})"
    )
