"""Where a map of rows that were read leaf by leaf can be believed: the sample that is shown."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from lowland._core.chain import Chain
from lowland.linear.pca import PCA
from lowland.study._keeping import Keeper
from lowland.study._stages import Stages
from lowland.study.fitting import Fit
from lowland.study.run import RunOptions
from lowland.study.streaming.options import grouped
from lowland.study.tables.preparing import Prepared
from lowland.study.trusting import Judged, Source, check_fit, judge_fit


def judge_sample(
    prepared: Prepared,
    fit: Fit,
    n: int,
    given: dict[str, Any],
    y: np.ndarray | None,
    options: RunOptions,
    keeper: Keeper,
    stages: Stages,
) -> Judged:
    """Judge the rows that are in memory by their neighbors among one another.

    ``fit.Y`` has their places in the map of all n rows; ``y`` what the method learns from.
    """
    reducing = [step for step in _steps(fit.model)[:-1] if type(step) is PCA]
    seen = np.asarray(reducing[0].transform(prepared.X)) if reducing else prepared.X
    source = Source.of(seen, None, prepared, fit)
    if len(fit.Y) < n:
        line = f"the {grouped(len(fit.Y))} rows of the sample are judged among one another"
        source = dataclasses.replace(source, log=(line, *source.log))
    # to place a row takes about as long as its share of the fit
    seconds = type(fit.estimator).estimate(len(fit.Y), seen.shape[1]).seconds
    with stages.timed("judging"):
        judged = judge_fit(source, fit, options.fit, seconds, keeper)
    if options.check:
        judged = check_fit(judged, source, seen, fit, given, y, options.fit, keeper, stages)
    return judged


def _steps(model: Any) -> list[Any]:
    return list(model.steps) if isinstance(model, Chain) else [model]
