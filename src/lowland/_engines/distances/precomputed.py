"""Checks of distances that the user computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse
from lowland._engines.linalg.blocks import row_blocks


def check_distances(D: Any, argument: str, *, square: bool) -> None:
    """Refuse a matrix that is not a matrix of distances."""
    if square and D.shape[0] != D.shape[1]:
        raise DataError(
            f"{argument}: metric='precomputed' needs a square matrix of distances, not {D.shape}."
        )
    values = D.data if is_sparse(D) else D
    least = values.min(initial=0.0)
    if least < 0:
        raise DataError(
            f"{argument}: metric='precomputed' needs distances >= 0, but the least is {least:g}; "
            "similarities must be turned into distances first."
        )
    if not square or is_sparse(D):  # a sparse graph may know a distance in one direction only
        return
    worst = max(float(np.abs(D[rows] - D[:, rows].T).max()) for rows in row_blocks(len(D), 512))
    if worst > 1e-6 * max(float(D.max()), 1e-300):
        raise DataError(
            f"{argument}: metric='precomputed' needs a symmetric matrix, but X and its transpose "
            f"differ by up to {worst:g}; use (X + X.T) / 2 if that is what you mean."
        )
