"""One run from a table to a map: read, prepare, fit, measure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._base.base import Reducer
from lowland._base.errors import ParameterError
from lowland.metrics.quality import NOT_MEASURED, Measures, measure_map
from lowland.tables import Table
from lowland.tables.options import TableOptions
from lowland.tables.preparing import Prepared, prepare, read
from lowland.workflow._shared import SharedWork
from lowland.workflow._stages import OptionalStages, Stages
from lowland.workflow.fitting import Fit, FitOptions, fit_method
from lowland.workflow.orienting import orientation_goal, turned
from lowland.workflow.result import MapResult
from lowland.workflow.targets import first_class, learned_target
from lowland.workflow.trusting import NOT_JUDGED, Source, check_fit, judge_fit

MOST_CLASSES = 100


def ignore(note: str) -> None:
    """Where notes go when nobody asked for them."""


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Everything about a run except the data, the method and its parameters."""

    table: TableOptions
    fit: FitOptions
    color: str | None = None
    measure: bool = True
    command: str = ""  # reproduces the run; shown in the report
    note: Callable[[str], None] = ignore  # told what a person should know while the run goes on
    orient: Any = None  # see ``orientation_goal``
    check: bool = False  # whether the map is made again, to see what is stable and what is chance


def run_map(
    data: Any, cls: type[Reducer], parameters: dict[str, Any], options: RunOptions
) -> MapResult:
    """Make one map."""
    stages = Stages()
    table_options = dataclasses.replace(
        options.table,
        missing_distances=cls.accepts_missing,
        missing_values_taken=cls.allows_nan,
        learns=cls.needs_target,
    )
    parameters, table_options = with_gower(parameters, table_options)
    options = dataclasses.replace(options, table=table_options)
    prepared, color = prepare_run(data, options, stages)
    asked, spelling = table_options.target, table_options.spelling
    target = learned_target(prepared.table, cls, asked, parameters, spelling)
    parameters = {**parameters, **target.parameters}
    goal = orientation_goal(options.orient, prepared.table, options.fit.spelling)
    if goal is not None and isinstance(wanted := parameters.get("n_components"), int):
        goal.check(wanted)  # before the fit, which may take long
    shared = SharedWork(prepared, options.fit.seed, options.fit.n_jobs)
    fit = fit_method(shared, cls, parameters, target, options.fit, stages)
    if goal is not None:
        fit = turned(fit, goal, options.note)
    if fit.stopped:
        options.note("stopped; the map computed so far is kept")
    keeper, measures, judged = OptionalStages(), NOT_MEASURED, NOT_JUDGED
    if options.measure:
        # the estimate, not the measured time: the same run measures the same rows everywhere
        seconds = cls.estimate(*prepared.X.shape).seconds

        def measured() -> Measures:
            return measure_fit(shared, fit, color, options.fit.n_jobs, seconds)

        with stages.timed("measuring"):
            measures = keeper.attempt("measures", measured, NOT_MEASURED)
        seen = shared.seen
        source = Source.of(seen.X, seen.graph, prepared, fit)
        with stages.timed("judging"):
            judged = judge_fit(source, fit, options.fit, seconds, keeper)
        if options.check:
            judged = check_fit(
                *(judged, source, seen.X, fit, parameters, target.values),
                *(options.fit, keeper, stages),
            )
    return MapResult(
        *(prepared, fit, measures),
        judged=judged,
        color=color,
        command=options.command,
        stages=stages,
        keeper=keeper,
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


def prepare_run(data: Any, options: RunOptions, stages: Stages) -> tuple[Prepared, str | None]:
    """The prepared rows and the column that colors the map."""
    how = options.table.for_data(data)
    if options.color is not None:
        how = dataclasses.replace(how, kept=(options.color,))
    with stages.timed("reading"):
        table = read(data, how)
    for note in table.notes:
        options.note(note)
    with stages.timed("preparing"):
        prepared = prepare(table, how)
        color = choose_color(prepared.table, options.color or options.table.target)
    for caution in prepared.cautions:
        options.note(caution)
    return prepared, color


def choose_color(table: Table, asked: str | None) -> str | None:
    """The column asked for, or the first label that looks like classes.

    An unknown column is refused here, before the fit, which may take long.
    """
    color = asked or first_class(table)
    if color is not None:
        table.column(color)
    return color


def measure_fit(
    shared: SharedWork,
    fit: Fit,
    color: str | None,
    n_jobs: int | None,
    map_seconds: float | None = None,
) -> Measures:
    """The quality of a map against the prepared rows; ``map_seconds`` as in ``Comparison``."""
    prepared = shared.prepared
    return measure_map(
        prepared.measured_rows,
        fit.Y,
        labels=classes_in(prepared.table, color),
        metric=prepared.metric,
        pca_map=shared.pca_map(fit.Y.shape[1]),
        graph=shared.graph,
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
