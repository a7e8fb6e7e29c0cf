"""Sparse matrices: what ``scipy.sparse.save_npz`` wrote, MatrixMarket, and parts of H5AD."""

from __future__ import annotations

import contextlib
import mmap
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError
from lowland._base.sparse_input import as_csr, well_formed
from lowland.tables.budget import require_for_sparse, require_for_table
from lowland.tables.contents import Contents, Request, named_matrix, one_line, unreadable
from lowland.tables.finite import float_type
from lowland.tables.opening import File

if TYPE_CHECKING:
    import scipy.sparse


def read_matrix_market(file: File, request: Request) -> Contents:
    """MatrixMarket: a sparse matrix (coordinate) or a dense one (array) of real numbers."""
    import scipy.io

    try:
        rows, columns, stored, layout, field, symmetry = scipy.io.mminfo(file.path)
        if field == "complex":
            raise DataError(f"{file}: holds complex numbers, expected real ones.")
        # "1 1\n" is the shortest entry, and "1\n" the shortest number of an array.
        listed = stored if layout == "coordinate" else rows * columns // 2
        if listed * (4 if layout == "coordinate" else 2) > file.size + 2:
            raise ValueError(f"it is cut short: {file.size} bytes cannot hold {stored} entries")
        if layout == "coordinate":
            stored = stored if symmetry == "general" else 2 * stored
            require_for_sparse(file, rows, columns, stored)
        else:
            require_for_table(file, rows, columns, 16 * columns)
        with _terminated(file) as path:
            matrix = scipy.io.mmread(path)
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


@contextlib.contextmanager
def _terminated(file: File) -> Iterator[Path]:
    """A path to the same text that ends in a line feed.

    The parser of SciPy reads beyond the text where a number ends at its end or at a null byte, and
    may crash.
    """
    with (
        file.path.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text,
    ):
        if text.find(b"\0") >= 0:
            raise unreadable(file, "MatrixMarket", "it holds a null byte")
        end = text[-200:]
    if end.endswith(b"\n"):
        yield file.path
        return
    try:
        float(end.split()[-1])
    except (IndexError, ValueError):
        raise unreadable(file, "MatrixMarket", "it is cut short within a number") from None
    with tempfile.TemporaryDirectory(prefix="lowland-") as folder:
        copy = Path(folder) / "file.mtx"
        shutil.copyfile(file.path, copy)
        with copy.open("ab") as text_file:
            text_file.write(b"\n")
        yield copy


def compressed_rows(matrix: Any, where: str) -> scipy.sparse.csr_matrix:
    """CSR of float32 or float64, each entry stored once, its columns in order."""
    import scipy.sparse

    _check_numbers(matrix.dtype, where)
    if 0 in matrix.shape:
        raise DataError(f"{where}: is empty, its shape is {matrix.shape}.")
    well_formed(matrix, where)
    # Converted before entries are summed, because sums of small integers overflow.
    numbers = np.empty(0, matrix.dtype) if matrix.format in ("lil", "dok") else matrix.data
    matrix = matrix.astype(float_type(numbers), copy=False)
    return scipy.sparse.csr_matrix(as_csr(matrix))


def _check_numbers(dtype: np.dtype[Any], where: str) -> None:
    if dtype.kind not in "biuf":
        raise DataError(f"{where}: holds {dtype}, expected real numbers.")
