"""The rows of a run that are read in chunks."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.chain import Chain
from lowland._base.errors import NeedsMemoryError, ParameterError
from lowland._base.interrupts import stopped_by_interrupt
from lowland._base.memory import available_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import TASK_ROWS
from lowland._base.rows.folding import sampled_rows
from lowland._base.rows.parts import MANIFEST, Parts, whole_file
from lowland._base.rows.table import Rows
from lowland.chunks.opening import open_rows
from lowland.chunks.refining import refined
from lowland.methods.linear.pca import PCA
from lowland.metrics.quality_table import Measures
from lowland.tables import Table
from lowland.tables.options import TableOptions
from lowland.tables.preparing import Prepared
from lowland.workflow._display import grouped
from lowland.workflow._stages import Stages
from lowland.workflow.fitting import NOT_PLACED, Fit, FitPlan, Fitted, Seen, fit_method
from lowland.workflow.options import RunOptions
from lowland.workflow.outputs import RunFolder, TemporaryFolder, run_identity
from lowland.workflow.result import Chunked
from lowland.workflow.streaming import roles
from lowland.workflow.streaming.measuring import PCA_COLUMNS, measure_rows, measured_numbers
from lowland.workflow.streaming.roles import Columns, InRoles, Looked, Place, in_roles, placed_rows

SAVED = ("n_fitted", "log", "seconds", "peak_bytes", "stopped")  # what a run notes of its fit


class ChunkRows:
    """The rows of files that are read in chunks, prepared as a sample of them suggests.

    The model and the parts of the map are written to ``home`` while they are made; without one,
    to a temporary folder that lives as long as the result.
    """

    looked: Looked  # the table, and the sample of its rows
    prepared: Prepared  # the sample
    columns: Columns
    learned_from: str | None  # the label that goes beside the rows for the method
    parts: Parts  # of the map
    coordinates: Rows  # of all rows in it
    temporary: TemporaryFolder | None = None

    def __init__(
        self, paths: Sequence[str], options: RunOptions, home: RunFolder | None = None
    ) -> None:
        self.paths, self.options, self.settings = paths, options, options.settings
        if home is None:
            self.temporary = TemporaryFolder()
            home = RunFolder(self.temporary.folder, resume=False, force=False)
        self.home = home

    def running(self) -> AbstractContextManager[Any]:
        return self.settings.running()

    # --- prepare --------------------------------------------------------------------------------

    def read(self, how: TableOptions) -> Table:
        rows = open_rows(self.paths, frames=True, task_rows=TASK_ROWS)
        self.looked = roles.look_at(rows, self.paths, how, self.settings.seed)
        return roles.read_sample(self.looked)

    def prepare(self, table: Table, how: TableOptions) -> Prepared:
        self.prepared = roles.prepared_sample(self.looked, table)
        self.columns = Columns.of(self.looked, self.prepared)
        return self.prepared

    @property
    def ready(self) -> Rows:
        """All rows as a method gets them, with the label that it learns from beside."""
        prepared, label = self.prepared, self.learned_from
        beside = () if label is None else ((label, label),)
        frames = in_roles(self.looked.rows, InRoles(self.columns.names, beside))
        names = self.columns.names if prepared.preparation is None else None
        step = Place(self.columns, prepared.preparation)
        return frames.map(step, prepared.X.shape[1], names=names, dtype=_dtype(prepared.X))

    # --- fit ------------------------------------------------------------------------------------

    def fit(self, plan: FitPlan, stages: Stages) -> Fit:
        """The fit with the model as it was saved; loaded if a run goes on."""
        options, settings, home = self.options, self.settings, self.home
        name = plan.cls.__name__
        if settings.refine is not None and name != REFINABLE:  # the fit may take long
            option = settings.spelling.option("refine")
            raise ParameterError(f"{option}: not available for {name}; it is for {REFINABLE}.")
        home.check()
        self.learned_from = plan.target.column
        identity = run_identity(
            {
                "table": self.looked.rows.digest(),
                "method": name,
                "parameters": plan.given,
                "options": {**vars(options.table), "spelling": None},
                "fit": [settings.seed, str(settings.pca)],
                "sample": [settings.sample, settings.refine],
                "color": settings.color,
            }
        )
        found = home.saved(identity)
        if found is None:
            fit = fit_method(self, plan, stages)
            m, n = fit.n_fitted, len(self.looked.rows)
            some = f"{grouped(m)} of {grouped(n)} rows; the others are placed in the map of these"
            whole = f"all {grouped(n)} rows, which were read in chunks"
            fit.log.append(f"fitted on {whole if m == n else some}")
            saved = {name: getattr(fit, name) for name in SAVED}
            # placed by the model as it is read back, so that a resumed run places by the same one
            found = home.save(fit.model, identity, saved), saved
        else:
            options.note(f"the model of the run before is used: {home.model}")
        model, saved = found
        more = {"learned_from": self.learned_from, "look": settings.look}
        last = model.last if isinstance(model, Chain) else model
        fit = Fit(registry.snake_case(name), last, model, NOT_PLACED, **saved, **more)
        for step in fit.steps:
            if "n_jobs" in step.parameters():
                step.set_params(n_jobs=settings.n_jobs)
        return fit

    def reduced(self, n_columns: int) -> tuple[Rows, PCA]:
        ready, pca = self.ready, PCA(n_columns, **self.settings.of_methods)
        reduced = pca.fit(ready).transform(ready)
        reduced.names = None  # as in memory, where a method gets an array after PCA
        return reduced, pca

    def fitted(self, X: Rows, plan: FitPlan) -> Fitted:
        """A method fitted to all rows if it goes through them in chunks and no sample was asked
        for; else to a sample, which depends on the seed and the number of rows only.
        """
        (n, p), sample, column = X.shape, self.settings.sample, plan.target.column
        log: list[str] = []
        estimator = plan.estimator(self.prepared, (n, p), log)
        if estimator.fits_rows and (sample is None or sample >= n):
            # a parameter of the method may not allow that
            with suppress(NeedsMemoryError), stopped_by_interrupt(estimator) as stop:
                estimator.fit(X, column)
                return Fitted(estimator, None, n, stop.asked, log)
        m = min(n, sample or fitted_rows(plan.cls, n, p))
        log = []
        estimator = plan.estimator(self.prepared, (m, p), log)
        with stopped_by_interrupt(estimator) as stop:
            block = X.take(sampled_rows(n, m, self.settings.seed))
            values = block.X if X.names else np.ascontiguousarray(block.X)
            estimator.fit(values, None if column is None else block.beside[column].to_numpy())
        return Fitted(estimator, None, m, stop.asked, log)

    # --- place ----------------------------------------------------------------------------------

    def place(self, fit: Fit, stages: Stages) -> Fit:
        """The fit with the places of the sample; the parts of the map have those of all rows."""
        steps = self.settings.refine
        step = Place(self.columns, fit.model)
        q, dtype = fit.estimator.n_components, _dtype(self.prepared.X)
        placed = placed_rows(self.looked, self.prepared.table, step, q, dtype)
        monitor = Monitor(type(fit.estimator).__name__, verbose=self.settings.verbose)
        with stages.timed("placing"), monitor:
            folder = self.home.parts if steps is None else self.home.placed
            self.parts = placed.write(folder, resume=self.home.resume, monitor=monitor)
        self.coordinates = _coordinates(self.parts, placed)
        log = fit.log
        if steps is not None:
            with stages.timed("placing"):
                log = [*log, self._refine(fit, steps)]
            self.coordinates = _coordinates(self.parts, placed)
        Y = np.ascontiguousarray(self.coordinates.take(self.looked.numbers).X)
        seconds = fit.seconds + stages.seconds["placing"]
        return fit._replace(Y=Y, log=log, seconds=seconds)

    def _refine(self, fit: Fit, steps: int) -> str:
        """Move all rows of the map by steps of the method, and report what they achieved.

        The parts as the model placed them are removed at the end: until then, a run that is stopped
        goes on from them.
        """
        ready, settings = self.ready, self.settings
        for step in fit.steps:
            if isinstance(step, PCA):
                ready = step.transform(ready)
        with Monitor("refinement", verbose=settings.verbose) as monitor:
            found = refined(
                fit.estimator,
                ready,
                self.coordinates.to_numpy(),
                steps,
                seed=settings.seed,
                n_jobs=settings.n_jobs,
                monitor=monitor,
            )
        names = list(self.coordinates.names or ())
        self.parts = _moved(self.parts, found.Y, self.home.parts, names)
        recall = "" if found.recall is None else f"; {found.recall:.1%} of the neighbors were found"
        return (
            f"moved by {found.n_iter} steps of t-SNE on all rows: the divergence fell from "
            f"{found.kl_before:.2f} to {found.kl_after:.2f}{recall}; the model places new rows in "
            "the map of the sample, before these steps"
        )

    def chunked(self) -> Chunked:
        engine, n = self.settings.chunk_engine, len(self.looked.rows)
        return Chunked(engine, n, self.parts, self.temporary)

    # --- measure --------------------------------------------------------------------------------

    def measure(self, fit: Fit, color: str | None) -> Measures:
        """The quality of the map, and that of each measured row among the rows shown."""
        rows, settings = self._measured(), self.settings
        n, p = rows.shape
        # the estimate, not the measured time: the same run measures the same rows everywhere; to
        # place a row takes about as long as its share of the fit
        m = fit.n_fitted
        seconds = type(fit.estimator).estimate(m, p).seconds * n / m
        shown = self.looked.numbers  # those measured are among them
        numbers = measured_numbers(n, p, seconds, settings.seed, len(shown))
        places = np.searchsorted(shown, numbers)
        X = self.looked.frame[places]
        for step in rows.steps:
            X = step(X)
        monitor = Monitor("quality", verbose=settings.verbose)
        with monitor:
            pca = self._principal_axes(fit, rows)
            found = measure_rows(
                rows,
                self.coordinates,
                numbers,
                metric=self.prepared.metric,
                pca=pca,
                points=(X, fit.Y[places]),
                n_jobs=settings.n_jobs,
                monitor=monitor,
            )
        per_point = {}
        for name, values in found.per_point.items():
            per_point[name] = np.full(len(shown), np.nan)
            per_point[name][places] = values
        return Measures(found.table, per_point)

    def _measured(self) -> Rows:
        """All rows as maps are measured against: missing values are means of the sample."""
        if not self.prepared.has_gaps:
            return self.ready
        return self.ready.map(
            functools.partial(_filled, np.nanmean(np.asarray(self.prepared.X), axis=0))
        )

    def _principal_axes(self, fit: Fit, rows: Rows) -> PCA | None:
        """A PCA of all rows, for a map like that of the fit; one in the model is used again."""
        q = fit.Y.shape[1]
        for step in fit.steps:
            plain = type(step) is PCA and not (step.whiten or step.scale)
            if plain and step.n_components >= q:
                return step
        if rows.shape[1] > PCA_COLUMNS:
            return None
        settings, most = self.settings, min(q, *rows.shape)
        return PCA(most, random_state=settings.seed, n_jobs=settings.n_jobs).fit(rows)

    def seen(self, fit: Fit) -> Seen:
        X = self.prepared.X
        for step in fit.steps[:-1]:
            if type(step) is PCA:
                X = np.asarray(step.transform(X))
        return Seen(X, None, self.prepared.metric)


def _filled(means: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Rows with the means of columns in place of missing values."""
    return np.where(np.isnan(X), means.astype(X.dtype), X)


