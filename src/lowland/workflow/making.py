"""``make_map``: from a table to a map with a report and a model, in one call.

Here it is decided, once, whether a table is read as a whole or in chunks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.errors import DataError, MemoryLimitError, ParameterError
from lowland._base.memory import available_memory, format_bytes
from lowland._base.options import takes_options
from lowland.tables import holds_distances
from lowland.tables.in_memory import is_path
from lowland.tables.options import TABLE, TableOptions
from lowland.tables.several import listed_sources
from lowland.workflow._parameters import DEFAULT_METHOD, method_parameters
from lowland.workflow.options import MAKING, RunOptions, RunSettings

if TYPE_CHECKING:
    from lowland.workflow.outputs import RunFolder
    from lowland.workflow.result import MapResult

PLAIN = str | int | float | list | tuple | dict | None


@takes_options(table=(TableOptions, TABLE), settings=(RunSettings, MAKING))
def make_map(
    data: Any,
    method: str | type[Reducer] = DEFAULT_METHOD,
    *,
    table: TableOptions,
    settings: RunSettings,
    **parameters: Any,
) -> MapResult:
    """Make a map of a table: prepare the columns, fit a method, measure the map.

    This is what ``lowland map`` does, with the same options and the same map. Ctrl-C during the
    optimization keeps the map computed so far.

    Parameters
    ----------
    data : path, data frame, array, sparse matrix, AnnData or Dataset
        A file, a list of files, a folder or the name of a bundled data set (see
        :func:`lowland.tables.read_table`); a pandas or polars data frame; an array of shape
        (n_rows, n_columns); a SciPy sparse matrix; an AnnData object (``X`` or the ``part`` named,
        columns of obs as labels); a data set of ``lowland.datasets``. Columns of numbers are
        mapped; columns of text and dates are labels.
    method : str or class, default="tsne"
        A method: its name as in ``lowland methods``, or its class.
    **parameters
        Parameters of the method, such as ``perplexity=50``. A parameter that the method calls
        ``method`` is ``algorithm`` here, and one that it calls ``normalize`` is ``map_scale``.

    Returns
    -------
    MapResult
        The map, the model, the quality, and methods that write them. If rows were read in chunks,
        its ``parts`` are files with the map of all rows.

    Examples
    --------
    >>> from lowland.workflow import make_map
    >>> result = make_map("iris", "pca")
    >>> result.map.columns
    ['row', 'x', 'y', 'class']
    >>> result
    MapResult(PCA of 150 rows, 2 dimensions, trustworthiness 0.983)
    >>> result.log[-1]
    'not scaled (the deviations of the columns agree within a factor of 4.1)'
    """
    cls = method_class(method)
    given = method_parameters(cls, parameters)
    options = settings.of(table, _call(data, cls, table, settings, parameters))
    return make_by_choice(choose(data, cls, options), data, cls, given, options)


def method_class(method: str | type[Reducer]) -> type[Reducer]:
    """The class of a method, by its name or itself."""
    if isinstance(method, type) and issubclass(method, Reducer):
        return method
    if not isinstance(method, str):
        raise ParameterError(
            f"method: {method!r} is not allowed; expected the name or the class of a method."
        )
    return registry.get(method)


def _call(
    data: Any,
    cls: type[Reducer],
    table: TableOptions,
    settings: RunSettings,
    parameters: dict[str, Any],
) -> str:
    """The call that reproduces the run, for the report; values that are not plain text are ..."""
    source = "data"
    if is_path(data):
        source = repr([str(path) for path in data] if isinstance(data, list | tuple) else str(data))
    method = repr(registry.snake_case(cls.__name__))
    given = {**settings.changed(), **table.changed(), **parameters}
    given |= dict.fromkeys(["labels"] if table.beside else [], ...)
    if table.target in table.beside:
        given["target"] = ...
    shown = [
        f"{name}={repr(value) if isinstance(value, PLAIN) else '...'}"
        for name, value in given.items()
        if name not in ("n_jobs", "verbose")  # the map does not depend on them
    ]
    return f"lowland.workflow.make_map({', '.join([source, method, *shown])})"


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
        return f"{other} is not a file"
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
    return None if other is None else f"{other} is not one of {STREAMED}"


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
    """Why a table is read in chunks without a request; None if it is read as a whole.

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
    """Whether a table is in memory, or surely fits: then reading in chunks is not considered."""
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
