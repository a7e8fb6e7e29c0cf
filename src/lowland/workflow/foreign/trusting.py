"""Where a map that any tool has made can be believed."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count
from lowland.metrics.quality import NOT_MEASURED, Measures, measure_map
from lowland.report.foreign import foreign_map
from lowland.tables import staged_outputs, write_frame
from lowland.tables.options import ENTRIES, TableOptions, takes_table_options
from lowland.tables.preparing import Prepared, prepare
from lowland.tables.preparing import read as read_data
from lowland.trust import Trust, trust
from lowland.workflow._display import picture_html, sentences_html
from lowland.workflow._stages import OptionalStages
from lowland.workflow.foreign.maps import read_map
from lowland.workflow.pictures.maps import picture_of_map
from lowland.workflow.run import classes_in
from lowland.workflow.summary import summarize
from lowland.workflow.targets import first_class
from lowland.workflow.trusting import Source, trust_frame, why_not_judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_REFITS = "a map that is given cannot be made again"


class MapTrust(NamedTuple):
    """A map of prepared rows, how its rows were found, and where it can be believed."""

    prepared: Prepared
    map_name: str
    coordinates: np.ndarray
    columns: list[str]
    trust: Trust
    notes: list[str] = []  # which columns and which rows were taken for which
    n_jobs: int | None = None

    def picture(self) -> Figure:
        """The map as a matplotlib figure; :func:`lowland.plot.save_figure` writes it."""
        table, name = self.prepared.table, Path(self.map_name).name
        return picture_of_map(table, self.coordinates, first_class(table), name, self.columns)

    def report(
        self, path: str | os.PathLike[str], *, command: str = "", force: bool = True
    ) -> None:
        """Measure the map and write a report about it, one HTML file."""
        from lowland.report import write_report

        table, keeper = self.prepared.table, OptionalStages()
        color = first_class(table)

        def measured() -> Measures:
            return measure_map(
                self.prepared.measured_rows,
                self.coordinates,
                labels=classes_in(table, color),
                metric=self.prepared.metric,
                n_jobs=self.n_jobs,
            )

        measures = keeper.attempt("measures", measured, NOT_MEASURED)
        entry = foreign_map(Path(self.map_name).name, self.coordinates, measures, self.trust)
        command = command or "lowland.workflow.trust_map(data, coordinates)"
        log = [*self.notes, *keeper.log()]
        with staged_outputs([Path(path)], force=force) as [staged]:
            write_report(summarize(self.prepared, [entry], log, command, color), staged)

    def write_points(
        self, path: str | os.PathLike[str], *, force: bool = True, raw_text: bool = False
    ) -> None:
        """Write the id of each row and what is known of its point, as CSV or Parquet."""
        with staged_outputs([Path(path)], force=force) as [staged]:
            write_frame(trust_frame(self.prepared.table, self.trust), staged, raw_text=raw_text)

    def __repr__(self) -> str:
        return f"MapTrust({Path(self.map_name).name!r}, {self.trust!r})"

    def _repr_html_(self) -> str:
        """The picture and one sentence for each question, for notebooks."""
        return picture_html(self.picture(), repr(self)) + sentences_html(self.trust)


@takes_table_options([name for name in ENTRIES if name != "target"])
def trust_map(
    data: Any,
    coordinates: Any,
    *,
    coordinate_names: Sequence[str] = (),
    others: Sequence[Any] = (),
    table: TableOptions,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> MapTrust:
    """Judge where a map that any tool has made can be believed.

    The table is prepared as :func:`make_map` does, and every point is judged.

    Parameters
    ----------
    data : path, data frame, array or sparse matrix
        The table, as in :func:`make_map`.
    coordinates : path, data frame or array
        The map, as in :func:`score_map`: rows are matched by ids, or by their order.
    coordinate_names : sequence of str
        Columns of the map, as in :func:`score_map`; also of the others.
    others : sequence of paths, data frames or arrays
        Other maps of the same rows, such as those of other seeds. What they have in common is
        stable.
    seed : int, default=0
        Seed of the samples that tests take.
    n_jobs : int or None, default=None
        Threads; None uses all cores.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    MapTrust
        ``trust`` has the sentences, the points, the islands and the gaps between them; ``notes``
        says how rows and columns were found; ``report(path)`` writes a report and
        ``write_points(path)`` a table of the points.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.workflow import trust_map
    >>> found = trust_map("iris", iris().X[:, 2:])
    >>> found.trust.sentences[1].text
    'The gap between the two islands is in the data.'
    """
    options = table.for_data(data)
    prepared = prepare(read_data(data, options), options)
    how = {"seed": seed, "n_jobs": n_jobs, "verbose": verbose}
    return run_trust(prepared, coordinates, list(others), list(coordinate_names), options, **how)


def run_trust(
    prepared: Prepared,
    coordinates: Any,
    others: list[Any],
    asked: list[str],
    options: TableOptions,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> MapTrust:
    """Match the rows of one or several maps with prepared rows, and judge the first."""
    found = read_map(coordinates, asked, prepared, options)
    beside = [read_map(other, asked, prepared, options) for other in others]
    source = Source(prepared.measured_rows, prepared.metric)
    reason = why_not_judged(found.coordinates, None, source)
    if reason:
        raise DataError(f"{prepared.table.source}: the map cannot be judged: {reason}.")
    judged = trust(
        *(source.X, found.coordinates),
        others=[other.coordinates for other in beside],
        **source.known,
        random_state=seed,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    judged = dataclasses.replace(judged, reasons=dict.fromkeys(judged.reasons, NO_REFITS))
    notes = list(found.notes)
    if beside:
        named = ", ".join(other.source for other in beside)
        notes.append(f"compared with {count(len(beside), 'other map')}: {named}")
        cautions = [line for other in beside for line in other.notes if line.startswith("caution")]
        notes += [line for line in dict.fromkeys(cautions) if line not in notes]
    return MapTrust(
        *(prepared, found.source, found.coordinates, found.columns, judged, notes, n_jobs)
    )
