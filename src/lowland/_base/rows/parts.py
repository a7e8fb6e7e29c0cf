"""A table written to part files, one per task, so that work can go on where it stopped.

A part is written under a temporary name and renamed when it is complete: whatever has the name of
a part is whole. ``_lowland.json`` states which table the parts belong to. A second run with
``resume=True`` of the same table keeps the parts that are there and makes the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block

if TYPE_CHECKING:
    from lowland._base.rows.table import Rows

MANIFEST = "_lowland.json"
VERSION = 1  # of the manifest and of what decides about the bytes of a part


class Parts(NamedTuple):
    """The files of a table that was written."""

    folder: Path
    files: tuple[Path, ...]
    n_rows: int
    n_kept: int = 0  # parts that an earlier run had written

    def summary(self) -> dict[str, Any]:
        """Where the files are, how many there are, and how many were kept, in plain values."""
        return {"folder": str(self.folder), "files": len(self.files), "kept": self.n_kept}


def part_name(index: int) -> str:
    """The name of the part of a task; names sort as the tasks do."""
    return f"part-{index:06d}.parquet"


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A temporary file next to ``target``, which gets its name if the block ends without error."""
    unfinished = target.with_name(f".{target.name}-{uuid.uuid4().hex[:12]}.part")
    try:
        yield unfinished
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


@dataclasses.dataclass(frozen=True)
class PartWriter:
    """Writes the rows of one task: id or number, columns of the table, what goes along."""

    folder: Path
    names: list[str]
    id_name: str | None

    def __call__(self, blocks: Iterator[Block], number: int) -> int:
        """Write the part; the result is its number of rows."""
        import polars as pl

        frames = [self._frame(block) for block in blocks]
        frame = frames[0] if len(frames) == 1 else pl.concat(frames, how="vertical_relaxed")
        with whole_file(self.folder / part_name(number)) as unfinished:
            frame.write_parquet(unfinished)
        return frame.height

    def _frame(self, block: Block) -> Any:
        import polars as pl

        X = np.ascontiguousarray(block.X)
        numbers = pl.from_numpy(X, schema=self.names, orient="row").get_columns()
        beside = [] if block.beside is None else block.beside.get_columns()
        ids = [column for column in beside if column.name == self.id_name]
        others = [column for column in beside if column.name != self.id_name]
        if not ids:
            stop = block.start + block.n_rows
            ids = [pl.int_range(block.start, stop, dtype=pl.Int64, eager=True).alias("row")]
        return pl.DataFrame([*ids, *numbers, *others])


def write(
    rows: Rows,
    folder: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    resume: bool = False,
    monitor: Monitor | None = None,
) -> Parts:
    """Write the table to Parquet files in ``folder``, one per task, each in one step.

    The row id comes first, then the columns of the table, then those carried along. ``names``
    are for the columns of the table, if not their own or ``x1``, ``x2``, ... With ``resume``,
    parts that an earlier run of the same table left in the folder are kept.
    """
    home, tasks = Path(folder), rows.tasks
    names = list(names or rows.names or [f"x{i}" for i in range(1, rows.shape[1] + 1)])
    about = {"version": VERSION, "rows": rows.shape[0], "parts": len(tasks), "columns": names}
    about["table"] = rows.digest()
    _claim(home, about, resume=resume)
    missing = [task for task in tasks if not (home / part_name(task.number)).exists()]
    work = PartWriter(home.absolute(), names, rows.id_name)
    places = [task.number for task in missing]
    try:
        for _ in rows.results(work, monitor, "placing", tasks=missing, arguments=places):
            pass
    finally:
        _remove_unfinished(home)
    files = tuple(home / part_name(task.number) for task in tasks)
    return Parts(home, files, rows.shape[0], len(tasks) - len(missing))


def _claim(home: Path, about: dict[str, Any], *, resume: bool) -> None:
    """Make the folder and record whose parts it holds; refuse one that holds something else."""
    home.mkdir(parents=True, exist_ok=True)
    manifest = home / MANIFEST
    if manifest.exists() and resume:
        try:
            found = json.loads(manifest.read_text())
        except (OSError, ValueError) as error:
            raise DataError(
                f"{manifest}: cannot be read ({error}); choose another folder."
            ) from error
        if found != about:
            raise DataError(
                f"{home}: holds parts of another run (other files, columns or model); choose "
                "another folder, or delete this one."
            )
    elif any(home.iterdir()):
        raise DataError(
            f"{home}: is not empty; choose another folder, or resume a run that was stopped with "
            "resume=True (--resume)."
        )
    _remove_unfinished(home)
    with whole_file(manifest) as unfinished:
        unfinished.write_text(json.dumps(about, indent=1))


def _remove_unfinished(home: Path) -> None:
    """Remove what a process that was killed left: a whole run earlier, or a worker in this one."""
    for left in home.glob(".part-*.part"):
        left.unlink(missing_ok=True)
