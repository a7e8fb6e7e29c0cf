"""Affinities of neighbors, the input of SNE, symmetric SNE and t-SNE.

    p_{j|i} = exp(-beta_i d_ij^2) / sum_k exp(-beta_i d_ik^2),   k over the neighbors of i
    beta_i such that row i has the wanted perplexity
    p_ij    = (p_{j|i} + p_{i|j}) / 2n

d is the distance in the metric of the graph. Multiplying all distances by a number changes beta
only. With several perplexities, the conditional distributions are averaged.

References: Hinton & Roweis (2002), Stochastic neighbor embedding, NIPS 15; van der Maaten & Hinton
(2008), Visualizing data using t-SNE, JMLR 9. Several scales: Lee, Peluffo-Ordonez & Verleysen
(2015), Neurocomputing 169, doi:10.1016/j.neucom.2014.12.095
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.constraints import Real
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._engines.neighbors.graph import NeighborGraph, check_fitted_rows

# Perplexity, the effective number of neighbors: exp(entropy in nats) = 2^(entropy in bits).


NEIGHBORS_PER_PERPLEXITY = 3  # weights of farther rows are below 1/100 of the nearest's


def check_perplexity(
    perplexity: float | Sequence[float], n: int | None, n_neighbors: int | None = None
) -> tuple[float, ...]:
    """The perplexities as a tuple; a perplexity that no row can attain is refused.

    With m neighbors, a distribution has a perplexity of 1 (all weight on one) to m (all weights
    equal). So 1 <= perplexity <= n - 1, and <= n_neighbors where only so many are known.

    Parameters
    ----------
    perplexity : float or sequence of float
    n : int or None
        Number of fitted rows; None for new rows.
    n_neighbors : int or None
        Number of known neighbors of each row; None if all are known.
    """
    if n is not None and n < 2:
        raise DataError(
            f"perplexity cannot be attained with {n} row (n_samples={n}), which has no neighbor; "
            "at least 2 rows are needed."
        )
    values = _listed(perplexity)
    if not values or not all(Real(1, closed="left").allows(value) for value in values):
        raise ParameterError(
            f"perplexity={perplexity!r} is not allowed; expected a number >= 1 or a list of such."
        )
    largest = max(float(value) for value in values)
    if n is not None and largest > n - 1:
        raise ParameterError(
            f"perplexity={largest:g} is too large for {n} rows (n_samples={n}); it is at most "
            f"n_samples - 1 = {n - 1}, where all neighbors weigh the same. Take a smaller one."
        )
    if n_neighbors is not None and largest > n_neighbors:
        raise ParameterError(
            f"perplexity={largest:g} is too large for {n_neighbors} neighbors of each row; it is "
            f"at most {n_neighbors}, where all of them weigh the same. Take a smaller one, or more "
            "neighbors."
        )
    return tuple(float(value) for value in values)


def _listed(perplexity: Any) -> list[Any]:
    several = isinstance(perplexity, Sequence | np.ndarray) and not isinstance(perplexity, str)
    return list(perplexity) if several else [perplexity]


def default_neighbors(perplexity: float | Sequence[float], n: int) -> int:
    """How many neighbors to find for a perplexity: three times as many, at most all n - 1."""
    largest = max(check_perplexity(perplexity, n))
    return min(n - 1, math.ceil(NEIGHBORS_PER_PERPLEXITY * largest))


# The symmetric matrix of joint affinities.


@dataclass(frozen=True, eq=False)
class JointAffinities:
    """The p_ij as a symmetric sparse matrix that sums to 1, without diagonal.

    Row i has the weights ``indptr[i]`` to ``indptr[i + 1]``, columns ascending, of the neighbors of
    i and of the rows that i is a neighbor of. A weight may be 0.

    Attributes
    ----------
    indptr : ndarray of shape (n + 1,), int64
    indices : ndarray of shape (indptr[n],), int32
    weights : ndarray of shape (indptr[n],), float32 or float64
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray

    @property
    def n(self) -> int:
        return self.indptr.size - 1

    def __repr__(self) -> str:
        return f"JointAffinities({self.n} rows, {self.weights.size} weights, {self.weights.dtype})"

    def to_csr(self) -> Any:
        import scipy.sparse

        shape = (self.n, self.n)
        return scipy.sparse.csr_matrix((self.weights, self.indices, self.indptr), shape=shape)


