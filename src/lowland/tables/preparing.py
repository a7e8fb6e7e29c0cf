"""From a table to the numbers that a method gets; every decision is logged."""

from __future__ import annotations

import dataclasses
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
from lowland.tables import Table, as_distances, as_table, read_distances, read_table
from lowland.tables.columns.categories import (
    TakingPart,
    encoding_log,
    frame_of,
    take_part,
    why_refused,
)
from lowland.tables.columns.missing import (
    Dominant,
    count_notes,
    dominating,
    dominating_note,
    sentinel_notes,
    without_missing,
)
from lowland.tables.contents import Contents, Request, free_name
from lowland.tables.formats.arrays import LABEL_KINDS, load_npy
from lowland.tables.in_memory import NAME, is_path, label_column
from lowland.tables.opening import format_suffix, opened
from lowland.tables.options import TableOptions
from lowland.tables.several import examples, id_column_of, match_rows, no_match
from lowland.tables.sources import read_source

if TYPE_CHECKING:
    import polars as pl

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
    dominant: Sequence[Dominant] = ()  # what carries nearly all variance
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
    labels = [*dict.fromkeys([*labels, *coded])]
    how: dict[str, Any] = {
        "columns": columns if options.columns else None,
        "labels": [name for name in labels if name not in {*options.beside, *joined}],
        "id_column": options.id_column,
        "vector": options.vector,
        "missing_values": options.missing_values,
        "transpose": options.transpose,
        "use": options.use,
        "drop": options.drop,
        "guess": guess,
        "spelling": options.spelling,
        "allow_missing": allow_missing,
        "allow_text": allow_text,
    }
    if is_path(data):
        table = _with_beside(read_table(data, part=options.part, **how), options.beside)
    elif isinstance(data, Table):
        table = _with_beside(data, options.beside)
        table = _without_columns(table, options) if options.drop else table
    else:
        table = as_table(data, beside=options.beside, part=options.part, name=name, **how)
    hints = [*sentinel_notes(table, options), *count_notes(table, options)]
    table = dataclasses.replace(table, notes=(*table.notes, *hints)) if hints else table
    return table if beside is None else beside.joined_to(table, options.spelling)


def _read_distances(data: Any, options: TableOptions) -> Table:
    say = options.spelling.option
    usual = {"scale": ("auto", "none"), "missing": ("refuse",), "normalize": ((), ("none",))}
    for name in (*COLUMN_OPTIONS, *usual):
        value = getattr(options, name)
        if value not in usual.get(name, ((), False, None)):
            raise DataError(
                f"{say('similarities' if options.similarities else 'distances')}: a matrix of "
                f"distances has no columns to choose, fill or scale; leave {say(name)} out."
            )
    how: dict[str, Any] = {
        "allow_missing": options.missing_distances,
        "similarities": options.similarities,
    }
    if is_path(data):
        if isinstance(data, list | tuple):
            raise DataError(f"{say('distances')}: distances are read from one file, not several.")
        return _with_beside(read_distances(data, part=options.part, **how), options.beside)
    return as_distances(data, beside=options.beside, part=options.part, **how)


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
        log = [f"distances between {rows_read} rows, as they are{_n_unknown(table.features)}"]
        return Prepared(table, table.features, None, log, [], rows_read, True)
    part = take_part(table, options)
    refused = why_refused(table, options, part.names)
    if refused is not None:
        raise DataError(refused)
    table = part.table
    log = [_columns_used(table, part.names), *part.log]
    table, dropped = without_missing(table, part, options, log)
    X, preparation = _prepared_numbers(frame_of(table, part.names, part.dates), part, options, log)
    names = table.feature_names if preparation is None else preparation.column_names_out()
    kept = preparation is not None and preparation.missing == "keep"
    dominant = dominating(without_gaps(X) if kept else X, names, table.ids)
    scaled = preparation is not None and preparation.spread_ is not None
    say = options.spelling.option
    cautions = [dominating_note(found, scaled, say) for found in dominant]
    return Prepared(table, X, preparation, log, dropped, rows_read, False, dominant, cautions)


