"""How far a map that any tool has made can be believed: measured, or judged point by point."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lowland._base.errors import DataError, count
from lowland._base.options import takes_options
from lowland.metrics import Quality
from lowland.metrics.quality_table import NOT_MEASURED, Measures
from lowland.report.foreign import ForeignMap
from lowland.tables import staged_outputs, write_frame
from lowland.tables.options import FOREIGN, TableOptions
from lowland.tables.preparing import Prepared, prepare, read
from lowland.trust import Trust
from lowland.workflow._display import picture_html, sentences_html
from lowland.workflow._stages import OptionalStages
from lowland.workflow.fitting import first_class
from lowland.workflow.foreign.maps import read_map
from lowland.workflow.options import FITTING, RunSettings
from lowland.workflow.pictures.maps import picture_of_map
from lowland.workflow.run import classes_in
from lowland.workflow.summary import summarize
from lowland.workflow.trusting import Judged, Source, judge_map, trust_frame, why_not_judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_REFITS = "a map that is given cannot be made again"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GivenMap:
    """A map of prepared rows, its columns of coordinates, and what is known of it."""

    prepared: Prepared
    name: str
    map: ForeignMap
    columns: list[str]
    notes: list[str]  # which columns and which rows were taken for which
    measures: Measures | None = None
    judged: Trust | None = None
    function: ClassVar[str] = ""  # that reports are made by

    @property
    def coordinates(self) -> np.ndarray:
        return self.map.Y

    def score(self) -> MapScore:
        """The map with its measures; refused if it has too few rows."""
        measures = self.map.score()
        if measures.table is None:
            few = count(len(self.coordinates), "row")
            raise DataError(f"{self.prepared.table.source}: {few} are too few to measure a map.")
        return MapScore(**vars(self) | {"measures": measures})

    def judge(self, others: Sequence[GivenMap], settings: RunSettings) -> MapTrust:
        """The map, judged point by point; other maps of the same rows tell what is stable."""
        reason = why_not_judged(self.coordinates, None, Source(self.map.X, self.map.metric))
        if reason:
            raise DataError(f"{self.prepared.table.source}: the map cannot be judged: {reason}.")
        maps = [other.coordinates for other in others]
        found = self.map.trust(others=maps, random_state=settings.seed, verbose=settings.verbose)
        found = dataclasses.replace(found, reasons=dict.fromkeys(found.reasons, NO_REFITS))
        notes = list(self.notes)
        if others:
            named = ", ".join(other.name for other in others)
            notes.append(f"compared with {count(len(others), 'other map')}: {named}")
            told = [line for other in others for line in other.notes if line.startswith("caution")]
            notes += [line for line in dict.fromkeys(told) if line not in notes]
        return MapTrust(**vars(self) | {"notes": notes, "judged": found})

    def picture(self) -> Figure:
        """The map as a matplotlib figure; :func:`lowland.plot.save_figure` writes it."""
        table, title = self.prepared.table, self.map.title
        return picture_of_map(table, self.coordinates, first_class(table), title, self.columns)

    def report(
        self, path: str | os.PathLike[str], *, command: str = "", force: bool = True
    ) -> None:
        """Write a report about the map, measured and judged, one HTML file."""
        from lowland.report import write_report

        keeper, judged = OptionalStages(), Judged(self.judged)
        measures = self.measures or keeper.attempt("measures", self.map.score, NOT_MEASURED)
        if self.judged is None:
            source = Source(self.map.X, self.map.metric)
            judged = Judged(None, why_not_judged(self.coordinates, None, source))
            if not judged.reason:
                judged = judge_map(source, self.coordinates, 0, self.map.n_jobs, None)
        log = [*self.notes, *judged.lines(), *keeper.log()]
        color = first_class(self.prepared.table)
        command = command or f"lowland.workflow.{self.function}(data, coordinates)"
        entry = self.map.entry(measures, judged.trust)
        with staged_outputs([Path(path)], force=force) as [staged]:
            write_report(summarize(self.prepared, [entry], log, command, color), staged)


class MapScore(GivenMap):
    """A map that any tool has made, and its measures."""

    function = "score_map"

    @property
    def quality(self) -> Quality:
        """The table of measures."""
        assert self.measures is not None
        assert self.measures.table is not None
        return self.measures.table

    def __repr__(self) -> str:
        text = f"{self.map.title!r}, {count(len(self.coordinates), 'row')}"
        if "trustworthiness" in self.quality.to_dict():
            text += f", trustworthiness {self.quality['trustworthiness'].value:.3f}"
        return f"MapScore({text})"

    def _repr_html_(self) -> str:
        """The picture and the quality table, for notebooks."""
        return picture_html(self.picture(), repr(self)) + self.quality._repr_html_()


class MapTrust(GivenMap):
    """A map that any tool has made, and where it can be believed."""

    function = "trust_map"

    @property
    def trust(self) -> Trust:
        """The sentences, the points, the islands and the gaps between them."""
        assert self.judged is not None
        return self.judged

    def write_points(
        self, path: str | os.PathLike[str], *, force: bool = True, raw_text: bool = False
    ) -> None:
        """Write the id of each row and what is known of its point, as CSV or Parquet."""
        with staged_outputs([Path(path)], force=force) as [staged]:
            write_frame(trust_frame(self.prepared.table, self.trust), staged, raw_text=raw_text)

    def __repr__(self) -> str:
        return f"MapTrust({self.map.title!r}, {self.trust!r})"

    def _repr_html_(self) -> str:
        """The picture and one sentence for each question, for notebooks."""
        return picture_html(self.picture(), repr(self)) + sentences_html(self.trust)


def given_maps(
    data: Any,
    maps: Sequence[Any],
    names: Sequence[str],
    table: TableOptions,
    n_jobs: int | None,
    tell: Callable[[Sequence[str]], None] | None = None,
) -> list[GivenMap]:
    """Prepare a table, and match the rows of maps with its rows; ``tell`` gets the notes."""
    options = table.for_data(data)
    prepared = prepare(read(data, options), options)
    if tell is not None:
        tell(prepared.table.notes)
    classes = classes_in(prepared.table, first_class(prepared.table))
    found = []
    for each in maps:
        name, Y, columns, notes = read_map(each, list(names), prepared, options)
        one = ForeignMap(
            prepared.measured_rows, Y, classes, prepared.metric, n_jobs, Path(name).name
        )
        found.append(GivenMap(prepared, name, one, columns, notes))
    return found


@takes_options(table=(TableOptions, FOREIGN), settings=(RunSettings, ("n_jobs",)))
def score_map(
    data: Any,
    coordinates: Any,
    *,
    coordinate_names: Sequence[str] = (),
    table: TableOptions,
    settings: RunSettings,
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
        ``tsne_1``, ``tsne_2``; PC1, PC2; else all columns of numbers that are not ids or classes.

    Returns
    -------
    MapScore
        ``quality`` is the table of measures; ``notes`` states how rows and columns were found;
        ``report(path)`` writes a report.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.workflow import score_map
    >>> round(score_map("iris", iris().X[:, 2:]).quality["trustworthiness"].value, 3)
    0.938
    """
    return given_maps(data, [coordinates], coordinate_names, table, settings.n_jobs)[0].score()


@takes_options(table=(TableOptions, FOREIGN), settings=(RunSettings, FITTING))
def trust_map(
    data: Any,
    coordinates: Any,
    *,
    coordinate_names: Sequence[str] = (),
    others: Sequence[Any] = (),
    table: TableOptions,
    settings: RunSettings,
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

    Returns
    -------
    MapTrust
        ``trust`` has the sentences, the points, the islands and the gaps between them; ``notes``
        states how rows and columns were found; ``report(path)`` writes a report and
        ``write_points(path)`` a table of the points.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.workflow import trust_map
    >>> found = trust_map("iris", iris().X[:, 2:])
    >>> found.trust.sentences[1].text
    'The gap between the two islands is in the data.'
    """
    maps = [coordinates, *others]
    first, *beside = given_maps(data, maps, coordinate_names, table, settings.n_jobs)
    return first.judge(beside, settings)
