"""One method on prepared rows: reduce the columns if that helps, fit, time it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.chain import Chain
from lowland._base.errors import PYTHON, DataError, ParameterError, Spelling, count
from lowland.neighbors import NeighborGraph
from lowland.tables import Table
from lowland.tables.columns.guessing import is_the_class
from lowland.tables.preparing import Prepared
from lowland.workflow._parameters import MAP_DEFAULTS
from lowland.workflow._stages import Stages, peak_memory
from lowland.workflow.options import RunSettings

if TYPE_CHECKING:
    import polars as pl

    from lowland.workflow.run import MemoryRows
    from lowland.workflow.streaming.rows import ChunkRows

PCA_COLUMNS = 50  # to which neighbor methods reduce wider tables first
NOT_PLACED = np.empty((0, 0))  # the map of rows in chunks until they are placed


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
    n_fitted: int = 0  # rows that the method was fitted to
    look: Mapping[str, Any] = {}  # of its points in all pictures

    @property
    def steps(self) -> list[Any]:
        """The steps of the model; the method is one of them."""
        return list(self.model.steps) if isinstance(self.model, Chain) else [self.model]

    @property
    def sides(self) -> list[float] | None:
        """The sides of a map that is a torus; None if it is not one, or was turned off its axes."""
        sides = self.estimator._torus_sides()
        return None if sides is None or self.is_turned else [float(side) for side in sides]


class Fitted(NamedTuple):
    """A method that was fitted, and its map if all rows are in memory."""

    estimator: Reducer
    Y: np.ndarray | None
    n_rows: int  # that it was fitted to
    stopped: bool
    log: list[str]


# The column that a method learns from.


class Target(NamedTuple):
    """The column that a method learns from; None if it learns from the rows alone."""

    column: str | None = None
    values: Any = None
    parameters: dict[str, Any] = {}  # of the method, as the kind of the values demands
    log: tuple[str, ...] = ()


NO_TARGET = Target()


def learned_target(
    table: Table,
    cls: type[Reducer],
    asked: str | None,
    given: dict[str, Any],
    spelling: Spelling = PYTHON,
) -> Target:
    """What a method with the given parameters learns from.

    A method that needs classes takes the column asked for, or the label that looks like classes. A
    method that can do without learns only from a column that was asked for.
    """
    if cls.needs_target:
        name = asked or first_class(table)
        if name is None:
            raise DataError(
                f"{cls.__name__} learns from classes, and {table.source} has no column of labels; "
                f"name the column of classes with {spelling.option('target')}."
            )
        return Target(name, table.column(name).to_numpy(), log=(f"learned from the column {name}",))
    if not cls.uses_target or asked is None:
        return NO_TARGET
    if given.get("target_weight") == 0:
        line = f"not learned from the column {asked}, because target_weight is 0"
        return Target(log=(line,))
    column = table.column(asked)
    if _holds_numbers(column, given.get("target_metric"), spelling):
        return _numbers(column, given, spelling)
    return Target(asked, column.to_numpy(), log=(_about_classes(column, given, spelling),))


def _holds_numbers(column: pl.Series, metric: str | None, spelling: Spelling) -> bool:
    """Whether a target is measurements, not classes; refused if it contradicts the option."""
    fraction, say = _first_fraction(column), spelling.option
    if metric == "categorical" and fraction is not None:
        raise ParameterError(
            f"{say('target_metric', metric)}: the column {column.name!r} holds {fraction!r}, which "
            f"is not a class; take {say('target_metric', 'euclidean')}, or name a column of "
            f"classes with {say('target')}."
        )
    if metric == "euclidean" and not column.dtype.is_numeric():
        raise ParameterError(
            f"{say('target_metric', metric)}: the column {column.name!r} holds no numbers; take "
            f"{say('target_metric', 'categorical')}, or name a column of numbers with "
            f"{say('target')}."
        )
    return metric == "euclidean" or (metric is None and fraction is not None)


def _first_fraction(column: pl.Series) -> float | None:
    if not column.dtype.is_float():
        return None
    fractions = column.filter(column.is_finite() & (column != column.floor()))
    return None if fractions.is_empty() else float(fractions[0])


def _numbers(column: pl.Series, given: dict[str, Any], spelling: Spelling) -> Target:
    unknown = int(column.is_null().sum())
    if column.dtype.is_float():
        unknown += int(column.is_nan().sum())
    if unknown:
        raise DataError(
            f"{spelling.option('target')}: the column {column.name!r} has no number in "
            f"{count(unknown, 'row')}; leave these rows out, or name another column."
        )
    line = f"learned from the column {column.name}, as numbers"
    if "target_metric" in given:
        return Target(column.name, column.to_numpy(), log=(line,))
    line += ", because it has fractions (target_metric euclidean)"
    return Target(column.name, column.to_numpy(), {"target_metric": "euclidean"}, (line,))


def _about_classes(column: pl.Series, given: dict[str, Any], spelling: Spelling) -> str:
    known = column.drop_nulls()
    if column.dtype.is_numeric():
        known = known.filter(known != -1)
        known = known.drop_nans() if known.dtype.is_float() else known
    line = f"learned from the column {column.name}, as {known.n_unique()} classes"
    if column.dtype.is_numeric() and "target_metric" not in given:
        line += f" ({spelling.option('target_metric', 'euclidean')} takes them as numbers)"
    without = len(column) - len(known)
    return f"{line}; the class of {count(without, 'row')} is unknown" if without else line


def first_class(table: Table) -> str | None:
    """The label that is most likely the classes: one whose values recur, as names of rows do not.

    Labels called class, target, species or the like come first, then others, what looks like an id
    and what has one value.
    """
    ids = {guess.name for guess in table.guesses if guess.role != "class"}
    values = {label.name: label.n_unique() for label in table.labels}
    ranks = {
        name: 3 if n < 2 else 2 if name in ids else 0 if is_the_class(name) else 1
        for name, n in values.items()
    }
    for name in sorted(ranks, key=ranks.__getitem__):
        if values[name] <= max(2, len(table.labels) // 2):
            return name
    return None


class FitPlan(NamedTuple):
    """A method, the parameters that were given, what it learns from, and the options of the run."""

    cls: type[Reducer]
    given: dict[str, Any]
    target: Target
    settings: RunSettings

    def estimator(self, prepared: Prepared, shape: tuple[int, int], log: list[str]) -> Reducer:
        """The method with its parameters, for data of a shape; the log gets what was decided."""
        cls, spelling = self.cls, self.settings.spelling
        parameters = {**self._defaults(shape, log), **self.given}
        if prepared.distances:
            if not cls.accepts_distances:
                able = [
                    registry.snake_case(other.__name__)
                    for other in registry.all_methods()
                    if other.accepts_distances
                ]
                raise ParameterError(
                    f"{spelling.option('distances')}: {cls.__name__} works on columns, not on "
                    f"distances; these methods take distances: {', '.join(able)}."
                )
            parameters["metric"] = "precomputed"
        estimator = cls(**parameters, **self.settings.of_methods)
        n, k = shape[0], estimator.get_params().get("n_neighbors")
        if isinstance(k, int) and k > n:  # methods that do not take fewer refuse it
            log.append(
                f"all other rows are neighbors of each row, because there are only {n} rows "
                f"(n_neighbors is {k})"
            )
        return estimator

    def _defaults(self, shape: tuple[int, int], log: list[str]) -> dict[str, Any]:
        """Defaults of a run, lowered to what the data allow."""
        cls, given = self.cls, self.given
        found: dict[str, Any] = {}
        n, wanted = shape[0], MAP_DEFAULTS["n_components"]
        if "n_components" not in given:
            n_classes = len(set(self.target.values.tolist())) if cls.needs_target else 0
            most = min(wanted, cls.most_components(*shape, n_classes))
            if most < wanted:
                log.append(f"one dimension, because {cls.__name__} has no more for these data")
            found["n_components"] = most
        field = cls.parameters().get("perplexity")
        if field is not None and "perplexity" not in given and field.default > (n - 1) / 3 > 0:
            found["perplexity"] = max(1.0, round((n - 1) / 3, 2))
            log.append(f"perplexity {found['perplexity']:g}, because there are only {n} rows")
        return found

    def pca_columns(self, prepared: Prepared) -> int | None:
        """The number of columns to reduce to before the method; None if that does not help."""
        n, p = prepared.X.shape
        asked, option = self.settings.pca, self.settings.spelling.option("pca")
        if asked == "none" or (asked == "auto" and prepared.distances):
            return None
        if asked == "auto":
            euclidean = self.given.get("metric", "euclidean") == "euclidean"
            helps = self.cls.wants_pca and euclidean and p > PCA_COLUMNS < n
            return PCA_COLUMNS if helps else None
        if prepared.distances:
            raise ParameterError(
                f"{option}: a matrix of distances has no columns to reduce; leave it out."
            )
        if prepared.has_gaps:
            raise ParameterError(f"{option}: PCA needs all values; fill them, or leave it out.")
        return int(asked) if int(asked) < min(n, p) else None


def fit_method(rows: MemoryRows | ChunkRows, plan: FitPlan, stages: Stages) -> Fit:
    """Fit a method to prepared rows, after PCA where the method wants that."""
    prepared = rows.prepared
    log: list[str] = []
    with peak_memory() as peak:
        start = time.perf_counter()
        with stages.timed("preparing"):
            X, pca = rows.ready, None
            n_columns = plan.pca_columns(prepared)
            if n_columns is not None:
                X, pca = rows.reduced(n_columns)
                share = float(pca.explained_variance_ratio_.sum())
                log.append(
                    f"reduced from {pca.n_features_in_} to {n_columns} columns by PCA, which keep "
                    f"{share:.1%} of the variance (leave this out with "
                    f"{plan.settings.spelling.option('pca', 'none')})"
                )
        with stages.timed("fitting"):
            made = rows.fitted(X, plan)
        seconds = time.perf_counter() - start
    steps = [step for step in (prepared.preparation, pca, made.estimator) if step is not None]
    for step in steps:
        if "verbose" in step.parameters():
            step.set_params(verbose=False)  # progress bars are a matter of this run only
    return Fit(
        registry.snake_case(plan.cls.__name__),
        made.estimator,
        steps[0] if len(steps) == 1 else Chain(steps),
        NOT_PLACED if made.Y is None else made.Y,
        seconds,
        peak.n_bytes,
        made.stopped,
        [*log, *made.log, *plan.target.log],
        learned_from=plan.target.column,
        n_fitted=made.n_rows,
        look=plan.settings.look,
    )


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


class Seen(NamedTuple):
    """The rows as a method got them, and the neighbors that it found among them, if any."""

    X: Any
    graph: NeighborGraph | None
    metric: Any
