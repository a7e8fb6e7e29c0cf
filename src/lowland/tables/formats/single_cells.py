"""Folders of 10x Genomics: a sparse matrix with its genes and barcodes in files next to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, listing, unknown_name
from lowland._base.validation import as_array, is_sparse
from lowland.tables.budget import require_for_sparse
from lowland.tables.contents import Contents, Request, named_matrix
from lowland.tables.formats.arrays import checked_matrix, compressed_rows, read_matrix_market
from lowland.tables.formats.columnar import polars_reading
from lowland.tables.opening import opened

if TYPE_CHECKING:
    import polars as pl

# AnnData objects in memory: the parts that an H5AD file has, without a file.
#
# The package anndata is not imported: a caller with such an object has imported it.


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
    known = [] if data.X is None else ["X"]
    known += [] if data.raw is None else ["raw/X"]
    known += [f"{folder}/{key}" for folder in FOLDERS for key in getattr(data, folder)]
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


MATRIX = "matrix.mtx"
GENES = ("features.tsv", "genes.tsv")
EXPRESSION = "Gene Expression"  # the kind of features that is taken unless another one is named


class CellFiles(NamedTuple):
    """The three files of one experiment."""

    matrix: Path
    barcodes: Path
    genes: Path


def cell_files(path: Path) -> CellFiles | None:
    """The files in a folder, or those beside a matrix; None if they are not there.

    They may have a common beginning, such as ``GSM1_matrix.mtx.gz`` and ``GSM1_barcodes.tsv.gz``.
    """
    if path.is_dir():
        found = [_beside(each) for each in sorted(path.iterdir()) if _bare(each).endswith(MATRIX)]
        complete = [files for files in found if files is not None]
        if len(complete) > 1:
            names = listing([files.matrix.name for files in complete])
            raise DataError(f"{path}: holds several matrices: {names}; give the path of one.")
        return complete[0] if complete else None
    if path.suffix.lower() in (".mtx", ".gz") and _bare(path).endswith(".mtx") and path.is_file():
        return _beside(path)
    return None


def _bare(path: Path) -> str:
    return path.name.lower().removesuffix(".gz")


def _beside(matrix: Path) -> CellFiles | None:
    bare = _bare(matrix)
    start = matrix.name[: len(bare) - len(MATRIX)] if bare.endswith(MATRIX) else ""
    found = []
    for names in (("barcodes.tsv",), GENES):
        paths = [matrix.with_name(f"{start}{n}{gz}") for n in names for gz in ("", ".gz")]
        found.append(next((path for path in paths if path.is_file()), None))
    barcodes, genes = found
    return CellFiles(matrix, barcodes, genes) if barcodes and genes else None


def read_cells(source: str, files: CellFiles, request: Request) -> Contents:
    """Cells in rows, genes in columns; the barcodes name the rows."""
    with opened(files.matrix) as file:
        matrix = read_matrix_market(file, request).matrix
    if isinstance(matrix, np.ndarray):
        import scipy.sparse

        matrix = scipy.sparse.csr_matrix(matrix)
    genes, barcodes = _columns(files.genes), _columns(files.barcodes)
    sizes = len(genes[0]), len(barcodes[0])
    if matrix.shape == sizes:
        require_for_sparse(source, *matrix.shape, matrix.nnz)
        matrix = compressed_rows(matrix.T, source)
    elif matrix.shape != sizes[::-1]:
        shape = f"{matrix.shape[0]} rows and {matrix.shape[1]} columns"
        lines = f"{sizes[0]} lines in {files.genes.name} and {sizes[1]} in {files.barcodes.name}"
        raise DataError(f"{source}: {files.matrix.name} has {shape}, but there are {lines}.")
    names = np.array(genes[1] if len(genes) > 1 else genes[0], dtype=object)
    notes = [f"{files.matrix.name} with {files.genes.name} and {files.barcodes.name}"]
    kinds = sorted({*genes[2]}) if len(genes) > 2 else []
    chosen = request.part or (EXPRESSION if EXPRESSION in kinds else None)
    if chosen is not None:
        if not kinds:
            what = f"{files.genes.name} has no kinds of features to choose from"
            raise DataError(f"{source}: {what}.")
        if chosen not in kinds:
            what = f"has no features of kind {chosen!r}; found {listing(kinds)}"
            raise DataError(f"{source}: {what}.")
        kept = np.flatnonzero(np.array(genes[2], dtype=object) == chosen)
        matrix, names = matrix[:, kept], names[kept]
        others = [kind for kind in kinds if kind != chosen]
        if others:
            notes.append(f"features of kind {chosen!r} only; --part takes {listing(others)}")
    return named_matrix(matrix, names.tolist(), {"barcode": barcodes[0]}, notes, "barcode")


def _columns(path: Path) -> list[list[str]]:
    """The columns of a small file of names, without a header."""
    import polars as pl

    with opened(path) as file, polars_reading(file, "text"):
        how: dict[str, Any] = {"has_header": False, "infer_schema": False, "quote_char": None}
        frame = pl.read_csv(file.path, separator="\t", **how)
    return [column.fill_null("").to_list() for column in frame.iter_columns()]
