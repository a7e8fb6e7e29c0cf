"""Lengths and directions of sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._engines.linalg.magnitude import near_one


def row_squares(X: Any) -> np.ndarray:
    """Squared length of each row."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()


def unit_rows(X: Any) -> Any:
    """Rows of length 1; rows of zeros stay as they are."""
    import scipy.sparse

    X = near_one(X)
    length = np.sqrt(row_squares(X))
    return (scipy.sparse.diags(1.0 / np.where(length > 0, length, 1.0)) @ X).tocsr()
