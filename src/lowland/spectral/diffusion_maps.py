"""Diffusion maps (Coifman & Lafon 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Integer, Null, Real
from lowland._core.context import FitContext
from lowland._core.errors import DataError
from lowland._core.memory import available_memory, require_memory
from lowland._core.params import fitted, param
from lowland._engines.graphs.laplacian import laplacian_product
from lowland._engines.graphs.spectrum import GraphSpectrum, graph_spectrum, laplacian_spectrum
from lowland._engines.graphs.weights import median_length, weighted_graph
from lowland._engines.kernels.kernel_operators import (
    GivenKernel,
    Kernel,
    KernelMatrix,
    kernel_matrix,
)
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import is_small
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.radius import BYTES_PER_EDGE, radius_graph
from lowland.spectral._graph import GraphReducer, float_of

__all__ = ["DiffusionMaps"]

SCALE_NEIGHBORS = 10  # the neighbor whose distance is the scale of the dense kernel
VANISHED = 40.0  # exp(-40) = 4e-18 changes no sum that has a 1 in it
SEEN_ROWS, FEW_PAIRS = 64, 0.2


class DiffusionMaps(GraphReducer):
    """Coordinates lambda^t psi of a random walk over the rows, P psi = lambda psi.

    K = exp(-d^2 / eps) is divided by the density, K_ij / (q_i q_j)^alpha with q = K 1, and by the
    sums of its rows, which gives P. Distances in the map (of all coordinates) are the diffusion
    distances sum_k (p_t(i, k) - p_t(j, k))^2 / pi_k: how differently two walkers are spread after t
    steps. With alpha = 1 the density of the rows drops out and only the shape of the surface is
    left. Use it for gradual processes: trajectories, branchings, slow variables of a simulation.
    Not for isolated rows or clusters, which take an axis each. Cost: O(n^2 p) time for each of
    some ten products with kernel values that need not be stored; with neighbors O(n k).

    Parameters
    ----------
    n_neighbors : int or None, default=None
        None: the kernel of all pairs. A number: only of pairs where one is among so many nearest
        of the other (and of each row with itself), for many rows.
    alpha : float, default=1.0
        How much of the density is divided out: 0 none (the graph Laplacian), 0.5 (Fokker-Planck),
        1 all (Laplace-Beltrami).
    bandwidth : float or None, default=None
        eps. None: the squared median distance to the 10th neighbor, or with ``n_neighbors`` the
        squared median length of the edges.
    time : float, default=1.0
        t; the larger, the less the coordinates after the first ones count.
    metric : str or function, default="euclidean"
        Distance between rows, or "precomputed": X holds all distances or, with ``n_neighbors``,
        some of them as a sparse matrix. X may then also be a ``NeighborGraph``.
    on_disconnected : {"bridge", "largest", "raise"}, default="bridge"
        With ``n_neighbors``, what to do with a graph in pieces: join them by the shortest edges
        there are; map the largest and place the other rows like new ones (NaN where only a graph
        was given); refuse.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The map, lambda^t psi.
    eigenvalues_ : ndarray of shape (n_components,)
        lambda, largest first; the trivial 1 is left out.
    right_vectors_ : ndarray of shape (n_kept, n_components)
        psi, of mean 0 and mean square 1 under the stationary distribution.
    stationary_ : ndarray of shape (n_kept,)
        pi, where the walk ends.
    densities_ : ndarray of shape (n_kept,)
        q.
    bandwidth_ : float
        eps in use.
    n_connected_components_, excluded_
        Pieces the graph was in, 1 for the kernel of all pairs; rows that had no say in the map.
    residual_, rows_
        The largest |S v - lambda v| relative to the largest 1 - lambda, S the symmetric form of P;
        what new rows are compared with.

    Notes
    -----
    New rows are placed by Nystroem's formula, psi(x) = lambda^(-1) sum_j p(x, x_j) psi(x_j), which
    for the kernel of all pairs gives fitted rows their own places; with neighbors equal rows get
    one place, the mean of theirs, and a new row equal to them gets it too. Edges weigh at least
    1e-9, so that a long one is still an edge. The signs are fixed by the entry of pi^(1/2) psi that
    is largest.

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

    n_neighbors: int | None = param(
        Null() | Integer(1), default=None, doc="neighbors with a kernel value; None: all rows"
    )
    alpha: float = param(
        Real(0, closed="left"), default=1.0, doc="how much of the density is divided out"
    )
    bandwidth: float | None = param(
        Null() | Real(0), default=None, doc="eps of exp(-d^2 / eps); None: from near neighbors"
    )
    time: float = param(Real(0, closed="left"), default=1.0, doc="steps of the random walk")

    right_vectors_: np.ndarray = fitted("n_kept", "n_components", doc="psi, eigenvectors of P")
    stationary_: np.ndarray = fitted("n_kept", doc="pi, the stationary distribution of P")
    densities_: np.ndarray = fitted("n_kept", doc="q, sums of kernel values")
    bandwidth_: float = fitted(doc="eps in use")

    card = Card(
        keeps="how easily a random walk gets from one row to another",
        use="for gradual processes: trajectories, branchings, slow variables of a simulation",
        avoid="when the bandwidth is a guess: look at several; isolated rows take axes",
        cost="O(n^2 p) time, O(n p) memory if need be; with n_neighbors O(n k)",
    )
    reference = "Coifman & Lafon (2006)"
    aliases = ("diffusion_map",)
    reading = GraphReducer.reading._replace(
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
        rows = self._as_searched(X)
        if self.n_neighbors is None:
            modes = self._of_all_pairs(rows, run)
        else:
            modes = self._of_neighbors(rows, int(self.n_neighbors), run)
        self.eigenvalues_, self.residual_ = modes.values, modes.residual
        Y = self.right_vectors_ * _power(self.eigenvalues_, float(self.time))
        return self._with_excluded(Y, rows, float_of(X), run)

    def _of_all_pairs(self, rows: Any, run: FitContext) -> GraphSpectrum:
        """Modes of P for the kernel of all pairs; sets what belongs to single rows."""
        if self._is_graph(rows):
            raise DataError(
                "DiffusionMaps: X holds distances of some pairs, but n_neighbors=None asks for the "
                "kernel of all; give n_neighbors, or all distances."
            )
        n = rows.shape[0]
        q = self._check_axes(n, n - 1)
        self._remember_rows(rows)
        for _, distances in self._distances_to_fitted(rows[:1], run):
            self._check_squarable(distances)
        self.bandwidth_ = float(self.bandwidth or self._scale(rows, run))
        near = self._kernel_of_near_pairs(rows, run)
        if near is not None:
            return self._of_matrix(near, q, run)
        K = self._kernel_of(rows, run)
        self.densities_ = K.times(np.ones((n, 1)))[:, 0]
        divided = self.densities_ ** -float(self.alpha)
        weights = divided * K.times(divided[:, None])[:, 0]
        self.stationary_ = weights / weights.sum()
        trivial = np.sqrt(self.stationary_)

        def divided_kernel(V: np.ndarray) -> np.ndarray:
            return divided[:, None] * K.times(divided[:, None] * V)

        modes = laplacian_spectrum(laplacian_product(divided_kernel, weights), trivial, q, run)
        self.right_vectors_ = modes.vectors / trivial[:, None]
        return modes

    def _remember_rows(self, rows: Any) -> None:
        self.n_connected_components_, self.excluded_ = 1, np.empty(0, np.int64)
        self.rows_ = None if self.metric == "precomputed" else rows.copy()

    def _scale(self, rows: Any, run: FitContext) -> float:
        k = min(SCALE_NEIGHBORS, rows.shape[0] - 1)
        near = self._search(rows, k, run)
        return median_length(near.distances[:, -1]) ** 2

    def _kernel_of_near_pairs(self, rows: Any, run: FitContext) -> scipy.sparse.csr_matrix | None:
        """All kernel values that do not vanish beside the 1 of a row with itself, if these are few.

        Whether they are is seen from some rows.
        """
        n = rows.shape[0]
        if is_small(n, 1):
            return None
        radius = np.sqrt(VANISHED * self.bandwidth_)
        some = rows[:: -(-n // SEEN_ROWS)]
        seen = [float((radius >= D).mean()) for _, D in self._distances_to_fitted(some, run)]
        share = float(np.mean(seen))
        if share > FEW_PAIRS or share * n * n * BYTES_PER_EDGE > available_memory() // 4:
            return None
        metric = {"metric": self._distance(), "metric_params": self.metric_params}
        pairs = radius_graph(rows, radius, threads=run.threads, monitor=run.monitor, **metric)
        return weighted_graph(pairs, "heat", float(np.sqrt(self.bandwidth_)), least=0.0).W

    def _kernel_of(self, rows: Any, run: FitContext) -> KernelMatrix:
        """exp(-d^2 / eps) of all pairs: tiles made on the fly where distances are Euclidean."""
        n = rows.shape[0]
        if self._distance() == "euclidean":
            return kernel_matrix(rows, Kernel("rbf", 1 / self.bandwidth_), run.threads)
        require_memory(
            32 * n * n, task=f"the kernel matrix of {n} rows", alternative="use n_neighbors"
        )
        D = np.vstack([part for _, part in self._distances_to_fitted(rows, run)])
        D = np.minimum(D, D.T)
        return GivenKernel(np.exp(-(D**2) / self.bandwidth_), run.threads)

    def _of_neighbors(self, rows: Any, k: int, run: FitContext) -> GraphSpectrum:
        """The same for the kernel of neighbors and of each row with itself."""
        joined = self._in_one_piece(self._neighbor_distances(rows, k, run), rows, run)
        n, edges = joined.kept.size, joined.graph
        q = self._check_axes(n, n - 1)
        self._check_squarable(edges.data)
        width = None if self.bandwidth is None else float(np.sqrt(self.bandwidth))
        others, width = weighted_graph(edges, "heat", width)
        assert width is not None
        self.bandwidth_ = float(self.bandwidth or width**2)
        modes = self._of_matrix(others, q, run)
        self.right_vectors_ = at_common_place(self.right_vectors_, equal_in_graph(edges))
        return modes

    def _of_matrix(self, others: scipy.sparse.csr_matrix, q: int, run: FitContext) -> GraphSpectrum:
        """The same for the kernel values of a row with others; with itself it is 1."""
        K = scipy.sparse.csr_matrix(others + scipy.sparse.identity(others.shape[0], format="csr"))
        self.densities_ = np.asarray(K.sum(axis=1)).ravel()
        divided = self.densities_ ** -float(self.alpha)
        K.data *= np.repeat(divided, np.diff(K.indptr)) * divided[K.indices]
        modes, sums = graph_spectrum(K, q, run)
        self.stationary_ = sums / sums.sum()
        self.right_vectors_ = modes.vectors / np.sqrt(self.stationary_)[:, None]
        return modes

    # --- new rows -----------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        steps = float(self.time) - 1  # one of t is done by the sum
        places = self.right_vectors_ * _power(self.eigenvalues_, steps)
        if self.n_neighbors is None:
            Z = np.empty((X.shape[0], places.shape[1]))
            for some, D in self._distances_to_fitted(X, run):
                p = self._steps_to(D, self.densities_)
                Z[some] = products.times(p, np.zeros(len(places)), places, run.threads)
            return Z.astype(float_of(X), copy=False)
        near = self._nearest_fitted(X, int(self.n_neighbors), run)
        p = self._steps_to(near.distances, self.densities_[near.indices])
        Z = np.zeros((len(near), places.shape[1]))
        for j in range(near.n_neighbors):
            Z += p[:, j, None] * places[near.indices[:, j]]
        return self._at_home(Z, near.to_csr()).astype(float_of(X), copy=False)

    def _steps_to(self, distances: np.ndarray, densities: np.ndarray) -> np.ndarray:
        """p(x, x_j) = k(x, x_j) q_j^(-alpha) / its sum over j; the density at x cancels."""
        exponents = -self._beyond_nearest(distances, self.bandwidth_)
        exponents = exponents - float(self.alpha) * np.log(densities)
        p = np.exp(exponents - exponents.max(axis=1, keepdims=True))  # far rows keep a neighbor
        return p / p.sum(axis=1, keepdims=True)


def _power(values: np.ndarray, t: float) -> np.ndarray:
    """lambda^t, and 0 where there is no such number: eigenvalues 0 and below."""
    whole = t == int(t)
    real = np.abs(values) > 1e-12 if whole else values > 1e-12
    return np.where(real, np.where(real, values, 1.0) ** t, float(t == 0))
