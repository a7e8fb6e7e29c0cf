"""The source of a table: a bundled data set, a folder of images, or a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError, unknown_name
from lowland.datasets.catalog import DISTANCES, plain
from lowland.io.arrays import read_npy, read_npz
from lowland.io.columnar import read_arrow, read_parquet
from lowland.io.contents import Contents, Request, named_matrix
from lowland.io.delimited import read_text
from lowland.io.h5ad import read_h5ad
from lowland.io.images import read_images
from lowland.io.ndjson import read_ndjson
from lowland.io.opening import File, format_suffix, opened
from lowland.io.sparse import read_matrix_market
from lowland.io.streams import STDIN, is_stream

if TYPE_CHECKING:
    from lowland.datasets import Dataset

__all__ = [
    "CONTAINERS",
    "READERS",
    "bundled",
    "bundled_contents",
    "check_file",
    "holds_distances",
    "read_source",
]

Reader = Callable[[File, Request], Contents]

READERS: dict[str, Reader] = {
    ".arrow": read_arrow,
    ".csv": read_text,
    ".dat": read_text,
    ".data": read_text,
    ".feather": read_arrow,
    ".h5ad": read_h5ad,
    ".ipc": read_arrow,
    ".jsonl": read_ndjson,
    ".mtx": read_matrix_market,
    ".ndjson": read_ndjson,
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".tab": read_text,
    ".tsv": read_text,
    ".txt": read_text,
}
CONTAINERS = (".h5ad", ".npz")  # formats that hold several parts


def read_source(source: str | os.PathLike[str], request: Request) -> Contents:
    """Contents of a bundled data set (a bare name), a folder, or a file (with a suffix)."""
    from lowland import datasets

    text = os.fspath(source)
    if not text.strip():
        raise DataError("the name of the input is empty; give a file, a folder or a data set.")
    path = Path(text)
    data = bundled(source)
    if data is not None:
        _check_part(text, "", request.part)
        return bundled_contents(data)
    if _is_bare(text) and not path.exists() and text != STDIN:
        known = unknown_name("data set", text, datasets.names())
        raise DataError(f"{text}: no such file, and {known}")
    if path.is_dir():
        _check_part(text, "", request.part)
        return read_images(path)
    check_file(path, READERS, request.part)
    with opened(path) as file:
        _check_part(text, file.suffix, request.part)
        return READERS[file.suffix](file, request)


def check_file(path: Path, readers: dict[str, Reader], part: str | None) -> None:
    """Refuse a file that does not exist, has no reader, or has no parts although one is named."""
    if is_stream(path) and not path.suffix:
        return  # its first bytes tell its format
    if not path.exists():
        raise DataError(f"{path}: no such file.")
    suffix = format_suffix(path)
    if suffix not in readers:
        kind = f"files ending in {suffix!r}" if suffix else "files without a suffix"
        known = ", ".join(sorted(readers))
        raise DataError(f"{path}: {kind} are not read; expected {known}, or these with .gz.")
    _check_part(str(path), suffix, part)


def _check_part(source: str, suffix: str, part: str | None) -> None:
    if part is not None and suffix not in CONTAINERS:
        raise DataError(
            f"{source}: has no parts, so there is no part {part!r}; "
            f"{' and '.join(CONTAINERS)} files have."
        )


def bundled(source: str | os.PathLike[str]) -> Dataset | None:
    """The bundled data set that a bare name such as ``iris`` stands for, else None.

    A file or folder of that name is reached by its path, as in ``./iris``.
    """
    from lowland import datasets

    text = os.fspath(source)
    known = _is_bare(text) and plain(text) in datasets.names()
    return datasets.load_dataset(text) if known else None


def holds_distances(source: str | os.PathLike[str]) -> bool:
    """Whether a source is known to hold distances: a bundled table of them, such as ``eurodist``.

    What a file holds is for the caller to say.

    >>> holds_distances("eurodist"), holds_distances("iris"), holds_distances("eurodist.csv")
    (True, False, False)
    """
    text = os.fspath(source)
    return _is_bare(text) and plain(text) in DISTANCES


def _is_bare(text: str) -> bool:
    """Whether a name has neither folder nor suffix."""
    path = Path(text)
    return not path.suffix and path.name == text


def bundled_contents(data: Dataset) -> Contents:
    """The columns of a bundled data set; classes and true coordinates become labels."""
    if data.distances:
        raise DataError(
            f"{data.name}: holds distances between rows, no columns; read it as distances "
            "(read_distances in Python, --distances on the command line)."
        )
    labels: dict[str, Any] = {}
    if data.row_names is not None:
        labels["name"] = list(data.row_names)
    if data.labels is not None:
        labels["class"] = data.labels
    if data.truth is not None:
        for i, column in enumerate(data.truth.T, start=1):
            labels[f"truth_{i}"] = np.ascontiguousarray(column)
    id_name = "name" if data.row_names is not None else None
    return named_matrix(data.X, list(data.feature_names), labels, id_name=id_name)
