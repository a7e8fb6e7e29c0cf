"""``make_map``: from a table to a map with a report and a model, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.errors import ParameterError
from lowland.tables.in_memory import is_path
from lowland.tables.options import TableOptions, takes_table_options
from lowland.workflow._parameters import DEFAULT_METHOD, method_parameters
from lowland.workflow.choosing import StreamOptions, choose, make_by_choice
from lowland.workflow.fitting import FitOptions
from lowland.workflow.result import MapResult
from lowland.workflow.run import RunOptions


@takes_table_options()
def make_map(
    data: Any,
    method: str | type[Reducer] = DEFAULT_METHOD,
    *,
    color: Any = None,
    table: TableOptions,
    pca: int | str = "auto",
    orient: Any = None,
    measure: bool = True,
    check: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    engine: str = "auto",
    scheduler: str | None = None,
    sample: int | None = None,
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
    color : str or array of shape (n_rows,), optional
        The column that colors the picture, or its values; by default ``target``, a label called
        class, target, species or the like, or the first label whose values recur.
    pca : int, "auto" or "none", default="auto"
        Columns to reduce to by PCA before the method; "auto" is 50 for neighbor methods.
    orient : str, mapping, path, data frame or array, optional
        How the map is turned, mirrored if need be: rows and their directions, such as
        "north=Stockholm,west=Lisbon" or {"north": "Stockholm"}; or known coordinates of some rows,
        joined by id, which the map is turned to match (Procrustes). Distances in the map stay as
        they are, and the model places new rows in the turned map.
    measure : bool, default=True
        Whether to measure the map, and to judge where it can be believed.
    check : bool, default=False
        Whether to make the map again, three times of parts of the rows with other seeds and once of
        data without structure: ``trust`` then tells what is stable and what is chance. This takes
        about as long as the map.
    seed : int, default=0
        Seed of everything random.
    n_jobs : int or None, default=None
        Threads; None uses all cores. The map does not depend on it.
    verbose : bool, default=False
        Whether to show progress.
    engine : {"auto", "memory", "stream", "dask"}, default="auto"
        "memory" reads the whole table. "stream" reads files in chunks, and "dask" lets workers
        do so. "auto" is "memory" if the table and its map fit in memory, else "stream".
    scheduler : str, optional
        For "dask": the address of a scheduler, such as "tcp://host:8786", or "local:4" for four
        processes on this machine.
    sample : int, optional
        Rows that the method is fitted to, where rows are read in chunks: this means "stream". By
        default all rows, or as many as a method takes that needs its rows in memory.
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
    table, color = table.naming(color, "color")
    stream = StreamOptions(engine, scheduler, sample)
    shown = {"seed": seed, "pca": pca, "scale": table.scale, **parameters}
    shown |= {"check": check, "engine": engine, "scheduler": scheduler, "sample": sample}
    if table.target is not None:
        is_column = table.target not in table.beside
        shown["target"] = table.target if is_column else np.empty(0)  # shown as ...
    if orient is not None:
        shown["orient"] = orient if isinstance(orient, str | dict) else np.array([orient], object)
    command = _call(data, cls, shown)
    fit = FitOptions(seed, n_jobs, verbose, str(pca))
    if check and not measure:
        raise ParameterError(
            "check=True: a map that is not measured is not checked; leave one out."
        )
    options = RunOptions(table, fit, color, measure, command, orient=orient, check=check)
    choice = choose(data, cls, options, stream)
    return make_by_choice(choice, data, cls, given, options, stream)


def method_class(method: str | type[Reducer]) -> type[Reducer]:
    """The class of a method, by its name or itself."""
    if isinstance(method, type) and issubclass(method, Reducer):
        return method
    if not isinstance(method, str):
        raise ParameterError(
            f"method: {method!r} is not allowed; expected the name or the class of a method."
        )
    return registry.get(method)


def _call(data: Any, cls: type[Reducer], given: dict[str, Any]) -> str:
    """The call that reproduces the run, for the report."""
    source = "data"
    if is_path(data):
        source = repr([str(path) for path in data] if isinstance(data, list | tuple) else str(data))
    method = repr(registry.snake_case(cls.__name__))
    usual = {"seed": 0, "pca": "auto", "scale": "auto", "check": False, "engine": "auto"}
    usual |= {"scheduler": None, "sample": None}
    shown = [
        f"{name}={'...' if isinstance(value, np.ndarray) else repr(value)}"
        for name, value in given.items()
        if not (name in usual and value == usual[name])
    ]
    return f"lowland.workflow.make_map({', '.join([source, method, *shown])})"
