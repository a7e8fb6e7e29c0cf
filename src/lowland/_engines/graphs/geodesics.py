"""Shortest paths in a graph from many sources at once: the geodesic distances of Isomap.

    d(s, s) = 0,   d(s, v) = min over edges (u, v) of d(s, u) + w(u, v)

The kernel processes 32 sources at once and is fast when they are near each other. The vertices are
therefore first sorted so that near vertices follow each other: they are bisected recursively along
the distances to a few landmarks. The order costs a few percent of the time and does not change the
result: a distance is the least rounded sum over all walks from the source, for any number of
threads, any blocks and any other sources. The relative error is at most (edges on path) * eps / 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.traits import Estimate
from lowland._engines.graphs.components import connected_components
from lowland._engines.graphs.weights import checked_graph, row_numbers
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.duplicates import EqualRows

# Graphs with one vertex for all rows that are equal.


def without_copies(graph: scipy.sparse.csr_matrix, equal: EqualRows | None) -> Any:
    """The graph of the groups of equal rows; each group has the edges of all its rows."""
    if equal is None:
        return graph
    m = len(equal.first)
    rows, columns = equal.group[row_numbers(graph)], equal.group[graph.indices]
    order = np.lexsort((graph.data, columns, rows))
    rows, columns, lengths = rows[order], columns[order], graph.data[order]
    new = np.ones(len(rows), bool)  # of several edges between two groups the shortest stays
    new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    new &= rows != columns
    starts = np.searchsorted(rows[new], np.arange(m + 1))
    return scipy.sparse.csr_matrix((lengths[new], columns[new], starts), shape=(m, m))


LANDMARKS = 4
CHUNK = 2 * _native.PATH_LANES  # groups of so few vertices are not bisected further
BLOCK = 1 << 24  # distances computed between two updates of the monitor


def shortest_paths(
    graph: Any,
    sources: Any = None,
    *,
    threads: int = 1,
    monitor: Monitor | None = None,
    dtype: Any = np.float64,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Distances (n_sources, n) along the edges of ``graph``; infinity where no path leads.

    A vertex is visited about three times per 32 sources, with a few instructions per edge. Graphs
    that need many more visits are solved by Dijkstra's algorithm, O(edges log n) per source. Sums
    run from the source, so that d(i, j) and d(j, i) may differ in the last digits.

    Parameters
    ----------
    graph : NeighborGraph or sparse matrix of shape (n, n)
        Lengths of edges, from row to column; a stored 0 is an edge. Negative lengths, NaN and
        infinity are a ``DataError``.
    sources : array of int or None
        Rows to start from; None means all.
    threads : int
        The result does not depend on it.
    monitor : Monitor or None
        Shows the phase "geodesics" and can cancel it.
    dtype : float64 or float32
        Type of the sums and the result.
    out : C-contiguous array of shape (n_sources, n) and type ``dtype``, or None
        The array that the result is written to.
    """
    plan = _plan(graph, sources, dtype)
    shape = (plan.sources.size, plan.n)
    if out is None:
        _require(plan, shape[0], threads)
        out = np.empty(shape, plan.weights.dtype)
    elif out.shape != shape or out.dtype != plan.weights.dtype or not out.flags.c_contiguous:
        raise ParameterError(
            f"out must be a C-contiguous array of shape {shape} and type {plan.weights.dtype}; "
            f"got {out.dtype} of shape {out.shape}."
        )
    with (monitor or Monitor()).phase("geodesics", shape[0]) as phase:
        for part in _parts(plan, None):
            plan.run(part, plan.rows[part], out, threads)
            phase.advance(plan.sources[part].size)
    return out


