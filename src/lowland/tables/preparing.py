"""From a table to the numbers that a method gets; every decision is logged."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import PYTHON, DataError, Spelling, count, listing, unknown_name
from lowland._base.memory import format_bytes
from lowland._base.validation import is_sparse
from lowland._engines.linalg.moments import without_gaps
from lowland.preparation._categories import parse_codes
from lowland.preparation._neighbors_fill import N_NEIGHBORS
from lowland.preparation.preparation import Preparation
from lowland.tables import Table, as_distances, as_table, read_distances
from lowland.tables.columns import categories, missing
from lowland.tables.contents import Contents, Request, free_name
from lowland.tables.formats.arrays import LABEL_KINDS, load_npy
from lowland.tables.in_memory import NAME, is_path, label_column, table_of
from lowland.tables.opening import format_suffix, opened
from lowland.tables.options import TableOptions
from lowland.tables.several import examples, id_column_of, match_rows, no_match
from lowland.tables.sources import read_source
from lowland.tables.table import read_request

if TYPE_CHECKING:
    import polars as pl

# Options that mean the same to the reader.
SAME = ("id_column", "part", "vector", "missing_values", "transpose", "use", "drop", "spelling")
LISTED = 4  # names in a line of the log
# Options about columns, which a matrix of distances does not have.
COLUMN_OPTIONS = (
    *("columns", "use", "drop", "one_hot", "order", "cyclic", "vector"),
    *("missing_values", "transpose"),
)
STEPS_IN_WORDS = {
    "cpm": "scaled to the sum 1e6 (counts per million)",
    "log1p": "log(1 + x)",
    "l2": "scaled to the length 1",
}


class Prepared(NamedTuple):
    """The rows that are kept, their prepared numbers, and the log of the preparation."""

    table: Table
    X: Any
    preparation: Preparation | None  # None if the numbers were not changed
    log: list[str]
    dropped: list[Any]
    rows_read: int
    distances: bool
    dominant: Sequence[missing.Dominant] = ()  # what carries nearly all variance
    cautions: Sequence[str] = ()  # for a person who looks at the map

    @property
    def metric(self) -> str:
        """The distance between rows that the map is measured against."""
        if self.preparation is not None and self.preparation.chosen_ == "gower":
            return "manhattan"
        return "precomputed" if self.distances else "euclidean"

    @property
    def has_gaps(self) -> bool:
        """Whether missing values were kept."""
        return self.preparation is not None and self.preparation.missing == "keep"

    @property
    def measured_rows(self) -> Any:
        """The rows that maps are measured against: missing values are the means of the columns."""
        return without_gaps(self.X) if self.has_gaps else self.X


def read(
    data: Any,
    options: TableOptions,
    *,
    allow_missing: bool = True,
    allow_text: bool = True,
    guess: bool = True,
    name: str = NAME,
) -> Table:
    """The table with the columns that were asked for, and missing values where allowed.

    With ``allow_text`` the table may have no column of numbers. Without ``guess``, ids and classes
    that only look like such are features. ``name`` is what messages call data in memory.
    """
    if options.distances:
        table = _read_distances(data, options)
        if options.label_file is None:
            return table
        return read_labels(options.label_file).joined_to(table, options.spelling)
    beside = read_labels(options.label_file) if options.label_file else None
    joined = [] if beside is None else beside.names
    labels = [*options.labels, *([options.target] if options.target else [])]
    labels = [name for name in dict.fromkeys(labels) if name not in options.drop]
    # as labels they keep their values as they are written
    coded = [*options.one_hot, *(options.order or ())]
    columns = [name for name in options.columns if name not in coded]
    elsewhere = {*options.beside, *joined}
    request = Request(
        columns if options.columns else None,
        [name for name in dict.fromkeys([*labels, *coded]) if name not in elsewhere],
        guess=guess,
        allow_text=allow_text,
        **{name: getattr(options, name) for name in SAME},
    )
    if is_path(data):
        table = read_request(data, request, allow_missing=allow_missing)
        table = _with_beside(table, options.beside)
    elif isinstance(data, Table):
        table = _with_beside(data, options.beside)
        table = _without_columns(table, options) if options.drop else table
    else:
        how = {"allow_missing": allow_missing, "beside": options.beside, "name": name}
        table = table_of(data, request, **how)
    hints = missing.sentinel_notes(table, options) + missing.count_notes(table, options)
    table = dataclasses.replace(table, notes=(*table.notes, *hints)) if hints else table
    return table if beside is None else beside.joined_to(table, options.spelling)


def _read_distances(data: Any, options: TableOptions) -> Table:
    say = options.spelling.option
    usual = {"scale": ("auto", "none"), "missing": ("refuse",), "normalize": ((), ("none",))}
    for name in (*COLUMN_OPTIONS, *usual):
        value = getattr(options, name)
        if value not in usual.get(name, ((), False, None)):
            asked = say("similarities" if options.similarities else "distances")
            what = "a matrix of distances has no columns to choose, fill or scale"
            raise DataError(f"{asked}: {what}; leave {say(name)} out.")
    how: dict[str, Any] = {"part": options.part, "similarities": options.similarities}
    how["allow_missing"] = options.missing_distances
    if not is_path(data):
        return as_distances(data, beside=options.beside, **how)
    if isinstance(data, list | tuple):
        raise DataError(f"{say('distances')}: distances are read from one file, not several.")
    return _with_beside(read_distances(data, **how), options.beside)


def _with_beside(table: Table, beside: Mapping[str, Any]) -> Table:
    """The table with labels that were given as values."""
    if not beside:
        return table
    rows = np.zeros((table.shape[0], 1))  # only its number of rows is used
    given = as_table(rows, beside=beside, name=table.source).labels
    taken = {*table.labels.columns, *(table.feature_names or ())}
    return table.with_labels(given.rename({n: f"{n}_label" for n in given.columns if n in taken}))


def prepare(table: Table, options: TableOptions) -> Prepared:
    """Drop rows, fill missing values, turn categories into numbers, scale."""
    rows_read = table.shape[0]
    if options.distances:
        D = table.features
        n_unknown = int(np.isnan(D).sum()) // 2 if isinstance(D, np.ndarray) else 0
        unknown = f"; {n_unknown} of them not known" if n_unknown else ""
        log = [f"distances between {rows_read} rows, as they are{unknown}"]
        return Prepared(table, table.features, None, log, [], rows_read, True)
    part = categories.take_part(table, options)
    refused = categories.why_refused(table, options, part.names)
    if refused is not None:
        raise DataError(refused)
    table = part.table
    log = [_columns_used(table, part.names), *part.log]
    table, dropped = missing.without_missing(table, part, options, log)
    frame = categories.frame_of(table, part.names, part.dates)
    X, preparation = _prepared_numbers(frame, part, options, log)
    names = table.feature_names if preparation is None else preparation.column_names_out()
    kept = preparation is not None and preparation.missing == "keep"
    dominant = missing.dominating(without_gaps(X) if kept else X, names, table.ids)
    scaled = preparation is not None and preparation.spread_ is not None
    say = options.spelling.option
    cautions = [missing.dominating_note(found, scaled, say) for found in dominant]
    return Prepared(table, X, preparation, log, dropped, rows_read, False, dominant, cautions)


def _without_columns(table: Table, options: TableOptions) -> Table:
    """The table without some columns, features or labels."""
    names, drop, say = table.feature_names or (), options.drop, options.spelling.option
    known = [*names, *table.labels.columns, *table.unused]
    for name in drop:
        if name not in known:
            raise DataError(f"{table.source}: {say('drop')}: {unknown_name('column', name, known)}")
    table = dataclasses.replace(table, labels=table.labels.drop(drop, strict=False))
    kept = [name for name in names if name not in drop]
    if len(kept) == len(names):
        return table
    sparse_names = None
    if not kept:
        if not table.labels.width:
            raise DataError(f"{table.source}: {say('drop')} leaves no column of numbers.")
        features: Any = np.empty((table.shape[0], 0))
    elif table.sparse_names is not None:
        features = table.features[:, [i for i, name in enumerate(names) if name not in drop]]
        sparse_names = tuple(kept)
    else:
        features = table.features.select(kept)
    changed = {"sparse_names": sparse_names, "image_shape": None}
    return dataclasses.replace(table, features=features, **changed)


def _columns_used(table: Table, taking_part: Sequence[str]) -> str:
    names = functools.partial(listing, most=LISTED, quote=False)
    rows, columns = table.shape
    numbers = f"{count(rows, 'row')}, {count(columns, 'column')} of numbers"
    taken = {*taking_part}
    labels = [name for name in table.labels.columns if name not in taken]
    parts = [
        numbers + (f" ({names(table.feature_names)})" if table.feature_names else ""),
        f"{count(len(taking_part), 'other')} ({names(taking_part)})" if taking_part else "",
        f"row id: {table.ids.name}" if table.has_ids else "",
        f"kept as labels: {names(labels)}" if labels else "",
        f"not used: {names(table.unused)}" if table.unused else "",
    ]
    return "; ".join(filter(None, parts))


def _prepared_numbers(
    features: Any, part: categories.TakingPart, options: TableOptions, log: list[str]
) -> tuple[Any, Preparation | None]:
    """Filled and scaled numbers; without a preparation if that leaves them as they are."""
    fills = options.missing if options.missing not in ("drop", "refuse") else "refuse"
    names = getattr(features, "columns", None)
    given = options.missing_values
    codes = [  # that concern the features; the others were for labels
        text
        for text, code in zip(given, parse_codes(given), strict=True)
        if code.column is None or names is None or code.column in names
    ]
    preparation = Preparation(
        scale="gower" if options.gower else options.scale,
        missing=fills,
        missing_values=codes or None,
        normalize=options.steps or None,
        order=None if options.order is None else dict(options.order),
        cyclic=None if options.cyclic is None else dict(options.cyclic),
        dates=part.dates or None,
    )
    X = preparation.fit_transform(features)
    log += categories.encoding_log(preparation)
    if preparation.n_filled_:
        n_filled, how = count(preparation.n_filled_, "missing value"), preparation.missing
        if how == "keep":
            log.append(f"kept {n_filled}; the measures fill them with the column's mean")
        elif preparation.donors_ is None:
            log.append(f"filled {n_filled} with the column's {how}")
        else:
            held = format_bytes(preparation.donors_.nbytes)
            rows = f"from the {N_NEIGHBORS} nearest rows; the model keeps the fitted rows ({held})"
            log.append(f"filled {n_filled} {rows} to fill new ones")
    if options.steps:
        n_empty = preparation.n_empty_
        verb = "stays as it is" if n_empty == 1 else "stay as they are"
        empty = f"; {count(n_empty, 'row')} of zeros {verb}" if n_empty else ""
        steps = ", then ".join(STEPS_IN_WORDS[step] for step in options.steps)
        log.append(f"normalized each row: {steps}{empty}")
    verb = "not scaled" if preparation.chosen_ == "none" else f"scaled: {preparation.chosen_}"
    log.append(f"{verb} ({preparation.reason_})")
    # What was declared holds for new rows, too, also if the fitted rows needed none of it.
    changed = preparation.encoded_columns or fills != "refuse" or preparation.spread_ is not None
    if not (changed or preparation.missing_values or preparation.normalize):
        return features, None
    return X, preparation


# Labels in a file of their own, joined to the rows of a table by their ids.


class LabelFile(NamedTuple):
    """The columns of a file of labels."""

    source: str
    contents: Contents

    @property
    def names(self) -> list[str]:
        """All columns, also the one of ids."""
        return self.contents.frame.columns

    def joined_to(self, table: Table, spelling: Spelling = PYTHON) -> Table:
        """The table with all columns of the file as labels.

        Rows are found by their ids; if the table or the file has none, by their order.
        """
        frame, rows = self.contents.frame, table.shape[0]
        # One column is a label: there is nothing that an id could be the id of.
        if table.has_ids and frame.width > 1:
            labels, notes = self._by_id(table)
        elif frame.height != rows:
            option = spelling.option("id_column")
            sizes = f"has {count(frame.height, 'row')} for the {rows} of {table.source}"
            advice = f"name the column of row ids with {option}"
            what = f"{sizes}, so labels cannot be joined by order"
            raise DataError(f"{self.source}: {what}; {advice}.")
        else:
            by_order = "are joined by the order of the rows, without ids"
            labels, notes = frame, [f"labels of {self.source} {by_order}"]
        taken = [*table.labels.columns, *(table.feature_names or ()), table.ids.name]
        renamed = {name: free_name(name, taken) for name in labels.columns}
        joined = table.with_labels(labels.rename(renamed))
        return dataclasses.replace(joined, notes=(*table.notes, *notes))

    def _by_id(self, table: Table) -> tuple[pl.DataFrame, list[str]]:
        import polars as pl

        source, frame = self.source, self.contents.frame
        key = id_column_of(self.contents, table.ids.name) or self.names[0]
        match = match_rows(table.ids, frame[key], source)
        if (match.places < 0).all():
            wrong = no_match(source, frame[key], table.source, table.ids, match)
            raise DataError(f"{wrong}; no label can be joined.")
        notes = [f"labels of {source} are joined by the ids in column {key!r}"]
        if match.lost:
            lost = f"{len(match.lost)} of {count(table.shape[0], 'row')} have no labels in {source}"
            notes.append(f"caution: {lost}, such as {examples(match.lost)}")
        if match.extra:
            more = f"{source} has labels of {count(len(match.extra), 'row')} that the table lacks"
            notes.append(f"{more}, such as {examples(match.extra)}")
        places = pl.Series(match.places).set(pl.Series(match.places < 0), None)
        return frame.drop(key).select(pl.all().gather(places)), notes


def read_labels(path: str | os.PathLike[str]) -> LabelFile:
    """All columns of a table, whatever they hold; an array gives ``label``, or ``label_1``, ..."""
    source = os.fspath(path)
    if format_suffix(Path(path)) == ".npy" and Path(path).exists():
        with opened(Path(path)) as file:
            contents = Contents(_labels_in_array(source, load_npy(file)))
    else:
        contents = read_source(path, Request(guess=False))
    if is_sparse(contents.matrix):
        raise DataError(f"{source}: is a sparse matrix, but labels are columns of a table.")
    if contents.matrix is not None:
        frame = _labels_in_array(source, np.asarray(contents.matrix))
        contents = Contents(contents.frame.hstack(frame) if contents.frame.width else frame)
    if contents.frame.height == 0 or contents.frame.width == 0:
        raise DataError(f"{source}: there are no labels.")
    return LabelFile(source, contents)


def _labels_in_array(source: str, values: np.ndarray) -> pl.DataFrame:
    import polars as pl

    if values.dtype.kind not in LABEL_KINDS or values.ndim not in (1, 2):
        what = f"the array has shape {values.shape} and type {values.dtype}"
        raise DataError(f"{source}: {what}, expected one or several numbers or texts per row.")
    columns = values.reshape(len(values), -1).T if values.size else []
    names = ["label"] if len(columns) == 1 else [f"label_{i + 1}" for i in range(len(columns))]
    found = [label_column(source, name, of) for name, of in zip(names, columns, strict=True)]
    return pl.DataFrame(found)
