"""A table whose columns have roles: features to map, labels, and a row id."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import PYTHON, DataError, Spelling, listing, unknown_name
from lowland._base.html import SHOWN_ROWS, html_lines, html_table
from lowland._base.sparse_input import well_formed
from lowland._base.validation import is_sparse
from lowland.preparation._categories import parse_codes
from lowland.tables.columns.guessing import Guess
from lowland.tables.columns.roles import Roles, coded_as_missing, transposed
from lowland.tables.columns.vectors import expanded
from lowland.tables.contents import Contents, Request
from lowland.tables.finite import check_width, finite_array, finite_sparse, float_frame
from lowland.tables.several import listed_sources, read_several, shown_name
from lowland.tables.sources import read_source

if TYPE_CHECKING:
    import polars as pl

# The first rows of a table, as a notebook shows them.


SHOWN_COLUMNS = 8  # features, and as many labels


def table_html(table: Table) -> str:
    """Ids, the first features and the labels of the first rows; notes below."""
    rows, columns = table.shape
    names = table.feature_names or tuple(f"column {i}" for i in range(columns))
    shown, labels = names[:SHOWN_COLUMNS], table.labels.columns[:SHOWN_COLUMNS]
    head = table.features[:SHOWN_ROWS, : len(shown)]  # a sparse matrix shows its zeros
    features = (head.toarray() if table.is_sparse else np.asarray(head)).tolist()
    beside = table.labels.select(labels).head(SHOWN_ROWS).rows() if labels else [()] * len(features)
    gap = ["…"] if columns > len(shown) else []
    ids = table.ids.head(SHOWN_ROWS).to_list()
    body = [(row, *x, *gap, *texts) for row, x, texts in zip(ids, features, beside, strict=True)]
    headings = [table.ids.name, *shown, *gap, *(f"{label} (label)" for label in labels)]
    left_out = max(0, rows - SHOWN_ROWS)
    notes = html_lines(table.notes) if table.notes else ""
    return html_table(headings, body, repr(table), left_out=left_out) + notes


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """The features of a table, with labels and an id for each row.

    Parameters
    ----------
    source : str
        The file or data set, as the user named it.
    features : polars.DataFrame, ndarray or CSR matrix of shape (n_rows, n_features)
        Finite numbers (or NaN where missing ones were allowed), float32 or float64; a data frame
        where columns have names, unless the numbers are sparse.
    labels : polars.DataFrame
        The label columns, in their own types; may have none.
    ids : polars.Series
        One id per row; its name is the id column's, or ``row`` for plain row numbers.
    unused : tuple of str
        Columns that are neither features nor labels, such as numbers that were not asked for.
    notes : tuple of str
        Decisions of the reader that a person should know.
    sparse_names : tuple of str or None
        Names of the columns of a sparse matrix, which itself has none.
    image_shape : tuple of int or None
        Height and width, and 3 for colors, when each row is an image.
    source_rows : ndarray of int or None
        The number of each row in the source, if some rows of the source were left out.
    part : str or None
        What was taken out of a container, if it was named.
    guesses : tuple of Guess
        Columns that were set aside because they look like ids or classes, with the reasons.
    by_type : tuple of str
        Labels that were not chosen by the caller: columns that are not numbers.
    left_out : tuple of str
        Columns of nested or binary values, which have no role.
    """

    source: str
    features: Any
    labels: pl.DataFrame
    ids: pl.Series
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sparse_names: tuple[str, ...] | None = None
    image_shape: tuple[int, ...] | None = None
    source_rows: np.ndarray | None = None
    part: str | None = None
    guesses: tuple[Guess, ...] = ()
    by_type: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    has_ids: bool = False  # whether the ids are more than numbers of rows

    def __post_init__(self) -> None:
        if is_sparse(self.features):
            well_formed(self.features, self.source)

    def __repr__(self) -> str:
        rows, columns = self.shape
        labels = listing(self.labels.columns, 4, quote=False) or "none"
        kind = "sparse columns" if self.is_sparse else "columns"
        return f"Table({self.source!r}: {rows} rows, {columns} {kind}; labels: {labels})"

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        return table_html(self)

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        return is_sparse(self.features)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the feature columns; None for a bare array."""
        columns = getattr(self.features, "columns", self.sparse_names)
        return None if columns is None else tuple(columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and feature columns."""
        rows, columns = self.features.shape
        return rows, columns

    def without_names(self) -> Table:
        """The same table with its features as an array, for a model without names of columns."""
        features = self.features if self.is_sparse else np.asarray(self.features)
        return dataclasses.replace(self, features=features, sparse_names=None)

    def with_rows(self, kept: np.ndarray) -> Table:
        """The rows where ``kept`` is true: features, labels and ids of the same rows."""
        places = np.flatnonzero(kept)
        # in polars, a frame without columns has no number of rows
        labels = self.labels[places] if self.labels.width else self.labels
        return dataclasses.replace(
            self,
            features=self.features[places],
            labels=labels,
            ids=self.ids[places],
            source_rows=places if self.source_rows is None else self.source_rows[places],
        )

    def with_labels(self, labels: pl.DataFrame) -> Table:
        """The same table with more label columns."""
        import polars as pl

        columns = [*self.labels.get_columns(), *labels.get_columns()]
        return dataclasses.replace(self, labels=pl.DataFrame(columns))

    def column(self, name: str) -> pl.Series:
        """A label or feature by name, for coloring."""
        import polars as pl

        if name in self.labels.columns:
            return self.labels[name]
        known = [*self.labels.columns, *(self.feature_names or ())]
        if name not in known:
            raise DataError(f"{self.source}: {unknown_name('column', name, known)}")
        if self.sparse_names is not None:
            place = self.sparse_names.index(name)
            return pl.Series(name, self.features[:, [place]].toarray().ravel())
        return self.features[name]


def read_table(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    labels: Sequence[str] = (),
    id_column: str | None = None,
    part: str | None = None,
    vector: str | None = None,
    missing_values: Sequence[str] = (),
    transpose: bool = False,
    allow_missing: bool = False,
    use: Sequence[str] = (),
    drop: Sequence[str] = (),
    guess: bool = True,
    spelling: Spelling = PYTHON,
    allow_text: bool = False,
) -> Table:
    """Read a bundled data set, a file, several files, or a folder.

    Files: delimited text (``.csv``, ``.tsv``, ``.txt``, ``.dat``, ``.data``), Parquet, Arrow IPC
    (``.arrow``, ``.feather``, ``.ipc``), NDJSON (``.ndjson``, ``.jsonl``), NPY, NPZ (also what
    ``scipy.sparse.save_npz`` wrote), MatrixMarket (``.mtx``), Excel (``.xlsx``, with the extra
    ``lowland[excel]``) and H5AD (with the extra ``lowland[anndata]``), each also compressed by gzip
    (``.csv.gz``). A file is read by its content if the suffix does not match it. A folder of
    images of equal size gives one row per image, and a folder of 10x Genomics one row per cell.
    What needs more memory than the process may use is refused before it is read.

    Parameters
    ----------
    source : str or path, or several of them
        The name of a bundled data set, a file, or a folder; several files with the same columns,
        or a pattern such as ``runs/*.csv``, whose rows are stacked and get the label ``file``.
    columns : sequence of str, optional
        The feature columns, in this order. By default all columns of numbers and booleans. A bare
        array has no names: it must have this many columns and takes these names.
    labels : sequence of str
        Columns of numbers that are labels, not features. Text and dates always are.
    id_column : str, optional
        The column that names the rows; by default the ids of the file, or numbers from 0.
    part : str, optional
        What to take out of a container: the name of an array of an NPZ file, or of a sheet of an
        Excel file; ``X``, ``layers/NAME``, ``obsm/NAME`` or ``raw/X`` of an H5AD file; a kind of
        features of a 10x folder.
    vector : str, optional
        The column whose lists of numbers are the features; needed if there are several.
    missing_values : sequence of str
        Values that mean "missing", such as ``-999`` or ``unknown``; ``age=-1`` means those of one
        column.
    transpose : bool, default=False
        Whether the columns of the source are the rows of the table. The names of its rows
        (``id_column``, or the first column of text) become names of columns.
    allow_missing : bool, default=False
        Whether features may have missing values, which become NaN. Infinite values are always
        refused.
    use : sequence of str
        Features, although they look like ids or classes.
    drop : sequence of str
        Columns that get no role.
    guess : bool, default=True
        Whether whole numbers that look like ids (``article_id``, or numbers in sequence) or
        classes (``type``, ``cluster``) are set aside; ``guesses`` of the table states which and
        why. An array has no names, and nothing in it is set aside.
    spelling : Spelling
        How notes name the option that takes a guess back.
    allow_text : bool, default=False
        Whether there may be no column of numbers, and ``columns`` may name text, which is a label
        all the same.

    Returns
    -------
    Table

    Notes
    -----
    float32 stays float32 and other numbers become float64. Only a large table (over 16 million
    numbers) of whole numbers below 65536, such as pixels or counts, becomes float32, which is exact
    for them and takes half the memory.

    Examples
    --------
    >>> table = read_table("iris")
    >>> table.shape, table.labels.columns
    ((150, 4), ['class'])
    """
    request = Request(columns, labels, id_column, part, vector, missing_values, transpose)
    roles = {"use": use, "drop": drop, "guess": guess, "allow_text": allow_text}
    request = request._replace(spelling=spelling, **roles)
    return read_request(source, request, allow_missing=allow_missing)


def read_request(source: Any, request: Request, *, allow_missing: bool) -> Table:
    """The table that :func:`read_table` returns."""
    paths = listed_sources(source)
    name, wanted = shown_name(paths), request.for_reader()
    if len(paths) == 1:
        contents = read_source(paths[0], wanted)
        return make_table(name, contents, request, allow_missing=allow_missing)
    contents = read_several(paths, wanted)
    table = make_table(name, contents, request, allow_missing=allow_missing)
    twice = table.ids.filter(table.ids.is_duplicated()).unique(maintain_order=True)
    if not len(twice):
        return table
    shown = listing([str(value) for value in twice[:4].to_list()], quote=False)
    note = f"{len(twice)} row ids occur more than once, such as {shown}"
    return dataclasses.replace(table, notes=(*table.notes, note))


def make_table(
    name: str, contents: Contents, request: Request, *, allow_missing: bool = False
) -> Table:
    """The table of what a source holds, each column in its role."""
    contents, request = as_declared(name, contents, request)
    if contents.matrix is None and contents.frame.height == 0:
        raise DataError(f"{name}: there are no rows.")
    contents, request = expanded(name, contents, request)
    roles = Roles.assign(name, contents, request)
    features, sparse_names = _features(name, contents, roles, request, allow_missing)
    notes = (*contents.notes, *roles.notes(contents, request))
    return Table(
        name,
        features,
        contents.columns(roles.labels),
        row_ids(contents, roles.id_name, features.shape[0]),
        tuple(roles.unused),
        notes,
        sparse_names,
        contents.image_shape,
        part=request.part,
        guesses=roles.guesses,
        by_type=roles.by_type,
        left_out=tuple(roles.dropped),
        has_ids=roles.id_name is not None,
    )


def as_declared(name: str, contents: Contents, request: Request) -> tuple[Contents, Request]:
    """The contents with coded values missing, and transposed, as the user declares them."""
    codes = parse_codes(request.missing_values)
    if request.transpose:  # a code for one column means a column of the result
        everywhere = [code for code in codes if code.column is None]
        contents = coded_as_missing(contents, everywhere)
        contents = transposed(name, contents, request)
        request = request._replace(id_column=None, transpose=False, missing_values=())
        codes = [code for code in codes if code.column is not None]
    kept = {*request.labels, *contents.labels, request.id_column, contents.id_name}
    return coded_as_missing(contents, codes, kept), request


def _features(
    source: str, contents: Contents, roles: Roles, request: Request, allow_missing: bool
) -> tuple[Any, tuple[str, ...] | None]:
    """The features, and their names if they are sparse."""
    matrix = contents.matrix
    if matrix is None and not roles.features:
        return np.empty((contents.frame.height, 0)), None  # a frame would not know its rows
    if matrix is None:
        frame = contents.frame.select(roles.features)
        return float_frame(source, frame, allow_missing=allow_missing), None
    if not is_sparse(matrix):
        return finite_array(source, matrix, request.columns, allow_missing=allow_missing), None
    names = contents.matrix_names
    if names is not None and list(names) != roles.features:
        place = {name: i for i, name in enumerate(names)}
        for name in roles.features:
            if name not in place:
                what = f"{name!r} is a label, not a column of the sparse matrix"
                raise DataError(f"{source}: {what}.")
        matrix = matrix[:, [place[name] for name in roles.features]]
        matrix.sort_indices()
        names = tuple(roles.features)
    elif names is None and request.columns is not None:
        check_width(source, matrix, request.columns)
        names = tuple(request.columns)
    return finite_sparse(source, matrix, names, allow_missing=allow_missing), names


def row_ids(contents: Contents, id_name: str | None, rows: int) -> pl.Series:
    """The id column, or the numbers of the rows."""
    import polars as pl

    if id_name is not None:
        return contents.columns([id_name]).to_series()
    return pl.Series("row", np.arange(rows, dtype=np.int64))
