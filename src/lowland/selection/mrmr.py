"""mRMR: most relevant to the target, least redundant among themselves (Peng, Long & Ding 2005)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.params import fitted, param
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.targets import Labels, check_labels, check_numbers, join_classes
from lowland._base.validation import check_size, column_label
from lowland._engines.linalg.products import row_blocks
from lowland.selection._base import Selector, holds_numbers, read_target, require_two
from lowland.selection._filter import constant_columns
from lowland.selection._information import of_counts

MOST_STATES = 256


class MRMR(Selector):
    """Add the column that maximizes I(x_j; y) - mean over chosen s of I(x_j; x_s), step by step.

    Of several columns with the same information it keeps one. Numbers are cut into three states:
    below, within and above ``cut`` standard deviations around their mean. Information is computed
    from counts of states. Cost: O(n p k) for k columns.

    Parameters
    ----------
    n_features : int, float or None, default=None
        Number of columns to keep, or their share of all columns. None keeps half of them.
    scheme : {"difference", "quotient"}, default="difference"
        Relevance minus redundancy (MID), or relevance divided by redundancy (MIQ).
    cut : float or None, default=1.0
        Where numbers are cut into states, in standard deviations from their mean. None takes the
        different values of a column as states; there must be few.
    target : {"auto", "classes", "numbers"}, default="auto"
        What y holds. "auto" takes text, booleans and integers that occur repeatedly as classes.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Criterion when the column was chosen, or at the end for the other columns.
    relevance_ : ndarray of shape (n_features,)
        Mutual information I(x_j; y) of each column with the target, in nats.
    ranking_ : ndarray of shape (n_features,)
        Rank of each column, in the order of choice; 1 is the best.

    References
    ----------
    Peng, Long & Ding (2005), Feature selection based on mutual information: criteria of
    max-dependency, max-relevance, and min-redundancy, IEEE Trans. PAMI 27; Ding & Peng (2005),
    J. Bioinformatics and Computational Biology 3.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> MRMR(2).fit(iris().X, iris().y).ranking_
    array([4, 3, 1, 2])
    """

    scheme: str = param(OneOf("difference", "quotient"), default="difference")
    cut: float | None = param(Real(0) | Null(), default=1.0)
    target: str = param(OneOf("auto", "classes", "numbers"), default="auto")

    relevance_: np.ndarray = fitted("n_features")

    reference = "Peng, Long & Ding (2005)"
    needs_target = True
    accepts_sparse = False
    fits_rows = True

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        n, p = X.shape
        wanted = self._number_wanted(p) or max(1, p // 2)
        target = read_target(y, n, self.target, owner="MRMR")
        states = self._states(X)
        is_class = isinstance(target, Labels)
        classes = target.codes if is_class else three_states(target[:, None], self.cut or 1.0)[:, 0]
        relevance = information_with(classes, states)
        self._choose(
            relevance,
            lambda best: information_with(states[:, best], states),
            constant_columns(X),
            wanted,
            run,
        )

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        if self.cut is None:
            raise ParameterError(
                "MRMR: cut=None needs all rows in memory; set cut=1.0, which cuts columns into "
                "three states, or fit a sample, rows.sample(10_000)."
            )
        wanted = self._number_wanted(rows.shape[1]) or max(1, rows.shape[1] // 2)
        found = state_counts(rows, self.cut, self.target, run)
        pairs = found.with_columns.transpose(0, 2, 1, 3)
        self._choose(
            of_counts(found.with_target.astype(np.float64)),
            lambda best: of_counts(pairs[best].astype(np.float64)),
            found.constant,
            wanted,
            run,
        )

    def _choose(
        self,
        relevance: np.ndarray,
        redundancy_with: Callable[[int], np.ndarray],
        constant: np.ndarray,
        wanted: int,
        run: FitContext,
    ) -> None:
        """Set the fitted attributes from the information of columns with the target and others."""
        p, relevance = len(relevance), np.where(constant, 0.0, relevance)
        redundancy, scores = np.zeros(p), relevance.copy()
        left, chosen = np.ones(p, dtype=bool), []
        with run.monitor.phase("columns", total=wanted) as phase:
            while len(chosen) < wanted:
                best = np.lexsort((-scores, constant, ~left))[0]
                chosen.append(int(best))
                left[best] = False
                redundancy += redundancy_with(int(best))
                merit = self._merit(relevance, redundancy / len(chosen))
                scores[left] = np.where(constant, 0.0, merit)[left]
                phase.advance()
        rest = np.lexsort((-scores, constant, ~left))[: p - len(chosen)]
        self.relevance_ = relevance
        self._keep(np.array([*chosen, *rest.tolist()]), wanted, scores)

    def _merit(self, relevance: np.ndarray, redundancy: np.ndarray) -> np.ndarray:
        if self.scheme == "difference":
            return relevance - redundancy
        return relevance / np.maximum(redundancy, 1e-9)

    def _states(self, X: np.ndarray) -> np.ndarray:
        """The columns as codes 0, 1, ..."""
        if self.cut is not None:
            return three_states(X, self.cut)
        states = np.empty(X.shape, dtype=np.int64)
        for j in range(X.shape[1]):
            values, states[:, j] = np.unique(X[:, j], return_inverse=True)
            if len(values) > MOST_STATES:
                label = column_label(getattr(self, "feature_names_in_", None), j)
                raise DataError(
                    f"MRMR: {label} has {len(values)} different values, but cut=None allows only "
                    f"{MOST_STATES}; set cut=1.0, which cuts columns into three states."
                )
        return states


def three_states(X: np.ndarray, cut: float) -> np.ndarray:
    """0 below m - cut s, 2 above m + cut s, 1 between."""
    first = X[:1].astype(np.float64)
    mean = (X - first).mean(axis=0)
    with np.errstate(over="ignore"):  # a cut beyond all values has all rows on one side
        edge = cut * np.sqrt(np.mean(((X - first) - mean) ** 2, axis=0))
    return States(first, mean, edge)(X)


def information_with(codes: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Mutual information of one discrete variable with each column of states."""
    p, A, B = states.shape[1], int(codes.max()) + 1, int(states.max()) + 1
    cells = states + codes[:, None] * B + np.arange(p) * (A * B)
    counts = np.bincount(cells.ravel(), minlength=p * A * B)
    return of_counts(counts.reshape(p, A, B).astype(np.float64))