def _n_unknown(D: Any) -> str:
    """How many distances of an array are not known, if any."""
    missing = int(np.isnan(D).sum()) // 2 if isinstance(D, np.ndarray) else 0
    return f"; {missing} of them not known" if missing else ""


def _without_columns(table: Table, options: TableOptions) -> Table:
    """The table without some columns, features or labels."""
    names, drop, say = table.feature_names, options.drop, options.spelling.option
    known = [*(names or ()), *table.labels.columns, *table.unused]
    for name in drop:
        if name not in known:
            raise DataError(f"{table.source}: {say('drop')}: {unknown_name('column', name, known)}")
    kept = [] if names is None else [name for name in names if name not in drop]
    labels = table.labels.drop(drop, strict=False)
    if names and not kept:
        if not labels.width:
            raise DataError(f"{table.source}: {say('drop')} leaves no column of numbers.")
        features = np.empty((table.shape[0], 0))
        return dataclasses.replace(
            table, features=features, labels=labels, image_shape=None, sparse_names=None
        )
    if names is None or len(kept) == len(names):
        return dataclasses.replace(table, labels=labels)
    if table.sparse_names is not None:
        places = np.flatnonzero([name in kept for name in names])
        features = table.features[:, places]
        return dataclasses.replace(
            table, features=features, labels=labels, sparse_names=tuple(kept)
        )
    return dataclasses.replace(
        table, features=table.features.select(kept), labels=labels, image_shape=None
    )


def _columns_used(table: Table, taking_part: Sequence[str]) -> str:
    def names(given: Any) -> str:
        return listing(list(given), LISTED, quote=False)

    rows, columns = table.shape
    parts = [f"{count(rows, 'row')}, {count(columns, 'column')} of numbers"]
    parts[0] += f" ({names(table.feature_names)})" if table.feature_names else ""
    if taking_part:
        parts.append(f"{count(len(taking_part), 'other')} ({names(taking_part)})")
    if table.has_ids:
        parts.append(f"row id: {table.ids.name}")
    taken = {*taking_part}
    labels = [name for name in table.labels.columns if name not in taken]
    if labels:
        parts.append(f"kept as labels: {names(labels)}")
    if table.unused:
        parts.append(f"not used: {names(table.unused)}")
    return "; ".join(parts)


def _codes_of(features: Any, codes: Sequence[str]) -> list[str]:
    """The codes for missing values that concern the features; the others were for labels."""
    names = getattr(features, "columns", None)
    parsed = zip(codes, parse_codes(codes), strict=True)
    return [
        text
        for text, code in parsed
        if code.column is None or names is None or code.column in names
    ]


def _about_filling(preparation: Preparation) -> str:
    """How missing values were filled, in words, and what that costs."""
    missing = count(preparation.n_filled_, "missing value")
    if preparation.missing == "keep":
        return f"kept {missing}; the measures fill them with the column's mean"
    if preparation.donors_ is None:
        return f"filled {missing} with the column's {preparation.missing}"
    held = format_bytes(preparation.donors_.nbytes)
    return (
        f"filled {missing} from the {N_NEIGHBORS} nearest rows; the model keeps the fitted rows "
        f"({held}) to fill new ones"
    )


