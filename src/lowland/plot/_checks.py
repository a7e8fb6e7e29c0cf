"""Checks of what is given to a picture, and which rows of many it draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._base.errors import DataError


def one_each(given: Sequence[Any] | None, usual: list[str], what: str, things: str) -> list[str]:
    """One text for each thing, as given or as usual."""
    if given is None:
        return usual
    if len(given) != len(usual):
        raise DataError(f"there are {len(given)} {what} for {len(usual)} {things}.")
    return [str(text) for text in given]


def sample_rows(n: int, most: int) -> np.ndarray:
    """The rows to draw, ascending: all of them, or a random sample."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def check_map(Y: Any, name: str = "the map") -> np.ndarray:
    """Coordinates as float64, in units that matplotlib can handle."""
    Y = check_table(Y, name)
    return Y / drawable_unit(Y)


def drawable_unit(*parts: np.ndarray) -> float:
    """A divisor for coordinates whose units matplotlib cannot draw; 1 for most.

    There are no ticks, so that extreme units may be rescaled.
    """
    reach = max(float(np.abs(part).max()) for part in parts)
    return 1.0 if reach == 0 or 1e-9 < reach < 1e30 else reach


def check_table(Y: Any, name: str, *, may_be_missing: bool = False) -> np.ndarray:
    """Numbers in rows and columns, as float64; finite, or NaN where they may be missing."""
    Y = _as_numbers(Y, name)
    if Y.ndim != 2 or 0 in Y.shape:
        raise DataError(f"{name} must have rows and columns, but has shape {Y.shape}.")
    if may_be_missing:
        return np.where(np.isfinite(Y), Y, np.nan)
    finite = np.isfinite(Y).all(axis=1)
    if not finite.all():
        found = f"{name} holds NaN or infinity, first in row {int(np.argmin(finite))}"
        raise DataError(f"{found}; leave such rows out, with their labels.")
    return Y


def check_vector(
    values: Any, name: str, n: int | None = None, *, may_be_missing: bool = False
) -> np.ndarray:
    """One number per entry, finite unless some may be missing."""
    values = _as_numbers(values, name)
    if values.ndim != 1 or values.size == 0 or n not in (None, values.size):
        wanted = "one number per entry" if n is None else f"{n} numbers"
        raise DataError(f"{name} must hold {wanted}, but has shape {values.shape}.")
    if not may_be_missing and not np.isfinite(values).all():
        entry = int(np.argmin(np.isfinite(values)))
        raise DataError(f"{name} holds {values[entry]} at position {entry}.")
    return values


def _as_numbers(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} holds something that is not a number: {error}.") from None
