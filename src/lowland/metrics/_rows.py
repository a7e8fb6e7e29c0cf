"""Which rows a measure takes, and where the values of its rows go."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland.metrics._comparison import Comparison
from lowland.metrics._options import ComparisonKeywords


def all_rows(X: Any, Y: Any, options: ComparisonKeywords) -> Comparison:
    """A comparison that measures all rows by default, whatever their number."""
    if not isinstance(X, Comparison):
        options.setdefault("sample", None)
    return Comparison.of(X, Y, **options)


def summable(X: Any, Y: Any, options: ComparisonKeywords) -> Comparison:
    """A comparison on as many rows as sums over all their distances are affordable for."""
    compared = Comparison.of(X, Y, **options)
    return compared.fewer(compared.work.sums())


def spread(compared: Comparison, values: np.ndarray) -> np.ndarray:
    """Values of the measured rows in an array for all; NaN elsewhere."""
    everyone = np.full(compared.n, np.nan)
    everyone[compared.rows] = values
    return everyone
