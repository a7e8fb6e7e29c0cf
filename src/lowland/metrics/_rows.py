"""What measures of single points share."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland.metrics._comparison import Comparison
from lowland.metrics._options import Keywords

__all__ = ["all_rows", "spread"]


def all_rows(X: Any, Y: Any, options: Keywords) -> Comparison:
    """A comparison that measures all rows, whatever their number, unless it is told a sample."""
    if not isinstance(X, Comparison):
        options.setdefault("sample", None)
    return Comparison.of(X, Y, **options)


def spread(compared: Comparison, values: np.ndarray) -> np.ndarray:
    """Values of the measured rows in an array for all; NaN elsewhere."""
    everyone = np.full(compared.n, np.nan)
    everyone[compared.rows] = values
    return everyone
