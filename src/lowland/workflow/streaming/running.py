"""One run from files that are read in chunks to a map of all rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.chain import Chain
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import TASK_ROWS
from lowland._base.rows.parts import Parts
from lowland._base.rows.table import Rows
from lowland.chunks.opening import open_rows
from lowland.methods.linear.pca import PCA
from lowland.report.measures import NOT_MEASURED, Measures
from lowland.tables import coordinate_names
from lowland.tables.preparing import Prepared
from lowland.workflow._stages import OptionalStages, Stages
from lowland.workflow.fitting import Fit
from lowland.workflow.run import RunOptions, choose_color, with_gower
from lowland.workflow.streaming.choosing import StreamOptions
from lowland.workflow.streaming.fitting import FittedModel, check_refinable, fit_rows, refine
from lowland.workflow.streaming.measuring import (
    PCA_COLUMNS,
    judge_sample,
    measure_rows,
    measured_numbers,
)
from lowland.workflow.streaming.result import Home, Room, StreamedMap, StreamFacts, run_identity
from lowland.workflow.streaming.roles import (
    Columns,
    Looked,
    Place,
    Ready,
    column_frames,
    look_at,
    prepared_sample,
    written_names,
)
from lowland.workflow.targets import Target, learned_target
from lowland.workflow.trusting import NOT_JUDGED


class Table(NamedTuple):
    """A table in chunks, prepared as a sample of its rows suggests."""

    looked: Looked
    prepared: Prepared
    columns: Columns
    color: str | None
    target: Target  # what the method learns from

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

    @property
    def measured(self) -> Rows:
        """All rows as maps are measured against: missing values are means of the sample."""
        if not self.prepared.has_gaps:
            return self.ready
        return self.ready.map(Filled(np.nanmean(np.asarray(self.prepared.X), axis=0)))


class Filled:
    """The step that puts the means of columns in place of missing values."""

    def __init__(self, means: np.ndarray) -> None:
        self.means = means

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(X), self.means.astype(X.dtype), X)


def stream_map(
    paths: Sequence[str],
    cls: type[Reducer],
    parameters: dict[str, Any],
    options: RunOptions,
    stream: StreamOptions,
    home: Home | None = None,
    task_rows: int = TASK_ROWS,
) -> StreamedMap:
    """Make one map of files that are read in chunks.

    The model and the parts of the map are written to ``home`` while they are made; without one,
    to a temporary folder that lives as long as the result.
    """
    stages, keeper, room = Stages(), OptionalStages(), None
    if stream.refine is not None:
        check_refinable(cls, stream.spelling)
    if home is None:
        room = Room()
        home = Home(room.folder, resume=False, force=False)
    with stream.running():
        table = _opened(paths, cls, parameters, options, stages, task_rows)
        given = with_gower(parameters, options.table)[0] | table.target.parameters
        model, fitted = _fitted(table, cls, given, options, stream, home, stages)
        placed = _placed(table, model)
        monitor = Monitor(cls.__name__, verbose=options.fit.verbose)
        with stages.timed("placing"), monitor:
            folder = home.parts if stream.refine is None else home.placed
            parts = placed.write(folder, resume=home.resume, monitor=monitor)
        coordinates = _coordinates(parts, placed, task_rows)
        log = fitted.log
        if stream.refine is not None:
            with stages.timed("placing"):
                parts, moved = refine(
                    *(model, table.ready, parts, coordinates, home.parts),
                    *(stream.refine, options.fit),
                )
            log = [*log, moved]
            coordinates = _coordinates(parts, placed, task_rows)
        Y = np.ascontiguousarray(coordinates.take(table.looked.numbers).X)
        measures, judged = NOT_MEASURED, NOT_JUDGED
        if options.measure:

            def measured() -> Measures:
                return _measures(table, model, fitted, coordinates, Y, options)

            with stages.timed("measuring"):
                measures = keeper.attempt("measures", measured, NOT_MEASURED)
    name = registry.snake_case(cls.__name__)
    seconds = fitted.seconds + stages.seconds.get("placing", 0.0)
    facts = seconds, fitted.peak_bytes, fitted.stopped, log
    more = {"learned_from": table.target.column, "look": options.fit.look}
    fit = Fit(name, _last(model), model, Y, *facts, **more)
    if options.measure:
        judged = judge_sample(
            *(table.prepared, fit, len(table.looked.rows), given, table.target.values),
            *(options, keeper, stages),
        )
    facts = StreamFacts(
        stream.streamed_by, len(table.looked.rows), fitted.n_fitted, len(Y), parts, room
    )
    return StreamedMap(
        *(table.prepared, fit, measures),
        judged=judged,
        facts=facts,
        color=table.color,
        command=options.command,
        stages=stages,
        keeper=keeper,
    )


def _opened(
    paths: Sequence[str],
    cls: type[Reducer],
    parameters: dict[str, Any],
    options: RunOptions,
    stages: Stages,
    task_rows: int,
) -> Table:
    """The files as a table whose preparation is decided."""
    how = dataclasses.replace(
        options.table, missing_values_taken=cls.allows_nan, learns=cls.needs_target
    )
    _, how = with_gower(parameters, how)
    if options.color is not None:
        how = dataclasses.replace(how, kept=(options.color,))
    with stages.timed("reading"):
        frames = open_rows(paths, frames=True, task_rows=task_rows)
        looked = look_at(frames, paths, how, options.fit.seed)
    with stages.timed("preparing"):
        prepared = prepared_sample(looked)
        color = choose_color(prepared.table, options.color or how.target)
        target = learned_target(prepared.table, cls, how.target, parameters, how.spelling)
    for note in (*prepared.table.notes, *prepared.cautions):
        options.note(note)
    return Table(looked, prepared, Columns.of(looked, prepared), color, target)


def _fitted(
    table: Table,
    cls: type[Reducer],
    given: dict[str, Any],
    options: RunOptions,
    stream: StreamOptions,
    home: Home,
    stages: Stages,
) -> tuple[Any, FittedModel]:
    """The model as it was saved, and what is known about its fit; loaded if a run goes on."""
    home.check()
    identity = run_identity(
        {
            "table": table.looked.rows.digest(),
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
        with stages.timed("fitting"):
            fitted = fit_rows(
                *(table.ready, table.prepared, cls, given, table.target, options.fit, stream)
            )
        # placed by the model as it is read back, so that a resumed run places by the same one
        model = home.save(fitted.model, identity, fitted.facts())
        if fitted.stopped:
            options.note("stopped; the map computed so far is kept")
    else:
        model, facts = found
        fitted = FittedModel(model, **facts)
        options.note(f"the model of the run before is used: {home.model}")
    known = {"n_jobs": options.fit.n_jobs}
    for step in model.steps if isinstance(model, Chain) else [model]:
        step.set_params(**{name: known[name] for name in known if name in step.parameters()})
    return model, fitted


def _placed(table: Table, model: Any) -> Rows:
    """The places of all rows, with their ids and labels, as a table that is computed when used."""
    names = coordinate_names(_last(model).n_components)
    beside, id_name = written_names(table.prepared.table, names)
    frames = column_frames(table.looked.rows, table.columns.names, beside, id_name)
    step = Place(table.columns, model)
    return frames.map(step, len(names), names=names, dtype=_dtype(table.prepared.X))


def _coordinates(parts: Parts, placed: Rows, task_rows: int) -> Rows:
    """The coordinates of all rows, read from the parts of the map."""
    files = [str(path) for path in parts.files]
    return open_rows(files, columns=list(placed.names or ()), task_rows=task_rows)


def _measures(
    table: Table,
    model: Any,
    fitted: FittedModel,
    coordinates: Rows,
    Y: np.ndarray,
    options: RunOptions,
) -> Measures:
    """The quality of the map, and that of each measured row among the rows shown."""
    rows, fit = table.measured, options.fit
    n, p = rows.shape
    cls = type(_last(model))
    # the estimate, not the measured time: the same run measures the same rows everywhere; to place
    # a row takes about as long as its share of the fit
    m = fitted.n_fitted
    seconds = cls.estimate(m, p).seconds * n / m
    shown = table.looked.numbers  # those measured are among them
    numbers = measured_numbers(n, p, seconds, fit.seed, len(shown))
    places = np.searchsorted(shown, numbers)
    X = table.looked.frame[places]
    for step in rows.steps:
        X = step(X)
    metric = table.prepared.metric
    monitor = Monitor("quality", verbose=fit.verbose)
    with monitor:
        pca = _principal_axes(model, rows, coordinates.shape[1], options)
        found = measure_rows(
            *(rows, coordinates, numbers),
            metric=metric,
            pca=pca,
            points=(X, Y[places]),
            n_jobs=fit.n_jobs,
            monitor=monitor,
        )
    if found is None:
        return NOT_MEASURED
    per_point = {}
    for name, values in found.per_point.items():
        per_point[name] = np.full(len(shown), np.nan)
        per_point[name][places] = values
    return Measures(found.table, per_point)


def _principal_axes(model: Any, rows: Rows, q: int, options: RunOptions) -> PCA | None:
    """A PCA of all rows with at least q components; one that the model has is used again."""
    for step in model.steps if isinstance(model, Chain) else [model]:
        plain = type(step) is PCA and not (step.whiten or step.scale)
        if plain and step.n_components >= q:
            return step
    if rows.shape[1] > PCA_COLUMNS:
        return None
    most = min(q, *rows.shape)
    return PCA(most, random_state=options.fit.seed, n_jobs=options.fit.n_jobs).fit(rows)


def _last(model: Any) -> Any:
    return model.last if isinstance(model, Chain) else model


def _dtype(X: Any) -> np.dtype:
    return np.asarray(X[:1]).dtype
