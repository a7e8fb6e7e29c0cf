"""Isomap (Tenenbaum, de Silva & Langford 2000), and with landmarks (de Silva & Tenenbaum 2003)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.constraints import Integer, Null, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import available_memory, require_memory
from lowland._base.models.checks import at_least
from lowland._base.monitor import Monitor
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._engines.graphs.geodesics import shortest_path_blocks, shortest_paths
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import BLOCK_WIDTH, LargestPairs, is_small, largest_eigenpairs
from lowland._engines.linalg.products import CenteredOperator, double_center
from lowland._engines.neighbors.radius import radius_graph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland._engines.stress.classical_scaling import gower_placement
from lowland.methods._bases.graphs import GeodesicEmbedding

# The matrix of squared geodesic distances as a linear operator.
#
#     A_ij = d(i, j)^2,    d the length of the shortest path from i to j
#
# The matrix is symmetric and is kept as tiles of its upper half, n^2 / 2 numbers. Where these do
# not fit into memory, the distances are computed again for every product, a block of rows at a
# time.


BLOCK_BYTES = 1 << 26  # of distances that are computed at a time


class GeodesicSquares:
    """A of a connected graph; ``kept`` states whether it is kept or computed for each product.

    Attributes
    ----------
    row_sums : ndarray of shape (n,)
        A 1. This and the next two are known after the first pass over the distances.
    sum_of_squares : float
        The sum of A_ij^2.
    sampled : ndarray of shape (n_sampled, n)
        Distances (not squared) from the rows ``sample``.
    """

    def __init__(
        self, graph: Any, dtype: Any, sample: np.ndarray, threads: int, monitor: Monitor
    ) -> None:
        self.n, self.dtype = graph.shape[0], np.dtype(dtype)
        self.graph, self.threads, self.monitor = graph, threads, monitor
        self.row_sums, self.sum_of_squares = np.zeros(self.n), 0.0
        self.sampled = np.empty((sample.size, self.n), dtype)
        self._place = np.full(self.n, -1)  # of a row in the sample
        self._place[sample] = np.arange(sample.size)
        self._known = False
        single = self.dtype == np.float32
        self._side = _native.TILE_SIDE_FLOAT32 if single else _native.TILE_SIDE_FLOAT64
        groups = -(-self.n // self._side)
        shape = (groups * (groups + 1) // 2, self._side, self._side)
        self.kept = int(np.prod(shape)) * self.dtype.itemsize <= available_memory() // 2
        self._tiles = self._filled(shape) if self.kept else None

    def times(self, V: np.ndarray) -> np.ndarray:
        """A V in float64, up to the rounding of ``dtype``."""
        out = np.empty(V.shape)
        if self._tiles is None:
            for rows, squares in self._squares():
                out[rows] = products.times(squares, np.zeros(self.n), V, self.threads)
            return out
        V = np.ascontiguousarray(V, dtype=self.dtype)
        _native.symmetric_times(self._tiles, V, out, self.threads)
        return out

    def _filled(self, shape: tuple[int, int, int]) -> np.ndarray:
        """Tile (I, J), I <= J, at place I g - I (I - 1) / 2 + J - I of g groups of rows."""
        side = self._side
        groups = -(-self.n // side)
        tiles = np.zeros(shape, self.dtype)
        padded = np.zeros(groups * side, self.dtype)
        in_tiles = padded.reshape(groups, side)
        for rows, squares in self._squares():
            for row, values in zip(rows, squares, strict=True):
                I, at = divmod(int(row), side)  # noqa: E741
                first = I * groups - I * (I - 1) // 2
                padded[: self.n] = values
                tiles[first : first + groups - I, at] = in_tiles[I:]
        return tiles

    def _squares(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The rows of A by blocks: their numbers and values."""
        affordable = min(BLOCK_BYTES, available_memory() // 8) // (self.n * self.dtype.itemsize)
        lanes = _native.PATH_LANES
        for rows, distances in shortest_path_blocks(
            self.graph,
            threads=self.threads,
            monitor=self.monitor,
            dtype=self.dtype,
            block_rows=max(1, affordable // lanes) * lanes,
        ):
            wanted = self._place[rows] >= 0
            self.sampled[self._place[rows[wanted]]] = distances[wanted]
            squares = np.square(distances, out=distances)
            if not self._known:
                self.row_sums[rows] = squares.sum(axis=1, dtype=np.float64)
                fourth = np.einsum("ij,ij->", squares, squares, dtype=np.float64)
                self.sum_of_squares += float(fourth)
            yield rows, squares
        self._known = True


# Classical scaling of geodesic distances: from all rows, or from landmarks.
#
#     B = -1/2 H D^2 H = V L V^T,    Y = V L^(1/2),    H = I - 11^T/n
#
# A row with squared distances d to the rows of B is placed at y = 1/2 (b - d) V L^(-1/2), where b
# is the mean of D^2 over its rows. A row of B keeps its place (Gower 1968; de Silva & Tenenbaum
# 2003).


STREAMED_WIDTH = 64  # vectors per product if each product recomputes all geodesic distances
SAMPLED_PAIRS, MOST_SAMPLED = 20_000_000, 500  # pairs and sources of the residual variance
# tolerance of the residual, and largest eigenvalue that counts as 0, relative to the first one
TOLERANCE = {np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-10}
ZERO = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}


class GeodesicAxes(NamedTuple):
    """Axes, largest eigenvalue first, and the coordinates ``scores`` of all rows.

    New rows are placed by y = (mean_squares - d^2) duals. ``lowest`` is the smallest eigenvalue
    found, ``error`` is |B - Y Y^T|_F / n over the rows of B.
    """

    eigenvalues: np.ndarray
    scores: np.ndarray
    duals: np.ndarray
    mean_squares: np.ndarray
    lowest: float
    residual: float
    error: float
    residual_variance: np.ndarray


def from_all_rows(graph: Any, q: int, run: FitContext) -> GeodesicAxes:
    """q axes from the distances of all pairs of rows along a connected graph."""
    n, dtype = graph.shape[0], graph.dtype
    sources = _sampled_sources(n, n)
    squares = GeodesicSquares(graph, dtype, sources, run.threads, run.monitor)
    centered = CenteredOperator(squares.times, -0.5)
    solver: dict[str, Any] = {"tol": TOLERANCE[dtype], "rng": run.rng, "monitor": run.monitor}
    if is_small(n, q):
        require_memory(32 * n * n, task=f"{q} axes of {n} rows", alternative="use fewer components")
        matrix = centered(np.eye(n))
        pairs = largest_eigenpairs((matrix + matrix.T) / 2, q, **solver)
    else:
        width = BLOCK_WIDTH if squares.kept else STREAMED_WIDTH
        pairs = largest_eigenpairs(centered, q, order=n, width=width, **solver)
    means = squares.row_sums / n
    # |H A H|^2 = |A|^2 - 2 |A 1|^2 / n + (1 A 1)^2 / n^2
    norm = squares.sum_of_squares - 2 * n * np.einsum("i,i", means, means)
    norm += n * n * means.mean() ** 2
    values, scores, duals = _scaled(pairs, dtype)
    error = np.sqrt(max(norm / 4 - np.square(values).sum(), 0.0)) / n
    unexplained = residual_variance(squares.sampled, scores[sources], scores)
    return GeodesicAxes(
        values, scores, duals, means, pairs.lowest, pairs.residual, float(error), unexplained
    )


def from_landmarks(graph: Any, landmarks: np.ndarray, q: int, run: FitContext) -> GeodesicAxes:
    """q axes from the distances of all rows to the landmarks."""
    dtype, m = graph.dtype, landmarks.size
    D = shortest_paths(graph, landmarks, threads=run.threads, monitor=run.monitor, dtype=dtype)
    sources = _sampled_sources(m, graph.shape[0])
    sampled = D[sources].copy()
    np.square(D, out=D)
    B = D[:, landmarks].astype(np.float64)
    B = (B + B.T) / 2
    means = double_center(B, -0.5)
    solver: dict[str, Any] = {"tol": TOLERANCE[dtype], "rng": run.rng, "monitor": run.monitor}
    pairs = largest_eigenpairs(B, q, **solver)
    values, _, duals = _scaled(pairs, dtype)
    scores = gower_placement(D.T, means, duals, run.threads).astype(np.float64)
    error = np.sqrt(max(np.einsum("ij,ij->", B, B) - np.square(values).sum(), 0.0)) / m
    unexplained = residual_variance(sampled, scores[landmarks[sources]], scores)
    return GeodesicAxes(
        values, scores, duals, means, pairs.lowest, pairs.residual, float(error), unexplained
    )


def _scaled(pairs: LargestPairs, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, V L^(1/2) and 1/2 V L^(-1/2), with 0 for eigenvalues that are not positive."""
    real = pairs.values > ZERO[np.dtype(dtype)] * max(pairs.values[0], 1e-300)
    values = np.where(real, pairs.values, 0.0)
    root = np.sqrt(values)
    inverse = np.where(real, 0.5 / np.where(real, root, 1.0), 0.0)
    return values, pairs.vectors * root, pairs.vectors * inverse


def _sampled_sources(n_sources: int, n: int) -> np.ndarray:
    """Evenly spread indices of sources; their distances to all rows give the residual variance."""
    wanted = min(n_sources, MOST_SAMPLED, max(20, SAMPLED_PAIRS // n))
    return np.linspace(0, n_sources - 1, wanted).astype(np.int64)


def residual_variance(D: np.ndarray, sources: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """1 - r^2 of the distances D and the distances in the map, for 1, 2, ... coordinates.

    ``sources`` are the coordinates of the rows of D, and ``Y`` those of its columns. The result is
    0 if D is constant, which leaves no variance, and 1 if the distances in the map are.
    """
    q = Y.shape[1]
    sums = np.zeros((q, 5))  # of d, d^2, g, g^2, d g
    for row, point in zip(D, sources, strict=True):
        g = row.astype(np.float64)
        squares = np.zeros(len(Y))
        for axis in range(q):
            squares += (Y[:, axis] - point[axis]) ** 2
            d = np.sqrt(squares)
            # einsum has one order of summation for any number of threads
            g2, dg = np.einsum("i,i", g, g), np.einsum("i,i", d, g)
            sums[axis] += d.sum(), squares.sum(), g.sum(), g2, dg
    count = D.size - len(D)  # the distance of a row to itself is 0 and adds to no sum
    d, d2, g, g2, dg = sums.T / max(count, 1)
    var_d, var_g = d2 - d * d, g2 - g * g
    known = (var_d > 1e-12 * d2) & (var_g > 1e-12 * g2)
    # one root after the other: the product of two small variances may underflow
    deviations = np.sqrt(np.where(known, var_d, 1.0)), np.sqrt(np.where(known, var_g, 1.0))
    r2 = ((dg - d * g) / deviations[0] / deviations[1]) ** 2
    constant = np.where(var_g > 1e-12 * g2, 1.0, 0.0)
    return np.where(known, np.maximum(1 - r2, 0.0), constant)


class Isomap(GeodesicEmbedding):
    """Classical MDS of distances along the neighbor graph: -1/2 H D_G^2 H = V L V^T, Y = V L^(1/2).

    Unrolls a curved sheet: if the rows lie on a bent but unstretched convex piece of R^q, the map
    is that piece up to a rigid motion, with its true distances. Use it for rolls, bent sheets,
    images under changing pose and light. Not for sheets with holes or for closed surfaces, which
    have no flat map. One edge across a gap bends the whole map, so compare several
    ``n_neighbors``. Cost: O(n^2 k) time and n^2 / 2 numbers of memory, or less memory and more time
    where they do not fit; O(n m k) time and O(n m) memory with m landmarks.

    Parameters
    ----------
    radius : float or None, default=None
        Connect all rows within this distance, instead of ``n_neighbors``.
    landmarks : int or None, default=None
        Number of random rows that geodesic distances are computed from. None takes all rows. From
        a few hundred landmarks on, the map is nearly the same.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Sum of squares of each coordinate, largest first, over the landmarks if there are some.
    residual_variance_ : ndarray of shape (n_components,)
        1 - r^2 of geodesic distances and distances in the first 1, 2, ... coordinates, in the
        order of the axes. The bend of this curve shows the dimension of the data, as in the paper.
        Beyond 500 rows, distances from 500 of them to all rows are used.
    reconstruction_error_ : float
        |B - Y Y^T|_F / n for B = -1/2 H D_G^2 H, over the landmarks if there are some.
    lowest_eigenvalue_ : float
        Smallest eigenvalue found. If it is clearly negative, no flat map has these distances.
    landmarks_ : ndarray of shape (n_landmarks,)
        Indices of the landmarks among the rows of the map.
    dual_vectors_ : ndarray of shape (n_landmarks, n_components)
        Matrix that squared distances are multiplied by to place new rows.
    mean_squares_ : ndarray of shape (n_landmarks,)
        Mean squared distance to each landmark.

    Notes
    -----
    New rows are connected with their nearest fitted rows, and their distances d along the graph
    give y = 1/2 L^(-1) Y^T (mean(D_G^2) - d^2) (Gower 1968; Bengio et al. 2004). Beyond 2000 rows
    geodesic distances are kept in single precision, correct to about six digits. The sign of an
    axis makes the largest entry of its eigenvector positive.

    References
    ----------
    Tenenbaum, de Silva & Langford (2000), A global geometric framework for nonlinear dimensionality
    reduction, Science 290, doi:10.1126/science.290.5500.2319; de Silva & Tenenbaum (2003), Global
    versus local methods in nonlinear dimensionality reduction, NIPS 15; Bengio et al. (2004),
    Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps and spectral clustering, NIPS 16.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> Isomap(2, n_neighbors=8).fit_transform(swiss_roll(400, random_state=0).X).shape
    (400, 2)
    """

    radius: float | None = param(Null() | Real(0), default=None)
    landmarks: int | None = param(Null() | Integer(2), default=None)

    eigenvalues_: np.ndarray = fitted("n_components")
    residual_: float = fitted()
    residual_variance_: np.ndarray = fitted("n_components")
    reconstruction_error_: float = fitted()
    lowest_eigenvalue_: float = fitted()
    dual_vectors_: np.ndarray = fitted("n_landmarks", "n_components")
    mean_squares_: np.ndarray = fitted("n_landmarks", meaning=at_least(0))

    card = Card(
        keeps="distances along the surface that the rows lie on",
        use="to unroll a bent sheet without holes: poses, gradients, one or two smooth factors",
        avoid="for clusters, closed surfaces and holes; when short cuts cross gaps, lower k",
        cost="O(n^2 k) time, n^2 / 2 numbers; with m landmarks O(n m k) time and O(n m) memory",
    )
    reference = "Tenenbaum, de Silva & Langford (2000)"
    reading = GeodesicEmbedding.reading._replace(
        distances="Distances in the map are distances along the surface that the rows lie on, as "
        "far as the residual variance is small.",
        sizes="The size of a group is its size along the surface.",
        scale="The axes have the unit of the distances in the data.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        search = neighbor_graph_cost(n, p, 10)
        return Estimate(search.seconds + 2.5e-8 * n * n, 2 * n * n + 8 * n * (p + 400))

    # --- fit ----------------------------------------------------------------------------------

    def _embed(self, graph: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        n = graph.shape[0]
        q = self._check_axes(n, n)
        self._keep_edges(graph)
        if self.landmarks is None:
            self.landmarks_ = np.arange(n)
            axes = from_all_rows(self._graph(), q, run)
        else:
            m = int(self.landmarks)
            if not q < m <= n:
                raise ParameterError(
                    f"Isomap: landmarks={m} must be more than n_components={q} and at most the "
                    f"{n} rows of the map."
                )
            self.landmarks_ = np.sort(run.rng.choice(n, m, replace=False))
            axes = from_landmarks(self._graph(), self.landmarks_, q, run)
        self._keep_axes(axes)
        return axes.scores * self.longest_edge_

    def _edges(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        if self.radius is None:
            return super()._edges(X, run)
        radius = float(self.radius)
        if self._is_graph(X):
            graph = symmetrize(self._neighbors(X, X.shape[1] - 1, run))
            near = graph.data <= radius
            starts = np.concatenate([[0], np.cumsum(near)])[graph.indptr]
            kept = graph.data[near], graph.indices[near], starts
            return scipy.sparse.csr_matrix(kept, graph.shape)
        metric = {"metric": self._graph_metric, "metric_params": self.metric_params}
        return radius_graph(X, radius, threads=run.threads, monitor=run.monitor, **metric)

    def _keep_axes(self, axes: GeodesicAxes) -> None:
        """Set the fitted attributes, in the units of the data."""
        square = self.longest_edge_ * self.longest_edge_
        q, positive = len(axes.eigenvalues), int((axes.eigenvalues > 0).sum())
        largest = float(axes.eigenvalues[0])
        if positive < q and axes.lowest < -1e-3 * largest:
            warnings.warn(
                f"only {positive} of {q} components have a positive eigenvalue, and the others are "
                "0: geodesic distances are those of a flat map in no further direction "
                f"(eigenvalues from {axes.lowest * square:.3g} to {largest * square:.3g}).",
                stacklevel=6,
            )
        self.eigenvalues_ = axes.eigenvalues * square
        self.lowest_eigenvalue_ = axes.lowest * square
        self.reconstruction_error_ = axes.error * square
        self.residual_, self.residual_variance_ = axes.residual, axes.residual_variance
        self.dual_vectors_, self.mean_squares_ = axes.duals, axes.mean_squares

    # --- new rows -----------------------------------------------------------------------------

    def _links(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        if self.radius is None:
            return super()._links(X, run)
        parts = []  # edges to the fitted rows within the radius, at least to the nearest
        for _, D in self._distances_to_fitted(X, run):
            near = np.maximum(D.min(axis=1, keepdims=True), float(self.radius)) >= D
            starts = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
            parts.append(scipy.sparse.csr_matrix((D[near], np.nonzero(near)[1], starts), D.shape))
        return scipy.sparse.vstack(parts, format="csr")

    def _by_geodesics(self, D: np.ndarray, links: Any, run: FitContext) -> np.ndarray:
        return gower_placement(D * D, self.mean_squares_, self.dual_vectors_, run.threads)
