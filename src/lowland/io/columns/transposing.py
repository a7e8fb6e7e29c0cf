"""Tables whose rows are the columns to map, such as genes in rows and cells in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse
from lowland._core.wording import listing
from lowland.io.contents import Contents, Request, named_matrix

if TYPE_CHECKING:
    import polars as pl


def transposed(source: str, contents: Contents, request: Request) -> Contents:
    """Rows become columns and the reverse; names of rows become names of columns and the reverse.

    The names of the rows are those of ``request.id_column``, else of the row id of the source, else
    of the first column of text. Other columns of text describe rows that are now columns: they are
    left out, and a note says so.
    """
    if contents.matrix is None:
        return _transposed_frame(source, contents, request)
    names = None
    id_name = request.id_column or contents.id_name
    if id_name is not None:
        _check_id(source, id_name, contents.frame.columns)
        names = [str(name) for name in contents.frame[id_name]]
    left = [name for name in contents.frame.columns if name != id_name]
    matrix = contents.matrix.T
    matrix = matrix.tocsr() if is_sparse(contents.matrix) else np.ascontiguousarray(matrix)
    return _named(matrix, names, contents.matrix_names, contents.notes, left, id_name)


def _transposed_frame(source: str, contents: Contents, request: Request) -> Contents:
    import polars as pl

    frame = contents.frame
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    id_name = request.id_column or contents.id_name or (texts[0] if texts else None)
    if id_name is not None:
        _check_id(source, id_name, frame.columns)
    numbers = [
        name
        for name, dtype in frame.schema.items()
        if (dtype.is_numeric() or dtype == pl.Boolean) and name != id_name
    ]
    if not numbers:
        found = listing(
            [f"{name!r} ({dtype})" for name, dtype in frame.schema.items()], quote=False
        )
        raise DataError(f"{source}: no column of numbers to transpose; found {found}.")
    names = None if id_name is None else _row_names(frame[id_name])
    left = [name for name in frame.columns if name not in {id_name, *numbers}]
    block = _block(frame.select(numbers))
    return _named(block.T, names, numbers, contents.notes, left, id_name)


def _block(frame: pl.DataFrame) -> np.ndarray:
    """The numbers as one array; NaN where they are missing."""
    import polars as pl

    narrow = all(dtype == pl.Float32 for dtype in frame.dtypes)
    return frame.cast(pl.Float32 if narrow else pl.Float64).to_numpy()


def _row_names(column: pl.Series) -> list[str]:
    return [f"row_{i}" if name is None else str(name) for i, name in enumerate(column.to_list())]


def _named(
    matrix: Any,
    names: list[str] | None,
    ids: Any,
    notes: tuple[str, ...],
    left: list[str],
    id_name: str | None,
) -> Contents:
    """The contents of the transposed matrix; ``ids`` name its rows, ``names`` its columns."""
    rows, columns = matrix.shape
    called = "" if id_name is None else f", named by {id_name!r}"
    said = [f"transposed: {rows} columns became rows, {columns} rows became columns{called}"]
    if left:
        said.append(f"columns that describe the former rows are left out: {listing(left)}")
    labels = {} if ids is None else {"row": np.array([str(name) for name in ids], dtype=object)}
    return named_matrix(matrix, names, labels, (*notes, *said), "row" if labels else None)


def _check_id(source: str, id_name: str, known: list[str]) -> None:
    from lowland._core.errors import unknown_name

    if id_name not in known:
        raise DataError(f"{source}: {unknown_name('column', id_name, known)}")
