"""Which columns of text, truth values and dates take part in a map, and how; each choice is logged.

Text is a label as long as there are columns of numbers to map. In a table without them, such as a
survey, the categories are the data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError, unknown_name
from lowland._core.wording import count, listing
from lowland.io import Table
from lowland.io.columns.name_rules import is_the_class
from lowland.preparation._categories import as_text
from lowland.preparation._dates import looks_like_dates
from lowland.preparation.preparation import Preparation
from lowland.study.tables._ordinals import shared_orders
from lowland.study.tables.options import TableOptions

if TYPE_CHECKING:
    import polars as pl

MOST_LEVELS = 50  # values of a category; text with more is a name or a remark
ENOUGH_NUMBERS = 2  # columns; with fewer, categories take part by themselves
LISTED = 4  # names in a line of the log


class TakingPart(NamedTuple):
    """A table whose labels are settled, and the label columns that take part in the map."""

    table: Table
    names: list[str]  # label columns, in the order of the table
    dates: list[str]  # those of them that hold dates or times
    log: list[str]


def take_part(table: Table, options: TableOptions) -> TakingPart:
    """Choose the columns that take part beside the numbers."""
    log: list[str] = []
    asked = _asked(table, options)
    # Dates are found only among columns that somebody named, or that might be categories.
    named = {*asked}
    free = [name for name in _free_texts(table, options) if name not in named]
    few = [name for name in free if few_values(table.labels[name])]
    chosen = _chosen(table, options, few, asked, log)
    taken = {*asked, *chosen}
    names = [name for name in table.labels.columns if name in taken]
    if not names and not table.shape[1]:
        raise _nothing_to_map(table, options, few)
    dates = [
        name
        for name in names
        if name not in (options.order or {}) and _is_date(table, name, options)
    ]
    _hint_orders(table, options, [*few, *(name for name in asked if name in options.one_hot)], log)
    return TakingPart(_with_labels_first(table, options, free, names), names, dates, log)


def frame_of(table: Table, names: Sequence[str], dates: Sequence[str]) -> Any:
    """The features, followed by the columns that take part, as the preparation reads them."""
    import polars as pl

    if not names:
        return table.features
    columns = [
        table.labels[name] if name in dates else as_text(table.labels[name]) for name in names
    ]
    if not table.shape[1]:
        return pl.DataFrame(columns)
    if not isinstance(table.features, pl.DataFrame):
        raise DataError(
            f"{table.source}: {listing(names)} cannot take part, because the other columns have "
            "no names or are sparse; give a table whose columns have names."
        )
    return table.features.hstack(columns)


def few_values(column: pl.Series) -> bool:
    """Whether the values of a column recur, as those of a category do."""
    missing = column.null_count()
    values = column.n_unique() - bool(missing)
    return 1 < values <= min(MOST_LEVELS, max(2, (len(column) - missing) // 2))


def encoding_log(preparation: Preparation) -> list[str]:
    """What became of columns that are not numbers."""
    from lowland.preparation._dates import period_name, unit_name

    lines = []
    levels, switches = preparation.levels_, preparation.switch_columns_
    if len(levels) or len(switches):
        names = [*dict.fromkeys([*preparation.level_columns_, *switches])]
        order = {name: i for i, name in enumerate(preparation.feature_names_in_)}
        shown = listing(sorted(names, key=lambda name: order[name]), 8, quote=False)
        made = count(len(levels) + len(switches), "column")
        lines.append(f"turned {shown} into {made} of 0 and 1")
    scales: dict[str, list[str]] = {}
    for name in dict.fromkeys(preparation.step_columns_):
        steps = preparation.steps_[preparation.step_columns_ == name]
        scales.setdefault(" < ".join(steps), []).append(name)
    for scale, names in scales.items():
        lines.append(f"{listing(names, 8, quote=False)} in order: {scale}")
    cycles = dict(zip(preparation.cycle_columns_, preparation.cycle_lengths_, strict=True))
    for name, unit in zip(preparation.date_columns_, preparation.date_units_, strict=True):
        if name not in cycles:
            lines.append(f"{name} is mapped as the number of {unit_name(unit)} since its first")
    for name, length in cycles.items():
        dated = name in preparation.date_columns_
        period = period_name(length) if dated else f"{length:g}"
        lines.append(f"{name} is mapped as a point on a circle (sin, cos); its period is {period}")
    return lines


# --- which columns ----------------------------------------------------------------------------


def _asked(table: Table, options: TableOptions) -> list[str]:
    """Label columns that the user wants to take part."""
    known = list(table.labels.columns)
    say = options.spelling.option
    features = {*(table.feature_names or ())}
    for option in ("one_hot", "order", "cyclic"):
        for name in getattr(options, option) or ():
            if name not in known and not (option == "cyclic" and name in features):
                every = [*known, *features] if option == "cyclic" else known
                raise DataError(
                    f"{table.source}: {say(option)}: {unknown_name('column', name, every)}"
                )
    named = {*options.one_hot, *(options.order or ()), *(options.cyclic or ())}
    named |= {*options.columns, *options.use}
    return [name for name in known if name in named]


def _free_texts(table: Table, options: TableOptions) -> list[str]:
    """Columns of text and truth values whose role nobody has chosen."""
    import polars as pl

    settled = {*options.labels, options.target, *options.kept, *options.beside}
    kinds = (pl.String, pl.Boolean, pl.Categorical, pl.Enum)
    return [
        column.name
        for column in table.labels
        if column.dtype in kinds
        and column.name not in settled
        and column.name != table.ids.name
        and not (column.dtype == pl.String and looks_like_dates(column))
    ]


def _chosen(
    table: Table, options: TableOptions, few: list[str], asked: list[str], log: list[str]
) -> list[str]:
    """The categories that take part without being named."""
    say, how = options.spelling.option, options.categories
    if how in ("label", "drop") or not few or options.columns or options.one_hot:
        return []
    mappable = table.feature_names is not None or not table.shape[1]
    if how == "auto" and (table.shape[1] >= ENOUGH_NUMBERS or not mappable):
        apart = [name for name in few if not is_the_class(name)]
        if mappable and apart:
            log.append(
                f"text is not mapped: {listing(apart, LISTED, quote=False)} "
                f"({say('categories', 'one-hot')} maps it)"
            )
        return []
    if how == "auto" and len(few) + len(asked) + table.shape[1] < ENOUGH_NUMBERS:
        return []  # a map of one category shows nothing
    kept = _label_kept(table, options, few) if how == "auto" or options.learns else None
    chosen = [name for name in few if name != kept]
    if how == "auto":
        numbers = count(table.shape[1], "column") if table.shape[1] else "no column"
        log.append(
            f"text takes part, because there is {numbers} of numbers "
            f"({say('categories', 'label')} maps no text)"
        )
    if kept is not None:
        way = "" if options.learns else f" ({say('categories', 'one-hot')} maps it, too)"
        log.append(f"{kept} stays a label{way}")
    return chosen


def _label_kept(table: Table, options: TableOptions, few: list[str]) -> str | None:
    """The category that a map is compared with, if others are left."""
    if len(few) + table.shape[1] < 2 or options.target in table.labels.columns:
        return None
    named = [name for name in few if is_the_class(name)]
    return next(iter(named or (few if options.learns else ())), None)


def _is_date(table: Table, name: str, options: TableOptions) -> bool:
    """Dates by type, and text that is used as such."""
    import polars as pl

    column = table.labels[name]
    if column.dtype.is_temporal():
        return True
    if column.dtype != pl.String or name in options.one_hot:
        return False
    return name in (options.cyclic or {}) or looks_like_dates(column)


def _with_labels_first(
    table: Table, options: TableOptions, free: list[str], names: list[str]
) -> Table:
    """The table whose labels come first, as a color is looked for among them from the start."""
    labels = table.labels
    taken = {*names}
    if options.categories == "drop":
        labels = labels.drop([name for name in free if name not in taken])
    if not names:
        return dataclasses.replace(table, labels=labels)
    order = [*(name for name in labels.columns if name not in taken), *names]
    return dataclasses.replace(table, labels=labels.select(order))


def _nothing_to_map(table: Table, options: TableOptions, few: list[str]) -> DataError:
    say = options.spelling.option
    found = [f"{column.name!r} ({column.dtype})" for column in table.labels]
    advice = f"{say('categories', 'one-hot')} maps text of few values"
    if not few:
        advice = (
            f"text takes part if it has at most {MOST_LEVELS} values that recur; name columns with "
            f"{say('one_hot')}, or dates with {say('use')}"
        )
    numbers = [guess for guess in table.guesses if not guess.is_text]
    if numbers:
        reasons = "; ".join(f"{guess.name!r}: {guess.reason}" for guess in numbers)
        back = options.spelling.columns("use", [guess.name for guess in numbers])
        return DataError(f"{table.source}: no column is left to map ({reasons}); {back} maps it.")
    lack = f"{say('drop')} leaves no" if options.drop else "no"
    return DataError(
        f"{table.source}: {lack} column of numbers; found {listing(found, quote=False)}; {advice}."
    )


# --- hints ------------------------------------------------------------------------------------


def _hint_orders(table: Table, options: TableOptions, names: Sequence[str], log: list[str]) -> None:
    values = {}
    for name in names:
        column = table.labels[name]
        if name not in (options.order or {}) and column.n_unique() <= MOST_LEVELS:
            values[name] = sorted({*as_text(column).to_list()} - {None})
    for alike, order in shared_orders(values):
        seem, what = ("looks", "it") if len(alike) == 1 else ("look", "them")
        option = order_option(options, alike, order)
        shown = listing(alike, LISTED, quote=False)
        log.append(f"{shown} {seem} ordered; {option} maps {what} as equal steps")


def order_option(options: TableOptions, names: Sequence[str], order: Sequence[str]) -> str:
    """The option as the user would write it."""
    if options.spelling.command_line:
        return f"--order '{','.join(names)}={','.join(order)}'"
    if len(names) == 1:
        return f"order={ {names[0]: list(order)}!r}"
    return f"order=dict.fromkeys({list(names)}, {list(order)})"


def missing_in(table: Table, part: TakingPart, options: TableOptions) -> dict[str, np.ndarray]:
    """Where ordered values and dates are missing, by column; a missing category is a category."""
    numbers = [*part.dates, *(name for name in part.names if name in (options.order or {}))]
    return {
        name: table.labels[name].is_null().to_numpy()
        for name in dict.fromkeys(numbers)
        if table.labels[name].has_nulls()
    }
