"""Several files as one table: their rows one after another, and a label that names the file."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse
from lowland._core.wording import count, listing
from lowland.io.contents import Contents, Request, free_name
from lowland.io.files.budget import require_for_table
from lowland.io.sources import read_source

PATTERN = set("*?[")
LABEL = "file"


def listed_sources(source: Any) -> list[str]:
    """The paths of a source: one, several, or those that match a pattern such as ``runs/*.csv``."""
    if isinstance(source, str | os.PathLike):
        return _matching(os.fspath(source))
    paths = [path for each in source for path in _matching(os.fspath(each))]
    if not paths:
        raise DataError("the list of inputs is empty; give at least one file.")
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise DataError(f"{twice[0]}: is given more than once.")
    return paths


def _matching(text: str) -> list[str]:
    if not PATTERN & set(text) or os.path.lexists(text) or "://" in text:
        return [text]
    found = sorted(path for path in glob.glob(text, recursive=True) if os.path.isfile(path))
    if not found:
        raise DataError(f"{text}: no such file, and none matches this pattern.")
    return found


def shown_name(paths: Sequence[str]) -> str:
    """One name for all files, for messages and titles."""
    if len(paths) == 1:
        return paths[0]
    others = paths[1] if len(paths) == 2 else f"{len(paths) - 1} more files"
    return f"{paths[0]} and {others}"


def read_several(paths: Sequence[str], request: Request) -> Contents:
    """The rows of all files; they must have the same columns."""
    import polars as pl

    parts = [read_source(path, request) for path in paths]
    first = parts[0]
    for path, part in zip(paths[1:], parts[1:], strict=True):
        _check_alike(paths[0], first, path, part)
    rows = [part.frame.height if part.matrix is None else part.matrix.shape[0] for part in parts]
    frame = pl.DataFrame()
    if first.frame.width:
        frames = [part.frame.select(first.frame.columns) for part in parts]
        try:
            frame = pl.concat(frames, how="vertical_relaxed")
        except pl.exceptions.PolarsError as error:
            raise DataError(f"{shown_name(paths)}: the files do not fit: {error}.") from error
    label = free_name(LABEL, list(first.schema))
    names = np.repeat(np.array(_short_names(paths), dtype=object), rows)
    frame = pl.DataFrame([*frame.get_columns(), pl.Series(label, names, dtype=pl.String)])
    shapes = {part.image_shape for part in parts}
    return Contents(
        frame,
        _stacked(shown_name(paths), [part.matrix for part in parts]),
        first.matrix_names,
        (*first.labels, label),
        first.id_name,
        _notes(paths, parts),
        first.unread,
        shapes.pop() if len(shapes) == 1 else None,
        first.left_out,
    )


def _check_alike(first_path: str, first: Contents, path: str, other: Contents) -> None:
    if (first.matrix is None) != (other.matrix is None):
        raise DataError(f"{path}: has another form than {first_path}; stack files of one kind.")
    here, there = list(other.schema), list(first.schema)
    missing = [name for name in there if name not in set(here)]
    added = [name for name in here if name not in set(there)]
    if missing or added:
        lacks = f"lacks {listing(missing, 4)}" if missing else ""
        has = f"has {listing(added, 4)} beside the others" if added else ""
        what = " and ".join(text for text in (lacks, has) if text)
        raise DataError(
            f"{path}: {what}; files that are read together have the columns of {first_path}."
        )
    if other.matrix is not None:
        if first.matrix.shape[1] != other.matrix.shape[1]:
            raise DataError(
                f"{path}: has {count(other.matrix.shape[1], 'column')}, but {first_path} has "
                f"{first.matrix.shape[1]}."
            )
        if first.matrix_names != other.matrix_names:
            raise DataError(f"{path}: has its columns in another order than {first_path}.")
    for name, dtype in first.frame.schema.items():
        kinds = [kind_of(dtype), kind_of(other.frame.schema[name])]
        if kinds[0] != kinds[1] and "nothing" not in kinds:
            raise DataError(
                f"{path}: column {name!r} holds {kinds[1]}, but {kinds[0]} in {first_path}."
            )


def kind_of(dtype: Any) -> str:
    """What the values of a column are, in a word."""
    import polars as pl

    if dtype == pl.Null:
        return "nothing"
    if dtype.is_numeric() or dtype == pl.Boolean:
        return "numbers"
    if dtype.is_nested():
        return "lists"
    return "dates" if dtype.is_temporal() else "text"


def _stacked(source: str, matrices: list[Any]) -> Any:
    if matrices[0] is None:
        return None
    if any(map(is_sparse, matrices)):
        import scipy.sparse

        return scipy.sparse.csr_matrix(scipy.sparse.vstack(matrices, format="csr"))
    rows, width = sum(len(matrix) for matrix in matrices), matrices[0].shape[1]
    require_for_table(source, rows, width, matrices[0].itemsize * width)
    return np.concatenate(matrices)


def _short_names(paths: Sequence[str]) -> list[str]:
    """Names without folders, if they differ."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def _notes(paths: Sequence[str], parts: Sequence[Contents]) -> tuple[str, ...]:
    """Notes that all files have once, others with the name of the file."""
    common = [note for note in parts[0].notes if all(note in part.notes for part in parts)]
    own = [
        f"{path}: {note}"
        for path, part in zip(paths, parts, strict=True)
        for note in part.notes
        if note not in common
    ]
    return (f"rows of {len(parts)} files; the label {LABEL!r} names them", *common, *own)
