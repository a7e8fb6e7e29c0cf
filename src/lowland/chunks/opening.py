"""Files as one table in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from lowland._base.constraints import Integer, check_argument
from lowland._base.errors import DataError
from lowland._base.rows.chunks import TASK_ROWS, chunk_ranges, chunk_rows
from lowland._base.rows.table import Rows
from lowland.tables.file_chunks import FileChunk, Layout, Look, SourceFile
from lowland.tables.in_chunks import Choice, layout_of, looked_at, source_paths

TEXT_BYTES = 1 << 27  # of a chunk of text, about
MOST_CHUNKS = 1 << 22  # of one file; a forged directory may claim any number of rows


def open_rows(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    id_column: str | None = None,
    frames: bool = False,
    task_rows: int = TASK_ROWS,
) -> Rows:
    """Open files as one table that is read in chunks, and check that they fit together.

    Files: Parquet, Arrow, delimited text, NPY, and Zarr arrays; Parquet also at an address such as
    ``s3://bucket/folder/*.parquet``. Of Parquet, Arrow, NPY and Zarr only the directory is read
    now. Of text, the rows are counted, which reads it once, and the types of its columns are
    decided by the first rows and by rows from all over the file; a later value that does not fit
    is an error when it is read. A file must not change afterwards.

    Parameters
    ----------
    source : str or path, or several of them
        A file, a pattern such as ``"runs/*.parquet"``, a folder with files of one kind (those
        whose names begin with ``_`` or ``.`` are left out), or a list. Rows come in the order of
        the list, files of a pattern or a folder by name.
    columns : sequence of str, optional
        The columns that methods see, in this order. By default all columns of numbers and truth
        values but the labels and the id. An array has no names; it takes these.
    labels : sequence of str, optional
        Columns carried along. By default text, dates and categories.
    id_column : str, optional
        The column that names the rows; by default what a file declares as such.
    frames : bool
        Blocks hold data frames of the columns in their own types, and no column goes along.
    task_rows : int
        Rows of a task, at most. It is part of what fixes the last bits of results.

    Returns
    -------
    Rows
        Blocks of float32 if that holds all numbers exactly (float32, whole numbers of 16 bits,
        truth values), else of float64. Missing values are NaN.

    Raises
    ------
    DataError
        A file is missing, empty, damaged, given twice, lacks a column, or has text where the first
        file has numbers. The message names the file.
    """
    check_argument("open_rows: task_rows", task_rows, Integer(1))
    choice = Choice.of(columns, labels, id_column, frames)
    looks = list(looked_at(source_paths(source)))
    layout, names, id_name = layout_of(looks, choice)
    width = len(names) if names is not None else looks[0].width
    step = chunk_rows(width, task_rows)
    chunks = [chunk for look in looks for chunk in _chunks(look, layout, step)]
    dtype = object if frames else layout.dtype
    roles = {"names": names, "beside": layout.beside, "id_name": id_name}
    return Rows(chunks, width, dtype, **roles, task_rows=task_rows)


def _chunks(look: Look, layout: Layout, step: int) -> Iterator[FileChunk]:
    """The chunks of a file; they share what they have in common."""
    if look.n_rows > step * MOST_CHUNKS:
        raise DataError(f"{look.name}: claims to hold {look.n_rows} rows; it is damaged.")
    file = SourceFile(look.name, look.path, look.stamp, look.reader, layout)
    begin = 0
    if look.marks is not None:  # a row of text may be as long as it likes
        begin = int(look.marks.places[0])
        row_bytes = (look.marks.end - begin) // look.n_rows + 1
        while step > 1 and step * row_bytes > TEXT_BYTES:
            step = (step + 1) // 2
    for i, j in chunk_ranges(look.n_rows, step):
        if look.marks is None:
            yield FileChunk(file, i, j - i)
            continue
        end = look.marks.begin(look.path, look.name, j)
        yield FileChunk(file, i, j - i, (begin, end))
        begin = end
