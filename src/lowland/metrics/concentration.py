"""Concentration of distances: how little near and far rows differ in many dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._core.constraints import OneOf
from lowland._core.errors import DataError
from lowland._engines.distances.distance_rows import blocks_of
from lowland._engines.linalg.magnitude import near_one
from lowland.metrics._measured import Measured, from_rows
from lowland.metrics._options import Keywords, Options, check_neighbors

MEASURED_ROWS = 1000


class DistanceConcentration(NamedTuple):
    """Four measures of how much near and far distances differ."""

    relative_contrast: Measured
    relative_spread: Measured
    neighborhood_share: Measured
    edge_length: float


def distance_concentration(
    X: Any, n_neighbors: int = 10, **options: Unpack[Keywords]
) -> DistanceConcentration:
    """How much farther the far rows are than the near ones.

    In many dimensions all distances from a row become nearly equal. Then small differences decide
    which rows are neighbors, and no map can show them. Means over rows i of

    - ``relative_contrast``: (mean_j d_ij) / (min_j d_ij), 1 when all are equal (He et al. 2012);
    - ``relative_spread``: (standard deviation of d_ij) / (mean of d_ij), 0 when all are equal;
    - ``neighborhood_share``: (distance to the k-th neighbor) / (mean distance), near 1 when a
      "neighborhood" of k reaches across the whole cloud;

    and ``edge_length`` = (k / (n - 1))^(1 / d): the edge of a cube that holds k of the n rows, as a
    share of the edge of the whole, if they filled d dimensions evenly; d is the intrinsic dimension
    ("twonn"). In 10 dimensions a neighborhood of 1 % has an edge of 63 %.

    Parameters
    ----------
    X : array, data frame, CSR matrix, or distances (``metric="precomputed"``)
    n_neighbors : int, default=10
        Size k of the neighborhood.
    **options
        See :class:`Comparison`; "auto" measures 1 000 rows here, each against all others. Rows
        that have an equal one count with their nearest different row in the contrast.

    References
    ----------
    Beyer, Goldstein, Ramakrishnan & Shaft (1999), When is "nearest neighbor" meaningful?, ICDT;
    He, Kumar & Chang (2012), On the difficulty of nearest neighbor search, ICML; Hastie,
    Tibshirani & Friedman (2009), The Elements of Statistical Learning, section 2.5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> flat = distance_concentration(rng.normal(size=(500, 200)))
    >>> wide = distance_concentration(rng.normal(size=(500, 2)))
    >>> bool(flat.relative_contrast < 1.3), bool(wide.relative_contrast > 20)
    (True, True)
    """
    from lowland.metrics.dimension import intrinsic_dimension

    if OneOf("auto").allows(options.get("sample", "auto")):
        options["sample"] = MEASURED_ROWS
    settings = Options(**options)
    view = settings.view(X)
    n = view.n
    (k,) = check_neighbors([n_neighbors], n - 1, n)
    parts = []
    with settings.working() as monitor, monitor.phase("distances", total=len(view.rows)) as phase:
        for block in blocks_of(view.rows, n):
            parts.append(_flatness(view.source.of(block), block, k))
            phase.advance(len(block))
    contrast, spread, share = np.concatenate(parts, axis=1)
    if np.isnan(contrast).any():
        raise DataError("X: all rows are equal; there are no distances to compare.")
    d = intrinsic_dimension(X, **options)
    edge = float((k / (n - 1)) ** (1 / d))
    return DistanceConcentration(
        from_rows(contrast, n), from_rows(spread, n), from_rows(share, n), edge
    )


def _flatness(D: np.ndarray, own: np.ndarray, k: int) -> np.ndarray:
    """Contrast, spread and k-th neighbor's share of a block of rows; NaN where all is equal."""
    others = np.ones(D.shape, bool)
    others[np.arange(len(own)), own] = False
    D = near_one(D[others].reshape(len(own), -1))  # the three numbers have no unit
    mean = D.mean(axis=1)
    nearest = np.where(D > 0, D, np.inf).min(axis=1)
    kth = np.partition(D, k - 1, axis=1)[:, k - 1]
    safe = np.where(mean > 0, mean, np.nan)
    return np.array([safe / nearest, D.std(axis=1) / safe, kth / safe])
