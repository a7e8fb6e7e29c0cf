"""Text that a spreadsheet would run as a formula, in CSV files.

A program that opens a CSV file runs a cell that begins with ``=``, ``+``, ``-`` or ``@``, and
labels may come from strangers. Such text is written with an apostrophe before it, which
spreadsheets take as "this is text". Reading removes one apostrophe, so that a table that was
written and read again has the text it had. Numbers, also those in columns of text, are left as they
are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

# Apostrophes before such text are doubled by writing, lest reading remove the wrong one. The wide
# forms are those of East Asian keyboards, which some spreadsheets accept.
FIRST = r"[=+\-@\t\r" + "\uff1d\uff0b\uff0d\uff20]"
FORMULA, GUARDED = "^'*" + FIRST, "^''*" + FIRST
HARMLESS = r"^([+\-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?|[=+\-@])$"


def guarded(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as it is written: an apostrophe before every text that would be run."""
    import polars as pl

    text = frame.select(pl.selectors.string(include_categorical=True) | pl.selectors.enum())
    cells = pl.col(text.columns).cast(pl.String)
    runs = cells.str.contains(FORMULA) & ~cells.str.contains(HARMLESS)
    if text.width:
        frame = frame.with_columns(pl.when(runs).then(cells.str.replace("^", "'")).otherwise(cells))
    return frame.rename({name: guarded_name(name) for name in frame.columns})


def guarded_name(name: str) -> str:
    """The name of a column as it is written."""
    return f"'{name}" if re.match(FORMULA, name) and not re.match(HARMLESS, name) else name


def unguarded(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as it was before it was written."""
    import polars as pl

    some = [
        name
        for name, dtype in frame.schema.items()
        if dtype == pl.String and frame[name].str.starts_with("'").any()
    ]
    if not some:
        return frame
    cells = pl.col(some)
    was = cells.str.contains(GUARDED)
    return frame.with_columns(pl.when(was).then(cells.str.slice(1)).otherwise(cells))


def unguarded_name(name: str) -> str:
    """The name of a column as it was before it was written."""
    return name[1:] if re.match(GUARDED, name) else name
