"""A map of few columns is refused if most of the table was set aside and nobody asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lowland._base.errors import DataError, count, listing
from lowland.tables import Table
from lowland.tables.options import TableOptions

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
