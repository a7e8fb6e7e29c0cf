"""Matrices of distances in files: with or without names, square or condensed."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland._base.validation import is_sparse
from lowland._engines.linalg.products import row_blocks
from lowland.tables.budget import require_for_table
from lowland.tables.contents import Contents, Request
from lowland.tables.finite import as_floats
from lowland.tables.formats.arrays import check_real, load_npy, load_npz, read_matrix_market
from lowland.tables.formats.delimited import UNNAMED, read_delimited, split_text
from lowland.tables.formats.dialect import MISSING, looks_numeric, records
from lowland.tables.formats.h5ad import read_h5ad
from lowland.tables.formats.numerals import without_marks
from lowland.tables.formats.single_cells import DISTANCES
from lowland.tables.opening import TEXTS, File
from lowland.tables.sources import READERS, bundled, recognized, refuse_address, true_coordinates
from lowland.tables.table import Table

if TYPE_CHECKING:
    import polars as pl

    from lowland.datasets import Dataset

# Checks of a matrix of distances; an error names the first entry that fails.


# d_ij and d_ji may differ by rounding, for example in files with six digits or from float32.
SAME = 1e-5
SELF = (
    "but a row is at distance 0 from itself; if these are similarities, use similarities=True or "
    "--similarities"
)
UNKNOWN = "is not known; fill it in, or allow missing distances (mds, nonmetric_mds, sammon)"
BLOCK = 1 << 22  # numbers compared at a time: 32 MB


def checked_dense(
    source: str, D: np.ndarray, names: Sequence[str] | None, *, allow_missing: bool
) -> tuple[np.ndarray, int]:
    """The distances, and how many were filled in from the other side of the diagonal."""
    _check_square(source, D.shape, "distances")
    place = _Places(source, names)
    D, mirrored = _mirrored(D)
    place.refuse_bad(D, UNKNOWN, allow_missing)
    largest = float(np.nanmax(D, initial=0.0))
    diagonal = np.diagonal(D)
    place.refuse_diagonal(diagonal, largest)
    for rows in row_blocks(D.shape[0], max(1, BLOCK // D.shape[0])):
        here, there = D[rows], D[:, rows].T
        unequal = np.abs(here - there) > SAME * np.maximum(here, there)
        if unequal.any():
            i, j = (int(k[0]) for k in np.nonzero(unequal))
            raise place.unequal(rows.start + i, j, here[i, j], there[i, j])
    return D, mirrored


def _mirrored(D: np.ndarray) -> tuple[np.ndarray, int]:
    """Distances given on one side of the diagonal are copied to the other; the diagonal is 0."""
    missing = np.isnan(D)
    if not missing.any():
        return D, 0
    D = np.where(missing, D.T, D)
    diagonal = np.diagonal(missing).copy()
    D[diagonal, diagonal] = 0.0
    known = ~np.isnan(D) & missing
    return D, int(known.sum() - diagonal.sum())


def checked_sparse(source: str, D: Any, names: Sequence[str] | None, *, allow_missing: bool) -> Any:
    """Checked distances; a pair stored twice has equal values. Dense if every pair is stored."""
    _check_square(source, D.shape, "distances")
    n = D.shape[0]
    place = _Places(source, names)
    rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(D.indptr))
    columns = D.indices.astype(np.int64)
    place.refuse_bad(D.data, "is not known; leave it out", allow_missing, (rows, columns))
    place.refuse_diagonal(D.diagonal(), D.data.max(initial=0.0))
    keys, mirror = rows * n + columns, columns * n + rows  # keys ascend: CSR is sorted
    there = np.minimum(np.searchsorted(keys, mirror), max(keys.size - 1, 0))
    both = keys[there] == mirror
    here, back = D.data[both], D.data[there[both]]
    unequal = np.flatnonzero(np.abs(here - back) > SAME * np.maximum(here, back))
    if unequal.size:
        k = np.flatnonzero(both)[unequal[0]]
        raise place.unequal(int(rows[k]), int(columns[k]), D.data[k], D.data[there[k]])
    complete = int((rows != columns).sum()) == n * (n - 1)
    return D.toarray() if complete else D


class _Places:
    """Names of entries in messages."""

    def __init__(self, source: str, names: Sequence[str] | None, entry: str = "distance") -> None:
        self.source, self.names, self.entry = source, names, entry

    def error(self, i: int, j: int, what: str) -> DataError:
        row, column = (i, j) if self.names is None else (repr(self.names[i]), repr(self.names[j]))
        return DataError(f"{self.source}: the {self.entry} in row {row}, column {column} {what}.")

    def unequal(self, i: int, j: int, here: float, there: float) -> DataError:
        what = f"is {here:g}, but {there:g} the other way round; distances are symmetric"
        return self.error(i, j, what)

    def refuse_diagonal(self, diagonal: np.ndarray, largest: float) -> None:
        bad = np.flatnonzero(diagonal > SAME * largest)
        if bad.size:
            i = int(bad[0])
            raise self.error(i, i, f"is {diagonal[i]:g}, {SELF}")

    def refuse_bad(self, D: np.ndarray, unknown: str, allow_missing: bool, at: Any = None) -> None:
        """Refuse distances that are not known, infinite or negative."""
        if not allow_missing:
            self.refuse_first(np.isnan(D), D, unknown, at)
        self.refuse_first(np.isinf(D), D, "is infinite", at)
        self.refuse_first(D < 0, D, "is negative", at)

    def refuse_first(self, bad: np.ndarray, D: np.ndarray, what: str, at: Any = None) -> None:
        """Refuse the first bad value; ``at`` are the rows and columns of stored values."""
        if bad.any():
            first = np.unravel_index(int(np.argmax(bad)), bad.shape)
            i, j = (int(k) for k in (first if at is None else (at[0][first], at[1][first])))
            count, value = int(bad.sum()), D[first]
            more = f" (the first of {count} such places)" if count > 1 else ""
            shown = "" if np.isnan(value) else f" ({value:g})"
            raise self.error(i, j, f"{what}{shown}{more}")


def _check_square(source: str, shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        size = " x ".join(map(str, shape))
        raise DataError(f"{source}: is {size}; a matrix of {what} is square.")


# Similarities between rows as distances: d_ij = sqrt(s_ii + s_jj - 2 s_ij).
#
# This is the distance between two points whose inner products are the similarities (Gower 1966).
# For correlations, whose diagonal is 1, it is sqrt(2 (1 - r)). Tables of judged similarities
# often leave the diagonal empty or 0; if all similarities are at most 1, it is taken to be 1.


def distances_of(source: str, S: Any, names: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
    """The distances of a square matrix of similarities, and the notes about it.

    In a sparse matrix, absent pairs have the similarity 0.
    """
    _check_square(source, S.shape, "similarities")
    n = S.shape[0]
    require_for_table(source, n, n, 3 * 8 * n)
    if is_sparse(S):
        S = S.toarray()
    check_real(source, S.dtype)
    S = np.where(np.isnan(S), S.T, S) if S.dtype.kind == "f" else S
    S = S.astype(np.float64)
    notes = ["similarities became distances: sqrt(s_ii + s_jj - 2 s_ij)"]
    diagonal = np.diagonal(S)
    empty = np.isnan(diagonal).all() or not diagonal.any()
    others = np.abs(S[~np.eye(n, dtype=bool)])
    if empty and others.any() and others.max() <= 1:
        np.fill_diagonal(S, 1.0)
        notes.append("the diagonal is empty: the similarity of a row with itself is taken to be 1")

    place = _Places(source, names, "similarity")
    place.refuse_first(~np.isfinite(S), S, "is missing or infinite")
    greatest = float(np.abs(S).max())
    unequal = np.abs(S - S.T) > SAME * greatest
    place.refuse_first(unequal, S, "is another one the other way round")
    diagonal = np.diagonal(S)
    squares = diagonal[:, None] + diagonal - 2.0 * S
    too_large = "is larger than those of the two rows with themselves; distances need no conversion"
    place.refuse_first(squares < -4.0 * SAME * greatest, S, too_large)
    np.maximum(squares, 0.0, out=squares)
    squares = np.maximum(squares, squares.T)  # of two that differ by rounding
    np.fill_diagonal(squares, 0.0)
    return np.sqrt(squares, out=squares), notes


class RawDistances(NamedTuple):
    """Distances in any shape, and names and labels of the rows if there are any."""

    values: Any
    names: list[str] | None = None
    labels: dict[str, np.ndarray] | pl.DataFrame = {}
    notes: tuple[str, ...] = ()


def read_distances(
    source: str | os.PathLike[str],
    *,
    part: str | None = None,
    allow_missing: bool = False,
    similarities: bool = False,
) -> Table:
    """Read a matrix of distances, for ``metric="precomputed"``.

    CSV and TSV with or without a header and a first column of names, which become the row ids;
    NPY and NPZ; Parquet, Arrow and NDJSON tables; sparse matrices (NPZ of SciPy, MatrixMarket,
    H5AD), in which a pair that is not stored is not known. One row or column of n (n - 1) / 2
    numbers is a condensed matrix in SciPy's order. A distance given on one side of the diagonal
    only counts for both.

    Parameters
    ----------
    source : str or path
        The name of a bundled table of distances such as ``eurodist``, or a file, which may be
        compressed by gzip.
    part : str, optional
        The array of an NPZ file; the part of an H5AD file, by default ``obsp/distances``.
    allow_missing : bool, default=False
        Whether distances may be unknown; they are NaN then.
    similarities : bool, default=False
        Whether the numbers are similarities, such as correlations or inner products, which become
        the distances d_ij = sqrt(s_ii + s_jj - 2 s_ij); that is sqrt(2 (1 - r)) for correlations.

    Returns
    -------
    Table
        Its features are the distances: an array, or a CSR matrix where they are sparse.

    Raises
    ------
    DataError
        If the matrix is not square, or a distance is negative, infinite, unknown, unequal to its
        mirror image, or not zero on the diagonal; the first such place is named.

    Examples
    --------
    >>> table = read_distances("eurodist")
    >>> table.shape, table.ids[0]
    ((21, 21), 'Athens')
    """
    name, path = os.fspath(source), Path(source)
    refuse_address(name)
    data = bundled(source)
    if data is not None:
        found = bundled_distances(data)
        return distance_table(name, found, allow_missing, similarities=similarities)
    if path.is_dir():
        raise DataError(f"{name}: is a folder; distances are read from a file.")
    with recognized(path, READERS, part) as (file, suffix, notes):
        request = Request(part=part)
        if suffix in LOADERS:
            found = LOADERS[suffix](file, request)
        else:
            found = distances_in_frame(file, READERS[suffix](file, request), headed=True)
        part = part or (DISTANCES if suffix == ".h5ad" else None)
    found = found._replace(notes=(*notes, *found.notes))
    table = distance_table(name, found, allow_missing, similarities=similarities)
    return dataclasses.replace(table, part=part)


def distance_table(
    source: str, found: RawDistances, allow_missing: bool, *, similarities: bool = False
) -> Table:
    """The table of a matrix of distances, once they are checked."""
    import polars as pl

    D, notes = found.values, list(found.notes)
    if similarities:
        D, notes = distances_of(source, D, found.names)
    if is_sparse(D):
        D = checked_sparse(source, D, found.names, allow_missing=allow_missing)
    else:
        check_real(source, D.dtype)
        D = as_floats(D)
        if D.ndim == 1 or (D.ndim == 2 and 1 in D.shape and D.size > 1):
            D = _expanded(source, D.reshape(-1))
            notes.append(f"{D.shape[0]} rows from a condensed matrix of distances")
        D, mirrored = checked_dense(source, D, found.names, allow_missing=allow_missing)
        if mirrored:
            notes.append(f"{mirrored} distances are given on one side of the diagonal only")
    ids = pl.Series("row", np.arange(D.shape[0]) if found.names is None else found.names)
    labels = pl.DataFrame(found.labels)
    return Table(source, D, labels, ids, notes=tuple(notes), has_ids=found.names is not None)


def bundled_distances(data: Dataset) -> RawDistances:
    """The distances of a bundled data set; true coordinates become labels."""
    if not data.distances:
        raise DataError(f"{data.name}: holds columns, not distances; read it as a table.")
    return RawDistances(data.X, list(data.feature_names), true_coordinates(data))


def _expanded(source: str, condensed: np.ndarray) -> np.ndarray:
    """The square matrix of a condensed one."""
    from scipy.spatial.distance import squareform

    n = (1 + math.isqrt(1 + 8 * condensed.size)) // 2
    if n * (n - 1) // 2 != condensed.size:
        sizes = f"{n * (n - 1) // 2} for {n} rows, {n * (n + 1) // 2} for {n + 1}"
        what = f"a condensed matrix has n (n - 1) / 2 distances, {sizes}"
        raise DataError(f"{source}: {what}; found {condensed.size}.")
    require_for_table(source, n, n, n * (condensed.itemsize + 2))  # 2 for the masks of the checks
    return squareform(condensed, checks=False)


def _load_text(file: File, request: Request) -> RawDistances:
    """Find out from the shape whether the first line is a header and the first column has names.

    There are n distances per line on n lines; one more line is a header, one more field a name.
    """
    with split_text(file, headed=False) as (text, dialect):
        found = records(text, dialect.separator, dialect.skipped)
        first = next(fields for _, fields in found if fields)
        with text.path.open("rb") as opened:
            after = itertools.islice(opened, dialect.skipped, None)
            width, lines = len(first), sum(not line.isspace() for line in after)
        named = not all(_is_distance(field) for field in first[1:])
        if lines == width - 1:
            headed = False
        elif lines == width:  # a square of numbers, or header and names around a smaller one
            headed = named or not (first[0].strip() and _is_distance(first[0]))
        else:
            headed = named or lines == width + 1 or not looks_numeric(first[0])
    with split_text(file, headed=headed) as (text, dialect):
        contents = read_delimited(text, dialect, Request())
    return distances_in_frame(file, contents, headed=headed)


def _is_distance(field: str) -> bool:
    return looks_numeric(field) or field.strip().lower() in MISSING


def distances_in_frame(file: object, contents: Contents, *, headed: bool) -> RawDistances:
    """The columns of numbers, without the column of names if there is one."""
    import polars as pl

    frame, names = contents.frame, None
    first = contents.id_name or (frame.columns[0] if frame.width else "")
    is_name = first == contents.id_name or frame.width == frame.height + 1
    if first and is_name and frame.width > 1:
        names = [str(name) for name in frame[first]]
        frame = frame.drop(first)
    columns = [_numbers(file, column) for column in frame.iter_columns()]
    values = np.column_stack(columns) if columns else np.empty((frame.height, 0))
    if headed and frame.width == frame.height:
        names = frame.columns if names is None else names
        for place, (row, column) in enumerate(zip(names, frame.columns, strict=True)):
            if row.strip() != column.strip():
                called = f"row {place} is called {row!r}, but column {place} is called {column!r}"
                raise DataError(f"{file}: {called}; give rows and columns one order.")
    notes = tuple(note for note in contents.notes if note != UNNAMED)
    return RawDistances(values, names, pl.DataFrame(), notes)


def _numbers(file: object, column: pl.Series) -> np.ndarray:
    import polars as pl

    if column.dtype == pl.String:
        text = without_marks(column)
        column = text.cast(pl.Float64, strict=False)
        odd = (text.is_not_null() & column.is_null()).arg_true()
        if len(odd):
            where = f"row {odd[0]}, column {column.name!r}"
            raise DataError(f"{file}: {where} holds {text[odd[0]]!r}, expected a distance.")
    elif not (column.dtype.is_numeric() or column.dtype == pl.Null):
        what = f"must hold distances, but its type is {column.dtype}"
        raise DataError(f"{file}: column {column.name!r} {what}.")
    return column.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _load_npz(file: File, request: Request) -> RawDistances:
    archive = load_npz(file, request.part, ndim=(2, 1))
    names = archive.beside.pop("feature_names", None)
    return RawDistances(archive.matrix, None if names is None else names.tolist(), archive.beside)


def _load_h5ad(file: File, request: Request) -> RawDistances:
    return distances_in_contents(file, read_h5ad(file, Request(part=request.part or DISTANCES)))


def distances_in_contents(file: object, contents: Contents) -> RawDistances:
    """The distances of a part of an AnnData, with names and labels of its rows."""
    if contents.matrix is None or contents.matrix_names is not None:
        raise DataError(f"{file}: distances are in a part such as 'obsp/distances'.")
    names, labels = None, contents.frame
    if contents.id_name is not None:
        names = labels[contents.id_name].to_list()
        labels = labels.drop(contents.id_name)
    return RawDistances(contents.matrix, names, labels)


LOADERS: dict[str, Callable[[File, Request], Any]] = {
    **dict.fromkeys(TEXTS, _load_text),
    ".h5ad": _load_h5ad,
    ".mtx": lambda file, request: RawDistances(read_matrix_market(file, request).matrix),
    ".npy": lambda file, request: RawDistances(load_npy(file)),
    ".npz": _load_npz,
}