# Counts of states of all pairs of columns of a table in chunks, for mRMR: three passes.
#
# The first pass gives means, the second deviations, and the third counts how often two columns,
# or a column and the target, are in each pair of states. Counts are whole numbers, so they are
# exact in any order. O(n p^2) time and O(p^2) memory.


STATES = 3
MOST_VALUES = 1 << 16  # of a target, which are collected to tell classes from numbers
AT_A_TIME = 4096  # rows; their counts are exact in float32


class StateCounts(NamedTuple):
    """Which columns are constant; counts (p, C, 3) with the target, (p, 3, p, 3) with columns."""

    constant: np.ndarray
    with_target: np.ndarray
    with_columns: np.ndarray


class TableFacts(NamedTuple):
    """Sums of differences from the first row, ranges, and what the target holds."""

    total: np.ndarray
    low: np.ndarray
    high: np.ndarray
    target_total: float
    is_numbers: bool
    is_whole: bool  # whole numbers, or no numbers: they may be classes
    values: np.ndarray | None  # the different ones; None if there are too many


class States(NamedTuple):
    """Which rows of a block are below, within and above the middle of each column."""

    first: np.ndarray
    mean: np.ndarray
    edge: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        away = (X - self.first) - self.mean
        return 1 + (away > self.edge).astype(np.int64) - (away < -self.edge)


def state_counts(rows: Rows, cut: float, kind: str, run: FitContext) -> StateCounts:
    """The counts of all rows; ``kind`` is what the target holds."""
    n, p = rows.shape
    require_memory(
        8 * 3 * (STATES * p) ** 2,
        task=f"MRMR with counts of {p} x {p} pairs of columns",
        alternative="drop columns first, for example with AnovaF",
    )
    start = rows.without_names().take(np.arange(1))
    first = start.X[0].astype(np.float64)
    first_target = float(start.y[0]) if holds_numbers(start.y) else 0.0
    facts_of = partial(block_facts, first=first, first_target=first_target, kind=kind)
    facts = rows.total(facts_of, merged_facts, run.monitor, "means")
    check_size(float(np.maximum(-facts.low, facts.high).max()))
    classes = _classes(facts, kind, n)
    require_memory(
        8 * 3 * STATES * p * (STATES if classes is None else len(classes)),
        task=f"MRMR with counts of {p} columns and the classes",
        alternative="give a target with fewer classes",
    )
    means = np.append(facts.total, facts.target_total) / n
    target = first_target if facts.is_numbers else None
    spread = partial(squared_deviations, first=first, target=target, means=means)
    edges = cut * np.sqrt(rows.total(spread, np.add, run.monitor, "deviations") / n)
    states = States(first, means[:p], edges[:p])
    of_target = States(np.array([first_target]), means[p:], edges[p:])
    counts = partial(pair_counts, states=states, target=of_target if classes is None else classes)
    found = rows.total(counts, merged_counts, run.monitor, "counts")
    return StateCounts(facts.low == facts.high, *found)


