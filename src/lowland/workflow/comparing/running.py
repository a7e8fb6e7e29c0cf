"""Several methods on the same rows, side by side."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lowland._base.base import Reducer
from lowland._base.errors import DataError, LowlandError, ParameterError, StoppedError
from lowland._base.interrupts import ends_stage
from lowland._base.options import takes_options
from lowland.metrics.missing import LISTED
from lowland.metrics.quality_table import NOT_MEASURED
from lowland.neighbors import knn_graph
from lowland.tables.options import TABLE, TableOptions
from lowland.trust import Trust, affordable_rows
from lowland.workflow._stages import STOPPED, OptionalStages, Stages, reason_of
from lowland.workflow.comparing.entries import Entry, comparison_entries
from lowland.workflow.comparing.result import Attempt, MapComparison
from lowland.workflow.fitting import Fit, FitPlan, fit_method, learned_target
from lowland.workflow.options import COMPARING, RunOptions, RunSettings
from lowland.workflow.run import MemoryRows, prepare_run
from lowland.workflow.trusting import NOT_JUDGED, Source, judge_map, why_not_judged

# Where each map of a comparison can be believed: all by the same neighbors, found once.


def judged_attempts(
    shared: MemoryRows, attempts: Sequence[Attempt], options: RunSettings
) -> list[Attempt]:
    """The attempts with what is known of their maps; Ctrl-C leaves out the rest."""
    made = [attempt.fit for attempt in attempts if attempt.fit is not None]
    seconds = [type(fit.estimator).estimate(*shared.prepared.X.shape).seconds for fit in made]
    mean_seconds = float(np.mean(seconds))

    @functools.cache
    def source() -> Source:
        return _common_source(shared, mean_seconds, options)

    def judged(fit: Fit) -> Trust | None:
        if why_not_judged(fit.Y, fit.sides, source()):
            return None
        return judge_map(source(), fit.Y, options.seed, options.n_jobs, mean_seconds).trust

    found, stopped = [], any(attempt.not_measured == STOPPED for attempt in attempts)
    for attempt in attempts:
        if attempt.fit is not None and not stopped:
            keeper, work = OptionalStages(), functools.partial(judged, attempt.fit)
            trust = keeper.attempt(f"{attempt.name} was not judged", work, NOT_JUDGED.trust)
            lost = " ".join(keeper.lost.values())
            stopped = lost == STOPPED
            attempt = attempt._replace(trust=trust, not_judged=lost)
        found.append(attempt)
    return found


def _common_source(shared: MemoryRows, seconds: float, options: RunSettings) -> Source:
    """The rows that all maps are judged against: after PCA, if one of the methods wanted that."""
    prepared, seen = shared.prepared, shared.common()
    X = prepared.measured_rows if seen.X is prepared.X else seen.X
    source = Source(X, prepared.metric, None, seen.graph)
    n = source.X.shape[0]
    k = min(LISTED, max(1, (n - 1) // 4))
    known = seen.graph is not None and seen.graph.n_neighbors >= k
    if known or affordable_rows(source.X, source.metric, None, seconds) is not None:
        return source
    graph = knn_graph(source.X, k, metric=source.metric, n_jobs=options.n_jobs)
    return dataclasses.replace(source, graph=graph)


@takes_options(table=(TableOptions, TABLE), settings=(RunSettings, COMPARING))
def compare_methods(
    data: Any,
    methods: Sequence[str | type[Reducer] | tuple[Any, dict[str, Any]]] = ("pca", "tsne"),
    *,
    along: Mapping[str, Iterable[Any]] | None = None,
    table: TableOptions,
    settings: RunSettings,
) -> MapComparison:
    """Map a table by several methods, or by one with several parameters, and measure each map.

    A method that cannot map the table does not stop the others: its row of the table is empty,
    and ``failures`` has the reason. Ctrl-C stops the method that runs and keeps its map so far. If
    there is none yet, or Ctrl-C is pressed again, the comparison ends with the maps made before.

    Parameters
    ----------
    data : path, data frame, array, sparse matrix or Dataset
        The table, as in :func:`make_map`.
    methods : sequence of entries, default=("pca", "tsne")
        An entry is the name of a method, ``"tsne:perplexity=5"`` (more parameters follow after
        colons), a class, or a tuple of a name or a class and a dictionary of parameters.
    along : dict of str to sequence, optional
        Parameters and their values, such as ``{"exaggeration": [1, 4, 30]}``: each method that has
        the parameter makes one map for each value, and the others one map. Several parameters are
        combined. At most 24 maps are made along a parameter.

    Returns
    -------
    MapComparison

    Examples
    --------
    >>> from lowland.workflow import compare_methods
    >>> compare_methods("iris", ["pca", "classical_mds"]).table["method"].to_list()
    ['pca', 'classical_mds']
    >>> found = compare_methods("iris", ["tsne:perplexity=5", ("tsne", {"perplexity": 40})])
    >>> list(found.maps)
    ['tsne:perplexity=5', 'tsne:perplexity=40']
    >>> list(compare_methods("iris", ["pca", "isomap"], along={"n_neighbors": [5, 20]}).maps)
    ['pca', 'isomap:n_neighbors=5', 'isomap:n_neighbors=20']
    """
    entries = comparison_entries(methods, along=along)
    if not entries:
        raise ParameterError("methods: () is empty; give at least one method.")
    command = "lowland.workflow.compare_methods(data)"
    return run_comparison(data, entries, settings.of(table, command))


def run_comparison(data: Any, entries: Sequence[Entry], options: RunOptions) -> MapComparison:
    """Fit and measure every entry on the same prepared rows."""
    learns = any(entry.cls.needs_target for entry in entries)
    taken = all(entry.cls.allows_nan for entry in entries)
    table = dataclasses.replace(options.table, learns=learns, missing_values_taken=taken)
    options = dataclasses.replace(options, table=table)
    shared = MemoryRows(data, options)
    prepared, color = prepare_run(shared, Stages())
    attempts: list[Attempt] = []
    ended = False
    for entry in entries:
        if ended:
            attempts.append(Attempt(entry, None, NOT_MEASURED, "the comparison was ended before"))
            continue
        nothing = not any(attempt.fit for attempt in attempts)
        attempt, ended = _attempt(shared, entry, color, options, first=nothing)
        attempts.append(attempt)
    made = [attempt for attempt in attempts if attempt.fit is not None]
    if not made and any(attempt.reason == STOPPED for attempt in attempts):
        raise KeyboardInterrupt  # there is nothing to keep
    if not made:
        reasons = "; ".join(f"{attempt.name}: {attempt.reason}" for attempt in attempts)
        raise DataError(f"no method could do it: {reasons}")
    if not ended:
        attempts = judged_attempts(shared, attempts, options.settings)
    if ended:
        kept = ", ".join(attempt.name for attempt in made)
        options.note(f"the comparison was ended by Ctrl-C; these maps are kept: {kept}")
    return MapComparison(prepared, attempts, color=color, command=options.command)


def _attempt(
    shared: MemoryRows, entry: Entry, color: str | None, options: RunOptions, *, first: bool
) -> tuple[Attempt, bool]:
    """The map of an entry, or why there is none; and whether the user ended the comparison."""
    table, name = options.table, entry.name
    try:
        with ends_stage():
            target = learned_target(
                shared.prepared.table, entry.cls, table.target, entry.parameters, table.spelling
            )
            given = {**entry.parameters, **target.parameters}
            plan = FitPlan(entry.cls, given, target, options.settings)
            fit = fit_method(shared, plan, Stages())
    except (KeyboardInterrupt, StoppedError):
        options.note(f"{name}: {STOPPED}, and has no map yet")
        return Attempt(entry, None, NOT_MEASURED, STOPPED), True
    except Exception as error:
        if first and not isinstance(error, LowlandError | MemoryError):
            raise  # a defect, and there is no map yet that it could destroy
        options.note(f"{name}: {reason_of(error)}")
        return Attempt(entry, None, NOT_MEASURED, reason_of(error)), False
    if fit.stopped:
        options.note(f"{name}: stopped; the map computed so far is kept")
    keeper = OptionalStages()
    # all maps on the same rows, however long each of them takes
    measures = keeper.attempt(
        f"{name} was not measured", lambda: shared.quality(fit, color), NOT_MEASURED
    )
    return Attempt(entry, fit, measures, not_measured=" ".join(keeper.lost.values())), False
