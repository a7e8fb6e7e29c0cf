"""The memory that a file needs, checked before it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lowland._base.errors import DataError
from lowland._base.memory import format_bytes, require_memory

if TYPE_CHECKING:
    import polars as pl

TEXT_BYTES = 32  # of one value: an estimate; 16 of them are the view of polars
OVERHEAD = 1.1
# Some bytes that claim to hold more than this, and this many times their number, are hostile or
# nearly empty: deflate reaches 1000, tables of measurements 10.
HARMLESS, RATIO = 256_000_000, 300
MOST_EMPTY = 1 << 22  # rows or columns without an entry that a sparse matrix may have, at least


def column_bytes(dtypes: Iterable[pl.DataType]) -> int:
    """Bytes of one row as it comes from the file."""
    total = 0
    for dtype in dtypes:
        if dtype.is_integer() or dtype.is_float():
            total += int("".join(filter(str.isdigit, str(dtype)))) // 8  # Int16, Float64, ...
        else:
            total += 1 if str(dtype) == "Boolean" else TEXT_BYTES
    return total


def require_for_table(
    file: object,
    rows: int,
    columns: int,
    row_bytes: float,
    *,
    advice: str = "read fewer rows or columns",
    estimated: bool = False,
) -> None:
    """Refuse a table that does not fit, if a row takes ``row_bytes`` at the peak of reading."""
    counted = f"about {float(f'{rows:.1e}'):.0f}" if estimated else str(rows)
    task = f"{file}: reading {counted} rows x {columns} columns"
    require_memory(int(rows * row_bytes * OVERHEAD), task=task, alternative=advice)


def refuse_bomb(file: object, claimed: int, held: int) -> None:
    """Refuse a file whose few bytes claim to hold very many."""
    if claimed > HARMLESS and claimed > RATIO * held:
        sizes = f"{format_bytes(held)} claim to hold {format_bytes(claimed)}"
        raise DataError(f"{file}: {sizes}; if you trust the file, save it without compression.")


def require_for_sparse(file: object, rows: int, columns: int, stored: int) -> None:
    """Refuse a sparse matrix that does not fit, or has far more rows or columns than entries."""
    for count, what in ((rows, "rows"), (columns, "columns")):
        if count > MOST_EMPTY + RATIO * stored:
            sizes = f"declares {count} {what}, but holds {stored} entries"
            raise DataError(f"{file}: {sizes}; leave the empty {what} out.")

    task = f"{file}: reading {stored} entries of {rows} rows x {columns} columns"
    need = 2 * (16 * stored + 8 * (rows + 1))  # triplets and compressed rows together
    require_memory(need, task=task, alternative="read fewer rows or columns")
