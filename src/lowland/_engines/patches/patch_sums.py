"""Sums of small matrices over patches, which are sets of rows close to each other.

The matrix of each local method is M = sum_i S_i B_i S_i^T: B_i is the quadratic form of patch i in
the coordinates of its members, and S_i selects the members among all rows.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.traits import Estimate
from lowland._engines.graphs.components import Edges
from lowland._engines.linalg.eigen import all_eigenpairs

# The points of patches: rows with coordinates, or rows known by their distances.
#
# A local method needs only the inner products of differences within a patch, and these follow
# from distances as well: with x as the origin (x_j - x).(x_l - x) = (d_j^2 + d_l^2 - d_jl^2) / 2.
# So both kinds of points return differences with these inner products, through the same
# interface.


class PatchRows:
    """Points with coordinates, (n, p)."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, numbers: np.ndarray) -> PatchRows:
        """Some of the points, or this object if it is all of them."""
        return self if len(numbers) == len(self) else PatchRows(self.rows[numbers])

    def width(self, k: int) -> int:
        """Coordinates of a difference in a patch of k points."""
        return int(self.rows.shape[1])

    def searched(self, X: np.ndarray) -> np.ndarray:
        """Points or new rows in the form that the neighbor search takes."""
        return X

    def differences(
        self, ids: np.ndarray, centers: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """x_j - center for each patch ``ids`` (m, k), in units of its largest, and that unit.

        ``centers`` are rows (m, p), else the first point of each patch.
        """
        centers = self.rows[ids[:, 0]] if centers is None else centers
        Z = self.rows[ids].astype(np.float64) - centers.astype(np.float64)[:, None, :]
        unit = np.abs(Z).max(axis=(1, 2))
        unit[unit == 0] = 1.0
        Z /= unit[:, None, None]
        return Z, unit

    def equal_point(self, X: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """The number of the point among the nearest ``ids`` that equals each row of X, or -1."""
        same = (self.rows[ids] == X[:, None, :]).all(axis=2)
        which = np.take_along_axis(ids, same.argmax(axis=1)[:, None], axis=1)[:, 0]
        return np.where(same.any(axis=1), which, -1)


class PatchDistances:
    """Points known by their distances to all fitted rows, (n, number of fitted rows).

    ``columns`` says which of the fitted rows the points themselves are. New rows and centers are
    given in the same way, by their distances to all fitted rows.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray) -> None:
        self.rows, self.columns = rows, columns

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, numbers: np.ndarray) -> PatchDistances:
        """Some of the points, or this object if it is all of them."""
        if len(numbers) == len(self):
            return self
        return PatchDistances(self.rows[numbers], self.columns[numbers])

    def width(self, k: int) -> int:
        """Coordinates of a difference in a patch of k points."""
        return k

    def searched(self, X: np.ndarray) -> np.ndarray:
        """Points or new rows in the form of the neighbor search: distances to the points."""
        return X if len(self.columns) == X.shape[1] else X[:, self.columns]

    def differences(
        self, ids: np.ndarray, centers: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of x_j - center for each patch ``ids`` (m, k), in units of its largest
        distance, and that unit.

        Z Z^T = C_+, the positive part of C_jl = (d_j^2 + d_l^2 - d_jl^2) / 2, by its eigenvectors,
        where d_j is the distance of x_j to the center. Distances in a Euclidean space have no
        negative part; eigenvalues below rounding count as 0. O(k^3) each.
        """
        near, k = self.columns[ids], ids.shape[1]
        if centers is None:
            away = self.rows[ids[:, :1], near].astype(np.float64)
        else:
            away = np.take_along_axis(centers, near, axis=1).astype(np.float64)
        among = self.rows[ids[:, :, None], near[:, None, :]].astype(np.float64)
        unit = np.maximum(away.max(axis=1), among.max(axis=(1, 2)))
        unit[unit == 0] = 1.0
        away, among = (away / unit[:, None]) ** 2, (among / unit[:, None, None]) ** 2
        squares, axes = all_eigenpairs((away[:, :, None] + away[:, None, :] - among) / 2)
        rounding = k * np.finfo(self.rows.dtype).eps * np.abs(squares).max(axis=1, keepdims=True)
        lengths = np.sqrt(np.where(squares > rounding, squares, 0.0))
        return axes * lengths[:, None, :], unit

    def equal_point(self, X: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """The number of the point at distance 0 from each row of X, else -1.

        Of several at distance 0 the one with the most similar distances. A row with the same
        distances as its nearest point equals that point, even if rounding made the distance > 0.
        """
        at_zero = self.searched(X) == 0
        found = np.where(at_zero.any(axis=1), at_zero.argmax(axis=1), -1)
        for i in np.flatnonzero(at_zero.sum(axis=1) > 1):
            points = np.flatnonzero(at_zero[i])
            found[i] = points[np.abs(self.rows[points] - X[i]).max(axis=1).argmin()]
        nearest = ids[:, 0]
        same = (found < 0) & (self.rows[nearest] == X).all(axis=1)
        return np.where(same, nearest, found)


Points = PatchRows | PatchDistances


def sum_of_patches(
    members: np.ndarray, factors: np.ndarray, *, complement: bool = False, n: int, threads: int
) -> scipy.sparse.csr_matrix:
    """M = sum_i S_i F_i F_i^T S_i^T, or with I - F_i F_i^T if ``complement``.

    ``members`` (m, s) numbers the rows of each patch, ``factors`` is (m, s, w). The n x n result is
    symmetric to the last bit, sorted, and the same for any number of threads. O(m s^2 w).
    """
    members = np.ascontiguousarray(members, dtype=np.int32)
    m, size = members.shape
    places = scipy.sparse.csr_matrix(
        (np.arange(m * size), members.ravel(), np.arange(m + 1) * size), shape=(m, n)
    ).tocsc()  # by row: the positions where it occurs, ascending
    starts, entries = places.indptr.astype(np.int64), places.data.astype(np.int64)
    counts = np.empty(n, np.int64)
    _native.patch_counts(members, starts, entries, counts, threads)
    out_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    columns, values = np.empty(out_starts[-1], np.int32), np.empty(out_starts[-1])
    identity, sign = (1.0, -1.0) if complement else (0.0, 1.0)
    factors = np.ascontiguousarray(factors, dtype=np.float64)
    _native.patch_sums(
        members, starts, entries, factors, identity, sign, out_starts, columns, values, threads
    )
    if out_starts[-1] < np.iinfo(np.int32).max:
        out_starts = out_starts.astype(np.int32)
    return scipy.sparse.csr_matrix((values, columns, out_starts), shape=(n, n))


def patch_sum_cost(n: int, k: int) -> Estimate:
    """Of :func:`sum_of_patches` of n patches of k rows, and the matrix it returns."""
    return Estimate(2e-8 * n * k * k, 16 * n * k * min(n, k * 3))


def across_bridges(neighbors: np.ndarray, bridges: Edges) -> np.ndarray:
    """The lists of neighbors (n, k), where the ends of each bridge get neighbors on both sides.

    With a single edge one side could be rotated against the other. So a row with b bridges replaces
    its farther neighbors, a share k/(b + 1) of all for each bridge, by the row at the other end and
    that row's own nearest neighbors. Every list keeps its length.
    """
    k = neighbors.shape[1]
    there: dict[int, list[int]] = {}
    for i, j in zip(bridges.rows.tolist(), bridges.columns.tolist(), strict=True):
        there.setdefault(i, []).append(j)
        there.setdefault(j, []).append(i)
    lists = neighbors.copy()
    for row, ends in there.items():
        share = max(1, k // (len(ends) + 1))
        wanted = [np.r_[end, neighbors[end, : share - 1]] for end in ends[: max(1, k // share)]]
        others = np.unique(np.concatenate(wanted))
        others = others[(others != row) & ~np.isin(others, neighbors[row, : k - len(others)])][:k]
        own = neighbors[row][~np.isin(neighbors[row], others)][: k - len(others)]
        lists[row] = np.concatenate([own, others])
    return lists