def _coordinates(parts: Parts, placed: Rows) -> Rows:
    """The coordinates of all rows, read from the parts of the map."""
    files = [str(path) for path in parts.files]
    return open_rows(files, columns=list(placed.names or ()), task_rows=TASK_ROWS)


def _dtype(X: Any) -> np.dtype:
    return np.asarray(X[:1]).dtype


# How many rows a method is fitted to that needs its rows in memory.


MOST_ROWS, FEWEST_ROWS = 500_000, 1000
SECONDS = 300.0  # of a fit, about


def fitted_rows(cls: type[Reducer], n_rows: int, n_columns: int) -> int:
    """The largest of 1000, 2000, 4000, ... rows, at most 500 000, that the method fits in about
    five minutes and in half of the memory; all rows if there are no more.
    """
    room = available_memory() / 2
    sizes = [1000 << k for k in range(9)] + [MOST_ROWS]
    found = FEWEST_ROWS
    for m in sizes:
        need = cls.estimate(m, n_columns)
        if need.seconds > SECONDS or need.n_bytes + 16 * m * n_columns > room:
            break
        found = m
        if m >= n_rows:
            break
    return min(n_rows, found)


REFINABLE = "TSNE"  # the method whose steps can move all rows of a map after they are placed


def _moved(placed: Parts, Y: np.ndarray, folder: Path, names: list[str]) -> Parts:
    """The parts with other coordinates, in another folder; the old ones are removed."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    start, files = 0, []
    for path in placed.files:
        frame = pl.read_parquet(path)
        places = pl.from_numpy(Y[start : start + frame.height], schema=names, orient="row")
        start += frame.height
        with whole_file(folder / path.name) as unfinished:
            frame.with_columns(places.get_columns()).write_parquet(unfinished)
        files.append(folder / path.name)
    shutil.copyfile(placed.folder / MANIFEST, folder / MANIFEST)
    shutil.rmtree(placed.folder)
    return placed._replace(folder=folder, files=tuple(files))
