"""Options about a table, declared once for all functions and commands that read one."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from lowland._base.constraints import Anything, Boolean, Choice, Cycles, Names, Orders, Text
from lowland._base.errors import PYTHON, ParameterError, Spelling
from lowland._base.options import Options, option


class Codes(Names):
    """Values that mean "missing", as texts: ``value`` or ``column=value``."""

    def take(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            return _parts(value)
        if isinstance(value, Mapping):
            return tuple(f"{name}={v}" for name, each in value.items() for v in _plain(each))
        return tuple(_plain(value))


class Steps(Names):
    """Steps of a normalization; "none" cannot be combined with other steps."""

    def allows(self, value: Any) -> bool:
        from lowland.preparation._scales import STEPS

        known = super().allows(value) and {*value} <= {*STEPS, "none"}
        return known and ("none" not in value or len(value) == 1)

    def describe(self) -> str:
        from lowland.preparation._scales import STEPS

        return (
            f"{', '.join(STEPS)} or several of them, or none; the scale of the map of LLE and its "
            "relatives is map_scale"
        )

    def take(self, value: Any) -> Any:
        return _parts(value) if isinstance(value, str) else super().take(value)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _plain(values: Any) -> list[str]:
    """One or several values as texts."""
    import numpy as np

    found = []
    for value in values if isinstance(values, list | tuple | set | np.ndarray) else [values]:
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, str | int | float):
            what = f"{value!r} is not allowed; expected numbers or text"
            raise ParameterError(f"missing_values: {what}.")
        found.append(value.strip() if isinstance(value, str) else repr(value))
    return found


# Options that decide what is read; the others decide how it is prepared for a map.
READING = (
    *("columns", "use", "drop", "labels", "label_file", "id_column", "part", "vector"),
    *("distances", "missing_values", "transpose", "similarities"),
)
# The model decides which columns of new rows are read and how they are prepared.
PLACING = ("labels", "label_file", "id_column", "part", "vector", "transpose")
# Distances have no columns to select.
SELECTING = ("target", *(name for name in READING if name not in ("distances", "similarities")))
DESCRIBING = (*READING, "categories")
# Options about each of several tables that are aligned.
ALIGNING = (
    *("columns", "use", "drop", "labels", "categories", "one_hot", "order", "cyclic", "id_column"),
    *("scale", "missing", "missing_values", "normalize", "transpose", "part", "vector"),
)


@dataclasses.dataclass(frozen=True)
class TableOptions(Options):
    """The options of a table: which columns take part, and how they are prepared.

    Parameters
    ----------
    columns : names of columns, optional
        The columns to map; by default all of numbers that do not look like ids or classes.
    use : names of columns, optional
        Columns to map although they look like ids, classes or dates. Dates and times become
        numbers, in a unit that the log states.
    drop : names of columns, optional
        Columns to leave out.
    labels : names of columns, array of shape (n_rows,), mapping or data frame, optional
        Columns of numbers that are labels, not features. In Python also labels that are not part
        of the data: values (called ``label``), or several columns by name.
    label_file : path, optional
        A table of labels of the same rows, joined by the row ids, or by order without ids. The ids
        are in its column of that name, in what looks like an id in it, or in its first column.
    id_column : str, optional
        The column that names the rows; by default the ids of the file, or a column that looks
        like an id.
    part : str, optional
        What to take from a container: an array of an NPZ, a sheet of an Excel file, or layers/NAME
        or obsm/NAME of an H5AD. See :func:`lowland.tables.read_table`.
    vector : str, optional
        The column whose lists of numbers are mapped, if several columns hold lists.
    distances : bool, default=False
        The data are a square matrix of distances.
    missing_values : value, sequence of values or mapping, optional
        Values that mean "missing". In Python ``[-999, "?"]``; ``{"age": -1}`` or ``"age=-1"`` means
        those of one column. Columns of text that have only numbers left become numbers.
    transpose : bool, default=False
        The rows of the data are the columns to map, such as genes in rows and cells in columns.
        Names of rows (``id_column``, or the first column of text) become names of columns.
    similarities : bool, default=False
        The data are a square matrix of similarities, such as correlations. They become the
        distances sqrt(s_ii + s_jj - 2 s_ij).
    categories : {"auto", "one-hot", "label", "drop"}, default="auto"
        How columns of text are used; auto: label if there are two columns of numbers. "one-hot"
        maps those whose values recur, at most 50 of them, as 0/1 columns, one per value; "label"
        keeps text as labels; "drop" leaves it out. "auto" is "label" if there are at least two
        columns of numbers, else "one-hot" without a column that is called class, type, species or
        the like, if there are others.
    one_hot : names of columns, optional
        Columns to map as 0/1 columns, one per value, and no others.
    order : dict of str to sequence of str, optional
        Columns of text whose values are ordered. In Python ``{"size": ["low", "medium", "high"]}``;
        they are mapped as equally spaced numbers.
    cyclic : dict of str to number or str, optional
        Columns that repeat, with their period. The period is a number, in Python ``{"hour": 24}``,
        or for dates and times "minute", "hour", "day", "week" or "year". Each column is mapped as a
        point on a circle.
    missing : {"refuse", "drop", "mean", "median", "neighbors", "keep"}, default="refuse"
        Missing values: refuse, drop (their rows), mean, median, neighbors or keep. They are filled
        with the mean or the median of the column, or with the mean of the 5 nearest rows that have
        a value there. "keep" leaves them to a method that uses the other values of a row, such as
        SOM and GTM.
    normalize : str or sequence of {"cpm", "log1p", "l2"}, optional
        Normalize each row, in the order given: cpm (to the sum 1e6), log1p, l2 (to the length 1),
        or none. "cpm" means counts per million, and "log1p" replaces x by log(1 + x).
        ``"cpm,log1p"`` is usual for counts; "none" does nothing, and suppresses the suggestion.
    scale : {"auto", "none", "standard", "robust"}, default="auto"
        Scale columns: auto, none, standard, robust; auto: standard if the units seem to differ. It
        is "standard", too, if categories take part, which are not scaled themselves. "robust" uses
        the median and the quartiles.
    target : str or array of shape (n_rows,), optional
        The column that the method learns from; by default, if it needs one, a label of classes.
        That is a label called class, target, species or the like, or the first label whose values
        recur. UMAP learns from classes or numbers, and only if they are given here.
    """

    columns: tuple[str, ...] = option(Names(), default=(), metavar="COLUMN,...")
    use: tuple[str, ...] = option(Names(), default=(), metavar="COLUMN,...", group="columns")
    drop: tuple[str, ...] = option(Names(), default=(), metavar="COLUMN,...")
    labels: tuple[str, ...] = option(Names(), default=(), metavar="COLUMN,...")
    label_file: str | os.PathLike[str] | None = option(Anything(), metavar="FILE", group="columns")
    id_column: str | None = option(Text("a name"), metavar="COLUMN", group="columns")
    part: str | None = option(Text("a name"), metavar="NAME", group="input")
    vector: str | None = option(Text("a name"), metavar="COLUMN", group="input")
    distances: bool = option(Boolean(), default=False, group="input")
    missing_values: tuple[str, ...] = option(
        Codes(), default=(), metavar="VALUE,...", group="input", example="-999,? or age=-1"
    )
    transpose: bool = option(Boolean(), default=False, group="input")
    similarities: bool = option(Boolean(), default=False, group="input")
    categories: str = option(
        Choice("auto", "one-hot", "label", "drop"), default="auto", group="preparation"
    )
    one_hot: tuple[str, ...] = option(
        Names(), default=(), metavar="COLUMN,...", group="preparation"
    )
    order: Mapping[str, Sequence[str]] | None = option(
        Orders(), metavar="ORDER", group="preparation", example="'size,weight=low,medium,high'"
    )
    cyclic: Mapping[str, Any] | None = option(
        Cycles(), metavar="PERIODS", group="preparation", example="hour=24, or dates when=week"
    )
    missing: str = option(
        Choice("refuse", "drop", "mean", "median", "neighbors", "keep", drop_rows="drop"),
        default="refuse",
        metavar="HOW",
        also=("--impute",),
    )
    normalize: tuple[str, ...] = option(
        Steps(), default=(), metavar="STEP,...", group="preparation"
    )
    scale: str = option(Choice("auto", "none", "standard", "robust"), default="auto", metavar="HOW")
    target: str | None = option(Text("the name of a column"), metavar="COLUMN", group="map")
    # Not for the user: values of labels, and facts that the caller has.
    beside: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    missing_distances: bool = False  # whether the method accepts unknown distances
    missing_values_taken: bool = False  # whether the method takes rows with missing values
    kept: tuple[str, ...] = ()  # labels that other options name
    learns: bool = False  # whether the method learns from a label
    gower: bool = False  # whether rows are compared by Gower's distance
    spelling: Spelling = PYTHON

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.missing_values:
            from lowland.preparation._categories import parse_codes

            parse_codes(self.missing_values)

    @property
    def steps(self) -> list[str]:
        """Steps of the normalization of rows."""
        return [step for step in self.normalize if step != "none"]

    @classmethod
    def from_keywords(cls, data: Any, given: Mapping[str, Any]) -> TableOptions:
        """The options; labels given as values are distinguished from names of columns."""
        found = dict(given)
        names, beside = _labels(data, found.pop("labels", None))
        target = found.pop("target", None)
        options = dataclasses.replace(
            super().from_keywords(data, found), labels=names, beside=beside
        )
        options, target = options.naming(target, "target")
        return dataclasses.replace(options, target=target)

    def naming(self, column: Any, default: str) -> tuple[TableOptions, str | None]:
        """The name of a column; one that is given as values joins the labels."""
        if column is None or isinstance(column, str):
            return self, column
        name = _series_name(column, default)
        return dataclasses.replace(self, beside={**self.beside, name: column}), name

    def for_data(self, data: Any) -> TableOptions:
        """The same options; bundled tables of distances need not be declared as such."""
        from lowland.tables.in_memory import is_path
        from lowland.tables.sources import holds_distances

        known = holds_distances(data) if is_path(data) else getattr(data, "distances", False)
        if known is not True and not self.similarities:
            return self
        return dataclasses.replace(self, distances=True)


TABLE = tuple(TableOptions.declared())
FOREIGN = tuple(name for name in TABLE if name != "target")  # a given map learns from nothing


def _labels(data: Any, labels: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Names of label columns of the data, and labels that are given as values."""
    if labels is None:
        return (), {}
    from lowland.tables.in_memory import has_column_names

    if hasattr(labels, "columns"):
        return (), {str(name): labels[name] for name in labels.columns}
    if isinstance(labels, Mapping):
        return (), {str(name): values for name, values in labels.items()}
    listed = isinstance(labels, list | tuple) and all(isinstance(name, str) for name in labels)
    # the data of an alignment are several tables
    tables = data if isinstance(data, list | tuple) else ()
    named = has_column_names(data) or any(has_column_names(one) for one in tables)
    if isinstance(labels, str) or (listed and named):
        return Names().take(labels), {}
    return (), {_series_name(labels, "label"): labels}


def _series_name(values: Any, default: str) -> str:
    name = getattr(values, "name", None)
    return name if isinstance(name, str) and name else default
