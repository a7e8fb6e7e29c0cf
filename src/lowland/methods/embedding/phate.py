"""PHATE: potential of heat-diffusion for affinity-based transition embedding (Moon et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from lowland._base.constraints import Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above, index_of, some_of
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate, Reading
from lowland._engines.distances.dissimilarities import distance_matrix
from lowland._engines.linalg import products
from lowland._engines.neighbors.duplicates import equal_in_graph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland.methods._bases.distances import FLOAT64_ROWS, DistanceReducer
from lowland.methods.embedding import _diffusion as diffusion

SQUARES = 6  # matrices of all pairs of points that are in memory at once
USUAL_LANDMARKS = 2000


class PHATE(DistanceReducer):
    """Potential distances |U_i - U_j|, U = -log(P^t), of a random walk, kept by metric scaling.

    K(x, y) = 1/2 exp(-(d / e(x))^alpha) + 1/2 exp(-(d / e(y))^alpha), with e the distance to the
    k-th neighbor; P = K / (K 1) by rows. The logarithm of the probabilities to be somewhere after
    t steps gives weight to far places, too, so that the map shows local and global structure:
    branches, trajectories and groups, without noise. Use it for gradual processes, such as the
    development of cells. Not for distances in the unit of the data, or for fine neighborhoods,
    which the diffusion smooths away. Cost: neighbors, and O(m^3) for m = min(n, n_landmarks).

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbors k whose distance is the bandwidth of a row (``knn`` of the phate
        package). At most n - 1 are used. A larger value connects the rows better.
    decay : float or None, default=40.0
        Power alpha of the tails of the kernel. A small value gives far rows a weight. None gives
        the unweighted graph of k neighbors.
    n_landmarks : int or None, default=2000
        Number of clusters of rows that more rows than this diffuse through (``n_landmark`` of the
        phate package). None, or at most as many rows, diffuses through the rows themselves.
    t : int or "auto", default="auto"
        Number of steps of the walk. "auto" takes the knee of the von Neumann entropy of P^t,
        t <= 100. A larger value removes more noise and detail.
    gamma : float, default=1.0
        Kind of the potential, from -1 to 1: 1 the logarithm, 0 the square root, -1 P^t itself.
        Below 1 it is U = 2 / (1 - gamma) (P^t)^((1 - gamma) / 2).
    mds : {"metric", "classical", "nonmetric"}, default="metric"
        Which scaling makes the map of the potential distances.
    max_iter : int, default=300
        Maximum number of steps of metric and nonmetric scaling. 0 keeps classical scaling.
    tol : float, default=1e-6
        The scaling stops when a step lowers the loss by less than this share of it.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows. Equal rows share one place.
    t_ : int
        Number of steps in use.
    entropies_ : ndarray of shape (n_powers,)
        Von Neumann entropy of P^t for t = 1, 2 ... 100. It falls fast while noise is removed and
        slowly afterwards.
    eigenvalues_ : ndarray of shape (n_landmarks,)
        Eigenvalues of P, largest first. As many are 1 as the graph has components.
    stress_ : float
        Relative stress of the map of the landmarks, sqrt(sum (delta - d)^2 / sum delta^2), delta
        being the potential distances. That of nonmetric scaling is stress-1.
    stress_per_point_ : ndarray of shape (n_samples,)
        The same sums over the pairs of each row. With landmarks it is the mean over those that the
        row is placed by.
    loss_history_ : ndarray of shape (n_steps,)
        Stress at the start and after each step; it never increases.
    distinct_rows_ : ndarray of shape (n_distinct,)
        Row numbers of the fitted rows, of equal ones the first.
    bandwidths_ : ndarray of shape (n_distinct,)
        Distance of each of them to its k-th neighbor.
    landmarks_ : ndarray of shape (n_distinct,)
        Landmark of each of them: its number, or that of its cluster.
    landmark_map_ : ndarray of shape (n_landmarks, n_components)
        Map of the landmarks.

    Notes
    -----
    One-sided values of the kernel, exp(-(d / e)^alpha), below 1e-4 are 0; all above are found, up
    to 200 000 rows, from where on the neighbor search is approximate. 1e-7 is added to
    probabilities before the logarithm. Equal rows are one point of the graph. The parts of a graph
    that is not connected keep the finite distance that this 1e-7 gives them.

    Landmarks are clusters of 100 leading diffusion coordinates by k-means; they are split where
    they join parts of the graph, so that there may be some more of them. The walk goes from a
    cluster to a row and on to a cluster, and a row lies at the mean of the landmarks that one step
    of the walk leads to. So does a new row, by its kernel with the fitted rows, each new row by
    itself; one that equals a fitted row gets its place. Without landmarks it is the mean of the
    places of fitted rows.

    Eigenvalues of P enter the entropy. The entropy of the phate package is that of the singular
    values, so that its t may differ: by one to three in small examples, by far more with landmarks,
    where it also depends on the seed. The knee is where two straight lines fit the curve best.

    References
    ----------
    Moon, van Dijk, Wang et al. (2019), Visualizing structure and transitions in high-dimensional
    biological data, Nature Biotechnology 37, doi:10.1038/s41587-019-0336-3.

    Examples
    --------
    >>> from lowland.datasets import branching_tree
    >>> tree = branching_tree(400, random_state=0)
    >>> PHATE(random_state=0).fit_transform(tree.X).shape
    (400, 2)
    """

    n_neighbors: int = param(Integer(1), default=5)
    decay: float | None = param(Null() | Real(0), default=40.0)
    n_landmarks: int | None = param(Null() | Integer(2), default=USUAL_LANDMARKS)
    t: int | str = param(OneOf("auto") | Integer(1), default="auto")
    gamma: float = param(Real(-1, 1, closed="both"), default=1.0)
    mds: str = param(OneOf("metric", "classical", "nonmetric"), default="metric")
    max_iter: int = param(Integer(0), default=300)
    tol: float = param(Real(0, closed="left"), default=1e-6)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    t_: int = fitted(type=int)
    entropies_: np.ndarray = fitted("n_powers")
    eigenvalues_: np.ndarray = fitted("n_landmarks")
    stress_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")
    n_iter_: int = fitted(type=int)
    distinct_rows_: np.ndarray = fitted("n_distinct", type=int, meaning=some_of("n_samples"))
    bandwidths_: np.ndarray = fitted("n_distinct", meaning=above(0))
    landmarks_: np.ndarray = fitted("n_distinct", type=int, meaning=index_of("n_landmarks"))
    landmark_map_: np.ndarray = fitted("n_landmarks", "n_components")

    card = Card(
        keeps="how a random walk spreads from each row, near and far: branches and transitions",
        use="for gradual processes with branches, such as the development of cells",
        avoid="to judge distances in the unit of the data, or the finest neighborhoods",
        cost="neighbors and O(m^3) time, O(m^2) memory for m = min(n, 2000) landmarks",
    )
    reference = "Moon et al. (2019)"
    reading = Reading(
        axes="The axes have no meaning. Only distances can be read.",
        distances="Rows are near if random walks from them spread over the same rows. Long "
        "distances have a meaning, too: they show how unlikely a random walk is to get from one "
        "row to another.",
        gaps="A gap is a place that few rows connect. Parts without any connection get a distance "
        "that is set by the method.",
        sizes="Branches are as long as the walk needs for them, not as in the data. The diffusion "
        "removes noise, so that branches are thinner than in the data.",
        scale="The axes have the unit of the potential, logarithms of probabilities.",
    )
    wants_pca = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: measured on 300 to 40 000 rows."""
        m = min(n, USUAL_LANDMARKS)
        points = Estimate(0.02 + 2e-10 * m**3 + 1e-7 * m * m, 8 * SQUARES * m * m)
        clusters = Estimate(7e-5 * n, 3500 * n) if n > m else Estimate(0.0, 0.0)
        neighbors = neighbor_graph_cost(n, p, diffusion.FIRST * 5)
        return (neighbors + clusters + points).holding(16 * n * p + 600 * n)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        kernel, group = self._kernel(X, run)
        landmark = self._landmarks(kernel, run)
        P = diffusion.operator_of(kernel.K, landmark, run)
        self.eigenvalues_, self.entropies_ = P.values, diffusion.entropies_of(P.values)
        self.t_ = diffusion.knee(self.entropies_) if self.t == "auto" else int(self.t)
        U = diffusion.potential(P, self.t_, float(self.gamma), run)
        D = distance_matrix(
            U,
            "euclidean",
            None,
            np.float64 if len(U) <= FLOAT64_ROWS else np.float32,
            owner=type(self).__name__,
            advice="take fewer n_landmarks",
            threads=run.threads,
            monitor=run.monitor,
        )
        del U, P

        def extended(points: np.ndarray) -> np.ndarray:
            """What is known of the landmarks (m, q), of all rows."""
            if landmark is not None:
                points = products.matrix_times(_walk(kernel.K), run.threads)(points[landmark])
            return points[group]

        found = diffusion.map_of_distances(
            D,
            int(self.n_components),
            self.mds,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            shown=lambda Y: extended(Y).astype(X.dtype),
            run=run,
        )
        self.landmark_map_, self.bandwidths_ = found.Y, kernel.bandwidths
        self.landmarks_ = np.arange(len(found.Y)) if landmark is None else landmark
        self.embedding_ = extended(found.Y).astype(X.dtype)
        self.loss_history_, self.n_iter_ = found.losses, len(found.losses) - 1
        self.stress_ = float(found.losses[-1])
        self.stress_per_point_ = extended(found.per_point[:, None])[:, 0]
        self.fitted_rows_ = None if self._has_distances else X.copy()
        return self.embedding_.copy()

    def _kernel(self, X: Any, run: FitContext) -> tuple[diffusion.Kernel, np.ndarray]:
        """The kernel of the different rows, and which of them each row is."""
        n = X.shape[0]
        decay = self._decay(n - 1)
        near = self._nearest_others(X, min(diffusion.FIRST * decay.k, n - 1), run)
        equal = equal_in_graph(near)
        if equal is None:
            self.distinct_rows_ = np.arange(n)
            return decay.of_rows(X, near, run), self.distinct_rows_
        self.distinct_rows_ = equal.first
        m = len(equal.first)
        if m == 1:
            return diffusion.Kernel(scipy.sparse.identity(1, format="csr"), np.ones(1)), equal.group
        X, decay = self._part_of(X, equal.first), self._decay(m - 1)
        near = self._nearest_others(X, min(diffusion.FIRST * decay.k, m - 1), run)
        return decay.of_rows(X, near, run), equal.group

    def _decay(self, most: int) -> diffusion.AlphaDecay:
        """The kernel; a row has at most so many neighbors."""
        k, alpha = (
            min(int(self.n_neighbors), most),
            None if self.decay is None else float(self.decay),
        )
        return diffusion.AlphaDecay(k, alpha, self.metric, self.metric_params)

    def _landmarks(self, kernel: diffusion.Kernel, run: FitContext) -> np.ndarray | None:
        """The landmark of each different row; None if all of them are landmarks."""
        n, most = len(kernel.bandwidths), self.n_landmarks
        m = n if most is None else min(n, int(most))
        _require_squares(m)
        if m == n:
            return None
        landmark = diffusion.landmarks_of(kernel.K, m, run)
        _require_squares(int(landmark.max()) + 1)
        return landmark

    # --- new rows -----------------------------------------------------------------------------

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        decay = self._decay(len(self.distinct_rows_))
        places = self.landmark_map_[self.landmarks_]
        K = decay.of_new_rows(np.ascontiguousarray(D[:, self.distinct_rows_]), self.bandwidths_)
        Z = products.matrix_times(_walk(K), run.threads)(places)
        equal = D == 0
        known = equal.any(axis=1)
        Z[known] = self.embedding_[equal[known].argmax(axis=1)]
        return Z


def _require_squares(m: int) -> None:
    require_memory(
        8 * SQUARES * m * m,
        task=f"PHATE with {m} landmarks",
        alternative=f"take fewer, such as n_landmarks={min(m // 2, USUAL_LANDMARKS)}",
    )


def _walk(K: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """One step of the walk: K with rows of sum 1."""
    data = K.data / np.repeat(diffusion.row_sums(K), np.diff(K.indptr))
    return scipy.sparse.csr_matrix((data, K.indices, K.indptr), shape=K.shape)
