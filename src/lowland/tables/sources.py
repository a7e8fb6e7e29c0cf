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
from lowland.tables import opening
from lowland.tables.contents import Contents, Request, named_matrix
from lowland.tables.formats import (
    arrays,
    columnar,
    delimited,
    dialect,
    h5ad,
    images,
    single_cells,
    workbooks,
)
from lowland.tables.opening import File

if TYPE_CHECKING:
    from lowland.datasets import Dataset

Reader = Callable[[File, Request], Contents]

READERS: dict[str, Reader] = {
    **dict.fromkeys((".arrow", ".feather", ".ipc"), columnar.read_arrow),
    **dict.fromkeys(opening.TEXTS, delimited.read_text),
    **dict.fromkeys((".jsonl", ".ndjson"), columnar.read_ndjson),
    **dict.fromkeys((".xlsm", ".xlsx"), workbooks.read_workbook),
    ".h5ad": h5ad.read_h5ad,
    ".mtx": arrays.read_matrix_market,
    ".npy": arrays.read_npy,
    ".npz": arrays.read_npz,
    **dict.fromkeys((".parquet", ".pq"), columnar.read_parquet),
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
    if _is_bare(text) and not path.exists() and text != opening.STDIN:
        known = unknown_name("data set", text, datasets.names())
        raise DataError(f"{text}: no such file, and {known}")
    cells = single_cells.cell_files(path)
    if cells is not None:
        return single_cells.read_cells(text, cells, request)
    if path.is_dir():
        _check_part(text, "", request.part)
        return images.read_images(path)
    with recognized(path, READERS, request.part) as (file, suffix, notes):
        contents = READERS[suffix](file, request)
    return dataclasses.replace(contents, notes=(*notes, *contents.notes))


def refuse_address(text: str) -> None:
    """Refuse what is not a path: nothing, or an address on the web."""
    if not text.strip():
        raise DataError("the name of the input is empty; give a file, a folder or a data set.")
    if columnar.ADDRESS.match(text):
        raise DataError(f"{text}: is an address; download it first (curl -O columnar.ADDRESS).")


@contextlib.contextmanager
def recognized(
    path: Path, readers: Mapping[str, Any], part: str | None
) -> Iterator[tuple[File, str, list[str]]]:
    """The opened file, the suffix of the format that it has, and a note if its name differs."""
    if not opening.is_stream(path) and not path.exists():
        raise DataError(f"{path}: no such file.")
    with opening.opened(path) as file:
        suffix, notes = _format(path, file, readers)
        _check_part(str(path), suffix, part)
        yield file, suffix, notes


def _format(path: Path, file: File, readers: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The suffix of the reader for a file, by its first bytes and by its name."""
    named, told = file.suffix, opening.told_suffix(file.path)
    found = told if told in readers and not opening.same_kind(named, told) else ""
    if found:
        found = found if named in readers or not named or named in FOREIGN else ""
    elif named in opening.TEXTS or (named in readers and (told or not _is_table(file))):
        return named, []
    elif not told and _is_table(file):
        found = ".csv"
    if found:
        but = f"although its name ends in {named}" if named else "its name has no suffix"
        return found, [f"the file is read as {opening.KNOWN[found].name}, {but}"]
    kind = f"files ending in {named!r}" if named else "files without a suffix"
    known = ", ".join(sorted(readers))
    raise DataError(f"{path}: {kind} are not read; expected {known}, or these with .gz.")


def _is_table(file: File) -> bool:
    """Whether a file is text whose lines have equally many fields, many of them numbers."""
    if not opening.is_text(file.path):
        return False
    try:
        with dialect.utf8(file) as (text, _):
            return dialect.has_table(text)
    except DataError:
        return False


def _check_part(source: str, suffix: str, part: str | None) -> None:
    if part is not None and suffix not in CONTAINERS:
        some = f"{', '.join(CONTAINERS[:-1])} and {CONTAINERS[-1]} files have"
        raise DataError(f"{source}: has no parts, so there is no part {part!r}; {some}.")


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
        advice = "read it as distances (read_distances, --distances)"
        raise DataError(f"{data.name}: holds distances between rows, no columns; {advice}.")
    names = None if data.row_names is None else list(data.row_names)
    labels = {"name": names, "class": data.labels, **true_coordinates(data)}
    labels = {name: values for name, values in labels.items() if values is not None}
    id_name = None if names is None else "name"
    return named_matrix(data.X, list(data.feature_names), labels, id_name=id_name)


def true_coordinates(data: Dataset) -> dict[str, np.ndarray]:
    """The coordinates that a data set was made of, as labels."""
    truth = () if data.truth is None else data.truth.T
    return {f"truth_{i}": np.ascontiguousarray(t) for i, t in enumerate(truth, start=1)}
