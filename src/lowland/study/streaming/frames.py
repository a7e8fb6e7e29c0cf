"""Files as one table in leaves whose blocks are data frames with all columns."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lowland._core.errors import DataError
from lowland._core.rows.leaves import TASK_ROWS, Block, leaf_ranges, leaf_rows
from lowland._core.rows.table import Rows
from lowland.distributed.opening import open_rows
from lowland.io.contents import one_line

__all__ = ["open_frames", "opens"]

SUFFIXES = (".parquet", ".pq")


def opens(paths: Sequence[str]) -> str | None:
    """Why the files cannot be read leaf by leaf, by their names; None if they can."""
    if "frames" in inspect.signature(open_rows).parameters:
        return None  # it tells by itself when it opens them
    other = [path for path in paths if not path.lower().endswith(SUFFIXES)]
    return f"{other[0]}: only Parquet files are read leaf by leaf" if other else None


def open_frames(paths: Sequence[str], task_rows: int = TASK_ROWS) -> Rows:
    """The table of all files; only their directories are read now."""
    if "frames" in inspect.signature(open_rows).parameters:
        return open_rows(list(paths), frames=True, task_rows=task_rows)  # type: ignore[call-arg, unused-ignore]
    refusal = opens(paths)
    if refusal:
        raise DataError(f"{refusal}.")
    schema = _schema(paths[0])
    leaves: list[FrameLeaf] = []
    for path in paths:
        _check_alike(paths[0], schema, path, _schema(path))
        n = _height(path)
        if not n:
            raise DataError(f"{path}: there are no rows.")
        facts = Path(path).stat()
        leaves += [
            FrameLeaf(path, i, j - i, tuple(schema), (facts.st_size, facts.st_mtime_ns))
            for i, j in leaf_ranges(n, leaf_rows(len(schema), task_rows))
        ]
    return Rows(leaves, len(schema), object, names=list(schema), task_rows=task_rows)


class FrameLeaf(NamedTuple):
    """Some rows of a Parquet file, as a data frame."""

    path: str
    first: int
    n_rows: int
    columns: tuple[str, ...]
    stamp: tuple[int, int]

    @property
    def identity(self) -> tuple[Any, ...]:
        return tuple(self)

    @property
    def source(self) -> str:
        return self.path

    def read(self, start: int) -> Block:
        import polars as pl

        try:
            found = pl.scan_parquet(self.path).select(self.columns)
            frame = found.slice(self.first, self.n_rows).collect()
        except Exception as error:  # the panic of a damaged page is an error of its own
            raise DataError(f"{self.path}: cannot be read: {one_line(error)}.") from error
        return Block(frame, start, None, None, self.source)


def _schema(path: str) -> dict[str, Any]:
    import polars as pl

    try:
        return dict(pl.scan_parquet(path).collect_schema())
    except Exception as error:
        raise DataError(f"{path}: cannot be read: {one_line(error)}.") from error


def _height(path: str) -> int:
    import polars as pl

    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def _check_alike(first: str, schema: dict[str, Any], path: str, other: dict[str, Any]) -> None:
    for name, dtype in schema.items():
        if name not in other:
            raise DataError(f"{path}: lacks {name!r}, which {first} has.")
        if other[name] != dtype:
            raise DataError(f"{path}: column {name!r} holds {other[name]}, but {dtype} in {first}.")
    added = [name for name in other if name not in schema]
    if added:
        raise DataError(f"{path}: has {added[0]!r}, which {first} lacks.")
