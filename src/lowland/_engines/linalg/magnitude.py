"""Units for values whose squares would overflow or underflow, where a table is not scaled at once.

Methods on distances get tables of moderate size (``_base/units.py``). What remains are mergeable
sums, whose batches and columns have exponents of their own, new rows that are extreme compared
with the fitted rows, kernels, and tables that reach an engine without a method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.errors import DataError
from lowland._base.units import MOST, USUAL, exponent_for, in_unit, largest, largest_value
from lowland._base.validation import is_sparse

EXTREME = 1e140  # beyond it, and below its inverse, sums of squares overflow or underflow


def spread_of(X: Any) -> float:
    """The largest difference of two values in a column; of sparse rows the largest value."""
    return largest(X.data) if is_sparse(X) else 2.0 * float(_half_spreads(X).max())


def _half_spreads(X: np.ndarray) -> np.ndarray:
    """(max - min) / 2 of each column, which cannot overflow."""
    return X.max(axis=0) / np.float64(2) - X.min(axis=0) / np.float64(2)


def check_magnitude(
    largest: float, owner: str, what: str = "distance", argument: str = "X", power: int = 1
) -> None:
    """Refuse data whose squares, or squares of their powers, would overflow or underflow."""
    extreme = EXTREME ** (1 / power)
    if largest > extreme or 0 < largest < 1 / extreme:
        shown = "its square" if power == 1 else f"the {2 * power}th power of it"
        raise DataError(
            f"{owner}: the largest {what} of {argument} is {largest:g}, and {shown} is beyond "
            f"the range of float64; divide {argument} by "
            f"{largest if np.isfinite(largest) else EXTREME:.0e}."
        )


def unit_for(greatest: float) -> float:
    """A power of two that brings extreme values to about 1: squares must not overflow float32."""
    return 2.0 ** exponent_for(greatest)


def units_for(greatest: np.ndarray) -> np.ndarray:
    """:func:`unit_for` each of several values."""
    units = np.ones(len(greatest))
    usual = (greatest > USUAL[0]) & (greatest < USUAL[1])
    extreme = ~usual & (greatest > 0) & np.isfinite(greatest)
    powers = -np.round(np.log2(greatest[extreme].astype(np.float64)))
    units[extreme] = 2.0 ** np.minimum(powers, MOST)
    return units


def scaled(rows: np.ndarray, unit: float) -> np.ndarray:
    """Rows times a power of two; in float64, where that is exact."""
    return rows if unit == 1.0 else rows.astype(np.float64) * unit


def near_one(X: Any) -> Any:
    """X, or, where its largest value is extreme, that times a power of two, about 1."""
    return in_unit(X, exponent_for(largest_value(X)))


def safe_exponent(variance: float, X: Any) -> int:
    """The e for which 2^e X can be squared and solved without loss; 0 for all ordinary rows.

    ``variance`` is the largest of a column as it was found: infinity, NaN or 0 where squares
    overflowed or vanished. Only then are the rows themselves examined.
    """
    least, most = (2.0**-60, 2.0**90) if X.dtype == np.float32 else (2.0**-400, 2.0**400)
    if least < variance < most:
        return 0
    spread, greatest = spread_of(X), largest(X.data if is_sparse(X) else X)
    if not (spread > 0 and greatest < np.inf):
        return 0  # nothing varies, or values are infinite, which is refused elsewhere
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


def in_units_of(unit: float, distances: np.ndarray, most: float, owner: str) -> np.ndarray:
    """distances / unit in float64; refuses a new row whose quotient is above ``most``."""
    with np.errstate(over="ignore"):  # in the unit of extreme data, a width may be 0
        d = distances.astype(np.float64) / max(unit, np.finfo(np.float64).tiny)
    if not d.max(initial=0.0) <= most:
        raise DataError(
            f"{owner}: X has a new row at distance {distances.max():.0e} from the fitted rows, "
            "which is too far to compute its place; leave it out."
        )
    return d
