"""Selection by mutual information with a target (Battiti 1994), from nearest neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.constraints import Boolean, Integer, OneOf, Several
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.params import param
from lowland._base.targets import Labels
from lowland.selection import _information
from lowland.selection._filter import Filter


class MutualInformation(Filter):
    """Keep the columns most informative on a target: I(x; y) = H(x) + H(y) - H(x, y), in nats.

    It sees any relation between one column and the target, not only linear ones; 0 means none. It
    needs some hundred rows, and looks at each column alone. The estimate uses nearest neighbors
    (Ross 2014 for classes, Kraskov et al. 2004 for numbers), without bins. Cost: O(p n log n) for
    classes, O(p n^1.5) for numbers, divided among ``n_jobs`` threads.

    Parameters
    ----------
    threshold : float or None, default=None
        Keep only columns with more information than this, in nats. None sets no limit.
    n_neighbors : int, default=3
        Number of neighbors of the estimate. More give less variance and more bias.
    discrete_features : bool or list of int, default=False
        Indices of the columns that hold categories or few counts; True means all. Their
        information is computed from counts.
    target : {"auto", "classes", "numbers"}, default="auto"
        What y holds. "auto" takes text, booleans and integers that occur repeatedly as classes.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Mutual information of each column with the target. Estimates below 0 are set to 0, and
        constant columns have 0.

    Notes
    -----
    The estimators are those of scikit-learn's ``mutual_info_classif`` and
    ``mutual_info_regression``. As there, noise of 1e-10 standard deviations breaks ties;
    ``random_state`` is its seed.

    References
    ----------
    Battiti (1994), IEEE Trans. Neural Networks 5; Kraskov, Stoegbauer & Grassberger (2004),
    Physical Review E 69; Ross (2014), PLoS ONE 9.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> MutualInformation(2, random_state=0).fit(iris().X, iris().y).get_support(indices=True)
    array([2, 3])
    """

    n_neighbors: int = param(Integer(1), default=3)
    discrete_features: Any = param(Boolean() | Several(Integer(0)), default=False)
    target: str = param(OneOf("auto", "classes", "numbers"), default="auto")

    reference = "Battiti (1994); Kraskov et al. (2004); Ross (2014)"
    needs_target = True
    accepts_sparse = False
    target_kind = "auto"

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        discrete = self._discrete(X.shape[1])
        k, scores = self.n_neighbors, np.empty(X.shape[1])
        if not discrete.all():
            numbers = X if not discrete.any() else X[:, ~discrete]
            if isinstance(target, Labels):
                estimate, y = _information.with_classes, target.codes
            else:
                estimate, y = _information.with_numbers, target
            scores[~discrete] = estimate(numbers, y, k, run)
        for column in np.flatnonzero(discrete):
            _, codes = np.unique(X[:, column], return_inverse=True)
            if isinstance(target, Labels):
                joint = np.zeros((codes.max() + 1, len(target.classes)))
                np.add.at(joint, (codes, target.codes), 1.0)
                scores[column] = _information.of_counts(joint)
            else:  # information is symmetric, so the column can be the classes
                [scores[column]] = _information.with_classes(target[:, None], codes, k, run)
        return scores

    def _discrete(self, p: int) -> np.ndarray:
        if isinstance(self.discrete_features, bool | np.bool_):
            return np.full(p, bool(self.discrete_features))
        columns = np.asarray(self.discrete_features)
        if columns.max() >= p:
            raise ParameterError(
                f"MutualInformation: discrete_features has column {columns.max()}, but X has {p} "
                "columns, numbered from 0."
            )
        return np.isin(np.arange(p), columns)
