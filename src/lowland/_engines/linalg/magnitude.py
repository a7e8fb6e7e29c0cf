"""Values whose squares would overflow or vanish: another unit, or a refusal that says so.

A unit is a power of two, which changes no digit: what is computed in it and brought back is what
ordinary data give, to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse

__all__ = [
    "EXTREME",
    "check_fits",
    "check_magnitude",
    "column_exponents",
    "in_unit",
    "largest",
    "near_one",
    "safe_exponent",
    "scaled",
    "spread_of",
    "squarable",
    "unit_for",
    "units_for",
]

EXTREME = 1e140  # beyond it, and below its inverse, sums of squares are no numbers any more
MOST = 1000  # exponents of units are at most this: the unit and its inverse are float64


def largest(rows: np.ndarray) -> float:
    """The largest absolute value, without a copy of the rows."""
    return max(float(rows.max(initial=0.0)), -float(rows.min(initial=0.0)))


def spread_of(X: Any) -> float:
    """The largest difference of two values in a column; of sparse rows the largest value."""
    return largest(X.data) if is_sparse(X) else 2.0 * float(_half_spreads(X).max())


def _half_spreads(X: np.ndarray) -> np.ndarray:
    """(max - min) / 2 of each column, which cannot overflow."""
    return X.max(axis=0) / np.float64(2) - X.min(axis=0) / np.float64(2)


def check_magnitude(
    largest: float, owner: str, what: str = "distance", argument: str = "X"
) -> None:
    """Refuse data whose squares would overflow, or vanish."""
    if largest > EXTREME or 0 < largest < 1 / EXTREME:
        raise DataError(
            f"{owner}: the largest {what} of {argument} is {largest:g}, and its square is beyond "
            f"what numbers can hold; divide {argument} by "
            f"{largest if np.isfinite(largest) else EXTREME:.0e}."
        )


def unit_for(greatest: float) -> float:
    """A power of two that brings extreme values to about 1: squares must not overflow float32."""
    return float(units_for(np.array([greatest]))[0])


def units_for(greatest: np.ndarray) -> np.ndarray:
    """:func:`unit_for` each of several values."""
    units = np.ones(len(greatest))
    usual = (greatest > 1e-9) & (greatest < 1e9)
    extreme = ~usual & (greatest > 0) & np.isfinite(greatest)
    powers = -np.round(np.log2(greatest[extreme].astype(np.float64)))
    units[extreme] = 2.0 ** np.minimum(powers, MOST)
    return units


def check_fits(Y: np.ndarray, dtype: Any, owner: str) -> None:
    """Refuse a map in the units of the data that their float type cannot hold."""
    reach, most = largest(Y), float(np.finfo(dtype).max)
    if not reach <= most:
        raise DataError(
            f"{owner}: coordinates of the map reach {reach:g}, beyond what {np.dtype(dtype)} can "
            "hold; divide X by a large number, or give it in float64."
        )


def scaled(rows: np.ndarray, unit: float) -> np.ndarray:
    """Rows times a power of two; in float64, where that is exact."""
    return rows if unit == 1.0 else rows.astype(np.float64) * unit


def squarable(X: Any) -> Any:
    """X, or in float64 what is too large or too small for squares in float32."""
    if X.dtype != np.float32 or unit_for(largest(X.data if is_sparse(X) else X)) == 1:
        return X
    return X.astype(np.float64)


def in_unit(X: Any, exponent: Any) -> Any:
    """X times 2^exponent, dense or sparse, in its own type; dense columns may have one each."""
    if np.ndim(exponent) == 0 and exponent == 0:
        return X
    if not is_sparse(X):
        return np.ldexp(X, exponent)
    moved = X.copy()
    moved.data = np.ldexp(X.data, exponent)
    return moved


def near_one(X: Any) -> Any:
    """X, or, where its largest value is extreme, that times a power of two, about 1."""
    unit = unit_for(largest(X.data if is_sparse(X) else X))
    return in_unit(X, round(np.log2(unit)))


def safe_exponent(variance: float, X: Any) -> int:
    """The e for which 2^e X can be squared and solved without loss; 0 for all ordinary rows.

    ``variance`` is the largest of a column as it was found: infinity, NaN or 0 where squares
    overflowed or vanished. Only if it looks so are the rows themselves looked at.
    """
    least, most = (2.0**-60, 2.0**90) if X.dtype == np.float32 else (2.0**-400, 2.0**400)
    if least < variance < most:
        return 0
    spread, greatest = spread_of(X), largest(X.data if is_sparse(X) else X)
    if not (spread > 0 and greatest < np.inf):  # nothing varies, or what somebody else refuses
        return 0
    return int(_exponents(min(spread, 2 * greatest), greatest, X.dtype))


def column_exponents(X: np.ndarray) -> np.ndarray:
    """For each column the e for which 2^e times its differences is about 1; 0 for a constant."""
    spreads, greatest = 2 * np.minimum(_half_spreads(X), 2.0**1022), np.abs(X).max(axis=0)
    varies = spreads > 0
    return np.where(varies, _exponents(np.where(varies, spreads, 1.0), greatest, X.dtype), 0)


def _exponents(spread: Any, greatest: Any, dtype: Any) -> Any:
    """-log2 of the spread, as far as the largest value remains a number."""
    largest_exponent = np.frexp(greatest)[1].astype(np.int64)
    room = np.finfo(dtype).maxexp - 8 - largest_exponent
    return np.minimum(np.minimum(-np.frexp(spread)[1].astype(np.int64), room), MOST)
