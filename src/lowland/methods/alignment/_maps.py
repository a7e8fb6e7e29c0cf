"""The feature level: functions of the rows that are linear in the columns of each table.

With F the matrix of such functions of all rows (for each table a constant, and an orthonormal basis
of its centered columns, so that neither dependent columns nor more columns than rows matter), the
map is F G with

    F^T L F g = lambda F^T D F g          (Z L Z^T g = lambda Z D Z^T g in the paper)

and the constant function left out.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.errors import ConvergenceWarning, DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.threads import limit_blas
from lowland._engines.distances.distance_rows import DistanceTiles
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.laplacian import graph_spectrum, laplacian
from lowland._engines.graphs.weights import local_graph
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs, generalized_eigenpairs, rank_cutoff
from lowland._engines.linalg.principal_axes import ColumnBasis, leading_axes, orthonormal_basis
from lowland._engines.linalg.procrustes import align
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.search import neighbor_graph
from lowland.methods.alignment._joint_graph import Matches, set_of

STRONGEST = 1e100  # ridge: a larger one leaves the constants alone as well


class Projections(NamedTuple):
    """z = (x - mean) V + b: means (p,) and V (p, q) of all columns, and b (n_sets, q)."""

    means: np.ndarray
    V: np.ndarray
    offsets: np.ndarray


class LinearFunctions(NamedTuple):
    """F of each table, the sums A = F^T L F and B = F^T D F, the constant c, and a penalty.

    ``penalty`` is the squared length of the projection of each function, in units of the
    smallest that the table has.
    """

    bases: list[ColumnBasis]
    parts: list[np.ndarray]
    A: np.ndarray
    B: np.ndarray
    constant: np.ndarray
    penalty: np.ndarray

    def axes(self, q: int, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """The q smallest lambda, and G with G^T B G = 1; NaN and zeros beyond the rank.

        From the pencil (B, A + B), whose eigenvalues 1 / (1 + lambda) are between 1/3 and 1 without
        a ridge: B alone may be so small in some directions that lambda would be rounding.
        """
        total = float(self.constant @ self.B @ self.constant)
        A = self.A + self._ridge(ridge, total)
        known = self.B @ self.constant
        rest = self.B - np.outer(known, known) / total
        found = generalized_eigenpairs(rest, A + self.B, q, which="largest")
        k = min(q, max(found.rank - 1, 0), int((found.values > rank_cutoff(len(A), float)).sum()))
        values, G = np.full(q, np.nan), np.zeros((len(A), q))
        values[:k] = np.maximum(1 / found.values[:k] - 1, 0.0)
        G[:, :k] = found.vectors[:, :k] * np.sqrt(total / found.values[:k])
        return values, G

    def nearest(self, known: np.ndarray, S: np.ndarray, weight: float, ridge: float) -> np.ndarray:
        """G of the least squares tr(G^T A G) + weight sum over known rows |f_i^T G - s_i|^2."""
        total = float(self.constant @ self.B @ self.constant)
        F = scipy.sparse.block_diag(self.parts, format="csr")[known].toarray()
        with limit_blas(1):
            M = self.A + weight * (F.T @ F) + self._ridge(ridge, total)
            unit = 1 / np.sqrt(np.maximum(np.diagonal(M), np.finfo(float).tiny))
            lengths, V = all_eigenpairs(unit[:, None] * M * unit)
            real = lengths > rank_cutoff(len(M), float) * lengths[0]
            V = unit[:, None] * V[:, real]
            return V @ ((V.T @ (weight * (F.T @ S))) / lengths[real, None])

    def _ridge(self, ridge: float, total: float) -> np.ndarray:
        return np.diag(min(ridge, STRONGEST) * total * self.penalty)

    def projections(self, G: np.ndarray) -> Projections:
        """The map F G as a matrix for the rows of each table."""
        means, V, offsets, start = [], [], [], 0
        for basis, part in zip(self.bases, self.parts, strict=True):
            g = G[start : start + part.shape[1]]
            means.append(basis.mean)
            V.append(basis.weights(np.sqrt(len(part)) * g[1:]))
            offsets.append(g[0])
            start += part.shape[1]
        return Projections(np.concatenate(means), np.concatenate(V), np.array(offsets))


def linear_functions(
    Xs: list[Any], W: scipy.sparse.csr_matrix, owner: str, run: FitContext
) -> LinearFunctions:
    """F, A and B of the rows that the joint graph of weights W has."""
    shapes = [X.shape for X in Xs]
    width = sum(min(shape) + 1 for shape in shapes)
    require_memory(
        sum(32 * n * min(n, p) + 24 * n * p for n, p in shapes) + 64 * width * width,
        task=f"{owner}: projections of {sum(p for _, p in shapes)} columns",
        alternative="reduce the tables by PCA first, or use level='instance'",
    )
    bases = [orthonormal_basis(X, run.threads, run.monitor) for X in Xs]
    parts = [np.column_stack([np.ones(len(b.U)), np.sqrt(len(b.U)) * b.U]) for b in bases]
    L, degrees = laplacian(W)
    rows = np.cumsum([0, *(len(part) for part in parts)])
    places = np.cumsum([0, *(part.shape[1] for part in parts)])
    A, B = np.zeros((places[-1],) * 2), np.zeros((places[-1],) * 2)
    for a, left in enumerate(parts):
        here, zero = slice(*places[a : a + 2]), np.zeros(left.shape[1])
        own = slice(*rows[a : a + 2])
        B[here, here] = products.transpose_times(left, zero, degrees[own, None] * left, run.threads)
        for b, right in enumerate(parts):
            there = slice(*places[b : b + 2])
            block = scipy.sparse.csr_matrix(L[own, rows[b] : rows[b + 1]])
            if block.nnz:
                image = products.matrix_times(block, run.threads)(right)
                A[here, there] = products.transpose_times(left, zero, image, run.threads)
    constant = np.zeros(places[-1])
    constant[places[:-1]] = 1
    penalty = np.concatenate([np.concatenate([[0.0], _penalty(basis)]) for basis in bases])
    return LinearFunctions(bases, parts, (A + A.T) / 2, (B + B.T) / 2, constant, penalty)


def _penalty(basis: ColumnBasis) -> np.ndarray:
    """(s_1 / s_r)^2 of the singular values of the centered table."""
    size = np.abs(basis.loadings).max() or 1.0
    lengths = np.linalg.norm(basis.loadings / size, axis=1)
    longest = lengths.max() or 1.0
    return np.minimum((longest / np.maximum(lengths, 1e-100 * longest)) ** 2, 1e30)


# Maps of single tables, to be turned onto each other.


class OwnMap(NamedTuple):
    """The map of the kept rows of a table, with what its method needs for new rows."""

    Y: np.ndarray
    kept: np.ndarray
    n_components: int
    eigenvalues: np.ndarray
    scales: np.ndarray


def eigenmap(
    graph: Any, X: Any, q: int, policy: Any, metric: str, owner: str, run: FitContext
) -> OwnMap:
    """Laplacian eigenmap of one table, each axis with unit variance."""
    connected = connect(graph, X, policy, metric=metric, threads=run.threads, monitor=run.monitor)
    n = connected.kept.size
    if q >= n:
        raise ParameterError(
            f"{owner}: n_components={q} is more than a connected graph of {n} rows allows; ask for "
            f"at most {n - 1}."
        )
    W, scales = local_graph(connected.graph)
    modes, degrees = graph_spectrum(W, q, run)
    Y = modes.vectors * np.sqrt(degrees.sum() / degrees)[:, None]
    Y = at_common_place(Y, equal_in_graph(connected.graph))
    return OwnMap(Y, connected.kept, connected.n_components, 1 - modes.values, scales)


def principal_map(X: Any, q: int, run: FitContext) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, principal axes in columns (zeros beyond the rank), and the scores of the rows."""
    n, p = X.shape
    found = leading_axes(X, min(q, n, p), run.threads, run.rng, run.monitor)
    V = np.zeros((p, q))
    V[:, : len(found.axes)] = found.axes.T
    return found.mean, V, products.times(X, found.mean, V, run.threads).astype(np.float64)


