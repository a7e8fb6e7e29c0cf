"""Distances in the data of single pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.units import exponent_for, in_unit, largest_value
from lowland._core.validation import is_sparse
from lowland._engines.distances.directions import Directions
from lowland._engines.distances.metric_rows import true_distances
from lowland._engines.distances.sparse_rows import row_squares, unit_rows
from lowland._engines.linalg.blocks import row_blocks
from lowland.metrics._views import GraphView, View

BLOCK_VALUES = 1 << 21


def pair_distances(view: View, one: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """d(x_a, x_b) of pairs of rows of one table; None where this kind of distance has no formula.

    Euclidean, squared Euclidean, cosine and correlation distances of dense rows, the first of
    sparse rows, and given distances. O(pairs times columns), in blocks.
    """
    if isinstance(view, GraphView):
        return None
    X, metric = view.X, view.metric
    squared = is_sparse(X) and metric in ("euclidean", "sqeuclidean", "cosine")
    dense = not is_sparse(X) and metric in ("euclidean", "sqeuclidean", "cosine", "correlation")
    if metric != "precomputed" and not (squared or dense):
        return None
    if metric == "precomputed":
        return None if is_sparse(X) else np.asarray(X[one, other], dtype=np.float64)
    found = np.empty(len(one))
    for part in row_blocks(len(one), max(1, BLOCK_VALUES // X.shape[1])):
        found[part] = _distances(X[one[part]], X[other[part]], metric)
    return found


def _distances(A: Any, B: Any, metric: str) -> np.ndarray:
    """d(a_i, b_i) of rows; squares are made in a unit in which they do not overflow."""
    if is_sparse(A):
        if metric == "cosine":
            A, B = unit_rows(A), unit_rows(B)
        A, B = A.astype(np.float64), B.astype(np.float64)
        e = exponent_for(max(largest_value(A), largest_value(B)))
        A, B = in_unit(A, e), in_unit(B, e)
        products = np.asarray(A.multiply(B).sum(axis=1)).ravel()
        squares = np.maximum(row_squares(A) + row_squares(B) - 2 * products, 0)
    else:
        if metric in ("cosine", "correlation"):
            A, B = Directions.of(A, metric)[0], Directions.of(B, metric)[0]
        apart = np.asarray(A, dtype=np.float64) - B
        e = exponent_for(largest_value(apart))
        apart = in_unit(apart, e)
        squares = np.einsum("ij,ij->i", apart, apart)
    return in_unit(true_distances(squares, metric), -e if metric == "euclidean" else -2 * e)
