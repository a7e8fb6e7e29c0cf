"""What a file holds before its columns get their roles; every reader returns one of these."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from lowland._core.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

__all__ = ["Contents", "named_matrix", "unreadable"]


@dataclasses.dataclass(frozen=True, eq=False)
class Contents:
    """All columns of a source, with what the source itself says about them.

    ``frame`` holds the named columns. ``matrix`` is set when the features are an array without
    names; then every column of ``frame`` is a label.
    """

    frame: pl.DataFrame
    matrix: np.ndarray | None = None
    labels: tuple[str, ...] = ()
    id_name: str | None = None
    notes: tuple[str, ...] = ()


def named_matrix(
    matrix: np.ndarray, names: list[str] | None, labels: dict[str, np.ndarray], notes: list[str]
) -> Contents:
    """Contents of an array: named columns where there are names, a bare matrix otherwise."""
    import polars as pl

    frame = pl.DataFrame(labels)
    if names is None:
        return Contents(frame, matrix, tuple(labels), notes=tuple(notes))
    kept = {_free(name, names): column for name, column in labels.items()}
    features = pl.from_numpy(matrix, schema=names, orient="row")
    frame = features.hstack(frame.rename(dict(zip(labels, kept, strict=True))))
    return Contents(frame, None, tuple(kept), notes=tuple(notes))


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_label"
    return name


def unreadable(path: str | os.PathLike[str], kind: str, reason: object) -> DataError:
    """The error for a file that is not what its name says; a library's essay becomes one line."""
    first = str(reason).strip().split("\n")[0][:160].rstrip(".") or type(reason).__name__
    return DataError(f"{os.fspath(path)}: cannot be read as {kind}: {first}.")
