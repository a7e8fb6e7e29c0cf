"""Perplexity, the effective number of neighbors: exp(entropy in nats) = 2^(entropy in bits)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._core.constraints import Real
from lowland._core.errors import DataError, ParameterError

NEIGHBORS_PER_PERPLEXITY = 3  # weights of farther rows are below 1/100 of the nearest's


def check_perplexity(
    perplexity: float | Sequence[float], n: int | None, n_neighbors: int | None = None
) -> tuple[float, ...]:
    """The perplexities as a tuple; a perplexity that no row can attain is refused.

    With m neighbors, a distribution has a perplexity of 1 (all weight on one) to m (all weights
    equal). So 1 <= perplexity <= n - 1, and <= n_neighbors where only so many are known.

    Parameters
    ----------
    perplexity : float or sequence of float
    n : int or None
        Number of fitted rows; None for new rows.
    n_neighbors : int or None
        Number of known neighbors of each row; None if all are known.
    """
    if n is not None and n < 2:
        raise DataError(
            f"perplexity cannot be attained with {n} row (n_samples={n}), which has no neighbor; "
            "at least 2 rows are needed."
        )
    values = _listed(perplexity)
    if not values or not all(Real(1, closed="left").allows(value) for value in values):
        raise ParameterError(
            f"perplexity={perplexity!r} is not allowed; expected a number >= 1 or a list of such."
        )
    largest = max(float(value) for value in values)
    if n is not None and largest > n - 1:
        raise ParameterError(
            f"perplexity={largest:g} is too large for {n} rows (n_samples={n}); it is at most "
            f"n_samples - 1 = {n - 1}, where all neighbors weigh the same. Take a smaller one."
        )
    if n_neighbors is not None and largest > n_neighbors:
        raise ParameterError(
            f"perplexity={largest:g} is too large for {n_neighbors} neighbors of each row; it is "
            f"at most {n_neighbors}, where all of them weigh the same. Take a smaller one, or more "
            "neighbors."
        )
    return tuple(float(value) for value in values)


def _listed(perplexity: Any) -> list[Any]:
    several = isinstance(perplexity, Sequence | np.ndarray) and not isinstance(perplexity, str)
    return list(perplexity) if several else [perplexity]


def default_neighbors(perplexity: float | Sequence[float], n: int) -> int:
    """How many neighbors to find for a perplexity: three times as many, at most all n - 1."""
    largest = max(check_perplexity(perplexity, n))
    return min(n - 1, math.ceil(NEIGHBORS_PER_PERPLEXITY * largest))
