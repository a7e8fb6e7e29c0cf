"""Local problems, one per row: reconstruction weights, tangent planes, and Hessian estimators.

All are solved in batches of equal shape, independently of each other, and distributed over threads
in fixed chunks: neither the other rows nor the number of threads change a digit. Differences are
measured in units of the patch, so that the scale of the data does not matter.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.errors import DataError
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._engines.graphs.components import Edges
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.linalg.products import row_blocks

# Sums of small matrices over patches, which are sets of rows close to each other.
#
# The matrix of each local method is M = sum_i S_i B_i S_i^T: B_i is the quadratic form of patch i
# in the coordinates of its members, and S_i selects the members among all rows.


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

    ``columns`` has the fitted rows that are the points themselves. New rows and centers are
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


CHUNK_NUMBERS = 2**19
FARTHEST = 1e140  # beyond it, squares overflow
MOST_REG = 1e30  # from 1e16 on all weights are equal to the last digit
NEGLIGIBLE = 1e-12  # share of the variance below which a direction does not count


class Tangents(NamedTuple):
    """The tangent planes of patches.

    Attributes
    ----------
    bases : ndarray of shape (n, k, q)
        Left singular vectors of each centered patch, orthonormal; 0 where the patch has fewer
        dimensions.
    lengths : ndarray of shape (n, q)
        Their singular values: ``bases * lengths[:, None]`` are coordinates in the tangent plane.
    """

    bases: np.ndarray
    lengths: np.ndarray


def in_chunks(
    work: Callable[[slice], Any],
    n: int,
    numbers_per_row: int,
    threads: int,
    monitor: Monitor,
    name: str,
) -> list[Any]:
    """``work`` on all rows, in blocks of limited memory; results in order."""
    rows = max(1, min(CHUNK_NUMBERS // max(1, numbers_per_row), -(-n // 8)))
    pieces = list(row_blocks(n, rows))
    found = []
    with limit_blas(1), monitor.phase(name, total=len(pieces)) as phase:
        if threads == 1 or len(pieces) == 1:
            for piece in pieces:
                found.append(work(piece))
                phase.advance()
            return found
        # Each thread works in a copy of this context, which holds what numpy does about overflow.
        contexts = [contextvars.copy_context() for _ in pieces]
        with ThreadPoolExecutor(threads) as pool:
            for result in pool.map(
                lambda context, piece: context.run(work, piece), contexts, pieces
            ):
                found.append(result)
                phase.advance()
    return found


def barycentric(points: Points, ids: np.ndarray, X: np.ndarray, reg: float) -> np.ndarray:
    """Weights w with sum 1 that minimize |x - sum_j w_j x_j|^2 + reg tr(C) |w|^2 for each row of X.

    (C + reg tr(C) I) w = 1, scaled to sum 1, with C_jl = (x_j - x).(x_l - x); equal weights where
    all neighbors are x itself. O(k^2 p + k^3) each.
    """
    Z, _ = points.differences(ids, X)
    C = Z @ Z.transpose(0, 2, 1)
    k = C.shape[1]
    trace = np.einsum("njj->n", C)
    ridge = min(reg, MOST_REG) * trace
    C[:, np.arange(k), np.arange(k)] += np.where(trace > 0, ridge, 1.0)[:, None]
    w = np.linalg.solve(C, np.ones((len(C), k, 1)))[:, :, 0]
    return w / w.sum(axis=1, keepdims=True)


def tangents(points: Points, ids: np.ndarray, q: int) -> Tangents:
    """The q leading left singular vectors and singular values of each centered patch.

    From the smaller of the two Gram matrices, k x k or p x p.
    """
    Z, unit = points.differences(ids)
    Z -= Z.mean(axis=1, keepdims=True)
    n, k, p = Z.shape
    bases, lengths = np.zeros((n, k, q)), np.zeros((n, q))
    most = min(q, p, k)
    if p < k:
        squares, axes = all_eigenpairs(Z.transpose(0, 2, 1) @ Z)
    else:
        squares, axes = all_eigenpairs(Z @ Z.transpose(0, 2, 1))
    squares, axes = squares[:, :most], axes[:, :, :most]
    real = squares > NEGLIGIBLE * squares[:, :1]
    size = np.sqrt(np.where(real, squares, 1.0))
    U = Z @ axes / size[:, None] if p < k else axes
    bases[:, :, :most] = np.where(real[:, None], U, 0.0)
    lengths[:, :most] = np.where(real, size, 0.0) * unit[:, None]
    return Tangents(bases, lengths)


def all_tangents(
    points: Points, ids: np.ndarray, q: int, threads: int, monitor: Monitor
) -> Tangents:
    """:func:`tangents` of all patches (n, k), some at a time."""
    n, k = ids.shape
    p = points.width(k)
    parts = in_chunks(
        lambda rows: tangents(points, ids[rows], q),
        n,
        k * (p + min(k, p) + q),
        threads,
        monitor,
        "tangents",
    )
    return Tangents(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def tangent_weights(points: Points, ids: np.ndarray, X: np.ndarray, q: int) -> np.ndarray:
    """Weights with sum 1 that apply the affine map of each row's patch to the row.

    With the patch's tangent coordinates Theta = U S and places Y the map of least squares is
    y = mean(Y) + (Theta^+ Y)^T V^T (x - mean), that is w = 1/k + U S^-2 U^T (Z (x - mean)).
    """
    Z, unit = points.differences(ids, X)  # x is the origin
    mean = Z.mean(axis=1, keepdims=True)
    found = tangents(points, ids, q)
    inverse = np.zeros_like(found.lengths)
    np.divide(unit[:, None], found.lengths, out=inverse, where=found.lengths > 0)
    if not inverse.max(initial=0.0) < FARTHEST:
        raise DataError(
            f"a new row is {inverse.max():.0e} times as far away as its nearest fitted rows are "
            "from each other, too far for their tangent plane; leave it out."
        )
    along = -(Z - mean) @ mean.transpose(0, 2, 1)
    scores = (found.bases.transpose(0, 2, 1) @ along) * (inverse**2)[:, :, None]
    return 1 / Z.shape[1] + (found.bases @ scores)[:, :, 0]


def hessian_estimators(bases: np.ndarray) -> np.ndarray:
    """H (n, k, q(q+1)/2): all products U_a U_b, a <= b, orthonormalized against [1, U].

    Gram-Schmidt on [1, U, products], each step twice; columns that depend on earlier ones, in
    patches of too few dimensions or directions, become 0.
    """
    n, k, q = bases.shape
    a, b = np.triu_indices(q)
    products = bases[:, :, a] * bases[:, :, b]
    columns = np.concatenate([np.ones((n, k, 1)), bases, products], axis=2)
    Q = np.zeros_like(columns)
    for j in range(columns.shape[2]):
        v = columns[:, :, j : j + 1].copy()
        before = np.sqrt((v**2).sum(axis=1, keepdims=True))
        for _ in range(2):
            v -= Q[:, :, :j] @ (Q[:, :, :j].transpose(0, 2, 1) @ v)
        left = np.sqrt((v**2).sum(axis=1, keepdims=True))
        new = left > np.sqrt(NEGLIGIBLE) * before
        Q[:, :, j : j + 1] = np.where(new, v / np.where(new, left, 1.0), 0.0)
    return Q[:, :, 1 + q :]


def spectra(points: Points, ids: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, largest first, and eigenvectors of each row's C_jl = (x_j - x).(x_l - x).

    In units of the largest difference of the patch.
    """
    Z, _ = points.differences(ids, X)
    squares, V = all_eigenpairs(Z @ Z.transpose(0, 2, 1))
    return np.maximum(squares, 0.0), V


def mixtures(
    points: Points,
    X: np.ndarray,
    values: np.ndarray,
    ids: np.ndarray,
    weights: Callable[[Points, np.ndarray, np.ndarray], np.ndarray],
    threads: int,
    monitor: Monitor,
) -> np.ndarray:
    """sum_j w_j values_j for each row of X, whose nearest points are ``ids``.

    ``values`` belong to the points. A row that equals a point gets the value of that point.
    """

    def mix(part: slice) -> np.ndarray:
        near, at = ids[part], X[part]
        w = weights(points, near, at)
        mixed = (w[:, None, :] @ values[near].astype(np.float64))[:, 0].astype(values.dtype)
        equal = points.equal_point(at, near)
        mixed[equal >= 0] = values[equal[equal >= 0]]
        return mixed

    k = ids.shape[1]
    size = k * (points.width(k) + values.shape[1] + k) + X.shape[1]
    return np.concatenate(in_chunks(mix, len(X), size, threads, monitor, "places"))
