"""The result of a comparison: several maps of the same rows, and its files."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.html import html_lines, html_table
from lowland._engines.linalg.procrustes import align, turned_like
from lowland.metrics.quality_table import Measures
from lowland.tables import map_frame
from lowland.tables.preparing import Prepared
from lowland.trust import Trust
from lowland.workflow._display import picture_html
from lowland.workflow._stages import OptionalStages, Stages
from lowland.workflow.comparing.entries import Entry
from lowland.workflow.fitting import Fit
from lowland.workflow.outputs import REPORT, RunResult
from lowland.workflow.summary import map_entry, plain_value, summarize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What is known of a map, after the map was turned.


def moved(trust: Trust, coordinates: np.ndarray) -> Trust:
    """The same for a map that was rotated, reflected, scaled and moved to other coordinates."""
    before = trust.coordinates
    with_one = np.column_stack([before, np.ones(len(before))])
    affine = np.linalg.lstsq(with_one, coordinates, rcond=None)[0]

    def placed(points: np.ndarray) -> np.ndarray:
        return np.column_stack([points, np.ones(len(points))]) @ affine

    sizes = [float(np.linalg.norm(Y - Y.mean(axis=0))) for Y in (before, coordinates)]
    scale = sizes[1] / sizes[0] if sizes[0] > 0 else 1.0
    points = trust.points._replace(
        home=placed(trust.points.home), spread=trust.points.spread * scale
    )
    islands = [each._replace(center=placed(each.center[None])[0]) for each in trust.islands]
    return dataclasses.replace(trust, coordinates=coordinates, points=points, islands=islands)


SHOWN = ("trustworthiness", "continuity", "neighbor_recall", "shepard_correlation")
# Measures under the picture of a map, and their short names.
UNDER = (
    ("neighbor_recall", "recall"),
    ("trustworthiness", "trustworthiness"),
    ("shepard_correlation", "Spearman"),
)
TURNED = (
    "picture and report show every map rotated, reflected and scaled to resemble the first; the "
    "files of the maps have them as the methods made them"
)


class Attempt(NamedTuple):
    """One entry: its fit and measures, or the reason why it failed."""

    entry: Entry
    fit: Fit | None
    measures: Measures
    reason: str = ""
    not_measured: str = ""  # why a map that was made has no measures
    trust: Trust | None = None
    not_judged: str = ""  # what failed, if something did

    @property
    def name(self) -> str:
        """The entry as it is typed."""
        return self.entry.name

    def row(self) -> dict[str, Any]:
        """The entry in the table of the comparison, as plain values."""
        fit, table, trust = self.fit, self.measures.table, self.trust
        peak = None if fit is None else fit.peak_bytes
        found: dict[str, Any] = {
            "method": self.name,
            "seconds": None if fit is None else round(fit.seconds, 3),
            "peak_mb": None if peak is None else peak // 10**6,
            "gaps": None,
            "gaps_not_in_data": None,
        }
        if trust is not None:
            verdicts = [gap.verdict for gap in trust.gaps]
            found["gaps"] = len(verdicts)
            found["gaps_not_in_data"] = verdicts.count("not in the data")
        measured = {} if table is None else {line.name: line.value for line in table}
        for name in SHOWN:
            value = measured.get(name)
            found[name] = None if value is None else float(value)
            found[f"{name}_error"] = None if value is None else value.standard_error
        return found

    def to_dict(self) -> dict[str, Any]:
        """What is known of the entry, as plain values."""
        fit, given = self.fit, self.entry.parameters
        return {
            **self.row(),
            "parameters": {name: plain_value(value) for name, value in given.items()},
            "learned_from": fit and fit.learned_from,
            "stopped_early": fit is not None and fit.stopped,
            "failed": self.reason or None,
            "not_measured": self.not_measured or None,
            "quality": self.measures.table and self.measures.table.to_dict(),
            "trust": self.trust and self.trust.to_dict(),
        }


class ComparisonFiles(NamedTuple):
    """The files of a comparison; None for those that could not be made."""

    table: Path
    picture: Path | None
    report: Path | None
    maps: dict[str, Path]

    @classmethod
    def in_folder(cls, folder: Path, entries: Sequence[Entry]) -> ComparisonFiles:
        """All files of a comparison in one folder."""
        maps = {entry.name: folder / f"map-{entry.stem}.csv" for entry in entries}
        return cls(folder / "comparison.csv", folder / "maps.png", folder / REPORT, maps)

    def without(self, kinds: Iterable[str]) -> ComparisonFiles:
        """The same files without the picture or the report."""
        return self._replace(**dict.fromkeys(kinds))

    def paths(self) -> list[Path]:
        """All files that may be written."""
        return [*filter(None, self[:3]), *self.maps.values()]

    def named(self) -> dict[str, Any]:
        """The paths as text, by kind; those of the maps by their entries."""
        single = zip(self._fields, self[:3], strict=False)
        return {
            **{kind: str(path) for kind, path in single if path is not None},
            "maps": {name: str(path) for name, path in self.maps.items()},
        }


class MapComparison(RunResult):
    """Maps of the same rows by several methods; :func:`compare_methods` returns one.

    An entry is a method with its parameters, and is called as it is typed: ``pca``,
    ``tsne:perplexity=5``.

    Attributes
    ----------
    table : polars.DataFrame
        One row per entry: seconds, peak memory and the most telling measures.
    maps : dict of str to polars.DataFrame
        The maps by entry, as the methods made them; picture and report show every map rotated,
        reflected and scaled to resemble the first.
    disparities : polars.DataFrame
        How much the maps differ from one another, whatever their turn, size and place
        (:func:`lowland.procrustes`): 0 for the same map, 1 for unrelated ones. One row and one
        column per map; a torus, whose edges meet, has no value.
    models : dict of str to model
        What places new rows, by entry.
    failures : dict of str to str
        Entries that could not map the table, and why.
    not_made : dict of str to str
        Other parts that could not be made (the measures of a map, "picture", "report"), and why.
    stopped_early : bool
        Whether Ctrl-C stopped one of the optimizations.
    log : list of str
        Every decision about the data.
    """

    def __init__(
        self, prepared: Prepared, attempts: Sequence[Attempt], *, color: str | None, command: str
    ) -> None:
        self._prepared, self._attempts = prepared, list(attempts)
        self._color, self._command = color, command
        self._stages, self._keeper = Stages(), OptionalStages()

    @property
    def table(self) -> Any:
        import polars as pl

        return pl.DataFrame(self.rows(), infer_schema_length=None)

    @property
    def maps(self) -> dict[str, Any]:
        table = self._prepared.table
        return {a.name: map_frame(table, fit.Y) for a, fit in self._made()}

    @functools.cached_property
    def disparities(self) -> Any:
        import polars as pl

        made = {a.name: None if fit.sides else fit.Y for a, fit in self._made()}
        columns = {
            name: [_disparity(Y, other) for other in made.values()] for name, Y in made.items()
        }
        return pl.DataFrame({"method": list(made), **columns}, infer_schema_length=None)

    @property
    def models(self) -> dict[str, Any]:
        return {a.name: fit.model for a, fit in self._made()}

    @property
    def failures(self) -> dict[str, str]:
        return {attempt.name: attempt.reason for attempt in self._attempts if attempt.fit is None}

    @property
    def not_made(self) -> dict[str, str]:
        lost = {f"measures of {a.name}": a.not_measured for a in self._attempts}
        lost |= {f"trust of {a.name}": a.not_judged for a in self._attempts}
        return {**{key: why for key, why in lost.items() if why}, **self._keeper.lost}

    @property
    def stopped_early(self) -> bool:
        return any(fit.stopped for _, fit in self._made())

    @property
    def log(self) -> list[str]:
        prepared = self._prepared
        return [*prepared.table.notes, *prepared.log, *prepared.cautions]

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table as plain values."""
        return [attempt.row() for attempt in self._attempts]

    def write(
        self, folder: str | Path, *, force: bool = False, raw_text: bool = False
    ) -> ComparisonFiles:
        """Write table, maps, picture and report into a folder in one step.

        If the table or a map cannot be written, nothing is. If the picture or the report cannot be
        made, a warning states it. Parameters are those of :meth:`MapResult.write`.
        """
        entries = [attempt.entry for attempt in self._attempts]
        files = ComparisonFiles.in_folder(Path(folder), entries)
        return self.write_files(files, force=force, raw_text=raw_text)

    def write_files(
        self, files: ComparisonFiles, *, force: bool = False, raw_text: bool = False
    ) -> ComparisonFiles:
        """Write the given files, which lie in one folder; the result has those written."""
        frames = {files.maps[name]: frame for name, frame in self.maps.items()}
        files = files._replace(maps={name: files.maps[name] for name in self.maps})
        writers = {"picture": self._draw, "report": self.report}
        how = {"force": force, "raw_text": raw_text}
        return self._write(files, {files.table: self.table, **frames}, writers, **how)

    def to_dict(self) -> dict[str, Any]:
        """The result without the maps, in plain values that JSON can hold."""
        table = self._prepared.table
        return {
            "input": table.source,
            "rows": table.shape[0],
            "columns": table.shape[1],
            "preparation": self._prepared.log,
            "dropped_rows": self._prepared.dropped,
            "methods": [attempt.to_dict() for attempt in self._attempts],
            "disparities": self.disparities.to_dicts(),
            "not_made": self.not_made,
        }

    def picture(self) -> Figure:
        """All maps side by side, as a matplotlib figure; each turned to resemble the first."""
        from lowland.plot import compare_maps

        color, entries = self._color, self._entries
        told = [
            ", ".join(f"{word} {found[name]['value']:.2f}" for name, word in UNDER if name in found)
            for found in (entry["quality"] for entry in entries)
        ]
        return compare_maps(
            [entry["coordinates"] for entry in entries],
            [entry["title"] for entry in entries],
            None if color is None else self._prepared.table.column(color).to_numpy(),
            label_name=color,
            notes=told,
        )

    def summary(self) -> Any:
        """The dictionary that the report is made of."""
        made = [attempt for attempt, _ in self._made()]
        log = [f"{a.name}: {line}" for a, fit in self._made() for line in fit.log]
        log += [f"{name}: not made: {reason}" for name, reason in self.failures.items()]
        log += [f"{a.name}: not measured: {a.not_measured}" for a in made if a.not_measured]
        log += [f"{a.name}: not judged: {a.not_judged}" for a in made if a.not_judged]
        if len(made) > 1:
            log += [TURNED, *alike(self.disparities.to_dicts())]
        return summarize(self._prepared, self._entries, log, self._command, self._color)

    def __repr__(self) -> str:
        names = ", ".join(attempt.name for attempt in self._attempts)
        return f"MapComparison({names} of {self._prepared.table.shape[0]} rows)"

    def _repr_html_(self) -> str:
        """The picture and the table, for notebooks."""
        rows = self.rows()
        shown = [name for name in rows[0] if not name.endswith("_error")]
        table = html_table(shown, [[row[name] for name in shown] for row in rows])
        lost = html_lines(f"{name}: {why}" for name, why in self.failures.items())
        return picture_html(self.picture(), repr(self)) + table + (lost if self.failures else "")

    def _made(self) -> list[tuple[Attempt, Fit]]:
        return [(a, a.fit) for a in self._attempts if a.fit is not None]

    @functools.cached_property
    def _entries(self) -> list[dict[str, Any]]:
        """Entries of the summary; every map is rotated and scaled to resemble the first.

        A torus is not: its edges meet along its own axes only.
        """
        reference: np.ndarray | None = None
        entries = []
        for attempt, fit in self._made():
            trust = attempt.trust
            entry = {**map_entry(fit, attempt.measures, trust), "title": attempt.entry.title}
            if reference is None:
                reference = fit.Y
            elif fit.estimator._torus_sides() is None:
                entry["coordinates"] = turned_like(reference, fit.Y)
                entry["trust"] = None if trust is None else moved(trust, entry["coordinates"])
            entries.append(entry)
        return entries


def alike(disparities: Sequence[dict[str, Any]]) -> list[str]:
    """How much each map differs from the first, in one line; nothing if there is no other."""
    first = next(iter(disparities), {})
    others = [f"{name} {value:.2f}" for name, value in [*first.items()][2:] if value is not None]
    if not others:
        return []
    return [
        f"Procrustes disparity from {first['method']} (0: the same map, 1: unrelated): "
        f"{', '.join(others)}"
    ]


def _disparity(one: np.ndarray | None, other: np.ndarray | None) -> float | None:
    if one is None or other is None:
        return None
    return 0.0 if one is other else align(one, other).disparity
