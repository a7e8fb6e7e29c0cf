"""Recursive feature elimination (Guyon, Weston, Barnhill & Vapnik 2002)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lowland._base.constraints import Integer, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.monitor import Phase
from lowland._base.params import param
from lowland._base.validation import as_array
from lowland.selection._wrapper import SearchResult, Trials, Wrapper, fitted_copy


class RecursiveElimination(Wrapper):
    """Fit a model, drop the columns with the smallest weights sum_c w_cj^2, and repeat.

    Each step needs one model instead of one per column, so it can handle thousands of columns. The
    model must weigh columns (``coef_`` or ``feature_importances_``), and the columns must have one
    scale. The number of columns is chosen by cross-validation with the elimination inside each
    fold. Cost: (p / step) fits per fold.

    Parameters
    ----------
    n_features : int, float or None, default=None
        Number of columns to keep, or their share of all columns. None takes the number with the
        best score, and of several such numbers the smallest.
    step : int or float, default=1
        Number of columns to drop at a time, or their share of all columns.

    Attributes
    ----------
    path_ : Path
        Score by number of columns: ``sizes``, ``scores``, ``errors``, and in ``support`` the
        columns that were left when all rows were used.
    scores_ : ndarray of shape (n_features,)
        Weight of the column in the last model that contained it.
    ranking_ : ndarray of shape (n_features,)
        Rank of each column; 1 is the best. A column that was dropped later ranks better.

    Notes
    -----
    Model files hold the result, not the model that it was selected for. scikit-learn's ``RFE`` and
    ``RFECV`` give all kept columns the rank 1; here all ranks are different.

    References
    ----------
    Guyon, Weston, Barnhill & Vapnik (2002), Gene selection for cancer classification using support
    vector machines, Machine Learning 46.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> chosen = RecursiveElimination(2, random_state=0).fit(iris().X, iris().y)
    >>> chosen.get_support(indices=True), chosen.path_.sizes
    (array([2, 3]), array([1, 2, 3, 4]))
    """

    step: Any = param(Integer(1) | Real(0, 1), default=1)

    reference = "Guyon, Weston, Barnhill & Vapnik (2002)"
    aliases = ("rfe",)

    def _search(self, trials: Trials, wanted: int | None, run: FitContext) -> SearchResult:
        p = trials.p
        drop = self.step if isinstance(self.step, int | np.integer) else max(1, int(self.step * p))
        n_fits = (len(trials.folds) + 1) * -(-p // drop)
        with run.monitor.phase("eliminations", total=n_fits) as phase:
            fold_scores = [
                [
                    trials.score_of(model, X_test[:, columns], y_test)
                    for columns, model, _ in eliminate(trials.model, X, y, drop, phase)
                ]
                for X, y, X_test, y_test in trials.folds
            ]
            order, importance, support = np.empty(p, np.int64), np.zeros(p), []
            for columns, _, weights in eliminate(trials.model, trials.X, trials.y, drop, phase):
                importance[columns] = weights
                # the next model ranks the remaining columns again
                order[: len(columns)] = columns[np.argsort(-weights, kind="stable")]
                support.append(np.isin(np.arange(p), columns))
        by_size, left = np.array(fold_scores).T[::-1], np.array(support)[::-1]
        best = int(left[by_size.mean(axis=1).argmax()].sum())
        return SearchResult(order, best if wanted is None else wanted, importance, left, by_size)


def eliminate(
    model: Any, X: Any, y: np.ndarray, drop: int, phase: Phase
) -> Iterator[tuple[np.ndarray, Any, np.ndarray]]:
    """The remaining columns, the model fitted on them and their weights, down to one column."""
    columns = np.arange(X.shape[1])
    while True:
        fitted_model = fitted_copy(model, X[:, columns], y)
        weights = importances(fitted_model, len(columns))
        phase.advance()
        yield columns, fitted_model, weights
        if len(columns) == 1:
            return
        best = np.argsort(-weights, kind="stable")[: max(1, len(columns) - drop)]
        columns = columns[np.sort(best)]


def importances(model: Any, p: int) -> np.ndarray:
    """The squared weights of the columns, summed over the classes, or squared importances."""
    last = model[-1] if hasattr(model, "steps") else model
    weights = getattr(last, "coef_", getattr(last, "feature_importances_", None))
    estimator = f"estimator={type(last).__name__}"
    if weights is None:
        raise ParameterError(
            f"RecursiveElimination: {estimator} has neither coef_ nor feature_importances_ after "
            "its fit, so it does not weigh columns; use SequentialSelection."
        )
    weights = weights.toarray() if hasattr(weights, "toarray") else as_array(weights, "estimator")
    flaw = ""
    if weights.dtype.kind not in "fiub" or not weights.ndim or weights.shape[-1] != p:
        flaw = f"have shape {weights.shape} and type {weights.dtype}, not a number for each of {p}"
    elif not np.isfinite(weights).all():
        flaw = "are not finite for a set of"
    if flaw:
        raise ParameterError(
            f"RecursiveElimination: the weights of {estimator} {flaw} columns; scale the columns, "
            "or use another model."
        )
    return (weights.reshape(-1, p) ** 2).sum(axis=0)
