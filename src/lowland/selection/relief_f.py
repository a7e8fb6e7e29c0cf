"""ReliefF (Kira & Rendell 1992; Kononenko 1994)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.constraints import Integer, Null
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.params import param
from lowland._engines.linalg.blocks import row_blocks
from lowland.selection._class_neighbors import nearest_by_class
from lowland.selection._filter import Filter

__all__ = ["ReliefF"]

GATHERED = 1 << 21  # differences held at a time


class ReliefF(Filter):
    """Keep the columns in which near rows of other classes differ, and near rows of one do not.

    W_j = mean over rows i of  sum_{c != c_i} p_c / (1 - p_{c_i}) <|x_ij - m_j|> - <|x_ij - h_j|>
    with h the k nearest rows of the same class (hits), m the k nearest of class c (misses), columns
    in units of their range and <> the mean. Since neighbors are found in all columns, it sees
    columns that matter only together, which no other filter here does; many useless columns blur
    the neighbors. Cost: O(n^2 p), or O(m n p) for a sample.

    Parameters
    ----------
    n_features : int, float or None, default=None
        Columns to keep: how many, or which share. None: half of them, or all above ``threshold``.
    threshold : float or None, default=None
        Keep only columns with a larger weight; 0 is natural, useless columns are near it.
    n_neighbors : int, default=10
        Hits, and misses per class, for each row; fewer where a class has fewer.
    n_samples : int or None, default=None
        Rows drawn without replacement to look around from; None: all.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Weights between -1 and 1; 0 for a column that does not vary.
    support_, ranking_ : ndarrays of shape (n_features,)
        Whether a column is kept; its rank, from 1.

    Notes
    -----
    Neighbors are nearest by the sum of the same differences (Robnik-Sikonja & Kononenko 2003).
    A row that is alone in its class has no hits.

    References
    ----------
    Kira & Rendell (1992), Proc. 9th Int. Workshop on Machine Learning; Kononenko (1994), ECML-94;
    Robnik-Sikonja & Kononenko (2003), Machine Learning 53.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> ReliefF(2).fit(iris().X, iris().y).get_support(indices=True)
    array([2, 3])
    """

    n_neighbors: int = param(Integer(1), default=10, doc="hits, and misses per class, of a row")
    n_samples: int | None = param(
        Integer(1) | Null(),
        default=None,
        doc="rows to look around from, at random; None: all",
    )

    reference = "Kira & Rendell (1992); Kononenko (1994)"
    needs_target = True
    accepts_sparse = False
    target_kind = "classes"

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        codes, n = target.codes, X.shape[0]
        low = X.min(axis=0)
        spread = X.max(axis=0) / 2 - low / 2  # the range itself may overflow
        U = ((X / 2 - low / 2) / np.where(spread > 0, spread, 1)).astype(X.dtype)
        share = np.bincount(codes) / n
        rows = self._rows(n, run)
        weights = np.zeros(X.shape[1])
        k, threads = self.n_neighbors, run.threads
        for near in nearest_by_class(U, codes, rows, k, threads, run.monitor):
            own = codes[near.rows] == near.code
            gain = np.where(own, -1.0, share[near.code] / (1 - share[codes[near.rows]]))
            weights += differences(U, near.rows, near.neighbors, gain)
        return weights / len(rows)

    def _rows(self, n: int, run: FitContext) -> np.ndarray:
        if self.n_samples is None:
            return np.arange(n)
        if self.n_samples > n:
            raise ParameterError(
                f"ReliefF: n_samples={self.n_samples} is more than the {n} rows there are; None "
                "takes all."
            )
        return np.sort(run.rng.choice(n, self.n_samples, replace=False))


def differences(
    U: np.ndarray, rows: np.ndarray, neighbors: np.ndarray, gain: np.ndarray
) -> np.ndarray:
    """sum_i gain_i <|u_i - u_j|> over the neighbors j of row i, by column, in float64."""
    total = np.zeros(U.shape[1])
    k = neighbors.shape[1]
    step = max(1, GATHERED // (k * U.shape[1]))
    for part in row_blocks(len(rows), step):
        gaps = U[neighbors[part]]
        gaps -= U[rows[part], None]
        np.abs(gaps, out=gaps)
        sums = gaps.sum(axis=1, dtype=np.float64)
        total += np.einsum("i,ij->j", gain[part] / k, sums)
    return total
