"""The source of a table: a bundled data set, a folder of images, or a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lowland._core.errors import DataError, unknown_name
from lowland.io.arrays import read_npy, read_npz
from lowland.io.columnar import read_arrow, read_parquet
from lowland.io.contents import Contents, Request, named_matrix
from lowland.io.delimited import read_csv, read_tsv
from lowland.io.h5ad import read_h5ad
from lowland.io.images import read_images
from lowland.io.ndjson import read_ndjson
from lowland.io.opening import File, format_suffix, opened
from lowland.io.sparse import read_matrix_market

__all__ = ["CONTAINERS", "READERS", "bundled_contents", "check_file", "read_source"]

Reader = Callable[[File, Request], Contents]

READERS: dict[str, Reader] = {
    ".arrow": read_arrow,
    ".csv": read_csv,
    ".feather": read_arrow,
    ".h5ad": read_h5ad,
    ".ipc": read_arrow,
    ".jsonl": read_ndjson,
    ".mtx": read_matrix_market,
    ".ndjson": read_ndjson,
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".tsv": read_tsv,
}
CONTAINERS = (".h5ad", ".npz")  # formats that hold several parts


def read_source(source: str | os.PathLike[str], request: Request) -> Contents:
    """Contents of a bundled data set (a bare name), a folder, or a file (with a suffix)."""
    from lowland import datasets

    text = os.fspath(source)
    if not text.strip():
        raise DataError("the name of the input is empty; give a file, a folder or a data set.")
    path = Path(text)
    bare = not path.suffix and path.name == text
    if bare and text.lower().replace("-", "_") in datasets.names():
        _check_part(text, "", request.part)
        return bundled_contents(datasets.load_dataset(text))
    if bare and not path.exists():
        known = unknown_name("data set", text, datasets.names())
        raise DataError(f"{text}: no such file, and {known}")
    if path.is_dir():
        _check_part(text, "", request.part)
        return read_images(path)
    check_file(path, READERS, request.part)
    with opened(path) as file:
        return READERS[format_suffix(path)](file, request)


def check_file(path: Path, readers: dict[str, Reader], part: str | None) -> None:
    """Refuse a file that does not exist, has no reader, or has no parts although one is named."""
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


def bundled_contents(data: Any) -> Contents:
    """A data set of ``lowland.datasets``; its classes and true coordinates become labels."""
    labels: dict[str, np.ndarray] = {}
    if data.labels is not None:
        labels["class"] = data.labels
    if data.truth is not None:
        for i, column in enumerate(data.truth.T, start=1):
            labels[f"truth_{i}"] = np.ascontiguousarray(column)
    return named_matrix(data.X, list(data.feature_names), labels)
