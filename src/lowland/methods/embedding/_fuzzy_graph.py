"""The fuzzy neighbor graph of UMAP, with targets and with rows that have no neighbors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.constraints import Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.params import fitted, param
from lowland._base.targets import check_labels, check_numbers
from lowland._base.validation import as_array
from lowland._engines.embedding.affinity import transposed_rows
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph
from lowland.methods.embedding._base import NeighborMap

# The fuzzy neighbor graph of UMAP (McInnes, Healy & Melville 2018, section 3.1).
#
#     w_{j|i} = exp(-max(0, d_ij - rho_i) / sigma_i),     sum_j w_{j|i} = log2(k)
#     mu_ij   = m (w_{j|i} + w_{i|j} - w_{j|i} w_{i|j}) + (1 - m) w_{j|i} w_{i|j}
#
# rho_i is the distance to the nearest other row, sigma_i the width that gives the sum over the
# neighbors, and m the ``set_op_mix_ratio``: 1 for the fuzzy union, 0 for the intersection.


class LocalMetric(NamedTuple):
    """Of each row: memberships of its neighbors (n, k), rho and sigma (n,)."""

    weights: np.ndarray
    nearest: np.ndarray
    widths: np.ndarray


class FuzzyGraph(NamedTuple):
    """The mu_ij as rows of a symmetric sparse matrix, columns ascending, without diagonal."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray

    @property
    def n(self) -> int:
        return self.indptr.size - 1

    def degrees(self) -> np.ndarray:
        """The sum of each row, in float64; one order of summation."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights, dtype=np.float64)])
        return np.diff(sums[self.indptr])

    def rows(self) -> np.ndarray:
        """The row number of each weight."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))

    def kept(self, chosen: np.ndarray) -> FuzzyGraph:
        """The graph of the chosen weights only."""
        starts = np.concatenate([[0], np.cumsum(chosen)])[self.indptr]
        return FuzzyGraph(starts.astype(np.int64), self.indices[chosen], self.weights[chosen])

    def to_csr(self) -> Any:
        import scipy.sparse

        shape = (self.n, self.n)
        return scipy.sparse.csr_matrix((self.weights, self.indices, self.indptr), shape=shape)


def memberships(
    near: NeighborGraph, n_neighbors: int, connectivity: float, threads: int
) -> LocalMetric:
    """The w_{j|i} of each row's neighbors; no row has an influence on another one.

    ``n_neighbors`` counts the row itself. Widths are at least 1e-3 of the mean distance of the row.
    Where all distances of a row are 0, all memberships are 1, and the width is 0.
    """
    distances = np.ascontiguousarray(near.distances)
    if distances.dtype not in (np.float32, np.float64):
        distances = distances.astype(np.float64)
    n = len(distances)
    weights, nearest, widths = np.empty_like(distances), np.empty(n), np.empty(n)
    target = math.log2(max(2, n_neighbors))
    _native.fuzzy_weights(distances, target, connectivity, 0.0, weights, nearest, widths, threads)
    return LocalMetric(weights, nearest, widths)


def fuzzy_graph(
    near: NeighborGraph, n_neighbors: int, connectivity: float, mix: float, threads: int
) -> tuple[FuzzyGraph, LocalMetric]:
    """The symmetric graph of the fitted rows, and the memberships that it is made of. O(n k)."""
    local = memberships(near, n_neighbors, connectivity, threads)
    n, k = near.indices.shape
    starts = np.arange(n + 1, dtype=np.int64) * k
    columns = near.indices.astype(np.int32, copy=False).ravel()
    weights = local.weights.astype(np.float32).ravel()
    return symmetric_graph(starts, columns, weights, mix, threads), local


