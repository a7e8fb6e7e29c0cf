"""Distances of new rows to fitted ones, all of them: each row's as if it came alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist

from lowland._core.validation import is_sparse
from lowland._engines.distance_source import DistanceSource
from lowland._engines.metric_rows import rows_of

__all__ = ["distance_table"]


def distance_table(
    points: Any, queries: Any, metric: Any, metric_params: dict[str, Any] | None = None
) -> np.ndarray:
    """d(query i, point j) in float64, (n_queries, n_points); any metric of rows.

    Rows without direction are at cosine and correlation distance 1 from all that have one, and 0
    from each other, as everywhere in the library. O(n_queries n_points p).
    """
    n = points.shape[0]
    if metric in ("cosine", "correlation"):
        (A, no_a), (B, no_b) = (
            rows_of(Z.toarray() if is_sparse(Z) else Z, metric, "X") for Z in (points, queries)
        )
        D = cdist(B.astype(np.float64), A.astype(np.float64), "sqeuclidean") / 2
        assert no_a is not None
        assert no_b is not None
        D[no_b[:, None] != no_a] = 1.0
        return D
    if is_sparse(points) or is_sparse(queries):
        stacked = scipy.sparse.vstack(
            [scipy.sparse.csr_matrix(points), scipy.sparse.csr_matrix(queries)], format="csr"
        )
    else:
        rows_of(points, metric, "X")  # refuses what the metric cannot take
        stacked = np.concatenate([points, queries])
    source = DistanceSource(stacked, metric, metric_params)
    return source.tile(np.arange(n, stacked.shape[0]), slice(0, n))