def _prepared_numbers(
    features: pl.DataFrame | Any, part: TakingPart, options: TableOptions, log: list[str]
) -> tuple[Any, Preparation | None]:
    """Filled and scaled numbers; without a preparation if that leaves them as they are."""
    fills = options.missing if options.missing not in ("drop", "refuse") else "refuse"
    preparation = Preparation(
        scale="gower" if options.gower else options.scale,
        missing=fills,
        missing_values=_codes_of(features, options.missing_values) or None,
        normalize=options.steps or None,
        order=None if options.order is None else dict(options.order),
        cyclic=None if options.cyclic is None else dict(options.cyclic),
        dates=part.dates or None,
    )
    X = preparation.fit_transform(features)
    log += encoding_log(preparation)
    if preparation.n_filled_:
        log.append(_about_filling(preparation))
    if options.steps:
        one = preparation.n_empty_ == 1
        empty = f"; {count(preparation.n_empty_, 'row')} of zeros "
        empty += "stays as it is" if one else "stay as they are"
        steps = f"normalized each row: {', then '.join(map(STEPS_IN_WORDS.get, options.steps))}"
        log.append(steps + (empty if preparation.n_empty_ else ""))
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
        frame = self.contents.frame
        # One column is a label: there is nothing that an id could be the id of.
        key = self._key(table) if table.has_ids and frame.width > 1 else None
        if key is None:
            labels, notes = self._by_order(table, spelling)
        else:
            labels, notes = self._by_id(table, key)
        taken = [*table.labels.columns, *(table.feature_names or ()), table.ids.name]
        renamed = {name: free_name(name, taken) for name in labels.columns}
        joined = table.with_labels(labels.rename(renamed))
        return dataclasses.replace(joined, notes=(*table.notes, *notes))

    def _key(self, table: Table) -> str:
        found = id_column_of(self.contents, table.ids.name)
        return self.names[0] if found is None else found

    def _by_order(self, table: Table, spelling: Spelling) -> tuple[pl.DataFrame, list[str]]:
        frame, rows = self.contents.frame, table.shape[0]
        if frame.height != rows:
            raise DataError(
                f"{self.source}: has {count(frame.height, 'row')} for the {rows} of "
                f"{table.source}, so labels cannot be joined by the order of the rows; name the "
                f"column of row ids with {spelling.option('id_column')}."
            )
        return frame, [f"labels of {self.source} are joined by the order of the rows, without ids"]

    def _by_id(self, table: Table, key: str) -> tuple[pl.DataFrame, list[str]]:
        import polars as pl

        frame = self.contents.frame
        match = match_rows(table.ids, frame[key], self.source)
        if (match.places < 0).all():
            raise DataError(
                no_match(self.source, frame[key], table.source, table.ids, match)
                + "; no label can be joined."
            )
        notes = [f"labels of {self.source} are joined by the ids in column {key!r}"]
        if match.lost:
            notes.append(
                f"caution: {len(match.lost)} of {count(table.shape[0], 'row')} have no labels in "
                f"{self.source}, such as {examples(match.lost)}"
            )
        if match.extra:
            notes.append(
                f"{self.source} has labels of {count(len(match.extra), 'row')} that the table "
                f"lacks, such as {examples(match.extra)}"
            )
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
    if contents.matrix is not None:
        if is_sparse(contents.matrix):
            raise DataError(f"{source}: is a sparse matrix, but labels are columns of a table.")
        frame = _labels_in_array(source, np.asarray(contents.matrix))
        contents = Contents(contents.frame.hstack(frame) if contents.frame.width else frame)
    if contents.frame.height == 0 or contents.frame.width == 0:
        raise DataError(f"{source}: there are no labels.")
    return LabelFile(source, contents)


def _labels_in_array(source: str, values: np.ndarray) -> pl.DataFrame:
    import polars as pl

    if values.dtype.kind not in LABEL_KINDS or values.ndim not in (1, 2):
        raise DataError(
            f"{source}: the array has shape {values.shape} and type {values.dtype}, expected "
            "numbers or text, one or several for each row."
        )
    columns = values.reshape(len(values), -1).T if values.size else []
    names = [f"label_{i}" for i in range(1, len(columns) + 1)]
    names = ["label"] if len(names) == 1 else names
    return pl.DataFrame(
        [label_column(source, name, column) for name, column in zip(names, columns, strict=True)]
    )
