"""ReliefF (Kira & Rendell 1992; Kononenko 1994)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.constraints import Integer, Null
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.params import param
from lowland._engines.distances.filter_space import panel_width
from lowland._engines.linalg.class_moments import members
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.block_search import nearest_in_rows
from lowland.selection._filter import Filter

# The nearest rows of every class in the Manhattan distance.


BLOCK_BYTES = 2**24  # distances that are computed at a time


class NearInClass(NamedTuple):
    """For each of ``rows``, its nearest rows in class ``code``, without the row itself."""

    rows: np.ndarray
    code: int
    neighbors: np.ndarray


def nearest_by_class(
    X: np.ndarray, codes: np.ndarray, rows: np.ndarray, k: int, run: FitContext
) -> Iterator[NearInClass]:
    """The k nearest rows of each class (all if it has fewer), for blocks of rows.

    A row is not its own neighbor, so it may have one neighbor less in its own class; rows of the
    class are therefore yielded separately. Ties go to the smaller index. O(m n p).
    """
    n, p = X.shape
    groups = members(codes, int(codes.max()) + 1)
    order = np.concatenate(groups)  # the rows of a class are adjacent
    ends = np.cumsum([len(group) for group in groups])
    width = panel_width(X.dtype)
    shape = (-(-n // width), p, width)
    require_memory(
        int(np.prod(shape)) * 2 * X.itemsize,
        task=f"a packed copy of {n} rows",
        alternative="use fewer rows, or fewer columns",
    )
    panels = np.empty(shape, X.dtype)
    _native.pack_points(np.ascontiguousarray(X[order]), panels, run.threads)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    blocks = list(row_blocks(len(rows), rows_within(8 * n, BLOCK_BYTES)))
    with run.monitor.phase("neighbors of each class", total=len(blocks)) as phase:
        for some in blocks:
            block = rows[some]
            D = np.empty((len(block), n))
            _native.manhattan_rows(panels, np.ascontiguousarray(X[block]), D, run.threads)
            D[np.arange(len(block)), place[block]] = np.inf
            for code, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
                for own in (False, True):
                    chosen = np.flatnonzero((codes[block] == code) == own)
                    most = min(k, end - begin - own)
                    if len(chosen) and most > 0:
                        near, _ = nearest_in_rows(D[chosen, begin:end], most)
                        yield NearInClass(block[chosen], code, order[begin:end][near])
            phase.advance()


DIFFERENCES = 2**21  # held at a time


class ReliefF(Filter):
    """Keep the columns in which near rows of other classes differ, and near rows of one do not.

    W_j = mean over rows i of  sum_{c != c_i} p_c / (1 - p_{c_i}) <|x_ij - m_j|> - <|x_ij - h_j|>
    with h the k nearest rows of the same class (hits), m the k nearest of class c (misses), columns
    in units of their range and <> the mean. Neighbors are found in all columns, so it sees columns
    that matter only together, as no other filter here does. Many useless columns make the neighbors
    random. Cost: O(n^2 p), or O(m n p) for a sample.

    Parameters
    ----------
    threshold : float or None, default=None
        Keep only columns with a weight above this value. None sets no limit. Useless columns have
        weights near 0.
    n_neighbors : int, default=10
        Number of hits, and of misses per class, of each row. A smaller class gives all its rows.
    n_samples : int or None, default=None
        Number of rows, drawn without replacement, whose neighbors are used. None takes all rows.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Weight of each column, between -1 and 1; 0 for a constant column.

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

    n_neighbors: int = param(Integer(1), default=10)
    n_samples: int | None = param(Integer(1) | Null(), default=None)

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
        rows = np.arange(n)
        if self.n_samples is not None:
            if self.n_samples > n:
                raise ParameterError(
                    f"ReliefF: n_samples={self.n_samples} is more than the {n} rows of X; None "
                    "takes all rows."
                )
            rows = np.sort(run.rng.choice(n, self.n_samples, replace=False))
        weights = np.zeros(X.shape[1])
        for near in nearest_by_class(U, codes, rows, self.n_neighbors, run):
            own = codes[near.rows] == near.code
            gain = np.where(own, -1.0, share[near.code] / (1 - share[codes[near.rows]]))
            weights += differences(U, near.rows, near.neighbors, gain)
        return weights / len(rows)


def differences(
    U: np.ndarray, rows: np.ndarray, neighbors: np.ndarray, gain: np.ndarray
) -> np.ndarray:
    """sum_i gain_i <|u_i - u_j|> over the neighbors j of row i, by column, in float64."""
    total = np.zeros(U.shape[1])
    k = neighbors.shape[1]
    for part in row_blocks(len(rows), rows_within(k * U.shape[1], DIFFERENCES)):
        gaps = U[neighbors[part]]
        gaps -= U[rows[part], None]
        np.abs(gaps, out=gaps)
        sums = gaps.sum(axis=1, dtype=np.float64)
        total += np.einsum("i,ij->j", gain[part] / k, sums)
    return total
