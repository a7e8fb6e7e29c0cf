"""``make_map``: from a table to a map with a report and a model, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowland._core import registry
from lowland._core.base import Reducer
from lowland._core.errors import ParameterError
from lowland.io.in_memory import has_column_names, is_path
from lowland.study._parameters import DEFAULT_METHOD, method_parameters
from lowland.study.fitting import FitOptions
from lowland.study.preparing import TableOptions
from lowland.study.result import MapResult
from lowland.study.run import RunOptions, run_map

__all__ = ["make_map", "method_class", "run_options"]


def make_map(
    data: Any,
    method: str | type[Reducer] = DEFAULT_METHOD,
    *,
    color: Any = None,
    labels: Any = None,
    target: Any = None,
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    one_hot: str | Sequence[str] | None = None,
    id_column: str | None = None,
    part: str | None = None,
    distances: bool = False,
    impute: str | None = None,
    scale: str = "auto",
    pca: int | str = "auto",
    measure: bool = True,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    **parameters: Any,
) -> MapResult:
    """Make a map of a table: prepare the columns, fit a method, measure the map.

    This is what ``lowland map`` does, with the same options and the same map. Ctrl-C during the
    optimization keeps the map computed so far.

    Parameters
    ----------
    data : path, data frame, array, sparse matrix or Dataset
        A file, a folder of images or the name of a bundled data set (see
        :func:`lowland.io.read_table`); a pandas or polars data frame; an array of shape
        (n_rows, n_columns); a SciPy sparse matrix; a data set of ``lowland.datasets``. Columns of
        numbers are mapped; columns of text and dates are labels.
    method : str or class, default="tsne"
        A method: its name as in ``lowland methods``, or its class.
    color : str or array of shape (n_rows,), optional
        The column that colors the picture, or its values; by default ``target``, or the first
        label whose values recur.
    labels : names of columns, array of shape (n_rows,), mapping or data frame, optional
        Columns of numbers that are labels and not mapped; or labels that are not part of the
        data: values (called ``label``), or several columns by name.
    target : str or array of shape (n_rows,), optional
        The classes that a supervised method learns from; by default the first label whose values
        recur.
    columns, drop : names of columns, optional
        Map these columns only; leave these columns out.
    one_hot : names of columns, optional
        Columns of text to map as 0/1 columns, one per value.
    id_column : str, optional
        The column that names the rows.
    part : str, optional
        What to take from a container, as in :func:`lowland.io.read_table`.
    distances : bool, default=False
        Whether the data are a square matrix of distances.
    impute : {"mean", "median", "drop-rows"}, optional
        What to do about missing values; by default they are refused.
    scale : {"auto", "none", "standard", "robust"}, default="auto"
        How columns are scaled; "auto" is "standard" if the units seem to differ, else "none".
    pca : int, "auto" or "none", default="auto"
        Columns to reduce to by PCA before the method; "auto" is 50 for neighbor methods.
    measure : bool, default=True
        Whether to measure the map.
    seed : int, default=0
        Seed of everything random.
    n_jobs : int or None, default=None
        Threads; None uses all cores. The map does not depend on it.
    verbose : bool, default=False
        Whether to show progress.
    **parameters
        Parameters of the method, such as ``perplexity=50``. A parameter that the method calls
        ``method`` is ``algorithm`` here.

    Returns
    -------
    MapResult
        The map, the model, the quality, and methods that write them.

    Examples
    --------
    >>> from lowland.study import make_map
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
    options = run_options(
        data,
        color=color,
        labels=labels,
        target=target,
        columns=columns,
        drop=drop,
        one_hot=one_hot,
        id_column=id_column,
        part=part,
        distances=distances,
        impute=impute,
        scale=scale,
        pca=pca,
        measure=measure,
        seed=seed,
        n_jobs=n_jobs,
        verbose=verbose,
        command=_call(data, cls, {"seed": seed, "pca": pca, "scale": scale, **parameters}),
    )
    return run_map(data, cls, given, options)


def method_class(method: str | type[Reducer]) -> type[Reducer]:
    """The class of a method, by its name or itself."""
    if isinstance(method, type) and issubclass(method, Reducer):
        return method
    if not isinstance(method, str):
        raise ParameterError(
            f"method: {method!r} is not allowed; expected the name or the class of a method."
        )
    return registry.get(method)


def run_options(
    data: Any,
    *,
    color: Any,
    labels: Any,
    target: Any,
    columns: Any,
    drop: Any,
    one_hot: Any,
    id_column: str | None,
    part: str | None,
    distances: bool,
    impute: str | None,
    scale: str,
    pca: int | str,
    measure: bool,
    seed: int,
    n_jobs: int | None,
    verbose: bool,
    command: str,
) -> RunOptions:
    """Keywords of a run as its options; labels that are given as values are told from names."""
    names, beside = _labels(data, labels)
    color = _column(color, "color", beside)
    target = _column(target, "target", beside)
    table = TableOptions(
        columns=_names(columns),
        drop=_names(drop),
        labels=names,
        beside=beside,
        one_hot=_names(one_hot),
        id_column=id_column,
        target=target,
        scale=scale,
        impute=impute,
        distances=distances,
        part=part,
    )
    fit = FitOptions(seed, n_jobs, verbose, str(pca))
    return RunOptions(table, fit, color, measure, command)


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))


def _labels(data: Any, labels: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Names of label columns of the data, and labels that are given as values."""
    if labels is None:
        return (), {}
    if hasattr(labels, "columns"):
        return (), {str(name): labels[name] for name in labels.columns}
    if isinstance(labels, Mapping):
        return (), {str(name): values for name, values in labels.items()}
    listed = isinstance(labels, list | tuple) and all(isinstance(name, str) for name in labels)
    if isinstance(labels, str) or (listed and has_column_names(data)):
        return _names(labels), {}
    return (), {_series_name(labels, "label"): labels}


def _column(given: Any, default: str, beside: dict[str, Any]) -> str | None:
    """The name of a column; one that is given as values joins the labels."""
    if given is None or isinstance(given, str):
        return given
    name = _series_name(given, default)
    beside[name] = given
    return name


def _series_name(values: Any, default: str) -> str:
    name = getattr(values, "name", None)
    return name if isinstance(name, str) and name else default


def _call(data: Any, cls: type[Reducer], given: dict[str, Any]) -> str:
    """The call that reproduces the run, for the report."""
    source = repr(str(data)) if is_path(data) else "data"
    method = repr(registry.snake_case(cls.__name__))
    usual = {"seed": 0, "pca": "auto", "scale": "auto"}
    shown = [
        f"{name}={'...' if isinstance(value, np.ndarray) else repr(value)}"
        for name, value in given.items()
        if not (name in usual and value == usual[name])
    ]
    return f"lowland.study.make_map({', '.join([source, method, *shown])})"
