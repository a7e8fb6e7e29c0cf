"""Columns of extreme values in units of their own, for scores that see one column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.memory import require_memory
from lowland._core.units import in_unit
from lowland._core.validation import is_sparse
from lowland._engines.linalg.magnitude import units_for

FAR = 1e100  # squares of larger values, and of those below its inverse, leave float64 when summed


def moderate_columns(X: Any, owner: str) -> tuple[Any, np.ndarray]:
    """X with each column times 2^e, and the exponents e; 0, and X itself, for usual columns.

    Squares of extreme values overflow or vanish. A power of two changes no digit.
    """
    largest, smallest = X.max(axis=0), X.min(axis=0)
    if is_sparse(X):
        largest, smallest = largest.toarray().ravel(), smallest.toarray().ravel()
    exponents = _exponents(np.maximum(np.abs(largest), np.abs(smallest)))
    if not exponents.any():
        return X, exponents
    values = X.data if is_sparse(X) else X
    require_memory(
        values.nbytes,
        task=f"{owner}: a copy of X with columns in other units",
        alternative="divide X by its largest value",
    )
    return in_column_units(X, exponents), exponents


def far_exponents(largest: np.ndarray) -> np.ndarray:
    """The exponents for columns whose squares overflow or vanish in float64; 0 for all others."""
    with np.errstate(invalid="ignore"):
        far = (largest > FAR) | ((largest > 0) & (largest < 1 / FAR))
    return np.where(far, _exponents(largest), 0)


def _exponents(largest: np.ndarray) -> np.ndarray:
    return np.log2(units_for(largest.astype(np.float64))).astype(np.int64)


def in_column_units(X: Any, exponents: np.ndarray) -> Any:
    """X with each column times 2^e; sparse rows stay sparse."""
    if not is_sparse(X):
        return in_unit(X, exponents)
    moved = X.copy()
    moved.data = in_unit(X.data, exponents[X.indices])
    return moved
