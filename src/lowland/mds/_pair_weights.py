"""Checks of given weights of pairs: an n x n array or a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.sparse_input import compressed_rows
from lowland._core.validation import is_sparse

SAME = 1e-6  # w_ij and w_ji may differ by this share of the weight, because of rounding
SMALLEST, LARGEST = 1e-30, 1e30  # within the range of float32, with some margin


def checked_weights(weights: Any, n: int) -> Any:
    """A symmetric (n, n) array of float64, or CSR, of finite numbers >= 0; the diagonal is 0."""
    shape = tuple(np.shape(weights))
    if shape != (n, n):
        raise DataError(f"weights have shape {shape}; {n} rows need {n} x {n}.")
    if is_sparse(weights):
        W = compressed_rows(weights, "weights").astype(np.float64)
        W.data[np.repeat(np.arange(n), np.diff(W.indptr)) == W.indices] = 0.0
    else:
        W = np.array(weights, np.float64)
        np.fill_diagonal(W, 0.0)
    values = W.data if is_sparse(W) else W
    _refuse(W, ~(values >= 0) | ~np.isfinite(values), "weights are finite and >= 0")
    moderate = (values == 0) | ((values >= SMALLEST) & (values <= LARGEST))
    reach = f"multiply all weights by one number, so that they lie in {SMALLEST:g} ... {LARGEST:g}"
    _refuse(W, ~moderate, reach)
    _check_symmetric(W)
    return W


def _refuse(W: Any, bad: np.ndarray, what: str) -> None:
    if bad.any():
        i, j = _first(W, bad)
        raise DataError(f"weights[{i}, {j}] = {W[i, j]:g}; {what}.")


def _first(W: Any, bad: np.ndarray) -> tuple[int, int]:
    """Row and column of the first marked entry of W, or of its stored entries."""
    if not is_sparse(W):
        return tuple(np.argwhere(bad)[0])
    stored = int(np.argmax(bad))
    return int(np.searchsorted(W.indptr, stored, side="right")) - 1, int(W.indices[stored])


def _check_symmetric(W: Any) -> None:
    if is_sparse(W):
        excess = (abs(W - W.T) - SAME * W.maximum(W.T)).tocsr()
        bad = excess.data > 0
    else:
        excess = abs(W - W.T) - SAME * np.maximum(W, W.T)
        bad = excess > 0
    if bad.any():
        i, j = _first(excess, bad)
        raise DataError(
            f"weights[{i}, {j}] = {W[i, j]:g}, but weights[{j}, {i}] = {W[j, i]:g}; a pair has one "
            "weight: use W + W.T if one triangle is empty, else (W + W.T) / 2."
        )
