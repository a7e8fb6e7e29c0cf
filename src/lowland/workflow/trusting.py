"""Where a map of a run can be believed; on request with refits."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import count
from lowland.neighbors import NeighborGraph
from lowland.tables import Table
from lowland.tables.preparing import Prepared
from lowland.trust import RefitPart, Trust, affordable_rows, trust, with_refits
from lowland.trust.trusting import FEWEST_ROWS, MakeMap
from lowland.workflow._display import grouped
from lowland.workflow._stages import STOPPED, OptionalStages, Stages
from lowland.workflow.fitting import Fit, FitPlan, lowered
from lowland.workflow.options import RunSettings

if TYPE_CHECKING:
    import polars as pl

# The same map again, of other rows and with another seed.


SKIPPED = ("callback", "n_components", "metric")  # reported to the user once, or set here


def make_again(source: Source, X: Any, fit: Fit, plan: FitPlan) -> MakeMap | str:
    """What makes the map of rows X again, as the method got them; or why it cannot be made.

    Parts of the rows are given to the method as it got them in the run: with missing values,
    sparse, and as wide as they are. Data without structure come as they are.
    """
    if fit.stopped:
        return "the map was stopped before it was finished"
    n, y = len(fit.Y), plan.target.values
    parameters: dict[str, Any] = {}
    for name, value in plan.given.items():
        if name in SKIPPED:
            continue
        if not _is_of_rows(name, value, n):
            parameters[name] = value
        elif name != "init":  # a start for other rows, whose place the usual one takes
            return f"{name} was given for all rows, and parts of them cannot be mapped with it"
    parameters["n_components"] = fit.Y.shape[1]
    if "metric" in plan.cls.parameters():
        parameters["metric"] = fit.estimator.metric  # type: ignore[attr-defined]

    def again(rows: Any, seed: int, part: RefitPart) -> np.ndarray:
        if not (part.is_null or source.metric == "precomputed"):
            rows = X[part.rows]
        given = lowered(plan.cls, rows.shape[0], parameters)
        of_run = {**plan.settings.of_methods, "random_state": seed, "verbose": False}
        estimator = plan.cls(**given, **of_run)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of the map has already given these warnings
            return np.asarray(estimator.fit_transform(rows, None if y is None else y[part.rows]))

    return again


def _is_of_rows(name: str, value: Any, n: int) -> bool:
    """Whether a parameter has one value for each row, or numbers of rows."""
    if name == "boundary":
        return not isinstance(value, str)
    shape: tuple[int, ...] = getattr(value, "shape", ())
    if isinstance(value, list | tuple):
        shape = np.shape(value)
    return len(shape) == 2 and shape[0] == n


class Judged(NamedTuple):
    """Where a map can be believed; if that is not known, why; and the lines to print about it."""

    trust: Trust | None
    reason: str = ""  # why trust is None
    log: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """What was decided, as lines of a log."""
        lost = [f"the points of the map were not judged: {self.reason}"] if self.reason else []
        return [*self.log, *lost]


NOT_JUDGED = Judged(None)


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """The rows that a map is judged against."""

    X: Any
    metric: Any = "euclidean"
    metric_params: dict[str, Any] | None = None
    graph: NeighborGraph | None = None  # in these columns and this metric
    log: tuple[str, ...] = ()

    @classmethod
    def of(cls, X: Any, graph: NeighborGraph | None, prepared: Prepared, fit: Fit) -> Source:
        """What the method saw: after PCA the scores, and the neighbors that it found itself."""
        log: list[str] = []
        metric, params = prepared.metric, None
        own = getattr(fit.estimator, "metric", None)
        if not prepared.distances and own not in (None, "precomputed"):
            metric, params = own, fit.estimator.metric_params  # type: ignore[attr-defined]
            if own not in ("euclidean", prepared.metric):
                name = own if isinstance(own, str) else "given"
                log.append(f"points are judged by their neighbors in the {name} distance")
        if X is not prepared.X:
            log.append(f"points are judged by their neighbors in the {X.shape[1]} columns of PCA")
        if graph is not None and (prepared.has_gaps or graph.metric != metric):
            graph = None
        X = prepared.measured_rows if X is prepared.X else X
        return cls(X, metric, params, graph, tuple(log))

    def of_sample(self, m: int, n: int) -> Source:
        """The same rows as a sample of n rows, which the log says."""
        if m == n:
            return self
        line = f"the {grouped(m)} rows of the sample are judged among one another"
        return dataclasses.replace(self, log=(line, *self.log))

    @functools.cached_property
    def known(self) -> dict[str, Any]:
        """The keywords of functions that judge."""
        return {"metric": self.metric, "metric_params": self.metric_params}


def judge_fit(
    source: Source, fit: Fit, settings: RunSettings, map_seconds: float, keeper: OptionalStages
) -> Judged:
    """Judge a fitted map; a failure is kept as the reason."""
    if keeper.lost.get("measures") == STOPPED:
        return Judged(None, STOPPED)  # the user does not want to wait
    reason = why_not_judged(fit.Y, fit.sides, source)
    if reason:
        return Judged(None, reason)

    def judged() -> Judged:
        return judge_map(source, fit.Y, settings.seed, settings.n_jobs, map_seconds)

    found = keeper.attempt("points", judged, NOT_JUDGED)
    return found if found.trust else Judged(None, keeper.lost["points"])


def judge_map(
    source: Source, Y: np.ndarray, seed: int, n_jobs: int | None, map_seconds: float | None
) -> Judged:
    """Judge a map of rows: all points, or as many as a quarter of the map's time allows."""
    most = affordable_rows(source.X, source.metric, source.graph, map_seconds)
    how = {**source.known, "most_points": most, "random_state": seed, "n_jobs": n_jobs}
    found = trust(source.X, Y, source.graph, **how)
    log = source.log
    if most is not None:
        log = (*log, f"{most:,} of {len(Y):,} points are judged, as time and memory allow")
    return Judged(found, "", log)


