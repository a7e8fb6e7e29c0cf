"""Recursive feature elimination (Guyon, Weston, Barnhill & Vapnik 2002)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lowland._core.constraints import Integer, Real
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.monitor import Phase
from lowland._core.params import param
from lowland.selection._wrapper import SearchResult, Trials, Wrapper

__all__ = ["RecursiveElimination"]


class RecursiveElimination(Wrapper):
    """Fit a model, drop the columns that matter least to it (sum_c w_cj^2 smallest), and again.

    One model per step instead of one per column, so it takes thousands of columns; it needs a model
    that weighs columns (``coef_`` or ``feature_importances_``), fitted on columns of one scale.
    How many to keep is found by cross-validation with the elimination inside each fold, as it must
    be. Cost: (p / step) fits per fold.

    Parameters
    ----------
    n_features : int, float or None, default=None
        Columns to keep: how many, or which share. None: as many as had the best score, the fewest
        of several.
    estimator : estimator or None, default=None
        The model to select for. None: logistic regression for classes, ridge regression for
        numbers, on standardized columns.
    step : int or float, default=1
        Columns to drop at a time, or the share of all.
    cv : int or splitter, default=5
        Folds (shuffled by ``random_state``, classes in balance), or a splitter of scikit-learn.
    scoring : str, callable or None, default=None
        What is maximized. None: the model's own score.

    Attributes
    ----------
    path_ : Path
        For each number of columns on the way, ``sizes``, the score (``scores``, ``errors``) and
        which columns of the whole data were left (``support``).
    scores_ : ndarray of shape (n_features,)
        What the last model with the column in it made of it.
    support_, ranking_ : ndarrays of shape (n_features,)
        Whether a column is kept; its rank, from 1: the later dropped, the better.
    path_sizes_, path_scores_, path_errors_, path_support_ : ndarrays
        The parts of ``path_``.

    Notes
    -----
    Model files keep the result, not the model it was selected for. scikit-learn's ``RFE`` and
    ``RFECV`` give all kept columns the rank 1; here ranks are all different.

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

    step: Any = param(
        Integer(1) | Real(0, 1), default=1, doc="columns to drop at a time, or the share of all"
    )

    reference = "Guyon, Weston, Barnhill & Vapnik (2002)"

    def _search(self, trials: Trials, wanted: int | None, run: FitContext) -> SearchResult:
        p = trials.p
        drop = self.step if isinstance(self.step, int | np.integer) else max(1, int(self.step * p))
        n_fits = (len(trials.folds) + 1) * -(-p // drop)
        with run.monitor.phase("eliminations", total=n_fits) as phase:
            fold_scores = [
                [
                    float(trials.scorer(model, X_test[:, columns], y_test))
                    for columns, model, _ in eliminate(trials.model, X, y, drop, phase)
                ]
                for X, y, X_test, y_test in trials.folds
            ]
            order, importance, support = np.empty(p, np.int64), np.zeros(p), []
            for columns, _, weights in eliminate(trials.model, trials.X, trials.y, drop, phase):
                importance[columns] = weights
                # those that stay are ranked anew by the next model
                order[: len(columns)] = columns[np.argsort(-weights, kind="stable")]
                support.append(np.isin(np.arange(p), columns))
        by_size, left = np.array(fold_scores).T[::-1], np.array(support)[::-1]
        best = int(left[by_size.mean(axis=1).argmax()].sum())
        return SearchResult(order, best if wanted is None else wanted, importance, left, by_size)


def eliminate(
    model: Any, X: Any, y: np.ndarray, drop: int, phase: Phase
) -> Iterator[tuple[np.ndarray, Any, np.ndarray]]:
    """Columns left, the model fitted on them and their weights, until one column is left."""
    from sklearn.base import clone

    columns = np.arange(X.shape[1])
    while True:
        fitted_model = clone(model).fit(X[:, columns], y)
        weights = importances(fitted_model)
        phase.advance()
        yield columns, fitted_model, weights
        if len(columns) == 1:
            return
        best = np.argsort(-weights, kind="stable")[: max(1, len(columns) - drop)]
        columns = columns[np.sort(best)]


def importances(model: Any) -> np.ndarray:
    """Squared weights summed over the classes, or squared importances."""
    last = model[-1] if hasattr(model, "steps") else model
    weights = getattr(last, "coef_", getattr(last, "feature_importances_", None))
    if weights is None:
        raise ParameterError(
            f"RecursiveElimination: estimator={type(last).__name__} has neither coef_ nor "
            "feature_importances_ once fitted, so it weighs no columns; use SequentialSelection."
        )
    weights = weights.toarray() if hasattr(weights, "toarray") else np.asarray(weights)
    return (weights.reshape(-1, weights.shape[-1]) ** 2).sum(axis=0)
