"""Missing values of a table: empty columns are left out, rows dropped, or values refused."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count, listing
from lowland._base.validation import all_finite, is_sparse
from lowland._engines.linalg.moments import column_moments, may_overflow
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland.tables import Table
from lowland.tables.columns.categories import TakingPart
from lowland.tables.columns.guessing import is_text
from lowland.tables.columns.roles import numbers_in_text
from lowland.tables.options import TableOptions


def without_missing(
    table: Table, part: TakingPart, options: TableOptions, log: list[str]
) -> tuple[Table, list[Any]]:
    """The table without rows that have missing values, if that was asked for; and their ids.

    A column without any value is left out. Missing values are refused, with their columns and what
    each option would do, if no option was given for them. A missing category is a category.
    """
    # a missing category is a category
    ordered = [name for name in part.names if name in (options.order or {})]
    columns = [table.labels[name] for name in dict.fromkeys([*part.dates, *ordered])]
    coded = {column.name: column.is_null() for column in columns if column.has_nulls()}
    finite = is_sparse(table.features) or all_finite(np.asarray(table.features))
    if finite and not coded:
        return table, []
    missing, names = np.zeros((table.shape[0], 0), bool), [*map(repr, coded)]
    if not finite:
        table = _without_empty_columns(table, options, log)
        missing = np.isnan(np.asarray(table.features))
        names = [*(_name(table, i) for i in range(table.shape[1])), *names]
    missing = np.column_stack([missing, *coded.values()])
    if not missing.any():
        return table, []
    unusable = options.missing == "keep" and not options.missing_values_taken
    if options.missing == "refuse" or unusable:
        raise DataError(_refusal(table, missing, names, options))
    if options.missing != "drop":
        return table, []
    bad = missing.any(axis=1)
    if bad.all():
        say = functools.partial(options.spelling.option, "missing")
        raise DataError(
            f"{table.source}: every row has a missing value, so {say('drop')} leaves none; use "
            f"{say('mean')}, {say('median')} or {say('neighbors')}, or leave the emptiest columns "
            f"out with {options.spelling.option('drop')}."
        )
    dropped = table.ids.filter(bad).to_list()
    shown = listing([str(row) for row in dropped], quote=False)
    log.append(f"dropped {count(len(dropped), 'row')} with missing values: {shown}")
    return table.with_rows(~bad), dropped


def _without_empty_columns(table: Table, options: TableOptions, log: list[str]) -> Table:
    """The table without the columns that have no value at all.

    A column of a bare array cannot be left out: new rows could not be distinguished from the old
    ones.
    """
    values = np.asarray(table.features)
    empty = np.flatnonzero(np.isnan(values).all(axis=0))
    if not len(empty):
        return table
    names = table.feature_names
    left = [] if names is None else [names[i] for i in empty]
    asked = [name for name in left if name in options.columns]
    if names is None or len(empty) == values.shape[1] or asked:
        shown = listing([_name(table, i) for i in empty], quote=False)
        where = f" (see {options.spelling.option('columns')})" if asked else ""
        what = f"all values are missing in {shown}"
        raise DataError(f"{table.source}: {what}; leave such columns out{where}.")
    log.append(f"left out {count(len(left), 'column')} without any value: {listing(left)}")
    unused = (*table.unused, *left)
    features = table.features.drop(left)
    return dataclasses.replace(table, features=features, unused=unused, image_shape=None)


def _refusal(table: Table, missing: np.ndarray, names: list[str], options: TableOptions) -> str:
    """Where values are missing, and what each option would do about them."""
    say = functools.partial(options.spelling.option, "missing")
    counts = missing.sum(axis=0)
    shown = [f"{names[i]} ({counts[i]})" for i in np.flatnonzero(counts)]
    rows, lost = len(missing), int(missing.any(axis=1).sum())
    drop = f"{say('drop')} (loses {lost} of {count(rows, 'row')}, {lost / rows:.1%})"
    if lost == rows:
        drop = f"not {say('drop')}, which would leave no row"
    choose = "choose "
    if options.missing_values_taken:
        choose += f"{say('keep')} to have the other values of their rows used, "
    elif options.missing == "keep":
        choose = f"{say('keep')} is only for methods that take them; {choose}"
    return (
        f"{table.source}: {count(int(counts.sum()), 'missing value')} in "
        f"{count(len(shown), 'column')}: {listing(shown, quote=False)}; {choose}"
        f"{say('mean')}, {say('median')} or {say('neighbors')} to fill them, {drop}, or leave "
        f"columns out with {options.spelling.option('drop')}."
    )


def _name(table: Table, column: int) -> str:
    names = table.feature_names
    return f"column {column}" if names is None else repr(names[column])


# Values that probably mean "missing", such as -999 or "unknown": pointed out, never changed.


# Numbers that people write where a value is missing, below or above all others: -1, -200 of
# sensors, and nines such as -999.9.
CODE = re.compile(r"-1|-200|-?99+(\.9+)?")
CERTAIN = 200.0  # a value this large, below numbers that are not negative, needs no gap
FEWEST, FEWEST_SMALL = 2, 3  # occurrences in the table; of values such as -1 and 99, in the column
DISTINCT = 3  # other values; a column of -1 and 1 is a column of two classes
WIDE = 100.0  # a range of whole numbers from 0, in which -1 is not a step of the scale
# Words for a missing value that readers leave as they are, because they may be categories.
WORDS = {
    *("missing", "unknown", "n.a.", "n.a", "n. a.", "na.", "n/d", "n.d.", "nd", "nil", "void"),
    *("not available", "not applicable", "not known", "no data", "none given", "undefined"),
    *("unspecified", "k.a.", "--", "---", "*", "**", "..", "...", "#value!", "#ref!", "#div/0!"),
    *("inf?", "tbd", "<na>", "#na", "not measured", "below detection", "empty", "blank", "x"),
}
MOSTLY = 0.5  # share of numbers among the values of a column of text that may be one of numbers


class Found(NamedTuple):
    """A number in a column that looks as if it meant a missing value."""

    text: str
    column: str
    n: int
    low: float  # range of the other values
    high: float


def sentinel_notes(table: Table, options: TableOptions) -> list[str]:
    """One line for each value that recurs far outside of the others, with the option that helps."""
    say = options.spelling.option
    found = [*_in_numbers(table)]
    notes = []
    for text in dict.fromkeys(each.text for each in found):
        here = [each for each in found if each.text == text]
        total = sum(each.n for each in here)
        if total < FEWEST:
            continue
        columns = [each.column for each in here]
        where = f"column {here[0].column!r}"
        others = f" (the others are {here[0].low:g} to {here[0].high:g})"
        if len(here) > 1:
            where, others = f"{len(here)} columns ({listing(columns)})", ""
        general = abs(float(text)) > CERTAIN or table.feature_names is None
        code = text if general else ",".join(f"{name}={text}" for name in columns[:4])
        advice = f"if it means a missing value: {say('missing_values', code)}"
        where = f"{count(total, 'time')} in {where}, far from the other values{others}"
        notes.append(f"{text} occurs {where}; {advice}")
    # Columns of text that would be numbers without one or a few words for missing values.
    for column in table.labels.iter_columns():
        if not is_text(column.dtype):
            continue
        stripped = column.str.strip_chars()
        coded = stripped.str.to_lowercase().is_in(list(WORDS)).fill_null(False)
        numbers = numbers_in_text(column.set(coded, None)) if coded.any() else None
        if numbers is None or numbers.count() < MOSTLY * len(column):
            continue
        for word, n in stripped.filter(coded).value_counts(sort=True).rows():
            advice = f"if that means a missing value: {say('missing_values', word)}"
            why = f"is text because of {word!r} ({count(n, 'value')})"
            notes.append(f"column {column.name!r} {why}; {advice}")
    return notes


def _in_numbers(table: Table) -> Iterator[Found]:
    """Suspicious numbers; only columns whose extreme value is one are looked at closely."""
    if is_sparse(table.features) or table.image_shape is not None or table.shape[0] < FEWEST:
        return
    X, names = np.asarray(table.features), table.feature_names
    ends = zip(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0), strict=True)
    for place, (least, most) in enumerate(ends):
        if _code(least) or _code(most):
            name = str(place) if names is None else names[place]
            values, counts = np.unique(X[:, place], return_counts=True)
            known = ~np.isnan(values)
            yield from _peeled(name, values[known], counts[known])


def _code(value: float) -> str:
    """The value as text if it is one that people write where a value is missing, else nothing."""
    text = f"{value:.7g}"  # as many digits as float32 has
    return text if CODE.fullmatch(text) else ""


def _peeled(name: str, values: np.ndarray, counts: np.ndarray) -> Iterator[Found]:
    """Sentinels at both ends of the sorted values."""
    low, high = 0, len(values)
    while low < high and values[low] < 0 and _code(values[low]):
        low += 1
    while low < high and values[high - 1] > 0 and _code(values[high - 1]):
        high -= 1
    others = values[low:high].astype(np.float64)
    if len(others) < DISTINCT:
        return
    for i in [*range(low), *range(high, len(values))]:
        if _stands_apart(float(_code(values[i])), counts[i], others):
            yield Found(_code(values[i]), name, int(counts[i]), others[0], others[-1])


def _stands_apart(value: float, n: int, others: np.ndarray) -> bool:
    """Whether a value cannot be one of the scale of the other ones, which are sorted."""
    least, most = float(others[0]), float(others[-1])
    extent = most - least
    if abs(value) < CERTAIN and n < FEWEST_SMALL:
        return False
    if least >= 0 and (value == -1.0 or value <= -CERTAIN):
        # whole numbers that begin at 0 may go on to -1, as temperatures do
        whole = value == -1.0 and bool((others == np.floor(others)).all())
        return not whole or least >= 1 or extent >= WIDE
    if value == -1.0:
        return False
    gap = max(value - most, least - value)
    return gap > (extent if abs(value) >= CERTAIN else 2 * extent)


# Counts whose rows differ much in their sums, as those of cells or texts: a suggestion.


ZEROS = 0.5  # share of zeros from which a table is one of sparse counts
UNEQUAL = 3.0  # ratio of large to small sums of rows
FEWEST_COUNTED = 20  # rows and columns
ROWS_LOOKED_AT = 2000
BYTE = 255  # the largest value of pixels, which are not counts


def count_notes(table: Table, options: TableOptions) -> list[str]:
    """The suggestion to normalize rows of a sparse matrix of counts, unless the user chose one."""
    X = table.features
    if options.normalize or not is_sparse(X) or min(X.shape) < FEWEST_COUNTED:
        return []
    some = X[:: max(1, X.shape[0] // ROWS_LOOKED_AT)]
    values = some.data
    if not values.size or some.nnz > (1 - ZEROS) * some.shape[0] * some.shape[1]:
        return []
    whole = values.min() >= 0 and (values == np.floor(values)).all()
    if not whole or values.max() in (1, BYTE):
        return []
    sums = np.asarray(some.sum(axis=1)).ravel()
    low, high = np.quantile(sums[sums > 0], [0.05, 0.95])
    if high < UNEQUAL * low:
        return []
    advice = options.spelling.option("normalize", "cpm,log1p")
    sums = f"very different sums ({low:g} to {high:g} for most rows), which a map would show first"
    return [f"these look like counts whose rows have {sums}; {advice} makes rows comparable"]


# One column or one row that carries nearly all variance of a table: the map shows little else.


NEARLY_ALL = 0.9
FEWEST_ROWS = 20  # of fewer rows, one that is alone has a large share anyhow


class Dominant(NamedTuple):
    """A column or a row, and its share of the variance."""

    kind: str  # "column" or "row"
    name: str
    share: float


def dominating(X: Any, names: Sequence[str] | None, ids: Sequence[Any]) -> list[Dominant]:
    """The column and the row that carry nearly all variance of the prepared rows, if there are any.

    Two passes over the rows, in blocks.
    """
    n, p = X.shape
    if n < 2 or p < 2:
        return []
    columns, rows = _squares(X if is_sparse(X) else np.asarray(X))
    total = float(columns.sum())
    if not np.isfinite(total) or total <= 0:
        return []
    found = []
    place = int(np.argmax(columns))
    if columns[place] > NEARLY_ALL * total:
        name = f"column {place}" if names is None else str(names[place])
        found.append(Dominant("column", name, float(columns[place]) / total))
    row = int(np.argmax(rows))
    if n >= FEWEST_ROWS and rows[row] > NEARLY_ALL * total:
        found.append(Dominant("row", str(ids[row]), float(rows[row]) / total))
    return found


@may_overflow
def _squares(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squared deviations from the column means, of each column and of each row."""
    mean, columns = column_moments(X)
    if is_sparse(X):
        Z = X.astype(np.float64)
        rows = np.asarray(Z.multiply(Z).sum(axis=1)).ravel() - 2.0 * (Z @ mean) + mean @ mean
        return columns, np.maximum(rows, 0.0)
    rows = np.empty(X.shape[0])
    for block in row_blocks(X.shape[0], rows_within(8 * X.shape[1], 2**21)):
        Z = X[block] - mean
        rows[block] = np.einsum("ij,ij->i", Z, Z)
    return columns, rows


def dominating_note(found: Dominant, scaled: bool, say: Any) -> str:
    """The caution for a person, with what to do; ``say`` spells an option."""
    what = found.name if found.name.startswith("column ") else f"{found.kind} {found.name!r}"
    text = f"{what} carries {found.share:.1%} of the variance: the map shows little else"
    if found.kind == "row":
        return f"{text}; if it is an error or an outlier, leave this row out"
    equal = "" if scaled else f"; {say('scale', 'standard')} gives all columns the same weight"
    drop = f", {say('drop', found.name)} leaves it out" if what != found.name else ""
    return text + equal + drop
