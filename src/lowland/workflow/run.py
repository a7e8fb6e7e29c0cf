"""One run from a table to a map: read, prepare, fit, measure."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.base import Reducer
from lowland._base.errors import ParameterError
from lowland.metrics.quality import NOT_MEASURED, Measures, measure_map
from lowland.tables import Table
from lowland.tables.options import TableOptions
from lowland.tables.preparing import Prepared, prepare, read
from lowland.workflow._stages import OptionalStages, Stages
from lowland.workflow.fitting import (
    Fit,
    FitPlan,
    PreparedRows,
    Seen,
    first_class,
    fit_method,
    learned_target,
)
from lowland.workflow.options import RunOptions
from lowland.workflow.orienting import orientation_goal, turned
from lowland.workflow.result import MapResult
from lowland.workflow.trusting import NOT_JUDGED, Source, check_fit, judge_fit, make_again

if TYPE_CHECKING:
    from lowland.workflow.streaming.rows import ChunkRows

MOST_CLASSES = 100


class MemoryRows:
    """The rows of a run over a table that is read as a whole.

    A run goes through the same steps with rows in chunks,
    :class:`lowland.workflow.streaming.rows.ChunkRows`.
    """

    prepared: Prepared
    rows: PreparedRows

    def __init__(self, data: Any, options: RunOptions) -> None:
        self.data, self.options = data, options

    def running(self) -> AbstractContextManager[Any]:
        """The block around all that goes through the rows."""
        return contextlib.nullcontext()

    def read(self, how: TableOptions) -> Table:
        """The table whose columns are decided on; in chunks, that of a sample of the rows."""
        return read(self.data, how.for_data(self.data))

    def prepare(self, table: Table, how: TableOptions) -> Prepared:
        """The rows of this table prepared, and all others as they are."""
        self.prepared = prepare(table, how.for_data(self.data))
        return self.prepared

    def fit(self, plan: FitPlan, stages: Stages) -> Fit:
        """The method fitted to the rows."""
        settings = self.options.settings
        self.rows = PreparedRows(self.prepared, settings.seed, settings.n_jobs)
        return fit_method(self.rows, plan, stages)

    def place(self, fit: Fit, stages: Stages) -> Fit:
        """The fit with the places of the rows in the map."""
        return fit

    def measure(self, fit: Fit, color: str | None) -> Measures:
        """The quality of the map against all rows."""
        # the estimate, not the measured time: the same run measures the same rows everywhere
        seconds = type(fit.estimator).estimate(*self.prepared.X.shape).seconds
        return measure_fit(self.rows, fit, color, self.options.settings.n_jobs, seconds)

    def seen(self, fit: Fit) -> Seen:
        """What the method got, by which its map is judged."""
        return self.rows.seen

    def chunked(self) -> None:
        """The files of the map; None in memory."""


def run_map(
    rows: MemoryRows | ChunkRows, cls: type[Reducer], parameters: dict[str, Any]
) -> MapResult:
    """Make one map."""
    options, stages, keeper = rows.options, Stages(), OptionalStages()
    settings = options.settings
    table = dataclasses.replace(
        options.table,
        missing_distances=cls.accepts_missing,
        missing_values_taken=cls.allows_nan,
        learns=cls.needs_target,
    )
    parameters, table = with_gower(parameters, table)
    options = dataclasses.replace(options, table=table)
    measures, judged = NOT_MEASURED, NOT_JUDGED
    with rows.running():
        prepared, color = prepare_run(rows, options, stages)
        target = learned_target(prepared.table, cls, table.target, parameters, table.spelling)
        plan = FitPlan(cls, {**parameters, **target.parameters}, target, settings)
        goal = orientation_goal(settings.orient, prepared.table, settings.spelling)
        if goal is not None and isinstance(wanted := plan.given.get("n_components"), int):
            goal.check(wanted)  # before the fit, which may take long
        fit = rows.fit(plan, stages)
        if goal is not None:
            fit = turned(fit, goal, options.note)
        if fit.stopped:
            options.note("stopped; the map computed so far is kept")
        fit = rows.place(fit, stages)
        if settings.measure:
            with stages.timed("measuring"):
                measure = functools.partial(rows.measure, fit, color)
                measures = keeper.attempt("measures", measure, NOT_MEASURED)
    chunked = rows.chunked()
    if settings.measure:
        seen = rows.seen(fit)
        source = Source.of(seen.X, seen.graph, prepared, fit)
        if chunked is not None:
            source = source.of_sample(len(fit.Y), chunked.n_rows)
        # in chunks, to place a row takes about as long as its share of the fit
        seconds = cls.estimate(*prepared.X.shape).seconds
        with stages.timed("judging"):
            judged = judge_fit(source, fit, settings, seconds, keeper)
        if settings.check:
            again = make_again(source, seen.X, fit, plan)
            judged = check_fit(judged, source, again, keeper, stages)
    return MapResult(
        prepared,
        fit,
        measures,
        judged=judged,
        color=color,
        command=options.command,
        stages=stages,
        keeper=keeper,
        chunked=chunked,
    )


def with_gower(
    parameters: dict[str, Any], table: TableOptions
) -> tuple[dict[str, Any], TableOptions]:
    """Gower's distance as the Manhattan distance of columns that are prepared for it."""
    if parameters.get("metric") != "gower":
        return parameters, table
    say = table.spelling.option
    if table.distances or table.scale != "auto":
        other = say("distances") if table.distances else say("scale", table.scale)
        raise ParameterError(
            f"{say('metric', 'gower')} divides each column by its range; leave {other} out."
        )
    return {**parameters, "metric": "manhattan"}, dataclasses.replace(table, gower=True)


def prepare_run(
    rows: MemoryRows | ChunkRows, options: RunOptions, stages: Stages
) -> tuple[Prepared, str | None]:
    """The prepared rows and the column that colors the map."""
    how, asked = options.table, options.settings.color
    if asked is not None:
        how = dataclasses.replace(how, kept=(asked,))
    with stages.timed("reading"):
        table = rows.read(how)
    for note in table.notes:
        options.note(note)
    with stages.timed("preparing"):
        prepared = rows.prepare(table, how)
        color = asked or how.target or first_class(prepared.table)
        if color is not None:
            prepared.table.column(color)  # an unknown one is refused before the fit
    for caution in prepared.cautions:
        options.note(caution)
    return prepared, color


def measure_fit(
    rows: PreparedRows,
    fit: Fit,
    color: str | None,
    n_jobs: int | None,
    map_seconds: float | None = None,
) -> Measures:
    """The quality of a map against the prepared rows; ``map_seconds`` as in ``Comparison``."""
    prepared = rows.prepared
    return measure_map(
        prepared.measured_rows,
        fit.Y,
        labels=classes_in(prepared.table, color),
        metric=prepared.metric,
        pca_map=rows.pca_map(fit.Y.shape[1]),
        graph=rows.graph,
        map_seconds=map_seconds,
        n_jobs=n_jobs,
    )


def classes_in(table: Table, label: str | None) -> np.ndarray | None:
    """The label column, if it looks like classes: few values, none missing, no fractions."""
    if label is None:
        return None
    column = table.column(label)
    few = 2 <= column.n_unique() <= min(MOST_CLASSES, len(column) // 2)
    if column.has_nulls() or not few or column.dtype.is_float():
        return None
    return column.to_numpy()
