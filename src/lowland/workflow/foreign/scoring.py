"""How far a map that any tool has made can be believed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count
from lowland.metrics import Quality
from lowland.metrics.quality import Measures, measure_map
from lowland.report.foreign import foreign_map
from lowland.tables import staged_outputs
from lowland.tables.options import ENTRIES, TableOptions, takes_table_options
from lowland.tables.preparing import Prepared, prepare
from lowland.tables.preparing import read as read_data
from lowland.workflow._display import picture_html
from lowland.workflow.foreign.maps import read_map
from lowland.workflow.pictures.maps import picture_of_map
from lowland.workflow.run import classes_in
from lowland.workflow.summary import summarize
from lowland.workflow.targets import first_class
from lowland.workflow.trusting import judge_foreign

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class MapScore(NamedTuple):
    """A map of prepared rows, its columns of coordinates, how its rows were found, and measures."""

    prepared: Prepared
    map_name: str
    coordinates: np.ndarray
    columns: list[str]
    measures: Measures
    quality: Quality
    notes: list[str] = []  # which columns and which rows were taken for which

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

        judged = judge_foreign(self.prepared, self.coordinates, None)
        name = Path(self.map_name).name
        entry = foreign_map(name, self.coordinates, self.measures, judged.trust)
        color = first_class(self.prepared.table)
        command = command or "lowland.workflow.score_map(data, coordinates)"
        with staged_outputs([Path(path)], force=force) as [staged]:
            log = [*self.notes, *judged.lines()]
            write_report(summarize(self.prepared, [entry], log, command, color), staged)


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
        The map: one row for each row of the table. If both have ids, rows are matched by them
        (``id_column``, or what looks like an id in both); if neither has, by their order.
    coordinate_names : sequence of str
        Columns of the map; by default those that look like coordinates: x, y, z; x1, x2;
        ``tsne_1``, ``tsne_2``; PC1, PC2; else all columns of numbers that are no ids or classes.
    n_jobs : int or None, default=None
        Threads; None uses all cores.

    Returns
    -------
    MapScore
        ``quality`` is the table of measures; ``notes`` says how rows and columns were found;
        ``report(path)`` writes a report.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.workflow import score_map
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
    found = read_map(coordinates, asked, prepared, options)
    table, Y = prepared.table, found.coordinates
    labels = classes_in(table, first_class(table))
    measures = measure_map(prepared.X, Y, labels=labels, metric=prepared.metric, n_jobs=n_jobs)
    if measures.table is None:
        raise DataError(f"{table.source}: {count(len(Y), 'row')} are too few to measure a map.")
    return MapScore(prepared, found.source, Y, found.columns, measures, measures.table, found.notes)
