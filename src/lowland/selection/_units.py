"""Columns of extreme values in units of their own, for scores that see one column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.memory import require_memory
from lowland._core.units import in_unit
from lowland._core.validation import is_sparse
from lowland._engines.linalg.magnitude import units_for

__all__ = ["moderate_columns"]


def moderate_columns(X: Any, owner: str) -> tuple[Any, np.ndarray]:
    """X with each column times 2^e, and the exponents e; 0, and X itself, for usual columns.

    Squares of extreme values overflow or vanish. A power of two changes no digit.
    """
    largest, smallest = X.max(axis=0), X.min(axis=0)
    if is_sparse(X):
        largest, smallest = largest.toarray().ravel(), smallest.toarray().ravel()
    units = units_for(np.maximum(np.abs(largest), np.abs(smallest)).astype(np.float64))
    exponents = np.log2(units).astype(np.int64)
    if not exponents.any():
        return X, exponents
    values = X.data if is_sparse(X) else X
    require_memory(
        values.nbytes,
        task=f"{owner}: a copy of X with columns in other units",
        alternative="divide X by its largest value",
    )
    if not is_sparse(X):
        return in_unit(X, exponents), exponents
    moved = X.copy()
    moved.data = in_unit(X.data, exponents[X.indices])
    return moved, exponents