def symmetrize_affinities(
    starts: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    threads: int = 1,
    *,
    ascending: bool = False,
) -> JointAffinities:
    """(C + C^T) / sum(C + C^T) of a sparse matrix C, which has each column once in a row.

    If the rows of C sum to 1, that is (C + C^T) / 2n. Columns -1 (missing) and the diagonal are
    passed over. Symmetric to the last bit; O(entries). ``ascending`` states that the columns of
    each row ascend, none is missing and none is on the diagonal, which saves a quarter of the
    memory.
    """
    stored = columns.size
    entry = 4 + weights.itemsize
    require_memory(
        stored * (4 + entry + (3 if ascending else 4) * entry),
        task=f"the joint affinities of {starts.size - 1} rows",
        alternative="take a smaller perplexity or fewer neighbors",
    )
    work = np.empty(-(-stored * (4 + entry) // 8))
    columns = columns.astype(np.int32, copy=False)
    transposed = _transposed(starts, columns, weights, work, threads)
    # transposing sorts the columns; transposing twice sorts those of C
    ordered = starts, columns, weights
    if not ascending:
        ordered = _transposed(*transposed, work, threads)
    del work
    total = float(ordered[2].sum(dtype=np.float64))
    if not total > 0:
        raise DataError(f"no row of the {starts.size - 1} has a neighbor, so there is no affinity.")
    indptr = np.empty_like(starts)
    _native.union_starts(*ordered[:2], *transposed[:2], indptr, threads)
    indices, joint = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], weights.dtype)
    _native.union_sum(*ordered, *transposed, 0.5 / total, indptr, indices, joint, threads)
    return JointAffinities(indptr, indices, joint)


