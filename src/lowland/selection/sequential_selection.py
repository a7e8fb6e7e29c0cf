"""Sequential selection, floating or not (Whitney 1971; Pudil, Novovicova & Kittler 1994)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from lowland._core.constraints import Boolean, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.monitor import Phase
from lowland._core.params import param
from lowland.selection._wrapper import SearchResult, Trials, Wrapper

__all__ = ["SequentialSelection"]


class SequentialSelection(Wrapper):
    """Add (or drop) the one column that leaves the best cross-validated score, again and again.

    Judges columns by what a model makes of them together, at the price of a model per set and fold:
    O(p k) sets for k of p columns. ``floating`` looks back after every step and undoes earlier ones
    while that gives the best set of its size seen so far. The score of the chosen set is
    optimistic, since the folds took part in the choice: judge the result by an outer
    cross-validation with the selection inside.

    Parameters
    ----------
    n_features : int, float or None, default=None
        Columns to keep: how many, or which share. None: stop when nothing improves.
    estimator : estimator or None, default=None
        The model to select for. None: logistic regression for classes, ridge regression for
        numbers, on standardized columns.
    direction : {"forward", "backward"}, default="forward"
        Start with no column and add, or start with all and drop.
    floating : bool, default=False
        Undo earlier steps where that helps.
    tol : float, default=0.0
        If ``n_features`` is None: a column must improve the score by more than this to be added,
        and cost no more than this to be dropped.
    cv : int or splitter, default=5
        Folds (shuffled by ``random_state``, classes in balance), or a splitter of scikit-learn.
    scoring : str, callable or None, default=None
        What is maximized. None: the model's own score.

    Attributes
    ----------
    path_ : Path
        Best set of each size seen: ``sizes``, ``scores``, ``errors``, ``support``.
    scores_ : ndarray of shape (n_features,)
        Score with the column added (or dropped), the last time that was tried.
    support_, ranking_ : ndarrays of shape (n_features,)
        Whether a column is kept; its rank, from 1.
    path_sizes_, path_scores_, path_errors_, path_support_ : ndarrays
        The parts of ``path_``.

    Notes
    -----
    Without floating the sets are nested. Ties go to the first column. Model files keep the result,
    not the model it was selected for.

    References
    ----------
    Whitney (1971), IEEE Trans. Computers C-20; Pudil, Novovicova & Kittler (1994), Floating search
    methods in feature selection, Pattern Recognition Letters 15; Kohavi & John (1997), Artificial
    Intelligence 97.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> chosen = SequentialSelection(2, random_state=0).fit(iris().X, iris().y)
    >>> chosen.get_support(indices=True), chosen.path_.sizes
    (array([0, 3]), array([1, 2]))
    """

    direction: str = param(
        OneOf("forward", "backward"), default="forward", doc="add columns, or drop them"
    )
    floating: bool = param(Boolean(), default=False, doc="undo earlier steps where that helps")
    tol: float = param(
        Real(0, closed="left"),
        default=0.0,
        doc="improvement worth a column, if n_features is None",
    )

    reference = "Whitney (1971); Pudil, Novovicova & Kittler (1994)"

    def _search(self, trials: Trials, wanted: int | None, run: FitContext) -> SearchResult:
        p, forward = trials.p, self.direction == "forward"
        end = wanted if wanted is not None else (p if forward else 1)
        walk = Walk(trials, () if forward else tuple(range(p)))
        with run.monitor.phase("sets of columns") as phase:
            while len(walk.columns) != end:
                step = walk.best_step(forward, phase)
                if wanted is None and not self._is_worth(step, walk, forward):
                    break
                walk.go(step)
                while self.floating and 1 < len(walk.columns) < p:
                    back = walk.best_step(not forward, phase)
                    if back.score <= walk.best_score(len(back.columns)):
                        break
                    walk.go(back)
        if wanted is not None:
            walk.columns = walk.best[wanted]
        sets = [walk.best[size] for size in sorted(walk.best)]
        support = np.array([np.isin(np.arange(p), columns) for columns in sets])
        fold_scores = np.array([trials.fold_scores(columns) for columns in sets])
        n_kept = len(walk.columns)
        return SearchResult(walk.order(forward), n_kept, walk.last_scores(), support, fold_scores)

    def _is_worth(self, step: Step, walk: Walk, forward: bool) -> bool:
        if not walk.columns:
            return True
        now = walk.trials.score(walk.columns)
        return step.score > now + self.tol if forward else step.score >= now - self.tol


class Step(NamedTuple):
    """A set of columns one away from another, and its score."""

    columns: tuple[int, ...]
    score: float
    moved: int


class Walk:
    """Where the search is, the best set of each size so far, and what was tried last."""

    def __init__(self, trials: Trials, start: tuple[int, ...]) -> None:
        self.trials, self.columns = trials, start  # in the order they came
        self.best: dict[int, tuple[int, ...]] = {len(start): start} if start else {}
        self.tried: dict[int, float] = {}  # score of the last set that a column was moved for
        self.dropped: list[int] = []  # in the order they went

    def best_step(self, add: bool, phase: Phase) -> Step:
        """The best set with one column more, or less."""
        moves: Iterable[int] = range(self.trials.p) if add else self.columns
        steps = []
        for j in moves:
            if add and j in self.columns:
                continue
            columns = (*self.columns, j) if add else tuple(c for c in self.columns if c != j)
            steps.append(Step(columns, self.trials.score(columns), j))
            phase.advance()
        self.tried.update({step.moved: step.score for step in steps})
        return max(steps, key=lambda step: (step.score, -step.moved))

    def best_score(self, size: int) -> float:
        """Of the sets of this size seen so far."""
        return self.trials.score(self.best[size]) if size in self.best else -np.inf

    def go(self, step: Step) -> None:
        size = len(step.columns)
        if size < len(self.columns):
            self.dropped = [*self.dropped, step.moved]
        else:
            self.dropped = [j for j in self.dropped if j != step.moved]
        self.columns = step.columns
        if step.score > self.best_score(size):
            self.best[size] = step.columns

    def order(self, forward: bool) -> np.ndarray:
        """All columns, the best first."""
        inside = list(self.columns)
        outside = [j for j in range(self.trials.p) if j not in inside]
        if forward:
            outside.sort(key=lambda j: -self.tried.get(j, -np.inf))
        else:  # the last to go are the best; of those that stay, the ones that would be missed most
            inside.sort(key=lambda j: self.tried.get(j, np.inf))
            went = {j: place for place, j in enumerate(self.dropped)}
            outside.sort(key=lambda j: -went.get(j, -1))
        return np.array([*inside, *outside], dtype=np.int64)

    def last_scores(self) -> np.ndarray:
        """The score when a column was last moved; that of the whole set for one never moved."""
        now = self.trials.score(self.columns)
        return np.array([self.tried.get(j, now) for j in range(self.trials.p)])
