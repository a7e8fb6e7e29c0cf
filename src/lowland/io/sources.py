"""Where a table comes from: a bundled name, or a file whose suffix names its reader."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lowland._core.errors import DataError, unknown_name
from lowland.io.arrays import read_npy, read_npz
from lowland.io.contents import Contents, named_matrix, unreadable
from lowland.io.delimited import read_csv, read_tsv

__all__ = ["READERS", "read_source"]


PANDAS_INDEX = "__index_level_0__"


def read_parquet(path: Path) -> Contents:
    """Parquet; pandas' stored index becomes the row id."""
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except OSError:
        raise
    except BaseException as error:
        # Rust panics on some damaged files, and its exception is no ordinary Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise unreadable(path, "Parquet", error) from error
    if PANDAS_INDEX not in frame.columns:
        return Contents(frame)
    id_name = "index" if "row" in frame.columns else "row"
    return Contents(frame.rename({PANDAS_INDEX: id_name}), id_name=id_name)


READERS: dict[str, Callable[[Path], Contents]] = {
    ".csv": read_csv,
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".tsv": read_tsv,
}


def read_source(source: str | os.PathLike[str]) -> Contents:
    """Contents of a bundled data set (a bare name) or of a file (a suffix or a separator)."""
    from lowland import datasets

    text = os.fspath(source)
    path = Path(text)
    bare = not path.suffix and path.name == text
    if bare and text.lower().replace("-", "_") in datasets.names():
        return _read_bundled(text)
    if bare and not path.exists():
        known = unknown_name("data set", text, datasets.names())
        raise DataError(f"{text}: no such file, and {known}")
    return _reader(path)(path)


def _reader(path: Path) -> Callable[[Path], Contents]:
    if path.is_dir():
        raise DataError(f"{path}: is a folder, not a file.")
    if not path.exists():
        raise DataError(f"{path}: no such file.")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        kind = f"files ending in {path.suffix!r}" if path.suffix else "files without a suffix"
        raise DataError(f"{path}: {kind} are not read; expected {', '.join(sorted(READERS))}.")
    if path.stat().st_size == 0 and path.is_file():
        raise DataError(f"{path}: the file is empty.")
    return reader


def _read_bundled(name: str) -> Contents:
    from lowland import datasets

    data = datasets.load_dataset(name)
    labels: dict[str, np.ndarray] = {}
    if data.labels is not None:
        labels["class"] = data.labels
    if data.truth is not None:
        for i, column in enumerate(data.truth.T, start=1):
            labels[f"truth_{i}"] = np.ascontiguousarray(column)
    return named_matrix(data.X, list(data.feature_names), labels, [])
