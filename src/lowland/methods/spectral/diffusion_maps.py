"""Diffusion maps (Coifman & Lafon 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._base.constraints import Integer, Null, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import available_memory, require_memory
from lowland._base.models.checks import above, at_least
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._engines.distances.metrics import check_symmetric
from lowland._engines.graphs import laplacian
from lowland._engines.graphs.weights import median_length, weighted_graph
from lowland._engines.kernels import kernel_operators as kernels
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import is_small
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.radius import BYTES_PER_EDGE, radius_graph
from lowland.methods._bases.graphs import GraphEmbedding, map_dtype

# The kernel of all pairs of rows for diffusion maps, and the random walk on it.
#
#     K_ij = exp(-d_ij^2 / eps),    W_ij = f_i K_ij f_j,    P = D^(-1) W,  D = diag(W 1)
#
# If most kernel values vanish, K is a sparse matrix. Else it is an operator: products K V are
# computed without storing K.


VANISHED = 40.0  # exp(-40) = 4e-18 changes no sum that contains a 1
SAMPLED_ROWS, SPARSE_SHARE = 64, 0.2


def with_diagonal(K: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """K + I: the kernel value of a row with itself is 1."""
    return scipy.sparse.csr_matrix(K + scipy.sparse.identity(K.shape[0], format="csr"))


def walk_of(
    K: scipy.sparse.csr_matrix | kernels.KernelMatrix, alpha: float, q: int, run: FitContext
) -> tuple[laplacian.GraphSpectrum, np.ndarray, np.ndarray]:
    """Leading eigenpairs of the walk P for f = (K 1)^(-alpha), the row sums K 1, and W 1."""
    if scipy.sparse.issparse(K):
        densities = np.asarray(K.sum(axis=1)).ravel()
        factors = _density_factors(densities, alpha)
        W = K.copy()
        W.data *= np.repeat(factors, np.diff(K.indptr)) * factors[K.indices]
        modes, degrees = laplacian.graph_spectrum(W, q, run)
        return modes, densities, degrees
    n = K.n
    densities = K.times(np.ones((n, 1)))[:, 0]
    factors = _density_factors(densities, alpha)
    factor = factors[:, None]

    def weights_times(V: np.ndarray) -> np.ndarray:
        return factor * K.times(factor * V)

    degrees = weights_times(np.ones((n, 1)))[:, 0]
    trivial = np.sqrt(degrees / degrees.sum())
    L = laplacian.laplacian_product(weights_times, degrees)
    return laplacian.laplacian_spectrum(L, trivial, q, run), densities, degrees


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


SCALE_NEIGHBORS = 10  # the default bandwidth follows from the distance to this neighbor


class DiffusionMaps(GraphEmbedding):
    """Coordinates lambda^t psi of a random walk over the rows, P psi = lambda psi.

    K = exp(-d^2 / eps) is divided by the density, W_ij = K_ij / (q_i q_j)^alpha with q = K 1, and
    P = W / (W 1) by rows. Distances in the map (of all coordinates) are the diffusion distances
    sum_k (p_t(i, k) - p_t(j, k))^2 / pi_k: how much two random walks from i and j differ after t
    steps. With alpha = 1 the density of the rows cancels and only the shape of the surface is left.
    Use it for gradual processes: trajectories, branchings, slow variables of a simulation. Not for
    data with isolated rows or clusters, which take one axis each. Cost: O(n^2 p) time for each of
    about ten products with a kernel matrix that is not stored; with ``n_neighbors`` O(n k).

    Parameters
    ----------
    n_neighbors : int or None, default=None
        Number of neighbors with a kernel value. None uses the kernel of all pairs. With a number,
        the kernel value of two rows is 0 unless one is among so many nearest of the other. X may
        then also be a ``NeighborGraph``.
    alpha : float, default=1.0
        Power of the density that is divided out. 0 gives the graph Laplacian, 0.5 the
        Fokker-Planck operator, 1 the Laplace-Beltrami operator.
    bandwidth : float or None, default=None
        Bandwidth eps of the kernel. None takes the squared median distance to the 10th neighbor,
        or with ``n_neighbors`` the squared median length of the edges.
    time : float, default=1.0
        Number of steps t of the random walk. A larger value shrinks the later coordinates.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, lambda^t psi. Excluded rows are NaN if X was a graph.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues lambda, largest first, without the trivial 1.
    residual_ : float
        Largest |S v - lambda v|, relative to the largest 1 - lambda. S is the symmetric form of P.
    right_vectors_ : ndarray of shape (n_kept, n_components)
        Right eigenvectors psi, with mean 0 and mean square 1 under the stationary distribution.
    stationary_ : ndarray of shape (n_kept,)
        Stationary distribution pi of the walk.
    densities_ : ndarray of shape (n_kept,)
        Density q, the sum of the kernel values of each row.
    bandwidth_ : float
        Bandwidth in use.

    Notes
    -----
    New rows are placed by Nystroem's formula, psi(x) = lambda^(-1) sum_j p(x, x_j) psi(x_j). For
    the kernel of all pairs it gives fitted rows their own places. With ``n_neighbors`` equal rows
    get one place, the mean of theirs, and so does a new row equal to them. Edges weigh at least
    1e-9, so that long edges keep the graph connected. The sign of an axis makes the largest entry
    of pi^(1/2) psi positive.

    References
    ----------
    Coifman & Lafon (2006), Diffusion maps, Applied and Computational Harmonic Analysis 21,
    doi:10.1016/j.acha.2006.04.006; the same authors, ibid., Geometric harmonics, on new rows.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> DiffusionMaps(2).fit_transform(swiss_roll(400, random_state=0).X).shape
    (400, 2)
    """

    n_neighbors: int | None = param(Null() | Integer(1), default=None)
    alpha: float = param(Real(0, closed="left"), default=1.0)
    bandwidth: float | None = param(Null() | Real(0), default=None)
    time: float = param(Real(0, closed="left"), default=1.0)

    eigenvalues_: np.ndarray = fitted("n_components")
    residual_: float = fitted()
    right_vectors_: np.ndarray = fitted("n_kept", "n_components")
    stationary_: np.ndarray = fitted("n_kept", meaning=at_least(0))
    densities_: np.ndarray = fitted("n_kept", meaning=above(0))
    bandwidth_: float = fitted(meaning=above(0))

    card = Card(
        keeps="how easily a random walk gets from one row to another",
        use="for gradual processes: trajectories, branchings, slow variables of a simulation",
        avoid="when the bandwidth is a guess: look at several; isolated rows take axes",
        cost="O(n^2 p) time, O(n p) memory if need be; with n_neighbors O(n k)",
    )
    reference = "Coifman & Lafon (2006)"
    aliases = ("diffusion_map",)
    reading = GraphEmbedding.reading._replace(
        distances="Distances in the map are diffusion distances: two rows are near if random walks "
        "from them spread over the same rows.",
        sizes="Sizes follow the random walk, not the density of the rows when alpha = 1.",
        scale="Axis j is multiplied by its eigenvalue to the power t, so later axes are shorter.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        return Estimate(0.02 + 4e-9 * n * n * (1 + p / 50), 8 * n * (p + 400) + min(4 * n * n, 2e9))

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        if self.n_neighbors is not None:
            return super()._fit(X, y, run)
        if self._is_graph(X):
            raise DataError(
                "DiffusionMaps: X holds the distances of some pairs, but n_neighbors=None needs "
                "all; give n_neighbors, or all distances."
            )
        self.n_connected_components_ = 1
        self._keep_rows(X, np.arange(X.shape[0]))
        return self._with_excluded(self._embed_all_pairs(X, run), X, run)

    def _embed_all_pairs(self, X: Any, run: FitContext) -> np.ndarray:
        """The map from the kernel values of all pairs of rows."""
        n = X.shape[0]
        self._check_axes(n, n - 1)
        if self.bandwidth is None:
            near = self._neighbors(X, min(SCALE_NEIGHBORS, n - 1), run)
            self.bandwidth_ = median_length(near.distances[:, -1]) ** 2
        else:
            self.bandwidth_ = float(self.bandwidth)
        self._diffuse(self._pair_kernel(X, run), run)
        return self._coordinates(float(self.time))

    def _pair_kernel(
        self, X: Any, run: FitContext
    ) -> scipy.sparse.csr_matrix | kernels.KernelMatrix:
        """K of all pairs of rows: sparse if few values do not vanish, else an operator."""
        n, metric, radius = X.shape[0], self._graph_metric, np.sqrt(VANISHED * self.bandwidth_)
        if self._few_pairs_within(radius, X, run):
            params = {"metric_params": self.metric_params, "monitor": run.monitor}
            pairs = radius_graph(X, radius, metric, threads=run.threads, **params)
            width = np.sqrt(self.bandwidth_)
            return with_diagonal(weighted_graph(pairs, "heat", width, least=0.0).W)
        if metric == "euclidean":
            return kernels.kernel_matrix(X, kernels.Kernel("rbf", 1 / self.bandwidth_), run.threads)
        task = f"the kernel matrix of {n} rows"
        require_memory(32 * n * n, task=task, alternative="use n_neighbors")
        D = np.vstack([block for _, block in self._distances_to_fitted(X, run)])
        if callable(metric):
            check_symmetric(D, metric)
        D = np.minimum(D, D.T)
        return kernels.GivenKernel(np.exp(-(D**2) / self.bandwidth_), run.threads)

    def _few_pairs_within(self, radius: float, X: Any, run: FitContext) -> bool:
        """Whether a sparse matrix of the pairs within the radius is worth it, by a sample."""
        n = X.shape[0]
        if is_small(n, 1):
            return False
        blocks = self._distances_to_fitted(X[:: -(-n // SAMPLED_ROWS)], run)
        share = float(np.mean([float((radius >= D).mean()) for _, D in blocks]))
        affordable = available_memory() // 4
        return share <= SPARSE_SHARE and share * n * n * BYTES_PER_EDGE <= affordable

    def _embed(self, graph: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        """The map from the kernel values of neighbors, and of each row with itself."""
        self._check_axes(graph.shape[0], graph.shape[0] - 1)
        self.bandwidth_ = float(self.bandwidth or median_length(graph.data) ** 2)
        K = weighted_graph(graph, "heat", float(np.sqrt(self.bandwidth_))).W
        self._diffuse(with_diagonal(K), run)
        self.right_vectors_ = at_common_place(self.right_vectors_, equal_in_graph(graph))
        return self._coordinates(float(self.time))

    def _diffuse(self, K: scipy.sparse.csr_matrix | kernels.KernelMatrix, run: FitContext) -> None:
        """Set lambda, psi, pi and q of the walk on the kernel K."""
        modes, self.densities_, degrees = walk_of(K, float(self.alpha), int(self.n_components), run)
        self.eigenvalues_, self.residual_ = modes.values, modes.residual
        self.stationary_ = degrees / degrees.sum()
        self.right_vectors_ = modes.vectors / np.sqrt(self.stationary_)[:, None]

    def _coordinates(self, t: float) -> np.ndarray:
        """lambda^t psi; eigenvalues without a t-th power (0 and below) count as 0."""
        values = self.eigenvalues_
        has_power = np.abs(values) > 1e-12 if t == int(t) else values > 1e-12
        powers = np.where(has_power, np.where(has_power, values, 1.0) ** t, float(t == 0))
        return self.right_vectors_ * powers

    # --- new rows -----------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        if self.n_neighbors is not None:
            return super()._transform(X, run)
        places = self._coordinates(float(self.time) - 1)
        Z = np.empty((X.shape[0], places.shape[1]))
        for rows, D in self._distances_to_fitted(X, run):
            p = self._transitions(D, self.densities_)
            Z[rows] = products.times(p, np.zeros(len(places)), places, run.threads)
        return Z.astype(map_dtype(X), copy=False)

    def _place(self, links: Any, run: FitContext) -> np.ndarray:
        p = self._transitions(links.distances, self.densities_[links.indices])
        return laplacian.weighted_sum(p, links.indices, self._coordinates(float(self.time) - 1))

    def _transitions(self, distances: np.ndarray, densities: np.ndarray) -> np.ndarray:
        """p(x, x_j) = k(x, x_j) q_j^(-alpha) / its sum over j; the density at x cancels.

        The sum over j is one step of the walk, so that t - 1 steps are left.
        """
        exponents = laplacian.heat_exponents(distances, self.bandwidth_)
        exponents = exponents - float(self.alpha) * np.log(densities)
        p = np.exp(exponents - exponents.max(axis=1, keepdims=True))  # avoids underflow of all
        return p / p.sum(axis=1, keepdims=True)
