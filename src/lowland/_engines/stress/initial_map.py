"""Initial maps of stress methods: classical scaling of known distances, noise, or a given map."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra, shortest_path

from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.sparse_input import compressed_rows
from lowland._base.validation import is_sparse
from lowland._engines.stress import classical_scaling

ROUGH = 1e-3  # residual of the eigenvectors, enough for a start
LANDMARKS = 100
# shares of the map's width: points closer than CROWDED get noise of size NOISE
CROWDED, NOISE = 1e-7, 1e-3
FARTHEST = 1e100  # largest coordinate, in units of the distances
PATH_ROWS = 2000


def classical_start(D: np.ndarray, q: int, run: FitContext) -> np.ndarray:
    """Classical scaling; unknown distances are replaced by shortest paths along known ones."""
    if np.isnan(D.sum(dtype=np.float64)):
        D = _filled(D)
    return _roughly_scaled(D, q, run).Y


def _roughly_scaled(D: np.ndarray, q: int, run: FitContext) -> classical_scaling.Scaling:
    return classical_scaling.of_distances(D, q, run, tol=ROUGH, rough=True)


def _filled(D: np.ndarray) -> np.ndarray:
    """Unknown distances as shortest paths; for many rows, as the mean distance of both ends."""
    unknown = np.isnan(D)
    if len(D) <= PATH_ROWS:
        lengths = np.where(unknown, np.inf, np.maximum(D, 1e-12 * np.nanmax(D)))
        paths = shortest_path(lengths, directed=False)
        np.fill_diagonal(paths, 0.0)
        return np.where(unknown, paths, D)
    means = np.nanmean(D, axis=1)
    return np.where(unknown, (means[:, None] + means) / 2, D).astype(D.dtype)


def landmark_start(D: Any, q: int, run: FitContext) -> np.ndarray:
    """Landmark scaling on shortest paths through a sparse graph of known distances."""
    n = D.shape[0]
    graph = scipy.sparse.csr_array(D).astype(np.float64)
    graph.data = np.maximum(graph.data, 1e-12 * (graph.data.max(initial=0.0) or 1.0))
    chosen = np.sort(run.rng.choice(n, min(n, LANDMARKS), replace=False))
    paths = dijkstra(graph, directed=False, indices=chosen)
    return landmark_map(paths, chosen, q, run)


def landmark_map(paths: np.ndarray, chosen: np.ndarray, q: int, run: FitContext) -> np.ndarray:
    """All rows by their distances (m, n) to the landmarks ``chosen``."""
    found = _roughly_scaled(np.ascontiguousarray(paths[:, chosen]), q, run)
    values = np.zeros(q)
    values[: min(q, len(found.eigenvalues))] = found.eigenvalues[:q]
    assert found.mean_squares is not None
    squares = np.ascontiguousarray(paths.T, np.float64) ** 2
    duals = classical_scaling.gower_duals(found.Y, values)
    return classical_scaling.gower_placement(squares, found.mean_squares, duals, run.threads)


def random_start(n: int, q: int, rng: np.random.Generator) -> np.ndarray:
    """Independent normal coordinates with mean squared distance 1."""
    return rng.standard_normal((n, q)) / np.sqrt(2 * q)


def given_start(init: Any, n: int, q: int, unit: float) -> np.ndarray:
    """A map from the user, centered, in units of the distances."""
    Y = given_numbers(init, (n, q), f"the map is {n} rows x {q} columns") / unit
    if np.abs(Y).max() > FARTHEST:
        raise DataError(
            f"init holds {np.abs(Y).max() * unit:g}, but the distances are about {unit:g}; "
            "give coordinates of about the size of the distances."
        )
    return Y - Y.mean(axis=0)


def given_numbers(init: Any, shape: tuple[int, int], wanted: str) -> np.ndarray:
    """``init`` as an array of finite numbers of the shape that is ``wanted``."""
    Y = np.array(
        compressed_rows(init, "init").toarray() if is_sparse(init) else init, dtype=np.float64
    )
    if Y.shape != shape:
        raise DataError(f"init has shape {Y.shape}, but {wanted}.")
    if not np.isfinite(Y).all():
        i, j = np.argwhere(~np.isfinite(Y))[0]
        raise DataError(f"init[{i}, {j}] = {Y[i, j]}; give finite numbers to start from.")
    return Y


def separated(Y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add a little noise to points in one place and to constant columns.

    Points in the same place have the same forces and would never separate; a column that is
    constant would stay so.
    """
    width = float(np.abs(Y).max(initial=0.0))
    width = width if width > 1 / FARTHEST else 1.0
    noise = rng.standard_normal(Y.shape)
    Y = Y.copy()
    flat = np.abs(Y).max(axis=0) <= CROWDED * width
    Y[:, flat] += NOISE * width * noise[:, flat]
    cells = np.round(Y / (CROWDED * width)) @ rng.standard_normal(Y.shape[1])
    _, cell, members = np.unique(cells, return_inverse=True, return_counts=True)
    crowded = members[cell] > 1
    Y[crowded] += NOISE * width * noise[crowded]
    return Y
