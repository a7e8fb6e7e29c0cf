"""One method on prepared rows: reduce the columns if that helps, fit, time it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.chain import Chain
from lowland._base.errors import PYTHON, ParameterError, Spelling
from lowland._base.interrupts import stopped_by_interrupt
from lowland.tables.preparing import Prepared
from lowland.workflow._parameters import MAP_DEFAULTS
from lowland.workflow._shared import SharedWork
from lowland.workflow._stages import Stages, peak_memory
from lowland.workflow.targets import Target

PCA_COLUMNS = 50  # to which neighbor methods reduce wider tables first


class FitOptions(NamedTuple):
    """Options of a fit that are not parameters of the method."""

    seed: int = 0
    n_jobs: int | None = None
    verbose: bool = False
    pca: str = "auto"
    spelling: Spelling = PYTHON
    look: Mapping[str, Any] = {}  # of the points in all pictures of the map


class Fit(NamedTuple):
    """A fitted method and its map of the rows."""

    name: str  # as the command line spells the method
    estimator: Reducer
    model: Any  # the estimator, or a chain that ends with it
    Y: np.ndarray
    seconds: float  # reduction by PCA and fit
    peak_bytes: int | None
    stopped: bool
    log: list[str]
    is_turned: bool = False  # by an orientation; then an axis is no longer one of the method's
    learned_from: str | None = None  # the column that the method was given beside the rows
    look: Mapping[str, Any] = {}  # of its points in all pictures


def fit_method(
    shared: SharedWork,
    cls: type[Reducer],
    given: dict[str, Any],
    target: Target,
    options: FitOptions,
    stages: Stages,
) -> Fit:
    """Fit a method to the prepared rows, after PCA where the method wants that."""
    prepared = shared.prepared
    log: list[str] = []
    with peak_memory() as peak:
        start = time.perf_counter()
        with stages.timed("preparing"):
            X, pca = _reduced(shared, cls, given, options, log)
            estimator = make_estimator(prepared, cls, X, target.values, given, options, log)
            log += target.log
        with (
            stages.timed("fitting"),
            stopped_by_interrupt(estimator) as stop,
            estimator.sharing() as work,
        ):
            Y = estimator.fit_transform(X, target.values)
        seconds = time.perf_counter() - start
    shared.learn_from(estimator, X, Y, work.graph)
    steps = [step for step in (prepared.preparation, pca, estimator) if step is not None]
    for step in steps:
        if "verbose" in step.parameters():
            step.set_params(verbose=False)  # progress bars are a matter of this run only
    model = steps[0] if len(steps) == 1 else Chain(steps)
    name = registry.snake_case(cls.__name__)
    facts = seconds, peak.n_bytes, stop.asked, log
    return Fit(name, estimator, model, Y, *facts, learned_from=target.column, look=options.look)


def _reduced(
    shared: SharedWork,
    cls: type[Reducer],
    given: dict[str, Any],
    options: FitOptions,
    log: list[str],
) -> tuple[Any, Any]:
    """The rows in fewer columns and the PCA that made them, or the rows as they are and None."""
    X = shared.prepared.X
    n_columns = pca_columns(shared.prepared, cls, given, options)
    if n_columns is None:
        return X, None
    scores, pca = shared.reduced(n_columns)
    log.append(pca_log(pca, options.spelling))
    return scores, pca


def pca_log(pca: Any, spelling: Spelling) -> str:
    """What the reduction by PCA did."""
    share = float(pca.explained_variance_ratio_.sum())
    return (
        f"reduced from {pca.n_features_in_} to {pca.n_components} columns by PCA, which keep "
        f"{share:.1%} of the variance (leave this out with {spelling.option('pca', 'none')})"
    )


def pca_columns(
    prepared: Prepared, cls: type[Reducer], given: dict[str, Any], options: FitOptions
) -> int | None:
    """The number of columns to reduce to before the method; None if that does not help."""
    n, p = prepared.X.shape
    asked, option = options.pca, options.spelling.option("pca")
    if asked == "none" or (asked == "auto" and prepared.distances):
        return None
    if asked == "auto":
        euclidean = given.get("metric", "euclidean") == "euclidean"
        return PCA_COLUMNS if cls.wants_pca and euclidean and p > PCA_COLUMNS < n else None
    if not asked.isdecimal() or int(asked) < 1:
        raise ParameterError(
            f"{option}: {asked!r} is not allowed; expected a number, auto or none."
        )
    if prepared.distances:
        raise ParameterError(
            f"{option}: a matrix of distances has no columns to reduce; leave it out."
        )
    if prepared.has_gaps:
        raise ParameterError(
            f"{option}: PCA needs all values, and missing ones were kept; fill them, or leave "
            f"{option} out."
        )
    return int(asked) if int(asked) < min(n, p) else None


def make_estimator(
    prepared: Prepared,
    cls: type[Reducer],
    X: Any,
    y: Any,
    given: dict[str, Any],
    options: FitOptions,
    log: list[str],
) -> Reducer:
    """The method with its parameters, for data of the shape of X."""
    parameters = {**_defaults(cls, X, y, given, log), **given}
    if prepared.distances:
        _require_distances(cls, options.spelling)
        parameters["metric"] = "precomputed"
    estimator = cls(
        **parameters,
        random_state=options.seed,
        n_jobs=options.n_jobs,
        verbose=options.verbose,
    )
    n, k = X.shape[0], estimator.get_params().get("n_neighbors")
    if isinstance(k, int) and k > n:  # methods that do not take fewer refuse it
        log.append(
            f"all other rows are neighbors of each row, because there are only {n} rows "
            f"(n_neighbors is {k})"
        )
    return estimator


def _defaults(
    cls: type[Reducer], X: Any, y: Any, given: dict[str, Any], log: list[str]
) -> dict[str, Any]:
    """Defaults of a run, lowered to what the data allow."""
    found: dict[str, Any] = {}
    n, wanted = X.shape[0], MAP_DEFAULTS["n_components"]
    if "n_components" not in given:
        n_classes = len(set(y.tolist())) if cls.needs_target else 0
        most = min(wanted, cls.most_components(*X.shape, n_classes))
        if most < wanted:
            log.append(f"one dimension, because {cls.__name__} has no more for these data")
        found["n_components"] = most
    field = cls.parameters().get("perplexity")
    if field is not None and "perplexity" not in given and field.default > (n - 1) / 3 > 0:
        found["perplexity"] = max(1.0, round((n - 1) / 3, 2))
        log.append(f"perplexity {found['perplexity']:g}, because there are only {n} rows")
    return found


def lowered(cls: type[Reducer], n: int, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters as far as n rows allow them, where a map of more rows was asked for."""
    found = dict(given)
    field = cls.parameters().get("perplexity")
    if field is not None and isinstance(found.get("perplexity", field.default), int | float):
        most = max(1.0, round((n - 1) / 3, 2))
        found["perplexity"] = min(found.get("perplexity", field.default), most)
    for name, most in {"n_neighbors": n - 1, "landmarks": n, "n_landmarks": n}.items():
        value = found.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            found[name] = min(value, most)
    return found


def _require_distances(cls: type[Reducer], spelling: Spelling) -> None:
    if cls.accepts_distances:
        return
    able = [
        registry.snake_case(other.__name__)
        for other in registry.all_methods()
        if other.accepts_distances
    ]
    raise ParameterError(
        f"{spelling.option('distances')}: {cls.__name__} works on columns, not on distances; "
        f"these methods take distances: {', '.join(able)}."
    )
