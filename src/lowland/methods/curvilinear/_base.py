"""The base of methods that keep short distances: starts, what a descent leaves, new rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._base.constraints import Array, Function, Integer, Null, OneOf
from lowland._base.context import FitContext
from lowland._base.params import fitted, param
from lowland._base.traits import Reading
from lowland._engines.stress import classical_scaling, initial_map
from lowland._engines.stress.sparse_pairs import distances_to_some
from lowland.methods._bases.distances import DistanceReducer


class CurvilinearReducer(DistanceReducer):
    """A map that keeps short distances, found by a descent over the places of all points.

    A method writes ``_fit``, which starts at ``_start``, and ``_place``, which finds places for new
    rows from their distances to the fitted rows.

    Parameters
    ----------
    init : {"classical", "random"} or array of shape (n, n_components), default="classical"
        The start: classical scaling (PCA for Euclidean rows), random points, or given coordinates.
    max_iter : int, default=200
        Maximum number of steps. 0 keeps the start.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, centered, in the unit of the distances.
    stress_ : float
        The objective of the method at the map.
    loss_history_ : ndarray of shape (n_steps,)
        What the descent lowers, at the start and after each step.
    """

    init: Any = param(OneOf("classical", "random") | Array(), default="classical")
    max_iter: int = param(Integer(0), default=200)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    stress_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")
    n_iter_: int = fitted(type=int)

    reading = Reading(
        axes="The axes have no meaning of their own. Only short distances can be read.",
        distances="Short distances are those of the data. Long distances are given up where they "
        "contradict short ones.",
        gaps="A gap separates rows that are not neighbors, or it is a tear: a closed surface has "
        "to be cut to lie flat. The continuity tells how often neighbors were torn apart.",
        sizes="The size of a small group is its size in the data. Large groups may be stretched.",
        scale="The axes have the unit of the distances.",
    )

    # --- the start ----------------------------------------------------------------------------

    def _start(self, X: Any, run: FitContext, D: np.ndarray | None = None) -> np.ndarray:
        """The start that ``init`` asks for, centered, in the unit of the distances.

        ``D`` are all distances, if there are any; without them a few landmarks are enough.
        """
        n, q = X.shape[0], int(self.n_components)
        if not isinstance(self.init, str):
            return initial_map.given_start(self.init, n, q, 1.0)
        classical = self._classical_start(X, D, run)
        if self.init == "classical":
            return classical
        size = float(np.sqrt(np.mean(np.square(classical)))) or 1.0
        return initial_map.random_start(n, q, run.rng) * (size * np.sqrt(2 * q))

    def _classical_start(self, X: Any, D: np.ndarray | None, run: FitContext) -> np.ndarray:
        n, q = X.shape[0], int(self.n_components)
        if isinstance(self.metric, str) and self.metric == "euclidean":
            return classical_scaling.of_rows(X, q, run).Y
        if D is not None:
            return initial_map.classical_start(D, q, run)
        some = np.sort(run.rng.choice(n, min(n, initial_map.LANDMARKS), replace=False))
        some_D = distances_to_some(X, some, self.metric, self.metric_params, run)
        return initial_map.landmark_map(some_D, some, q, run)

    # --- new rows -----------------------------------------------------------------------------

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        """Places (m, q) of rows with the distances D (m, n) to the fitted rows, one by one."""
        raise NotImplementedError

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        Z = np.empty((X.shape[0], int(self.n_components)))
        for rows, D in self._distances_to_fitted(X, run):
            Z[rows] = self._place(D, run)
        return Z.astype(X.dtype)