def _classes(facts: TableFacts, kind: str, n: int) -> np.ndarray | None:
    """The classes of the target; None if it holds numbers, as in ``_targets.holds_classes``."""
    values = facts.values
    if kind == "numbers" or (kind == "auto" and not facts.is_whole):
        return None
    seen = MOST_VALUES + 1 if values is None else len(values)  # or more
    if kind == "auto" and facts.is_numbers and seen > max(2, n // 3):
        return None
    if values is None:
        raise ParameterError(
            f"MRMR: target={kind!r}, but y has more than {MOST_VALUES} different values, which are "
            "many classes; set target='numbers', or give another target."
        )
    require_two(values, "MRMR")
    return values


def block_facts(block: Block, first: np.ndarray, first_target: float, kind: str) -> TableFacts:
    """The facts of one block."""
    X, y, n = block.X, block.y, block.n_rows
    total, is_whole, values = 0.0, True, None
    is_numbers = holds_numbers(y)
    if is_numbers or kind == "numbers":
        numbers = check_numbers(y, n, owner="MRMR")
        total = float((numbers - first_target).sum())
        is_whole = np.array_equal(numbers, np.floor(numbers))
    if kind == "classes" or (kind == "auto" and is_whole):
        values = check_labels(y, n, owner="MRMR").classes
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    return TableFacts((X - first).sum(axis=0), low, high, total, is_numbers, is_whole, values)


def merged_facts(a: TableFacts, b: TableFacts) -> TableFacts:
    """The facts of the rows of both."""
    values = None
    if a.is_numbers != b.is_numbers:
        raise DataError("the labels are text in some rows and numbers in others; use one kind.")
    if a.values is not None and b.values is not None:
        new = Labels(b.values, np.arange(len(b.values)))
        values = join_classes(new, a.values, None, owner="MRMR")
    return TableFacts(
        a.total + b.total,
        np.minimum(a.low, b.low),
        np.maximum(a.high, b.high),
        a.target_total + b.target_total,
        a.is_numbers,
        a.is_whole and b.is_whole,
        values if values is not None and len(values) <= MOST_VALUES else None,
    )


def squared_deviations(
    block: Block, first: np.ndarray, target: float | None, means: np.ndarray
) -> np.ndarray:
    """Sums of squared deviations of the columns of one block, and of its target of numbers."""
    squares = np.zeros(len(means))
    squares[:-1] = (((block.X - first) - means[:-1]) ** 2).sum(axis=0)
    if target is not None:
        numbers = check_numbers(block.y, block.n_rows, owner="MRMR")
        squares[-1] = (((numbers - target) - means[-1]) ** 2).sum()
    return squares


def pair_counts(
    block: Block, states: States, target: States | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of pairs of states in one block; ``target`` are the states of numbers, or classes."""
    if isinstance(target, States):
        numbers = check_numbers(block.y, block.n_rows, owner="MRMR")
        C, codes = STATES, target(numbers[:, None])[:, 0]
    else:
        labels = check_labels(block.y, block.n_rows, owner="MRMR")
        C, codes = len(target), np.searchsorted(target, labels.classes)[labels.codes]
    p = block.X.shape[1]
    with_target = np.zeros(p * C * STATES, np.int64)
    with_columns = np.zeros((p * STATES, p * STATES), np.int64)
    for some in row_blocks(block.n_rows, AT_A_TIME):
        found = states(block.X[some])
        cells = found + codes[some, None] * STATES + np.arange(p) * (C * STATES)
        with_target += np.bincount(cells.ravel(), minlength=len(with_target))
        marks = (found[:, :, None] == np.arange(STATES)).astype(np.float32)
        marks = marks.reshape(len(found), p * STATES)
        with_columns += (marks.T @ marks).astype(np.int64)
    return with_target.reshape(p, C, STATES), with_columns.reshape(p, STATES, p, STATES)


def merged_counts(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The counts of the rows of both."""
    return a[0] + b[0], a[1] + b[1]
