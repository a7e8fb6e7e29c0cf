"""Sparse matrices: what ``scipy.sparse.save_npz`` wrote, MatrixMarket, and parts of H5AD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import canonical
from lowland.io.budget import require_for_sparse, require_for_table
from lowland.io.contents import Contents, Request, named_matrix, one_line, unreadable
from lowland.io.finite import float_type
from lowland.io.opening import File

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["SPARSE_MEMBERS", "compressed_rows", "from_members", "read_matrix_market"]

COMPRESSED = ("data", "indices", "indptr")
# The arrays of each format of save_npz, beside ``format`` and ``shape``.
SPARSE_MEMBERS = {
    "bsr": COMPRESSED,
    "coo": ("data", "row", "col"),
    "csc": COMPRESSED,
    "csr": COMPRESSED,
    "dia": ("data", "offsets"),
}


def read_matrix_market(file: File, request: Request) -> Contents:
    """MatrixMarket: a sparse matrix (coordinate) or a dense one (array) of real numbers."""
    import scipy.io

    try:
        rows, columns, stored, layout, field, _ = scipy.io.mminfo(file.path)
        if field == "complex":
            raise DataError(f"{file}: holds complex numbers, expected real ones.")
        if layout == "coordinate":
            require_for_sparse(file, rows, columns, stored)
        else:
            require_for_table(file, rows, columns, 16 * columns)
        matrix = scipy.io.mmread(file.path)
    except DataError:
        raise
    except (ArithmeticError, OSError, TypeError, ValueError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        reason = one_line(error)
        if reason.startswith("Line "):
            place, _, what = reason.partition(": ")
            raise DataError(f"{file}, {place.lower()}: {what}.") from error
        raise unreadable(file, "MatrixMarket", reason) from error
    if isinstance(matrix, np.ndarray):
        return named_matrix(np.asarray(matrix, np.float64), None, {})
    return named_matrix(compressed_rows(matrix, str(file)), None, {})


def from_members(file: File, members: Mapping[str, Any]) -> scipy.sparse.csr_matrix:
    """The matrix that ``save_npz`` wrote, from its arrays by name, as CSR."""
    import scipy.sparse

    kind = bytes(members["format"].tobytes()).replace(b"\0", b"").decode("ascii", "replace")
    shape = tuple(int(size) for size in members["shape"].ravel())
    if kind not in SPARSE_MEMBERS:
        raise DataError(f"{file}: holds a sparse matrix of unknown format {kind!r}.")
    missing = [name for name in SPARSE_MEMBERS[kind] if name not in members]
    if missing:
        raise DataError(f"{file}: the sparse matrix lacks its array {missing[0]!r}.")
    if len(shape) != 2 or min(shape) < 0:
        raise DataError(f"{file}: the sparse matrix has shape {shape}, expected rows and columns.")
    data, *places = (members[name] for name in SPARSE_MEMBERS[kind])
    _check_numbers(data.dtype, str(file))
    if any(place.dtype.kind not in "iu" for place in places):
        raise DataError(f"{file}: the sparse matrix has indices that are not whole numbers.")
    require_for_sparse(file, *shape, data.size)
    build = getattr(scipy.sparse, f"{kind}_matrix")
    try:
        if kind == "coo":
            matrix = build((data, tuple(places)), shape=shape)
        elif kind == "dia":
            matrix = build((data, *places), shape=shape)
        else:
            matrix = build((data, *places), shape=shape)
            # Checked before any computation: a wrong index would be read out of bounds.
            matrix.check_format(full_check=True)
    except (IndexError, OverflowError, TypeError, ValueError) as error:
        raise unreadable(file, "a sparse matrix", error) from error
    return compressed_rows(matrix, str(file))


def compressed_rows(matrix: Any, where: str) -> scipy.sparse.csr_matrix:
    """CSR of float32 or float64, each entry stored once, its columns in order."""
    import scipy.sparse

    _check_numbers(matrix.dtype, where)
    if 0 in matrix.shape:
        raise DataError(f"{where}: is empty, its shape is {matrix.shape}.")
    # Converted before entries are summed, because sums of small integers overflow.
    matrix = matrix.astype(float_type(matrix.data), copy=False)
    return scipy.sparse.csr_matrix(canonical(matrix.tocsr()))


def _check_numbers(dtype: np.dtype[Any], where: str) -> None:
    if dtype.kind not in "biuf":
        raise DataError(f"{where}: holds {dtype}, expected real numbers.")
