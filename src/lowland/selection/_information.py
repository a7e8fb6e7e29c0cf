"""Mutual information of many columns with one target, in nats, from nearest neighbors or counts.

The nearest neighbors of a number are adjacent in the sorted column, so no tree is needed. With psi
the digamma function and <> the mean over the n rows,

    numbers, classes   psi(n) + <psi(k)> - <psi(n_c)> - <psi(m)>           (Ross 2014)
        m rows lie nearer than the k-th nearest of the same class, which has n_c rows
    numbers, numbers   psi(n) + psi(k) - <psi(n_x)> - <psi(n_y)>           (Kraskov et al. 2004)
        n_x and n_y lie nearer than the k-th nearest pair, by the larger of both gaps
    classes, classes   sum p_ab log(p_ab / (p_a p_b))

References: Kraskov, Stoegbauer & Grassberger (2004), Physical Review E 69; Ross (2014), PLoS ONE 9.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lowland import _native
from lowland._base.context import FitContext
from lowland._engines.linalg.moments import column_moments
from lowland._engines.linalg.principal_axes import column_scale
from lowland._engines.linalg.products import row_blocks

BLOCK = 64  # columns at a time
TIE_NOISE = 1e-10  # in standard deviations: it orders equal numbers and changes nothing else


def with_classes(X: np.ndarray, codes: np.ndarray, k: int, run: FitContext) -> np.ndarray:
    """Mutual information of each column of numbers with classes; O(p n (k + log n)).

    Classes of a single row give no information and are left out.
    """
    counts = np.bincount(codes)
    kept = counts[codes] > 1
    if not kept.any():
        return np.zeros(X.shape[1])
    _, codes = np.unique(codes[kept], return_inverse=True)
    counts, psi = np.bincount(codes), digammas(len(codes))
    n, C = len(codes), len(counts)
    near = np.minimum(k, counts - 1)
    constant = psi[n] + (counts @ psi[near] - counts @ psi[counts]) / n
    information = np.empty(X.shape[1])
    with run.monitor.phase("mutual information", total=-(-X.shape[1] // BLOCK)) as phase:
        for part, values in _noisy_blocks(X, run.rng):
            values = np.ascontiguousarray(values[:, kept])
            order = sorted_order(values, run.threads)
            values = np.take_along_axis(values, order, axis=1)
            sums = np.empty(len(values))
            of_value = codes[order].astype(np.int32)
            _native.class_digammas(values, of_value, C, k, psi, sums, run.threads)
            information[part] = constant - sums / n
            phase.advance()
    return np.maximum(information, 0.0)


def with_numbers(X: np.ndarray, y: np.ndarray, k: int, run: FitContext) -> np.ndarray:
    """Mutual information of each column of numbers with a column of numbers; O(p n^1.5 k^0.5)."""
    n, k, threads = len(y), min(k, len(y) - 1), run.threads
    psi = digammas(n)
    ((_, [target]),) = _noisy_blocks(y[:, None], run.rng)
    [y_order] = sorted_order(target[None, :], threads)
    y_rank = np.empty(n, np.int32)
    y_rank[y_order] = np.arange(n, dtype=np.int32)
    information = np.empty(X.shape[1])
    with run.monitor.phase("mutual information", total=-(-X.shape[1] // BLOCK)) as phase:
        for part, values in _noisy_blocks(X, run.rng):
            order = sorted_order(values, threads)
            sums = np.empty(len(values))
            ordered = np.take_along_axis(values, order, axis=1)
            by_y = np.ascontiguousarray(values[:, y_order])
            _native.pair_digammas(
                ordered, target[order], y_rank[order], target[y_order], by_y, k, psi, sums, threads
            )
            information[part] = psi[n] + psi[k] - sums / n
            phase.advance()
    return np.maximum(information, 0.0)


def of_counts(joint: np.ndarray) -> np.ndarray:
    """Mutual information of two discrete variables from counts n_ab in the last two axes."""
    P = joint / joint.sum(axis=(-2, -1), keepdims=True)
    independent = P.sum(axis=-1, keepdims=True) * P.sum(axis=-2, keepdims=True)
    ratio = np.divide(P, independent, out=np.ones_like(P), where=P > 0)
    return np.maximum((P * np.log(ratio)).sum(axis=(-2, -1)), 0.0)


def digammas(n: int) -> np.ndarray:
    """psi(0), ..., psi(n); psi(0), which is infinite, is set to 0 and not used."""
    from scipy.special import digamma

    return np.concatenate([[0.0], digamma(np.arange(1, n + 1))])


def sorted_order(values: np.ndarray, threads: int) -> np.ndarray:
    """The indices that sort each row; equal values keep their order."""
    order = np.empty(values.shape, np.int32)
    _native.sort_rows(values, False, order, threads)
    return order


def _noisy_blocks(X: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of columns, transposed, in units of their deviation, with noise that breaks ties."""
    n, p = X.shape
    for part in row_blocks(p, BLOCK):
        columns = X[:, part]
        _, squares = column_moments(columns)
        values = np.array(columns.T, dtype=np.float64, order="C")  # always a copy
        values /= column_scale(squares * ((n - 1) / n), n)[:, None]
        size = np.maximum(1.0, np.abs(values).mean(axis=1))[:, None]
        values += TIE_NOISE * size * rng.standard_normal(values.shape)
        yield part, values
