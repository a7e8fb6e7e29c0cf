"""Labels in a file of their own, joined to the rows of a table by their ids."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lowland._base.errors import PYTHON, DataError, Spelling, count
from lowland._base.validation import is_sparse
from lowland.tables.contents import Contents, Request, free_name
from lowland.tables.formats.arrays import LABEL_KINDS, load_npy
from lowland.tables.in_memory import label_column
from lowland.tables.opening import format_suffix, opened
from lowland.tables.several import examples, id_column_of, match_rows, no_match
from lowland.tables.sources import read_source
from lowland.tables.table import Table

if TYPE_CHECKING:
    import polars as pl


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