def symmetric_graph(
    starts: np.ndarray, columns: np.ndarray, weights: np.ndarray, mix: float, threads: int
) -> FuzzyGraph:
    """m (w + w^T - w o w^T) + (1 - m) w o w^T, without entries of 0.

    Columns -1 and the diagonal are passed over. The products of both directions come from sums:
    2 v w = (v + w)^2 - (v^2 + w^2), so that one merge of sorted rows serves both.
    """
    require_memory(
        56 * columns.size,
        task=f"the fuzzy graph of {starts.size - 1} rows",
        alternative="take fewer neighbors",
    )
    back = transposed_rows(starts, columns, weights, threads)
    there = transposed_rows(*back, threads)  # transposing twice sorts the columns
    indptr = np.empty_like(starts)
    _native.union_starts(*there[:2], *back[:2], indptr, threads)
    indices = np.empty(indptr[-1], np.int32)
    total, squares = np.empty(indptr[-1], weights.dtype), np.empty(indptr[-1], weights.dtype)
    _native.union_sum(*there, *back, 1.0, indptr, indices, total, threads)
    there, back = (*there[:2], there[2] ** 2), (*back[:2], back[2] ** 2)
    _native.union_sum(*there, *back, 1.0, indptr, indices, squares, threads)
    product = np.maximum(0.5 * (total**2 - squares), 0)
    product[product < 1e-6 * total] = 0  # of one direction only, up to rounding
    union = mix * (total - product) + (1 - mix) * product
    return FuzzyGraph(indptr, indices, union.astype(weights.dtype, copy=False)).kept(union > 0)


# Targets in the fuzzy graph of UMAP: classes or numbers of the rows change its weights.
#
# Classes multiply the weights of edges between different classes by exp(-2.5 / (1 - t)), t the
# ``target_weight``, and those of rows without a class by exp(-1). Numbers have a fuzzy graph of
# their own, and the graphs are intersected. Both make some rows lose nearly all weight, so that
# each row is divided by its largest weight again before the fuzzy union.


FAR, UNKNOWN = 2.5, 1.0  # of the exponents
LEAST = 1e-8


def with_target(
    graph: FuzzyGraph, y: Any, metric: str, weight: float, k: int, run: FitContext
) -> FuzzyGraph:
    """The graph changed by a target of classes or, if the metric is not "categorical", of numbers.

    A weight of 0 ignores it. ``k`` is the number of neighbors by numbers, the row itself counted.
    """
    if weight == 0:
        return graph
    if metric == "categorical":
        return with_classes(graph, class_codes(y, graph.n, "UMAP"), weight, run.threads)
    if weight == 1:
        raise ParameterError("UMAP: target_weight=1 would ignore X; take less than 1.")
    numbers = check_numbers(y, graph.n, owner="UMAP")
    if not (numbers != numbers[0]).any():
        raise DataError(
            "UMAP: y is the same number in all rows, so it carries no information about them."
        )
    near = neighbor_graph(numbers[:, None], k - 1, threads=run.threads, rng=run.rng)
    by_numbers, _ = fuzzy_graph(near, k, 1.0, 1.0, run.threads)
    return with_numbers(graph, by_numbers, weight, run.threads)


def class_codes(y: Any, n: int, owner: str) -> np.ndarray:
    """The number of each row's class; -1 for rows whose label is -1, None or NaN."""
    labels = as_array(y, "y")
    if labels.ndim != 1 or len(labels) != n:
        return check_labels(y, n, owner=owner).codes  # which says what is wrong
    unknown = np.array([_is_unknown(label) for label in labels.tolist()], bool)
    if labels.dtype.kind == "f" and (labels[~unknown] % 1 != 0).any():
        value = float(labels[~unknown][labels[~unknown] % 1 != 0][0])
        raise DataError(
            f"{owner}: y holds {value!r}, which is a measurement, not a class (Unknown label type: "
            "continuous); set target_metric='euclidean', or give classes as integers or text."
        )
    codes = np.full(n, -1)
    if not unknown.all():
        codes[~unknown] = check_labels(labels[~unknown], int((~unknown).sum()), owner=owner).codes
    return codes


def _is_unknown(label: Any) -> bool:
    if isinstance(label, int | float):
        return not isinstance(label, bool) and (label == -1 or label != label)
    return label is None


