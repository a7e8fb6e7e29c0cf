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
from lowland._base.interrupts import stopped_by_interrupt
from lowland.methods.linear.pca import PCA
from lowland.metrics.quality_table import NOT_MEASURED, Measures, measure_map
from lowland.neighbors import NeighborGraph
from lowland.tables import Table
from lowland.tables.options import TableOptions
from lowland.tables.preparing import Prepared, prepare, read
from lowland.workflow._stages import OptionalStages, Stages
from lowland.workflow.fitting import (
    Fit,
    FitPlan,
    Fitted,
    Seen,
    first_class,
    fit_method,
    learned_target,
)
from lowland.workflow.options import RunOptions
from lowland.workflow.result import MapResult
from lowland.workflow.trusting import NOT_JUDGED, Source, check_fit, judge_fit, make_again

if TYPE_CHECKING:
    from lowland.workflow.streaming.rows import ChunkRows

MOST_CLASSES = 100


class MemoryRows:
    """The rows of a run over a table that is read as a whole.

    A run goes through the same steps with rows in chunks,
    :class:`lowland.workflow.streaming.rows.ChunkRows`.

    The scores of a PCA are sorted by variance, so that their first q columns are the PCA map of
    the table in q dimensions. The reduction before a neighbor method therefore also gives the PCA
    baseline of the quality table, and several methods of one run share one reduction.

    A neighbor method computes the nearest neighbors of the rows. If it was fitted on the prepared
    table itself, the measures of neighborhoods use the same graph.
    """

    prepared: Prepared

    def __init__(self, data: Any, options: RunOptions) -> None:
        self.data, self.options = data, options
        self.graph: NeighborGraph | None = None  # of the prepared table, if a method computed it
        self._reduced: dict[int, tuple[np.ndarray, PCA]] = {}
        self._scores: np.ndarray | None = None
        self._all_seen: list[Seen] = []

    def running(self) -> AbstractContextManager[Any]:
        """The block around all that goes through the rows."""
        return contextlib.nullcontext()

    def read(self, how: TableOptions) -> Table:
        """The table whose columns are decided on; in chunks, that of a sample of the rows."""
        return read(self.data, how.for_data(self.data))

    def prepare(self, table: Table, how: TableOptions) -> Prepared:
        """The rows of this table prepared, and all others as they are."""
        self.prepared = prepare(table, how.for_data(self.data))
        self.ready = self.prepared.X  # as a method gets them
        return self.prepared

    def fit(self, plan: FitPlan, stages: Stages) -> Fit:
        """The method fitted to the rows."""
        return fit_method(self, plan, stages)

    def reduced(self, n_columns: int) -> tuple[np.ndarray, PCA]:
        """The scores of the rows on the first principal axes, and the fitted PCA."""
        if n_columns not in self._reduced:
            settings = self.options.settings
            pca = PCA(n_columns, random_state=settings.seed, n_jobs=settings.n_jobs)
            scores = np.asarray(pca.fit_transform(self.ready))
            self._reduced[n_columns] = scores, pca
            self._keep(scores)
        return self._reduced[n_columns]

    def fitted(self, X: Any, plan: FitPlan) -> Fitted:
        """A method fitted to rows.

        The neighbors of the rows are kept, and their PCA map unless the axes were rescaled.
        """
        log: list[str] = []
        estimator = plan.estimator(self.prepared, X.shape, log)
        with stopped_by_interrupt(estimator) as stop, estimator.sharing() as work:
            Y = estimator.fit_transform(X, plan.target.values)
        metric = getattr(estimator, "metric", self.prepared.metric)
        self._all_seen.append(Seen(X, work.graph, metric))
        if X is self.ready and getattr(estimator, "metric", None) == "euclidean":
            self.graph = self.graph or work.graph
        plain = type(estimator) is PCA and not (estimator.whiten or estimator.scale)
        if plain and X is self.ready:
            self._keep(np.asarray(Y))
        return Fitted(estimator, Y, len(Y), stop.asked, log)

    def common(self) -> Seen:
        """What several methods are compared by: the fewest columns that one of them got.

        With the longest neighbor lists that a method found in these columns.
        """
        X = min((seen.X for seen in self._all_seen), key=lambda X: X.shape[1])
        metric = self.prepared.metric
        graphs = [seen.graph for seen in self._all_seen if seen.X is X and seen.metric == metric]
        known = [graph for graph in graphs if graph is not None]
        longest = max(known, key=lambda graph: graph.n_neighbors, default=None)
        return Seen(X, longest, metric)

    def pca_map(self, n_components: int) -> np.ndarray | None:
        """The PCA map of the table; None if no step of the run has computed it."""
        if self._scores is None or self._scores.shape[1] < n_components:
            return None
        return self._scores[:, :n_components]

    def _keep(self, scores: np.ndarray) -> None:
        if self._scores is None or scores.shape[1] > self._scores.shape[1]:
            self._scores = scores

    def place(self, fit: Fit, stages: Stages) -> Fit:
        """The fit with the places of the rows in the map."""
        return fit

    def measure(self, fit: Fit, color: str | None) -> Measures:
        """The quality of the map against all rows."""
        # the estimate, not the measured time: the same run measures the same rows everywhere
        seconds = type(fit.estimator).estimate(*self.prepared.X.shape).seconds
        return self.quality(fit, color, seconds)

    def quality(self, fit: Fit, color: str | None, map_seconds: float | None = None) -> Measures:
        """The quality of a map; ``map_seconds`` as in ``Comparison``."""
        return measure_map(
            self.prepared.measured_rows,
            fit.Y,
            labels=classes_in(self.prepared.table, color),
            metric=self.prepared.metric,
            pca_map=self.pca_map(fit.Y.shape[1]),
            graph=self.graph,
            map_seconds=map_seconds,
            n_jobs=self.options.settings.n_jobs,
        )

    def seen(self, fit: Fit) -> Seen:
        """What the last method got, by which its map is judged."""
        return self._all_seen[-1]

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
    rows.options = options = dataclasses.replace(options, table=table)
    measures, judged = NOT_MEASURED, NOT_JUDGED
    with rows.running():
        prepared, color = prepare_run(rows, stages)
        target = learned_target(prepared.table, cls, table.target, parameters, table.spelling)
        plan = FitPlan(cls, {**parameters, **target.parameters}, target, settings)
        turned = None
        if settings.orient is not None:
            from lowland.workflow.orienting import orientation_goal, turned

            goal = orientation_goal(settings.orient, prepared.table, settings.spelling)
            if isinstance(wanted := plan.given.get("n_components"), int):
                goal.check(wanted)  # before the fit, which may take long
        fit = rows.fit(plan, stages)
        if turned is not None:
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
            judged = check_fit(judged, source, again, settings, keeper, stages)
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


def prepare_run(rows: MemoryRows | ChunkRows, stages: Stages) -> tuple[Prepared, str | None]:
    """The prepared rows and the column that colors the map."""
    options, how = rows.options, rows.options.table
    asked = options.settings.color
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


def classes_in(table: Table, label: str | None) -> np.ndarray | None:
    """The label column, if it looks like classes: few values, none missing, no fractions."""
    if label is None:
        return None
    column = table.column(label)
    few = 2 <= column.n_unique() <= min(MOST_CLASSES, len(column) // 2)
    if column.has_nulls() or not few or column.dtype.is_float():
        return None
    return column.to_numpy()
