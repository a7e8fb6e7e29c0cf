"""Diffusion for PHATE: the operator on rows or landmarks, its entropy, and its potential.

P = D^-1 K is similar to the symmetric S = D^-1/2 K D^-1/2, so one symmetric eigenproblem gives the
entropies of all powers and the power P^t = D^-1/2 V L^t V^T D^1/2.

Many rows diffuse through landmarks, which are clusters C_j of rows. With the kernel summed over
clusters, K_nm = K C, a walk goes from a cluster to a row and on to a cluster:

    P_nm = D^-1 K_nm     P_mn = D_m^-1 K_nm^T     P_mm = P_mn P_nm     D = diag(K 1), D_m = C^T D C

P_mm is similar to D_m^-1/2 K_nm^T D^-1 K_nm D_m^-1/2, which has no negative eigenvalue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.threads import limit_blas
from lowland._engines.distances.dissimilarities import known_pairs
from lowland._engines.graphs.components import connected_components
from lowland._engines.grids.nearest_units import nearest_units, unit_sums
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs, largest_eigenpairs
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_query
from lowland._engines.stress import initial_map
from lowland._engines.stress.classical_scaling import of_distances
from lowland._engines.stress.majorization import majorize
from lowland._engines.stress.objective import (
    AllPairs,
    Disparities,
    ListedPairs,
    MonotoneCone,
    stable_order,
)

# The alpha-decay kernel of PHATE: an adaptive bandwidth, and tails that fall like exp(-d^alpha).
#
#     A(x, y) = exp(-(d(x, y) / e(x))^alpha)        e(x): distance of x to its k-th neighbor
#     K(x, y) = 1/2 A(x, y) + 1/2 A(y, x)
#
# Values of A below a threshold are 0. A(x, y) is above it within the reach c e(x), with c = log(1
# / threshold)^(1 / alpha), so that each row needs the neighbors within its own reach only.
# Without a decay, A is 1 for the k nearest and 0 for all others.


THRESHOLD = 1e-4  # smaller values of the kernel are 0
FIRST = 3  # times k neighbors are sought at first
MORE = 4  # times as many for rows whose reach has more
ENTRY_BYTES = 80  # of a neighbor: candidate, distance, value, and the sum of both directions


class Kernel(NamedTuple):
    """K of all rows, symmetric with a diagonal of 1, and the bandwidth e of each row."""

    K: scipy.sparse.csr_matrix
    bandwidths: np.ndarray


class AlphaDecay(NamedTuple):
    """The kernel of k neighbors, its decay alpha (None: unweighted), and the metric."""

    k: int
    decay: float | None
    metric: Any
    metric_params: dict[str, Any] | None

    @property
    def reach(self) -> float:
        """c: the kernel of a row ends at this multiple of its bandwidth."""
        if self.decay is None:
            return 1.0
        with np.errstate(over="ignore"):
            return float(np.float64(-np.log(THRESHOLD)) ** (1 / self.decay))

    def values(self, ratios: np.ndarray) -> np.ndarray:
        """A for distances that are given as multiples of the bandwidth."""
        inside = ratios <= self.reach
        if self.decay is None:
            return inside.astype(np.float64)
        with np.errstate(under="ignore"):
            return np.where(inside, np.exp(-(np.where(inside, ratios, 0.0) ** self.decay)), 0.0)

    # --- fitted rows --------------------------------------------------------------------------

    def of_rows(self, X: Any, near: NeighborGraph, run: FitContext) -> Kernel:
        """The kernel of different rows, which begins with their nearest neighbors."""
        n = X.shape[0]
        bandwidths = near.distances[:, self.k - 1].astype(np.float64)
        if self.decay is None:
            near = NeighborGraph(near.indices[:, : self.k], near.distances[:, : self.k], n)
            return Kernel(_symmetric(near.to_csr(), np.ones(n * self.k)), bandwidths)
        parts = self._within_reach(X, near, bandwidths, run)
        i, j, d = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((j, i))
        i, j, d = i[order], j[order], d[order]
        starts = np.searchsorted(i, np.arange(n + 1))
        A = scipy.sparse.csr_matrix((d, j, starts), shape=(n, n))
        return Kernel(_symmetric(A, self.values(d / bandwidths[i])), bandwidths)

    def _within_reach(
        self, X: Any, near: NeighborGraph, bandwidths: np.ndarray, run: FitContext
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(i, j, d) of all pairs with d <= c e(i), as exactly as the neighbors were found.

        The list of a row is complete if its last entry is beyond the reach. The other rows are
        searched again for more neighbors, until all lists are complete.
        """
        n, rows, m = X.shape[0], np.arange(X.shape[0]), near.n_neighbors
        ids, lengths = near.indices, near.distances.astype(np.float64)
        reach, parts = self.reach * bandwidths, []
        while True:
            inside = (lengths <= reach[rows, None]) & (ids != rows[:, None])
            whole = (lengths[:, -1] > reach[rows]) | (m >= n - 1)
            kept = inside & whole[:, None]
            parts.append((np.repeat(rows, kept.sum(axis=1)), ids[kept], lengths[kept]))
            rows = rows[~whole]
            if not rows.size:
                return parts
            m = min(MORE * m, n - 1)
            require_memory(
                ENTRY_BYTES * m * rows.size,
                task=f"a kernel in which {rows.size} rows have up to {m} neighbors",
                alternative="take a larger decay, fewer n_neighbors, or decay=None",
            )
            method = "auto" if near.recall_ is None else "cells"  # as the first search
            options = {"metric": self.metric, "metric_params": self.metric_params, "method": method}
            shared: dict[str, Any] = {"threads": run.threads, "monitor": run.monitor}
            # one neighbor more, because the row itself is one of them
            found = neighbor_query(X, X[rows], m + 1, **options, **shared)
            ids, lengths = found.indices, found.distances.astype(np.float64)

    # --- new rows -----------------------------------------------------------------------------

    def of_new_rows(self, D: np.ndarray, bandwidths: np.ndarray) -> scipy.sparse.csr_matrix:
        """K of new rows and the fitted ones, from their distances D (m, n); each row alone."""
        own = np.partition(D, self.k - 1, axis=1)[:, self.k - 1]
        own = np.where(own > 0, own, 1.0)  # such a row equals a fitted row, and gets its place
        reach = self.reach * np.maximum(own[:, None], bandwidths)
        i, j = np.nonzero(reach >= D)
        d = D[i, j]
        values = (self.values(d / own[i]) + self.values(d / bandwidths[j])) / 2
        starts = np.searchsorted(i, np.arange(len(D) + 1))
        return scipy.sparse.csr_matrix((values, j, starts), shape=D.shape)


