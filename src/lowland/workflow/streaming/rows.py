"""The rows of a run that are read in chunks."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.chain import Chain
from lowland._base.errors import PYTHON, NeedsMemoryError, ParameterError, Spelling
from lowland._base.interrupts import stopped_by_interrupt
from lowland._base.memory import available_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import TASK_ROWS
from lowland._base.rows.folding import sampled_rows
from lowland._base.rows.parts import MANIFEST, Parts
from lowland._base.rows.table import Rows
from lowland.chunks.opening import open_rows
from lowland.chunks.refining import refined
from lowland.methods.linear.pca import PCA
from lowland.metrics.quality import NOT_MEASURED, Measures
from lowland.tables import Table
from lowland.tables.options import TableOptions
from lowland.tables.preparing import Prepared
from lowland.workflow._display import grouped
from lowland.workflow._stages import Stages
from lowland.workflow.choosing import StreamOptions
from lowland.workflow.fitting import NOT_PLACED, Fit, FitOptions, Fitted, Make, Seen, fit_method
from lowland.workflow.outputs import RunFolder, TemporaryFolder, run_identity
from lowland.workflow.result import Chunked
from lowland.workflow.run import RunOptions
from lowland.workflow.streaming.measuring import PCA_COLUMNS, measure_rows, measured_numbers
from lowland.workflow.streaming.roles import (
    Columns,
    Looked,
    Place,
    Ready,
    column_frames,
    look_at,
    placed_rows,
    prepared_sample,
    read_sample,
)
from lowland.workflow.targets import Target

SAVED = ("n_fitted", "log", "seconds", "peak_bytes", "stopped")  # what a run notes of its fit


class ChunkRows:
    """The rows of files that are read in chunks, prepared as a sample of them suggests.

    The model and the parts of the map are written to ``home`` while they are made; without one,
    to a temporary folder that lives as long as the result.
    """

    looked: Looked  # the table, and the sample of its rows
    prepared: Prepared  # the sample
    columns: Columns
    target: Target
    parts: Parts  # of the map
    coordinates: Rows  # of all rows in it

    def __init__(
        self,
        paths: Sequence[str],
        options: RunOptions,
        stream: StreamOptions,
        home: RunFolder | None = None,
    ) -> None:
        self.paths, self.options, self.stream = paths, options, stream
        self.temporary = None
        if home is None:
            self.temporary = TemporaryFolder()
            home = RunFolder(self.temporary.folder, resume=False, force=False)
        self.home = home

    def running(self) -> AbstractContextManager[Any]:
        return self.stream.running()

    # --- prepare --------------------------------------------------------------------------------

    def read(self, how: TableOptions) -> Table:
        rows = open_rows(self.paths, frames=True, task_rows=TASK_ROWS)
        self.looked = look_at(rows, self.paths, how, self.options.fit.seed)
        return read_sample(self.looked)

    def prepare(self, table: Table, how: TableOptions) -> Prepared:
        self.prepared = prepared_sample(self.looked, table)
        self.columns = Columns.of(self.looked, self.prepared)
        return self.prepared

    @property
    def ready(self) -> Rows:
        """All rows as a method gets them, with the label that it learns from beside."""
        prepared = self.prepared
        labels = {name: name for name in [self.target.column] if name is not None}
        frames = column_frames(self.looked.rows, self.columns.names, labels, None)
        names = self.columns.names if prepared.preparation is None else None
        step = Ready(self.columns, prepared.preparation)
        n_columns = prepared.X.shape[1]
        return frames.map(step, n_columns, names=names, dtype=_dtype(prepared.X))

    # --- fit ------------------------------------------------------------------------------------

    def fit(self, cls: type[Reducer], given: dict[str, Any], target: Target, stages: Stages) -> Fit:
        """The fit with the model as it was saved; loaded if a run goes on."""
        options, stream, home = self.options, self.stream, self.home
        if stream.refine is not None:
            check_refinable(cls, stream.spelling)
        home.check()
        self.target = target
        identity = run_identity(
            {
                "table": self.looked.rows.digest(),
                "method": cls.__name__,
                "parameters": given,
                "options": {**vars(options.table), "spelling": None},
                "fit": [options.fit.seed, options.fit.pca],
                "sample": [stream.sample, stream.refine],
                "color": options.color,
            }
        )
        found = home.saved(identity)
        if found is None:
            fit = fit_method(self, cls, given, target, options.fit, stages)
            fit.log.append(_about_rows(fit.n_fitted, len(self.looked.rows)))
            saved = {name: getattr(fit, name) for name in SAVED}
            # placed by the model as it is read back, so that a resumed run places by the same one
            found = home.save(fit.model, identity, saved), saved
        else:
            options.note(f"the model of the run before is used: {home.model}")
        model, saved = found
        for step in _steps(model):
            if "n_jobs" in step.parameters():
                step.set_params(n_jobs=options.fit.n_jobs)
        name = registry.snake_case(cls.__name__)
        more = {"learned_from": target.column, "look": options.fit.look}
        return Fit(name, _steps(model)[-1], model, NOT_PLACED, **saved, **more)

    def reduced(self, n_columns: int) -> tuple[Rows, PCA]:
        ready, fit = self.ready, self.options.fit
        pca = PCA(n_columns, random_state=fit.seed, n_jobs=fit.n_jobs, verbose=fit.verbose)
        reduced = pca.fit(ready).transform(ready)
        reduced.names = None  # as in memory, where a method gets an array after PCA
        return reduced, pca

    def fitted(self, X: Rows, make: Make, target: Target) -> Fitted:
        """A method fitted to all rows if it goes through them in chunks and no sample was asked
        for; else to a sample, which depends on the seed and the number of rows only.
        """
        (n, p), sample, column = X.shape, self.stream.sample, target.column
        log: list[str] = []
        estimator = make((n, p), log)
        if estimator.fits_rows and (sample is None or sample >= n):
            with stopped_by_interrupt(estimator) as stop:
                if _fits(estimator, X, column):
                    return Fitted(estimator, None, n, stop.asked, log)
        m = min(n, sample or fitted_rows(type(estimator), n, p))
        log = []
        estimator = make((m, p), log)
        with stopped_by_interrupt(estimator) as stop:
            block = X.take(sampled_rows(n, m, self.options.fit.seed))
            values = block.X if X.names else np.ascontiguousarray(block.X)
            estimator.fit(values, None if column is None else block.beside[column].to_numpy())
        return Fitted(estimator, None, m, stop.asked, log)

    # --- place ----------------------------------------------------------------------------------

    def place(self, fit: Fit, stages: Stages) -> Fit:
        """The fit with the places of the sample; the parts of the map have those of all rows."""
        options, steps = self.options.fit, self.stream.refine
        step = Place(self.columns, fit.model)
        q, dtype = fit.estimator.n_components, _dtype(self.prepared.X)
        placed = placed_rows(self.looked, self.prepared.table, step, q, dtype)
        monitor = Monitor(type(fit.estimator).__name__, verbose=options.verbose)
        with stages.timed("placing"), monitor:
            folder = self.home.parts if steps is None else self.home.placed
            self.parts = placed.write(folder, resume=self.home.resume, monitor=monitor)
        self.coordinates = _coordinates(self.parts, placed)
        log = fit.log
        if steps is not None:
            with stages.timed("placing"):
                self.parts, moved = refine(
                    fit.model,
                    self.ready,
                    self.parts,
                    self.coordinates,
                    self.home.parts,
                    steps,
                    options,
                )
            log = [*log, moved]
            self.coordinates = _coordinates(self.parts, placed)
        Y = np.ascontiguousarray(self.coordinates.take(self.looked.numbers).X)
        seconds = fit.seconds + stages.seconds["placing"]
        return fit._replace(Y=Y, log=log, seconds=seconds)

    def chunked(self) -> Chunked:
        return Chunked(self.stream.streamed_by, len(self.looked.rows), self.parts, self.temporary)

    # --- measure --------------------------------------------------------------------------------

    def measure(self, fit: Fit, color: str | None) -> Measures:
        """The quality of the map, and that of each measured row among the rows shown."""
        rows, options = self._measured(), self.options.fit
        n, p = rows.shape
        # the estimate, not the measured time: the same run measures the same rows everywhere; to
        # place a row takes about as long as its share of the fit
        m = fit.n_fitted
        seconds = type(fit.estimator).estimate(m, p).seconds * n / m
        shown = self.looked.numbers  # those measured are among them
        numbers = measured_numbers(n, p, seconds, options.seed, len(shown))
        places = np.searchsorted(shown, numbers)
        X = self.looked.frame[places]
        for step in rows.steps:
            X = step(X)
        monitor = Monitor("quality", verbose=options.verbose)
        with monitor:
            pca = self._principal_axes(fit, rows)
            found = measure_rows(
                rows,
                self.coordinates,
                numbers,
                metric=self.prepared.metric,
                pca=pca,
                points=(X, fit.Y[places]),
                n_jobs=options.n_jobs,
                monitor=monitor,
            )
        if found is None:
            return NOT_MEASURED
        per_point = {}
        for name, values in found.per_point.items():
            per_point[name] = np.full(len(shown), np.nan)
            per_point[name][places] = values
        return Measures(found.table, per_point)

    def _measured(self) -> Rows:
        """All rows as maps are measured against: missing values are means of the sample."""
        if not self.prepared.has_gaps:
            return self.ready
        return self.ready.map(Filled(np.nanmean(np.asarray(self.prepared.X), axis=0)))

    def _principal_axes(self, fit: Fit, rows: Rows) -> PCA | None:
        """A PCA of all rows, for a map like that of the fit; one in the model is used again."""
        q = fit.Y.shape[1]
        for step in _steps(fit.model):
            plain = type(step) is PCA and not (step.whiten or step.scale)
            if plain and step.n_components >= q:
                return step
        if rows.shape[1] > PCA_COLUMNS:
            return None
        options = self.options.fit
        most = min(q, *rows.shape)
        return PCA(most, random_state=options.seed, n_jobs=options.n_jobs).fit(rows)

    def seen(self, fit: Fit) -> Seen:
        X = self.prepared.X
        for step in _steps(fit.model)[:-1]:
            if type(step) is PCA:
                X = np.asarray(step.transform(X))
        return Seen(X, None, self.prepared.metric)


class Filled:
    """The step that puts the means of columns in place of missing values."""

    def __init__(self, means: np.ndarray) -> None:
        self.means = means

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(X), self.means.astype(X.dtype), X)


def _fits(estimator: Reducer, rows: Rows, target: str | None) -> bool:
    """Fit to all rows; False if a parameter of the method does not allow that."""
    try:
        estimator.fit(rows, target)
    except NeedsMemoryError:
        return False
    return True


def _about_rows(fitted: int, n: int) -> str:
    if fitted == n:
        return f"fitted on all {grouped(n)} rows, which were read in chunks"
    return (
        f"fitted on {grouped(fitted)} of {grouped(n)} rows; the others are placed in the map of "
        "these"
    )


def _coordinates(parts: Parts, placed: Rows) -> Rows:
    """The coordinates of all rows, read from the parts of the map."""
    files = [str(path) for path in parts.files]
    return open_rows(files, columns=list(placed.names or ()), task_rows=TASK_ROWS)


def _steps(model: Any) -> list[Any]:
    return list(model.steps) if isinstance(model, Chain) else [model]


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


# Steps that move all rows of a map after they are placed.


REFINABLE = ("TSNE",)


class RefinedParts(NamedTuple):
    """The parts of a map whose rows were moved, and what the steps achieved, in words."""

    parts: Parts
    log: str


def check_refinable(method: type, spelling: Spelling = PYTHON) -> None:
    """Refuse methods whose maps cannot be refined, before the fit, which may take long."""
    if method.__name__ not in REFINABLE:
        raise ParameterError(
            f"{spelling.option('refine')}: not available for {method.__name__}; it is for "
            f"{', '.join(REFINABLE)}."
        )


def refine(
    model: Any,
    ready: Rows,
    placed: Parts,
    coordinates: Rows,
    folder: Path,
    steps: int,
    fit: FitOptions,
) -> RefinedParts:
    """Write the parts of the map after ``steps`` steps on all rows to ``folder``.

    ``ready`` are the prepared rows, ``placed`` the parts of the map as the model placed them, and
    ``coordinates`` their coordinates. The placed parts are removed at the end: until then, a run
    that is stopped goes on from them.
    """
    steps_before = [step for step in getattr(model, "steps", ()) if isinstance(step, PCA)]
    for step in steps_before:
        ready = step.transform(ready)
    estimator = model.last if isinstance(model, Chain) else model
    with Monitor("refinement", verbose=fit.verbose) as monitor:
        found = refined(
            *(estimator, ready, coordinates.to_numpy(), steps),
            seed=fit.seed,
            n_jobs=fit.n_jobs,
            monitor=monitor,
        )
    names = list(coordinates.names or ())
    recall = "" if found.recall is None else f"; {found.recall:.1%} of the neighbors were found"
    log = (
        f"moved by {found.n_iter} steps of t-SNE on all rows: the divergence fell from "
        f"{found.kl_before:.2f} to {found.kl_after:.2f}{recall}; the model places new rows in the "
        "map of the sample, before these steps"
    )
    return RefinedParts(_moved(placed, found.Y, folder, names), log)


def _moved(placed: Parts, Y: np.ndarray, folder: Path, names: list[str]) -> Parts:
    """The parts with other coordinates, in another folder; the old ones are removed."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    start, files = 0, []
    for path in placed.files:
        frame = pl.read_parquet(path)
        places = pl.from_numpy(Y[start : start + frame.height], schema=names, orient="row")
        start += frame.height
        unfinished = folder / f".{path.name}-{uuid.uuid4().hex[:12]}.part"
        try:
            frame.with_columns(places.get_columns()).write_parquet(unfinished)
            os.replace(unfinished, folder / path.name)
        finally:
            unfinished.unlink(missing_ok=True)
        files.append(folder / path.name)
    shutil.copyfile(placed.folder / MANIFEST, folder / MANIFEST)
    shutil.rmtree(placed.folder)
    return placed._replace(folder=folder, files=tuple(files))
