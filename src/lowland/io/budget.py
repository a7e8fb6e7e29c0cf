"""The memory that a file needs, checked before it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lowland._core.memory import require_memory

if TYPE_CHECKING:
    import polars as pl

__all__ = ["column_bytes", "require_for_sparse", "require_for_table"]

TEXT_BYTES = 32  # of one value: an estimate; 16 of them are the view of polars
OVERHEAD = 1.1


def column_bytes(dtypes: Iterable[pl.DataType]) -> int:
    """Bytes of one row as it comes from the file."""
    return sum(_value_bytes(dtype) for dtype in dtypes)


def _value_bytes(dtype: pl.DataType) -> int:
    if dtype.is_integer() or dtype.is_float():
        return int("".join(filter(str.isdigit, str(dtype)))) // 8  # Int16, Float64, ...
    return 1 if str(dtype) == "Boolean" else TEXT_BYTES


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
    require_memory(
        int(rows * row_bytes * OVERHEAD),
        task=f"{file}: reading {counted} rows x {columns} columns",
        alternative=advice,
    )


def require_for_sparse(file: object, rows: int, columns: int, stored: int) -> None:
    """Refuse a sparse matrix whose triplets and compressed rows do not fit together."""
    need = 2 * (16 * stored + 8 * (rows + 1))
    require_memory(
        need,
        task=f"{file}: reading {stored} entries of {rows} rows x {columns} columns",
        alternative="read fewer rows or columns",
    )
