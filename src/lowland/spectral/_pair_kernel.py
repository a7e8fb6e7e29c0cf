"""The kernel of all pairs of rows for diffusion maps, and the random walk on it.

    K_ij = exp(-d_ij^2 / eps),    W_ij = f_i K_ij f_j,    P = D^(-1) W,  D = diag(W 1)

If most kernel values vanish, K is a sparse matrix. Else it is an operator: products K V are
computed without storing K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import available_memory, require_memory
from lowland._engines.distances.function_metric import check_symmetric
from lowland._engines.graphs.laplacian import laplacian_product
from lowland._engines.graphs.spectrum import GraphSpectrum, graph_spectrum, laplacian_spectrum
from lowland._engines.graphs.weights import weighted_graph
from lowland._engines.kernels.kernel_operators import (
    GivenKernel,
    Kernel,
    KernelMatrix,
    kernel_matrix,
)
from lowland._engines.linalg.eigen import is_small
from lowland._engines.neighbors.radius import BYTES_PER_EDGE, radius_graph

VANISHED = 40.0  # exp(-40) = 4e-18 changes no sum that contains a 1
SAMPLED_ROWS, SPARSE_SHARE = 64, 0.2

Blocks = Callable[[Any], Iterator[tuple[slice, np.ndarray]]]  # rows -> blocks of distances to all


def pair_kernel(
    rows: Any,
    bandwidth: float,
    metric: Any,
    metric_params: dict[str, Any] | None,
    distances: Blocks,
    run: FitContext,
) -> scipy.sparse.csr_matrix | KernelMatrix:
    """K of all pairs of rows: sparse if few values do not vanish, else an operator.

    ``distances(rows)`` gives blocks of distances of some rows to all rows.
    """
    n = rows.shape[0]
    radius = np.sqrt(VANISHED * bandwidth)
    if _few_pairs_within(radius, rows, distances):
        pairs = radius_graph(
            rows,
            radius,
            metric,
            metric_params=metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )
        return with_diagonal(weighted_graph(pairs, "heat", np.sqrt(bandwidth), least=0.0).W)
    if metric == "euclidean":
        return kernel_matrix(rows, Kernel("rbf", 1 / bandwidth), run.threads)
    require_memory(32 * n * n, task=f"the kernel matrix of {n} rows", alternative="use n_neighbors")
    D = np.vstack([block for _, block in distances(rows)])
    if callable(metric):
        check_symmetric(D, metric)
    D = np.minimum(D, D.T)
    return GivenKernel(np.exp(-(D**2) / bandwidth), run.threads)


def _few_pairs_within(radius: float, rows: Any, distances: Blocks) -> bool:
    """Whether a sparse matrix of the pairs within the radius is worth it, judged from a sample."""
    n = rows.shape[0]
    if is_small(n, 1):
        return False
    sample = rows[:: -(-n // SAMPLED_ROWS)]
    share = float(np.mean([float((radius >= D).mean()) for _, D in distances(sample)]))
    return share <= SPARSE_SHARE and share * n * n * BYTES_PER_EDGE <= available_memory() // 4


def with_diagonal(K: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """K + I: the kernel value of a row with itself is 1."""
    return scipy.sparse.csr_matrix(K + scipy.sparse.identity(K.shape[0], format="csr"))


def walk_of(
    K: scipy.sparse.csr_matrix | KernelMatrix, alpha: float, q: int, run: FitContext
) -> tuple[GraphSpectrum, np.ndarray, np.ndarray]:
    """Leading eigenpairs of the walk P for f = (K 1)^(-alpha), the row sums K 1, and W 1."""
    if scipy.sparse.issparse(K):
        densities = np.asarray(K.sum(axis=1)).ravel()
        factors = _density_factors(densities, alpha)
        W = K.copy()
        W.data *= np.repeat(factors, np.diff(K.indptr)) * factors[K.indices]
        modes, degrees = graph_spectrum(W, q, run)
        return modes, densities, degrees
    n = K.n
    densities = K.times(np.ones((n, 1)))[:, 0]
    factors = _density_factors(densities, alpha)
    factor = factors[:, None]

    def weights_times(V: np.ndarray) -> np.ndarray:
        return factor * K.times(factor * V)

    degrees = weights_times(np.ones((n, 1)))[:, 0]
    trivial = np.sqrt(degrees / degrees.sum())
    L = laplacian_product(weights_times, degrees)
    return laplacian_spectrum(L, trivial, q, run), densities, degrees


def _density_factors(densities: np.ndarray, alpha: float) -> np.ndarray:
    """(K 1)^(-alpha), which must be numbers whose products neither overflow nor vanish."""
    with np.errstate(over="ignore", under="ignore"):
        factors = densities**-alpha
    if not (factors.min() > 1e-140 and factors.max() < 1e140):
        raise ParameterError(
            f"DiffusionMaps: alpha={alpha:g} is too large, because densities of "
            f"{densities.min():.3g} to {densities.max():.3g} to its power are beyond what float64 "
            "can hold; the usual values are 0, 0.5 and 1."
        )
    return factors