def with_classes(graph: FuzzyGraph, codes: np.ndarray, weight: float, threads: int) -> FuzzyGraph:
    """The graph with weaker edges between classes."""
    a, b = codes[graph.rows()], codes[graph.indices]
    far = math.exp(-FAR / (1 - weight)) if weight < 1 else 0.0
    factor = np.where((a < 0) | (b < 0), math.exp(-UNKNOWN), np.where(a == b, 1.0, far))
    return _reset(graph._replace(weights=graph.weights * factor.astype(np.float32)), threads)


def with_numbers(graph: FuzzyGraph, numbers: FuzzyGraph, weight: float, threads: int) -> FuzzyGraph:
    """The intersection of the graphs of the rows and of their numbers.

    A pair that one graph lacks has half of the least weight there.
    """
    left, right = graph.to_csr(), numbers.to_csr()
    both = (left + right).tocsr()
    both.sort_indices()
    least = max(float(graph.weights.min()) / 2, LEAST)
    least_right = min(max(float(numbers.weights.min()) / 2, LEAST), 1e-4)
    v = np.maximum(_at(left, both), least).astype(np.float64)
    w = np.maximum(_at(right, both), least_right).astype(np.float64)
    joint = v * w ** (weight / (1 - weight)) if weight < 0.5 else w * v ** ((1 - weight) / weight)
    starts = both.indptr.astype(np.int64)
    joined = FuzzyGraph(starts, both.indices.astype(np.int32), joint.astype(np.float32))
    return _reset(joined, threads)


def _at(matrix: Any, pattern: Any) -> np.ndarray:
    """The entries of a matrix at the stored places of a pattern that contains its own."""
    n = matrix.shape[1]
    keys = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr)) * n + pattern.indices
    own = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * n + matrix.indices
    values = np.zeros(len(keys), np.float32)
    values[np.searchsorted(keys, own)] = matrix.data
    return values


def _reset(graph: FuzzyGraph, threads: int) -> FuzzyGraph:
    """Each row divided by its largest weight, and the fuzzy union of both directions."""
    sizes = np.diff(graph.indptr)
    filled = np.flatnonzero(sizes > 0)
    largest = np.ones(graph.n, np.float32)
    if filled.size:
        largest[filled] = np.maximum.reduceat(graph.weights, graph.indptr[filled])
    largest[largest <= 0] = 1
    weights = graph.weights / np.repeat(largest, sizes)
    return symmetric_graph(graph.indptr, graph.indices, weights, 1.0, threads)


# Rows without neighbors, and edges that are too long to count.


MARGIN = 1.15  # radius of the circle around the map, in radii of the map


def without_far(near: NeighborGraph, longest: float) -> NeighborGraph:
    """The graph without neighbors at ``longest`` or more."""
    far = near.distances >= longest
    indices = np.where(far, -1, near.indices)
    distances = np.where(far, np.inf, near.distances).astype(near.distances.dtype)
    return NeighborGraph(indices, distances, near.n_points, near.metric)


def graph_of_kept(graph: FuzzyGraph, kept: np.ndarray) -> FuzzyGraph:
    """The graph of the kept rows, where all others have no edges."""
    place = np.zeros(graph.n, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    starts = np.concatenate([graph.indptr[:1], graph.indptr[1:][kept]])
    return FuzzyGraph(starts, place[graph.indices], graph.weights)


def known_squares(graph: FuzzyGraph, near: NeighborGraph) -> np.ndarray:
    """Squared distances of the pairs of a symmetric graph, each from the row that lists it."""
    n, there = len(near), near.indices >= 0
    rows, places = np.nonzero(there)
    columns, squares = near.indices[rows, places], near.distances[rows, places].astype(float) ** 2
    keys = np.concatenate([rows * n + columns, columns.astype(np.int64) * n + rows])
    keys, first = np.unique(keys, return_index=True)
    squares = np.concatenate([squares, squares])[first]
    wanted = graph.rows().astype(np.int64) * n + graph.indices
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, squares[at], 0.0)  # a target may add pairs


