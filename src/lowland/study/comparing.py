"""Several methods on the same rows, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._core import registry
from lowland._core.base import Reducer
from lowland._core.errors import DataError, LowlandError, ParameterError
from lowland._engines.linalg.procrustes import align
from lowland.io import map_frame, staged_outputs, write_frame
from lowland.report.measures import NOT_MEASURED, Measures
from lowland.study._shared import SharedWork
from lowland.study._stages import Stages
from lowland.study.fitting import Fit, FitOptions, fit_method, target_values
from lowland.study.making import method_class
from lowland.study.preparing import Prepared
from lowland.study.run import RunOptions, measure_fit, prepare_run
from lowland.study.summary import map_entry, summarize
from lowland.study.table_options import TableOptions, takes_table_options

__all__ = ["ComparisonFiles", "MapComparison", "compare_methods", "run_comparison"]

SHOWN = ("trustworthiness", "continuity", "neighbor_recall", "shepard_correlation")


class Attempt(NamedTuple):
    """One method: its fit and measures, or the reason why it failed."""

    name: str
    fit: Fit | None
    measures: Measures
    reason: str = ""


class ComparisonFiles(NamedTuple):
    """The files of a comparison."""

    table: Path
    picture: Path
    report: Path
    maps: dict[str, Path]

    @classmethod
    def in_folder(cls, folder: Path, names: Sequence[str]) -> ComparisonFiles:
        """All files in one folder."""
        maps = {name: folder / f"map-{name}.csv" for name in dict.fromkeys(names)}
        return cls(folder / "comparison.csv", folder / "maps.png", folder / "report.html", maps)

    def paths(self) -> list[Path]:
        """All files that may be written."""
        return [self.table, self.picture, self.report, *self.maps.values()]


@takes_table_options()
def compare_methods(
    data: Any,
    methods: Sequence[str | type[Reducer]] = ("pca", "tsne"),
    *,
    color: Any = None,
    table: TableOptions,
    pca: int | str = "auto",
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> MapComparison:
    """Map a table by several methods with their default parameters, and measure each map.

    A method that cannot map the table does not stop the others: its row of the table is empty,
    and ``failures`` has the reason.

    Parameters
    ----------
    data : path, data frame, array, sparse matrix or Dataset
        The table, as in :func:`make_map`.
    methods : sequence of str or class, default=("pca", "tsne")
        Methods: their names as in ``lowland methods``, or their classes.
    color, pca, seed, n_jobs, verbose
        As in :func:`make_map`.

    Returns
    -------
    MapComparison

    Examples
    --------
    >>> from lowland.study import compare_methods
    >>> compare_methods("iris", ["pca", "classical_mds"]).table["method"].to_list()
    ['pca', 'classical_mds']
    """
    classes = [method_class(method) for method in methods]
    if not classes:
        raise ParameterError("methods: () is empty; give at least one method.")
    table, color = table.naming(color, "color")
    fit = FitOptions(seed, n_jobs, verbose, str(pca))
    command = "lowland.study.compare_methods(data)"
    return run_comparison(data, classes, RunOptions(table, fit, color, True, command))


def run_comparison(
    data: Any, classes: Sequence[type[Reducer]], options: RunOptions
) -> MapComparison:
    """Fit and measure every method on the same prepared rows."""
    prepared, color = prepare_run(data, options, Stages())
    shared = SharedWork(prepared, options.fit.seed, options.fit.n_jobs)
    attempts = [_attempt(shared, cls, color, options) for cls in classes]
    if all(attempt.fit is None for attempt in attempts):
        reasons = "; ".join(f"{attempt.name}: {attempt.reason}" for attempt in attempts)
        raise DataError(f"no method could do it: {reasons}")
    return MapComparison(prepared, attempts, color=color, command=options.command)


def _attempt(
    shared: SharedWork, cls: type[Reducer], color: str | None, options: RunOptions
) -> Attempt:
    name = registry.snake_case(cls.__name__)
    table = options.table
    try:
        y = target_values(shared.prepared.table, cls, table.target, table.spelling)
        fit = fit_method(shared, cls, {}, y, options.fit, Stages())
        # all maps on the same rows, however long each of them takes
        return Attempt(name, fit, measure_fit(shared, fit, color, options.fit.n_jobs))
    except LowlandError as error:
        options.note(f"{name}: {error}")
        return Attempt(name, None, NOT_MEASURED, str(error))


class MapComparison:
    """Maps of the same rows by several methods; :func:`compare_methods` returns one.

    Attributes
    ----------
    table : polars.DataFrame
        One row per method: seconds, peak memory and the most telling measures.
    maps : dict of str to polars.DataFrame
        The maps by method, as ``map.csv`` has them.
    models : dict of str to model
        What places new rows, by method.
    failures : dict of str to str
        Methods that could not map the table, and why.
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

    @property
    def table(self) -> Any:
        import polars as pl

        return pl.DataFrame(self.rows())

    @property
    def maps(self) -> dict[str, Any]:
        table = self._prepared.table
        return {name: map_frame(table, fit.Y) for name, fit, _ in self._made()}

    @property
    def models(self) -> dict[str, Any]:
        return {name: fit.model for name, fit, _ in self._made()}

    @property
    def failures(self) -> dict[str, str]:
        return {attempt.name: attempt.reason for attempt in self._attempts if attempt.fit is None}

    @property
    def stopped_early(self) -> bool:
        return any(fit.stopped for _, fit, _ in self._made())

    @property
    def log(self) -> list[str]:
        return [*self._prepared.table.notes, *self._prepared.log]

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table as plain values."""
        return [_row(attempt) for attempt in self._attempts]

    def write(
        self, folder: str | Path, *, force: bool = False, raw_text: bool = False
    ) -> ComparisonFiles:
        """Write table, picture, report and maps into a folder, either all of them or none.

        Parameters are those of :meth:`MapResult.write`.
        """
        names = [attempt.name for attempt in self._attempts]
        files = ComparisonFiles.in_folder(Path(folder), names)
        self.write_files(files, force=force, raw_text=raw_text)
        return files

    def write_files(
        self, files: ComparisonFiles, *, force: bool = False, raw_text: bool = False
    ) -> None:
        """Write the given files, which lie in one folder, either all of them or none."""
        from lowland.plot import compare_maps, save_figure
        from lowland.report import write_report

        failed = [files.maps[name] for name in self.failures]
        color, table = self._color, self._prepared.table
        values = None if color is None else table.column(color).to_numpy()
        entries = self._entries()
        with staged_outputs([p for p in files.paths() if p not in failed], force=force) as staged:
            by_name = {path.name: path for path in staged}
            write_frame(self.table, by_name[files.table.name])
            figure = compare_maps(
                [entry["coordinates"] for entry in entries],
                [entry["title"] for entry in entries],
                values,
                label_name=color,
            )
            save_figure(figure, by_name[files.picture.name])
            summary = summarize(self._prepared, entries, self._fit_log(), self._command, color)
            write_report(summary, by_name[files.report.name])
            for name, frame in self.maps.items():
                write_frame(frame, by_name[files.maps[name].name], raw_text=raw_text)

    def to_dict(self) -> dict[str, Any]:
        """The result without the maps, in plain values that JSON can hold."""
        table = self._prepared.table
        return {
            "input": table.source,
            "rows": table.shape[0],
            "columns": table.shape[1],
            "preparation": self._prepared.log,
            "dropped_rows": self._prepared.dropped,
            "methods": [
                {
                    **_row(attempt),
                    "failed": attempt.reason or None,
                    "quality": attempt.measures.table and attempt.measures.table.to_dict(),
                }
                for attempt in self._attempts
            ],
        }

    def _made(self) -> list[tuple[str, Fit, Measures]]:
        return [(a.name, a.fit, a.measures) for a in self._attempts if a.fit is not None]

    def _entries(self) -> list[dict[str, Any]]:
        """Entries of the summary; every map is rotated and scaled to resemble the first."""
        reference: np.ndarray | None = None
        entries = []
        for _, fit, measures in self._made():
            entry = map_entry(fit, measures)
            if reference is None:
                reference = fit.Y
            else:
                entry["coordinates"] = align(reference, fit.Y).aligned
            entries.append(entry)
        return entries

    def _fit_log(self) -> list[str]:
        log = [f"{name}: {line}" for name, fit, _ in self._made() for line in fit.log]
        return log + [f"{name}: not made: {reason}" for name, reason in self.failures.items()]


def _row(attempt: Attempt) -> dict[str, Any]:
    fit, table = attempt.fit, attempt.measures.table
    found: dict[str, Any] = {
        "method": attempt.name,
        "seconds": None if fit is None else round(fit.seconds, 3),
        "peak_mb": None if fit is None or fit.peak_bytes is None else fit.peak_bytes // 10**6,
    }
    measured = {} if table is None else {line.name: line.value for line in table}
    for name in SHOWN:
        value = measured.get(name)
        found[name] = None if value is None else float(value)
        found[f"{name}_error"] = None if value is None else value.standard_error
    return found