def why_not_judged(Y: np.ndarray, sides: Any, source: Source) -> str:
    """Why a map cannot be judged; empty if it can."""
    if len(Y) < FEWEST_ROWS:
        return f"{count(len(Y), 'row')} are too few (at least {FEWEST_ROWS} are needed)"
    if sides is not None:
        return "the map is a torus, whose edges meet"
    D = source.X
    if source.metric == "precomputed" and isinstance(D, np.ndarray) and np.isnan(D).any():
        return "some distances are not known"
    return ""


def check_fit(
    judged: Judged,
    source: Source,
    again: MakeMap | str,
    settings: RunSettings,
    keeper: OptionalStages,
    stages: Stages,
) -> Judged:
    """Add refits to what is known of a map; if they fail or are stopped, it stays as it is."""
    found = judged.trust
    if found is None:
        return judged
    made, reason = None, again
    if not isinstance(again, str):
        how = {**source.known, **settings.of_methods}
        refit = functools.partial(with_refits, found, source.X, again, **how)
        with stages.timed("checking"):
            made = keeper.attempt("check", refit, None)
        reason = keeper.lost.get("check", "")
    if made is None:
        reasons = {"stability": reason, "chance": reason}
        return judged._replace(trust=dataclasses.replace(found, reasons=reasons))
    if made.stability is None:
        return judged._replace(trust=made)
    rows = min(len(other.rows) for other in made.stability.refits)
    line = f"mapped again: {len(made.stability.refits)} times {rows:,} rows with other seeds"
    line += "" if made.chance is None else ", and once as many without structure"
    return judged._replace(trust=made, log=(*judged.log, line))


def trust_frame(table: Table, found: Trust) -> pl.DataFrame:
    """Row id and what is known of each point, as in ``trust.csv``."""
    import polars as pl

    frame = found.to_frame()
    ids = table.ids.rename(f"{table.ids.name}_id") if table.ids.name in frame.columns else table.ids
    return pl.DataFrame([ids]).hstack(frame)