def beside_the_map(Y: np.ndarray, isolated: np.ndarray) -> np.ndarray:
    """The map of the others, and the isolated rows evenly on a circle around it."""
    if not isolated.any():
        return Y
    n, d = len(isolated), Y.shape[1]
    center = (Y.min(axis=0) + Y.max(axis=0)) / 2
    radius = MARGIN * max(float(np.sqrt(((Y - center) ** 2).sum(axis=1)).max()), 1.0)
    count = int(isolated.sum())
    ring = np.zeros((count, d), Y.dtype)
    if d == 1:
        ring[:, 0] = np.where(np.arange(count) % 2, -1, 1) * radius * (1 + np.arange(count) / count)
    else:
        turns = 2 * np.pi * np.arange(count) / count
        ring[:, 0], ring[:, 1] = radius * np.cos(turns), radius * np.sin(turns)
    found = np.empty((n, d), Y.dtype)
    found[~isolated], found[isolated] = Y, center + ring
    return found


class FuzzyMap(NeighborMap):
    """A map of the fuzzy neighbor graph of the rows.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbors of each row, the row itself counted. Large values show coarse structure.
    set_op_mix_ratio : float, default=1.0
        1 keeps an edge if one of its rows has it (fuzzy union), 0 only if both have (intersection).
    local_connectivity : float, default=1.0
        Number of neighbors at which each row counts as fully connected.
    target_metric : {"categorical", "euclidean"}, default="categorical"
        What ``y`` of ``fit`` holds, if it is given: classes (-1 or None: unknown), or numbers.
    target_weight : float, default=0.5
        Weight of the target, from 0 (ignored) to 1 (classes are torn apart).
    disconnection_distance : float or None, default=None
        Rows that have no neighbor nearer than this are set aside. None sets no row aside.

    Attributes
    ----------
    n_neighbors_ : int
        Number of other rows among the neighbors of each row.
    nearest_distances_ : ndarray of shape (n_samples,)
        Distance rho of each row to its nearest neighbor.
    widths_ : ndarray of shape (n_samples,)
        Width sigma of the memberships of each row's neighbors; 0 if all memberships are 1.
    isolated_ : ndarray of shape (n_samples,)
        True for rows without neighbors. They are put on a circle around the map.
    """

    n_neighbors: int = param(Integer(2), default=15)
    set_op_mix_ratio: float = param(Real(0, 1, closed="both"), default=1.0)
    local_connectivity: float = param(Real(0, closed="left"), default=1.0)
    target_metric: str = param(OneOf("categorical", "euclidean"), default="categorical")
    target_weight: float = param(Real(0, 1, closed="both"), default=0.5)
    disconnection_distance: float | None = param(Null() | Real(0), default=None)

    nearest_distances_: np.ndarray = fitted("n_samples")
    widths_: np.ndarray = fitted("n_samples")
    isolated_: np.ndarray = fitted("n_samples", type=bool)

    uses_target = True

    def _neighbors_of(self, rows: Any, run: FitContext) -> NeighborGraph:
        k = min(int(self.n_neighbors), rows.shape[0]) - 1
        return self._nearest_rows(rows, k, run, at_least=0)

    def _graph(self, near: NeighborGraph, y: Any, run: FitContext) -> FuzzyGraph:
        """The fuzzy graph, changed by the target y if there is one; sets what is fitted of it."""
        k = min(int(self.n_neighbors), near.n_neighbors + 1)
        graph, local = fuzzy_graph(
            near, k, self.local_connectivity, self.set_op_mix_ratio, run.threads
        )
        if y is not None:
            weight = float(self.target_weight)
            graph = with_target(graph, y, self.target_metric, weight, k, run)
        self.isolated_ = np.diff(graph.indptr) == 0
        if self.isolated_.all():
            way = "add edges"
            if self.disconnection_distance is not None:
                way = "take a larger disconnection_distance"
            if (near.indices >= 0).any():
                way = "take a larger set_op_mix_ratio, or a smaller target_weight"
            raise DataError(f"UMAP: no row has a neighbor; {way}.")
        self.n_neighbors_, self.nearest_distances_ = near.n_neighbors, local.nearest
        self.widths_ = np.where(np.isfinite(local.widths), local.widths, 0.0)
        return graph
