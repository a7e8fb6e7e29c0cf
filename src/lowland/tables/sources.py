"""The source of a table: a bundled data set, a folder of images, or a file."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, unknown_name
from lowland.datasets.catalog import DISTANCES, plain
from lowland.tables.contents import Contents, Request, named_matrix
from lowland.tables.formats.arrays import read_npy, read_npz
from lowland.tables.formats.columnar import ADDRESS, read_arrow, read_parquet
from lowland.tables.formats.delimited import read_text
from lowland.tables.formats.dialect import has_table, utf8
from lowland.tables.formats.h5ad import read_h5ad
from lowland.tables.formats.images import read_images
from lowland.tables.formats.ndjson import read_ndjson
from lowland.tables.formats.single_cells import cell_files, read_cells
from lowland.tables.formats.sparse import read_matrix_market
from lowland.tables.formats.workbooks import read_workbook
from lowland.tables.opening import (
    FORMATS,
    STDIN,
    TEXTS,
    File,
    is_stream,
    is_text,
    opened,
    same_kind,
    told_suffix,
)

if TYPE_CHECKING:
    from lowland.datasets import Dataset

Reader = Callable[[File, Request], Contents]

READERS: dict[str, Reader] = {
    **dict.fromkeys((".arrow", ".feather", ".ipc"), read_arrow),
    **dict.fromkeys(TEXTS, read_text),
    **dict.fromkeys((".jsonl", ".ndjson"), read_ndjson),
    **dict.fromkeys((".xlsm", ".xlsx"), read_workbook),
    ".h5ad": read_h5ad,
    ".mtx": read_matrix_market,
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
}
CONTAINERS = (".h5ad", ".npz", ".xlsm", ".xlsx")  # formats that hold several parts
FOREIGN = (".bin", ".h5", ".hdf5", ".json", ".zip")  # suffixes of what may be one of the formats


def read_source(source: str | os.PathLike[str], request: Request) -> Contents:
    """Contents of a bundled data set (a bare name), a folder, or a file."""
    from lowland import datasets

    text = os.fspath(source)
    refuse_address(text)
    path = Path(text)
    data = bundled(source)
    if data is not None:
        _check_part(text, "", request.part)
        return bundled_contents(data)
    if _is_bare(text) and not path.exists() and text != STDIN:
        known = unknown_name("data set", text, datasets.names())
        raise DataError(f"{text}: no such file, and {known}")
    cells = cell_files(path)
    if cells is not None:
        return read_cells(text, cells, request)
    if path.is_dir():
        _check_part(text, "", request.part)
        return read_images(path)
    with recognized(path, READERS, request.part) as (file, suffix, notes):
        contents = READERS[suffix](file, request)
    return dataclasses.replace(contents, notes=(*notes, *contents.notes))


def refuse_address(text: str) -> None:
    """Refuse what is no path: nothing, or an address on the web."""
    if not text.strip():
        raise DataError("the name of the input is empty; give a file, a folder or a data set.")
    if ADDRESS.match(text):
        raise DataError(
            f"{text}: is an address, and nothing is read from the web; download it first "
            "(curl -O ADDRESS) and give the file."
        )


@contextlib.contextmanager
def recognized(
    path: Path, readers: Mapping[str, Any], part: str | None
) -> Iterator[tuple[File, str, list[str]]]:
    """The opened file, the suffix of the format that it has, and a note if its name differs."""
    if not is_stream(path) and not path.exists():
        raise DataError(f"{path}: no such file.")
    with opened(path) as file:
        suffix, notes = _format(path, file, readers)
        _check_part(str(path), suffix, part)
        yield file, suffix, notes


def _format(path: Path, file: File, readers: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The suffix of the reader for a file, by its first bytes and by its name."""
    named, told = file.suffix, told_suffix(file.path)
    if told in readers and not same_kind(named, told):
        if named in readers or not named or named in FOREIGN:
            return told, [f"the file is read as {FORMATS[told]}, {_called(named)}"]
    elif named in TEXTS or (named in readers and (told or not _is_table(file))):
        return named, []
    elif not told and _is_table(file):
        return ".csv", [f"the file is read as delimited text, {_called(named)}"]
    kind = f"files ending in {named!r}" if named else "files without a suffix"
    known = ", ".join(sorted(readers))
    raise DataError(f"{path}: {kind} are not read; expected {known}, or these with .gz.")


def _called(suffix: str) -> str:
    return f"although its name ends in {suffix}" if suffix else "its name has no suffix"


def _is_table(file: File) -> bool:
    """Whether a file is text whose lines have equally many fields, many of them numbers."""
    if not is_text(file.path):
        return False
    try:
        with utf8(file) as (text, _):
            return has_table(text)
    except DataError:
        return False


def _check_part(source: str, suffix: str, part: str | None) -> None:
    if part is not None and suffix not in CONTAINERS:
        raise DataError(
            f"{source}: has no parts, so there is no part {part!r}; "
            f"{', '.join(CONTAINERS[:-1])} and {CONTAINERS[-1]} files have."
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
    if not isinstance(source, str | os.PathLike):
        return False
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
