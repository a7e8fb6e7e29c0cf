"""Sequential selection, floating or not (Whitney 1971; Pudil, Novovicova & Kittler 1994)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._base.constraints import Boolean, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.monitor import Phase
from lowland._base.params import param
from lowland.selection._wrapper import SearchResult, Trials, Wrapper


class SequentialSelection(Wrapper):
    """Add (or drop) the one column that gives the best cross-validated score, step by step.

    Columns are rated together, by the predictions of a model. The cost is one model per set and
    fold: O(p k) sets for k of p columns. ``floating`` undoes earlier steps as long as that gives
    the best set of its size found so far. The score of the chosen set is optimistic, since the
    folds were used for the choice; rate the result by an outer cross-validation with the selection
    inside.

    Parameters
    ----------
    n_features : int, float or None, default=None
        Number of columns to keep, or their share of all columns. None stops when no step improves
        the score.
    direction : {"forward", "backward"}, default="forward"
        Start without columns and add, or start with all and drop.
    floating : bool, default=False
        Undo earlier steps where that improves the score.
    tol : float, default=0.0
        Change of the score that decides whether to go on if ``n_features`` is None. A column is
        added if the score improves by more, and dropped if the score falls by no more.

    Attributes
    ----------
    path_ : Path
        Best set of each size that was found: ``sizes``, ``scores``, ``errors``, ``support``.
    scores_ : ndarray of shape (n_features,)
        Score with the column added (or dropped) when that was tried last.

    Notes
    -----
    Without floating the sets are nested. Ties go to the first column. Model files hold the result,
    not the model that it was selected for.

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

    direction: str = param(OneOf("forward", "backward"), default="forward")
    floating: bool = param(Boolean(), default=False)
    tol: float = param(Real(0, closed="left"), default=0.0)

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
    """A set of columns that differs from the current one by one column, and its score."""

    columns: tuple[int, ...]
    score: float
    moved: int


class Walk:
    """The state of the search: current set, best set of each size, last score of each column."""

    def __init__(self, trials: Trials, start: tuple[int, ...]) -> None:
        self.trials, self.columns = trials, start  # in the order in which they were added
        self.best: dict[int, tuple[int, ...]] = {len(start): start} if start else {}
        self.tried: dict[int, float] = {}  # last score with the column added or dropped
        self.dropped: list[int] = []  # in the order in which they were dropped

    def best_step(self, add: bool, phase: Phase) -> Step:
        """The best set with one column more, or one less."""
        others = [j for j in range(self.trials.p) if j not in self.columns]
        steps = []
        for j in others if add else self.columns:
            columns = (*self.columns, j) if add else tuple(c for c in self.columns if c != j)
            steps.append(Step(columns, self.trials.score(columns), j))
            phase.advance()
        self.tried.update({step.moved: step.score for step in steps})
        return max(steps, key=lambda step: (step.score, -step.moved))

    def best_score(self, size: int) -> float:
        """The best score of the sets of this size found so far."""
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
        else:  # dropped later is better; of the kept columns, a lower score without it is better
            inside.sort(key=lambda j: self.tried.get(j, np.inf))
            step = {j: number for number, j in enumerate(self.dropped)}
            outside.sort(key=lambda j: -step.get(j, -1))
        return np.array([*inside, *outside], dtype=np.int64)

    def last_scores(self) -> np.ndarray:
        """The last score with each column moved; the final score for a column never moved."""
        now = self.trials.score(self.columns)
        return np.array([self.tried.get(j, now) for j in range(self.trials.p)])
