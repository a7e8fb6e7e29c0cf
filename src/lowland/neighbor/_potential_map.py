"""The map of potential distances for PHATE: classical, metric or nonmetric scaling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.memory import require_memory
from lowland._core.threads import limit_blas
from lowland._engines.distances.dissimilarities import known_pairs
from lowland._engines.stress import initial_map
from lowland._engines.stress.classical_scaling import of_distances
from lowland._engines.stress.disparities import Disparities
from lowland._engines.stress.majorization import majorize
from lowland._engines.stress.monotone_regression import MonotoneCone, stable_order
from lowland._engines.stress.objective import AllPairs, ListedPairs

ROUGH = 1e-3  # residual of the eigenvectors, enough for a start
PAIR_BYTES = 120  # of a pair of nonmetric scaling


class PotentialMap(NamedTuple):
    """The map in the unit of the distances, its stress at each step, and that of each point."""

    Y: np.ndarray
    losses: np.ndarray
    per_point: np.ndarray


def map_of_distances(
    D: np.ndarray,
    q: int,
    kind: str,
    *,
    max_iter: int,
    tol: float,
    shown: Callable[[np.ndarray], np.ndarray],
    run: FitContext,
) -> PotentialMap:
    """Classical scaling, and from there metric or nonmetric scaling.

    The stress is sqrt( sum (delta - d)^2 / sum delta^2 ); the nonmetric one is Kruskal's stress-1.
    ``shown`` makes the map that a callback sees from that of the points.
    """
    unit = float(np.sqrt(np.mean(np.square(D, dtype=np.float64))))
    if unit == 0:  # all rows diffuse alike
        return PotentialMap(np.zeros((len(D), q)), np.zeros(1), np.zeros(len(D)))
    delta = np.divide(D, unit, dtype=D.dtype)
    metric = AllPairs(delta, None, 0, run.threads)
    shared = {"threads": run.threads, "rng": run.rng, "monitor": run.monitor}
    tol_start = 1e-9 if kind == "classical" else ROUGH
    start = of_distances(delta, q, **shared, tol=tol_start, rough=True).Y
    with limit_blas(1):  # sums over all points must not depend on the number of threads
        if kind == "classical":
            loss = metric(start).loss / metric.scale
            return PotentialMap(start * unit, np.sqrt([loss]), metric.relative_per_point(start))
        objective: Any = metric if kind == "metric" else _ranked(delta, run)
        if max_iter > 0:
            start = initial_map.separated(start, run.rng)
        found = majorize(
            objective,
            start,
            max_iter=max_iter,
            tol=tol,
            monitor=run.monitor,
            shown=lambda Y: shown(_placed(Y, kind, unit)),
            told=lambda loss: float(np.sqrt(loss / objective.scale)),
        )
        Y = _placed(found.Y, kind, unit)
        losses = np.sqrt(found.losses / objective.scale)
        return PotentialMap(Y, losses, objective.relative_per_point(found.Y))


def _placed(Y: np.ndarray, kind: str, unit: float) -> np.ndarray:
    """Centered, in the unit of the distances.

    Nonmetric scaling does not set the size of the map. Its root mean square distance becomes that
    of the potential distances.
    """
    Y = Y - Y.mean(axis=0)
    size = float(np.sqrt(2 * np.mean((Y**2).sum(axis=1)))) if kind == "nonmetric" else 1.0
    return Y * (unit / (size or 1.0))


def _ranked(delta: np.ndarray, run: FitContext) -> Disparities:
    """Stress-1 over all pairs, in the order of their distances."""
    n = len(delta)
    require_memory(
        PAIR_BYTES * n * (n - 1) // 2,
        task=f"nonmetric scaling of {n} points",
        alternative="set mds='metric', or take fewer n_landmarks",
    )
    i, j, d = known_pairs(delta)
    order = stable_order(d, run.threads)
    i, j, d = i[order], j[order], d[order]
    return Disparities(
        ListedPairs(n, i, j, d, None, run.threads), MonotoneCone(d, "primary", threads=run.threads)
    )
