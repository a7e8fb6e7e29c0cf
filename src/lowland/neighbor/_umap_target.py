"""Targets in the fuzzy graph of UMAP: classes or numbers of the rows change its weights.

Classes multiply the weights of edges between different classes by exp(-2.5 / (1 - t)), t the
``target_weight``, and those of rows without a class by exp(-1). Numbers have a fuzzy graph of
their own, and the graphs are intersected. Both make some rows lose nearly all weight, so that each
row is divided by its largest weight again before the fuzzy union.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._core.errors import DataError, ParameterError
from lowland._core.targets import check_labels, check_numbers
from lowland._core.validation import as_array
from lowland._engines.neighbors.search import neighbor_graph
from lowland.neighbor._fuzzy_graph import FuzzyGraph, fuzzy_graph, symmetric_graph

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
        raise DataError("UMAP: y is the same number in all rows; it tells nothing about them.")
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
            f"{owner}: y holds {value!r}, which is a measurement and no class (Unknown label type: "
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