def _symmetric(A: scipy.sparse.csr_matrix, values: np.ndarray) -> scipy.sparse.csr_matrix:
    """(A + A^T) / 2 + I with these values in the places of A, whose diagonal is empty."""
    A = scipy.sparse.csr_matrix((values, A.indices, A.indptr), shape=A.shape)
    K = ((A + A.T) * 0.5 + scipy.sparse.identity(A.shape[0], format="csr")).tocsr()
    K.sort_indices()
    return K


N_AXES = 100  # eigenvectors that rows are clustered by
AXES_TOLERANCE = 0.1  # for clusters; 0.01 takes ten times as long, and the map is no better
KMEANS_STEPS = 10
T_MAX = 100  # the entropy is computed for this many powers
FLOOR = 1e-7  # added to probabilities, which have no logarithm at 0
NEGLIGIBLE = 1e-15  # powers of eigenvalues that have no part in P^t
CERTAIN = 1e-13  # eigenvalues this near to 1 are 1
DENSE_WORK = 1e9  # products of stored entries, from which on a dense product is faster


class Diffusion(NamedTuple):
    """The operator P = D^-1/2 S D^1/2 on m points, the roots of D, and the eigenpairs of S.

    The eigenvalues are largest first.
    """

    S: np.ndarray
    roots: np.ndarray
    values: np.ndarray
    vectors: np.ndarray


def operator_of(
    K: scipy.sparse.csr_matrix, landmark: np.ndarray | None, run: FitContext
) -> Diffusion:
    """The operator on the rows of the kernel K, or on landmarks (the cluster of each row)."""
    degrees = row_sums(K)
    scale = scipy.sparse.diags(1 / np.sqrt(degrees))
    if landmark is None:
        S, roots = (scale @ K @ scale).toarray(), np.sqrt(degrees)
    else:
        n, m = len(landmark), int(landmark.max()) + 1
        C = scipy.sparse.csr_matrix((np.ones(n), landmark, np.arange(n + 1)), shape=(n, m))
        masses = np.bincount(landmark, degrees, minlength=m)
        roots = np.sqrt(masses)
        B = scale @ (K @ C) @ scipy.sparse.diags(1 / roots)
        S = _gram_of_columns(B.tocsr(), run)
    with run.monitor.phase("spectrum of the diffusion"):
        pairs = all_eigenpairs(S)
    return Diffusion(S, roots, pairs.values, pairs.vectors)


