"""AnnData objects in memory: the parts that an H5AD file has, without a file.

The package anndata is not imported: whoever has such an object has imported it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowland._base.errors import DataError, unknown_name
from lowland._base.validation import as_array, is_sparse
from lowland.tables.contents import Contents, named_matrix
from lowland.tables.formats.arrays import checked_matrix
from lowland.tables.formats.sparse import compressed_rows

if TYPE_CHECKING:
    import polars as pl

DISTANCES = "obsp/distances"
FOLDERS = ("layers", "obsm", "obsp")


def is_anndata(data: Any) -> bool:
    """Whether the data are an ``anndata.AnnData``."""
    return any(
        cls.__name__ == "AnnData" and cls.__module__.partition(".")[0] == "anndata"
        for cls in type(data).__mro__
    )


def observations(data: Any) -> Any:
    """The pandas data frame ``obs`` with text as names of rows and columns."""
    return data.obs.rename(columns=str).set_axis([str(row) for row in data.obs_names], axis=0)


def anndata_contents(
    data: Any, name: str, part: str | None, labels: pl.DataFrame, id_name: str | None
) -> Contents:
    """The part asked for (``X`` by default) beside the labels that were made of ``obs``."""
    part = part or "X"
    matrix, names = _matrix(data, name, part)
    if names is None and part.partition("/")[0] in ("X", "layers", "raw"):
        names = (data.raw if part == "raw/X" else data).var_names
    listed = None if names is None else [str(column) for column in names]
    return named_matrix(matrix, listed, labels, id_name=id_name)


def _matrix(data: Any, name: str, part: str) -> tuple[Any, Any]:
    """The numbers of a part, and the names of its columns if the part has them."""
    known = _parts(data)
    if part not in known:
        raise DataError(f"{name}: {unknown_name('part', part, known)}")
    folder, _, key = part.partition("/")
    held = data.raw if folder == "raw" else data
    values = held.X if part in ("X", "raw/X") else getattr(data, folder)[key]
    where = f"{name}, part {part!r}"
    names = getattr(values, "columns", None)
    if hasattr(values, "to_memory"):  # of an object that reads from its file when it is asked
        values = values.to_memory()
    if is_sparse(values):
        return compressed_rows(values, where), names
    values = values[()] if hasattr(values, "id") and hasattr(values, "chunks") else values
    return checked_matrix(as_array(values, where), where), names


def _parts(data: Any) -> list[str]:
    """All parts that can be read."""
    found = [] if data.X is None else ["X"]
    found += [] if data.raw is None else ["raw/X"]
    return found + [f"{folder}/{key}" for folder in FOLDERS for key in getattr(data, folder)]
