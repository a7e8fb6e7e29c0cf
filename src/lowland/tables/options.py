"""Options about a table, declared once for all functions and commands that read one."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lowland._base.errors import PYTHON, ParameterError, Spelling
from lowland._base.errors import shown as shown_value
from lowland._base.params import complete, entries
from lowland.preparation._categories import parse_codes
from lowland.preparation._scales import STEPS
from lowland.preparation.encoding import Cycles, Orders
from lowland.tables import holds_distances
from lowland.tables.in_memory import has_column_names, is_path

CHOICES = {
    "scale": ("auto", "none", "standard", "robust"),
    "missing": ("refuse", "drop", "mean", "median", "neighbors", "keep"),
    "categories": ("auto", "one-hot", "label", "drop"),
}
MAPPINGS = {"order": Orders(), "cyclic": Cycles()}
# Options that decide what is read; the others decide how it is prepared for a map.
READING = (
    *("columns", "use", "drop", "labels", "label_file", "id_column", "part", "vector"),
    *("distances", "missing_values", "transpose", "similarities"),
)


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """What the user says about a table: which columns take part, and how they are prepared.

    Parameters
    ----------
    columns : names of columns, optional
        Columns to map; by default all columns of numbers that do not look like ids or classes.
    use : names of columns, optional
        Columns to map although they look like ids, classes or dates. Dates and times become
        numbers, in a unit that the log states.
    drop : names of columns, optional
        Columns to leave out.
    labels : names of columns, array of shape (n_rows,), mapping or data frame, optional
        Columns of numbers that are labels and not mapped; or labels that are not part of the
        data: values (called ``label``), or several columns by name.
    label_file : path, optional
        A table of labels of the same rows, joined by the row ids (its column of that name, what
        looks like an id in it, or its first column), or by order if the data have no ids.
    id_column : str, optional
        The column that names the rows; by default what the file offers or what looks like an id.
    part : str, optional
        What to take from a container, as in :func:`lowland.tables.read_table`.
    vector : str, optional
        The column whose lists of numbers are mapped, such as ``embedding``; needed if several
        columns hold lists.
    distances : bool, default=False
        Whether the data are a square matrix of distances.
    missing_values : value, sequence of values or mapping, optional
        Values that mean "missing", such as ``[-999, "?"]``; ``{"age": -1}`` or ``"age=-1"`` means
        those of one column. Columns of text that have only numbers left become numbers.
    transpose : bool, default=False
        Whether the rows of the data are the columns to map, such as genes in rows and cells in
        columns. Names of rows (``id_column``, or the first column of text) become names of columns.
    similarities : bool, default=False
        Whether the data are a square matrix of similarities, such as correlations; they become the
        distances sqrt(s_ii + s_jj - 2 s_ij).
    categories : {"auto", "one-hot", "label", "drop"}, default="auto"
        What becomes of columns of text. "one-hot" maps those whose values recur, at most 50 of
        them, as 0/1 columns, one per value; "label" keeps text as labels; "drop" leaves it out.
        "auto" is "label" if there are at least two columns of numbers, else "one-hot" without
        a column that is called class, type, species or the like, if there are others.
    one_hot : names of columns, optional
        Columns to map as 0/1 columns, one per value, and no others.
    order : dict of str to sequence of str, optional
        Columns of text whose values are ordered, such as ``{"size": ["low", "medium", "high"]}``;
        they are mapped as equally spaced numbers.
    cyclic : dict of str to number or str, optional
        Columns that repeat, with their period: a number, such as ``{"hour": 24}``, or for dates
        and times "minute", "hour", "day", "week" or "year". Each is mapped as a point on a circle.
    missing : {"refuse", "drop", "mean", "median", "neighbors", "keep"}, default="refuse"
        What to do about missing values: refuse them, drop their rows, or fill them with the mean or
        the median of the column, or with the mean of the 5 nearest rows that have a value there.
        "keep" leaves them to a method that uses the other values of a row, such as SOM and GTM.
    normalize : str or sequence of {"cpm", "log1p", "l2"}, optional
        Steps applied to each row, in this order: "cpm" scales it to the sum 1e6 (counts per
        million), "log1p" replaces x by log(1 + x), "l2" scales it to the length 1.
        ``"cpm,log1p"`` is usual for counts; "none" does nothing, and suppresses the suggestion.
    scale : {"auto", "none", "standard", "robust"}, default="auto"
        How columns are scaled; "auto" is "standard" if the units seem to differ or categories
        take part, else "none". Categories themselves are not scaled.
    target : str or array of shape (n_rows,), optional
        The classes that a supervised method learns from; by default a label called class, target,
        species or the like, or the first label whose values recur. UMAP learns from classes or
        numbers, and only if they are given here.
    """

    columns: tuple[str, ...] = ()
    use: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    label_file: str | os.PathLike[str] | None = None
    id_column: str | None = None
    part: str | None = None
    vector: str | None = None
    distances: bool = False
    missing_values: tuple[str, ...] = ()
    transpose: bool = False
    similarities: bool = False
    categories: str = "auto"
    one_hot: tuple[str, ...] = ()
    order: Mapping[str, Sequence[str]] | None = None
    cyclic: Mapping[str, Any] | None = None
    missing: str = "refuse"
    normalize: tuple[str, ...] = ()  # "none" is a step of its own, that nothing else goes with
    scale: str = "auto"
    target: str | None = None
    # Not for the user: values of labels, and what the caller knows.
    beside: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    missing_distances: bool = False  # whether the method accepts unknown distances
    missing_values_taken: bool = False  # whether the method takes rows with missing values
    kept: tuple[str, ...] = ()  # labels that other options name
    learns: bool = False  # whether the method learns from a label
    gower: bool = False  # whether rows are compared by Gower's distance
    spelling: Spelling = PYTHON

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ParameterError(
                    f"{self.spelling.option(name)}: {value!r} is not allowed; "
                    f"expected {', '.join(allowed)}."
                )
        steps = self.normalize
        if set(steps) - {*STEPS, "none"} or ("none" in steps and len(steps) > 1):
            say = self.spelling.option
            raise ParameterError(
                f"{say('normalize')}: {', '.join(map(str, steps))!r} is not allowed; expected "
                f"{', '.join(STEPS)} or several of them, or none. The scale of the map of LLE and "
                f"its relatives is {say('map_scale')}."
            )
        parse_codes(self.missing_values)
        for name, mapping in MAPPINGS.items():
            value = getattr(self, name)
            if value is not None and not mapping.allows(value):
                raise ParameterError(
                    f"{self.spelling.option(name)}: {shown_value(value)} is not allowed; expected "
                    f"{mapping.describe()}."
                )

    @property
    def steps(self) -> list[str]:
        """Steps of the normalization of rows."""
        return [step for step in self.normalize if step != "none"]

    @classmethod
    def from_keywords(cls, data: Any, given: Mapping[str, Any]) -> TableOptions:
        """Keywords of a function; labels given as values are told from names of columns."""
        found = dict(given)
        for name in ("columns", "use", "drop", "one_hot"):
            if name in found:
                found[name] = _names(found[name])
        if "missing_values" in found:
            found["missing_values"] = missing_codes(found["missing_values"])
        if "normalize" in found:
            found["normalize"] = normalize_steps(found["normalize"])
        labels, beside = _labels(data, found.pop("labels", None))
        target = found.pop("target", None)
        options, target = cls(**found, labels=labels, beside=beside).naming(target, "target")
        return dataclasses.replace(options, target=target)

    def naming(self, column: Any, default: str) -> tuple[TableOptions, str | None]:
        """The name of a column; one that is given as values joins the labels."""
        if column is None or isinstance(column, str):
            return self, column
        name = _series_name(column, default)
        return dataclasses.replace(self, beside={**self.beside, name: column}), name

    def for_data(self, data: Any) -> TableOptions:
        """The same options; bundled tables of distances need not be declared as such."""
        known = holds_distances(data) if is_path(data) else getattr(data, "distances", False)
        if known is not True and not self.similarities:
            return self
        return dataclasses.replace(self, distances=True)


ENTRIES = entries(TableOptions.__doc__, "Parameters")


def takes_table_options(
    names: Sequence[str] = tuple(ENTRIES),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function the options of a table as keywords of its own.

    The function has a parameter ``data`` and a keyword ``table``, which gets the options. Its
    signature and its documentation show each option instead of ``table``.
    """
    fields = {field.name: field for field in dataclasses.fields(TableOptions)}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(function)
        place = list(own.parameters).index("data")

        @functools.wraps(function)
        def with_options(*args: Any, **keywords: Any) -> Any:
            data = args[place] if place < len(args) else keywords.get("data")
            given = {name: keywords.pop(name) for name in names if name in keywords}
            return function(*args, table=TableOptions.from_keywords(data, given), **keywords)

        shown = []
        for name, parameter in own.parameters.items():
            if name != "table":
                shown.append(parameter)
                continue
            for option in names:
                default = None if fields[option].default == () else fields[option].default
                shown.append(parameter.replace(name=option, default=default, annotation=Any))
        with_options.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
        with_options.__doc__ = complete(function.__doc__, {"Parameters": (names, ENTRIES)})
        return with_options

    return decorate


def missing_codes(given: Any) -> tuple[str, ...]:
    """Values that mean missing as texts: ``value`` or ``column=value``."""
    if given is None:
        return ()
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    if isinstance(given, Mapping):
        pairs = given.items()
        return tuple(f"{name}={_plain(v)}" for name, each in pairs for v in _several(each))
    return tuple(_plain(value) for value in _several(given))


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple | set | np.ndarray) else [value]


def _plain(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | int | float):
        raise ParameterError(f"missing_values: {value!r} is not allowed; expected numbers or text.")
    return value.strip() if isinstance(value, str) else repr(value)


def normalize_steps(given: Any) -> tuple[str, ...]:
    """Steps of a normalization, given as one text or several."""
    if given is None:
        return ()
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    return tuple(given)


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
    # the data of an alignment are several tables
    tables = data if isinstance(data, list | tuple) else ()
    named = has_column_names(data) or any(has_column_names(one) for one in tables)
    if isinstance(labels, str) or (listed and named):
        return _names(labels), {}
    return (), {_series_name(labels, "label"): labels}


def _series_name(values: Any, default: str) -> str:
    name = getattr(values, "name", None)
    return name if isinstance(name, str) and name else default