# Finished maps of several tables, each rotated, scaled and shifted onto those before it.


class Turn(NamedTuple):
    """z = scale * (y R) + shift, and the share of the partners' variance that it does not reach."""

    R: np.ndarray
    scale: float
    shift: np.ndarray
    disparity: float

    def of(self, Y: np.ndarray) -> np.ndarray:
        return self.scale * np.einsum("nq,qr->nr", Y, self.R) + self.shift


def turns_onto_first(
    maps: Sequence[np.ndarray], matches: Matches, starts: np.ndarray, owner: str
) -> list[Turn]:
    """For each map the similarity that brings its matched rows nearest to their partners.

    The first map stays. Then comes the map with the most matches with those already turned, and
    so on. A row with several partners counts once for each.
    """
    q, n_sets = maps[0].shape[1], len(maps)
    turns: list[Turn | None] = [None] * n_sets
    turns[0] = Turn(np.eye(q), 1.0, np.zeros(q), 0.0)
    whole = np.full((int(starts[-1]), q), np.nan)
    whole[: starts[1]] = maps[0]
    both = np.concatenate([matches.rows, matches.columns])
    partners = np.concatenate([matches.columns, matches.rows])
    tables = set_of(both, starts)
    while None in turns:
        ready = ~np.isnan(whole[partners, 0])
        counts = np.bincount(tables[ready], minlength=n_sets)
        counts[[turn is not None for turn in turns]] = -1
        d = int(counts.argmax())
        if counts[d] < q + 1:
            raise DataError(
                f"{owner}: Xs[{d}] has {counts[d]} matches with the tables before it, but "
                f"method='procrustes' needs at least n_components + 1 = {q + 1}; give more "
                "correspondences."
            )
        some = ready & (tables == d)
        found = align(whole[partners[some]], maps[d][both[some] - starts[d]])
        turns[d] = Turn(found.rotation, found.scale, found.translation, found.disparity)
        whole[starts[d] : starts[d + 1]] = turns[d].of(maps[d])  # type: ignore[union-attr]
    return [turn for turn in turns if turn is not None]