def transposed_rows(
    starts: np.ndarray, columns: np.ndarray, values: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The transpose of a sparse matrix: columns ascend, -1 and the diagonal are passed over."""
    work = np.empty(-(-columns.size * (8 + values.itemsize) // 8))
    return _transposed(starts, columns, values, work, threads)


def _transposed(
    starts: np.ndarray, columns: np.ndarray, values: np.ndarray, work: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    out = np.empty_like(starts), np.empty_like(columns), np.empty_like(values)
    _native.transpose(starts, columns, values, work, *out, threads)
    stored = int(out[0][-1])
    return out[0], out[1][:stored], out[2][:stored]


class ConditionalAffinities(NamedTuple):
    """The p_{j|i} of the neighbors of each row, and the precision beta of each row's Gaussian.

    ``weights`` (n, k) has the order of the distances; each row sums to 1, or to 0 if it has no
    neighbor. ``betas`` (number of perplexities, n), float64, are in units of 1 / distance^2: 0
    where all neighbors weigh the same, infinity where only the nearest weigh.
    """

    weights: np.ndarray
    betas: np.ndarray


def conditional_affinities(
    graph: NeighborGraph | np.ndarray,
    perplexity: float | Sequence[float],
    *,
    threads: int = 1,
    dtype: Any = None,
) -> ConditionalAffinities:
    """The p_{j|i} of each row's neighbors; no row has an influence on another one.

    The entropy is accurate to 1e-7. If more neighbors than the perplexity are at the same least
    distance, no beta attains the perplexity, and they get equal weights. A row with fewer neighbors
    than the perplexity gives all of them equal weights. A few passes over the distances, O(n k).

    Parameters
    ----------
    graph : NeighborGraph or array (n, k) of distances
        Of fitted rows or of new ones; a neighbor with number -1 or at infinity does not exist.
    perplexity : float or sequence of float
        At least 1 and at most k.
    threads : int
        The result does not depend on it.
    dtype : float32, float64 or None
        Type of the weights; None takes that of the distances.
    """
    distances = _known_distances(graph)
    n, k = distances.shape
    perplexities = check_perplexity(perplexity, None, k)
    starts = np.arange(n + 1, dtype=np.int64) * k
    weights, betas = _calibrate(starts, distances, perplexities, threads, dtype)
    return ConditionalAffinities(weights.reshape(n, k), betas)


def joint_affinities(
    graph: Any, perplexity: float | Sequence[float], *, threads: int = 1, dtype: Any = None
) -> JointAffinities:
    """The p_ij of the fitted rows: calibrated, made symmetric, summing to 1. O(n k).

    Parameters
    ----------
    graph : NeighborGraph, or sparse matrix (n, n) of distances
        Every stored entry of a sparse matrix is a neighbor, also a zero, and rows may have
        different numbers of them.
    perplexity : float or sequence of float
        At least 1 and at most the (largest) number of neighbors.
    threads : int
        The result does not depend on it.
    dtype : float32, float64 or None
        Type of the weights; None takes that of the distances.
    """
    if isinstance(graph, NeighborGraph):
        check_fitted_rows(graph, "joint affinities")
        check_perplexity(perplexity, graph.n_points, graph.n_neighbors)
        weights, _ = conditional_affinities(graph, perplexity, threads=threads, dtype=dtype)
        n, k = weights.shape
        starts = np.arange(n + 1, dtype=np.int64) * k
        return symmetrize_affinities(starts, graph.indices.ravel(), weights.ravel(), threads)
    from lowland._engines.graphs.weights import checked_graph  # imports scipy

    A = checked_graph(graph)
    starts = A.indptr.astype(np.int64)
    perplexities = check_perplexity(perplexity, A.shape[0], int(np.diff(starts).max(initial=0)))
    flat, _ = _calibrate(starts, A.data, perplexities, threads, dtype)
    return symmetrize_affinities(starts, A.indices, flat, threads)


def dense_conditional(
    graph: NeighborGraph | np.ndarray, perplexity: float | Sequence[float], *, threads: int = 1
) -> np.ndarray:
    """The p_{j|i} of all pairs as an (n, n) float64 matrix; rows sum to 1, the diagonal is 0.

    ``graph`` is a NeighborGraph (with n - 1 neighbors, if all pairs are to have a weight) or the
    (n, n) matrix of distances, whose diagonal is ignored. O(n^2).
    """
    n = len(graph)
    require_memory(
        4 * 8 * n * n,
        task=f"the affinities of all pairs of {n} rows",
        alternative="use a method on nearest neighbors (TSNE), or fewer rows",
    )
    if not isinstance(graph, NeighborGraph):
        D = np.array(graph, np.float64)
        if D.shape != (n, n):
            raise DataError(f"graph: expected a square matrix of distances; got shape {D.shape}.")
        check_perplexity(perplexity, n)
        np.fill_diagonal(D, np.inf)
        return conditional_affinities(D, perplexity, threads=threads).weights
    weights, _ = conditional_affinities(graph, perplexity, threads=threads, dtype=np.float64)
    C = np.zeros((n, graph.n_points))
    rows, places = np.nonzero(graph.indices >= 0)
    C[rows, graph.indices[rows, places]] = weights[rows, places]
    return C


# --- kernels and checks ----------------------------------------------------------------------


def _calibrate(
    starts: np.ndarray,
    distances: np.ndarray,
    perplexities: tuple[float, ...],
    threads: int,
    dtype: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """The mean over the perplexities of the calibrated distributions, and all betas."""
    own = np.dtype(np.float32 if distances.dtype == np.float32 else np.float64)
    wanted = own if dtype is None else np.dtype(dtype)
    if wanted not in (np.float32, np.float64):
        raise ParameterError(f"dtype={dtype!r} is not allowed; give float32, float64 or None.")
    # never narrower than the distances, which might overflow
    distances = np.ascontiguousarray(distances, np.promote_types(own, wanted)).ravel()
    betas = np.empty((len(perplexities), starts.size - 1))
    weights = part = np.empty_like(distances)
    for scale, perplexity in enumerate(perplexities):
        if scale == 1:
            part = np.empty_like(distances)
        _native.calibrate(starts, distances, np.log(perplexity), part, betas[scale], threads)
        if scale > 0:
            weights += part
    if len(perplexities) > 1:
        weights /= len(perplexities)
    return weights.astype(wanted, copy=False), betas


def _known_distances(graph: NeighborGraph | np.ndarray) -> np.ndarray:
    """Distances >= 0 of the neighbors of each row; infinity where there is none."""
    if isinstance(graph, NeighborGraph):
        missing = graph.indices < 0
        return np.where(missing, np.inf, graph.distances) if missing.any() else graph.distances
    distances = np.asarray(graph)
    if distances.ndim != 2 or distances.dtype.kind not in "fiu":
        raise DataError("graph must be a NeighborGraph or an (n, k) array of distances.")
    if not (distances >= 0).all():  # nor may they be NaN
        wrong = distances[~(distances >= 0)][0]
        raise DataError(f"graph holds the distance {wrong:g}; distances are numbers >= 0.")
    return distances