def _gram_of_columns(B: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
    """B^T B; of a matrix with many entries by the dense kernel."""
    if float((np.diff(B.indptr).astype(np.float64) ** 2).sum()) < DENSE_WORK:
        return (B.T @ B).toarray()
    require_memory(
        8 * B.shape[0] * B.shape[1],
        task=f"the kernel of {B.shape[0]} rows and {B.shape[1]} landmarks",
        alternative="take fewer n_landmarks, or a larger decay",
    )
    turned = np.ascontiguousarray(B.toarray().T)
    return products.sample_gram(turned, np.zeros(turned.shape[1]), run.threads)


def row_sums(K: scipy.sparse.csr_matrix) -> np.ndarray:
    """K 1."""
    return np.asarray(K.sum(axis=1), np.float64).ravel()


# --- landmarks --------------------------------------------------------------------------------


def landmarks_of(K: scipy.sparse.csr_matrix, m: int, run: FitContext) -> np.ndarray:
    """The landmark of each row: about m clusters of the leading diffusion coordinates.

    A cluster is split where it joins parts of the graph that are not connected, unless there are
    so many parts that this makes more than 2 m clusters.
    """
    degrees = row_sums(K)
    scale = scipy.sparse.diags(1 / np.sqrt(degrees))
    S = products.matrix_times((scale @ K @ scale).tocsr(), run.threads)
    n, q = K.shape[0], min(N_AXES, K.shape[0] - 1)
    axes = largest_eigenpairs(
        S, q, order=n, tol=AXES_TOLERANCE, rng=run.rng, monitor=run.monitor, rough=True
    )
    Z = axes.vectors * axes.values / np.sqrt(degrees)[:, None]
    cluster = _clusters(np.ascontiguousarray(Z, np.float32), m, run)
    n_parts, part = connected_components(K)
    split = np.unique(cluster * n_parts + part, return_inverse=True)[1]
    return split if split.max() < 2 * m else cluster


def _clusters(Z: np.ndarray, m: int, run: FitContext) -> np.ndarray:
    """Lloyd's k-means from random rows; a cluster that loses its rows is left out."""
    centers = Z[np.sort(run.rng.choice(len(Z), m, replace=False))]
    with run.monitor.phase("landmarks", KMEANS_STEPS) as phase:
        for _ in range(KMEANS_STEPS):
            nearest = nearest_units(Z, centers, run.threads)[:, 0]
            found = unit_sums(Z, nearest, len(centers), run.threads)
            kept = found.counts > 0
            moved = (found.sums[kept] / found.counts[kept, None]).astype(Z.dtype)
            still = kept.all() and np.array_equal(moved, centers)
            centers = moved
            phase.advance()
            if still:
                break
    nearest = nearest_units(Z, centers, run.threads)[:, 0]
    return np.unique(nearest, return_inverse=True)[1].astype(np.int64)


# --- how long to diffuse ----------------------------------------------------------------------


def entropies_of(values: np.ndarray) -> np.ndarray:
    """Von Neumann entropies of P^t, t = 1 .. T_MAX: -sum h log h, h = |lambda|^t / its sum.

    Eigenvalues of a few rows may be negative; their absolute values are the singular values of S.
    """
    with np.errstate(under="ignore", divide="ignore"):
        logs = np.log(np.abs(values) / np.abs(values).max())
        found = np.empty(T_MAX)
        for t in range(1, T_MAX + 1):
            shares = np.exp(t * logs)
            shares /= shares.sum()
            some = shares[shares > 0]
            found[t - 1] = max(0.0, -float((some * np.log(some)).sum()))
    return found


def knee(curve: np.ndarray) -> int:
    """The number of the entry, from 1, at which two straight lines fit a curve best.

    One line fits the entries up to the knee and one those from it on; the knee minimizes the sum
    of absolute errors of both.
    """
    errors = [
        _line_error(curve[: split + 1]) + _line_error(curve[split:])
        for split in range(1, len(curve) - 1)
    ]
    return int(np.argmin(errors)) + 2


def _line_error(y: np.ndarray) -> float:
    """Sum of absolute errors of the least-squares line through evenly spaced values."""
    x = np.arange(len(y)) - (len(y) - 1) / 2
    deviation = y - y.mean()
    slope = (x * deviation).sum() / (x * x).sum()
    return float(np.abs(deviation - slope * x).sum())


# --- potential --------------------------------------------------------------------------------


def potential(P: Diffusion, t: int, gamma: float, run: FitContext) -> np.ndarray:
    """U of P^t: -log(P^t + 1e-7) for gamma = 1, else 2 / (1 - gamma) (P^t)^((1 - gamma) / 2)."""
    if gamma == 1:
        U = _power_by_pairs(P, t, run)
        U += FLOOR
        np.log(U, out=U)
        return np.negative(U, out=U)
    U = _power_by_squares(P, t, run)
    U **= (1 - gamma) / 2
    U *= 2 / (1 - gamma)
    return U


def _power_by_pairs(P: Diffusion, t: int, run: FitContext) -> np.ndarray:
    """P^t with errors of 1e-15: one product."""
    # An eigenvalue of 1 has a rounding error, which a power of some 1e16 would turn into 0 or more.
    values = np.where(P.values > 1 - CERTAIN, 1.0, P.values)
    with np.errstate(under="ignore"):
        powers = values**t
    kept = np.abs(powers) > NEGLIGIBLE * np.abs(powers).max()
    left = P.vectors[:, kept] * powers[kept] / P.roots[:, None]
    U = _product(left, (P.vectors[:, kept] * P.roots[:, None]).T, run)
    return np.clip(U, 0.0, 1.0, out=U)  # rounding


def _power_by_squares(P: Diffusion, t: int, run: FitContext) -> np.ndarray:
    """P^t with small relative errors of every entry, because no term of a sum is negative.

    A power below 1 makes an error of 1e-15 in place of a zero large.
    """
    square = P.S * (P.roots / P.roots[:, None])
    found = None
    while t > 0:
        if t % 2:
            found = square if found is None else _product(found, square, run)
        t //= 2
        if t:
            square = _product(square, square, run)
    assert found is not None
    return found


def _product(A: np.ndarray, B: np.ndarray, run: FitContext) -> np.ndarray:
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    return products.times(A, np.zeros(len(B)), B, run.threads)


# The map of potential distances for PHATE: classical, metric or nonmetric scaling.


ROUGH = 1e-3  # residual of the eigenvectors, enough for a start
PAIR_BYTES = 120  # of a pair of nonmetric scaling


class PotentialMap(NamedTuple):
    """The map in the unit of the distances, its stress at each step, and that of each point."""

    Y: np.ndarray
    losses: np.ndarray
    per_point: np.ndarray


def map_of_distances(
    D: np.ndarray,
    q: int,
    kind: str,
    *,
    max_iter: int,
    tol: float,
    shown: Callable[[np.ndarray], np.ndarray],
    run: FitContext,
) -> PotentialMap:
    """Classical scaling, and from there metric or nonmetric scaling.

    The stress is sqrt( sum (delta - d)^2 / sum delta^2 ); the nonmetric one is Kruskal's stress-1.
    ``shown`` makes the map that a callback sees from that of the points.
    """
    unit = float(np.sqrt(np.mean(np.square(D, dtype=np.float64))))
    if unit == 0:  # all rows diffuse alike
        return PotentialMap(np.zeros((len(D), q)), np.zeros(1), np.zeros(len(D)))
    delta = np.divide(D, unit, dtype=D.dtype)
    metric = AllPairs(delta, None, 0, run.threads)
    tol_start = 1e-9 if kind == "classical" else ROUGH
    start = of_distances(delta, q, run, tol=tol_start, rough=True).Y
    with limit_blas(1):  # sums over all points must not depend on the number of threads
        if kind == "classical":
            loss = metric(start).loss / metric.scale
            return PotentialMap(start * unit, np.sqrt([loss]), metric.relative_per_point(start))
        objective: Any = metric if kind == "metric" else _ranked(delta, run)
        found = majorize(
            objective,
            initial_map.separated(start, run.rng) if max_iter > 0 else start,
            max_iter=max_iter,
            tol=tol,
            monitor=run.monitor,
            shown=lambda Y: shown(_placed(Y, kind, unit)),
            told=lambda loss: float(np.sqrt(loss / objective.scale)),
        )
        losses = np.sqrt(found.losses / objective.scale)
        per_point = objective.relative_per_point(found.Y)
        return PotentialMap(_placed(found.Y, kind, unit), losses, per_point)


def _placed(Y: np.ndarray, kind: str, unit: float) -> np.ndarray:
    """Centered, in the unit of the distances.

    Nonmetric scaling does not set the size of the map. Its root mean square distance becomes that
    of the potential distances.
    """
    Y = Y - Y.mean(axis=0)
    size = float(np.sqrt(2 * np.mean((Y**2).sum(axis=1)))) if kind == "nonmetric" else 1.0
    return Y * (unit / (size or 1.0))


def _ranked(delta: np.ndarray, run: FitContext) -> Disparities:
    """Stress-1 over all pairs, in the order of their distances."""
    n = len(delta)
    require_memory(
        PAIR_BYTES * n * (n - 1) // 2,
        task=f"nonmetric scaling of {n} points",
        alternative="set mds='metric', or take fewer n_landmarks",
    )
    i, j, d = known_pairs(delta)
    order = stable_order(d, run.threads)
    i, j, d = i[order], j[order], d[order]
    return Disparities(
        ListedPairs(n, i, j, d, None, run.threads), MonotoneCone(d, "primary", threads=run.threads)
    )