# Maps with partially known places (Ham, Lee & Saul 2005, section 3.2).


TOLERANCE = 1e-10  # of the residual, relative to the right-hand side


def harmonic_map(
    W: scipy.sparse.csr_matrix,
    nodes: np.ndarray,
    S: np.ndarray,
    weight: float | None,
    owner: str,
    run: FitContext,
) -> np.ndarray:
    """min over Y of tr(Y^T L Y) + weight sum over known rows |y_i - s_i|^2.

    ``nodes`` are those of the known rows, and ``S`` their places. Without a weight they are kept
    exactly: L_uu Y_u = -L_uk S. By conjugate gradients with the degrees as preconditioner.
    """
    n = W.shape[0]
    L, degrees = laplacian(W)
    center = S.mean(axis=0)
    sums = np.zeros((n, S.shape[1]))
    np.add.at(sums, nodes, S - center)
    counts = np.bincount(nodes, minlength=n)
    if weight is not None:
        extra = weight * counts
        M = scipy.sparse.csr_matrix(L + scipy.sparse.diags_array(extra))
        return _solve(M, weight * sums, degrees + extra, run) + center
    known = counts > 0
    places = sums / np.maximum(counts, 1)[:, None]
    if np.abs(places[nodes] - (S - center)).max() > 1e-9 * max(np.abs(S - center).max(), 1e-300):
        raise DataError(f"{owner}: coordinates gives matched rows different places; mu='hard'.")
    Y = places
    if not known.all():
        free = np.flatnonzero(~known)
        right = -(L[free][:, np.flatnonzero(known)] @ places[known])
        M = scipy.sparse.csr_matrix(L[free][:, free])
        Y[free] = _solve(M, right, degrees[free], run)
    return Y + center


