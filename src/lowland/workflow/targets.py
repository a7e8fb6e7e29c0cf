"""The column that a method learns from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.base import Reducer
from lowland._base.errors import PYTHON, DataError, ParameterError, Spelling, count
from lowland.tables import Table
from lowland.tables.columns.guessing import is_the_class

if TYPE_CHECKING:
    import polars as pl


class Target(NamedTuple):
    """The column that a method learns from; None if it learns from the rows alone."""

    column: str | None = None
    values: Any = None
    parameters: dict[str, Any] = {}  # of the method, as the kind of the values demands
    log: tuple[str, ...] = ()


NO_TARGET = Target()


def learned_target(
    table: Table,
    cls: type[Reducer],
    asked: str | None,
    given: dict[str, Any],
    spelling: Spelling = PYTHON,
) -> Target:
    """What a method with the given parameters learns from.

    A method that needs classes takes the column asked for, or the label that looks like classes. A
    method that can do without learns only from a column that was asked for.
    """
    if cls.needs_target:
        name = asked or first_class(table)
        if name is None:
            raise DataError(
                f"{cls.__name__} learns from classes, and {table.source} has no column of labels; "
                f"name the column of classes with {spelling.option('target')}."
            )
        return Target(name, table.column(name).to_numpy(), log=(f"learned from the column {name}",))
    if not cls.uses_target or asked is None:
        return NO_TARGET
    if given.get("target_weight") == 0:
        line = f"not learned from the column {asked}, because target_weight is 0"
        return Target(log=(line,))
    column = table.column(asked)
    if _holds_numbers(column, given.get("target_metric"), spelling):
        return _numbers(column, given, spelling)
    return Target(asked, column.to_numpy(), log=(_about_classes(column, given, spelling),))


def _holds_numbers(column: pl.Series, metric: str | None, spelling: Spelling) -> bool:
    """Whether a target is measurements, not classes; refused if it is not what was said."""
    fraction = _first_fraction(column)
    if metric == "categorical" and fraction is not None:
        raise ParameterError(
            f"{spelling.option('target_metric', metric)}: the column {column.name!r} holds "
            f"{fraction!r}, which is no class; take "
            f"{spelling.option('target_metric', 'euclidean')}, or name a column of classes with "
            f"{spelling.option('target')}."
        )
    if metric == "euclidean" and not column.dtype.is_numeric():
        raise ParameterError(
            f"{spelling.option('target_metric', metric)}: the column {column.name!r} holds no "
            f"numbers; take {spelling.option('target_metric', 'categorical')}, or name a column of "
            f"numbers with {spelling.option('target')}."
        )
    return metric == "euclidean" or (metric is None and fraction is not None)


def _first_fraction(column: pl.Series) -> float | None:
    if not column.dtype.is_float():
        return None
    fractions = column.filter(column.is_finite() & (column != column.floor()))
    return None if fractions.is_empty() else float(fractions[0])


def _numbers(column: pl.Series, given: dict[str, Any], spelling: Spelling) -> Target:
    unknown = int(column.is_null().sum())
    if column.dtype.is_float():
        unknown += int(column.is_nan().sum())
    if unknown:
        raise DataError(
            f"{spelling.option('target')}: the column {column.name!r} has no number in "
            f"{count(unknown, 'row')}; leave these rows out, or name another column."
        )
    line = f"learned from the column {column.name}, as numbers"
    if "target_metric" in given:
        return Target(column.name, column.to_numpy(), log=(line,))
    line += ", because it has fractions (target_metric euclidean)"
    return Target(column.name, column.to_numpy(), {"target_metric": "euclidean"}, (line,))


def _about_classes(column: pl.Series, given: dict[str, Any], spelling: Spelling) -> str:
    known = column.drop_nulls()
    if column.dtype.is_numeric():
        known = known.filter(known != -1)
        known = known.drop_nans() if known.dtype.is_float() else known
    line = f"learned from the column {column.name}, as {known.n_unique()} classes"
    if column.dtype.is_numeric() and "target_metric" not in given:
        line += f" ({spelling.option('target_metric', 'euclidean')} takes them as numbers)"
    without = len(column) - len(known)
    return f"{line}; the class of {count(without, 'row')} is unknown" if without else line


def first_class(table: Table) -> str | None:
    """The label that is most likely the classes: one whose values recur, as names of rows do not.

    Labels called class, target, species or the like come first, and what looks like an id last.
    """
    ids = {guess.name for guess in table.guesses if guess.role != "class"}
    ranks = {
        name: 2 if name in ids else 0 if is_the_class(name) else 1 for name in table.labels.columns
    }
    for name in sorted(ranks, key=ranks.__getitem__):
        if table.labels[name].n_unique() <= max(2, len(table.labels) // 2):
            return name
    return None
