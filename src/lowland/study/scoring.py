"""How far a map that any tool has made can be believed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland._core.wording import count
from lowland.io import Table, as_table, read_table, staged_outputs
from lowland.io.in_memory import is_path
from lowland.metrics import Quality
from lowland.report.foreign import foreign_map
from lowland.report.measures import Measures, measure_map
from lowland.study._display import picture_html
from lowland.study.fitting import first_class
from lowland.study.pictures import picture_of_map
from lowland.study.preparing import Prepared, prepare
from lowland.study.preparing import read as read_data
from lowland.study.run import classes_in
from lowland.study.summary import summarize
from lowland.study.table_options import ENTRIES, TableOptions, takes_table_options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MapScore", "coordinate_columns", "run_score", "score_map"]


class MapScore(NamedTuple):
    """A map of prepared rows, its columns of coordinates, and its measures."""

    prepared: Prepared
    map_name: str
    coordinates: np.ndarray
    columns: list[str]
    measures: Measures
    quality: Quality

    def picture(self) -> Figure:
        """The map as a matplotlib figure; :func:`lowland.plot.save_figure` writes it."""
        table, name = self.prepared.table, Path(self.map_name).name
        return picture_of_map(table, self.coordinates, first_class(table), name, self.columns)

    def __repr__(self) -> str:
        text = f"{Path(self.map_name).name!r}, {count(len(self.coordinates), 'row')}"
        if "trustworthiness" in self.quality.to_dict():
            text += f", trustworthiness {self.quality['trustworthiness'].value:.3f}"
        return f"MapScore({text})"

    def _repr_html_(self) -> str:
        """The picture and the quality table, for notebooks."""
        return picture_html(self.picture(), repr(self)) + self.quality._repr_html_()

    def report(
        self, path: str | os.PathLike[str], *, command: str = "", force: bool = True
    ) -> None:
        """Write a report about the map, one HTML file."""
        from lowland.report import write_report

        entry = foreign_map(Path(self.map_name).name, self.coordinates, self.measures)
        color = first_class(self.prepared.table)
        command = command or "lowland.study.score_map(data, coordinates)"
        with staged_outputs([Path(path)], force=force) as [staged]:
            write_report(summarize(self.prepared, [entry], [], command, color), staged)


@takes_table_options([name for name in ENTRIES if name != "target"])
def score_map(
    data: Any,
    coordinates: Any,
    *,
    coordinate_names: Sequence[str] = (),
    table: TableOptions,
    n_jobs: int | None = None,
) -> MapScore:
    """Measure a map that any tool has made against a table, prepared as :func:`make_map` does.

    Parameters
    ----------
    data : path, data frame, array or sparse matrix
        The table, as in :func:`make_map`.
    coordinates : path, data frame or array
        The map: one row for each row of the table, matched by ``id_column`` if it is given, else
        by their order.
    coordinate_names : sequence of str
        Columns of the map; by default x, y, z or x1, x2, ..., else all columns of numbers.
    n_jobs : int or None, default=None
        Threads; None uses all cores.

    Returns
    -------
    MapScore
        ``quality`` is the table of measures; ``report(path)`` writes a report.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.study import score_map
    >>> round(score_map("iris", iris().X[:, 2:]).quality["trustworthiness"].value, 3)
    0.938
    """
    options = table.for_data(data)
    prepared = prepare(read_data(data, options), options)
    return run_score(prepared, coordinates, list(coordinate_names), options, n_jobs)


def run_score(
    prepared: Prepared,
    coordinates: Any,
    asked: list[str],
    options: TableOptions,
    n_jobs: int | None,
) -> MapScore:
    """Match the rows of a map with prepared rows, and measure it."""
    name, Y, names = _read_map(coordinates, asked, prepared, options)
    table = prepared.table
    labels = classes_in(table, first_class(table))
    measures = measure_map(prepared.X, Y, labels=labels, metric=prepared.metric, n_jobs=n_jobs)
    if measures.table is None:
        raise DataError(f"{table.source}: {count(len(Y), 'row')} are too few to measure a map.")
    return MapScore(prepared, name, Y, names, measures, measures.table)


def _read_map(
    source: Any, asked: list[str], prepared: Prepared, options: TableOptions
) -> tuple[str, np.ndarray, list[str]]:
    """The name of the map, the coordinates of the kept rows, and the names of its columns."""
    columns = asked or None
    if is_path(source):
        table = read_table(source, columns=columns)
    else:
        table = as_table(source, columns=columns, name="map")
    name, say = table.source, options.spelling.option
    names = asked or coordinate_columns(table)
    if table.is_sparse:
        raise DataError(
            f"{name}: is a sparse matrix, but coordinates of a map are dense; write them as a "
            "table or an array."
        )
    features = table.features
    Y = np.asarray(features if table.feature_names is None else features.select(names))
    if options.id_column is not None:
        rows = _matched_rows(table, prepared, options.id_column)
        return name, np.ascontiguousarray(Y[rows]), names
    if len(Y) == prepared.rows_read and prepared.dropped:
        raise DataError(
            f"{name}: {count(len(prepared.dropped), 'row')} of the data were dropped, so rows can "
            f"be matched only by name; give {say('id_column')} with a column that both tables have."
        )
    if len(Y) != prepared.table.shape[0]:
        raise DataError(
            f"{name}: has {count(len(Y), 'row')}, but {prepared.table.source} has "
            f"{prepared.table.shape[0]}; a map has one row for each, in the same order, or give "
            f"{say('id_column')} with a column that both tables have."
        )
    return name, Y, names


def coordinate_columns(table: Table) -> list[str]:
    """x, y, z or x1, x2, ... if there are such; else all columns of numbers but a row number."""
    names = list(table.feature_names or [f"column {i}" for i in range(table.shape[1])])
    for usual in (list("xyz"), [f"x{i}" for i in range(1, len(names) + 1)]):
        found = [name for name in usual if name in names]
        if found and found == usual[: len(found)]:
            return found
    rest = [name for name in names if name != "row"]
    return rest or names


def _matched_rows(table: Table, prepared: Prepared, id_column: str) -> np.ndarray:
    """For each kept row of the data, the number of its row in the map."""
    known = [*table.labels.columns, *(table.feature_names or ()), table.ids.name]
    if id_column not in known:
        raise DataError(f"{table.source}: has no column {id_column!r} to match rows by.")
    there = table.ids if table.ids.name == id_column else table.column(id_column)
    place = {str(name): i for i, name in enumerate(there.to_list())}
    if len(place) < len(there):
        raise DataError(f"{table.source}: column {id_column!r} names some rows twice.")
    wanted = [str(name) for name in prepared.table.ids.to_list()]
    lost = [name for name in wanted if name not in place]
    if lost:
        raise DataError(f"{table.source}: has no row {lost[0]!r} in column {id_column!r}.")
    return np.array([place[name] for name in wanted])
