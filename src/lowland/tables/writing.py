"""Writing results: all files or none, and nothing is overwritten without permission."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lowland._base.errors import DataError
from lowland._base.interrupts import WRITTEN, uninterrupted
from lowland.tables.formats.formulas import guarded

if TYPE_CHECKING:
    import polars as pl

    from lowland.tables.table import Table

WRITERS = {".csv": "write_csv", ".parquet": "write_parquet"}


def coordinate_names(n_components: int) -> list[str]:
    """``x``, ``y``, ``z`` for up to three dimensions, ``x1`` to ``xn`` for more.

    >>> coordinate_names(2), coordinate_names(4)
    (['x', 'y'], ['x1', 'x2', 'x3', 'x4'])
    """
    if n_components <= 3:
        return list("xyz"[:n_components])
    return [f"x{i}" for i in range(1, n_components + 1)]


def map_frame(table: Table, Y: np.ndarray) -> pl.DataFrame:
    """Row id, coordinates and labels; a label with the name of one of the others is renamed.

    >>> from lowland.tables import read_table
    >>> map_frame(read_table("iris"), np.zeros((150, 2))).columns
    ['row', 'x', 'y', 'class']
    """
    import polars as pl

    names = coordinate_names(Y.shape[1])
    id_name, renamed = names_beside(table, names)
    frame = pl.from_numpy(np.ascontiguousarray(Y), schema=names, orient="row")
    ids = table.ids.rename(id_name)
    return pl.DataFrame([ids]).hstack(frame).hstack(table.labels.rename(renamed))


def names_beside(table: Table, coordinates: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The names of the row id and of each label in a map with these names of coordinates."""
    id_name = f"{table.ids.name}_id" if table.ids.name in coordinates else table.ids.name
    taken, renamed = {id_name, *coordinates, *table.labels.columns}, {}
    for name in table.labels.columns:
        new = f"{name}_label" if name in {id_name, *coordinates} else name
        while new != name and new in taken:
            new += "_"
        taken.add(new)
        renamed[name] = new
    return id_name, renamed


def check_suffix(path: Path) -> None:
    """Refuse a file name whose suffix is not that of a table.

    >>> check_suffix(Path("map.csv"))
    >>> check_suffix(Path("map.txt"))
    Traceback (most recent call last):
    lowland._base.errors.DataError: map.txt: maps are written to files ending in .csv or .parquet.
    """
    if path.suffix.lower() not in WRITERS:
        raise DataError(f"{path}: maps are written to files ending in {' or '.join(WRITERS)}.")


def write_frame(frame: pl.DataFrame, path: Path, *, raw_text: bool = False) -> None:
    """Write a data frame as CSV or Parquet, by the suffix of ``path``.

    In a CSV file, text that a spreadsheet would run gets an apostrophe, unless ``raw_text``.

    >>> import tempfile
    >>> import polars as pl
    >>> frame = pl.DataFrame({"x": [1.5], "name": ["=A1"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_frame(frame, Path(folder, "map.csv"))
    ...     Path(folder, "map.csv").read_text().split()
    ['x,name', "1.5,'=A1"]
    """
    import polars as pl

    check_suffix(path)
    writer = WRITERS[path.suffix.lower()]
    if writer == "write_csv":  # polars cannot write durations as CSV
        frame = frame.with_columns(pl.selectors.duration().dt.to_string())
        frame = frame if raw_text else guarded(frame)
    try:
        getattr(frame, writer)(path)
    except pl.exceptions.PolarsError as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{path.name}: cannot be written: {reason}.") from error


def check_free(
    targets: Sequence[Path], *, force: bool, sources: Sequence[str | os.PathLike[str]] = ()
) -> None:
    """Refuse targets that exist (unless ``force``), are folders, or are also the input."""
    for target in targets:
        if target.is_dir():
            raise DataError(f"{target}: is a folder; choose the name of a file.")
        for source in sources:
            if target.exists() and os.path.exists(source) and os.path.samefile(target, source):
                raise DataError(f"{target}: is also the input; choose another output.")
        if target.exists() and not force:
            raise DataError(f"{target}: exists already; overwrite it with force=True (--force).")


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be made or written, before the work whose results go there."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise DataError(f"{folder}: cannot be made: {there} is a file.")
    trial = there / f".lowland-{uuid.uuid4().hex[:12]}.part"
    try:
        trial.mkdir()  # permissions tell little: a disk may be full, or readable only
        trial.rmdir()
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be written: {error.strerror}; choose another output."
        ) from error


@contextlib.contextmanager
def staged_outputs(
    targets: Sequence[Path], *, force: bool = False, optional: Collection[Path] = ()
) -> Iterator[list[Path]]:
    """Yield one temporary path per target; move all files into place if the block succeeds.

    All targets lie in one folder. A new folder appears in one step; into an existing one the files
    are moved, and if the block or a move fails, the folder is as it was before. The block need
    not write ``optional`` files; an old file in the place of one would belong to other results and
    is removed.
    """
    check_free(targets, force=force)
    folder = targets[0].parent
    is_new = not folder.exists()
    home = folder.parent if is_new else folder
    made = _make_folders(home)
    # Not tempfile, whose folders only the owner can read: the results would inherit that.
    stage: Path | None = home / f".lowland-{uuid.uuid4().hex[:12]}.part"
    try:
        stage.mkdir()
        staged = [stage / target.name for target in targets]
        yield staged
        with uninterrupted():
            check_free(targets, force=force)
            if is_new:
                os.rename(stage, folder)
            else:
                _move_all(staged, targets, stage, optional)
                shutil.rmtree(stage, ignore_errors=True)
            stage = None
    except BaseException as error:
        if stage is None:  # the signal had to wait until all was done
            error.add_note(WRITTEN)
            raise
        with uninterrupted():
            shutil.rmtree(stage, ignore_errors=True)
            for parent in made:
                with contextlib.suppress(OSError):
                    parent.rmdir()
        raise


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and its parents; return those that were made, the innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(f"{folder}: cannot be made: there is a file of that name.") from error
    return missing


def _move_all(
    staged: list[Path], targets: Sequence[Path], stage: Path, optional: Collection[Path]
) -> None:
    """Move every staged file into place; if one fails, restore the old files and raise."""
    undo: list[tuple[Path, Path | None]] = []
    try:
        for i, (new, target) in enumerate(zip(staged, targets, strict=True)):
            backup = stage / f"{i}.backup" if target.exists() else None
            undo.append((target, backup))
            if backup is not None:
                os.replace(target, backup)
            if target not in optional or new.exists():
                os.replace(new, target)
    except BaseException:
        for target, backup in undo:
            if backup is None:
                target.unlink(missing_ok=True)
            elif backup.exists():
                os.replace(backup, target)
        raise
