"""Files as one table in leaves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland._core.rows.leaves import TASK_ROWS, Block, leaf_ranges, leaf_rows
from lowland._core.rows.table import Rows
from lowland.io.several import listed_sources

__all__ = ["open_rows"]


class ParquetLeaf(NamedTuple):
    """Some rows of a Parquet file."""

    path: str
    first: int
    n_rows: int
    columns: tuple[str, ...]
    beside: tuple[str, ...]
    dtype: str
    stamp: tuple[int, int]

    @property
    def identity(self) -> tuple[Any, ...]:
        return tuple(self)

    @property
    def source(self) -> str:
        return self.path

    def read(self, start: int) -> Block:
        import polars as pl

        wanted = [*self.columns, *self.beside]
        frame = pl.scan_parquet(self.path).select(wanted).slice(self.first, self.n_rows).collect()
        X = frame.select(self.columns).to_numpy(order="c").astype(self.dtype, copy=False)
        beside = frame.select(self.beside) if self.beside else None
        return Block(X, start, beside, None, self.source)


def open_rows(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    labels: Sequence[str] = (),
    task_rows: int = TASK_ROWS,
) -> Rows:
    """Open files as one table that is read leaf by leaf; only their directories are read now."""
    import polars as pl

    paths = listed_sources(source)
    schema = pl.scan_parquet(paths[0]).collect_schema()
    numbers = [name for name, dtype in schema.items() if dtype.is_numeric()]
    wanted = tuple(columns or [name for name in numbers if name not in labels])
    single = all(schema[name] == pl.Float32 for name in wanted)
    dtype = np.dtype(np.float32 if single else np.float64)
    leaves = []
    for path in paths:
        n = pl.scan_parquet(path).select(pl.len()).collect().item()
        if not n:
            raise DataError(f"{path}: there are no rows.")
        facts = Path(path).stat()
        stamp = (facts.st_size, facts.st_mtime_ns)
        leaves += [
            ParquetLeaf(path, i, j - i, wanted, tuple(labels), str(dtype), stamp)
            for i, j in leaf_ranges(n, leaf_rows(len(wanted), task_rows))
        ]
    return Rows(leaves, len(wanted), dtype, names=wanted, beside=labels, task_rows=task_rows)
