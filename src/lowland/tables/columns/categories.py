"""Which columns of text, truth values and dates take part in a map, and how; each choice is logged.

Text is a label as long as there are columns of numbers to map. In a table without them, such as a
survey, the categories are the data.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.errors import DataError, count, listing, unknown_name
from lowland.preparation._categories import as_text
from lowland.preparation._dates import looks_like_dates
from lowland.preparation.preparation import Preparation
from lowland.tables import Table
from lowland.tables.columns.guessing import described, is_text, is_the_class
from lowland.tables.options import TableOptions

if TYPE_CHECKING:
    import polars as pl

# Words whose order is well known, for a hint about columns of text.


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


_PLACES = tuple(
    {word.strip(): i for i, words in enumerate(line.split(",")) for word in words.split("|")}
    for line in _ORDERS
)


def known_order(values: Sequence[str]) -> list[str] | None:
    """The values in the order that their words have; None if it is not known.

    >>> known_order(["high", "low", "medium"])
    ['low', 'medium', 'high']
    """
    if len(values) < FEWEST:
        return None
    for places in _PLACES:
        found = [places.get(value.strip().casefold().replace("_", " ")) for value in values]
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
        own = known_order(values)
        if own is None:
            continue
        for names, order in groups:
            wider = known_order([*dict.fromkeys([*order, *values])])
            if wider is not None:
                names.append(name)
                order[:] = wider
                break
        else:
            groups.append(([name], own))
    return groups


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
    """Choose the columns that take part in addition to the numbers."""
    log: list[str] = []
    labels, ordered = table.labels, options.order or {}
    asked = _asked(table, options)
    # Dates are found only among columns that somebody named, or that might be categories.
    settled = {*options.labels, options.target, *options.kept, *options.beside, table.ids.name}
    settled |= {*asked}
    free = [c.name for c in labels if c.name not in settled and _is_text_without_dates(c)]
    few = [name for name in free if few_values(labels[name])]
    taken = {*asked, *_chosen(table, options, few, asked, log)}
    names = [name for name in labels.columns if name in taken]
    if not names and not table.shape[1]:
        raise _nothing_to_map(table, options, few)
    dates = [n for n in names if n not in ordered and _is_date(labels[n], options)]
    values = {}
    for name in [*few, *(name for name in asked if name in options.one_hot)]:
        if name not in ordered and labels[name].n_unique() <= MOST_LEVELS:
            values[name] = sorted({*as_text(labels[name]).to_list()} - {None})
    for alike, order in shared_orders(values):
        seem, what = ("looks", "it") if len(alike) == 1 else ("look", "them")
        option = order_option(options, alike, order)
        shown = listing(alike, LISTED, quote=False)
        log.append(f"{shown} {seem} ordered; {option} maps {what} as equal steps")
    if options.categories == "drop":
        labels = labels.drop([name for name in free if name not in taken])
    if names:  # labels come first, as a color is looked for among them from the start
        labels = labels.select([*(name for name in labels.columns if name not in taken), *names])
    return TakingPart(dataclasses.replace(table, labels=labels), names, dates, log)


def _is_text_without_dates(column: pl.Series) -> bool:
    import polars as pl

    if column.dtype == pl.String:
        return not looks_like_dates(column)
    return column.dtype in (pl.Boolean, pl.Categorical, pl.Enum)


def _is_date(column: pl.Series, options: TableOptions) -> bool:
    """Dates by type, and text that is used as such."""
    if column.dtype.is_temporal():
        return True
    if not is_text(column.dtype) or column.name in options.one_hot:
        return False
    return column.name in (options.cyclic or {}) or looks_like_dates(column)


def frame_of(table: Table, names: Sequence[str], dates: Sequence[str]) -> Any:
    """The features, followed by the columns that take part, as the preparation reads them."""
    import polars as pl

    if not names:
        return table.features
    columns = [as_text(table.labels[n]) if n not in dates else table.labels[n] for n in names]
    if not table.shape[1]:
        return pl.DataFrame(columns)
    if not isinstance(table.features, pl.DataFrame):
        why = "because the other columns have no names or are sparse"
        raise DataError(f"{table.source}: {listing(names)} cannot take part, {why}.")
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
    for option in ("one_hot", "order", "cyclic"):
        every = [*known, *(table.feature_names or ())] if option == "cyclic" else known
        for name in getattr(options, option) or ():
            if name not in every:
                what = unknown_name("column", name, every)
                raise DataError(f"{table.source}: {options.spelling.option(option)}: {what}")
    named = {*options.one_hot, *(options.order or ()), *(options.cyclic or ())}
    named |= {*options.columns, *options.use}
    return [name for name in known if name in named]


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
            back = f"{say('categories', 'one-hot')} maps it"
            log.append(f"text is not mapped: {listing(apart, LISTED, quote=False)} ({back})")
        return []
    if how == "auto" and len(few) + len(asked) + table.shape[1] < ENOUGH_NUMBERS:
        return []  # a map of one category shows nothing
    kept = None  # the category that a map is compared with, if others are left
    free = len(few) + table.shape[1] > 1 and options.target not in table.labels.columns
    if free and (how == "auto" or options.learns):
        named = [name for name in few if is_the_class(name)]
        kept = next(iter(named or (few if options.learns else ())), None)
    chosen = [name for name in few if name != kept]
    if how == "auto":
        numbers = count(table.shape[1], "column") if table.shape[1] else "no column"
        back = f"{say('categories', 'label')} maps no text"
        log.append(f"text takes part, because there is {numbers} of numbers ({back})")
    if kept is not None:
        way = "" if options.learns else f" ({say('categories', 'one-hot')} maps it, too)"
        log.append(f"{kept} stays a label{way}")
    return chosen


def _nothing_to_map(table: Table, options: TableOptions, few: list[str]) -> DataError:
    say = options.spelling.option
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
    found = described(table.labels.schema)
    return DataError(f"{table.source}: {lack} column of numbers; found {found}; {advice}.")


def order_option(options: TableOptions, names: Sequence[str], order: Sequence[str]) -> str:
    """The option as the user would write it."""
    if options.spelling.command_line:
        return f"--order '{','.join(names)}={','.join(order)}'"
    if len(names) == 1:
        return f"order={ {names[0]: list(order)}!r}"
    return f"order=dict.fromkeys({list(names)}, {list(order)})"


# --- a map of few columns is refused if most of the table was set aside automatically ---


ORDINARY_LABELS = 3  # columns of recurring text that a table may have beside few measurements
LOOKED_AT = 10_000  # rows that tell what a column of text holds
# 1,234 · 12 kg · 3.4% · <0.5 · $ 17
NUMBER_LIKE = r"^\s*[<>~]?\s*[-+]?\s*[$€£¥]?\s*[-+]?\d[\d.,' ]*\s*[%‰°µ²³$€£¥/a-zA-Z]{0,6}\s*$"
LONGEST = 200  # characters of a list of columns that can be copied
NUMBERS, TEXTS = "text that looks like numbers", "text of many values"
NESTED, LABELS = "lists, records or bytes", "text or dates that recur"


def _set_aside(table: Table, names: list[str]) -> dict[str, list[str]]:
    """Columns that were set aside automatically, by a description of their values.

    Text that looks like numbers is described with an example.
    """
    numbers, texts, recurring, example = [], [], [], ""
    for name in names:
        column = table.labels[name].drop_nulls()
        some = column.head(LOOKED_AT)
        alike = some.str.contains(NUMBER_LIKE) if is_text(column.dtype) else some.is_null()
        if 2 * alike.sum() > len(some):
            numbers.append(name)
            example = example or f", such as {some.filter(alike)[0][:40]!r}"
        elif not is_text(column.dtype) or some.n_unique() <= max(2, len(some) // 2):
            recurring.append(name)
        else:
            texts.append(name)
    found = {NUMBERS + example: numbers, TEXTS: texts, NESTED: [*table.left_out], LABELS: recurring}
    return {what: names for what, names in found.items() if names}


def why_refused(table: Table, options: TableOptions, taking_part: Sequence[str] = ()) -> str | None:
    """Why the table would not be mapped, or None.

    It is not if more columns were set aside in doubt than would be mapped, or if a single column
    is left of several: a map of it has no meaning. ``taking_part`` are columns of text or dates
    that are mapped beside the numbers.

    In doubt are columns that may be measurements or texts that a map should have used. Columns of
    recurring text or dates are what tables have as labels beside few measurements, up to three;
    more of them are data. One column of different texts names the rows. Ids and classes do not
    count at all.
    """
    if options.columns or options.distances or table.feature_names is None:
        return None
    n_features = table.shape[1] + len(taking_part)
    unasked = [name for name in table.by_type if name not in taking_part]
    n_apart = len(unasked) + len(table.left_out)
    if n_features > 1 and n_apart <= n_features:
        return None
    found = _set_aside(table, unasked)
    sizes = Counter({what: len(names) for what, names in found.items()})
    doubtful = sizes.total() - min(sizes[LABELS], ORDINARY_LABELS)
    doubtful -= 0 if table.has_ids else min(1, sizes[TEXTS])
    guessed = [guess for guess in table.guesses if not guess.is_text]
    said_so = options.use or options.labels or options.drop or options.target
    alone = n_features == 1 and not said_so and (doubtful or n_apart + len(guessed) > 1)
    if doubtful <= n_features and not alone:
        return None
    guesses = {guess.name: guess.reason for guess in guessed}
    say = options.spelling
    apart = [f"{listing(names, 5)} ({what})" for what, names in found.items()]
    apart += [f"{name!r} ({reason})" for name, reason in guesses.items()]
    ways = [f"{say.option('columns')} names the columns to map"]
    texts = [name for what, names in found.items() if what != NESTED for name in names]
    if texts:
        listed = say.columns("labels", texts)
        listed = listed if len(listed) <= LONGEST else say.option("labels")
        ways.append(f"{listed} keeps text as labels")
        ways.append(f"{say.option('drop')} leaves columns out")
    if LABELS in found:
        ways.append(f"{say.option('categories', 'one-hot')} maps text of few values")
    if NESTED in found:
        ways.append(f"{say.option('vector')} maps a column of lists")
    if guesses:
        ways.append(f"{say.columns('use', [*guesses])} maps ids or classes")
    mapped = listing(list(table.feature_names), 5)
    total = count(n_features + n_apart + len(guesses), "column")
    return (
        f"{table.source}: only {n_features} of {total} would be mapped ({mapped}). Set aside "
        f"automatically: {'; '.join(apart)}. Choose: {'; '.join(ways)}."
    )
