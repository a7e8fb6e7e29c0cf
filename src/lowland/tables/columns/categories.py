"""Which columns of text, truth values and dates take part in a map, and how; each choice is logged.

Text is a label as long as there are columns of numbers to map. In a table without them, such as a
survey, the categories are the data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count, listing, unknown_name
from lowland.preparation._categories import as_text
from lowland.preparation._dates import looks_like_dates
from lowland.preparation.preparation import Preparation
from lowland.tables import Table
from lowland.tables.columns.guessing import is_the_class
from lowland.tables.options import TableOptions

if TYPE_CHECKING:
    import polars as pl

# Words whose order everybody knows, for a hint about columns of text.


FEWEST = 3  # two values are as far apart in order as without
# Each line is one order; words between bars have the same place in it.
_ORDERS = (
    "very low, low, medium|moderate|middle|normal|average, high, very high, extreme",
    "strongly disagree, disagree, somewhat disagree|slightly disagree, neutral|undecided|"
    "neither agree nor disagree|neither, somewhat agree|slightly agree, agree, strongly agree",
    "very small|tiny, small, medium, large|big, very large|huge",
    "xxs, xs, s, m, l, xl, xxl, xxxl",
    "never, rarely|seldom|almost never, sometimes|occasionally, often|frequently|usually, "
    "almost always, always",
    "very bad|very poor|terrible, bad|poor, fair|average|ok|okay|satisfactory, good, "
    "very good, premium, excellent|outstanding|ideal",
    "freezing|very cold, cold, cool, mild, warm, hot, very hot",
    "very dissatisfied, dissatisfied, neutral|neither, satisfied, very satisfied",
    "very unlikely, unlikely, neutral|possible, likely, very likely",
    "none|no, mild|light|slight, moderate|medium, severe|heavy",
    "not at all, slightly|a little, somewhat|moderately, very|quite a bit, extremely|a lot",
    "first|1st, second|2nd, third|3rd, fourth|4th",
    "primary, secondary, tertiary",
    "beginner|novice, intermediate, advanced, expert",
    "slow, medium, fast",
    "short, medium, long",
    "young, middle-aged|adult, old|senior",
)


def _places(line: str) -> dict[str, int]:
    return {
        word.strip(): place
        for place, words in enumerate(line.split(","))
        for word in words.split("|")
    }


_PLACES = tuple(_places(line) for line in _ORDERS)


def known_order(values: Sequence[str]) -> list[str] | None:
    """The values in the order that their words have; None if it is not known.

    >>> known_order(["high", "low", "medium"])
    ['low', 'medium', 'high']
    """
    if len(values) < FEWEST:
        return None
    for places in _PLACES:
        found = [places.get(_word(value)) for value in values]
        if None not in found and len({*found}) == len(found):
            return [value for _, value in sorted(zip(found, values, strict=True))]  # type: ignore[type-var]
    return None


def shared_orders(columns: Mapping[str, Sequence[str]]) -> list[tuple[list[str], list[str]]]:
    """Columns whose values have a known order, those of one scale together, with that order.

    A column may lack some values of the scale that the others have.

    >>> shared_orders({"q1": ["low", "high", "medium"], "q2": ["low", "high", "very low"]})
    [(['q1', 'q2'], ['very low', 'low', 'medium', 'high'])]
    """
    groups: list[tuple[list[str], list[str]]] = []
    for name, values in columns.items():
        if known_order(values) is None:
            continue
        for names, order in groups:
            wider = known_order([*dict.fromkeys([*order, *values])])
            if wider is not None:
                names.append(name)
                order[:] = wider
                break
        else:
            groups.append(([name], known_order(values) or []))
    return groups


def _word(value: str) -> str:
    return value.strip().casefold().replace("_", " ")


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


# --- a map of few columns is refused if most of the table was set aside and nobody asked for it ---


ORDINARY_LABELS = 3  # columns of recurring text that a table may have beside few measurements
LOOKED_AT = 10_000  # rows that tell what a column of text holds
# 1,234 · 12 kg · 3.4% · <0.5 · $ 17
NUMBER_LIKE = r"^\s*[<>~]?\s*[-+]?\s*[$€£¥]?\s*[-+]?\d[\d.,' ]*\s*[%‰°µ²³$€£¥/a-zA-Z]{0,6}\s*$"
LONGEST = 200  # characters of a list of columns that can be copied


class SetAside(NamedTuple):
    """Columns that nobody asked to set aside, by what they hold."""

    numbers: list[str]  # text that looks like numbers
    texts: list[str]  # many different texts
    nested: list[str]  # lists, records, bytes
    labels: list[str]  # texts that recur, dates
    example: str

    def n_doubtful(self, has_ids: bool) -> int:
        """How many of them may be measurements or texts that a map should have used.

        Columns of recurring text or dates are what tables have as labels beside few measurements,
        up to three; more of them are data. One column of different texts names the rows. Ids and
        classes do not count at all.
        """
        names = 0 if has_ids else min(1, len(self.texts))
        labels = max(0, len(self.labels) - ORDINARY_LABELS)
        return len(self.numbers) + len(self.texts) - names + len(self.nested) + labels


def refuse_remains(table: Table, options: TableOptions, taking_part: Sequence[str]) -> None:
    """Refuse to map a table of which more columns were set aside in doubt than would be mapped.

    ``taking_part`` are columns of text or dates that are mapped beside the numbers.
    """
    reason = why_refused(table, options, taking_part)
    if reason is not None:
        raise DataError(reason)


def why_refused(table: Table, options: TableOptions, taking_part: Sequence[str] = ()) -> str | None:
    """Why the table would not be mapped, or None.

    A single column that is left of several is refused, too: a map of it says nothing.
    """
    if options.columns or options.distances or table.feature_names is None:
        return None
    n_features = table.shape[1] + len(taking_part)
    unasked = [name for name in table.by_type if name not in taking_part]
    n_apart = len(unasked) + len(table.left_out)
    if n_features > 1 and n_apart <= n_features:
        return None
    found = _set_aside(table, unasked)
    doubtful = found.n_doubtful(table.has_ids)
    guessed = [guess for guess in table.guesses if not guess.is_text]
    said_so = options.use or options.labels or options.drop or options.target
    alone = n_features == 1 and not said_so and (doubtful or n_apart + len(guessed) > 1)
    if doubtful <= n_features and not alone:
        return None
    return _message(table, options, found, n_features, n_apart + len(guessed))


def _set_aside(table: Table, names: list[str]) -> SetAside:
    import polars as pl

    found = SetAside([], [], list(table.left_out), [], "")
    for name in names:
        column = table.labels[name].drop_nulls()
        if column.dtype != pl.String:
            found.labels.append(name)
            continue
        some = column.head(LOOKED_AT)
        alike = some.str.contains(NUMBER_LIKE)
        if len(some) and alike.mean() > 0.5:  # type: ignore[operator]
            found.numbers.append(name)
            example = some.filter(alike)[0]
            found = found._replace(example=found.example or f", such as {example[:40]!r}")
        elif some.n_unique() <= max(2, len(some) // 2):
            found.labels.append(name)
        else:
            found.texts.append(name)
    return found


def _message(
    table: Table, options: TableOptions, found: SetAside, n_features: int, n_apart: int
) -> str:
    say = options.spelling
    groups = [
        (found.numbers, f"text that looks like numbers{found.example}"),
        (found.texts, "text of many values"),
        (found.nested, "lists, records or bytes"),
        (found.labels, "text or dates that recur"),
    ]
    apart = [f"{listing(names, 5)} ({reason})" for names, reason in groups if names]
    guesses = [guess for guess in table.guesses if not guess.is_text]
    apart += [f"{guess.name!r} ({guess.reason})" for guess in guesses]
    labels = [*found.numbers, *found.texts, *found.labels]
    ways = [f"{say.option('columns')} names the columns to map"]
    if labels:
        listed = say.columns("labels", labels)
        listed = listed if len(listed) <= LONGEST else say.option("labels")
        ways.append(f"{listed} keeps text as labels")
        ways.append(f"{say.option('drop')} leaves columns out")
    if found.labels:
        ways.append(f"{say.option('categories', 'one-hot')} maps text of few values")
    if found.nested:
        ways.append(f"{say.option('vector')} maps a column of lists")
    if guesses:
        ways.append(f"{say.columns('use', [guess.name for guess in guesses])} maps ids or classes")
    mapped = listing(list(table.feature_names or ()), 5)
    return (
        f"{table.source}: only {n_features} of {count(n_features + n_apart, 'column')} would be "
        f"mapped ({mapped}). Set aside without being asked: {'; '.join(apart)}. Say what is meant: "
        f"{'; '.join(ways)}."
    )
