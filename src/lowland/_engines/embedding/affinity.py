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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._core.card import Estimate
from lowland._core.errors import DataError, ParameterError
from lowland._core.memory import require_memory
from lowland._engines.embedding.affinity_matrix import JointAffinities, symmetrize_affinities
from lowland._engines.embedding.perplexity import check_perplexity, default_neighbors
from lowland._engines.neighbors.graph import NeighborGraph, check_fitted_rows

__all__ = [
    "ConditionalAffinities",
    "JointAffinities",
    "check_perplexity",
    "conditional_affinities",
    "default_neighbors",
    "dense_conditional",
    "dense_joint",
    "joint_affinities",
    "joint_affinities_cost",
    "symmetrize_affinities",
]


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
    from lowland._engines.graphs.checking import checked_graph  # imports scipy

    A = checked_graph(graph)
    starts = A.indptr.astype(np.int64)
    perplexities = check_perplexity(perplexity, A.shape[0], int(np.diff(starts).max(initial=0)))
    flat, _ = _calibrate(starts, A.data, perplexities, threads, dtype)
    return symmetrize_affinities(starts, A.indices, flat, threads)


def joint_affinities_cost(n: int, k: int) -> Estimate:
    """Time on two cores and peak memory of :func:`joint_affinities` for k neighbors per row."""
    return Estimate(5e-8 * n * k, 48.0 * n * k)


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


def dense_joint(
    graph: NeighborGraph | np.ndarray, perplexity: float | Sequence[float], *, threads: int = 1
) -> np.ndarray:
    """The p_ij of all pairs as an (n, n) float64 matrix that sums to 1; see dense_conditional."""
    P = dense_conditional(graph, perplexity, threads=threads)
    P = P + P.T
    P /= P.sum()
    return P


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
