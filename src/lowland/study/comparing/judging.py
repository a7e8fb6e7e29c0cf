"""Where each map of a comparison can be believed: all by the same neighbors, found once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from lowland.metrics.pointwise.missing import LISTED
from lowland.neighbors import knn_graph
from lowland.study._keeping import STOPPED, Keeper
from lowland.study._shared import SharedWork
from lowland.study.comparing.result import Attempt
from lowland.study.fitting import Fit, FitOptions
from lowland.study.summary import sides_of
from lowland.study.trusting import NOT_JUDGED, Source, judge_map, why_not_judged
from lowland.trust import Trust, affordable_rows


def judged_attempts(
    shared: SharedWork, attempts: Sequence[Attempt], options: FitOptions
) -> list[Attempt]:
    """The attempts with what is known of their maps; Ctrl-C leaves out the rest."""
    made = [attempt.fit for attempt in attempts if attempt.fit is not None]
    seconds = [type(fit.estimator).estimate(*shared.prepared.X.shape).seconds for fit in made]
    mean_seconds = float(np.mean(seconds))
    source: Source | None = None
    found, stopped = [], any(attempt.not_measured == STOPPED for attempt in attempts)
    for attempt in attempts:
        fit = attempt.fit
        if fit is None or stopped:
            found.append(attempt)
            continue
        keeper = Keeper()

        def judged(fit: Fit = fit) -> Trust | None:
            nonlocal source
            if source is None:
                source = _common_source(shared, mean_seconds, options)
            if why_not_judged(fit.Y, sides_of(fit), source):
                return None
            return judge_map(source, fit.Y, options.seed, options.n_jobs, mean_seconds).trust

        trust = keeper.attempt(f"{attempt.name} was not judged", judged, NOT_JUDGED.trust)
        lost = " ".join(keeper.lost.values())
        stopped = lost == STOPPED
        found.append(attempt._replace(trust=trust, not_judged=lost))
    return found


def _common_source(shared: SharedWork, seconds: float, options: FitOptions) -> Source:
    """The rows that all maps are judged against: after PCA, if one of the methods wanted that."""
    prepared, seen = shared.prepared, shared.common()
    source = Source(
        prepared.measured_rows if seen.X is prepared.X else seen.X,
        prepared.metric,
        None,
        seen.graph,
    )
    n = source.X.shape[0]
    k = min(LISTED, max(1, (n - 1) // 4))
    known = seen.graph is not None and seen.graph.n_neighbors >= k
    if known or affordable_rows(source.X, source.metric, None, seconds) is not None:
        return source
    graph = knn_graph(source.X, k, metric=source.metric, n_jobs=options.n_jobs)
    return dataclasses.replace(source, graph=graph)