def shortest_path_blocks(
    graph: Any,
    sources: Any = None,
    *,
    threads: int = 1,
    monitor: Monitor | None = None,
    dtype: Any = np.float64,
    block_rows: int | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows of :func:`shortest_paths` by blocks, without n x n memory.

    Yields ``(rows, distances)``: ``distances[b]`` belongs to source number ``rows[b]``. Together
    the blocks have every source once; sources of one block lie near each other. ``block_rows``
    defaults to about 16 million distances.
    """
    plan = _plan(graph, sources, dtype)
    with (monitor or Monitor()).phase("geodesics", plan.sources.size) as phase:
        for part in _parts(plan, block_rows):
            rows = plan.rows[part]
            _require(plan, rows.size, threads)
            block = np.empty((rows.size, plan.n), plan.weights.dtype)
            plan.run(part, np.arange(rows.size), block, threads)
            phase.advance(rows.size)
            yield rows, block


def shortest_paths_cost(n_sources: int, n: int, k: int, itemsize: int = 8) -> Estimate:
    """Time on two cores and memory of :func:`shortest_paths` in a graph of k neighbors per row."""
    edges = 1.5 * n * k  # either of two rows may have the other as a neighbor
    return Estimate(8e-10 * n_sources * edges + 1e-6 * edges, float(itemsize) * n_sources * n)


class _Plan(NamedTuple):
    """The graph with its vertices sorted by nearness, and the sources in the same order.

    Vertex j of the caller is vertex ``place[j]`` here; ``sources[i]`` is number ``rows[i]`` of the
    caller's sources.
    """

    starts: np.ndarray
    columns: np.ndarray
    weights: np.ndarray
    place: np.ndarray
    sources: np.ndarray
    rows: np.ndarray

    @property
    def n(self) -> int:
        return self.place.size

    def run(self, part: slice, rows: np.ndarray, out: np.ndarray, threads: int) -> None:
        """Distances from the sources of ``part`` into the given rows of ``out``."""
        _native.shortest_paths(
            self.starts,
            self.columns,
            self.weights,
            self.sources[part],
            rows,
            self.place,
            out,
            threads,
        )


def _plan(graph: Any, sources: Any, dtype: Any) -> _Plan:
    A = checked_graph(graph)
    n = A.shape[0]
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ParameterError(f"dtype={dtype} is not allowed; give float32 or float64.")
    longest = float(A.data.max(initial=0))
    if longest * max(1, n - 1) > float(np.finfo(dtype).max):
        raise DataError(
            f"an edge of the graph has length {longest:g}: sums of such lengths do not fit into "
            f"{dtype}; divide the data by a large number."
        )
    chosen = _checked_sources(sources, n)
    order = np.arange(n) if chosen.size <= CHUNK else _order_of_nearness(A)
    place = np.empty(n, np.int32)
    place[order] = np.arange(n, dtype=np.int32)
    lengths = np.diff(A.indptr)[order]
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    edges = np.repeat(A.indptr[:-1][order] - starts[:-1], lengths) + np.arange(starts[-1])
    rows = np.argsort(place[chosen], kind="stable")
    return _Plan(
        starts,
        place[A.indices[edges]],
        A.data[edges].astype(dtype, copy=False),
        place,
        place[chosen[rows]],
        rows,
    )


def _checked_sources(sources: Any, n: int) -> np.ndarray:
    if sources is None:
        return np.arange(n)
    chosen = np.asarray(sources)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise ParameterError("sources must be a list of row numbers.")
    if chosen.size and not (chosen.min() >= 0 and chosen.max() < n):
        raise ParameterError(f"sources must be row numbers from 0 to {n - 1}.")
    return chosen.astype(np.int64)


def _order_of_nearness(A: scipy.sparse.csr_matrix) -> np.ndarray:
    """The vertices component by component, each component cut in halves down to chunks."""
    n_components, labels = connected_components(A)
    coordinates = _landmark_distances(A, n_components, labels)
    order = np.argsort(labels, kind="stable")
    pending = np.split(order, np.cumsum(np.bincount(labels))[:-1])[::-1]
    chunks: list[np.ndarray] = []
    while pending:
        group = pending.pop()
        if group.size <= CHUNK:
            chunks.append(group)
            continue
        part = coordinates[:, group]
        axis = part[np.ptp(part, axis=1).argmax()]
        half = -(-group.size // (2 * CHUNK)) * CHUNK
        cut = np.argpartition(axis, half)
        pending += [group[cut[half:]], group[cut[:half]]]
    return np.concatenate(chunks)


def _landmark_distances(
    A: scipy.sparse.csr_matrix, n_components: int, labels: np.ndarray
) -> np.ndarray:
    """Distances to landmarks, in each component the first row and then always the farthest."""
    found = np.empty((LANDMARKS, A.shape[0]))
    nearest = np.zeros(A.shape[0])
    for k in range(LANDMARKS):
        order = np.lexsort((-nearest, labels))
        landmarks = order[np.searchsorted(labels[order], np.arange(n_components))]
        d = scipy.sparse.csgraph.dijkstra(A, indices=landmarks, min_only=True)
        # vertices without a directed path come after all others
        found[k] = np.where(np.isinf(d), 2 * d[np.isfinite(d)].max(), d)
        nearest = found[k] if k == 0 else np.minimum(nearest, found[k])
    return found


def _parts(plan: _Plan, block_rows: int | None) -> Iterator[slice]:
    lanes = _native.PATH_LANES
    step = block_rows or max(2, BLOCK // (max(1, plan.n) * lanes)) * lanes
    yield from row_blocks(plan.sources.size, step)


def _require(plan: _Plan, n_rows: int, threads: int) -> None:
    size = plan.weights.dtype.itemsize
    scratch = min(threads, -(-n_rows // _native.PATH_LANES)) * (
        _native.PATH_LANES * size + size + 13
    )
    require_memory(
        plan.n * (n_rows * size + scratch),
        task=f"geodesic distances from {n_rows} sources to {plan.n} rows",
        alternative="take fewer sources (landmarks), or float32 data",
    )


# Geodesic distances of new rows: they are linked with rows of the graph, and paths begin there.


def geodesics_of_new_rows(
    graph: scipy.sparse.csr_matrix,
    links: scipy.sparse.csr_matrix,
    unit: float,
    landmarks: np.ndarray,
    run: FitContext,
) -> np.ndarray:
    """Distances of new rows to the landmarks, in float64 and in units of ``unit``, as the graph.

    ``links`` are edges from the new rows to rows of the graph. The edges have one direction, so
    that no path runs through another new row.
    """
    m, n = links.shape
    starts = np.concatenate([graph.indptr, graph.indptr[-1] + links.indptr[1:]])
    ends = np.concatenate([graph.indices, links.indices])
    new_lengths = (links.data.astype(np.float64) / unit).astype(graph.dtype)
    lengths = np.concatenate([graph.data, new_lengths])
    D = shortest_paths(
        scipy.sparse.csr_matrix((lengths, ends, starts), shape=(n + m, n + m)),
        np.arange(n, n + m),
        threads=run.threads,
        monitor=run.monitor,
        dtype=graph.dtype,
    )
    return D[:, landmarks].astype(np.float64)
