"""mRMR: most relevant to the target, least redundant among themselves (Peng, Long & Ding 2005)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._base.constraints import Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.params import fitted, param
from lowland._base.rows.table import Rows
from lowland._base.targets import Labels
from lowland._base.validation import column_label
from lowland.selection._base import Selector, read_target
from lowland.selection._chunk_sums import state_counts
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
    away = X - first
    away -= away.mean(axis=0)
    with np.errstate(over="ignore"):  # a cut beyond all values has all rows on one side
        edge = cut * np.sqrt(np.mean(away**2, axis=0))
    return 1 + (away > edge).astype(np.int64) - (away < -edge)


def information_with(codes: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Mutual information of one discrete variable with each column of states."""
    p, A, B = states.shape[1], int(codes.max()) + 1, int(states.max()) + 1
    cells = states + codes[:, None] * B + np.arange(p) * (A * B)
    counts = np.bincount(cells.ravel(), minlength=p * A * B)
    return of_counts(counts.reshape(p, A, B).astype(np.float64))
