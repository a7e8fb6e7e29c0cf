"""How well a model predicts from the columns that a selector keeps, by their number."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer, Seed, Several, check_argument
from lowland._base.errors import DataError
from lowland._base.validation import check_matrix
from lowland.selection._base import read_classes
from lowland.selection._wrapper import default_model, fitted_copy, reported


class SelectionCurve(NamedTuple):
    """Numbers of columns, the mean score with so many, and its standard error over the folds."""

    sizes: np.ndarray
    scores: np.ndarray
    errors: np.ndarray


def selection_curve(
    selector: Any,
    X: Any,
    y: Any,
    *,
    sizes: Any = None,
    estimator: Any = None,
    cv: int = 5,
    random_state: Any = 0,
) -> SelectionCurve:
    """Accuracy on rows that neither the selector nor the model has seen, by number of columns.

    In each fold the selector is fitted to the other folds, the model is fitted to its best k
    columns, and the model is scored on the fold. So a selector that tries many sets of columns
    is not rewarded for what it found by chance, as the scores in its own ``path_`` are.

    Parameters
    ----------
    selector : selector
        A filter or a wrapper of ``lowland``, such as ``MutualInformation()``. It is copied, and
        keeps the largest of ``sizes``.
    X : array or data frame of shape (n_rows, n_columns)
        The table.
    y : array of shape (n_rows,)
        The classes.
    sizes : sequence of int, optional
        Numbers of columns; None takes 1 to 10, or all there are.
    estimator : classifier, optional
        The model; None takes logistic regression on standardized columns.
    cv : int, default=5
        Number of folds, which keep the proportions of the classes.
    random_state : None, int, Generator or RandomState, default=0
        Seed of the folds.

    Returns
    -------
    SelectionCurve

    References
    ----------
    Kohavi & John (1997), Wrappers for feature subset selection, Artificial Intelligence 97;
    Ambroise & McLachlan (2002), Selection bias in gene extraction, PNAS 99.

    Examples
    --------
    >>> from lowland import AnovaF
    >>> from lowland.datasets import wine
    >>> data = wine()
    >>> curve = selection_curve(AnovaF(), data.X, data.y, sizes=[1, 6])
    >>> curve.sizes, bool(curve.scores[1] > curve.scores[0])
    (array([1, 6]), True)
    """
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    X = check_matrix(X, owner="selection_curve", min_rows=2)
    y = read_classes(y, len(X), owner="selection_curve").codes
    check_argument("cv", cv, Integer(2))
    check_argument("random_state", random_state, Seed())
    p = X.shape[1]
    if sizes is None or isinstance(sizes, range):
        sizes = list(range(1, min(p, 10) + 1) if sizes is None else sizes)
    check_argument("sizes", sizes, Integer(1, p) | Several(Integer(1, p)))
    wanted = np.unique(sizes)
    model = default_model(True, False) if estimator is None else estimator
    rarest = int(np.bincount(y).min())
    if rarest < cv:
        raise DataError(f"y: a class has {rarest} rows, fewer than the cv={cv} folds.")
    seed = random_state if isinstance(random_state, int) else None
    folds = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
    scores = np.empty((int(cv), len(wanted)))
    for fold, (train, test) in enumerate(folds.split(X, y)):
        with reported("selector", selector):
            chosen = clone(selector).set_params(n_features=int(wanted[-1]))
            chosen.fit(X[train], y[train])
        for place, size in enumerate(wanted):
            columns = _columns(chosen, int(size))
            fitted = fitted_copy(model, X[train][:, columns], y[train])
            with reported("estimator", model):
                scores[fold, place] = fitted.score(X[test][:, columns], y[test])
    errors = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    return SelectionCurve(wanted, scores.mean(axis=0), errors)


def _columns(selector: Any, size: int) -> np.ndarray:
    """The best set of this size: what a wrapper found, or the columns of the best ranks."""
    found = getattr(selector, "path_", None)
    if found is not None and size in found.sizes:
        return np.flatnonzero(found.support[list(found.sizes).index(size)])
    return np.flatnonzero(selector.ranking_ <= size)
