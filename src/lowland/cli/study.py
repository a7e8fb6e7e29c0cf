"""One method on prepared rows: the map, how long it took, and how far it can be believed."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland.cli.interrupt import stopped_by_interrupt
from lowland.cli.method_options import MAP_DEFAULTS
from lowland.cli.peak import peak_memory
from lowland.cli.preparing import Ready

if TYPE_CHECKING:
    import numpy as np

    from lowland._core.base import Reducer
    from lowland.io import Table
    from lowland.metrics._table import Quality

__all__ = [
    "Measures",
    "Settings",
    "Study",
    "first_class",
    "first_columns",
    "measure",
    "run",
    "target_values",
]

NEIGHBORHOOD = 10
FEWEST_ROWS = 4  # of which a neighborhood can be told from the rest
PCA_COLUMNS = 50  # to which neighbor methods reduce wider tables first


class Settings(NamedTuple):
    """What concerns the run, not the method."""

    seed: int = 0
    jobs: int | None = None
    verbose: bool = False
    pca: str = "auto"


class Study(NamedTuple):
    """What one method made of the rows."""

    name: str
    estimator: Reducer
    model: Any  # the estimator, or a chain that ends with it
    Y: np.ndarray
    seconds: float
    peak_bytes: int | None
    stopped: bool
    log: list[str]


class Measures(NamedTuple):
    """Quality of a map, and of each of its points."""

    table: Quality | None
    per_point: dict[str, np.ndarray]
    seconds: float


def run(
    ready: Ready, cls: type[Reducer], given: dict[str, Any], y: Any, settings: Settings
) -> Study:
    """Fit a method to prepared rows, reduced by PCA first where that is the custom."""
    from lowland._core import registry
    from lowland._core.chain import Chain

    log: list[str] = []
    common = {"random_state": settings.seed, "n_jobs": settings.jobs, "verbose": settings.verbose}
    with peak_memory() as peak:
        start = time.perf_counter()
        X, first = first_columns(ready, cls, given, settings, log)
        parameters = {**_defaults(cls, X, y, given, log), **given, **common}
        if ready.distances:
            parameters = _with_distances(cls, parameters)
        estimator = cls(**parameters)
        with stopped_by_interrupt(estimator) as stop:
            Y = estimator.fit_transform(X, y)
        seconds = time.perf_counter() - start
    steps = [step for step in (ready.preparation, first, estimator) if step is not None]
    for step in steps:
        if "verbose" in step.parameters():
            step.set_params(verbose=False)  # a model does not remember who watched it being made
    return Study(
        registry.snake_case(cls.__name__),
        estimator,
        steps[0] if len(steps) == 1 else Chain(steps),
        Y,
        seconds,
        peak.n_bytes,
        stop.asked,
        log,
    )


def first_columns(
    ready: Ready, cls: type[Reducer], given: dict[str, Any], settings: Settings, log: list[str]
) -> tuple[Any, Any]:
    """The rows in fewer columns, and the PCA that made them; or the rows themselves and None."""
    from lowland.linear.pca import PCA

    n_columns = _pca_columns(ready, cls, given, settings.pca)
    if n_columns is None:
        return ready.X, None
    pca = PCA(n_columns, random_state=settings.seed, n_jobs=settings.jobs)
    X = pca.fit_transform(ready.X)
    share = float(pca.explained_variance_ratio_.sum())
    log.append(
        f"reduced from {ready.X.shape[1]} to {n_columns} columns by PCA, which keep {share:.1%} of "
        "the variance (leave this out with --pca none)"
    )
    return X, pca


def _pca_columns(ready: Ready, cls: type[Reducer], given: dict[str, Any], asked: str) -> int | None:
    from lowland._core.errors import ParameterError

    n, p = ready.X.shape
    if asked == "none" or (asked == "auto" and ready.distances):
        return None
    if asked == "auto":
        by_neighbors = cls.family() == "neighbor"
        usual = given.get("metric", "euclidean") == "euclidean"
        return PCA_COLUMNS if by_neighbors and usual and p > PCA_COLUMNS < n else None
    if not asked.isdecimal() or int(asked) < 1:
        raise ParameterError(f"--pca: {asked!r} is not allowed; expected a number, auto or none.")
    if ready.distances:
        raise ParameterError("--pca: a matrix of distances has no columns to reduce; leave it out.")
    return int(asked) if int(asked) < min(n, p) else None


def _defaults(
    cls: type[Reducer], X: Any, y: Any, given: dict[str, Any], log: list[str]
) -> dict[str, Any]:
    """The command line's own defaults, lowered to what the data allow."""
    found: dict[str, Any] = {}
    n, wanted = X.shape[0], MAP_DEFAULTS["n_components"]
    if "n_components" not in given:
        most = max(1, len(set(y.tolist())) - 1) if cls.needs_target else wanted
        if cls.family() == "linear":
            most = min(most, *X.shape)
        if most < wanted:
            log.append(f"one dimension, because {cls.__name__} has no more for these data")
        found["n_components"] = min(wanted, most)
    field = cls.parameters().get("perplexity")
    if field is not None and "perplexity" not in given and field.default > (n - 1) / 3 > 0:
        found["perplexity"] = max(1.0, round((n - 1) / 3, 2))
        log.append(f"perplexity {found['perplexity']:g}, because there are only {n} rows")
    return found


