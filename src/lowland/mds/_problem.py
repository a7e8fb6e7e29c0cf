"""Stress problems: the loss over maps for all pairs, for listed pairs, or for a sample of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._bases.distances import FLOAT64_ROWS
from lowland._core.context import FitContext
from lowland._core.validation import is_sparse
from lowland._engines.distances.dissimilarities import check_connected, known_pairs
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.linalg.magnitude import check_magnitude
from lowland._engines.neighbors.duplicates import EqualRows, equal_in_distances
from lowland._engines.stress import initial_map
from lowland._engines.stress.objective import AllPairs, ListedPairs, drop_negligible, inverse_powers
from lowland._engines.stress.sparse_pairs import choose_pairs, distances_to_some


class Settings(NamedTuple):
    """What all kinds of problems need to know of the method."""

    owner: str
    n_components: int
    power: int  # the weight of a pair is delta^-power
    weights: Any  # of all pairs, checked: an array, CSR or None


class Problem(NamedTuple):
    """A loss over maps.

    Attributes
    ----------
    objective : object
        The loss; its maps and distances are divided by ``unit``.
    unit : float
        The root mean square of the dissimilarities.
    start : callable
        Gives the classical start.
    equal : EqualRows or None
        Rows that share one place in the map.
    """

    objective: Any
    unit: float
    start: Callable[[], np.ndarray]
    equal: EqualRows | None


def all_pairs(D: np.ndarray, settings: Settings, run: FitContext, *, reuse: bool) -> Problem:
    """The stress of all pairs. NaN in D is unknown. ``reuse`` allows D to be overwritten."""
    n, power = len(D), settings.power
    dtype = np.float64 if n <= FLOAT64_ROWS else np.float32
    unit = _root_mean_square(D)
    target = D if reuse and D.dtype == dtype else np.empty((n, n), dtype)
    delta = np.divide(D, unit, out=target, casting="same_kind")
    drop_negligible(delta, power)
    W = settings.weights.toarray() if is_sparse(settings.weights) else settings.weights
    weights = None if W is None else np.ascontiguousarray(W, dtype)
    if weights is not None or np.isnan(delta.sum(dtype=np.float64)):
        known = ~np.isnan(delta) & (True if weights is None else weights > 0)
        check_connected(n, *np.nonzero(np.triu(known, 1)), settings.owner)
        delta = np.where(known, delta, np.nan).astype(dtype)
        np.fill_diagonal(delta, 0.0)

    def start() -> np.ndarray:
        return initial_map.classical_start(delta, settings.n_components, run)

    objective = AllPairs(delta, weights, power, run.threads)
    return Problem(objective, unit, start, equal_in_distances(delta))


def listed_pairs(D: Any, settings: Settings, run: FitContext) -> Problem:
    """The stress of the pairs that a sparse matrix of distances stores."""
    i, j, delta = known_pairs(D)
    n, weights = D.shape[0], None
    if settings.weights is not None:
        weights = np.asarray(settings.weights[i, j], np.float64).ravel()
        kept = weights > 0
        i, j, delta, weights = i[kept], j[kept], delta[kept], weights[kept]
    check_connected(n, i, j, settings.owner)
    unit = float(np.sqrt(np.mean(np.square(delta, dtype=np.float64)))) or 1.0
    delta = delta.astype(np.float64) / unit
    if settings.power:
        drop_negligible(delta, settings.power)
        weights = inverse_powers(delta, settings.power)

    def start() -> np.ndarray:
        return initial_map.landmark_start(D / unit, settings.n_components, run)

    return Problem(ListedPairs(n, i, j, delta, weights, run.threads), unit, start, None)


def sampled_pairs(
    X: Any, metric: Any, metric_params: dict[str, Any] | None, settings: Settings, run: FitContext
) -> Problem:
    """An estimate of the stress of all pairs from neighbors and random pairs."""
    chosen = choose_pairs(X, metric, metric_params, run)
    check_magnitude(float(chosen.delta.max()), settings.owner)
    unit = chosen.unit()
    objective = chosen.objective(unit, settings.power, run.threads)

    def start() -> np.ndarray:
        n = X.shape[0]
        some = np.sort(run.rng.choice(n, min(n, initial_map.LANDMARKS), replace=False))
        D = distances_to_some(X, some, metric, metric_params, run)
        return initial_map.landmark_map(D / unit, some, settings.n_components, run)

    return Problem(objective, unit, start, None)


def with_unknowns(D: Any) -> np.ndarray:
    """The upper triangle of a sparse matrix as a symmetric array, NaN where nothing is stored."""
    dense = np.full(D.shape, np.nan, D.dtype)
    i, j, delta = known_pairs(D)
    dense[i, j] = dense[j, i] = delta
    np.fill_diagonal(dense, 0.0)
    return dense


def _root_mean_square(D: np.ndarray) -> float:
    """The root mean square of the known entries; 1 if all are 0."""
    total, count = 0.0, 0
    for rows in row_blocks(len(D), 256):
        known = np.square(D[rows], dtype=np.float64)
        total, count = total + float(np.nansum(known)), count + int((~np.isnan(known)).sum())
    return float(np.sqrt(total / count)) or 1.0
