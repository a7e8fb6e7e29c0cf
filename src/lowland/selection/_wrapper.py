"""Wrappers: sets of columns are rated by how well a model predicts from them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from lowland._base.constraints import Function, Having, Integer, Null, Text
from lowland._base.context import FitContext
from lowland._base.errors import DataError, LowlandError, ParameterError, shown, unknown_name
from lowland._base.models.checks import count
from lowland._base.params import fitted, param
from lowland._base.targets import Labels
from lowland._base.threads import limit_blas
from lowland._base.validation import is_sparse
from lowland.selection._base import Selector, holds_classes, read_target
from lowland.selection._filter import constant_columns


class Path(NamedTuple):
    """The sets of columns that a wrapper found, by their size: ``plot(path.sizes, path.scores)``.

    ``errors`` are standard errors over the folds, ``support`` has the columns of each set.
    """

    sizes: np.ndarray
    scores: np.ndarray
    errors: np.ndarray
    support: np.ndarray


class SearchResult(NamedTuple):
    """The result of a search over sets of columns.

    ``order`` has all columns, the best first, ``n_kept`` the number to keep and ``scores`` a score
    per column. ``support`` and ``fold_scores`` have a row per step, by ascending number of columns:
    the columns of the set, and its score on each fold.
    """

    order: np.ndarray
    n_kept: int
    scores: np.ndarray
    support: np.ndarray
    fold_scores: np.ndarray


class Wrapper(Selector):
    """A search over sets of columns: a method writes ``_search``.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Model to select for. None takes logistic regression for classes and ridge regression for
        numbers, on standardized columns.
    cv : int, splitter or None, default=5
        Number of folds (None means 5), or a splitter of scikit-learn. Folds are shuffled by
        ``random_state`` and keep the proportions of the classes.
    scoring : str, function or None, default=None
        Score to maximize: a name or function of scikit-learn. None takes the model's own score.

    Attributes
    ----------
    path_sizes_ : ndarray of shape (n_steps,)
        Sizes of the sets of columns in ``path_``, ascending.
    path_scores_ : ndarray of shape (n_steps,)
        Mean score of each set over the folds.
    path_errors_ : ndarray of shape (n_steps,)
        Standard error of each score, s / sqrt(k) with the sample deviation s over k folds; 0 for a
        single fold.
    path_support_ : ndarray of shape (n_steps, n_features)
        Which columns are in each set.
    """

    estimator: Any = param(
        Null() | Having("an estimator with fit and predict", "fit", "predict", "get_params"),
        default=None,
    )
    cv: Any = param(
        Integer(2) | Null() | Having("an object that splits rows", "split", "get_n_splits"),
        default=5,
    )
    scoring: Any = param(
        Null() | Text("the name of a scorer of scikit-learn") | Function(), default=None
    )

    path_sizes_: np.ndarray = fitted("n_steps", type=int, meaning=count(0, "n_features"))
    path_scores_: np.ndarray = fitted("n_steps")
    path_errors_: np.ndarray = fitted("n_steps")
    path_support_: np.ndarray = fitted("n_steps", "n_features", type=bool)

    needs_target = True

    def _search(self, trials: Trials, wanted: int | None, run: FitContext) -> SearchResult:
        """Rank the columns, none of which is constant; ``wanted`` are to be kept, or None."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        from sklearn.base import is_classifier

        owner = type(self).__name__
        model = self.estimator
        with reported("estimator", model):
            classes = holds_classes(y) if model is None else is_classifier(model)
        target = read_target(y, X.shape[0], "classes" if classes else "numbers", owner=owner)
        if model is None:  # its columns are standardized, so that units do not matter
            model = default_model(classes, is_sparse(X))
        values = target.classes[target.codes] if isinstance(target, Labels) else target
        if isinstance(target, Labels) and self.estimator is None and self.scoring is None:
            values = target.codes  # scikit-learn does not take labels of every type
        constant = constant_columns(X)
        varying = np.flatnonzero(~constant) if not constant.all() else np.arange(X.shape[1])
        wanted, rest = self._number_wanted(X.shape[1]), np.setdiff1d(np.arange(X.shape[1]), varying)
        shown = X[:, varying] if len(rest) else X
        trials = Trials(shown, values, model, self.scoring, self._folds(target, run))
        most = None if wanted is None else min(wanted, len(varying))
        with limit_blas(1):  # the models are small, so threads cost more than they gain
            found = self._search(trials, most, run)
        scores = np.full(X.shape[1], found.scores.min())
        scores[varying] = found.scores
        order = np.concatenate([varying[found.order], rest])
        self._keep(order, found.n_kept if wanted is None else wanted, scores)
        self.path_sizes_ = found.support.sum(axis=1)
        self.path_support_ = np.zeros((len(found.support), X.shape[1]), dtype=bool)
        self.path_support_[:, varying] = found.support
        self.path_scores_, n_folds = found.fold_scores.mean(axis=1), found.fold_scores.shape[1]
        spread = found.fold_scores.std(axis=1, ddof=1 if n_folds > 1 else 0)
        self.path_errors_ = spread / np.sqrt(n_folds)

    def _folds(self, target: Any, run: FitContext) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows to fit and rows to score, per fold; shuffled, with balanced classes."""
        from sklearn.model_selection import KFold, StratifiedKFold

        is_class = isinstance(target, Labels)
        values = target.codes if is_class else target
        if hasattr(self.cv, "split"):
            return checked_folds(self.cv, values)
        rarest = int(np.bincount(values).min()) if is_class else len(values)
        if rarest < 2:
            which = target.classes.tolist()[np.bincount(values).argmin()]
            raise DataError(
                f"{type(self).__name__}: class {which!r} has a single row (n_samples=1), and "
                "cross-validation needs two per class; drop the class or add rows."
            )
        kind = StratifiedKFold if is_class else KFold
        seed = int(run.rng.integers(2**31))
        folds = kind(min(int(self.cv or 5), rarest), shuffle=True, random_state=seed)
        return list(folds.split(np.zeros((len(values), 1)), values))

    @property
    def path_(self) -> Path:
        """The best set of columns of each size, and its score."""
        self._require_fitted()
        return Path(self.path_sizes_, self.path_scores_, self.path_errors_, self.path_support_)

    # --- parameters of the model, named as in scikit-learn: estimator__alpha --------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep`` also those of the model."""
        params = super().get_params(deep)
        if deep and self.estimator is not None and hasattr(self.estimator, "get_params"):
            inner = self.estimator.get_params(deep=True)
            params.update({f"estimator__{name}": value for name, value in inner.items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, ``estimator__...`` for those of the model."""
        prefix = "estimator__"
        own = {name: value for name, value in params.items() if not name.startswith(prefix)}
        inner = {name[len(prefix) :]: params[name] for name in params if name not in own}
        model = own.get("estimator", self.estimator)
        for name in inner:  # all names are checked before any value is set
            if model is None:
                raise ParameterError(
                    f"{type(self).__name__}: estimator is None, so it has no parameter {name!r}; "
                    "give an estimator first."
                )
            known = list(model.get_params(deep=True))
            if name not in known:
                raise ParameterError(unknown_name(f"parameter of {model!r}", name, known))
        super().set_params(**own)
        if inner:
            self.estimator.set_params(**inner)
        return self


class Trials:
    """Cross-validated scores of sets of columns, on the same folds; each set is computed once."""

    def __init__(self, X: Any, y: np.ndarray, model: Any, scoring: Any, folds: list) -> None:
        from sklearn.metrics import check_scoring

        self.X, self.y, self.model, self.p = X, y, model, X.shape[1]
        with reported("scoring", scoring):
            self.scorer = check_scoring(model, scoring=scoring)
        by_column = X.tocsc() if is_sparse(X) else X
        self.folds = [
            (by_column[train], y[train], by_column[test], y[test]) for train, test in folds
        ]
        self._known: dict[tuple[int, ...], np.ndarray] = {}

    def fold_scores(self, columns: Sequence[int]) -> np.ndarray:
        """The score on each fold of the model fitted on the others."""
        key = tuple(sorted(columns))
        if key not in self._known:
            chosen, scores = list(key), []
            for X, y, X_test, y_test in self.folds:
                fitted_model = fitted_copy(self.model, X[:, chosen], y)
                scores.append(self.score_of(fitted_model, X_test[:, chosen], y_test))
            self._known[key] = np.array(scores)
        return self._known[key]

    def score_of(self, model: Any, X: Any, y: np.ndarray) -> float:
        """The score of a fitted model on other rows, a finite number."""
        with reported("scoring", self.scorer):
            score = float(self.scorer(model, X, y))
        if not np.isfinite(score):
            raise ParameterError(
                f"scoring: the score of a set of {X.shape[1]} columns is {shown(score)}; expected "
                "a finite number, of which the largest is best."
            )
        return score

    def score(self, columns: Sequence[int]) -> float:
        """The mean score over the folds."""
        return float(self.fold_scores(columns).mean())


@contextlib.contextmanager
def reported(parameter: str, value: Any) -> Iterator[None]:
    """What the user's model or score raises, in our words and with its parameter."""
    try:
        yield
    except (LowlandError, MemoryError):
        raise
    except Exception as error:
        raise ParameterError(
            f"{parameter}={shown(value)} failed: {type(error).__name__}: {error}"
        ) from error


def fitted_copy(model: Any, X: Any, y: np.ndarray) -> Any:
    """A copy of the model, fitted."""
    from sklearn.base import clone

    with reported("estimator", model):
        return clone(model).fit(X, y)


def checked_folds(cv: Any, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit and rows to score as a splitter gives them, if they are row numbers."""
    rows = np.arange(len(values))
    with reported("cv", cv):
        folds = [(rows[train], rows[test]) for train, test in cv.split(rows[:, None] * 0.0, values)]
    if not folds or not all(len(train) and len(test) for train, test in folds):
        raise ParameterError(
            f"cv={shown(cv)} gives no folds, or a fold without rows; expected some rows to fit and "
            "some to score in each."
        )
    return folds


def default_model(classes: bool, sparse: bool) -> Any:
    """A linear model on standardized columns: fast, and with comparable coefficients."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(max_iter=1000) if classes else Ridge()
    return make_pipeline(StandardScaler(with_mean=not sparse), model)
