"""The result of an alignment: one map of several tables, what it is worth, and its files."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import count
from lowland.metrics import Quality
from lowland.metrics.quality_table import Measures
from lowland.tables import Table, check_free, coordinate_names, map_frame
from lowland.workflow._display import picture_html
from lowland.workflow._stages import OptionalStages, Stages
from lowland.workflow.aligning.pairs import HeldOut, Pairs
from lowland.workflow.aligning.sets import TableSet, without_row_names
from lowland.workflow.fitting import Fit
from lowland.workflow.outputs import FittedResult, MapFiles
from lowland.workflow.pictures.maps import picture_of_map
from lowland.workflow.summary import fit_entry, fit_facts, page_facts, table_facts

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

PICTURES = ("labels",)  # files beside the picture of the sets
DPI = 110  # of pictures inside the report


class Tables(NamedTuple):
    """The tables of an alignment: prepared, one below the other, and what belongs together."""

    sets: list[TableSet]
    joint: Table  # ids and labels of all rows
    label_of_set: str  # which of the labels names the set
    pairs: Pairs
    sources: list[str]  # files that were read
    color: str | None


class Worth(NamedTuple):
    """What an alignment is worth: the measures of each set, and what held-out pairs tell."""

    measures: list[Measures]
    held_out: HeldOut | None = None
    reason: str = "it was not asked for"  # why no pairs were held out


class AlignedTables(FittedResult):
    """Several tables in one map; :func:`align_tables` returns one.

    Attributes
    ----------
    map : polars.DataFrame
        One row per row of each table, table after table: the name of its set, its id, its
        coordinates and its labels, as in ``map.csv``.
    coordinates : list of ndarray of shape (n_rows, n_components)
        The coordinates alone, one array per table.
    correspondence : ndarray of shape (n_objects, n_tables) or None
        The row of each object in each table, -1 where a table lacks it. Rows are counted after
        rows with missing values were dropped, if any.
    estimator : ManifoldAlignment
        The fitted method.
    model : JointModel
        What places new rows: ``model.transform(X, domain)`` takes the columns of the original
        table; ``domain`` is the name of the set or its number.
    quality : dict of str to Quality
        The quality table of each set; empty if the map was not measured.
    held_out : HeldOut or None
        How well partners were found that a trial fit did not know; None if none were held out.
    log : list of str
        Every decision about the data, in order.
    color : str or None
        The label that colors the second picture.
    stopped_early : bool
        Whether Ctrl-C stopped the optimization.
    not_made : dict of str to str
        Parts that could not be made after the map was finished, and why.
    """

    def __init__(
        self,
        tables: Tables,
        fit: Fit,
        worth: Worth,
        command: str,
        stages: Stages,
        keeper: OptionalStages,
    ) -> None:
        self._tables, self._fit, self._worth = tables, fit, worth
        self._command, self._stages, self._keeper = command, stages, keeper
        self.color = tables.color

    @functools.cached_property
    def map(self) -> pl.DataFrame:
        frame = map_frame(self._tables.joint, self._fit.Y)
        return frame.select(
            self._tables.label_of_set, *[n for n in frame.columns if n != self._tables.label_of_set]
        )

    @property
    def coordinates(self) -> list[np.ndarray]:
        ends = np.cumsum([one.table.shape[0] for one in self._tables.sets])
        return np.split(self._fit.Y, ends[:-1])

    @property
    def correspondence(self) -> np.ndarray | None:
        return self._tables.pairs.rows

    @property
    def quality(self) -> dict[str, Quality]:
        found = zip(self._tables.sets, self._worth.measures, strict=True)
        return {one.name: each.table for one, each in found if each.table is not None}

    @property
    def held_out(self) -> HeldOut | None:
        return self._worth.held_out

    @property
    def log(self) -> list[str]:
        lines = []
        for one in self._tables.sets:
            said = (*one.table.notes, *one.prepared.log, *one.prepared.cautions)
            lines += [f"{one.name}: {line}" for line in said]
        pairs = self._tables.pairs
        matched = pairs.how
        if pairs.rows is not None:
            matched = f"{count(pairs.n_objects, 'object')} in several tables: {matched}"
        return [*lines, matched, *pairs.notes, *self._fit.log, *self._keeper.log()]

    def picture(self) -> Figure:
        """All sets in one map, a color for each, as a matplotlib figure."""
        from lowland.plot import alignment_map

        with self._stages.timed("drawing"):
            return alignment_map(
                self.coordinates,
                [one.name for one in self._tables.sets],
                correspondence=self._tables.pairs.rows,
                title=self._title(),
                axis_names=coordinate_names(self._fit.Y.shape[1]),
            )

    def label_picture(self) -> Figure | None:
        """The same map colored by a label; None if there is no label."""
        if self.color is None:
            return None
        axes = coordinate_names(self._fit.Y.shape[1])
        table = without_row_names(self._tables.joint)
        return picture_of_map(table, self._fit.Y, self.color, self._title(), axes)

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        file_format: str = "csv",
        report: bool = True,
        force: bool = False,
        raw_text: bool = False,
    ) -> MapFiles:
        """Write map, model, pictures and report into a folder in one step.

        Parameters and result are those of :meth:`MapResult.write`; ``labels.png`` is the map
        colored by a label, if there is one.
        """
        files = MapFiles.in_folder(
            Path(folder), file_format=file_format, report=report, pictures=PICTURES
        )
        check_free(files.paths(), force=force, sources=self._tables.sources)
        return self.write_files(files, force=force, raw_text=raw_text)

    def write_files(
        self, files: MapFiles, *, force: bool = False, raw_text: bool = False
    ) -> MapFiles:
        """Write the given files, which lie in one folder; the result has those written."""
        how = {"force": force, "raw_text": raw_text}
        writers = {"model": self.save, "picture": self._draw, "report": self.report}
        return self._write(files, {files.map: self.map}, writers, self._draw_labels, **how)

    def _draw_labels(self, name: str, path: Path) -> None:
        from lowland.plot import save_figure

        if self.color is not None:
            self._keeper.attempt(
                name, lambda: save_figure(self.label_picture(), path), None, path=path
            )

    def _title(self) -> str:
        early = ", stopped early" if self.stopped_early else ""
        rows = count(self._tables.joint.shape[0], "row")
        return f"{self._tables.joint.source}: {rows} in one map{early}"

    def summary(self) -> Any:
        """The dictionary that the report is made of."""
        from lowland.plot._figure import png_bytes

        pictures = {}
        if self._tables.pairs.rows is not None:
            figure = self.picture()
            with self._stages.timed("drawing"):
                pictures["Lines join rows that are the same object."] = png_bytes(figure, dpi=DPI)
        sets, joint, _, pairs = self._tables[:4]
        points = [measures.per_point for measures in self._worth.measures]
        shared = [name for name in points[0] if all(name in each for each in points)]
        entry = {
            **fit_entry(self._fit),
            "quality": {},  # it is that of each set
            "per_point": {name: np.concatenate([each[name] for each in points]) for name in shared},
            "loss_history": None,
            "pictures": pictures,
        }
        return {
            **page_facts(self._title(), self._command),
            "input": {
                "source": joint.source,
                "rows": sum(one.prepared.rows_read for one in sets),
                "columns": sum(one.table.shape[1] for one in sets),
                "features": None,
                "dominant": [tuple(found) for one in sets for found in one.prepared.dominant],
            },
            "preparation": self.log,
            "dropped_rows": [row for one in sets for row in one.prepared.dropped],
            "ids": joint.ids.to_list(),
            "labels": {name: joint.labels[name].to_list() for name in joint.labels.columns},
            "color": self._tables.label_of_set,
            "maps": [entry],
            "alignment": {
                "sets": [self._set_entry(place) for place in range(len(sets))],
                "how": pairs.how,
                "objects": pairs.n_objects,
                "held_out": None if self.held_out is None else self.held_out.to_dict(),
                "reason": self._worth.reason,
            },
        }

    def _set_entry(self, place: int) -> dict[str, Any]:
        one, partners = self._tables.sets[place], self._tables.pairs.partners(place)
        size = {"rows": one.table.shape[0], "columns": one.numbers.shape[1]}
        return {"name": one.name, **size, "partners": partners, "quality": self._quality_of(place)}

    def _quality_of(self, place: int) -> dict[str, Any]:
        """The quality table of one set as plain values; empty if it was not measured."""
        table = self._worth.measures[place].table
        return {} if table is None else table.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """The result without the map, in plain values that JSON can hold."""
        pairs = self._tables.pairs
        return {
            **fit_facts(self._fit, self.seconds),
            "sets": [
                {
                    "set": one.name,
                    **table_facts(one.table),
                    "with_partner": pairs.partners(place),
                    "preparation": one.prepared.log,
                    "dropped_rows": one.prepared.dropped,
                    "notes": [*one.table.notes, *one.prepared.cautions],
                    "quality": self._quality_of(place) or None,
                }
                for place, one in enumerate(self._tables.sets)
            ],
            "rows": self._tables.joint.shape[0],
            "matched_by": pairs.how,
            "objects": pairs.n_objects,
            "held_out": None if self.held_out is None else self.held_out.to_dict(),
            "not_held_out": self._worth.reason or None,
            "color": self.color,
            "preparation": self._fit.log,
            "notes": pairs.notes,
            "not_made": self.not_made,
        }

    def __repr__(self) -> str:
        sets, pairs = self._tables.sets, self._tables.pairs
        sizes = ", ".join(f"{one.name} {count(one.table.shape[0], 'row')}" for one in sets)
        return f"AlignedTables({sizes}; {count(pairs.n_objects, 'object')} in several)"

    def _repr_html_(self) -> str:
        """The picture, for notebooks."""
        return picture_html(self.picture(), repr(self))