def _with_distances(cls: type[Reducer], parameters: dict[str, Any]) -> dict[str, Any]:
    from lowland._core import registry
    from lowland._core.errors import ParameterError

    if not _takes_distances(cls):
        able = [
            registry.snake_case(other.__name__)
            for other in registry.all_methods()
            if _takes_distances(other)
        ]
        raise ParameterError(
            f"--distances: {cls.__name__} works on columns, not on distances; "
            f"these methods take distances: {', '.join(able)}."
        )
    return {**parameters, "metric": "precomputed"}


def _takes_distances(cls: type[Reducer]) -> bool:
    from lowland._core.errors import ParameterError

    try:
        cls(metric="precomputed").check_params()
    except (TypeError, ParameterError):
        return False
    return True


def target_values(ready: Ready, cls: type[Reducer], target: str | None) -> Any:
    """The labels that a supervised method learns from; None for the others."""
    from lowland._core.errors import DataError

    if not cls.needs_target:
        return None
    table = ready.table
    target = target or first_class(table)
    if target is None:
        raise DataError(
            f"{cls.__name__} learns from classes, and {table.source} has no column of labels; "
            "name the column of classes with --target."
        )
    return table.column(target).to_numpy()


def measure(ready: Ready, Y: np.ndarray, label: str | None, jobs: int | None) -> Measures:
    """The quality of a map against the prepared rows, and of its points."""
    from lowland._core.errors import DataError
    from lowland.metrics import Comparison, point_continuity, point_trust, quality

    start = time.perf_counter()
    if len(Y) < FEWEST_ROWS:
        return Measures(None, {}, 0.0)
    try:
        both = Comparison(ready.X, Y, metric=ready.metric, n_jobs=jobs)
        table = quality(both, labels=classes_in(ready, label), n_neighbors=NEIGHBORHOOD)
    except DataError as error:  # the map is made, whatever can be said about it
        warnings.warn(f"the map was not measured: {error}", stacklevel=2)
        return Measures(None, {}, 0.0)
    k = table.n_neighbors
    per_point = {
        "trustworthiness": point_trust(both, None, k),
        "continuity": point_continuity(both, None, k),
    }
    return Measures(table, per_point, time.perf_counter() - start)


def first_class(table: Table) -> str | None:
    """The first label whose values recur, as those of classes do; a name of rows does not."""
    for name in table.labels.columns:
        if table.labels[name].n_unique() <= max(2, len(table.labels) // 2):
            return name
    return None


def classes_in(ready: Ready, label: str | None) -> np.ndarray | None:
    """The label column as classes, if it looks like some: few values, none missing."""
    if label is None:
        return None
    column = ready.table.column(label)
    few = 2 <= column.n_unique() <= min(100, len(column) // 2)
    if column.has_nulls() or not few or column.dtype.is_float():
        return None
    return column.to_numpy()
