"""What the opening angle of Barnes and Hut's approximation costs, in time and in accuracy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._core.constraints import Integer
from lowland._core.errors import DataError, ParameterError
from lowland._core.threads import limit_blas, resolve_n_jobs
from lowland._core.validation import check_matrix
from lowland._engines.embedding.repulsion import Repulsion, choose_repulsion, pairwise_repulsion


class BarnesHutCost(NamedTuple):
    """For each opening angle the seconds of one step and its error; and those of all pairs.

    ``errors`` is |f - f*| / |f*| over all forces f, with f* from all pairs.
    """

    angles: np.ndarray
    seconds: np.ndarray
    errors: np.ndarray
    exact_seconds: float


def barnes_hut_cost(
    Y: Any,
    angles: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *,
    n_repeats: int = 3,
    n_jobs: int | None = None,
) -> BarnesHutCost:
    """Time and error of the repulsion of t-SNE, by the opening angle of the tree.

    The repulsion of one step of the descent is computed for a map: over all pairs of points, and
    with a tree whose cells of side / distance below the angle count as one point each.

    Parameters
    ----------
    Y : array of shape (n_rows, n_components)
        A map of one, two or three dimensions, as :class:`lowland.TSNE` makes it.
    angles : sequence of float
        Opening angles from 0 to 1; 0 is exact. ``TSNE(method="barnes_hut", angle=0.5)`` has 0.5.
    n_repeats : int, default=3
        How often each is timed; the shortest time counts.
    n_jobs : int or None, default=None
        Threads; None uses all cores. Errors do not depend on it.

    Returns
    -------
    BarnesHutCost

    References
    ----------
    Barnes & Hut (1986), Nature 324; van der Maaten (2014), Accelerating t-SNE using tree-based
    algorithms, JMLR 15.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> cost = barnes_hut_cost(swiss_roll(500, random_state=0).truth, [0, 0.2, 0.8])
    >>> bool(cost.errors[0] < 1e-6 < cost.errors[1] < cost.errors[2] < 0.1)
    True
    """
    Y = np.ascontiguousarray(check_matrix(Y, owner="barnes_hut_cost", min_rows=2), dtype=np.float64)
    if Y.shape[1] > 3:
        raise DataError(f"Y: trees are for maps of up to 3 dimensions, not of {Y.shape[1]}.")
    try:
        tried = np.asarray(angles, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        tried = np.empty(0)
    if tried.ndim != 1 or not tried.size or not ((tried >= 0) & (tried <= 1)).all():
        raise ParameterError(
            f"barnes_hut_cost: angles={angles!r} is not allowed; expected numbers from 0 to 1."
        )
    if not Integer(1).allows(n_repeats):
        raise ParameterError(
            f"barnes_hut_cost: n_repeats={n_repeats!r} is not allowed; expected 1 or more."
        )
    threads = resolve_n_jobs(n_jobs)
    with limit_blas(1):
        exact, exact_seconds = _timed(pairwise_repulsion(1.0, threads), Y, n_repeats)
        found = [_timed(_tree(Y, float(angle), threads), Y, n_repeats) for angle in tried]
    scale = float(np.sqrt((exact**2).sum())) or 1.0
    errors = [float(np.sqrt(((forces - exact) ** 2).sum())) / scale for forces, _ in found]
    seconds = [seconds for _, seconds in found]
    return BarnesHutCost(tried, np.array(seconds), np.array(errors), exact_seconds)


def _tree(Y: np.ndarray, angle: float, threads: int) -> Repulsion:
    n, d = Y.shape
    return choose_repulsion("barnes_hut", n, d, 1.0, angle, threads, owner="barnes_hut_cost")


def _timed(repel: Repulsion, Y: np.ndarray, repeats: int) -> tuple[np.ndarray, float]:
    """Forces on all points, and the shortest time."""
    potential, forces = np.empty(len(Y)), np.empty_like(Y)
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        repel(Y, potential, forces)
        best = min(best, time.perf_counter() - start)
    return forces, best
