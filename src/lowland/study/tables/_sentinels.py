"""Values that probably mean "missing", such as -999 or "unknown": pointed out, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lowland._core.validation import is_sparse
from lowland._core.wording import count, listing
from lowland.io import Table
from lowland.io.columns.coded import numbers_in_text
from lowland.study.tables.options import TableOptions

if TYPE_CHECKING:
    import polars as pl

# Numbers that people write where a value is missing: below all others, or above all others.
LOW = (-99999.0, -9999.0, -999.0, -999.9, -999.99, -200.0, -99.0, -99.9, -1.0)
HIGH = (9999999.0, 999999.0, 99999.0, 9999.0, 999.9, 999.0, 99.9, 99.0)
CERTAIN = 200.0  # a value this large, below numbers that are not negative, needs no gap
FEWEST, FEWEST_SMALL = 2, 3  # occurrences in the table; of values such as -1 and 99, in the column
DISTINCT = 3  # other values; a column of -1 and 1 is a column of two classes
WIDE = 100.0  # a range of whole numbers from 0, beside which -1 is no step of the scale
# Words for a missing value that readers leave as they are, because they may be categories.
WORDS = {
    *("missing", "unknown", "n.a.", "n.a", "n. a.", "na.", "n/d", "n.d.", "nd", "nil", "void"),
    *("not available", "not applicable", "not known", "no data", "none given", "undefined"),
    *("unspecified", "k.a.", "--", "---", "*", "**", "..", "...", "#value!", "#ref!", "#div/0!"),
    *("inf?", "tbd", "<na>", "#na", "not measured", "below detection", "empty", "blank", "x"),
}
MOSTLY = 0.5  # share of numbers among the values of a column of text that may be one of numbers


class Found(NamedTuple):
    """A value in a column that looks as if it meant a missing one."""

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
        notes.append(
            f"{text} occurs {count(total, 'time')} in {where}, far from the other values{others}; "
            f"if it means a missing value: {say('missing_values', code)}"
        )
    for each in _in_text(table):
        notes.append(
            f"column {each.column!r} is text because of {each.text!r} ({count(each.n, 'value')}); "
            f"if that means a missing value: {say('missing_values', each.text)}"
        )
    return notes


def _in_numbers(table: Table) -> Iterator[Found]:
    """Suspicious numbers; only columns whose extreme value is one are looked at closely."""
    if is_sparse(table.features):
        return
    X = np.asarray(table.features)
    if len(X) < FEWEST or table.image_shape is not None:
        return
    least, most = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    extreme = np.isin(least, np.array(LOW, X.dtype)) | np.isin(most, np.array(HIGH, X.dtype))
    names = table.feature_names
    for place in np.flatnonzero(extreme):
        name = str(place) if names is None else names[place]
        values, counts = np.unique(X[:, place], return_counts=True)
        known = ~np.isnan(values)
        yield from _peeled(name, values[known].astype(np.float64), counts[known], X.dtype)


def _peeled(name: str, values: np.ndarray, counts: np.ndarray, dtype: np.dtype) -> Iterator[Found]:
    """Sentinels at both ends of the sorted values, from the outermost inward."""
    low = {float(dtype.type(v)): v for v in LOW}
    high = {float(dtype.type(v)): v for v in HIGH}
    suspects = []
    while len(values) and values[0] in low:
        suspects.append((low[values[0]], int(counts[0])))
        values, counts = values[1:], counts[1:]
    while len(values) and values[-1] in high:
        suspects.append((high[values[-1]], int(counts[-1])))
        values, counts = values[:-1], counts[:-1]
    if len(values) < DISTINCT:
        return
    for value, n in suspects:
        if _stands_apart(value, n, values):
            yield Found(f"{value:.10g}", name, n, float(values[0]), float(values[-1]))


def _stands_apart(value: float, n: int, others: np.ndarray) -> bool:
    """Whether a value cannot be one of the scale of the other ones, which are sorted."""
    least, most = float(others[0]), float(others[-1])
    extent = most - least
    if abs(value) < CERTAIN and n < FEWEST_SMALL:
        return False
    if value > 0:
        gap = value - most
        return gap > (2 * extent if value < CERTAIN else extent)
    if value == -1.0:
        if least < 0:
            return False
        whole = bool((others == np.floor(others)).all())
        # whole numbers that begin at 0 may go on to -1, as temperatures do
        return least >= 1 or extent >= WIDE if whole else True
    if value <= -CERTAIN and least >= 0:
        return True
    return least - value > (2 * extent if value > -CERTAIN else extent)


def _in_text(table: Table) -> Iterator[Found]:
    """Columns of text that would be numbers without one or a few words for missing values."""
    import polars as pl

    for column in table.labels.iter_columns():
        if column.dtype == pl.String:
            yield from _words_in(column)


def _words_in(column: pl.Series) -> Iterator[Found]:
    text = column.str.strip_chars().str.to_lowercase()
    coded = text.is_in(list(WORDS)).fill_null(False)
    n_coded = int(coded.sum())
    if not n_coded:
        return
    numbers = numbers_in_text(column.set(coded, None))
    if numbers is None or numbers.count() < MOSTLY * len(column):
        return
    counted = column.filter(coded).str.strip_chars().value_counts(sort=True)
    for word, n in counted.rows():
        yield Found(str(word), column.name, int(n), 0.0, 0.0)
