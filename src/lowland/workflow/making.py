"""``make_map``: from a table to a map with a report and a model, in one call."""

from __future__ import annotations

from typing import Any

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.errors import ParameterError
from lowland._base.options import takes_options
from lowland.tables.in_memory import is_path
from lowland.tables.options import TABLE, TableOptions
from lowland.workflow._parameters import DEFAULT_METHOD, method_parameters
from lowland.workflow.choosing import choose, make_by_choice
from lowland.workflow.options import MAKING, RunSettings
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
    """The call that reproduces the run, for the report; values that are no plain text are ..."""
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