def _solve(
    M: scipy.sparse.csr_matrix, right: np.ndarray, diagonal: np.ndarray, run: FitContext
) -> np.ndarray:
    """M^-1 right, one column by the side of the other."""
    multiply = products.matrix_times(M, run.threads)
    Y, R = np.zeros_like(right), right.copy()
    scale = np.einsum("iq,iq->q", right, right / diagonal[:, None])
    Z = R / diagonal[:, None]
    P, rho = Z.copy(), np.einsum("iq,iq->q", R, Z)
    most = 2 * len(right) + 100
    with run.monitor.phase("known places", total=most) as phase:
        for _ in range(most):
            open_columns = rho > TOLERANCE**2 * scale
            if not open_columns.any():
                return Y
            image = multiply(P)
            curve = np.einsum("iq,iq->q", P, image)
            step = np.where(open_columns & (curve > 0), rho / np.where(curve > 0, curve, 1.0), 0.0)
            Y += step * P
            R -= step * image
            Z = R / diagonal[:, None]
            before, rho = rho, np.einsum("iq,iq->q", R, Z)
            P = Z + np.where(before > 0, rho / np.where(before > 0, before, 1.0), 0.0) * P
            phase.advance()
    warnings.warn(
        "the known places are not fitted to the last digit: conjugate gradients stopped after "
        f"{most} steps.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return Y


# Matches without known correspondences: rows whose neighborhoods look alike.
#
# The local pattern of a row is the matrix of distances among the row and its k nearest neighbors,
# (k + 1) x (k + 1). Two patterns are compared in all k! orders of the neighbors of one of them, and
# one is rescaled to fit the other, whichever way fits better (Wang & Mahadevan 2009):
#
#     dist(A, B) = min over orders h of min(|B_h - a A|_F, |A - b B_h|_F)
#                = min(|A|_F, |B|_F) sqrt(1 - c^2),     c = max over h of <A, B_h> / (|A|_F |B|_F)
#
# as the best factors are a = <A, B_h> / |A|^2 and b = <A, B_h> / |B|^2. Patterns are divided by
# their norms first, so that those of dense regions are not alike for their size alone: of 200
# rows of a curve, with noise of a tenth of their spacing, 35 % then find their partner, and 10 %
# otherwise.


K = 4  # neighbors in a pattern, as in the paper: 24 orders
BEST = 5  # a match is among so many best of both its rows
LEAST_WEIGHT = 1e-9  # of the best: weaker matches are left out
ENDS = tuple(itertools.combinations(range(K + 1), 2))


def pattern_matches(
    Xs: list[Any], starts: np.ndarray, metric: str, owner: str, run: FitContext
) -> Matches:
    """The rows of any two tables whose patterns are alike, weighted by exp(-dist / delta^2).

    A pair counts if each of the two is among the 5 best matches of the other. delta^2 is the median
    distance of a row to its best match. O(n_1 n_2) time, and O(n_1 + n_2) memory.
    """
    for d, X in enumerate(Xs):
        if X.shape[0] <= K:
            raise ParameterError(
                f"{owner}: Xs[{d}] has {X.shape[0]} rows, but without correspondences each row is "
                f"compared with its {K} nearest; give correspondences, or {K + 1} rows and more."
            )
    patterns = [local_patterns(X, metric, run) for X in Xs]
    found = []
    for a, b in itertools.combinations(range(len(Xs)), 2):
        i, j, distances = _mutual(patterns[a], patterns[b], run)
        found.append((i + starts[a], j + starts[b], _weights(i, distances)))
    rows, columns, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    strong = weights > LEAST_WEIGHT
    return Matches(rows[strong], columns[strong], weights[strong])


def local_patterns(X: Any, metric: str, run: FitContext) -> np.ndarray:
    """The 10 distances among each row and its 4 nearest neighbors, in the order of ENDS."""
    near = neighbor_graph(
        X, K, metric=metric, threads=run.threads, rng=run.rng, monitor=run.monitor
    )
    source, R = DistanceTiles(X, metric), np.empty((X.shape[0], len(ENDS)))
    R[:, :K] = near.distances  # the first ends are the row itself and a neighbor
    upper = np.triu_indices(K, 1)
    with run.monitor.phase("local patterns", total=len(R)) as phase:
        for row, ids in enumerate(near.indices):
            R[row, K:] = source.tile(ids, ids)[upper]
            phase.advance()
    return R


def pattern_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """sqrt(1 - c^2) of all patterns A (m, 10) and all B (n, 10); rows of equal points are alike."""
    A, B = _unit(A), _unit(B)
    c = np.full((len(A), len(B)), -1.0)
    with limit_blas(1):
        for order in itertools.permutations(range(1, K + 1)):
            label = (0, *order)
            ends = [ENDS.index((min(e), max(e))) for e in ((label[a], label[b]) for a, b in ENDS)]
            np.maximum(c, A @ B[:, ends].T, out=c)
    return np.sqrt(np.maximum(1 - c * c, 0.0))


def _unit(R: np.ndarray) -> np.ndarray:
    """Patterns of norm 1; that of equal points is the regular one."""
    size = np.linalg.norm(R, axis=1, keepdims=True)
    return np.where(size > 0, R / np.where(size > 0, size, 1.0), R.shape[1] ** -0.5)


def _weights(rows: np.ndarray, distances: np.ndarray) -> np.ndarray:
    order = np.lexsort((distances, rows))
    best = order[np.unique(rows[order], return_index=True)[1]]
    scale = float(np.median(distances[best])) if best.size else 1.0
    return np.exp(-distances / (scale or 1.0))


def _mutual(
    A: np.ndarray, B: np.ndarray, run: FitContext
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of patterns that are among the best matches of each other, and their distances."""
    there, distances = _nearest(A, B, run)
    back, _ = _nearest(B, A, run)
    i = np.repeat(np.arange(len(A)), there.shape[1])
    j = there.ravel()
    mutual = (back[j] == i[:, None]).any(axis=1)
    return i[mutual], j[mutual], distances.ravel()[mutual]


def _nearest(A: np.ndarray, B: np.ndarray, run: FitContext) -> tuple[np.ndarray, np.ndarray]:
    """The best matches of each pattern of A in B, the best first."""
    k = min(BEST, len(B))
    ids, found = np.empty((len(A), k), np.int64), np.empty((len(A), k))
    with run.monitor.phase("matches", total=len(A)) as phase:
        for rows in products.row_blocks(len(A), products.rows_within(24 * len(B))):
            D = pattern_distances(A[rows], B)
            some = np.argpartition(D, k - 1, axis=1)[:, :k]
            lengths = np.take_along_axis(D, some, axis=1)
            order = np.lexsort((some, lengths), axis=1)
            ids[rows] = np.take_along_axis(some, order, axis=1)
            found[rows] = np.take_along_axis(lengths, order, axis=1)
            phase.advance(rows.stop - rows.start)
    return ids, found
